"""Copies of the reference among the samples of a release: equal samples, and nearly equal samples."""

from __future__ import annotations

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.naming.repeated import CLOSE


def share_of_copies(gen: Embeddings, ref: Embeddings, run: Run) -> float:
    """Return the share of a set that equals a sample of the reference, or nearly does.

    Pixels are compared where they are known, and else embeddings. Nearly equal is what is nearer to a sample of the
    reference than `CLOSE` times the median distance of samples of the reference to their nearest other sample.
    """
    hashes = sample_hashes({"gen": gen, "ref": ref}, run)
    equal = np.isin(hashes["gen"], hashes["ref"])
    distances = nearest(gen, ref, 1, device=run.device, index="auto").distances[:, 0]
    among = nearest(ref, ref, 1, exclude_self=True, device=run.device, index="auto").distances[:, 0]
    unlike = among[among > 0]
    near = distances < CLOSE * np.median(unlike) if len(unlike) else np.zeros(len(distances), bool)
    return float((equal | near).mean())
