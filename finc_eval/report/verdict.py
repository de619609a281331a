"""The verdict of a comparison: one paragraph in plain words, and what qualifies it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from finc_eval.comparison.direction import SETS_OF, Direction, Role, significant
from finc_eval.comparison.headline import (
    drift_alone,
    more_and_less,
    on_looks,
    on_prompts,
    overall,
    qualify,
    say_untested,
    top_level,
    unexplained,
)
from finc_eval.comparison.result import Comparison
from finc_eval.core.words import join_words, percent, plural
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.report.cards.card import of_kinds
from finc_eval.report.cards.modes import TOO

KindOrDirection = TypeVar("KindOrDirection", Kind, Direction)

NAMED = 2  # kinds of each role, or examples of each group, that a sentence names
MORE: dict[Role, str] = {"over": "more", "under": "fewer"}  # words for the roles of directions


def verdict(comparison: Comparison, titles: tuple[str, str]) -> str:
    """Return what was found in one or two sentences that name the largest differences that read differently."""
    gen, ref = titles
    rho = comparison.settings.rho
    text = _of_kinds(comparison, titles) if comparison.kinds else _of_directions(comparison, titles)
    prompts = " ".join([*on_looks(comparison), *on_prompts(comparison, titles)])
    if text is None and prompts:
        return prompts
    if text is None:
        thing = "kind of samples" if comparison.kinds else "direction"
        significantly = (
            f"that {gen} has significantly more or less often than {ref}"
            if rho == 1
            else f"with a share in one set significantly above {rho:g} times the share in the other"
        )
        drift = " ".join(drift_alone(comparison))
        return say_untested(comparison) or drift or f"No {thing} was found {significantly}."
    if rho != 1:
        text += f" That is more than {rho:g} times the share of the other set."
    return f"{prompts} {text}" if prompts else text


def lead(comparison: Comparison) -> str:
    """Return how different the sets are, what the kinds explain of it, and what may have been missed."""
    return " ".join([*overall(comparison), *qualify(comparison)])


def such_as(kinds: Sequence[Kind], groups: Sequence[tuple[str, Sequence[Kind]]]) -> list[str]:
    """Return the clearest named kinds of each group as the end of a sentence; no two read the same."""
    names = UniqueNames(kinds)
    examples = names.examples([[one for one in found if one.name] for _, found in groups], NAMED)
    texts = [
        [f"{names.kind(one)} ({percent(one.shares[label].share)} of {label})" for one in few]
        for (label, _), few in zip(groups, examples, strict=True)
    ]
    return [
        f"{':' if len(texts) == len(found) else ', such as'} {join_words(texts)}" if texts else ""
        for texts, (_, found) in zip(texts, groups, strict=True)
    ]


def _of_kinds(comparison: Comparison, titles: tuple[str, str]) -> str | None:
    """Return the largest kinds that differ, a heading instead of its kinds; None if no kind differs."""
    names = UniqueNames((*comparison.headings, *comparison.kinds))
    found = unexplained(comparison, significant(comparison.kinds, ALPHA))
    headings = unexplained(comparison, comparison.headings)
    parts = []
    for words, kinds, first in zip(
        TOO.values(), more_and_less(found), more_and_less(top_level(found, headings)), strict=True
    ):
        if len(first) > NAMED:
            largest = sorted(kinds, key=lambda kind: -abs(kind.difference))
            ((*texts,),) = _texts([largest], names, None)
            sums = [percent(sum(kind.shares[label].share for kind in kinds)) for label in SETS_OF["over"]]
            rest = [kind for kind in found if kind not in kinds]
            together = f"together {sums[0]} of its samples, {sums[1]} of {titles[1]}"
            parts.append(f"{words} of {of_kinds(kinds, rest)} ({together}), such as {join_words(texts)}")
        elif first:
            ((*texts,),) = _texts([first], names, titles[1])
            parts.append(f"{words} {join_words(texts)}")
    return f"{titles[0]} has {', and '.join(parts)}." if parts else None


def _of_directions(comparison: Comparison, titles: tuple[str, str]) -> str | None:
    """Return how many directions differ and the largest of them; None if none does."""
    names = UniqueNames(comparison.directions)
    by_role: list[tuple[Role, Sequence[Direction]]] = [("over", comparison.over), ("under", comparison.under)]
    found = [(role, [mode for mode in significant(modes, ALPHA) if mode.firm]) for role, modes in by_role]
    found_texts = _texts([modes for _, modes in found], names, titles[1])
    parts = [
        f"{MORE[role]} samples along {plural(len(modes), 'direction')}"
        f"{': ' if len(texts) == len(modes) else ', such as '}{join_words(texts)}"
        for (role, modes), texts in zip(found, found_texts, strict=True)
        if modes
    ]
    return f"{titles[0]} has {', and '.join(parts)}." if parts else None


def _texts(groups: Sequence[Sequence[KindOrDirection]], names: UniqueNames, ref: str | None) -> list[list[str]]:
    examples = [few or group[:1] for few, group in zip(names.examples(groups, NAMED), groups, strict=True)]
    texts: list[list[str]] = []
    for few in examples:
        texts.append([])
        for place, one in enumerate(few):
            decimals = int(percent(one.share_gen) == percent(one.share_ref))
            gen, other = percent(one.share_gen, decimals), percent(one.share_ref, decimals)
            words = f"{gen} of its samples, {other} of {ref}" if ref and place == 0 else f"{gen}, {other}"
            texts[-1].append(f"{names.kind(one)} ({words})")
    return texts
