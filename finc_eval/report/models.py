"""The page, the notebook view and the terminal table of a comparison of several models."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.comparison.models import ModelComparison, ModeShare
from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import counted
from finc_eval.naming.unique_names import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.modes import remark
from finc_eval.report.cards.sets import modes_on_page
from finc_eval.report.comparison import not_significant, print_unstable
from finc_eval.report.exports.made import call, source, sources
from finc_eval.report.exports.outline import Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import bare_percent, p_value, share_interval
from finc_eval.report.pages import kinds_in_words, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.verdict import such_as
from finc_eval.samples import Samples

TABLE = ("Mode", "More in", "Adj. p")
"""The first columns of the table on the terminal and in a notebook; each set has one after them."""

SHARES = "Share of each set that belongs to each mode"


def page(result: ModelComparison, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    gallery = result.gallery_of(samples)
    modes = sorted(result.modes, key=lambda mode: mode.p_value <= ALPHA and not mode.firm)
    return render(
        "models.html",
        result,
        outline(result),
        **modes_on_page(modes, {label: label for label in result.sets}, result.shown),
        pictures=gallery.pictures,
        notes=gallery.notes,
    )


def outline(result: ModelComparison) -> Outline:
    """Return what the comparison says in all outputs."""
    models = {label: result.sets[label] for label in result.models}
    ref = [source(REFERENCE, result.sets[REFERENCE])] if REFERENCE in result.sets else []
    rows, others = _rows(result), len(result.modes) - len(result.significant(ALPHA))
    return Outline(
        kind=f"comparison of {len(result.sets)} sets of samples with each other",
        title=several(result.models) + (f" against {REFERENCE}" if ref else ""),
        headline=summary(result),
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("compare_models", sources(models), *ref, settings=result.settings),
        tables=[Table(f"{SHARES}, in percent", [*TABLE, *result.sets], rows)] if rows else [],
        details=[f"{not_significant(others, 'mode')}."] if others else [],
        warnings=result.warnings,
        failures=unreadable(result.sets),
    )


def fragment(result: ModelComparison) -> str:
    """Return the significant modes against the sets, for a notebook."""
    caption = f"{', '.join(result.sets)}: share of each set that belongs to each significant mode, in percent"
    return table_fragment(caption, [*TABLE, *result.sets], _rows(result))


def show(result: ModelComparison) -> None:
    """Print the significant modes against the sets: the share of each set that are members."""
    rows = _rows(result)
    if rows:
        print_table(f"{SHARES}, in percent", [*TABLE, *result.sets], rows, names=TABLE[:2])
    firm = sum(remark(mode) is None for mode in result.significant(ALPHA))
    differ = f"{counted(firm, 'mode')} {'differs' if firm == 1 else 'differ'}"
    print(f"{differ} at family-wise α = {ALPHA:g} ({result.tested} directions tested)")
    print_unstable(result.significant(ALPHA))
    if others := len(result.modes) - len(rows):
        print(not_significant(others, "mode"))
    print(result.signature)
    print_notes(result.warnings)


def summary(result: ModelComparison) -> str:
    """Return what was found in a few plain sentences."""
    significant = [mode for mode in result.significant(ALPHA) if remark(mode) is None]
    groups = [
        (label, own)
        for label in (*result.models, REFERENCE)
        if (own := [mode for mode in significant if mode.set_with_most == label])
    ]
    examples = such_as(result.modes, groups)
    told = {label: (kinds_in_words(len(own)), few) for (label, own), few in zip(groups, examples, strict=True)}
    missed = told.pop(REFERENCE, None)
    passed = f"(adjusted p ≤ {ALPHA:g})"
    sentences = []
    if told:
        more = "; ".join(f"{label} has more of {kinds}{few}" for label, (kinds, few) in told.items())
        sentences.append(f"Against the mean of all other sets, {more} {passed}.")
    if missed:
        kinds, few = missed
        sentences.append(f"The models make too little of {kinds} that the reference has{few} {passed}.")
    if not significant:
        sentences.append(f"No kind of samples is significantly more frequent in one set than in the others {passed}.")
    if result.settings.rho != 1:
        times = f"{result.settings.rho:g} times the mean of the others"
        sentences.append(f"A kind counts where a set has more than {times}.")
    sentences.append(f"{len(result.sets)} sets were compared, and {result.tested:,} directions were tested.")
    return " ".join(sentences)


def _rows(result: ModelComparison) -> list[list[str]]:
    return [
        [
            "– " * bool(remark(mode)) + with_id(mode),
            mode.set_with_most,
            p_value(mode.p_value),
            *(_cell(mode.shares[label]) for label in result.sets),
        ]
        for mode in result.significant(ALPHA)
    ]


def _cell(part: ModeShare) -> str:
    return f"{bare_percent(part.share)} {share_interval(part.interval)}"
