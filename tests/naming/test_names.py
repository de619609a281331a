import numpy as np
import pytest
from naming._described import Described
from PIL import Image

from finc_eval.naming.names import name_by_members
from finc_eval.naming.properties import common_word


def digits(n, seed):
    """Labels 0…9 in equal shares, in random order."""
    return np.random.default_rng(seed).permutation(np.arange(n) % 10)


def named(members, gen, ref):
    return name_by_members(members, {"gen": gen, "ref": ref})


def members_with(labels, value, count=47, others=3):
    """Indices of `count` samples of the value and a few of other values."""
    return np.append(np.flatnonzero(labels == value)[:count], np.flatnonzero(labels != value)[:others])


def test_a_mode_is_named_by_the_label_that_most_of_its_members_have():
    labels = {name: digits(1000, seed) for seed, name in enumerate(("gen", "ref"))}
    sets = {name: Described(1000, {"label": labels[name]}) for name in labels}
    members = [{name: members_with(labels[name], value) for name in sets} for value in (3, 8)]
    three, eight = name_by_members(members, sets)
    assert (three.text, eight.text) == ("mostly 3 (94 %)", "mostly 8 (94 %)")
    (evidence,) = three.evidence
    assert (evidence.source, evidence.value, evidence.share_members) == ("label", "3", 0.94)
    assert evidence.share_others < 0.1 and evidence.p_value < 1e-20


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({3: 51, 5: 38, 9: 11}, "3 and 5 (51 %, 38 %)"),
        ({3: 40, **dict.fromkeys(range(4, 10), 10)}, "partly 3 (40 %)"),
        (dict.fromkeys(range(5), 10), None),
    ],
)
def test_labels_name_a_mode_by_their_shares_of_the_members(counts, text):
    labels = digits(2000, 0)
    members = np.concatenate([np.flatnonzero(labels == value)[:count] for value, count in counts.items()])
    (name,) = named([{"gen": members}], Described(2000, {"label": labels}), Described(500, {"label": digits(500, 1)}))
    assert name.text == text


def test_the_only_label_of_a_set_names_its_modes():
    """A generator of one class is told so: the other samples of its own set would not tell."""
    gen, ref = Described(60, {"label": ["cat"] * 60}), Described(300, {"label": digits(300, 0)})
    (name,) = named([{"gen": np.arange(20)}], gen, ref)
    assert name.text == "mostly cat (100 %)"


def test_what_all_pictures_of_a_set_look_like_marks_no_mode():
    """All pictures of gen are bright and all of ref dark; the threes of gen are as bright as its other digits."""
    labels, rng = digits(400, 0), np.random.default_rng(1)
    pictures = [
        [Image.fromarray(np.full((8, 8, 3), base + rng.integers(40), np.uint8)) for _ in range(400)]
        for base in (180, 20)
    ]
    gen, ref = (Described(400, {"label": labels}, images=mine) for mine in pictures)
    (name,) = named([{"gen": members_with(labels, 3, 38, 2)}], gen, ref)
    assert name.text == "mostly 3 (95 %)"


def test_without_metadata_and_pictures_modes_have_no_names():
    (name,) = named([{"gen": np.arange(50)}], Described(1000), Described(1000))
    assert name.text is None and name.evidence == ()
    assert named([], Described(1000), Described(1000)) == []


@pytest.mark.parametrize("runs, most", [(12, 2), pytest.param(40, 4, marks=pytest.mark.long)])
def test_random_members_are_hardly_ever_described(runs, most):
    rng = np.random.default_rng(0)
    described = 0
    for _ in range(runs):
        columns = {"label": rng.integers(0, 10, 500), "style": rng.random(500) < 0.5}
        prompts = [" ".join(words) for words in rng.choice(WORDS, (500, 8), p=ZIPF)]
        sets = {name: Described(500, columns | {"prompt": prompts}) for name in ("gen", "ref")}
        members = [{name: rng.permutation(500)[:50] for name in sets} for _ in range(4)]
        described += any(name.evidence for name in name_by_members(members, sets))
    assert described <= most  # 40 at 5 %: 5 or more in 5 % of runs, and exact tests are conservative


WORDS = [f"word{number}" for number in range(300)]
ZIPF = 1 / np.arange(1, 301)
ZIPF /= ZIPF.sum()


def test_planted_words_of_prompts_come_first():
    rng = np.random.default_rng(1)
    prompts = [[*rng.choice(WORDS, 8, p=ZIPF), *["snow"] * (index % 40 == 0)] for index in range(2000)]
    for index in range(60):
        prompts[index] = [*prompts[index], "Snow", "at", "night"]
    sets = {name: Described(2000, {"prompt": [" ".join(words) for words in prompts]}) for name in ("gen", "ref")}
    (name,) = name_by_members([{"gen": np.arange(50)}], sets)
    assert {evidence.value for evidence in name.evidence[:3]} == {"snow", "at", "night"}
    assert name.text.startswith("prompt with “")


def test_ids_groups_and_marks_of_a_set_are_not_names():
    clips = np.arange(1000) // 50
    columns = {"file": np.arange(1000), "clip": clips}
    gen, ref = (
        Described(1000, {**columns, "source": [source] * 1000}, groups=clips + first)
        for source, first in (("model", 0), ("camera", 20))
    )
    (name,) = named([{"gen": np.arange(50)}], gen, ref)
    assert name.text is None and name.evidence == ()


def test_the_samples_of_a_group_count_once():
    labels = np.repeat(digits(200, 0), 10)
    groups = np.repeat(np.arange(200), 10)
    members = [{"gen": np.arange(30)}]  # three groups
    alone = Described(2000, {"label": labels})
    together = Described(2000, {"label": labels}, groups=groups)
    ref = Described(1000, {"label": digits(1000, 1)})
    assert named(members, alone, ref)[0].evidence
    assert not named(members, together, ref)[0].evidence


def test_seeds_in_order_do_not_name_a_kind_of_a_few_seeds_of_each_prompt():
    """The first member of each prompt has seed 1, and the first sample of each other one has seed 0."""
    seeds, prompts = np.tile(np.arange(16), 60), np.repeat(np.arange(60), 16)
    gen, ref = (Described(960, {"seed": seeds}, groups=prompts + first) for first in (0, 60))
    (name,) = named([{"gen": np.flatnonzero((prompts < 20) & (seeds > 0))}], gen, ref)
    assert name.evidence == ()


def test_samples_without_a_value_count_among_the_members():
    labels = digits(1000, 0).astype(str)
    labels[1::2] = ""
    members = np.append(np.flatnonzero(labels == "3")[:40], np.flatnonzero(labels == "")[:40])
    (name,) = named([{"gen": members}], Described(1000, {"label": labels}), Described(1000))
    assert name.text == "mostly 3 (50 %)"


def picture(level, rng, border=0):
    pixels = np.clip(rng.normal(level, 25, (32, 32, 3)), 0, 255).astype(np.uint8)
    pixels[:border] = pixels[32 - border :] = 0
    pixels[:, :border] = pixels[:, 32 - border :] = 0
    return Image.fromarray(pixels)


def test_bright_pictures_are_called_brighter_after_the_label():
    rng = np.random.default_rng(0)
    labels = digits(600, 0)
    members = members_with(labels, 3)
    levels = np.full(600, 90)
    levels[members] = 150
    gen = Described(600, {"label": labels}, images=[picture(level, rng) for level in levels])
    ref = Described(600, {"label": labels}, images=[picture(90, rng) for _ in range(600)])
    (name,) = named([{"gen": members}], gen, ref)
    assert name.text.startswith("mostly 3 (94 %), brighter")
    random = [{"gen": rng.permutation(600)[:50]} for _ in range(20)]
    assert not any(one.text for one in named(random, gen, ref))


def test_borders_are_seen():
    rng = np.random.default_rng(0)
    gen = Described(300, images=[picture(120, rng, border=3 * (index < 40)) for index in range(300)])
    (name,) = named([{"gen": np.arange(40)}], gen, Described(300))
    assert "with borders" in [evidence.value for evidence in name.evidence]


@pytest.mark.parametrize(
    "texts, word",
    [
        (["A red fox, at night", "a red FOX.", "fox (red)"], "fox"),  # the rarer of two
        (["a red car", "a blue car"], "car"),
        (["a red van", "a blue bus"], ""),  # most have none in common but what all have
    ],
)
def test_some_texts_are_named_by_the_rarest_word_that_most_of_them_have(texts, word):
    every = [*texts, "a red dog", "a red cat", "a cow", "a hen", "a pig"]
    assert common_word(texts, every) == word
