"""The page, the notebook view and the terminal table of sets divided into kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from finc_eval.comparison.headline import missed
from finc_eval.core.words import figure, percent
from finc_eval.naming.unique_names import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kinds import Kinds
from finc_eval.partitions.modes import Kind
from finc_eval.report.cards.sets import cards_of_sets, kind_of_sets
from finc_eval.report.exports.made import call, sources
from finc_eval.report.exports.outline import Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import p_value
from finc_eval.report.pages import kinds_in_words, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.verdict import such_as
from finc_eval.samples import Samples


def page(result: Kinds, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    gallery = result.gallery_of(samples)
    return render(
        "kinds.html",
        result,
        outline(result),
        **cards_of_sets(result.modes, [*result.sets], "p", partial(kind_of_sets, shown=result.shown)),
        pictures=gallery.pictures,
        notes=gallery.notes,
        range_of=_range,
    )


def outline(result: Kinds) -> Outline:
    """Return what the kinds say in all outputs."""
    rows = _rows(result)
    return Outline(
        kind=f"{len(result.sets)} sets of samples, divided into kinds",
        title=several(result.sets),
        headline=summary(result),
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("kinds", sources(result.sets), settings=result.settings),
        tables=[Table("Share of each kind in each set", _columns(result), rows)] if rows else [],
        warnings=result.warnings,
        failures=unreadable(result.sets),
    )


def fragment(result: Kinds) -> str:
    """Return the significant kinds with their shares, for a notebook."""
    return table_fragment(summary(result), _columns(result), _rows(result))


def show(result: Kinds) -> None:
    """Print the significant kinds with their shares of each set."""
    rows = _rows(result)
    if rows:
        print_table("Share of each kind in each set", _columns(result), rows, names=["Kind", "Set apart"])
    print(summary(result))
    print_notes(result.warnings)
    print(result.signature)


CLUSTERS = "Kinds are clusters of samples: a large class can lie in several of them."

OVERLAP = "These kinds are of several levels and may overlap: do not add their shares."

UNTESTED = "Whether this is more than chance was not tested: the groups of a set are worth too few independent samples."


def summary(result: Kinds) -> str:
    """Return what was found in a few plain sentences."""
    significant = result.significant(ALPHA)
    groups = [
        (word, label, found)
        for word, side in (("more", "most"), ("less", "least"))
        for label in result.sets
        if (found := [kind for kind in significant if kind.side == f"{side} in {label}"])
    ]
    examples = such_as(result.modes, [(label, found) for _, label, found in groups])
    told = [
        f"{label} has significantly {word} of {kinds_in_words(len(found))}{few}"
        for (word, label, found), few in zip(groups, examples, strict=True)
    ]
    sides = [kind.side for kind in significant]
    sentences = [
        f"{'; '.join(told) or 'No kind is significantly more or less frequent in one set'}.",
        *([CLUSTERS] if len(set(sides)) < len(sides) else []),
        *([OVERLAP] if len({kind.level for kind in significant}) > 1 else []),
        *_overall(result),
        *missed(result.detectable),
    ]
    return " ".join(sentences)


def _overall(result: Kinds) -> list[str]:
    """Return how different the sets are over all kinds of a level, and whether that is more than chance."""
    value = f"{percent(result.difference, 1)} (95 % interval {_range(result.difference_interval)})"
    p, kinds = result.difference_p_value, f"{result.level} kinds"
    if p is not None and p > ALPHA:
        return [f"Over {kinds} together, the difference is within chance (p = {p:.2g}): an estimated {value}."]
    most = max(result.differences, key=lambda label: result.differences[label].value)
    told = (
        f"{' and '.join(result.sets)} differ in {value} of their samples"
        if len(result.sets) == 2
        else f"{most} is the most different set: {value} of its samples set it apart from all others"
    )
    tested = [] if p is not None else [UNTESTED]
    return [f"{told}, over {kinds}{f' (p {p_value(p)})' if p is not None else ''}.", *tested]


def _columns(result: Kinds) -> list[str]:
    return ["Kind", "Set apart", *result.sets, "Apart by, points", "Adj. p"]


def _rows(result: Kinds) -> list[list[str]]:
    return [_row(kind) for kind in result.significant(ALPHA)]


def _row(kind: Kind) -> list[str]:
    shares = [percent(part.share, 1) for part in kind.shares.values()]
    return [with_id(kind), kind.side, *shares, _ends(kind.interval), p_value(kind.p_value)]


def _range(ends: tuple[float, float]) -> str:
    return f"{_ends(ends)} %"


def _ends(ends: tuple[float, float]) -> str:
    low, high = (figure(100 * end, "z.1f") for end in ends)
    return f"{low} to {high}"
