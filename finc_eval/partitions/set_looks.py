"""Looks that one of several sets has and all others together have less of, such as blurred pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.looks import Look, find_traits
from finc_eval.naming.measured import Measured, measure_sets
from finc_eval.numerics.families import bonferroni, level_of_each
from finc_eval.numerics.inference import BESIDE_ALPHA

EXCHANGES = 999  # random exchanges of a set at least, as of the looks of two sets


@dataclass(frozen=True, eq=False)
class OtherSets:
    """The samples looked at of all other sets together, as one set."""

    keys: NDArray[np.uint64]  # of the unit of each sample, (n,)
    ids: tuple[str, ...]

    def unit_keys(self) -> NDArray[np.uint64]:
        """Return the key of the unit of each sample, (n,)."""
        return self.keys

    def ids_at(self, rows: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the ids of samples."""
        return tuple(self.ids[row] for row in rows.tolist())


def looks_of_sets(sets: Mapping[str, Embeddings], seed: int) -> dict[str, tuple[Look, ...]]:
    """Return the looks of each set, by its label, in which it differs from all other sets together.

    A look names the set "gen" and the others "ref". All sets together are one family: each has its part of the level
    (Bonferroni). Of equal sets of 60 photographs, any look was said in 1 of 100 draws of three sets (95 %: 0.2 to
    5.4 %) and in none of 100 draws of five (at most 3.7 %), where the level is 1.25 %. Where sets differ in a trait on
    opposite sides, the larger difference alone is said. Sets whose pictures are not at hand have none. Repeats are not
    looked for.

    Args:
        sets: embeddings, two sets or more, by label.
        seed: random seed of the exchanges.
    """
    traits, measured = measure_sets(sets)
    level = level_of_each(BESIDE_ALPHA, len(sets))
    exchanges = max(EXCHANGES, int(np.ceil(2 / level)))  # the smallest p-value is half of the level at most
    found: dict[str, tuple[Look, ...]] = {}
    for label in measured:
        others = {other: each for other, each in measured.items() if other != label}
        pooled, rest = _pool(others, sets)
        both = {"gen": measured[label], "ref": rest}
        looks = find_traits({"gen": sets[label], "ref": pooled}, traits, both, [], seed, None, exchanges)
        found[label] = tuple(
            replace(look, p_value=float(bonferroni(look.p_value, len(sets))), examples={"gen": look.examples["gen"]})
            for look, _ in looks
            if look.more_in == "gen" and look.p_value <= level
        )
    return _larger_alone(found)


def _pool(measured: Mapping[str, Measured], sets: Mapping[str, Embeddings]) -> tuple[OtherSets, Measured]:
    """Return the samples looked at of some sets as one set, and their measurements."""
    rows = {label: each.rows for label, each in measured.items()}
    # Units of unlike sets may have equal keys, such as equal names of videos.
    keys = [np.unique(sets[label].unit_keys()[each], return_inverse=True)[1].ravel() for label, each in rows.items()]
    starts = np.cumsum([0, *(int(each.max()) + 1 for each in keys)])
    units = np.concatenate([each + start for each, start in zip(keys, starts, strict=False)]).astype(np.uint64)
    ids = tuple(id for label, each in rows.items() for id in sets[label].ids_at(each))
    values = np.concatenate([each.values for each in measured.values()])
    return OtherSets(units, ids), Measured(np.arange(len(ids)), values)


def _larger_alone(looks: Mapping[str, Sequence[Look]]) -> dict[str, tuple[Look, ...]]:
    """Return the looks of each set without those that another set's larger look of the same trait explains."""
    sizes: dict[str, float] = {}
    for of_set in looks.values():
        for look in of_set:
            sizes[look.trait] = max(sizes.get(look.trait, 0.0), _size(look))
    names = {look.trait: look.name for of_set in looks.values() for look in of_set if _size(look) == sizes[look.trait]}
    return {label: tuple(look for look in of_set if look.name == names[look.trait]) for label, of_set in looks.items()}


def _size(look: Look) -> float:
    return abs(look.share_gen - look.share_ref)
