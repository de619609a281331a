"""`finc-eval weights`: list, fetch, verify and locate the weights of the extractors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from finc_eval.cli.group import Group
from finc_eval.cli.options import Json
from finc_eval.cli.output import print_json
from finc_eval.cli.verbs.housekeeping.extractors import ExtractorNames
from finc_eval.core.errors import DataError
from finc_eval.core.progress import terminal
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.fetch import fetch_weights
from finc_eval.extractors.weights import WeightState, weight_states
from finc_eval.report.terminal import print_table

app = typer.Typer(
    cls=Group,
    help="List, fetch and verify the trained weights of the extractors. They lie in $FINC_EVAL_WEIGHTS, default: "
    "~/.cache/finc-eval/weights. Their SHA-256 is checked before every use. $FINC_EVAL_MIRROR lists addresses to try "
    "first; FINC_EVAL_OFFLINE=1 forbids downloads.",
)

Extractors = Annotated[
    list[str] | None,
    typer.Argument(help="Names of extractors, or paths of cards; default: all that come with finc-eval."),
]


@app.command(name="list")
def list_(extractors: Extractors = None, as_json: Json = False) -> None:
    """List the weights of the extractors, and which of them are here."""
    states = weight_states(map(load_card, extractors or available_cards()))
    if as_json:
        print_json(states)
        return
    _print_states(states)


@app.command()
def fetch(extractors: ExtractorNames) -> None:
    """Download weights and check them. A download that was cut is resumed."""
    with terminal() as progress:
        paths = [fetch_weights(load_card(name), progress) for name in extractors]
    print("\n".join(map(str, paths)))


@app.command()
def verify(extractors: Extractors = None) -> None:
    """Hash the weights that are here again, and compare them with their cards."""
    states = weight_states(map(load_card, extractors or available_cards()), rehash=True)
    if not extractors:
        states = [state for state in states if state.state != "missing"]
    _print_states(states)
    bad = [state.name for state in states if state.state in ("wrong", "missing")]
    if bad:
        raise DataError(f"the weights of {', '.join(bad)} are missing or wrong: run finc-eval weights fetch {bad[0]}")


@app.command()
def where(extractors: ExtractorNames) -> None:
    """Print where the weights are, or belong."""
    for state in weight_states(map(load_card, extractors)):
        print(state.path)


def _print_states(states: Sequence[WeightState]) -> None:
    rows = [
        [
            state.name,
            state.state,
            "" if state.size is None else f"{state.size / 1e6:,.0f}",
            state.trust,
            state.license,
            str(state.path),
        ]
        for state in states
    ]
    print_table("", ["extractor", "weights", "MB", "checked against", "license", "file"], rows)
