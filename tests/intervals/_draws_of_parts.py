"""Designs of local evidence: its p-value, and those of parts of pictures."""

from functools import partial

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue

from finc_eval.local_evidence.find import find_local
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.numerics.inference import BESIDE_ALPHA

NUMBERS = ("Comparison.local_p_value", "PartOfSet.p_value")
PROMISES = {
    NUMBERS[0]: PValue(),
    NUMBERS[1]: PValue(together=True),
    "PartOfSet.at_least": Holds(
        width=None, why="a lower bound of the share of a part that is said, at the level .0125"
    ),
    "PartOfSet.heat": NoClaim("how much a window adds to the score of its picture, which is drawn"),
}


def cells_of_sets(rng, units, size, *, is_paired=False, patch=0.0):
    """Pictures of 3 × 3 windows in groups of one size, or of the same prompts; a part of gen has a patch."""
    n = units * size
    inputs, shared = [], rng.normal(size=(units, 1, 6))
    for number in range(2):
        own = shared if is_paired else rng.normal(size=(units, 1, 6))
        cells = 0.4 * own.repeat(size, 0) + rng.normal(size=(n, 9, 6))
        cells[: int(patch * n) * (number == 0), rng.integers(9), :3] += 5.0
        numbers = np.arange(n) // size
        inputs.append(
            LocalInput(
                cells=np.clip(25 * cells, -127, 127).astype(np.int8),
                units=None if is_paired or size == 1 else numbers,
                blocks=numbers if is_paired else None,
            )
        )
    found = find_local(*inputs, seed=int(rng.integers(1000)), permutations=99)
    yield Drawn("Comparison.local_p_value", found.p_value, is_null=not patch)
    p_value = min((part.p_value for part in found.parts), default=1.0)
    yield Drawn("PartOfSet.p_value", p_value, is_null=not patch)
    for part in found.parts:
        if patch and part.side == "more" and part.p_value <= BESIDE_ALPHA:
            yield Drawn("PartOfSet.at_least", part.share, ends=(part.at_least, np.inf), truth=patch)


def turned_sets(rng, n, m):
    """Pictures of which a tenth is upside down: n and m of them, of which m of each set were also turned."""
    inputs, up = [], np.array([1.0, 1.0, 0.0, 0.0])
    for size in (n, m):
        sign = np.where(rng.random((size, 1)) < 0.1, -1, 1)
        flipped = rng.normal(size=(size, 4)) - sign * up
        flipped[m:] = np.nan
        rows = rng.normal(size=(size, 4)) + sign * up
        inputs.append(LocalInput(embeddings=rows.astype(np.float32), flipped=flipped.astype(np.float32)))
    found = find_local(*inputs, seed=int(rng.integers(1000)), permutations=99)
    yield Drawn("Comparison.local_p_value", found.p_value, is_null=True)
    yield Drawn("PartOfSet.p_value", min((part.p_value for part in found.parts), default=1.0), is_null=True)


def _design(name, regime, runs, quick, **options):
    numbers = (*NUMBERS, *["PartOfSet.at_least"] * ("patch" in options))
    return Design(name, regime, numbers, partial(cells_of_sets, **options), runs, quick)


DESIGNS = (
    _design("pictures, 60 and 60", "small", 300, 4, units=60, size=1),
    _design("pictures in 30 groups of 3", "clustered", 200, 2, units=30, size=3),
    _design("pictures of 40 prompts, 2 of each", "paired", 200, 2, units=40, size=2, is_paired=True),
    Design("pictures, 120 and 60, 60 of each turned", "small", NUMBERS, partial(turned_sets, n=120, m=60), 300, 4),
    _design("pictures, a patch in 30 %", "rare", 60, 4, units=100, size=1, patch=0.3),
)
