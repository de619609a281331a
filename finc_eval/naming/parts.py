"""Properties that kinds are parts of: values of columns, words of labels and prompts, classes and nouns above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finc_eval.core.words import quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.naming.classes import SEEN, class_weights, probabilities
from finc_eval.naming.evidence import CLASSIFIER, LOOKS_LIKE, WORD, Name
from finc_eval.naming.properties import TEXT_COLUMNS, Indices, Mask, missing_value, split_words


@dataclass(frozen=True)
class Property:
    """A property that samples have or not.

    Attributes:
        source: origin, as in `Evidence`.
        value: value, word, class or noun.
        is_word: whether it is a word of the values of a column, as "coloured" of "coloured-3".
    """

    source: str
    value: str
    is_word: bool = False

    @property
    def words(self) -> str:
        """The property in words, as names have it."""
        if self.source == CLASSIFIER:
            return f"{LOOKS_LIKE}{self.value}"
        if self.source in TEXT_COLUMNS:
            return f"{self.source} with {quote(self.value)}"
        return self.value if self.source == "label" else f"{self.source} {self.value}"


def said_by(name: Name) -> list[Property]:
    """Return the properties that a name says, without traits and ranges."""
    shared = {(part.source, part.value) for part in name.shared}
    said = [part for part in name.evidence if part.in_name and (part.source, part.value) in shared]
    return [Property(part.source, part.value) for part in said]


def shared_by(name: Name) -> list[Property]:
    """Return the properties that most members have, and the words that all labels of its name have."""
    found = [Property(part.source, part.value) for part in name.shared]
    labels = [WORD.findall(part.value) for part in name.evidence if part.in_name and part.source == "label"]
    words = [word for word in (labels[0] if labels else ()) if all(word in other for other in labels)]
    return found + [Property("label", word, is_word=True) for word in dict.fromkeys(words)]


def have(samples: Embeddings, rows: Indices, properties: Sequence[Property]) -> Mask:
    """Return which samples have which properties, shape (samples, properties)."""
    found = np.zeros((len(rows), len(properties)), bool)
    chance = probabilities(samples, rows) if any(each.source == CLASSIFIER for each in properties) else None
    seen = None if chance is None else class_weights(chance) >= SEEN
    names = imagenet_tree().names if seen is not None else ()
    columns = {each.source for each in properties} & {*samples.columns}
    values = {name: np.array(samples.column(name), object)[rows] for name in columns}
    words = {name: [{*WORD.findall(text)} for text in mine] for name, mine in values.items()}
    for name in columns & {*TEXT_COLUMNS}:
        words[name] = [{*split_words(text)} for text in values[name]]
    for place, each in enumerate(properties):
        if each.source == CLASSIFIER and seen is not None:
            found[:, place] = seen[:, [other == each.value for other in names]].any(1)
        elif each.source in values and (each.is_word or each.source in TEXT_COLUMNS):
            found[:, place] = [each.value in mine for mine in words[each.source]]
        elif each.source in values:
            missing = each.value == missing_value(each.source)
            found[:, place] = (values[each.source] == each.value) | (missing & (values[each.source] == ""))
    return found


def is_known(samples: Embeddings, each: Property) -> bool:
    """Return whether a set says who has a property."""
    return (
        each.source in samples.columns
        if each.source != CLASSIFIER
        else probabilities(samples, np.arange(1)) is not None
    )
