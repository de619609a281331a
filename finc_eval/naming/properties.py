"""Properties that a sample has or lacks: values of metadata, words of prompts, classes by the extractor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.core.errors import DataError
from finc_eval.core.words import join_words
from finc_eval.embeddings.recipe import spaces_of
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.head import Classifier, load_classifier
from finc_eval.naming.evidence import CLASSIFIER
from finc_eval.naming.panel import Described, Panel, panel_of
from finc_eval.naming.ranges import ranges_of

MAX_VALUES = 1000
"""Distinct values of a column above which its values are not properties."""

TEXT_COLUMNS = ("prompt", "caption", "text")
"""Columns that are read word by word."""

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True)
class Properties:
    """Properties of the samples of a panel.

    Attributes:
        values: the properties, w of them.
        has: which sample has which, shape (samples, w), entries 0 and 1.
        known: samples about which the source says something, shape (samples,).
        are_ranges: whether the properties are ranges of numbers or dates, which lie in each other.
        weights: probability of each property in each sample, shape (samples, w); None if samples have it or not.
    """

    source: str
    values: tuple[str, ...]
    has: csr_matrix
    known: NDArray[np.bool_]
    weights: NDArray[np.float32] | None = None
    are_ranges: bool = False


def properties_of(source: str, per_sample: Sequence[Sequence[str]], known: NDArray[np.bool_]) -> Properties:
    """Gather the properties of each sample; `known` marks the samples of sets that have the source."""
    values = sorted({value for mine in per_sample for value in mine})
    number = {value: index for index, value in enumerate(values)}
    owned = [sorted({number[value] for value in mine}) for mine in per_sample]
    ends = np.cumsum([0, *map(len, owned)])
    columns = np.array([index for mine in owned for index in mine], np.int64)
    has = csr_matrix((np.ones(len(columns), np.int64), columns, ends), shape=(len(owned), len(values)))
    return Properties(source, tuple(values), has, known)


def metadata_properties(panel: Panel) -> Iterator[Properties]:
    """Yield the values of each column of the metadata, the labels first, and then the words of texts.

    Numbers and dates are ranges. Columns that hardly repeat a value, or that only distinguish the sets, are left out.
    Columns that name groups never become significant, since a group counts once. A sample without a value has the
    property that it is missing: what few samples have does not name those of which nothing is known.
    """
    for name, per_set in columns_of(panel):
        values = [value for mine in per_set for value in mine]
        has = [np.full(len(rows), name in one.columns) for one, rows, _ in panel.by_set()]
        known = np.concatenate(has)
        if name in TEXT_COLUMNS:
            yield properties_of(name, [WORD.findall(value.lower()) for value in values], known)
        elif ranges := None if name == "label" else ranges_of(values):
            yield replace(properties_of(name, ranges, known), are_ranges=True)
        elif why_unused(per_set) is None:
            missing = missing_value(name)
            yield properties_of(
                name, [[value or missing] if here else [] for value, here in zip(values, known, strict=True)], known
            )


def missing_value(column: str) -> str:
    """Return the word for samples without a value in a column."""
    return "unlabeled" if column == "label" else "missing"


def columns_of(panel: Panel) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name of each column of the metadata, the labels first and texts last, and its values in each set."""
    columns = dict.fromkeys(name for one in panel.sets.values() for name in one.columns)
    for name in sorted(columns, key=lambda name: (name in TEXT_COLUMNS, name != "label")):
        yield (
            name,
            [
                _values(one.column(name), rows) if name in one.columns else [""] * len(rows)
                for one, rows, _ in panel.by_set()
            ],
        )


def unused_columns(sets: Mapping[str, Described]) -> list[str]:
    """Return a sentence on the columns that can name no kind, with the reason of each; none if all can."""
    reasons = {
        name: why
        for name, per_set in columns_of(panel_of((), sets))
        if name not in TEXT_COLUMNS
        and not any(name == getattr(one, "grouping", None) for one in sets.values())
        and (name == "label" or not ranges_of([value for mine in per_set for value in mine]))
        and (why := why_unused(per_set)) is not None
    }
    named = [f"{name} ({why})" for name, why in reasons.items()]
    return [f"columns of metadata that name no kind: {join_words(named)}"] if named else []


def _values(column: list[str], rows: NDArray[np.int64]) -> list[str]:
    return [column[index] for index in rows.tolist()]


def why_unused(per_set: Sequence[Sequence[str]]) -> str | None:
    """Return why values name no kinds, which repeat as ids do not, and differ within a set; None if they may."""
    distinct = [set(mine) - {""} for mine in per_set]
    values = len(set().union(*distinct))
    given = sum(value != "" for mine in per_set for value in mine)
    if max(map(len, distinct), default=0) <= 1:
        return "no set has two different values" if values else "no value"
    if values > MAX_VALUES:
        return f"more than {MAX_VALUES:,} different values"
    return f"{values:,} different values of {given:,} samples" if values > given / 2 else None


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
    """Return the last layer of the extractor of a space; None if it has none, or its weights are not here."""
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
