"""The page, the notebook view and the terminal table of a comparison of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.comparison.models import ModelComparison, ModeShare, SharedMode
from finc_eval.comparison.settings import REFERENCE
from finc_eval.report.comparison import modes_in_words
from finc_eval.report.formats import interval, number, p_value, percent
from finc_eval.report.pages import (
    ALPHA,
    LEAD_SAMPLES,
    SHOWN_SAMPLES,
    interval_scale,
    kinds_in_words,
    render,
    table_fragment,
)
from finc_eval.report.terminal import print_table
from finc_eval.report.thumbnails import read_pictures
from finc_eval.samples import Samples

COLUMNS: dict[str, Callable[[SharedMode], str]] = {
    "Most in": lambda mode: mode.set_with_most,
    "Excess": lambda mode: number(mode.excess),
    "Interval": lambda mode: interval(mode.interval),
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Stability": lambda mode: percent(mode.stability),
}
"""The columns of a table of modes, on the page and on the terminal."""


def page(result: ModelComparison, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    shown = {
        label: [id for mode in result.modes if mode.set_with_most == label for id in _own_ids(mode)]
        for label in result.sets
    }
    pictures, notes = read_pictures(result.sets, shown, samples, {})
    return render(
        "models.html",
        result,
        groups=_groups(result),
        reference=REFERENCE,
        columns=COLUMNS,
        own_ids=_own_ids,
        pictures=pictures,
        summary=summary(result),
        notes=notes,
        interval=interval_scale((mode.excess, mode.interval) for mode in result.modes),
        lead=LEAD_SAMPLES,
    )


def fragment(result: ModelComparison) -> str:
    """Return the significant modes against the sets, for a notebook."""
    caption = f"{', '.join(result.sets)}: mass of each significant mode in each set, and its share of the models' mass"
    return table_fragment(caption, ["Mode", *COLUMNS, *result.sets], _rows(result))


def show(result: ModelComparison) -> None:
    """Print the significant modes against the sets: the mass of each in each, and its share of the models' mass."""
    rows = _rows(result)
    if rows:
        columns = ["Mode", *COLUMNS, *result.sets]
        print_table("Mass of each mode in each set, and its share of the models' mass", columns, rows)
    print(f"{modes_in_words(len(rows))} at family-wise α = {ALPHA:g} ({result.tested} directions tested)")
    others = len(result.modes) - len(rows)
    if others:
        print(f"{others} more {'is' if others == 1 else 'are'} not significant: see the page or the JSON")
    print(result.signature)


def summary(result: ModelComparison) -> str:
    """Return what was found in a few plain sentences."""
    significant = result.significant(ALPHA)
    counts = {label: sum(mode.set_with_most == label for mode in significant) for label in result.sets}
    passed = f"(adjusted p ≤ {ALPHA:g})"
    models = [(label, count) for label, count in counts.items() if count and label != REFERENCE]
    sentences = []
    if models:
        (first, count), *others = models
        rest = "".join(f", {label} of {count}" for label, count in others)
        sentences.append(
            f"Against the mean of all other sets, {first} has more of {kinds_in_words(count)}{rest} {passed}."
        )
    if counts.get(REFERENCE):
        missed = kinds_in_words(counts[REFERENCE])
        sentences.append(f"The models make too little of {missed} that the reference has {passed}.")
    if not significant:
        sentences.append(f"No kind of samples is significantly more frequent in one set than in the others {passed}.")
    if result.settings.rho != 1:
        times = f"{result.settings.rho:g} times the mean mass of the others"
        sentences.append(f"A kind counts where a set has more than {times}.")
    sentences.append(f"{len(result.sets)} sets were compared, and {result.tested:,} directions were tested.")
    return " ".join(sentences)


def _rows(result: ModelComparison) -> list[list[str]]:
    return [
        [mode.id, *(text(mode) for text in COLUMNS.values()), *(_cell(mode.shares[label]) for label in result.sets)]
        for mode in result.significant(ALPHA)
    ]


def _cell(part: ModeShare) -> str:
    width = max(part.mass - part.interval[0], part.interval[1] - part.mass)
    share = "" if part.share is None else f", {percent(part.share)}"
    return f"{number(part.mass)} ± {number(width)}{share}"


def _groups(result: ModelComparison) -> list[tuple[str, str, str, tuple[SharedMode, ...]]]:
    """Return the modes of the models, and those of the reference, each with a class, a heading and a meaning."""
    of_models = tuple(mode for mode in result.modes if mode.set_with_most != REFERENCE)
    groups = [("gen", "In models", "more in one model than in the mean of all other sets", of_models)]
    if REFERENCE in result.sets:
        of_reference = tuple(mode for mode in result.modes if mode.set_with_most == REFERENCE)
        groups.append(("ref", "In the reference", "what the models lack", of_reference))
    return groups


def _own_ids(mode: SharedMode) -> tuple[str, ...]:
    return mode.shares[mode.set_with_most].top_ids[:SHOWN_SAMPLES]
