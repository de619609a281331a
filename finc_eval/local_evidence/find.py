"""`find_local`: the test of local evidence, and the parts that it finds."""

from __future__ import annotations

from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.result import LocalEvidence

PERMUTATIONS = 499
"""Random permutations behind a p-value: a p-value of .05 has a standard error of .01."""


LEAST_UNITS = 20
"""Independent samples of each set below which nothing is tested: a classifier of fewer learns hardly any part."""


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
        UsageError: only one of the sets has blocks, or their cells have different shapes.
    """
    raise NotImplementedError
