"""Classes that the extractor's own last layer sees in an embedding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from scipy.sparse import csr_matrix

from finc_eval.core.errors import DataError
from finc_eval.embeddings.recipe import spaces_of
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.head import Classifier, load_classifier
from finc_eval.naming.evidence import CLASSIFIER
from finc_eval.naming.panel import Panel
from finc_eval.naming.properties import Properties

BEST_CLASSES = 5
"""Classes of a sample that count as seen: near classes share the probability of a thing between them."""


def class_properties(panel: Panel) -> Iterator[Properties]:
    """Yield the most probable classes of each sample, where the last layer of its extractor is at hand."""
    sets = list(panel.by_set())
    classifiers = [classifier_of(one.space) for one, _, _ in sets]
    classifier = next((one for one in classifiers if one), None)
    if classifier is None:
        return
    known = np.zeros(panel.members.shape[1], bool)
    chance = torch.zeros(len(known), len(classifier.names))
    for (one, rows, place), own in zip(sets, classifiers, strict=True):
        if own is not None:
            known[place], chance[place] = True, own.probabilities(one.rows_at(rows))
    seen = torch.zeros_like(chance).scatter_(1, chance.topk(BEST_CLASSES).indices, 1)
    has = csr_matrix(seen.numpy().astype(np.int64) * known[:, None])
    yield Properties(CLASSIFIER, classifier.names, has, known, weights=chance.numpy())


@lru_cache(maxsize=4)
def classifier_of(space: str) -> Classifier | None:
    """Return the last layer of the extractor of a space; None where it has none, or its weights are not here."""
    name = space.partition("@")[0]
    if name not in available_cards():
        return None
    card = load_card(name)
    if card.head is None:
        return None
    try:
        return load_classifier(card) if space in spaces_of(card) else None
    except DataError:  # the weights cannot be used: the mode goes without this evidence
        return None
