"""Tables of kinds as text, for the terminal, Markdown and notebooks: headings, their kinds, and all other samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from finc_eval.core.words import points
from finc_eval.naming.unique_names import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, KindShare
from finc_eval.report.cards.groups import below, difference_of, groups_of, not_differing
from finc_eval.report.formats import bare_percent, p_value, points_interval, share_interval

UNDER = "· "
"""Mark of a kind that is under the heading above it."""


def kind_columns(titles: Mapping[str, str]) -> list[str]:
    """Return the headings of a table of kinds; the first two are texts where there are more than two sets."""
    apart = [] if len(titles) == 2 else ["Set apart"]
    difference = "Difference, points" if len(titles) == 2 else "Apart by, points"
    return ["Kind", *apart, *(f"{title}, %" for title in titles.values()), difference, "Adj. p"]


def kind_texts(
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    titles: Mapping[str, str],
    *,
    intervals: bool,
    tag: Callable[[Kind], str] | None = None,
) -> list[list[str]]:
    """Return rows for all kinds that differ, below their sums and headings, and one for all others."""
    known = {kind.id: kind for kind in kinds}
    rows = []
    for group in groups_of(kinds, headings, titles, tag):
        rows += [_sum(group.words, group.kinds, titles)] if group.words else []
        for one in group.first:
            rows.append(_row(with_id(one), one, titles, intervals))
            rows += [_row(UNDER + with_id(kind), kind, titles, intervals) for kind in below(one, known)]
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    return [*rows, _sum(not_differing(len(others)), others, titles)] if rows and others else rows


def _sum(words: str, kinds: Sequence[Kind], titles: Mapping[str, str]) -> list[str]:
    sums = [sum(kind.shares[label].share for kind in kinds) for label in titles]
    difference = points(sums[0] - sums[1]) if len(sums) == 2 else "–"
    return [words, *(["–"] if len(sums) != 2 else []), *map(bare_percent, sums), difference, "–"]


def _row(name: str, kind: Kind, titles: Mapping[str, str], intervals: bool) -> list[str]:
    value, ends = difference_of(kind, [*titles])
    apart = [] if len(titles) == 2 else [kind.side]
    shares = [_share(kind.shares[label], intervals) for label in titles]
    return [name, *apart, *shares, f"{points(value)} {points_interval(ends)}", p_value(kind.p_value)]


def _share(part: KindShare, intervals: bool) -> str:
    return f"{bare_percent(part.share)}{f' {share_interval(part.interval)}' * intervals}"
