"""Boards of models whose faults are known: each model has its own faults by name, and no others."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageFilter

import finc_eval as fe

N, KINDS, SIDE = 320, 10, 32
CENTERS = np.random.default_rng(0).normal(0, 1.6, (KINDS + 1, 12))
SORTS = ["anemone", "begonia", "crocus", "dahlia", "erica", "freesia", "gentian", "hosta", "iris", "jasmine", "kerria"]


@dataclass(frozen=True)
class Faults:
    """Faults that are planted in a set of samples of ten sorts."""

    blurred: float = 0.0  # share of the pictures
    dark: float = 1.0  # factor of all pictures
    repeats: int = 0  # times that one picture comes
    lost: float = 0.0  # part of the begonias
    new: float = 0.0  # share of kerrias, which others lack
    moved: float = 0.0  # standard deviations by which all embeddings have moved


CLEAN = Faults()


def scene(rng):
    layers = [
        Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).resize((SIDE, SIDE), how)
        for side, how in ((2, 3), (5, 3), (12, 0), (24, 0))
    ]
    mixed = np.tensordot(rng.dirichlet((4, 3, 2, 1.5)), [np.asarray(one, float) for one in layers], 1)
    mixed = (mixed - 128) * rng.uniform(0.8, 1.6) + rng.uniform(100, 150)
    return Image.fromarray(mixed.clip(0, 255).astype(np.uint8))


@cache
def scenes(seed):
    rng = np.random.default_rng(seed)
    return [scene(rng) for _ in range(N)]


def drawn(seed, faults):
    """Return a set of samples with faults."""
    rng, images = np.random.default_rng(seed), [*scenes(seed)]
    law = np.r_[np.full(KINDS, 1.0), 0.0]
    law[1] *= 1 - faults.lost
    law[KINDS] = faults.new / (1 - faults.new) * law.sum()
    kinds = rng.choice(KINDS + 1, N, p=law / law.sum())
    rows = CENTERS[kinds] + 0.5 * rng.normal(size=(N, 12)) + 0.5 * faults.moved / np.sqrt(12)
    for place in rng.permutation(N)[: round(faults.blurred * N)]:
        images[place] = images[place].filter(ImageFilter.GaussianBlur(1.5))
    if faults.dark < 1:
        images = [one.point(lambda value: int(value * faults.dark)) for one in images]
    if faults.repeats:
        some = rng.permutation(N)[: faults.repeats]
        rows[some], kinds[some] = rows[some[0]], kinds[some[0]]
        for place in some:
            images[place] = images[some[0]]
    return fe.EmbeddingSet(rows.astype(np.float32), images=images, metadata={"label": [SORTS[one] for one in kinds]})


BLUR, GONE, MANY = Faults(blurred=0.25), Faults(lost=1.0), Faults(repeats=40)
A_QUARTER, LACKS = "a quarter is blurred", "lacks begonia"

CASES = {  # faults of the models and of the reference; what the fault of each model must say
    "nothing": ([CLEAN, CLEAN], CLEAN, [(), ()]),
    "a quarter blurred": ([BLUR, CLEAN], CLEAN, [(A_QUARTER,), ()]),
    "one picture 40 times": ([CLEAN, MANY], CLEAN, [(), ("one picture, 40 times",)]),
    "a kind missing": ([GONE, CLEAN], CLEAN, [(LACKS,), ()]),
    "a new kind": ([CLEAN, Faults(new=0.15)], CLEAN, [(), ("too many kerria",)]),
    "everything darker": ([Faults(dark=0.75), CLEAN], CLEAN, [("the set is on average darker",), ()]),
    "two faults": ([Faults(blurred=0.25, lost=1.0), CLEAN], CLEAN, [(A_QUARTER, LACKS), ()]),
    "a little moved": ([Faults(moved=0.1), CLEAN], CLEAN, [(), ()]),
    "an odd reference": ([CLEAN, CLEAN], BLUR, [("none is blurred (reference",), ("only 0.6 % is blurred",)]),
    "one of four": ([CLEAN, CLEAN, GONE, CLEAN], CLEAN, [(), (), (LACKS,), ()]),
    "one fault of all": ([GONE, GONE, GONE], CLEAN, [(LACKS,)] * 3),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", CASES)
def test_each_model_has_its_faults_and_no_others(case):
    models, ref, said = CASES[case]
    names = [f"m{number}" for number in range(len(models))]
    sets = {name: drawn(10 + number, faults) for number, (name, faults) in enumerate(zip(names, models, strict=True))}
    board = fe.leaderboard(sets, drawn(1, ref), metrics=("kid",))
    for name, words in zip(names, said, strict=True):
        faults = board[name].faults
        assert len(faults) == len(words) and all(any(word in one for one in faults) for word in words), (name, faults)
        assert board[name].fault == "; ".join(faults)
    faulty = [name for name, words in zip(names, said, strict=True) if words]
    assert {one.removeprefix("fault of ") for one in board.headline_parts} - {"clean"} == set(faulty)
    assert ("clean" in board.headline_parts) == (len(faulty) < len(models))


@pytest.mark.long
def test_of_models_with_equal_faults_the_last_by_rank_is_worst():
    sets = {"near": drawn(10, Faults(dark=0.75)), "far": drawn(11, Faults(dark=0.75, moved=3.0))}
    board = fe.leaderboard(sets, drawn(1, CLEAN), metrics=("kid",))
    assert [row.name for row in board.rows] == ["near", "far"]
    assert next(iter(board.headline_parts)) == "fault of far" and "darker" in board.headline_parts["fault of far"]
