"""Classes that the extractor's last layer sees in samples, and the nouns above them, such as "dog" of its breeds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.core.errors import DataError
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import spaces_of
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.imagenet import ClassTree, imagenet_tree
from finc_eval.naming.evidence import CLASSIFIER
from finc_eval.naming.properties import Indices, Mask, Properties, SampledSets

if TYPE_CHECKING:
    from finc_eval.extractors.network import Classifier

Floats = NDArray[np.float64]

SEEN = 0.2
"""Part of the probability of its best classes from which a sample is seen as of a class or noun.

On one half of 24 classes and 12 mixtures of classes of small photographs, 82 of 108 kinds of 25 to 100 members had a
name, and 76 names were true of most members; 13 of 14 wrong names with a part of 0 and 4 of 80 with .2 on another draw;
on the other half, 89 of 90 were true. With half of the whole probability, 41 of 108 had a name."""

WIDEST = 0.2
"""Part of all classes above which a noun says little: "animal" has .40, and "dog" .12."""

UNSURE = 0.8
"""Part of other samples above whose entropy of classes the median of members means that the layer is unsure of them.

Median entropies of 24 classes of small photographs were at most 4.2, where .75 of all had less. Those of photographs
with blocks of JPEG, strong noise, strong blur or few pixels, and of noise, stripes and flat color, were from 4.8 on,
where .9 had less. Faint grids and gray photographs lie between: most of them are seen as of no class in common."""

STANDS_OUT = 4.6
"""Least distance of the clearest class or noun of a kind from its median in others, in robust standard deviations.
It is that of the upper quartile of the members' log probabilities.

Of 24 classes of small photographs, each alone or with two fifths of any class among its members, in a panel with the
class or without it, it was from 4.8 on. Of kinds of photographs with blurred backgrounds it was at most 4.1, with noise
4.2, and with blur 3.5. On other photographs, 226 of 288 kinds of classes had a name with and without this limit; of 18
kinds of blurred backgrounds, 16 had one, such as "barn spider", and 5 have. Colored fringes (2.9 to 6.0), lines (6.3 to
8.7) and round masks (4.7 to 5.9) may still be named by a class.
"""


def class_properties(panel: SampledSets) -> Iterator[Properties]:
    """Yield the classes of each sample, and the nouns above them, where the last layer of its extractor is at hand.

    Kinds are left out of which the layer is unsure, or of which no class stands out: an artifact is not an animal.
    """
    sets = list(panel.by_set())
    if not any(classifier_of(samples.space) for samples, _, _ in sets):
        return
    tree = imagenet_tree()
    known = np.zeros(panel.members.shape[1], bool)
    weights, entropy = np.zeros((len(known), len(tree.names)), np.float32), np.full(len(known), np.nan)
    levels = np.zeros_like(weights)
    for samples, rows, place in sets:
        if (chance := probabilities(samples, rows)) is not None:
            known[place], weights[place] = True, class_weights(chance)
            entropy[place] = torch.special.entr(chance).sum(1).numpy()
            levels[place] = _log_levels(chance, tree)
    yield Properties(
        CLASSIFIER,
        tree.names,
        csr_matrix(weights >= SEEN, dtype=np.int64),
        known,
        weights=weights,
        tree=tree,
        asked=_are_sure(panel, entropy, known) & _have_a_class(panel, levels, known),
    )


def _are_sure(panel: SampledSets, entropy: Floats, known: Mask) -> Mask:
    """Return for which kinds the layer is as sure of most members as it is of most other samples of every set."""
    found = []
    for members, others in zip(panel.members & known, panel.others & known, strict=True):
        of_sets = [entropy[place][others[place]] for _, _, place in panel.by_set()]
        limits = [np.quantile(entropies, UNSURE) for entropies in of_sets if len(entropies)]
        found.append(bool(members.any() and limits and np.median(entropy[members]) <= min(limits)))
    return np.array(found, bool)


def class_levels(samples: Embeddings, rows: Indices, name: str) -> Floats | None:
    """Return how much the last layer sees a class or noun in samples, shape (n,), on a scale of log odds.

    None without a last layer. Of a name of several nouns, the largest counts.
    """
    chance = probabilities(samples, rows)
    return None if chance is None else np.asarray(_log_levels(chance, imagenet_tree())[:, _places(name)].max(1), float)


def _log_levels(chance: torch.Tensor, tree: ClassTree) -> NDArray[np.float32]:
    """Return log probabilities of classes less their mean, and log odds of nouns, shape (samples, names)."""
    logs = torch.log(chance.clamp_min(1e-12))
    above = torch.from_numpy(tree.below[:, len(tree.classes) :].astype(np.float32))
    odds = torch.logit(chance.float() @ above, 1e-6)
    return np.asarray(torch.cat([logs - logs.mean(1, keepdim=True), odds], 1).numpy(), np.float32)


def _have_a_class(panel: SampledSets, levels: NDArray[np.float32], known: Mask) -> Mask:
    """Return for which kinds a class or noun stands out from other samples; see `STANDS_OUT`.

    `levels` has what `_log_levels` returns of each sample of the panel, shape (samples, names). An artifact adds a
    little of one class to samples of many: it moves them less far than a true class lies.
    """
    inside, outside = panel.members & known, panel.others & known
    totals = outside.astype(np.float32) @ levels / np.maximum(outside.sum(1, keepdims=True), 1)
    found = np.zeros(len(inside), bool)
    for kind in np.flatnonzero(inside.any(1) & outside.any(1)):
        upper = np.quantile(levels[inside[kind]], 0.75, axis=0)
        best = np.argsort(totals[kind] - upper)[:20]  # medians of all names would take twenty times as long
        others = levels[np.ix_(outside[kind], best)]
        middle = np.median(others, axis=0)
        spread = np.maximum(1.4826 * np.median(np.abs(others - middle), axis=0), 1e-6)
        found[kind] = ((upper[best] - middle) / spread).max() >= STANDS_OUT
    return found


def probabilities(samples: Embeddings, rows: Indices) -> torch.Tensor | None:
    """Return the probability of each class in samples; None without a last layer."""
    classifier = classifier_of(samples.space)
    return None if classifier is None else classifier.probabilities(samples.rows_at(rows))


def class_weights(chance: torch.Tensor) -> NDArray[np.float32]:
    """Return how much of the best classes of samples is of each class or noun, shape (samples, names)."""
    # The five best classes count: the rest of the probability is spread over all others where the layer is unsure.
    most, best = chance.topk(5)
    among = torch.zeros_like(chance).scatter_(1, best, most / most.sum(1, keepdim=True))
    return np.asarray(among.numpy() @ imagenet_tree().below.astype(np.float32))


def is_class(name: str) -> bool:
    """Return whether a name is of a class, and not of a noun above classes."""
    return name in imagenet_tree().classes


def says_little(name: str) -> bool:
    """Return whether a noun is above so many classes that a narrower noun or a class says more, if it is true."""
    tree = imagenet_tree()
    return bool(tree.parts[_places(name)].max() > WIDEST)


def overlap(one: str, other: str) -> bool:
    """Return whether two classes or nouns have a class in common."""
    tree = imagenet_tree()
    return bool((tree.below[:, _places(one)].any(1) & tree.below[:, _places(other)].any(1)).any())


def within(one: str, other: str) -> bool:
    """Return whether all classes of a noun, or the class itself, are classes of another noun."""
    tree = imagenet_tree()
    inside = tree.below[:, _places(one)].any(1)
    return one != other and bool((tree.below[:, _places(other)].any(1) >= inside).all())


def _places(name: str) -> list[int]:
    """Return the places of a name: WordNet has two nouns "crane"."""
    return [place for place, other in enumerate(imagenet_tree().names) if other == name]


def sum_up(members: Floats, others: Floats, tree: ClassTree) -> tuple[Floats, Floats]:
    """Return how well classes and nouns sum up what members are seen as more than others, twice (kinds, names).

    Arguments are mean weights of members and others of each kind, shape (kinds, names). What members are seen as more
    is a distribution over classes. The first result is the part s of it that is below each noun. The second is the
    divergence of s from the part of all classes that are below it: the name with the most has nearly all of what
    members are seen as, and little else.
    """
    classes = len(tree.below)
    more = np.maximum(members[:, :classes] - others[:, :classes], 0)
    part = more @ tree.below / np.maximum(more.sum(1, keepdims=True), 1e-12)
    s, n = np.clip(part, 1e-9, 1 - 1e-9), np.minimum(tree.parts, 1 - 1e-9)
    return part, np.where(s > n, s * np.log(s / n) + (1 - s) * np.log((1 - s) / (1 - n)), 0.0)


@lru_cache(maxsize=4)
def classifier_of(space: str) -> Classifier | None:
    """Return the last layer of the extractor of a space; None if it has none, or its weights are not here."""
    name = space.partition("@")[0]
    if name not in available_cards():
        return None
    card = load_card(name)
    if card.head is None:
        return None
    from finc_eval.extractors.network import load_classifier  # the networks, which arrays do not need

    try:
        return load_classifier(card) if space in spaces_of(card) else None
    except DataError:  # the weights cannot be used: the kind goes without this evidence
        return None
