"""Words whose images differ are found for what they do, and not for what other words in their prompts do."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.prompts.words import Phrases, choose, whiten

COLORS, THINGS = ("red", "blue", "green", "pink", "grey", "black"), ("cat", "dog", "car", "tree", "boat")
PROMPTS = [f"a {color} {thing} {place}" for color in COLORS for thing in THINGS for place in ("outside", "inside")]


def differences(rng, pairs, planted=()):
    """Noise, and a shift of its own for each planted word."""
    found = rng.normal(size=(len(PROMPTS) * pairs, 12))
    for number, word in enumerate(planted):
        has = np.repeat([word in prompt for prompt in PROMPTS], pairs)
        found[has, number] += 3.0
    return found


def chosen(data, pairs, seed=0):
    phrases = Phrases.of(PROMPTS)
    prompt = np.arange(len(PROMPTS)).repeat(pairs)
    return [phrases.texts[one.phrase] for one in choose(phrases, whiten(data), prompt, seed)]


def test_phrases_in_the_same_prompts_are_one_and_those_of_every_prompt_are_all_prompts():
    phrases = Phrases.of(PROMPTS)
    assert phrases.texts[0] == ""
    assert "a" not in phrases.texts
    assert "red" in phrases.texts
    assert "a red" not in phrases.texts
    assert phrases.has[:, phrases.texts.index("red")].sum() == 10


@pytest.mark.parametrize("planted", [("red",), ("cat", "blue"), ("red", "dog", "inside")])
def test_planted_words_are_found_and_their_neighbors_are_not(planted):
    assert sorted(chosen(differences(np.random.default_rng(1), 2, planted), 2)) == sorted(planted)


def test_what_all_prompts_have_in_common_is_found_first_and_the_words_after_it():
    data = differences(np.random.default_rng(2), 2, ("dog",))
    data[:, 11] += 3.0
    assert chosen(data, 2) == ["", "dog"]


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.long)])
def test_equal_models_have_no_words_in_nineteen_of_twenty_runs(runs):
    rng = np.random.default_rng(3)
    false = sum(bool(chosen(differences(rng, pairs), pairs, seed)) for seed in range(runs) for pairs in (1, 4))
    assert false <= stats.binom.ppf(0.999, 2 * runs, 0.025)


@pytest.mark.parametrize(
    ("texts", "part", "low", "high"),
    [(1, 1.0, 0.0, 0.01), (24, 1.0, 0.02, 0.05), (1, 0.5, 0.01, 0.02), (24, 0.5, None, None)],
    ids=["alone", "among all", "alone with half of the error", "among all with half of the error"],
)
def test_a_phrase_is_judged_among_all_phrases_by_its_part_of_the_error(texts, part, low, high):
    data = np.random.default_rng(1).normal(size=len(PROMPTS)) + 0.75 * np.array(["red" in one for one in PROMPTS])
    phrases = Phrases.of(PROMPTS)
    assert len(phrases.texts) == 24
    if texts == 1:
        phrases = Phrases(("red",), phrases.has[:, [phrases.texts.index("red")]])
    found = list(choose(phrases, data, np.arange(len(PROMPTS)), 0, part))
    assert [phrases.texts[one.phrase] for one in found] == ["red"] * (low is not None)
    assert all(low <= one.p_value <= high for one in found)


def test_a_word_whose_images_are_more_alike_is_found():
    rng = np.random.default_rng(4)
    diversity = rng.uniform(-0.4, 0.4, len(PROMPTS))
    diversity[[("pink" in prompt) for prompt in PROMPTS]] = -1
    phrases = Phrases.of(PROMPTS)
    found = list(choose(phrases, diversity, np.arange(len(PROMPTS)), 0))
    assert [phrases.texts[one.phrase] for one in found] == ["pink"]
    assert found[0].z < 0


def test_words_of_one_fault_are_not_found_as_what_all_prompts_have_in_common():
    """All prompts together differ most clearly, but not those without these words."""
    data = np.random.default_rng(5).normal(size=(len(PROMPTS) * 2, 12))
    has = np.repeat([any(word in prompt for word in ("red", "blue", "green")) for prompt in PROMPTS], 2)
    data[has, 0] += 4.0
    assert sorted(chosen(data, 2)) == ["blue", "green", "red"]


def test_a_word_is_not_more_alike_for_prompts_of_words_whose_content_differs():
    """What is drawn for cats and dogs outside varies less, and what is drawn for all other things does not."""
    diversity = np.random.default_rng(5).uniform(-0.2, 0.2, len(PROMPTS))
    diversity[["outside" in prompt and ("cat" in prompt or "dog" in prompt) for prompt in PROMPTS]] = -1
    phrases, prompt = Phrases.of(PROMPTS), np.arange(len(PROMPTS))
    found, known, own = (
        {phrases.texts[one.phrase] for one in choose(phrases, diversity, prompt, 0, 0.5, before)}
        for before in ((), ("cat", "dog"), ("outside",))
    )
    assert "outside" in found
    assert "outside" not in known
    assert "outside" in own
