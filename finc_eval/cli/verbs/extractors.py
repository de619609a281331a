"""`finc-eval extractors`: which there are, what each does to a sample, and whether it does so on this machine."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from finc_eval.cli.options import Device, Json
from finc_eval.core.errors import FincEvalError

app = typer.Typer(
    no_args_is_help=True,
    help="What turns samples into embeddings: one card each, a TOML file that says all that decides the numbers. "
    "A card of your own, in a file ending in .toml, is used like those that come with finc-eval: no Python is needed.",
)

Named = Annotated[str, typer.Argument(help="Name of an extractor, timm:NAME, or the path of a card.")]


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """List the extractors, what they take, and whether their weights are here."""
    from finc_eval.extractors.catalog import available_cards, load_card
    from finc_eval.extractors.weights import weights_of
    from finc_eval.report.tables import print_extractors

    cards = [load_card(name) for name in available_cards()]
    states = {state.name: state.state for state in weights_of(cards)}
    if as_json:
        records = [
            {
                "name": card.name,
                "dimension": card.output.dimension,
                "takes": card.takes,
                "weights": states.get(card.name),
            }
            for card in cards
        ]
        print(json.dumps(records, indent=1))
        return
    print_extractors(cards, states)


@app.command()
def show(extractor: Named, as_json: Json = False) -> None:
    """Show a card: network, weights, preprocessing, output, and what people get wrong with it."""
    from finc_eval.extractors.catalog import load_card
    from finc_eval.report.tables import print_card

    card = load_card(extractor)
    if as_json:
        print(json.dumps(dataclasses.asdict(card) | {"digest": card.digest}, indent=1))
        return
    print_card(card)


@app.command()
def check(
    extractors: Annotated[list[str], typer.Argument(help="Names of extractors, or paths of cards.")],
    device: Device = None,
) -> None:
    """Run an extractor on a sample of noise, and compare with the golden values of its card, if it has any."""
    from finc_eval.extractors.catalog import load_card
    from finc_eval.extractors.check import check as run

    reports = [run(load_card(name), device) for name in extractors]
    for found in reports:
        compared = {
            "agrees": f"the golden values agree, within {found.deviation or 0:.1e}",
            "differs": f"the golden values differ by {found.deviation or 0:.1e}",
            "none": "the card has no golden values to compare with",
        }[found.golden]
        numbers = "" if found.finite else "; not all outputs are finite numbers"
        print(f"{found.name} on {found.device}: {found.dimension} numbers, norm {found.norm:.6g}; {compared}{numbers}")
    bad = [found.name for found in reports if not found.passed]
    if bad:
        raise FincEvalError(f"{', '.join(bad)} does not give what its card says: check weights, versions and device")
