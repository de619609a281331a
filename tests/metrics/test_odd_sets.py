"""All metrics on odd sets: values lie in their intervals, and notes say what the sets are."""

from collections.abc import Callable

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.measures.frechet import frechet_interval
from finc_eval.measures.registry import METRICS
from finc_eval.numerics.inference import wilson


def drawn(n: int = 300, d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    same, few = drawn(), np.repeat(drawn(25), 12, axis=0)
    line = np.outer(drawn(300, 1)[:, 0], np.arange(1, 7))
    return {
        "two laws": (drawn(seed=1) + 0.5, same),
        "identical arrays": (same, same),
        "identical repeats": (few, few),
        "repeats": (few, same),
        "constant": (np.ones((250, 6)), same),
        "constant twice": (np.ones((250, 6)), np.ones((300, 6))),
        "twins": (np.repeat(drawn(150, seed=1), 2, axis=0), same),
        "rank 1": (line, drawn(300, 1, seed=2) * np.arange(1, 7)),
        "one dimension": (drawn(300, 1, seed=3), drawn(280, 1)),
        "far apart": (drawn(seed=1) + 100, same),
    }


QUICK = ("two laws", "identical repeats", "constant twice", "one dimension", "far apart")


@pytest.mark.one_of_each(by=lambda pair: pair in ("constant twice", "identical repeats", "one dimension"))
@pytest.mark.parametrize(
    "pair", [pytest.param(pair, marks=[pytest.mark.long] * (pair not in QUICK)) for pair in pairs()]
)
def test_the_interval_of_every_metric_holds_its_value_and_a_possible_one(pair: str):
    gen, ref = pairs()[pair]
    names = [name for name, one in METRICS.items() if one.extractor is None]
    found = fe.metrics(gen, ref, names, test=drawn(seed=9, d=gen.shape[1]))
    assert len(found) > 10
    for score in found:
        if score.interval is None:
            continue
        low, high = score.interval
        number = score.value if score.unbiased is None else score.unbiased
        assert low <= number <= high, score
        assert high >= 0, score


NOTES: dict[str, tuple[str, ...]] = {
    "two laws": (),
    "identical arrays": ("all 300 samples of gen are also in ref, with equal embeddings",),
    "identical repeats": (
        *(
            f"{label} has only 25 distinct samples among 300, one of them 12 times: its distance to its k-th neighbor "
            "is 0 for k below 12"
            for label in ("gen", "ref")
        ),
        "all 300 samples of gen are also in ref, with equal embeddings",
    ),
    "constant": ("all samples of gen have the same embedding: look at them before trusting a number",),
    "twins": (
        "gen has only 150 distinct samples among 300, one of them 2 times: its distance to its k-th neighbor is 0 for "
        "k below 2",
    ),
}


@pytest.mark.one_of_each(by=lambda pair: pair.split()[0])
@pytest.mark.parametrize("pair", NOTES)
def test_every_metric_notes_repeats_constant_sets_and_shared_samples_once(pair: str):
    gen, ref = pairs()[pair]
    found = fe.metrics(gen, ref, ["fd", "kid", "prdc", "vendi", "realism", "prd", "mmd"])
    about = ("distinct samples among", "are also in", "have the same embedding")
    for score in found:
        said = [note for note in score.notes if any(words in note for words in about)]
        assert sorted(said) == sorted(NOTES[pair]), score


def test_the_intervals_of_shares_of_none_and_all_end_there_exactly():
    for n in range(1, 300):
        assert wilson(0.0, n)[0] == 0 and wilson(1.0, n)[1] == 1


LAWS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "shifted": lambda rng, n, d: rng.standard_normal((n, d)) + 0.1 * (np.arange(d) == 0),
    "wider": lambda rng, n, d: 1.1 * rng.standard_normal((n, d)),
}


@pytest.mark.long
@pytest.mark.parametrize(("law", "d", "truth"), [("shifted", 1, 0.01), ("shifted", 4, 0.01), ("wider", 2, 0.02)])
def test_the_interval_of_a_small_distance_holds_it_in_few_dimensions(law: str, d: int, truth: float):
    rng, runs = np.random.default_rng(d), 60
    held = 0
    for _ in range(runs):
        found = frechet_interval(LAWS[law](rng, 400, d), rng.standard_normal((400, d)))
        held += found.low <= truth <= found.high
        assert found.high > 0
    # Of 95 %: 50 of 60 or fewer in one of 5 000 tests. In one dimension, 28 of 34 did before.
    assert held > 50
