"""`find_local`: the test of local evidence, and the parts that it finds."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError
from finc_eval.local_evidence.cell_scores import CellScores, score_cells
from finc_eval.local_evidence.inputs import Indices, LocalInput
from finc_eval.local_evidence.parts import flag
from finc_eval.local_evidence.permutations import Permutations, permute
from finc_eval.local_evidence.result import LocalEvidence, LocalPart
from finc_eval.local_evidence.statistics import Statistic, adjusted_p, cell_statistics

PERMUTATIONS = 499
"""Random permutations behind a p-value: a p-value of .05 has a standard error of .01."""

LEAST_UNITS = 20
"""Independent samples of each set below which nothing is tested: a classifier of fewer learns hardly any part."""

SAID = 0.05  # p-value, adjusted for all statistics, up to which a part is said

SHOWN = 12  # samples of a part with a heat map: as many as a page shows


def find_local(
    gen: LocalInput, ref: LocalInput, *, seed: int = 0, permutations: int = PERMUTATIONS
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
    arrays = {name: array[permuted.rows] for name, array in arrays.items()}
    statistics: list[Statistic] = []
    scores = score_cells(arrays["cells"], permuted) if "cells" in arrays else None
    if scores is not None:
        statistics += cell_statistics([scores.mean, scores.high, scores.low], permuted)
    p_value = adjusted_p(statistics, statistics)
    parts: list[LocalPart] = []
    if scores is not None:
        parts += _patches(scores, statistics, permuted, gen.n)
    parts.sort(key=lambda part: part.p_value)
    return LocalEvidence(p_value, tuple(parts), tuple(arrays), permutations, gen.n, ref.n)


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
    if "cells" in shared and (
        shared["cells"].ndim != 3 or isqrt(shared["cells"].shape[1]) ** 2 != shared["cells"].shape[1]
    ):
        raise UsageError(
            f"cells must have shape (n, w, c) with w windows of a square grid, got {shared['cells'].shape}"
        )
    return shared


def _patches(
    scores: CellScores, statistics: Sequence[Statistic], permuted: Permutations, n_gen: int
) -> list[LocalPart]:
    """Return the parts of both sets that cells show; a change of all instead if the mean of windows shows most."""
    own = [statistic for statistic in statistics if statistic.kind == "patches"]
    leading = max(own, key=lambda statistic: statistic.values[0])
    parts = []
    for claim in ("average",) if leading.claim == "average" else ("more", "less"):
        p_value = adjusted_p([statistic for statistic in own if statistic.claim == claim], statistics)
        if p_value > SAID:
            continue
        score = {"average": scores.mean, "more": scores.high, "less": -scores.low}[claim][0].astype(np.float64)
        is_more = claim != "less"
        flagged = flag(score, permuted, is_more=is_more)
        is_all = claim == "average"
        if not is_all and flagged.at_least == 0:
            continue
        heats = [scores.windows.heat(place) * (1 if is_more else -1) for place in flagged.places[:SHOWN]]
        parts.append(
            LocalPart(
                kind="patches",
                name="on average" if is_all else None,
                side="more" if is_more else "less",
                p_value=p_value,
                share_gen=None if is_all else flagged.shares[0],
                share_ref=None if is_all else flagged.shares[1],
                at_least=None if is_all else flagged.at_least,
                samples=_rows(flagged.places, permuted, n_gen, of_gen=is_more),
                others=_rows(flagged.others, permuted, n_gen, of_gen=not is_more),
                heat=tuple(tuple(tuple(np.round(row, 3).tolist()) for row in heat) for heat in heats),
            )
        )
    return parts


def _rows(places: Indices, permuted: Permutations, n_gen: int, *, of_gen: bool) -> tuple[int, ...]:
    """Return the row numbers, in their set, of samples at some places of `permuted`."""
    return tuple((permuted.rows[places] - (0 if of_gen else n_gen)).tolist())
