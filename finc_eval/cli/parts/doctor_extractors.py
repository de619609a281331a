"""`finc-eval doctor extractors`: list the extractors, show a card, check an extractor on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from finc_eval.cli.group import Group
from finc_eval.cli.options import Json, Work, works
from finc_eval.cli.output import print_json
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import plain
from finc_eval.extractors.card import Card
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.weights import weight_states
from finc_eval.report.terminal import print_table

app = typer.Typer(
    cls=Group,
    help="List, show and check the extractors, which turn samples into embeddings. Each is a card: a TOML file that "
    "states what decides the numbers. Your own card, in a file ending in .toml, is used like those that come with "
    "finc-eval and needs no Python.",
)

ExtractorName = Annotated[str, typer.Argument(help="Name of an extractor, timm:NAME, or path of a card.")]
ExtractorNames = Annotated[list[str], typer.Argument(help="Names of extractors, or paths of cards.")]


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """List the extractors, what they take, and the state of their weights."""
    cards = [load_card(name) for name in available_cards()]
    states = {state.name: state.state for state in weight_states(cards)}
    if as_json:
        print_json(
            [
                {
                    "name": card.name,
                    "dimension": card.output.dimension,
                    "takes": card.takes,
                    "weights": states.get(card.name),
                }
                for card in cards
            ]
        )
        return
    rows = [
        [
            card.name,
            card.takes,
            str(card.output.dimension),
            states.get(card.name, "none needed"),
            card.description.split(". ")[0].rstrip("."),
        ]
        for card in cards
    ]
    print_table("", ["extractor", "takes", "dimension", "weights", "description"], rows)
    print("Missing weights: finc-eval doctor weights fetch NAME. Any network of timm: --extractor timm:NAME.")


@app.command()
def show(extractor: ExtractorName, as_json: Json = False) -> None:
    """Show a card: network, weights, preprocessing, output, and common mistakes."""
    card = load_card(extractor)
    if as_json:
        print_json(plain(card) | {"space": _space(card)})
        return
    _print_card(card)


@app.command()
@works
def check(extractors: ExtractorNames, work: Work, as_json: Json = False) -> None:
    """Embed a sample of noise, and compare with the golden values of the card, if it has any."""
    problems = {name: _problem(name, work.device, silent=as_json) for name in extractors}
    if as_json:
        print_json([{"extractor": name, "problem": problem} for name, problem in problems.items()])
    wrong = [problem for problem in problems.values() if problem]
    if wrong:
        raise DataError("; ".join(wrong))


def _problem(name: str, device: str | None, *, silent: bool) -> str | None:
    """Check one extractor, print what was found unless asked to be silent, and return what is wrong."""
    # torch takes seconds to import.
    from finc_eval.extractors.check import check as check_extractor

    try:
        found = check_extractor(load_card(name), device)
    except (UsageError, DataError) as error:
        return str(error)
    compared = {
        "agrees": f"the golden values agree, within {found.deviation or 0:.1e}",
        "differs": f"the golden values differ by {found.deviation or 0:.1e}",
        "none": "the card has no golden values to compare with",
    }[found.golden]
    finite = "" if found.finite else "; not all outputs are finite numbers"
    if not silent:
        print(f"{found.name} on {found.device}: {found.dimension} values, norm {found.norm:.6g}; {compared}{finite}")
    if found.passed:
        return None
    return f"{found.name}: the embedding is not what the card says: check weights, versions and device"


def _space(card: Card) -> str | None:
    """Return the name@digest of results by an extractor; None where weights that are missing decide it."""
    from finc_eval.embeddings.recipe import space_of  # takes a second, which a list of extractors need not wait for

    try:
        return space_of(card)
    except DataError:
        return None


def _print_card(card: Card) -> None:
    print(f"{_space(card) or card.name}\n\n{card.description}\n\nSource: {card.citation}\n")
    values = plain(card)
    sections = {
        "network": values["loader"],
        **{name: values[name] for name in ("weights", "clip", "preprocessing", "output")},
        **{f"extra {name}": output for name, output in values["extra"].items()},
        "golden": values["golden"],
    }
    for name, section in sections.items():
        print(f"{name}: {'none' if section is None else ''}".rstrip())
        for key, value in (section or {}).items():
            if value not in (None, "", [], {}):
                print(f"  {key}: {' '.join(map(str, value)) if isinstance(value, list) else value}")
    print("\nCommon mistakes:")
    for trap in card.traps:
        print(f"- {trap}")
