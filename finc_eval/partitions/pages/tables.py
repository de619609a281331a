"""Kinds as text, for the terminal, Markdown and notebooks: headings, kinds, all other samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from finc_eval.core.words import plural, points
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, choose_sets
from finc_eval.partitions.pages.groups import below, difference_of, groups_of, not_differing, set_apart
from finc_eval.partitions.values import SharesBy
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import bare_percent, p_value, points_interval, share_interval

TEXT_SAMPLES = 6  # samples of each set and kind that a notebook shows
UNDER = "· "  # mark of a kind that is under the heading above it


def kind_tables(
    title: str,
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    titles: Mapping[str, str],
    tag: Callable[[Kind], str] | None = None,
) -> list[TextTable]:
    """Return a table of all kinds that differ, below their sums and headings, and of all others; none without any.

    Where the sets have unlike mixes of prompts, a table of the parts of differences follows.
    """
    known = {kind.id: kind for kind in kinds}
    rows: list[list[Cell | str]] = []
    for words, inside, first in groups_of(kinds, headings, titles, tag):
        rows += [_sum(words, inside, titles)] if words else []
        for top in first:
            rows.append(kind_row(with_id(top), top, titles))
            rows += [kind_row(UNDER + with_id(kind), kind, titles) for kind in below(top, known)]
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    if not rows:
        return mix_tables(kinds, titles)
    rows += [_sum(not_differing(len(others)), others, titles)] if others else []
    apart = [] if len(titles) == 2 else ["Set apart"]
    table = TextTable(title, ["Kind", *_columns(titles)], rows, words=apart)
    return [table, *mix_tables(kinds, titles)]


def mix_tables(kinds: Sequence[Kind], titles: Mapping[str, str]) -> list[TextTable]:
    """Return how kinds differ because of the models, and of unlike mixes of prompts; none if the mixes are equal."""
    mixes = [(kind, kind.mix) for kind in kinds if kind.mix]
    # 12: kinds whose differences are divided in a table, those with the largest parts.
    largest = sorted(mixes, key=lambda pair: -max(abs(pair[1].plain), abs(pair[1].value)))[:12]
    if not largest:
        return []
    rows: list[list[Cell | str]] = []
    for kind, mix in largest:
        apart = set_apart(kind)
        sign = -1 if len(titles) == 2 and apart != next(iter(titles)) else 1
        value, low, high = (sign * value for value in (mix.value, *mix.interval))
        within, ends = difference_of(kind, [*titles])
        rows.append(
            [
                with_id(kind),
                *([apart] if len(titles) > 2 else []),
                points(sign * mix.plain),
                f"{points(within)} {points_interval(ends)}",
                f"{points(value)} {points_interval((min(low, high), max(low, high)))}",
            ]
        )
    first = ["Kind", *(["Set"] if len(titles) > 2 else [])]
    return [
        TextTable(
            "The model's part and the prompts' part",
            [*first, "Difference, points", "On the same prompts", "By the mix of prompts"],
            rows,
            names=["Kind"],
            legend="The sets have unlike numbers of images of the prompts. A difference is the sum of both parts: what "
            "images of the same prompts differ in, and what the unlike mixes of prompts add.",
        )
    ]


def value_tables(by: SharesBy | None, titles: Mapping[str, str]) -> list[TextTable]:
    """Return the table of the shares of the values of a column; none without them."""
    if by is None:
        return []
    apart = [] if len(titles) == 2 else ["Set apart"]
    return [
        TextTable(
            f"Share of each {by.column} in each set",
            [by.column, *_columns(titles)],
            [kind_row(kind.title, kind, titles) for kind in by.kinds],
            words=apart,
            muted=[kind.p_value > ALPHA for kind in by.kinds],
            legend=f"Each {by.column} is tested by itself; the p-values are adjusted for all of them together.",
        )
    ]


def _columns(titles: Mapping[str, str]) -> list[str]:
    """Return the headings of the columns after the name."""
    apart, difference = ([], "Difference") if len(titles) == 2 else (["Set apart"], "Apart by")
    return [*apart, *(f"{title}, %" for title in titles.values()), f"{difference}, points", "Adj. p"]


def _sum(words: str, kinds: Sequence[Kind], titles: Mapping[str, str]) -> list[Cell | str]:
    sums = [sum(kind.shares[label].share for kind in kinds) for label in titles]
    difference = points(sums[0] - sums[1]) if len(sums) == 2 else "–"
    return [words, *(["–"] if len(sums) != 2 else []), *map(bare_percent, sums), difference, "–"]


def kind_row(name: str, kind: Kind, titles: Mapping[str, str]) -> list[Cell | str]:
    """Return the row of a kind, with the samples that a notebook shows."""
    value, ends = difference_of(kind, [*titles])
    apart = [] if len(titles) == 2 else [kind.side]
    parts = [kind.shares[label] for label in titles]
    shares = [Cell(bare_percent(part.share), share_interval(part.interval)) for part in parts]
    shown = [(label, kind.shares[label].top_ids[:TEXT_SAMPLES]) for label in choose_sets(kind)]
    named = Cell(name, samples=shown)
    return [named, *apart, *shares, f"{points(value)} {points_interval(ends)}", p_value(kind.p_value)]


def kinds_in_words(count: int) -> str:
    """Return "1 kind of samples" or "2 kinds of samples"."""
    return f"{plural(count, 'kind')} of samples"
