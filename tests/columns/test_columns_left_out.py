"""A column of numbers that a verb does not compare is said once, with the reason; what is used otherwise is not."""

import warnings

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.naming.measured import left_out_columns

N = 100


def texts(values):
    return [str(value) for value in values]


def scores(seed=0):
    return texts(np.round(np.random.default_rng(seed).normal(size=N), 3))


def some(seed, texts_of_others, part):
    """Return scores, a part of them replaced by other texts in turns."""
    values = scores(seed)
    for place in range(round(part * N)):
        values[place] = texts_of_others[place % len(texts_of_others)]
    return values


def choices(seed, *values):
    return texts(np.random.default_rng(seed).choice(values, N))


def held(seed, **columns):
    samples = np.random.default_rng(seed).normal(size=(N, 6)).astype(np.float32)
    return fe.EmbeddingSet(samples, metadata=columns, ids=[f"{place:03}" for place in range(N)])


SAID = {
    "values are missing": (some(1, [""], 0.3), some(2, [""], 0.3), "samples of gen and ref have no number"),
    "values are missing in a set": (some(1, ["nan"], 0.2), scores(2), "samples of gen have no number"),
    "all values of a set are missing": (scores(1), [""] * N, "samples of ref have no number"),
    "0 and 1": (choices(1, 0, 1), choices(2, 0, 1), "codes"),
    "true and false": (choices(1, True, False), choices(2, True, False), "codes"),
    "0 and 1, which differ": (["1"] * N, ["0"] * N, "codes"),
    "ratings": (choices(1, 1, 2, 3, 4, 5), choices(2, 1, 2, 3, 4, 5), "codes"),
    "ratings with decimals": (choices(1, "1.0", "2.0", "3.0"), choices(2, "1.0", "2.0", "3.0"), "codes"),
    "ratings, some of them missing": (choices(1, 1, 2, ""), choices(2, 1, 2, ""), "codes"),
    "another text": (some(1, ["error"], 0.02), scores(2), "'error' of gen is not a number"),
    "infinite values": (some(1, ["inf"], 0.3), scores(2), "samples of gen have no number"),
    "renamed": (None, scores(2), "gen does not have it"),
    "only in the generated set": (scores(1), None, "ref does not have it"),
    "whole numbers that repeat": (choices(1, *range(50)), None, "ref does not have it"),
}

NOT_SAID = {
    "scores": (scores(1), scores(2)),
    "few missing": (some(1, [""], 0.05), some(2, ["NaN"], 0.05)),
    "words": (choices(1, "sea", "sky"), choices(2, "sea", "sky")),
    "words that may be numbers": (choices(1, "7", "seven", "x"), choices(2, "7", "seven", "x")),
    "dates": (choices(1, "2024-01-02", "2024-03-04"), choices(2, "2024-01-02", "2024-03-04")),
    "seeds": (texts(range(N)), texts(range(N))),
    "seeds of one set": (texts(range(N)), None),
    "seeds with gaps": (["", *texts(range(1, N))], texts(range(N))),
    "a setting": (["50"] * N, ["50"] * N),
    "a setting of the generator": (choices(1, 20, 50), None),
    "no value": ([""] * N, [""] * N),
}


def pair(gen, ref, name="score"):
    return {
        label: held(seed, **({} if values is None else {name: values}))
        for seed, (label, values) in enumerate({"gen": gen, "ref": ref}.items())
    }


@pytest.mark.parametrize("case", SAID)
def test_a_column_that_is_not_compared_is_said_with_the_reason(case):
    gen, ref, why = SAID[case]
    (said,) = left_out_columns(pair(gen, ref))
    assert said.startswith("the column “score” is not compared") and why in said


@pytest.mark.parametrize("case", NOT_SAID)
def test_what_is_compared_or_says_nothing_of_samples_is_not_said(case):
    assert left_out_columns(pair(*NOT_SAID[case])) == []


@pytest.mark.parametrize("name", ["label", "prompt", "caption", "text"])
def test_labels_and_texts_are_used_otherwise(name):
    assert left_out_columns(pair(choices(1, 0, 1), choices(2, 0, 1), name)) == []


def test_a_column_by_which_shares_are_asked_for_is_used_otherwise():
    sets = pair(choices(1, 0, 1), choices(2, 0, 1), "class")
    assert [text for text in fe.compare(*sets.values(), by="class", features=50).warnings if "class" in text] == []
    assert any("“class”" in text for text in fe.compare(*sets.values(), features=50).warnings)


def test_groups_are_used_otherwise():
    sets = pair(choices(1, *range(40)), choices(2, *range(40)), "author")
    assert left_out_columns({label: samples.grouped("author") for label, samples in sets.items()}) == []


def test_columns_beyond_those_that_are_compared_are_said():
    sets = {label: held(seed, **{f"c{k:02}": scores(k + 30 * seed) for k in range(22)}) for seed, label in
            enumerate(("gen", "ref"))}  # fmt: skip
    said = left_out_columns(sets)
    assert len(said) == 2 and "“c20”" in said[0] and "“c21”" in said[1] and "at most 20" in said[0]


def compare(gen, before, ref):
    return fe.compare(gen, ref, features=50).warnings


def gate(gen, before, ref):
    return fe.gate(gen, before, ref, {"appearance": {"whole": 0.5}}).warnings


def leaderboard(gen, before, ref):
    return fe.leaderboard({"a": gen, "b": before}, ref).warnings


def monitor(gen, before, ref):
    found = fe.Monitor(ref)
    for step in range(3):
        found.update(step, gen if step > 1 else before)
    return found.warnings


def same_ids(gen, before, ref):
    return fe.compare(gen, before, pairs="id", features=50).warnings


COLUMNS = {
    "fine": lambda seed: scores(seed),
    "missing": lambda seed: some(seed, [""], 0.3),
    "flag": lambda seed: choices(seed, 0, 1),
    "rating": lambda seed: choices(seed, *range(1, 6)),
    "word": lambda seed: choices(seed, "sea", "sky"),
}


@pytest.mark.parametrize("verb", [compare, gate, leaderboard, monitor, same_ids])
def test_each_verb_says_each_column_once(verb):
    def drawn(seed, renamed):
        return held(seed, **{key: values(seed) for key, values in COLUMNS.items()}, **{renamed: scores(seed)})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = verb(drawn(1, "new"), drawn(2, "old"), drawn(3, "old"))
    about = [text for text in said if "is not compared" in text]
    for name in ("missing", "flag", "rating", "new", "old"):
        assert sum(f"“{name}”" in text for text in about) == 1, (name, about)
    assert len(about) == 5


def test_a_monitor_says_a_column_that_goes_or_breaks_once():
    found = fe.Monitor(held(0, gone=scores(1), broken=scores(2), stays=scores(3)))
    for step in range(4):
        found.update(step, held(10 + step, broken=some(4, ["x"], 0.3), stays=scores(5), fresh=scores(step)))
    said = [text for text in found.warnings if "is not compared" in text]
    assert [text.split("”")[0].split("“")[1] for text in said] == ["gone", "broken", "fresh"]
    assert all(text.startswith("step 0: ") for text in said)


def test_seeds_of_which_some_are_missing_are_not_compared():
    sets = pair(["", *texts(range(1, N))], ["", *texts(range(500, N + 499))])
    assert fe.compare(*sets.values(), features=50).looks == ()
