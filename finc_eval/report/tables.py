"""Terminal tables of caches, extractors, weights, scores and the installation."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING

from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from finc_eval.embeddings.folder import Entry
    from finc_eval.extractors.card import Card
    from finc_eval.extractors.weights import WeightState


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


def p_value_text(value: float) -> str:
    """A p-value as a cell of a table."""
    return f"{value:.1e}" if value >= 1e-16 else "< 1e-16"
