"""Names of the kinds that a monitor follows, and of samples that are far from all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import join_words, quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.monitoring.followed import LIKE, NEW_KINDS, REPEATS
from finc_eval.naming.evidence import MOST
from finc_eval.naming.names import SECOND, name_by_members
from finc_eval.naming.repeated import Repeats
from finc_eval.partitions.answer import kind_id

NAMED_BY = 64  # members that a kind is named by, at most: 25 kinds are measured by fewer than 2 000 samples
LABEL = "label"  # column of the labels

Rows = NDArray[np.int64]


def name_kinds(reference: Embeddings, rows: Rows, has: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the words for each kind, from its members, shape (kinds, rows).

    They are the label of most members, or what a comparison says of them: words of prompts, classes, looks. A kind
    without such words has the labels that it is made of, or the id of a sample.
    """
    return words_for(reference, [rows[members] for members in has])


def words_for(one: Embeddings, groups: Sequence[Rows]) -> tuple[str, ...]:
    """Return the words for groups of samples of a set, at least one sample each."""
    few = [rows[:NAMED_BY] for rows in groups]
    names = name_by_members([{"gen": rows} for rows in few], {"gen": one})
    labels = np.array(one.column(LABEL)) if LABEL in one.columns else None
    found = []
    for rows, name in zip(few, names, strict=True):
        common = [] if labels is None else _common(labels[rows].tolist())
        of_most = common[:1] if common and common[0][1] > MOST else []
        words = join_words([f"{label}" for label, _ in of_most]) or name.noun or join_words([one for one, _ in common])
        found.append(words or f"{LIKE}{quote(_typical(one, rows))}")
    return tuple(found)


def words_of_found(
    samples: Embeddings,
    rows: Rows,
    new: NDArray[np.bool_],
    usual: float,
    repeats: Repeats,
    label: str,
    *,
    are_pictures: bool,
) -> dict[str, str]:
    """Return words for samples of new kinds, if there are more than usual, and for what repeats most.

    Args:
        samples: the samples.
        rows: rows of those that were looked at.
        new: which of these are of new kinds.
        usual: share of the reference that is.
        repeats: repeats among them.
        label: label of the set in `repeats`.
        are_pictures: whether they are pictures.
    """
    found = {}
    if new.sum() > max(2, 2 * usual * len(new)):
        found[NEW_KINDS] = words_for(samples, [rows[new]])[0]
    chosen = repeats.added(label)
    if len(chosen):
        found[REPEATS] = repeats.say(chosen, int(repeats.has(chosen)[label].sum()), are_pictures=are_pictures)
    return found


def _typical(one: Embeddings, rows: Rows) -> str:
    """Return the id of the sample that is nearest to the mean of some samples."""
    own = one.rows_at(rows).float()
    nearest = int((own - own.mean(0)).norm(dim=1).argmin())
    return one.ids_at(rows[nearest : nearest + 1])[0]


def _common(labels: Sequence[str]) -> list[tuple[str, float]]:
    """Return the labels that many of some samples have, and their shares, the most common first."""
    counts = Counter(label for label in labels if label).most_common(3)
    return [(label, count / len(labels)) for label, count in counts if count >= SECOND * len(labels)]


def unique_names(words: Sequence[str], nodes: Sequence[int]) -> tuple[str, ...]:
    """Return the name of each followed kind, with its id where others have the same words: "kind cat, k7"."""
    often = Counter(words)
    return tuple(
        f"kind {own}" if often[own] == 1 else f"kind {own}, {kind_id(node)}"
        for own, node in zip(words, nodes, strict=True)
    )
