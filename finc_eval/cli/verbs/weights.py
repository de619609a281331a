"""`finc-eval weights`: which weights are here, and how to get the others."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from finc_eval.cli.options import Json
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import terminal

app = typer.Typer(
    no_args_is_help=True,
    help="The trained weights of the extractors. They lie in $FINC_EVAL_WEIGHTS, or else in "
    "~/.cache/finc-eval/weights, and are always held against their SHA-256. $FINC_EVAL_MIRROR names addresses to try "
    "first; FINC_EVAL_OFFLINE=1 forbids any.",
)

Extractors = Annotated[
    list[str] | None, typer.Argument(help="Names of extractors, or paths of cards; all of finc-eval's when left out.")
]
Named = Annotated[list[str], typer.Argument(help="Names of extractors, or paths of cards.")]


@app.command(name="list")
def list_(extractors: Extractors = None, as_json: Json = False) -> None:
    """List the weights of the extractors, and whether they are here."""
    from finc_eval.extractors.catalog import available_cards, load_card
    from finc_eval.extractors.weights import weights_of
    from finc_eval.report.tables import print_weights

    states = weights_of(map(load_card, extractors or available_cards()))
    if as_json:
        print(json.dumps([dataclasses.asdict(state) | {"path": str(state.path)} for state in states], indent=1))
        return
    print_weights(states)


@app.command()
def fetch(extractors: Named) -> None:
    """Download weights, resuming what was cut off, and check them."""
    from finc_eval.extractors.catalog import load_card
    from finc_eval.extractors.weights import fetch as run

    with terminal() as progress:
        paths = [run(load_card(name), progress) for name in extractors]
    print("\n".join(map(str, paths)))


@app.command()
def verify(extractors: Extractors = None) -> None:
    """Hash the weights that are here again, and hold them against their cards."""
    from finc_eval.extractors.catalog import available_cards, load_card
    from finc_eval.extractors.weights import verify as run
    from finc_eval.report.tables import print_weights

    found = [run(load_card(name)) for name in extractors or available_cards()]
    states = [state for state in found if state and (extractors or state.state != "missing")]
    print_weights(states)
    bad = [state.name for state in states if state.state in ("wrong", "missing")]
    if bad:
        raise FincEvalError(
            f"the weights of {', '.join(bad)} are missing or wrong: run finc-eval weights fetch {bad[0]}"
        )


@app.command()
def where(extractors: Named) -> None:
    """Print where the weights are, or belong."""
    from finc_eval.extractors.catalog import load_card
    from finc_eval.extractors.weights import weights_of

    for state in weights_of(map(load_card, extractors)):
        print(state.path)
