"""The page, the notebook view and the terminal table of a verdict."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.core.words import listed, percent
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.gallery.gallery import read_gallery
from finc_eval.gates.verdict import VERBS, Limit, Verdict
from finc_eval.report.cards.card import Card, Grid, View
from finc_eval.report.drawings.forest import Drawn, forest, forest_scale
from finc_eval.report.drawings.svg import Axis, Ink
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, sizes, unreadable
from finc_eval.report.pages import LEAD_SAMPLES, render
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

COLUMNS = ["Limit", "Verdict", "Value", "Interval", "Allowed", "Seen from", "Samples to decide"]
"""Columns of a table of limits."""

SETTLED = ("held", "improved")
"""Verdicts that do not need a person."""

INKS: dict[str, Ink] = {"gen": "gen", "ref": "ref"}
"""Colors of the sets that are not baselines."""

SORTS = {"": "urgency", "name": "name"}
"""Values to sort limits by."""

WITH_PICTURES = 30
"""Largest number of limits, by urgency, that a page shows with samples."""


def page(result: Verdict, samples: Mapping[str, Samples]) -> str:
    """Return the page: limits that did not hold come first, with their samples."""
    pictured = [limit for limit in result.by_urgency if limit.examples][:WITH_PICTURES]
    shown = {
        label: [id for limit in pictured for id in limit.examples.get(label, ())[:SHOWN_SAMPLES]]
        for label in result.sets
    }
    gallery = read_gallery(result.sets, shown, samples)
    scale = forest_scale(share for limit in result.limits for share in limit.shares.values())
    cards = {limit.name: _card(limit, scale, limit in pictured) for limit in result.by_urgency if limit.shares}
    settled = [limit.name for limit in result.limits if limit.verdict in SETTLED]
    return render(
        "gate.html",
        result,
        outline(result),
        pictures=gallery.pictures,
        notes=gallery.notes,
        cards=cards,
        leads={limit.name: _lead(limit) for limit in pictured} if any(gallery.pictures.values()) else {},
        cards_shown=[card for name, card in cards.items() if name not in settled],
        cards_folded=[card for name, card in cards.items() if name in settled],
        roles={verb: verb for verb in VERBS if verb not in SETTLED},
        columns=COLUMNS,
        cells=_cells,
        sorts=SORTS,
        settled=SETTLED,
    )


def _lead(limit: Limit) -> tuple[str, tuple[str, ...]]:
    """Return the set that has most of the kind of a limit, and a few of its samples."""
    label = max(limit.examples, key=lambda label: limit.shares[label])
    return label, limit.examples[label][:LEAD_SAMPLES]


def _card(limit: Limit, scale: Axis, with_samples: bool) -> Card:
    """Return the card of a limit on a kind."""
    ink: dict[str, Ink] = {label: INKS.get(label, "other") for label in limit.shares}
    views = [
        View(ink[label], label, "", (Grid("Nearest to the center of the kind", label, ids[:SHOWN_SAMPLES]),))
        for label, ids in limit.examples.items()
    ]
    return Card(
        id=limit.name,
        title=limit.name,
        ink="gen",
        tag=limit.verdict,
        is_muted=limit.verdict in SETTLED,
        says=f"{limit.sentence}. The kind is "
        + listed([f"{percent(share, 1)} of {label}" for label, share in limit.shares.items()])
        + ".",
        drawing=forest(limit.name, [Drawn(ink[label], label, share) for label, share in limit.shares.items()], scale),
        views=tuple(views) if with_samples else (),
        facts=dict(zip(COLUMNS[1:], _cells(limit)[1:], strict=True)),
        notes=(limit.note,) if limit.note else (),
        keys={"role": limit.verdict},
    )


def outline(result: Verdict) -> Outline:
    """Return what the verdict says in all outputs: limits that need a person come first."""
    baselines = [label for label in result.sets if label.startswith("baseline")]
    baseline = ", ".join(source(label, result.sets[label]) for label in baselines)
    gen, ref = (source(label, result.sets[label]) if label in result.sets else label for label in ("gen", "ref"))
    return Outline(
        kind="a new release against the release before it",
        title=f"Release gate: {result.overall}",
        headline=result.summary,
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("gate", gen, f"[{baseline}]" if len(baselines) > 1 else baseline or "baseline", ref, "policy"),
        tables=[Table("The limits", [*COLUMNS, "Note"], [[*_cells(one), _note(one)] for one in result.by_urgency])],
        details=[result.family],
        warnings=result.warnings,
        failures=unreadable(result.sets),
    )


def show(result: Verdict) -> None:
    """Print the limits, first the limits that need a person, and the verdict."""
    print_table("Limits", COLUMNS, map(_cells, result.by_urgency), names=["Limit"])
    print(result.summary)
    print_notes([*(f"{limit.name}: {limit.note}" for limit in result.by_urgency if _tells(limit)), *result.warnings])
    print(result.family)
    print(result.signature)


def _note(limit: Limit) -> str:
    return limit.note if _tells(limit) else ""


def _tells(limit: Limit) -> bool:
    return bool(limit.note) and limit.verdict not in SETTLED


def _cells(limit: Limit) -> list[str]:
    ends = "–" if limit.interval is None else " to ".join(map(limit.number, limit.interval))
    allowed = f"{'≤' if limit.harm == 'high' else '≥'} {limit.number(limit.margin)}"
    needed = f"{limit.needed:,}" if limit.needed else "–"
    seen = limit.number(limit.detectable)
    return [limit.name, limit.verdict, limit.number(limit.value), ends, allowed, seen, needed]
