"""Names of modes, from what their members have and other samples do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import CLASSIFIER, MOST, TRAIT, Evidence, Name
from finc_eval.naming.properties import TEXT_COLUMNS, class_properties, metadata_properties, panel_of
from finc_eval.naming.questions import Question, questions_of, trait_questions
from finc_eval.numerics.inference import ALPHA, holm

SECOND = 0.25
"""Share of the members from which a value stands in a name that describes fewer than most, or next to another value."""

BOTH = 0.6  # share of the members that two values must describe together, where neither describes most


def name_modes(members: Sequence[Mapping[str, NDArray[np.int64]]], sets: Mapping[str, Embeddings]) -> list[Name]:
    """Name modes by properties that their members have more often than other samples.

    The properties are, in this order: values of metadata columns, the labels first, with ranges of numbers and dates,
    and words of prompts (Fisher's exact test; words are ranked by log-odds, Monroe, Colaresi and Quinn 2008); classes
    of the extractor's own last layer, where its weights are at hand; visual traits, where pictures are, and traits of
    motion, for embeddings by `motion` (Mann and Whitney's test). The p-values of all modes are adjusted together (Holm
    1979). Members are compared with up to 1000 other samples of each set, by ranges and traits with samples of their
    own set alone. The samples of a group count once. All members are in the denominators of shares, also those without
    a value.

    A name needs substance too: a value that most of the members have, or two that most have together. Where no value of
    a column of metadata describes most, the name says "partly", of one or two that at least a quarter have. `members`
    are drawn at random, since the most typical have more in common than others.
    """
    if not members or not sets:
        return [Name(None) for _ in members]
    panel = panel_of(members, sets)
    questions = [
        question
        for properties in (*metadata_properties(panel), *class_properties(panel))
        for question in questions_of(panel, properties)
    ]
    questions += trait_questions(panel)
    adjusted = holm(torch.tensor([one.evidence.p_value for one in questions], dtype=torch.float64)).tolist()
    found: list[list[Question]] = [[] for _ in members]
    for question, p_value in zip(questions, adjusted, strict=True):
        if p_value <= ALPHA:
            supported = replace(question, evidence=replace(question.evidence, p_value=p_value))
            found[question.mode].append(supported)
    return [_name(mine) for mine in found]


def _name(found: list[Question]) -> Name:
    """Name one mode from its significant properties, which come in the order of their sources."""
    by_source = [
        _best(sorted(group, key=lambda one: (-one.strength, " to " in one.evidence.value)))
        for _, group in groupby(found, lambda one: one.evidence.source)
    ]
    phrases = (_phrase([one.evidence for one in group if one.large]) for group in by_source)
    noun = next(filter(None, phrases), None)
    traits = [one.evidence.value for group in by_source for one in group if one.large and one.evidence.source == TRAIT]
    # 2: traits that stand in a name.
    words = ([noun] if noun else []) + traits[:2]
    return Name(", ".join(words) or None, tuple(one.evidence for group in by_source for one in group))


def _best(group: list[Question]) -> list[Question]:
    """Return the properties of a source; of ranges, which lie in each other, the strongest that most members are in."""
    if not group[0].is_range:
        return group
    return next(([one] for one in group if one.evidence.share_members >= MOST), group[:1])


def _phrase(values: list[Evidence]) -> str | None:
    """Say what members have of one source, from its values, the strongest first; None if they share nothing."""
    source = values[0].source if values else TRAIT
    most = [one for one in values if one.share_members >= MOST]
    if source == TRAIT:
        return None
    if source == CLASSIFIER:
        # The classes after the first are its neighbors, and mostly wrong: a lion is not a cheetah.
        shown, verb = most[:1], "looks like "
    elif source in TEXT_COLUMNS:
        shown, verb = most[:2], f"{source} with "
    else:
        by_share = sorted(values, key=lambda one: -one.share_members)
        some = [one for one in by_share if one.share_members >= SECOND][:2]
        both = len(some) == 2 and sum(one.share_members for one in some) >= BOTH
        shown = some if both or not most else most[:1]
        verb = ("" if both else "mostly " if most else "partly ") + ("" if source == "label" else f"{source} ")
    words = " and ".join(f"“{one.value}”" if source in TEXT_COLUMNS else one.value for one in shown)
    shares = ", ".join(f"{100 * one.share_members:.0f} %" for one in shown)
    return f"{verb}{words} ({shares})" if shown else None
