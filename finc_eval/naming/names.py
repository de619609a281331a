"""Names of modes, from what their members have and other samples do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.naming.evidence import CLASSIFIER, TRAIT, Evidence, Name
from finc_eval.naming.head import class_properties
from finc_eval.naming.panel import Described, panel_of
from finc_eval.naming.properties import TEXT_COLUMNS, metadata_properties
from finc_eval.naming.questions import Question, questions_of
from finc_eval.naming.traits import trait_questions
from finc_eval.numerics.inference import holm

MOST = 0.5
"""Share of the members that a name must describe."""

SECOND = 0.25
"""Share of the members from which a second value stands in a name."""

BOTH = 0.6
"""Share of the members that two values must describe together, where neither describes most."""

MAX_TRAITS = 2
"""Traits that stand in a name."""


def name_modes(
    members: Sequence[Mapping[str, NDArray[np.int64]]], sets: Mapping[str, Described], alpha: float = 0.05
) -> list[Name]:
    """Name modes by properties that their members have more often than other samples.

    The properties are, in this order: values of metadata columns, the labels first, and words of prompts (Fisher's
    exact test; words are ranked by log-odds, Monroe, Colaresi and Quinn 2008); classes of the extractor's own last
    layer, where its weights are at hand; and visual traits, where pictures are (Mann and Whitney's test). The p-values
    of all modes are adjusted together (Holm 1979). Members are compared with up to 1000 other samples of each set, and
    the samples of a group count once.

    A name needs substance too: a value that most of the members have, or two that most have together.

    Args:
        members: for each mode, indices of its members in each set: {"gen": …, "ref": …}.
        sets: the sets by the same names, with embeddings, metadata and pictures.
        alpha: family-wise error of the evidence.

    Returns:
        One name for each mode.
    """
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
        if p_value <= alpha:
            supported = replace(question, evidence=replace(question.evidence, p_value=p_value))
            found[question.mode].append(supported)
    return [_named(mine) for mine in found]


def _named(found: list[Question]) -> Name:
    """Name one mode from its significant properties, which come in the order of their sources."""
    by_source = [
        sorted(group, key=lambda one: -one.strength) for _, group in groupby(found, lambda one: one.evidence.source)
    ]
    phrases = (_phrase([one.evidence for one in group if one.large]) for group in by_source)
    noun = next(filter(None, phrases), None)
    traits = [one.evidence.value for group in by_source for one in group if one.large and one.evidence.source == TRAIT]
    words = ([noun] if noun else []) + traits[:MAX_TRAITS]
    return Name(", ".join(words) or None, tuple(one.evidence for group in by_source for one in group))


def _phrase(values: list[Evidence]) -> str | None:
    """Say what most members have of one source, from its values, the strongest first; None where they share nothing."""
    most = [one for one in values if one.share_members >= MOST]
    if not values or values[0].source == TRAIT:
        return None
    source = values[0].source
    if source in TEXT_COLUMNS or source == CLASSIFIER:
        quoted = " and ".join(f"“{one.value}”" if source != CLASSIFIER else one.value for one in most[:2])
        shares = ", ".join(_percent(one.share_members) for one in most[:2])
        verb = "seen as" if source == CLASSIFIER else f"{source} with"
        return f"{verb} {quoted} ({shares})" if most else None
    prefix = "" if source == "label" else f"{source} "
    if len(values) > 1 and values[1].share_members >= SECOND and _share(values[:2]) >= BOTH:
        first, second = values[:2]
        shares = f"{_percent(first.share_members)}, {_percent(second.share_members)}"
        return f"{prefix}{first.value} and {second.value} ({shares})"
    return f"mostly {prefix}{most[0].value} ({_percent(most[0].share_members)})" if most else None


def _share(values: list[Evidence]) -> float:
    return sum(one.share_members for one in values)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
