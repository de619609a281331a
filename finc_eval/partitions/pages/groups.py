"""Kinds in groups: those that one set has more of, those under a heading, and the words for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from finc_eval.core.words import plural, quote
from finc_eval.naming.evidence import in_common
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, top_level


def groups_of(
    kinds: Sequence[Kind], headings: Sequence[Kind], titles: Mapping[str, str], tag: Callable[[Kind], str] | None = None
) -> Iterator[tuple[str, Sequence[Kind], Sequence[Kind]]]:
    """Yield the kinds that differ: for two sets by their role, the largest first; for more sets as one group.

    Each group has its words, "" for a single kind and for more than two sets; its kinds; and its headings with the
    kinds under none, the largest difference first.
    """
    differing, first = [kind for kind in kinds if kind.p_value <= ALPHA], top_level(kinds, headings)
    if len(titles) != 2:
        yield "", differing, first
        return
    tag = tag or partial(more_in, titles)
    for role in dict.fromkeys(map(tag, first)):
        inside = [kind for kind in differing if tag(kind) == role]
        rest = [kind for kind in differing if tag(kind) != role]
        words = f"{role.capitalize()}: {of_kinds(inside, rest)}" if len(inside) > 1 else ""
        yield words, inside, [kind for kind in first if tag(kind) == role]


def below(heading: Kind, known: Mapping[str, Kind]) -> list[Kind]:
    """Return the kinds of a heading, the largest difference first."""
    return sorted((known[name] for name in heading.children), key=lambda kind: -abs(kind.difference))


def of_kinds(kinds: Sequence[Kind], others: Sequence[Kind]) -> str:
    """Return "10 kinds", and the words that all their names have and no name of the others has."""
    common = in_common(kinds, others)
    return plural(len(kinds), "kind") + (f", all {quote(common)}" if common else "")


def not_differing(count: int) -> str:
    """Return "1 kind that does not differ" or "2 kinds that do not differ"."""
    return f"{plural(count, 'kind')} that {'does' if count == 1 else 'do'} not differ"


def set_apart(kind: Kind) -> str:
    """Return the label of the set that was tested against all others together."""
    return kind.set_with_least or kind.set_with_most


def difference_of(kind: Kind, labels: Sequence[str]) -> tuple[float, tuple[float, float]]:
    """Return the difference of shares with its interval: of two sets first minus second, else of the set apart."""
    return kind.seen_from(labels[0]) if len(labels) == 2 else (kind.difference, kind.interval)


def more_in(titles: Mapping[str, str], kind: Kind) -> str:
    """Return which of two sets has more of a kind: "more in gen"."""
    value, _ = difference_of(kind, [*titles])
    return f"more in {[*titles.values()][0 if value > 0 else 1]}"
