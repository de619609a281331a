"""Kinds and prompts as text, for the terminal, Markdown and notebooks: headings, kinds, all other samples, words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from finc_eval.core.words import points
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, choose_sets
from finc_eval.partitions.values import SharesBy
from finc_eval.prompts.table import PROMPTS_SHOWN, Prompt, PromptDifferences, Word
from finc_eval.prompts.text import Fit
from finc_eval.report.cards.card import below, difference_of, groups_of, not_differing, set_apart
from finc_eval.report.exports.outline import Cell, Table
from finc_eval.report.formats import bare_percent, p_value, points_interval, share_interval

TEXT_SAMPLES = 6  # samples of each set and kind that a notebook shows
UNDER = "· "  # mark of a kind that is under the heading above it

LEGEND = (
    "Difference of content: distance of the mean images of both sets; two images of any prompts are 1 apart. "
    "Difference of diversity: −1 if only the first set repeats one image of a prompt, 1 if only the second does not "
    "vary less. "
    "Spread: distance of two images of one prompt, in the same unit."
)

OF_FIT = (
    "CLIPScore: 2.5 times the cosine of image and prompt in the space of the model, or 0. Difference, of fit: mean "
    "difference of both sets' CLIPScores."
)


def kind_tables(
    title: str,
    kinds: Sequence[Kind],
    headings: Sequence[Kind],
    titles: Mapping[str, str],
    tag: Callable[[Kind], str] | None = None,
    more: Sequence[Sequence[Cell | str]] = (),
) -> list[Table]:
    """Return a table of all kinds that differ, below their sums and headings, and of all others; none without any.

    Where the sets have unlike mixes of prompts, a table of the parts of differences follows. `more` are rows that
    follow the kinds.
    """
    known = {kind.id: kind for kind in kinds}
    rows: list[list[Cell | str]] = []
    for words, inside, first in groups_of(kinds, headings, titles, tag):
        rows += [_sum(words, inside, titles)] if words else []
        for one in first:
            rows.append(kind_row(with_id(one), one, titles))
            rows += [kind_row(UNDER + with_id(kind), kind, titles) for kind in below(one, known)]
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    if not rows:
        return mix_tables(kinds, titles)
    rows += [_sum(not_differing(len(others)), others, titles)] if others else []
    apart = [] if len(titles) == 2 else ["Set apart"]
    found = Table(title, ["Kind", *_columns(titles)], [*rows, *more], words=apart)
    return [found, *mix_tables(kinds, titles)]


def mix_tables(kinds: Sequence[Kind], titles: Mapping[str, str]) -> list[Table]:
    """Return how kinds differ because of the models, and of unlike mixes of prompts; none if the mixes are equal."""
    mixes = [(kind, kind.mix) for kind in kinds if kind.mix]
    # 12: kinds whose differences are divided in a table, those with the largest parts.
    largest = sorted(mixes, key=lambda one: -max(abs(one[1].plain), abs(one[1].value)))[:12]
    if not largest:
        return []
    rows: list[list[Cell | str]] = []
    for kind, mix in largest:
        apart = set_apart(kind)
        sign = -1 if len(titles) == 2 and apart != next(iter(titles)) else 1
        value, low, high = (sign * one for one in (mix.value, *mix.interval))
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
        Table(
            "The model's part and the prompts' part",
            [*first, "Difference, points", "On the same prompts", "By the mix of prompts"],
            rows,
            names=["Kind"],
            legend="The sets have unlike numbers of images of the prompts. A difference is the sum of both parts: what "
            "images of the same prompts differ in, and what the unlike mixes of prompts add.",
        )
    ]


def value_tables(by: SharesBy | None, titles: Mapping[str, str]) -> list[Table]:
    """Return the table of the shares of the values of a column; none without them."""
    if by is None:
        return []
    apart = [] if len(titles) == 2 else ["Set apart"]
    return [
        Table(
            f"Share of each {by.column} in each set",
            [by.column, *_columns(titles)],
            [kind_row(one.title, one, titles) for one in by.kinds],
            words=apart,
            muted=[one.p_value > ALPHA for one in by.kinds],
            legend=f"Each {by.column} is tested by itself; the p-values are adjusted for all of them together.",
        )
    ]


def _columns(titles: Mapping[str, str]) -> list[str]:
    """Return the headings of the columns after the name."""
    apart, difference = ([], "Difference") if len(titles) == 2 else (["Set apart"], "Apart by")
    return [*apart, *(f"{one}, %" for one in titles.values()), f"{difference}, points", "Adj. p"]


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


def prompt_tables(found: PromptDifferences | None, titles: Mapping[str, str]) -> list[Table]:
    """Return the words that differ, the prompts that differ most, and how well images fit their prompts."""
    if found is None:
        return []
    measures = ("Spread", "Distinct", *(("CLIPScore",) if found.fits else ()))
    sets = [f"{what}, {name}" for what in measures for name in titles.values()]
    words: list[list[Cell | str]] = [
        [Cell(one.title, samples=_samples(one)), one.what, f"{one.prompts:,}", *_numbers(one, titles)]
        for one in found.words
    ]
    prompts: list[list[Cell | str]] = [
        [Cell(one.text, samples=_samples(one)), *_numbers(one, titles)] for one in found.prompts[:PROMPTS_SHOWN]
    ]
    ends = ["Difference", "Interval", "Adj. p"]
    about = found.unmeasured[:1].upper() + found.unmeasured[1:]
    tables = [
        Table(
            f"Words and phrases of {found.column}s whose images differ, of {found.tested:,}",
            ["Word", "What", "Prompts", *ends, *sets],
            words,
            words=["What"],
            legend=" ".join([LEGEND, *([f"{about}."] if about else []), *([OF_FIT] if found.fits else [])]),
            nothing="No word differs significantly.",
        ),
        Table(
            f"The {found.column}s whose images differ most",
            ["Prompt", *ends, *([f"Fit: {one.lower()}" for one in ends] if found.fits else []), *sets],
            [[*row[:4], *_fit(one.fit), *row[4:]] for row, one in zip(prompts, found.prompts, strict=False)],
        ),
    ]
    if found.fit is not None:
        fits = [
            [name, f"{found.fits[label].value:.3f}", _ends(found.fits[label].interval), ""]
            for label, name in titles.items()
        ]
        fits.append([f"{' − '.join(titles.values())}, {found.column} by {found.column}", *_fit(found.fit)])
        columns = ["Set", "CLIPScore", "Interval", "p"]
        tables.append(Table(f"Fit of images to their {found.column}s", columns, fits))
    return tables


def _fit(one: Fit | None) -> list[str]:
    """Return a difference of fit, its interval and its p-value; nothing where it is not measured."""
    if one is None:
        return []
    return [f"{one.difference:.3f}", _ends(one.interval), "–" if one.p_value is None else p_value(one.p_value)]


def _ends(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def _samples(one: Word | Prompt) -> list[tuple[str, tuple[str, ...]]]:
    return [(label, part.ids) for label, part in one.sets.items()]


def _numbers(one: Word | Prompt, titles: Mapping[str, str]) -> list[str]:
    low, high = one.interval
    parts = [one.sets[label] for label in titles]
    return [
        f"{one.difference:.2f}",
        f"{low:.2f} to {high:.2f}",
        "–" if one.p_value is None else p_value(one.p_value),
        *("–" if part.spread is None else f"{part.spread:.2f}" for part in parts),
        *(f"{part.distinct:,} of {part.n:,}" for part in parts),
        *(f"{part.fit:.3f}" for part in parts if part.fit is not None),
    ]
