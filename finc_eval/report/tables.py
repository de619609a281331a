"""Terminal tables of caches, extractors, weights, scores and the installation."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING

from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from finc_eval.doctor.diagnosis import Diagnosis
    from finc_eval.doctor.parity import Outcome
    from finc_eval.embeddings.folder import Entry
    from finc_eval.extractors.card import Card
    from finc_eval.extractors.weights import WeightState
    from finc_eval.metrics.evaluate import Scores
    from finc_eval.metrics.score import Score


def print_caches(entries: Sequence[Entry]) -> None:
    """The caches of the folder, with what each is made from and whether that is still there."""

    def row(entry: Entry) -> list[str]:
        gone = " (gone)" if entry.source_is_there is False else ""
        return [
            entry.path.name[:12],
            entry.state,
            "" if entry.n is None else f"{entry.n} x {entry.dim}",
            entry.extractor or "",
            f"{entry.size / 1e6:,.1f}",
            f"{datetime.fromtimestamp(entry.modified):%Y-%m-%d %H:%M}",
            entry.note or f"{entry.source or ''}{gone}",
        ]

    print_table(
        "", ["key", "state", "embeddings", "extractor", "MB", "made", "samples"], [row(entry) for entry in entries]
    )
    print(f"{sum(entry.size for entry in entries) / 1e6:,.1f} MB in {entries[0].path.parent}")


def print_extractors(cards: Sequence[Card], weights: Mapping[str, str]) -> None:
    """The extractors, with the state of their weights by name."""

    def row(card: Card) -> list[str]:
        state = weights.get(card.name, "none needed")
        return [card.name, card.takes, str(card.output.dimension), state, card.description.split(". ")[0].rstrip(".")]

    print_table("", ["extractor", "takes", "numbers", "weights", "what it is"], [row(card) for card in cards])
    print("Weights that are missing: finc-eval weights fetch NAME. Any network of timm: --extractor timm:NAME.")


def print_card(card: Card) -> None:
    """A card, section by section."""
    print(f"{card.name} ({card.digest[:12]})\n\n{card.description}\n\nSource: {card.citation}\n")
    sections = {
        "network": card.loader,
        "weights": card.weights,
        "clip": card.clip,
        "preprocessing": card.preprocessing,
        "output": card.output,
        **{f"extra {name}": output for name, output in card.extra.items()},
        "golden": card.golden,
    }
    for name, section in sections.items():
        values = {} if section is None else dataclasses.asdict(section)
        print(f"{name}: {'none' if section is None else ''}".rstrip())
        for key, value in values.items():
            if value not in (None, "", (), {}):
                print(f"  {key}: {' '.join(map(str, value)) if isinstance(value, tuple) else value}")
    print("\nWhat people get wrong:")
    for trap in card.traps:
        print(f"- {trap}")


def print_weights(states: Sequence[WeightState]) -> None:
    """Weights, whether they are here, and what they are held against."""

    def row(state: WeightState) -> list[str]:
        size = "" if state.size is None else f"{state.size / 1e6:,.0f}"
        return [state.name, state.state, size, state.trust, state.license, str(state.path)]

    print_table("", ["extractor", "weights", "MB", "held against", "license", "file"], [row(state) for state in states])


def print_scores(result: Scores) -> None:
    """Scores with their intervals and floors, and below them what pins and qualifies each."""

    def row(score: Score) -> list[str]:
        interval = "" if score.interval is None else f"[{score.interval[0]:.6g}, {score.interval[1]:.6g}]"
        return [score.key, f"{score.value:.6g}", interval, "" if score.floor is None else f"{score.floor:.6g}"]

    if result.scores:
        columns = ["metric", "value", "95 %", "floor"]
        print_table(f"{result.gen} against {result.ref}", columns, [row(score) for score in result.scores])
    for score in result.scores:
        print(score.signature)
        for note in score.notes:
            print(f"  note: {note}")


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """What an installation is made of, and how it agrees with other libraries."""
    rows = [[name, version or "not installed"] for name, version in diagnosis.versions.items()]
    rows.append(["CUDA", diagnosis.cuda or "torch is built without"])
    rows += [["device", device] for device in diagnosis.devices]
    for folder in diagnosis.folders:
        state = f"{folder.used / 1e9:.2f} GB" if folder.exists else "not made yet"
        access = "" if folder.writable else ", cannot be written"
        rows.append([folder.what, f"{folder.path}: {state}, {folder.free / 1e9:.0f} GB free{access}"])
    print_table("This installation", ["what", "here"], rows)
    if diagnosis.parity is not None:
        _print_parity(diagnosis.parity)


def _print_parity(outcomes: Sequence[Outcome]) -> None:
    def number(value: float | None, digits: str = ".8g") -> str:
        return "" if value is None else f"{value:{digits}}"

    columns = ["metric", "library", "ours", "theirs", "relative difference", "tolerance", ""]
    rows = [
        [
            outcome.metric,
            f"{outcome.library} {outcome.version or ''}".strip(),
            number(outcome.ours),
            number(outcome.theirs),
            number(outcome.difference, ".1e"),
            number(outcome.tolerance, ".0e"),
            outcome.verdict,
        ]
        for outcome in outcomes
    ]
    print()
    print_table("The same random arrays through other libraries", columns, rows)
    told: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.note:
            told.setdefault(outcome.note, []).append(f"{outcome.metric} of {outcome.library}")
    for note, of in told.items():
        print(f"{', '.join(of)}: {note}")


def p_value_text(value: float) -> str:
    """A p-value as a cell of a table."""
    return f"{value:.1e}" if value >= 1e-16 else "< 1e-16"
