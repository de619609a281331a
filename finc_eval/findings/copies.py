"""Copies of the reference among the samples of a set, as a finding: the same words in all verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.findings.causes import Held
from finc_eval.findings.finding import Finding
from finc_eval.naming.looks import EXAMPLES
from finc_eval.naming.measured import looked_rows
from finc_eval.naming.repeated import COPIES, REPEATED, pixels_of

COPIED = 0.001
"""Level of copies, which a headline adds to all else that it says; `tests/findings/test_rates.py` measures the rate."""

DRAWN_VALUES = 500  # values that random parts are drawn of: if all are copies, chance gives as many in none of 10^100


def hold_copies(sets: Mapping[str, Embeddings], run: Run | None = None) -> list[Held]:
    """Return the samples of "gen" that equal samples of "ref" as a finding; none if they are few, or both are one set.

    Samples are equal by their pixels, where they are known, or else by their embeddings. Draws of a law with few values
    repeat each other, too: the share of the reference is of the samples that equal another sample of it.
    """
    known = {label: pixels for label, one in sets.items() if (pixels := pixels_of(one)) is not None}
    quiet = replace(Run.of(run), progress=silent)
    hashes = known if len(known) == len(sets) else sample_hashes(sets, quiet)
    gen, ref = hashes["gen"], hashes["ref"]
    copied = np.isin(gen, ref)
    if copied.mean() < REPEATED or (copied.all() and np.isin(ref, gen).all()):
        return []
    p_value = p_of_copies(gen, ref)
    if p_value > COPIED:
        return []
    values, times = np.unique(ref, return_counts=True)
    repeated = np.isin(ref, values[times > 1])
    masks: dict[str, NDArray[np.bool_]] = {"gen": copied, "ref": repeated}
    originals = np.flatnonzero(np.isin(ref, gen))[:EXAMPLES]
    examples = {"gen": sets["gen"].ids_at(np.flatnonzero(copied)[:EXAMPLES]), "ref": sets["ref"].ids_at(originals)}
    shares = float(copied.mean()), float(repeated.mean())
    found = Finding(COPIES, "copy", False, *shares, p_value, ids=examples["gen"])
    return [
        Held(
            found, {label: masks[label][looked_rows(one)] for label, one in sets.items()}, COPIES, None, None, examples
        )
    ]


def p_of_copies(gen: NDArray[np.uint64], ref: NDArray[np.uint64]) -> float:
    """Return the p-value of "both sets are draws of one law, which may repeat its values", from equal numbers.

    Under it, the reference is a random part of all samples. The samples of the other part that equal a sample of the
    reference are counted for 7 999 random parts, of the values that come more than once. `gen` and `ref` have a number
    for each sample, shapes (n,) and (m,), equal for equal samples.
    """
    _, number = np.unique(np.concatenate([gen, ref]), return_inverse=True)
    values = int(number.max()) + 1
    own, others = (np.bincount(one, minlength=values) for one in np.split(number.reshape(-1), [len(gen)]))
    several = np.flatnonzero(own + others > 1)[:DRAWN_VALUES]  # in the order of digests: any part of them
    own, others = own[several], others[several]
    rest = len(gen) + len(ref) - int((own + others).sum())
    draws = np.random.default_rng(0).multivariate_hypergeometric([*(own + others), rest], len(ref), 7999, "marginals")
    drawn = draws[:, :-1]
    by_chance = np.where(drawn > 0, own + others - drawn, 0).sum(1)
    return float((1 + np.count_nonzero(by_chance >= own[others > 0].sum())) / (1 + len(drawn)))
