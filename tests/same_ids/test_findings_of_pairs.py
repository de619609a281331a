"""Findings of two runs with the same ids: what broken pairs are, in what order, and what all outputs say of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits
from finc_eval.findings.finding import Finding
from finc_eval.same_ids.findings import NOTHING, _best_answer
from finc_eval.same_ids.pairs import Aligned

IMAGES, LABELS = shipped_digits()
WORDS = ("zero", "one", "two", "three", "four", "five")
N = 60


def run_of(rows, *, labels=None, prompts=None, pictures=None):
    """A run of digits, whose embeddings are their 14 × 14 pixels."""
    own = IMAGES[rows] if pictures is None else pictures
    vectors = own.reshape(len(own), 14, 2, 14, 2).mean((2, 4)).reshape(len(own), -1) / 255
    columns = {name: values for name, values in (("label", labels), ("prompt", prompts)) if values is not None}
    return fe.EmbeddingSet(vectors.astype(np.float32), metadata=columns, images=[*own])


def drawn(kinds, n=N, seed=0):
    """Rows of digits of some kinds in turn, each digit at most once."""
    rng = np.random.default_rng(seed)
    pools = {kind: iter(rng.permutation(np.flatnonzero(kind == LABELS)).tolist()) for kind in range(10)}
    return np.array([next(pools[kinds[place % len(kinds)]]) for place in range(n)]), pools


def case(name):
    """Return the new run, the run before, and the name and kind of the finding."""
    rows, pools = drawn((0, 1, 2, 3))
    new, digits = rows.copy(), LABELS[rows]
    prompts, labels = [f"a {WORDS[digit]}" for digit in digits], None
    places = np.flatnonzero(digits == 3)
    match name:
        case "lost kind":
            new[places] = [next(pools[place % 3]) for place in places]
            labels, expected = True, ("3", "kind")
        case "new kind":
            places = np.arange(0, N, 5)
            new[places] = [next(pools[7]) for _ in places]
            labels, expected = True, ("7", "kind")
        case "misdrawn word":
            new[places] = [next(pools[5]) for _ in places]
            expected = ("three", "words")
        case "repeats":
            new[::5] = next(pools[7])
            expected = ("one picture, 12 times", "repeat")
        case "copies":
            new[np.arange(1, N, 5)] = rows[np.random.default_rng(2).permutation(np.arange(2, N, 5))]
            expected = ("copies of the reference", "copy")
        case "others at random":
            places = np.random.default_rng(1).permutation(N)[:12]
            new[places] = [next(pools[LABELS[rows[place]]]) for place in places]
            expected = ("another picture", "pair")
        case "exchanged by one":
            new = np.roll(rows, 1)
            expected = ("ids are shifted by 1 (each shows an earlier picture)", "pair")
    columns = {"prompts": None if labels else prompts}
    sides = [columns | ({"labels": LABELS[each].astype(str).tolist()} if labels else {}) for each in (new, rows)]
    return run_of(new, **sides[0]), run_of(rows, **sides[1]), expected


CASES = ("lost kind", "new kind", "misdrawn word", "repeats", "copies", "others at random", "exchanged by one")


@cache
def compared(name):
    """Return the comparison of a case by ids, which no test changes, and the name and kind of the finding."""
    new, before, expected = case(name)
    return fe.compare(new, before, pairs="id", features=20, modes=1).by_id, expected


@pytest.mark.one_of_each(
    by=lambda name: {"new kind": "lost kind", "exchanged by one": "others at random"}.get(name, name)
)
@pytest.mark.parametrize("name", CASES)
def test_broken_pairs_are_called_by_what_their_pictures_are(name):
    found, expected = compared(name)
    first = found.findings[0]
    assert (first.name, first.kind) == expected
    assert first.is_worse and first.text in found.sentences["verdict"]
    assert set(first.ids) <= set(found.broken) and first.ids


def test_a_lost_kind_has_its_shares_and_equal_runs_have_no_findings():
    _, before, _ = case("lost kind")
    first = compared("lost kind")[0].findings[0]
    assert (first.share_gen, first.share_ref) == (0.0, 0.25)
    assert fe.compare(before, before, pairs="id", features=20, modes=1).by_id.findings == ()


def test_sentences_say_the_findings_and_no_others():
    found, _ = compared("lost kind")
    text = " ".join(replace(found, findings=()).sentences.values())
    assert "“3”" not in text and "15 pairs are broken" in text
    others = (
        Finding("more beautiful", "look", True, None, None, None, text="more beautiful (2 standard deviations)"),
        Finding("wobblier", "look", True, None, None, None, text="wobblier (3 standard deviations)", is_worse=True),
    )
    sentences = replace(found, findings=others).sentences
    assert "on average they are more beautiful" in sentences["changed"]
    assert sentences["worse"] == "Worse: wobblier (3 standard deviations)."


def test_what_is_true_of_all_pairs_comes_before_a_single_pair():
    rows, _ = drawn((0, 1, 2, 3))
    pictures = IMAGES[rows] * 0.7
    pictures[7] = 0
    found = fe.compare(
        run_of(rows, pictures=pictures.astype("u1")), run_of(rows), pairs="id", features=20, modes=1
    ).by_id
    assert found.findings[0].kind == "look" and found.findings[-1].name == "black"


@pytest.mark.parametrize(("noise", "name"), [(0, "black"), (6, "broken in several ways")])
def test_the_share_of_all_broken_pairs_has_the_name_of_a_cause_only_if_nearly_all_have_it(noise, name):
    rows, _ = drawn((0, 1, 2, 3))
    pictures = IMAGES[rows].copy()
    pictures[:7] = 0
    pictures[20 : 20 + noise] = np.random.default_rng(0).integers(0, 256, pictures[20 : 20 + noise].shape)
    found = fe.compare(run_of(rows, pictures=pictures), run_of(rows), pairs="id", features=20, modes=1).by_id
    first = found.of_pairs
    assert first.name == name and first.share_gen == pytest.approx((7 + noise) / len(rows))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] * (seed > 0)) for seed in range(4)])
def test_pairs_that_are_broken_at_random_have_no_name(seed):
    rng = np.random.default_rng(seed)
    named = 0
    for _ in range(100):
        n, kinds = int(rng.choice([20, 60, 200])), int(rng.choice([2, 4, 20]))
        labels, new = (rng.integers(0, kinds, n).astype(str).tolist() for _ in range(2))
        prompts = [" ".join(rng.choice(WORDS, 3)) for _ in range(n)]
        is_broken = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
        own = [new[place] if is_broken[place] else labels[place] for place in range(n)]
        sets = [
            fe.EmbeddingSet(rng.normal(size=(n, 2)).astype(np.float32), metadata={"label": each, "prompt": prompts})
            for each in (own, labels)
        ]
        named += _best_answer(_aligned(sets, n), NOTHING, is_broken) is not None
    assert named <= 12  # 5 % of 100, with three standard deviations


def _aligned(sets, n):
    from finc_eval.embeddings.opening import as_embeddings

    gen, ref = (as_embeddings(one, "a run") for one in sets)
    return Aligned(np.arange(n).astype(str), gen, ref, (np.arange(n), np.arange(n)))


def test_a_look_of_pairs_is_not_said_again_of_a_part_of_both_sets():
    """Sets without pairs would name the pictures that have a badge, beside the pairs that have it more often."""
    rows, _ = drawn((0, 1, 2, 3))
    dark = IMAGES[rows].copy()
    dark[::2] = dark[::2] // 3
    found = fe.compare(run_of(rows, pictures=dark), run_of(rows), pairs="id", features=20, modes=1)
    looks = [finding for finding in found.findings if finding.kind == "look"]
    assert looks and looks == [finding for finding in found.by_id.findings if finding.kind == "look"]
