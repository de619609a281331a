"""The thousand classes of ImageNet, and the tree of WordNet's nouns above them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

FILE = "imagenet_hypernyms.tsv"  # its license is beside it, in LICENSE-wordnet.txt


@dataclass(frozen=True, eq=False)
class ClassTree:
    """Classes, and the nouns that each of them is a kind of, such as "dog" of its 118 breeds.

    Attributes:
        names: name of each class, and then of each noun above two classes or more.
        below: the classes that are of each class or noun, shape (classes, names).
    """

    names: tuple[str, ...]
    below: NDArray[np.bool_]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes alone, in their order."""
        return self.names[: len(self.below)]

    @property
    def parts(self) -> NDArray[np.float64]:
        """Part of all classes that are of each class or noun, shape (names,)."""
        return np.asarray(self.below.mean(0))


@cache
def imagenet_tree() -> ClassTree:
    """Return the classes of ImageNet (ILSVRC 2012) by their first name, with the nouns above them.

    Of nouns with the same classes, the most specific one stays.
    """
    lines = (files("finc_eval.extractors") / FILE).read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    words = {synset: word for synset, word, *_ in rows}
    above = {synset: hypernyms.split(",") if hypernyms else [] for synset, _, hypernyms, _ in rows}
    leaves = sorted((int(number), synset) for synset, *_, number in rows if number)
    held: dict[str, list[int]] = {}
    for number, leaf in leaves:
        waiting, seen = [*above[leaf]], set[str]()
        while waiting:
            if (synset := waiting.pop()) not in seen:
                seen.add(synset)
                held.setdefault(synset, []).append(number)
                waiting += above[synset]
    # A noun is below another with the same classes if it is further from the root of the tree.
    nouns = sorted(held, key=lambda synset: (-len(held[synset]), _depth(synset, above)))
    kept = {tuple(held[synset]): words[synset] for synset in nouns if len(held[synset]) > 1}
    below = np.zeros((len(leaves), len(leaves) + len(kept)), bool)
    np.fill_diagonal(below, True)
    for column, numbers in enumerate(kept, len(leaves)):
        below[list(numbers), column] = True
    return ClassTree((*(words[leaf] for _, leaf in leaves), *kept.values()), below)


def _depth(synset: str, above: dict[str, list[str]]) -> int:
    """Return the number of nouns on the shortest way to the root."""
    return min((1 + _depth(parent, above) for parent in above[synset]), default=0)
