"""The page, the notebook view and the terminal table of two sets in several embedding spaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from finc_eval.comparison.result import Comparison
from finc_eval.comparison.spaces import SAME, SeenKind, Spaces
from finc_eval.core.words import join_words, percent, plural
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.texts import TEXT_SAMPLES, kind_row
from finc_eval.report.comparison import titles
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Cell, Outline, Table, unreadable
from finc_eval.report.formats import number, p_value
from finc_eval.report.pages import render
from finc_eval.samples import Samples

HOW = (
    "Each space has kinds of its own. Its p-values are multiplied by the number of spaces, so that a false kind in any "
    f"of them has probability {ALPHA:g} at most; intervals of shares hold together within a space. Two kinds are one, "
    f"seen by both spaces, if they have {percent(SAME)} or more of their samples in common (Jaccard index) and differ "
    "in the same direction. Samples that one space holds together and another does not are found by SPEC, whether the "
    "sets differ or not."
)


def page(result: Spaces, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    return render(result, outline(result), result.gallery_of(samples))


def outline(result: Spaces) -> Outline:
    """Return what the spaces say in all outputs."""
    first = result.first
    gen, ref = titles(first)
    sets = {"gen": first.gen, "ref": first.ref}
    names = list(result.comparisons)
    return Outline(
        kind=f"two sets of samples in {plural(len(names), 'embedding space')}",
        title=f"{gen} against {ref}, by {join_words(names)}",
        headline=summary(result),
        sets={gen: first.gen.n, ref: first.ref.n},
        signatures=[one.signature for one in result.comparisons.values()],
        call=call(
            "compare",
            *(source(*one) for one in sets.items()),
            f"extractor={names!r}",
            settings=replace(first.settings, sigma=None),
        ),
        tables=[_spaces(result), *_kinds(result), _clusters(result)],
        warnings=result.warnings,
        failures=unreadable(sets),
        how=HOW,
    )


def summary(result: Spaces) -> str:
    """Return what was found in a few plain sentences."""
    if not result.kinds:
        return "No kind differs significantly in any space."
    sentences = []
    for name in result.comparisons:
        own = [one for one in result.kinds if one.space == name]
        alone = [one for one in own if len(one.seen_by) == 1]
        text = f"{plural(len(own), 'kind')} {'differs' if len(own) == 1 else 'differ'} in {name}"
        few = join_words([f"“{result.kind_of(one).title}”" for one in alone[:TEXT_SAMPLES]])
        which = "no other space shows" if len(result.comparisons) > 2 else "the other space does not show"
        shared = [
            f"“{result.kind_of(one).title}” also in {join_words(one.seen_by[1:])}" for one in own if one not in alone
        ]
        parts = [text, *shared[:TEXT_SAMPLES], *([f"{which} {few}"] if alone else [])]
        sentences.append("; ".join(parts) + ".")
    return " ".join(sentences)


def _spaces(result: Spaces) -> Table:
    count = len(result.comparisons)
    return Table.of(
        "How different the sets are in each space",
        {
            "Space": lambda one: one[0],
            "Difference": lambda one: Cell(percent(one[1].difference, 1), _range(one[1])),
            "Adj. p": lambda one: _adjust(one[1].difference_p_value, count),
            "Kinds that differ": lambda one: str(sum(kind.space == one[0] for kind in result.kinds)),
        },
        result.comparisons.items(),
    )


def _range(one: Comparison) -> str:
    low, high = one.difference_interval or (0.0, 1.0)
    return f"[{percent(low, 1)}, {percent(high, 1)}]"


def _adjust(p: float | None, count: int) -> str:
    return "–" if p is None else p_value(min(1.0, count * p))


def _kinds(result: Spaces) -> list[Table]:
    named = {label: label.capitalize() for label in result.pictured_sets()}
    rows: list[list[Cell | str]] = []
    for one in result.kinds:
        kind = replace(result.kind_of(one), p_value=one.p_value)
        rows.append([one.space, *kind_row(with_id(kind), kind, named), _also(one)])
    columns = [
        "Space",
        "Kind",
        *(f"{name}, %" for name in named.values()),
        "Difference, points",
        "Adj. p",
        "Also seen by",
    ]
    return [Table("Kinds that differ", columns, rows, names=["Kind"], words=["Space", "Also seen by"])] if rows else []


def _also(one: SeenKind) -> str:
    """Return which other spaces see a kind, or the best counterpart of each."""
    parts = [
        f"{name}: {found.id} ({percent(found.jaccard)} in common)" for name, found in one.elsewhere.items() if found.id
    ]
    return join_words(parts) if len(one.seen_by) > 1 else f"no space{'; ' + join_words(parts) if parts else ''}"


def _clusters(result: Spaces) -> Table:
    return Table.of(
        "Samples that one space holds together and another does not",
        {
            "Together in": lambda one: Cell(
                one.space, samples=[(label, ids[: result.shown]) for label, ids in one.ids.items()]
            ),
            "Not in": lambda one: one.other,
            "Most are of": lambda one: next(
                with_id(kind) for kind in result.comparisons[one.space].kinds if kind.id == one.kind
            ),
            "Eigenvalue": lambda one: number(one.eigenvalue),
        },
        result.clusters,
        words=["Not in", "Most are of"],
    )
