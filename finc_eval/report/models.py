"""The page, the notebook view and the terminal table of a comparison of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from finc_eval.comparison.models import ModelComparison, ModeShare, SharedMode
from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import counted, listed, percent
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards import Card, Grid, View
from finc_eval.report.comparison import not_significant, print_unstable
from finc_eval.report.drawings.forest import Drawn, forest, forest_axis, forest_scale
from finc_eval.report.drawings.svg import Axis
from finc_eval.report.exports.made import call, source, sources
from finc_eval.report.exports.outline import Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import bare_percent, interval, number, p_value, share_interval
from finc_eval.report.mode_cards import remark
from finc_eval.report.pages import LEAD_SAMPLES, kinds_in_words, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

FACTS: dict[str, Callable[[SharedMode], str]] = {
    "Most in": lambda mode: mode.set_with_most,
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Stability": lambda mode: percent(mode.stability),
    "Excess": lambda mode: f"{number(mode.excess)} {interval(mode.interval)}",
}
"""All that is known of a mode besides its shares."""

SORTS = {"": "excess", "share": "largest share", "p": "p", "name": "name"}
"""Values to sort modes by."""

TABLE = ("Mode", "Most in", "Adj. p")
"""The first columns of the table on the terminal and in a notebook; each set has one after them."""


SHARES = "Share of each set that belongs to each mode"


def page(result: ModelComparison, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    gallery = result.gallery_of(samples)
    scale = forest_scale(part.interval[1] for mode in result.modes for part in mode.shares.values())
    cards = {mode.id: _card(mode, result, scale) for mode in result.modes}
    found = sorted(result.significant(ALPHA), key=lambda mode: not mode.firm)
    return render(
        "models.html",
        result,
        outline(result),
        reference=REFERENCE,
        significant=found,
        cards_shown=[cards[mode.id] for mode in found],
        cards_folded=[cards[mode.id] for mode in result.modes if mode.p_value > ALPHA],
        axis=forest_axis(scale),
        in_others=_in_others,
        remark=remark,
        roles={label: f"most in {label}" for label in result.sets},
        sorts=SORTS,
        pictures=gallery.pictures,
        shows_pictures=any(gallery.pictures.values()),
        lead=LEAD_SAMPLES,
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
        details=[f"{not_significant(others)}."] if others else [],
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
    differ = f"{counted(len(rows), 'mode')} {'differs' if len(rows) == 1 else 'differ'}"
    print(f"{differ} at family-wise α = {ALPHA:g} ({result.tested} directions tested)")
    print_unstable(result.significant(ALPHA))
    if others := len(result.modes) - len(rows):
        print(not_significant(others))
    print(result.signature)
    print_notes(result.warnings)


def summary(result: ModelComparison) -> str:
    """Return what was found in a few plain sentences."""
    significant = [mode for mode in result.significant(ALPHA) if remark(mode) is None]
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
        times = f"{result.settings.rho:g} times the mean of the others"
        sentences.append(f"A kind counts where a set has more than {times}.")
    sentences.append(f"{len(result.sets)} sets were compared, and {result.tested:,} directions were tested.")
    return " ".join(sentences)


def _rows(result: ModelComparison) -> list[list[str]]:
    return [
        [
            "– " * bool(remark(mode)) + mode.title,
            mode.set_with_most,
            p_value(mode.p_value),
            *(_cell(mode.shares[label]) for label in result.sets),
        ]
        for mode in result.significant(ALPHA)
    ]


def _cell(part: ModeShare) -> str:
    return f"{bare_percent(part.share)} {share_interval(part.interval)}"


def _own(mode: SharedMode) -> ModeShare:
    return mode.shares[mode.set_with_most]


def _in_others(mode: SharedMode) -> str:
    """Return the smallest and the largest share of the other sets."""
    others = [part.share for label, part in mode.shares.items() if label != mode.set_with_most]
    ends = dict.fromkeys(percent(end, 1) for end in (min(others), max(others)))
    return " to ".join(ends)


def _card(mode: SharedMode, result: ModelComparison, scale: Axis) -> Card:
    own = mode.set_with_most
    rest = [f"{percent(part.share, 1)} of {label}" for label, part in mode.shares.items() if label != own]
    shares = [Drawn(_ink(label, own), label, part.share, part.interval) for label, part in mode.shares.items()]
    rows = [
        [label, f"{percent(part.share, 1)} {share_interval(part.interval)}", number(part.mass)]
        for label, part in mode.shares.items()
    ]
    return Card(
        id=mode.id,
        title=mode.title,
        ink=_ink(own, own),
        tag=remark(mode) or f"most in {own}",
        is_muted=remark(mode) is not None,
        says=f"{percent(_own(mode).share, 1)} of the samples of {own} are of this kind, and {listed(rest)}.",
        drawing=forest(mode.title, shares, scale),
        views=tuple(_view(mode, label, result) for label in result.told_sets(mode)),
        facts={heading: text(mode) for heading, text in FACTS.items()},
        evidence=mode.evidence,
        table=(("Set", "Share", "Mass"), rows),
        named=((f"Most typical of {own}", _own(mode).top_ids[: result.shown]),),
        keys={"role": own, "share": f"{_own(mode).share:.6f}", "p": f"{mode.p_value:.3e}"},
    )


def _view(mode: SharedMode, label: str, result: ModelComparison) -> View:
    part, own = mode.shares[label], mode.set_with_most
    heading = "Most typical" if label == own else "Most alike, members or not"
    grids = (
        Grid(heading, label, part.top_ids[: result.shown]),
        Grid("Members drawn at random", label, part.drawn_ids[: result.shown]),
    )
    return View(_ink(label, own), label, "most of this mode" if label == own else "", grids)


def _ink(label: str, own: str) -> Literal["gen", "ref", "other"]:
    """Return the color of a set: the reference has its own, and so has the model with most of a mode."""
    return "ref" if label == REFERENCE else "gen" if label == own else "other"
