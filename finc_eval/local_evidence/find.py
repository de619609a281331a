"""`find_local`: the test of local evidence, and the parts that it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError
from finc_eval.local_evidence.inputs import LocalInput, grid_of
from finc_eval.local_evidence.looked import look
from finc_eval.local_evidence.permutations import permute
from finc_eval.local_evidence.result import LocalEvidence
from finc_eval.local_evidence.stated import state_parts
from finc_eval.local_evidence.statistics import joint_p

PERMUTATIONS = 499
"""Random permutations behind a p-value: a p-value of .05 has a standard error of .01."""

LEAST_UNITS = 20
"""Independent samples of each set below which nothing is tested: fewer teach a classifier hardly any part."""


def find_local(
    gen: LocalInput,
    ref: LocalInput,
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    others: Sequence[LocalInput] = (),
) -> LocalEvidence | None:
    """Test whether two sets of pictures are samples of one law, by what is local in them, and find the parts.

    A classifier of cells is fitted on some pictures and asked about the others, and fitted anew after each permutation
    of the labels (Lopez-Paz and Oquab 2017). Likeness of pictures to themselves, near pairs and orientation are in the
    same family: one largest statistic under the same permutations, and one p-value (Westfall and Young 1993).

    Args:
        gen: the generated set.
        ref: the reference. What only one of both sets has is not looked at.
        seed: random seed of folds and permutations.
        permutations: number of random permutations.
        others: further sets, such as other accepted pictures. They have no part in the test, and say how many of their
            samples have each part of the generated set (`LocalPart.elsewhere`).

    Returns:
        The p-value and the parts; None if a set has fewer than `LEAST_UNITS` independent samples, or if both sets
        have nothing that can be compared.

    Raises:
        UsageError: only one of the sets has blocks, or their arrays have different shapes.
    """
    arrays = _shared(gen, ref)
    permuted = permute(gen, ref, seed, permutations) if arrays else None
    if permuted is None or min(permuted.units) < LEAST_UNITS:
        return None
    looked = replace(look(arrays, gen, ref, permuted), others=tuple(others))
    if not looked.statistics:
        return None
    p_value = joint_p(looked.statistics)
    return LocalEvidence(p_value, tuple(state_parts(looked)), tuple(arrays), permutations, gen.n, ref.n)


def _shared(gen: LocalInput, ref: LocalInput) -> dict[str, NDArray[Any]]:
    """Return the arrays that both sets have, of both together."""
    if (gen.blocks is None) != (ref.blocks is None):
        raise UsageError("only one of the sets has blocks: pass blocks for both sets, or for neither of them")
    shared = {}
    for name, array in gen.arrays.items():
        if (other := ref.arrays.get(name)) is None:
            continue
        if array.shape[1:] != other.shape[1:]:
            raise UsageError(f"{name} have the shapes {array.shape} and {other.shape}: make both in the same way")
        shared[name] = np.concatenate([array, other])
    cells = shared.get("cells")
    if cells is not None:
        if cells.ndim != 3:
            raise UsageError(f"cells must have shape (n, w, c), the numbers of each window, got {cells.shape}")
        grid_of(cells.shape[1])
    return shared
