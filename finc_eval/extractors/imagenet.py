"""The thousand classes of ImageNet, and the nouns above them that people say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.files.csv_text import csv_body

FILE = "imagenet_hypernyms.tsv"  # its license is beside it, in LICENSE-wordnet.txt

EVERYDAY = "everyday_nouns.tsv"
"""File of the nouns that people say when they see a picture, each with the synsets of WordNet that it names.

Most are basic objects (Rosch et al. 1976, "Basic objects in natural categories"), such as "dog" and "car". The others
hold several of these, such as "animal" and "vehicle". The choice is our own, under the license of the project. Left out
are words of zoology and trade, words without a look, such as "carnivore", "commodity" and "substance", and nouns whose
pictures people call otherwise: the lamps of WordNet are a candle, a pumpkin and a spotlight.
"""


@dataclass(frozen=True, eq=False)
class ClassTree:
    """Classes, and the everyday nouns that each of them is a kind of, such as "dog" of its 118 breeds.

    Attributes:
        names: name of each class, and then of each everyday noun, which is above two classes or more.
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
    """Return the classes of ImageNet (ILSVRC 2012) by their first name, with the everyday nouns above them."""
    rows = _table(FILE)
    words = {synset: word for synset, word, *_ in rows}
    above = {synset: hypernyms.split(",") if hypernyms else [] for synset, _, hypernyms, _ in rows}
    leaves = [synset for _, synset in sorted((int(number), synset) for synset, *_, number in rows if number)]
    nouns = {noun: {*synsets.split(",")} for noun, synsets in _table(EVERYDAY)}
    around = [_around(leaf, above) for leaf in leaves]
    below = np.array([[bool(every & synsets) for synsets in nouns.values()] for every in around])
    return ClassTree((*(words[leaf] for leaf in leaves), *nouns), np.hstack([np.eye(len(leaves), dtype=bool), below]))


def _table(file: str) -> list[list[str]]:
    """Return the rows of a table, without its heading."""
    text = (files("finc_eval.extractors") / file).read_text(encoding="utf-8")
    return [*csv_body(text, file)[1]]


def _around(synset: str, above: dict[str, list[str]]) -> set[str]:
    """Return a synset and all synsets above it."""
    return {synset}.union(*(_around(parent, above) for parent in above[synset]))
