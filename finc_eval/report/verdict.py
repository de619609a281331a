"""The verdict of a comparison: one paragraph in plain words, and a sentence for each mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from finc_eval.comparison.headline import alone, findings, is_full, missed, overall, untested
from finc_eval.comparison.models import SharedMode
from finc_eval.comparison.modes import FoundBy, Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.naming.evidence import TRAIT
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.modes import Kind

ModeOfSets = TypeVar("ModeOfSets", SharedMode, Kind)

TOLD = 2
"""Modes of each role, or examples of each group, that a sentence names."""

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


def verdict(comparison: Comparison, titles: tuple[str, str]) -> str:
    """Return what was found in one or two sentences that name the largest differences that read differently.

    Args:
        comparison: the comparison.
        titles: titles of the generated and the reference set.
    """
    gen, ref = titles
    groups, rho = findings(comparison.modes), comparison.settings.rho
    if not groups:
        significantly = (
            f"that {gen} has significantly more or less often than {ref}"
            if rho == 1
            else f"of which one set has significantly more than {rho:g} times the share of the other"
        )
        return untested(comparison) or f"No kind of sample was found {significantly}."
    names = UniqueNames(_shown(group) for group in groups)
    found = [*(alone(groups, role) for role in TOO), [_shown(group) for group in groups if len(group) > 1]]
    *told, alike = [few or all[:1] for few, all in zip(names.examples(found, TOLD), found, strict=True)]
    parts = [f"{words} {_listed(modes, names, ref)}" for words, modes in zip(TOO.values(), told, strict=True) if modes]
    sentences = [f"{gen} has {', and '.join(parts)}."] if parts else []
    if rho != 1:
        times = f"has more than {rho:g} times the share of"
        sentences.append(f"Too many: {gen} {times} {ref}; too few: {ref} {times} {gen}.")
    if alike:
        same = listed([_unlike(mode, names) for mode in alike])
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


def such_as(modes: Sequence[ModeOfSets], groups: Sequence[tuple[str, Sequence[ModeOfSets]]]) -> list[str]:
    """Return the clearest named modes of each group, no two of which read the same, as the end of a sentence on it.

    Args:
        modes: all modes of the result.
        groups: each with the label of the set whose shares are told.
    """
    names = UniqueNames(modes)
    examples = names.examples([[one for one in found if one.name] for _, found in groups], TOLD)
    told = [
        [f"{names.kind(one)} ({percent(one.shares[label].share)} of {label})" for one in few]
        for (label, _), few in zip(groups, examples, strict=True)
    ]
    return [
        ("" if not texts else f": {listed(texts)}" if len(texts) == len(found) else f", such as {listed(texts)}")
        for texts, (_, found) in zip(told, groups, strict=True)
    ]


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


def _shown(group: Sequence[Mode]) -> Mode:
    """Return the mode of a group of one kind that sentences name: that of the generated set."""
    return next((mode for mode in group if mode.role == "over"), group[0])


def _unlike(own: Mode, names: UniqueNames) -> str:
    """Return the kind of samples that look different, and how those of the generated set look."""
    told = names.kind(own)
    traits = [one.value for one in own.evidence if one.source == TRAIT and f", {one.value}" in (own.name or "")]
    unsaid = [value for value in traits if f", {value}" not in told]
    return told + (f" ({listed(unsaid)})" if unsaid and own.role == "over" else "")


def _listed(modes: Sequence[Mode], names: UniqueNames, ref: str) -> str:
    texts = [_with_shares(mode, names, ref if place == 0 else None) for place, mode in enumerate(modes)]
    return listed(texts)


def _with_shares(mode: Mode, names: UniqueNames, ref: str | None) -> str:
    decimals = int(percent(mode.share_gen) == percent(mode.share_ref))
    shares = percent(mode.share_gen, decimals), percent(mode.share_ref, decimals)
    told = f"{shares[0]} of its samples, {shares[1]} of {ref}" if ref else f"{shares[0]}, {shares[1]}"
    return f"{names.kind(mode)} ({told})"
