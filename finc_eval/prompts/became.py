"""`name_change`: the word or the class that the images of a word look like in one set and not in the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.words import quote
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.evidence import CLASSIFIER, MOST
from finc_eval.naming.names import name_by_members
from finc_eval.naming.questions import enrichment_p
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.blocks import Pairing
from finc_eval.prompts.images import PromptImages
from finc_eval.prompts.words import Phrases

NEAREST_SEEN = 64
"""Prompts of a word that are looked at. Their distances to 100 000 prompts on 64 axes take 0.2 s and 51 MB."""


def name_change(rows: NDArray[np.int64], phrases: Phrases, images: Mapping[str, PromptImages], pairing: Pairing) -> str:
    """Say what the first set's images of some prompts look like; "" if no word or class describes most of them.

    A word, in quotes, is of the prompts whose mean images in the second set are nearest to the mean images of these
    prompts in the first; more of them have it than of the prompts themselves (Fisher's exact test, times the number of
    words). A class is what the extractor's own last layer sees in most of the first set's images, and in fewer images
    of the same prompts in the second set.
    """
    first, second = images.values()
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), NEAREST_SEEN)).round().astype(np.int64)]
    nearest = torch.cdist(torch.from_numpy(first.mean[rows]), torch.from_numpy(second.mean)).argmin(1).numpy()
    near, there = (np.asarray(phrases.has[at].sum(0), np.int64).ravel() for at in (nearest, rows))
    size = np.full(len(near), len(rows))
    clear = np.flatnonzero((enrichment_p(near, size, there, size) * len(near) <= ALPHA) & (near >= MOST * size))
    if len(clear):
        return quote(phrases.texts[clear[(near - there)[clear].argmax()]])
    parts = {label: Subset(pairing.sets[label], each.rows(*rows)) for label, each in images.items()}
    label = next(iter(parts))
    (name,) = name_by_members([{label: np.arange(parts[label].n)}], parts)
    return next((reason.value for reason in name.evidence if reason.in_name and reason.source == CLASSIFIER), "")
