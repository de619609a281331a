"""Findings of a comparison in plain sentences: how different the sets are, in which kinds, and what may be missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from finc_eval.comparison.direction import Direction, Interval, significant
from finc_eval.comparison.sets_test import Separability
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.words import join_words, percent, plural, points
from finc_eval.embeddings.repeats import REPEATS_ITSELF
from finc_eval.naming.evidence import UniqueNames
from finc_eval.naming.looks import LOOKS_ALPHA, Look
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import LARGEST
from finc_eval.partitions.kind import Kind
from finc_eval.prompts.table import PromptDifferences

CHANCE = 0.5  # share of samples of two equal sets that a classifier assigns to their set


class _Compared(Protocol):
    """Part of a `Comparison` that the headline reads."""

    @property
    def kinds(self) -> tuple[Kind, ...]: ...
    @property
    def headings(self) -> tuple[Kind, ...]: ...
    @property
    def directions(self) -> tuple[Direction, ...]: ...
    @property
    def settings(self) -> StoredSettings: ...
    @property
    def difference(self) -> float | None: ...
    @property
    def difference_interval(self) -> Interval | None: ...
    @property
    def difference_p_value(self) -> float | None: ...
    @property
    def detectable(self) -> float | None: ...
    @property
    def explained(self) -> float | None: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def prompts(self) -> PromptDifferences | None: ...
    @property
    def looks(self) -> tuple[Look, ...]: ...
    @property
    def sets_p_value(self) -> float | None: ...
    @property
    def separability(self) -> Separability | None: ...
    @property
    def tested(self) -> int: ...
    @property
    def kinds_tested(self) -> int: ...


def headline(found: _Compared) -> str:
    """Return what was found, in a few sentences."""
    names = UniqueNames((*found.headings, *found.kinds))
    sentences = [*on_looks(found), *on_prompts(found), *drift_alone(found), *overall(found), *_counts(found)]
    if (rho := found.settings.rho) != 1:
        sentences.append(f"A kind counts if one set has more than {rho:g} times the share of the other.")
    largest = []
    for kind in unexplained(found, top_level(found.kinds, found.headings))[:LARGEST]:
        low, high = kind.share_difference_interval
        shares = f"{percent(kind.share_gen, 1)} of generated, {percent(kind.share_ref, 1)} of reference"
        parts = f" ({plural(len(kind.children), 'kind')})" if kind.children else ""
        largest.append(f"{names.title(kind)}{parts}: {shares}, difference {points(low)} to {points(high)} points")
    if largest:
        sentences.append(f"The largest difference{'s' * (len(largest) > 1)}: {'; '.join(largest)}.")
    return " ".join([*sentences, *qualify(found)])


def on_looks(found: _Compared) -> list[str]:
    """Return what every eye sees first: the looks in which the sets differ, in sentences, the clearest first."""
    return [look.sentence for look in found.looks[:LARGEST]]


def unexplained(found: _Compared, kinds: Sequence[Kind]) -> list[Kind]:
    """Return the kinds, and headings, that no look explains; none where a look is of the whole generated set."""
    if any(look.whole for look in found.looks):
        return []
    looks = {one for look in found.looks for one in look.kinds}
    return [kind for kind in kinds if kind.id not in looks and not (kind.children and set(kind.children) <= looks)]


def on_prompts(found: _Compared, titles: tuple[str, str] = ("gen", "ref")) -> list[str]:
    """Return in which words of prompts the images of paired sets differ, in sentences with the titles of both sets."""
    return (
        [] if found.prompts is None else list(found.prompts.sentences(dict(zip(("gen", "ref"), titles, strict=True))))
    )


def short(found: _Compared) -> str:
    """Return how different the sets are, and in how many kinds, in a few words."""
    more, less = more_and_less(significant(found.kinds, ALPHA))
    numbers = [f"more of {plural(len(more), 'kind')}", f"less of {plural(len(less), 'kind')}"]
    return ", ".join([*([f"{_estimate(found)} different"] if found.difference is not None else []), *numbers])


def top_level(kinds: Sequence[Kind], headings: Sequence[Kind]) -> list[Kind]:
    """Return headings, and the significant kinds under none, by the difference of shares, the largest first."""
    inside = {one for heading in headings for one in heading.children}
    alone = [kind for kind in significant(kinds, ALPHA) if kind.id not in inside]
    return sorted([*headings, *alone], key=lambda kind: -abs(kind.difference))


def more_and_less(kinds: Sequence[Kind]) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds that the generated set has more of, and the kinds that it has less of."""
    more = [kind for kind in kinds if kind.share_difference > 0]
    return more, [kind for kind in kinds if kind.share_difference <= 0]


def drifts(directions: Sequence[Direction]) -> list[Direction]:
    """Return the directions that differ significantly, which refits find again, and which no kinds show."""
    return [one for one in significant(directions, ALPHA) if one.firm and not one.shown_by_kinds]


def _estimate(found: _Compared) -> str:
    assert found.difference is not None
    assert found.difference_interval is not None
    low, high = found.difference_interval
    return f"{percent(found.difference)} [{100 * low:.0f}, {100 * high:.0f}]"


def qualify(found: _Compared) -> list[str]:
    """Return what the kinds explain, which directions they do not show, and what may be missed, in sentences."""
    sentences = []
    if significant(found.kinds, ALPHA):
        if found.difference and found.explained is not None:
            part, whole = 100 * found.explained, 100 * found.difference
            sentences.append(f"These kinds explain {part:.0f} of the {whole:.0f} points.")
        sentences += _drifts(found)
    return [*sentences, *say_missed(found.detectable)]


def drift_alone(found: _Compared) -> list[str]:
    """Return which directions no kind shows, in a sentence, where no kind differs: this is then the finding."""
    return [] if significant(found.kinds, ALPHA) else _drifts(found)


def _drifts(found: _Compared) -> list[str]:
    if found.explained is None or found.looks or not (alone := drifts(found.directions)):
        return []
    names = UniqueNames(found.directions)
    more = [f"{len(alone) - LARGEST} more"] if len(alone) > LARGEST else []
    names_alone = join_words([*(names.title(one) for one in alone[:LARGEST]), *more])
    what = "A direction differs" if len(alone) == 1 else f"{len(alone)} directions differ"
    return [f"{what} that no kind shows, such as a change of style or quality over many kinds: {names_alone}."]


def overall(found: _Compared) -> list[str]:
    """Return whether a set repeats itself, and how different the sets are as a whole, where that is known."""
    collapsed = [one.partition(", which")[0] + "." for one in found.warnings if REPEATS_ITSELF in one]
    if found.difference is None:
        return collapsed
    change = f"{_estimate(found)} of the samples would have to change kind to make"
    if found.difference_p_value is None:
        first = "A set has too few independent samples to test how different the sets are as a whole"
    elif found.difference_p_value > ALPHA:
        if (unnamed := _say_unnamed(found)) is not None:
            return [*collapsed, *unnamed]
        alike = "As a whole, the sets are not more different than two samples of the same source usually are"
        over_all = f"Over all kinds together, the difference is within chance (p = {found.difference_p_value:.2g})"
        first = over_all if significant(found.kinds, ALPHA) or drift_alone(found) else alike
    elif found.difference_interval is not None and found.difference_interval[0] == 0:
        first = f"As a whole, the sets differ (p = {found.difference_p_value:.2g}), but by an uncertain amount"
    else:
        return [*collapsed, f"About {change} the sets alike."]
    return [*collapsed, f"{first}: an estimated {change} them alike."]


def _say_unnamed(found: _Compared) -> list[str] | None:
    """Return what is known of a difference that no kind shows, in sentences; None if kinds may say it.

    The kinds that a look explains say nothing more than the look.
    """
    if unexplained(found, significant(found.kinds, ALPHA)):
        return None
    if found.sets_p_value is not None and found.sets_p_value <= LOOKS_ALPHA:
        return say_apart(found)
    return [] if found.looks else None


def say_apart(found: _Compared) -> list[str]:
    """Return that the sets differ though no kind does, and how well they can be told apart, in sentences."""
    unnamed = ", but no kind does: everything may have changed a little, or a kind that is too rare to be found"
    how = "" if found.looks else unnamed
    sentences = [f"The sets differ (p = {found.sets_p_value:.2g}){how}."]
    if (apart := found.separability) is not None and apart.interval[0] > CHANCE:
        low, high = (100 * end for end in apart.interval)
        sentences.append(
            f"A simple classifier assigns {percent(apart.value)} [{low:.0f}, {high:.0f}] of held-out samples to their "
            "set; 50 % would be chance."
        )
    return sentences


def say_untested(found: _Compared) -> str | None:
    """Return that nothing was tested, in a sentence; None if something was."""
    if found.tested or found.kinds_tested:
        return None
    return "No kind of samples was tested: a set has too few independent samples."


def say_missed(detectable: float | None) -> list[str]:
    """Return how rare a kind may have been missed, in a sentence; none if that is not known."""
    if detectable is None:
        return []
    if detectable >= 1:
        return ["The independent samples are too few to show a separate kind of one set alone, whatever its share."]
    share = percent(detectable, 1)
    return [f"A separate kind that makes up less than {share} of one set alone may have been missed."]


def _counts(found: _Compared) -> list[str]:
    """Return how many kinds, or without kinds how many directions, differ."""
    if found.difference is None and not found.kinds:
        firm = [one for one in significant(found.directions, ALPHA) if one.firm]
        what = f"{plural(len(firm), 'direction')} {'differs' if len(firm) == 1 else 'differ'} significantly"
        return [say_untested(found) or f"{what}."]
    more, less = more_and_less(significant(found.kinds, ALPHA))
    parts = [f"{words} {plural(len(one), 'kind')}" for words, one in (("more of", more), ("less of", less)) if one]
    if parts:
        return [f"The generated set has {join_words(parts)}."]
    within_chance = found.difference_p_value is not None and found.difference_p_value > ALPHA
    if found.looks or (within_chance and _say_unnamed(found) is not None):
        return []
    return [
        say_untested(found) or "No single kind of samples is significantly more or less frequent in the generated set."
    ]
