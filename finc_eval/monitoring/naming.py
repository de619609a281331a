"""Names of the kinds that a monitor follows: the label of most members, or the class that the extractor sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.naming.classes import WIDEST, class_weights, probabilities, sum_up
from finc_eval.partitions.answer import kind_id

MOST = 0.5  # part of the members that a label, or of what they are seen as that a noun must have: the larger half
LABEL = "label"  # column of the labels


def name_kinds(
    reference: Embeddings, rows: NDArray[np.int64], has: NDArray[np.bool_], nodes: Sequence[int]
) -> tuple[str, ...]:
    """Return the name of each node, such as "kind k7, mostly cat", from its members, shape (nodes, rows)."""
    words = _labels(reference, rows, has) or _classes(reference, rows, has) or [""] * len(nodes)
    return tuple(f"kind {kind_id(node)}{word}" for node, word in zip(nodes, words, strict=True))


def _labels(reference: Embeddings, rows: NDArray[np.int64], has: NDArray[np.bool_]) -> list[str]:
    if LABEL not in reference.columns:
        return []
    values = np.array(reference.column(LABEL))[rows]
    found = []
    for members in has:
        label, count = Counter(values[members].tolist()).most_common(1)[0]
        found.append(f", mostly {label}" if label and count > MOST * members.sum() else "")
    return found


def _classes(reference: Embeddings, rows: NDArray[np.int64], has: NDArray[np.bool_]) -> list[str]:
    chance = probabilities(reference, rows)
    if chance is None:
        return []
    weights, tree = class_weights(chance), imagenet_tree()
    inside = has @ weights / has.sum(1, keepdims=True)
    outside = ~has @ weights / np.maximum((~has).sum(1, keepdims=True), 1)
    part, divergence = sum_up(inside.astype(np.float64), outside.astype(np.float64), tree)
    divergence[(part < MOST) | (tree.parts > WIDEST)] = -1
    best = divergence.argmax(1)
    return [
        f", looks like {tree.names[name]}" if divergence[place, name] >= 0 else "" for place, name in enumerate(best)
    ]
