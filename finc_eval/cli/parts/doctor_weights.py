"""`finc-eval doctor weights`: list, fetch, verify and locate the weights of the extractors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from finc_eval.cli.group import Group
from finc_eval.cli.options import Json, Quiet, shown
from finc_eval.cli.output import print_json
from finc_eval.cli.parts.doctor_extractors import ExtractorNames
from finc_eval.core.errors import DataError
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
def fetch(extractors: ExtractorNames, quiet: Quiet = False, as_json: Json = False) -> None:
    """Download weights and check them. A download that was cut is resumed."""
    with shown(quiet) as progress:
        paths = {name: str(fetch_weights(load_card(name), progress)) for name in extractors}
    print_json(paths) if as_json else print(*paths.values(), sep="\n")


@app.command()
def verify(extractors: Extractors = None, as_json: Json = False) -> None:
    """Hash the weights that are here again, and compare them with their cards."""
    states = weight_states(map(load_card, extractors or available_cards()), rehash=True)
    if not extractors:
        states = [state for state in states if state.state != "missing"]
    print_json(states) if as_json else _print_states(states)
    bad = [state.name for state in states if state.state in ("wrong", "missing")]
    if bad:
        raise DataError(
            f"the weights of {', '.join(bad)} are missing or wrong: run finc-eval doctor weights fetch {bad[0]}"
        )


@app.command()
def where(extractors: ExtractorNames, as_json: Json = False) -> None:
    """Print where the weights are, or belong."""
    paths = {state.name: str(state.path) for state in weight_states(map(load_card, extractors))}
    print_json(paths) if as_json else print(*paths.values(), sep="\n")


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
