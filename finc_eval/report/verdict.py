"""The verdict of a comparison: one paragraph in plain words, and a sentence for each mode."""

from __future__ import annotations

import re
from collections.abc import Sequence

from finc_eval.comparison.headline import alone, findings, is_full, missed, overall, untested
from finc_eval.comparison.models import SharedMode
from finc_eval.comparison.modes import FoundBy, Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.naming.evidence import TRAIT
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.modes import Kind

Named = Mode | SharedMode | Kind
"""Whatever has a name with evidence."""

TOLD = 2
"""Modes of each role that the verdict names."""

TOO: dict[Role, str] = {"over": "too many", "under": "too few"}
"""Words for the roles, as the reference is the norm."""

OPEN = "So there is a difference, but its share cannot be told yet"
WHY_OPEN: dict[FoundBy, str] = {
    "directions": "p tests the excess, to which every sample adds by its score, and the interval counts members alone. "
    + OPEN,
    "clusters": "p tests the samples of a cluster, and the interval counts members, whom their neighbors tell. " + OPEN,
}
WHY_OPEN["both"] = WHY_OPEN["directions"]
"""Why a significant mode may have an interval that holds 0, by what found the mode."""

PARTLY = "partly "
"""Beginning of the name of a mode of which no value describes most members."""

LOOKS_LIKE = "looks like "
"""Beginning of a name that the extractor's classes gave, which need not be those of the samples."""

SHARES_IN_NAME = re.compile(r" \([\d %,]+\)")
"""The shares of members in a name, such as " (50 %, 41 %)"."""


def verdict(comparison: Comparison, titles: tuple[str, str]) -> str:
    """Return what was found in one or two sentences that name the largest differences.

    Args:
        comparison: the comparison.
        titles: titles of the generated and the reference set.
    """
    gen, ref = titles
    groups = findings(comparison.modes)
    if not groups:
        nothing = f"No kind of sample was found that {gen} has significantly more or less often than {ref}."
        return untested(comparison) or nothing
    parts = [f"{words} {_listed(modes[:TOLD], ref)}" for role, words in TOO.items() if (modes := alone(groups, role))]
    sentences = [f"{gen} has {', and '.join(parts)}."] if parts else []
    alike = [group for group in groups if len(group) > 1]
    if alike:
        same = listed([_unlike(group) for group in alike[:TOLD]])
        also = "also has" if parts else "has"
        sentences.append(f"{gen} {also} {same} that look different from those of {ref}.")
    return " ".join(sentences)


def lead(comparison: Comparison) -> str:
    """Return how different the sets are, in how many kinds, and what may have been missed."""
    groups = findings(comparison.modes)
    told = [
        f"{'at least ' * is_full(comparison, role)}{len(modes):,} {words}"
        for role, words in TOO.items()
        if (modes := alone(groups, role))
    ]
    if alike := sum(len(group) > 1 for group in groups):
        told.append(f"{alike:,} that look{'s' * (alike == 1)} different")
    sentences = [*overall(comparison)]
    if told:
        least = "At least " * any(is_full(comparison, role) for role in TOO)
        sentences.append(f"{least}{counted(len(groups), 'kind')} differ{'s' * (len(groups) == 1)}: {listed(told)}.")
    return " ".join([*sentences, *missed(comparison.detectable)])


def short(mode: Named, others: Sequence[Named] = ()) -> str:
    """Return the name of a mode without shares and, where it says more, without traits; the id without a name.

    Args:
        mode: the mode.
        others: modes beside it; where one of them has the same short name, the traits tell them apart.
    """
    name = few = SHARES_IN_NAME.sub("", mode.title).removeprefix("mostly ").removeprefix(LOOKS_LIKE)
    for one in () if _only_traits(mode) else mode.evidence:
        if one.source == TRAIT:
            few = few.replace(f", {one.value}", "")
    return name if any(one.id != mode.id and short(one) == few for one in others) else few


def kind(mode: Named, others: Sequence[Named] = ()) -> str:
    """Return the kind of sample that a mode is, in as few words as its name and the modes beside it allow."""
    if mode.name is None:
        return f"samples without a name, {mode.id}"
    if _only_traits(mode):
        return f"samples that are “{mode.name}”"
    name = short(mode, others)
    if mode.name.startswith(LOOKS_LIKE):
        return f"samples that look like “{name}”"
    return f"samples that are partly “{name.removeprefix(PARTLY)}”" if name.startswith(PARTLY) else f"“{name}”"


def _only_traits(mode: Named) -> bool:
    """Return whether a name has traits alone: they stand behind whatever else it has."""
    return any(one.source == TRAIT and (mode.name or "").startswith(one.value) for one in mode.evidence)


def such_as(modes: Sequence[SharedMode | Kind], label: str) -> str:
    """Return the clearest modes that have a name, with their shares of a set, as the end of a sentence on them all."""
    named = [f"{kind(one, modes)} ({percent(one.shares[label].share)} of {label})" for one in modes if one.name][:TOLD]
    return f", such as {listed(named)}" if named else ""


def is_share_open(mode: Mode) -> bool:
    """Return whether a mode is significant though the interval of its shares' difference holds 0."""
    low, high = mode.share_difference_interval
    return mode.p_value <= ALPHA and low <= 0 <= high


def sentence(mode: Mode, titles: tuple[str, str]) -> str:
    """Return both shares of a mode and the interval of their difference, and why it may hold 0."""
    low, high = mode.share_difference_interval
    more = "more" if mode.share_difference > 0 else "fewer"
    return (
        f"{percent(mode.share_gen, 1)} of the samples of {titles[0]} are of this kind, and "
        f"{percent(mode.share_ref, 1)} of those of {titles[1]}: {abs(100 * mode.share_difference):.1f} points {more} "
        f"(interval {points(low)} to {points(high)})."
        + f" The interval holds 0, though the mode is significant: {WHY_OPEN[mode.found_by]}."
        * is_share_open(mode)
    )


def _unlike(group: Sequence[Mode]) -> str:
    """Return the kind of samples that look different, and how those of the generated set look."""
    own = next((mode for mode in group if mode.role == "over"), group[0])
    traits = [one.value for one in own.evidence if one.source == TRAIT and f", {one.value}" in (own.name or "")]
    return kind(own) + (f" ({listed(traits)})" if traits and own.role == "over" else "")


def _listed(modes: Sequence[Mode], ref: str) -> str:
    texts = [_with_shares(mode, modes, ref if place == 0 else None) for place, mode in enumerate(modes)]
    return listed(texts)


def _with_shares(mode: Mode, others: Sequence[Mode], ref: str | None) -> str:
    decimals = int(percent(mode.share_gen) == percent(mode.share_ref))
    shares = percent(mode.share_gen, decimals), percent(mode.share_ref, decimals)
    told = f"{shares[0]} of its samples, {shares[1]} of {ref}" if ref else f"{shares[0]}, {shares[1]}"
    return f"{kind(mode, others)} ({told})"
