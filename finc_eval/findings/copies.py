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
from finc_eval.naming.questions import enrichment_p
from finc_eval.naming.repeated import COPIES, REPEATED, pixels_of


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
    values, times = np.unique(ref, return_counts=True)
    repeated = np.isin(ref, values[times > 1])
    p_value = float(enrichment_p(*map(np.array, (copied.sum(), copied.size, repeated.sum(), repeated.size))))
    if p_value > 0.001:  # level of copies, which a headline adds to all else that it says
        return []
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
