"""Findings of a comparison in plain sentences: how different the sets are, in which kinds, and what may be missed.

Shares of modes are never added: one sample can be a member of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from finc_eval.comparison.modes import Interval, Mode, Role, significant
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.settings import MAIN_LEVEL

WORDS: dict[Role, str] = {"over": "more of", "under": "less of"}

TOLD = 3
"""Largest findings that are told one by one."""

MOST = ", the most that were asked for"

MADE_UP = 0.5
"""Part of a difference that modes of the other role have, where samples of one kind only look different."""


class _Compared(Protocol):
    """Part of a `Comparison` that the headline reads."""

    @property
    def modes(self) -> tuple[Mode, ...]: ...
    @property
    def settings(self) -> StoredSettings: ...
    @property
    def difference(self) -> float | None: ...
    @property
    def difference_kinds(self) -> int | None: ...
    @property
    def difference_interval(self) -> Interval | None: ...
    @property
    def difference_p_value(self) -> float | None: ...
    @property
    def detectable(self) -> float | None: ...
    @property
    def tested(self) -> int: ...
    @property
    def clusters_tested(self) -> int: ...


def headline(found: _Compared) -> str:
    """Return what was found, in a few sentences."""
    groups, names = findings(found.modes), UniqueNames(found.modes)
    single = [in_words(group[0], names) for group in groups[:TOLD] if len(group) == 1]
    alike = [listed([_with_shares(mode, names) for mode in group]) for group in groups[:TOLD] if len(group) > 1]
    sentences = [*overall(found), *_counts(found)]
    if (rho := found.settings.rho) != 1:
        sentences.append(f"A kind counts where one set has more than {rho:g} times the share of the other.")
    if single:
        sentences.append(f"The largest difference{'s' * (len(single) > 1)}: {'; '.join(single)}.")
    if alike:
        sentences.append(f"These look different: {'; '.join(alike)}.")
    return " ".join([*sentences, *missed(found.detectable)])


def short(found: _Compared) -> str:
    """Return how different the sets are, and in how many kinds, in a few words."""
    kinds = [f"{words} {_number(found, role)}" for role, words in WORDS.items()]
    return ", ".join([*([f"{_estimate(found)} different"] if found.difference is not None else []), *kinds])


def findings(modes: Sequence[Mode]) -> list[tuple[Mode, ...]]:
    """Return the modes that count, by the difference of shares, together where they show one kind of sample.

    Significant modes count, unless refits find less than half of them again.
    """
    firm = [mode for mode in significant(modes, ALPHA) if mode.firm]
    rest = sorted(firm, key=lambda mode: -abs(mode.share_difference))
    groups: list[tuple[Mode, ...]] = []
    while rest:
        first = rest.pop(0)
        alike = [mode for mode in rest if first.looks_different == mode.id or mode.looks_different == first.id]
        if _make_up_for(first, alike):
            rest = [mode for mode in rest if mode not in alike]
            groups.append((first, *alike))
        else:
            groups.append((first,))
    return groups


def _make_up_for(first: Mode, others: Sequence[Mode]) -> bool:
    """Tell whether modes of the other role have at least half of a mode's difference: else that set has more of it."""
    opposite = sum(mode.share_difference for mode in others if mode.role != first.role)
    return abs(opposite) >= MADE_UP * abs(first.share_difference)


def alone(groups: Sequence[tuple[Mode, ...]], role: Role) -> list[Mode]:
    """Return the modes of a role that show a kind by themselves, in their order."""
    return [group[0] for group in groups if len(group) == 1 and group[0].role == role]


def is_full(found: _Compared, role: Role) -> bool:
    """Tell whether as many modes of a role were found as were asked for, so that there may be more."""
    mine = [mode for mode in significant(found.modes, ALPHA) if mode.role == role]
    by_clusters = sum(mode.found_by == "clusters" for mode in mine)
    return found.settings.modes in (by_clusters, len(mine) - by_clusters)


def in_words(mode: Mode, names: UniqueNames) -> str:
    """Return a mode with both shares and the interval of their difference."""
    low, high = mode.share_difference_interval
    return f"{_with_shares(mode, names)}, difference {points(low)} to {points(high)} points"


def _with_shares(mode: Mode, names: UniqueNames) -> str:
    return f"{names.title(mode)}: {percent(mode.share_gen, 1)} of generated, {percent(mode.share_ref, 1)} of reference"


def _estimate(found: _Compared) -> str:
    assert found.difference is not None
    assert found.difference_interval is not None
    low, high = found.difference_interval
    return f"{percent(found.difference)} [{100 * low:.0f}, {100 * high:.0f}]"


def overall(found: _Compared) -> list[str]:
    """Return how different the sets are as a whole, in a sentence; none where that is not known."""
    if found.difference is None:
        return []
    change = f"{_estimate(found)} of the samples would have to change kind{_divided(found)} to make"
    if found.difference_p_value is None:
        first = "A set is worth too few independent samples to test how different the sets are as a whole"
    elif found.difference_p_value > ALPHA:
        alike = "As a whole, the sets are not more different than two samples of one source usually are"
        over_all = f"Over all kinds together, the difference is within chance (p = {found.difference_p_value:.2g})"
        first = over_all if findings(found.modes) else alike
    elif found.difference_interval is not None and found.difference_interval[0] == 0:
        first = f"As a whole, the sets differ (p = {found.difference_p_value:.2g}), but it cannot be told by how much"
    else:
        return [f"About {change} the sets alike."]
    return [f"{first}: an estimated {change} them alike."]


def _divided(found: _Compared) -> str:
    """Return the number of kinds that samples are divided into, in parentheses: finer differences do not count."""
    if found.difference_kinds is None:
        return ""
    only = "" if found.difference_kinds >= MAIN_LEVEL else "only "
    return f" (of {only}{found.difference_kinds}{', as independent samples are few' if only else ''})"


def untested(found: _Compared) -> str | None:
    """Return that nothing was tested, in a sentence; None where something was."""
    if found.tested or found.clusters_tested:
        return None
    return "No kind of samples was tested: a set is worth too few independent samples."


def missed(detectable: float | None) -> list[str]:
    """Return how rare a kind may have been missed, in a sentence; none where that is not known."""
    if detectable is None:
        return []
    if detectable >= 1:
        return ["The independent samples are too few to show a separate kind of one set alone, whatever its share."]
    share = percent(detectable, 1)
    return [f"A separate kind that makes up less than {share} of one set alone may have been missed."]


def _counts(found: _Compared) -> list[str]:
    groups = findings(found.modes)
    alike = sum(len(group) > 1 for group in groups)
    if not groups:
        if unsure := len(significant(found.modes, ALPHA)):
            told = f"{counted(unsure, 'mode')} {'is' if unsure == 1 else 'are'} significant"
            return [f"No single kind of samples can be told: {told}, of which refits find less than half again."]
        return [
            untested(found) or "No single kind of samples is significantly more or less frequent in the generated set."
        ]
    roles = [role for role in WORDS if alone(groups, role)]
    sentences = [f"The generated set has {_numbers(found, roles)}."] if roles else []
    if alike:
        sentences.append(f"{counted(alike, 'kind')} {'looks' if alike == 1 else 'look'} different in it.")
    return sentences


def _numbers(found: _Compared, roles: Sequence[Role]) -> str:
    """Return how many kinds of these roles stand alone, and of which of them no more were asked for."""
    parts = [f"{WORDS[role]} {_number(found, role)}" for role in roles]
    groups = findings(found.modes)
    asked = [is_full(found, role) and len(alone(groups, role)) == found.settings.modes for role in roles]
    if asked == [True, False]:
        return f"{parts[0]}{MOST}, and {parts[1]}"
    return listed(parts) + MOST * any(asked)


def _number(found: _Compared, role: Role) -> str:
    """Return how many kinds of a role stand alone; where as many were found as were asked for, there may be more."""
    return f"{'at least ' * is_full(found, role)}{counted(len(alone(findings(found.modes), role)), 'kind')}"
