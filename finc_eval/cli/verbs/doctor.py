"""`finc-eval doctor`: what the installation consists of: extractors, weights, schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from finc_eval.cli.command import VerbGroup
from finc_eval.cli.options import Json, Quiet, Work, show_progress, works
from finc_eval.cli.output import print_json
from finc_eval.core.errors import DataError, UsageError, check_choice
from finc_eval.core.record import plain
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.fetch import fetch_weights
from finc_eval.extractors.weights import WeightState, weight_states
from finc_eval.report.terminal import print_table
from finc_eval.results import RESULTS, result_class


def doctor(as_json: Json = False) -> None:
    """Say what this installation is made of: versions, devices and folders."""
    from finc_eval.doctor import diagnose  # loads torch, which the parts need not wait for

    diagnosis = diagnose()
    if as_json:
        print_json(diagnosis)
        return
    rows = [[name, version or "not installed"] for name, version in diagnosis.versions.items()]
    rows.append(["CUDA", diagnosis.cuda or "torch is built without"])
    rows += [["device", device] for device in diagnosis.devices]
    for folder in diagnosis.folders:
        state = f"{folder.used / 1e9:.2f} GB" if folder.exists else "not made yet"
        access = "" if folder.writable else ", cannot be written"
        rows.append([folder.purpose, f"{folder.path}: {state}, {folder.free / 1e9:.0f} GB free{access}"])
    print_table("This installation", ["what", "here"], rows)


extractors = typer.Typer(
    cls=VerbGroup,
    help="List, show and check the extractors, which turn samples into embeddings. Each is a card: a TOML file that "
    "states what decides the numbers. Your own card, in a file ending in .toml, is used like the cards of finc-eval "
    "and needs no Python.",
)

ExtractorName = Annotated[str, typer.Argument(help="Name of an extractor, timm:NAME, or path of a card.")]
ExtractorNames = Annotated[list[str], typer.Argument(help="Names of extractors, or paths of cards.")]


@extractors.command(name="list")
def list_extractors(as_json: Json = False) -> None:
    """List the extractors, what they take, and the state of their weights."""
    cards = [load_card(name) for name in available_cards()]
    states = {state.name: state.state for state in weight_states(cards)}
    if as_json:
        listed = [(card.name, card.output.dimension, card.takes, states.get(card.name)) for card in cards]
        print_json([dict(zip(("name", "dimension", "takes", "weights"), row, strict=True)) for row in listed])
        return
    rows = []
    for card in cards:
        weights_here, first = states.get(card.name, "none needed"), card.description.split(". ")[0].rstrip(".")
        rows.append([card.name, card.takes, str(card.output.dimension), weights_here, first])
    print_table("", ["extractor", "takes", "dimension", "weights", "description"], rows)
    print("Missing weights: finc-eval doctor weights fetch NAME. Any network of timm: --extractor timm:NAME.")


@extractors.command()
def show(extractor: ExtractorName, as_json: Json = False) -> None:
    """Show a card: network, weights, preprocessing, output, and common mistakes."""
    from finc_eval.embeddings.recipe import space_of  # takes a second, which a list of extractors need not wait for

    card = load_card(extractor)
    values = plain(card)
    try:
        space = space_of(card)
    except DataError:  # weights that are missing decide it
        space = None
    if as_json:
        print_json(values | {"space": space})
        return
    print(f"{space or card.name}\n\n{card.description}\n\nSource: {card.citation}\n")
    sections = {
        "network": values["loader"],
        **{name: values[name] for name in ("weights", "lpips", "clip", "preprocessing", "output")},
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


@extractors.command()
@works
def check(extractors: ExtractorNames, work: Work, as_json: Json = False) -> None:
    """Embed a sample of noise, and compare with the golden values of the card, if it has any."""
    from finc_eval.extractors.network import check_extractor  # loads torch

    problems: dict[str, str | None] = {}
    for name in extractors:
        try:
            checked = check_extractor(load_card(name), work.device)
        except (UsageError, DataError) as error:
            problems[name] = str(error)
            continue
        wrong = f"{checked.name}: the embedding is not what the card says: check weights, versions and device"
        problems[name] = None if checked.passed else wrong
        if as_json:
            continue
        compared = {
            "agrees": f"the golden values agree, within {checked.deviation or 0:.1e}",
            "differs": f"the golden values differ by {checked.deviation or 0:.1e}",
            "none": "the card has no golden values to compare with",
        }[checked.golden]
        finite = "" if checked.finite else "; not all outputs are finite numbers"
        numbers = f"{checked.dimension} values, norm {checked.norm:.6g}"
        print(f"{checked.name} on {checked.device}: {numbers}; {compared}{finite}")
    if as_json:
        print_json([{"extractor": name, "problem": problem} for name, problem in problems.items()])
    if any(problems.values()):
        raise DataError("; ".join(problem for problem in problems.values() if problem))


weights = typer.Typer(
    cls=VerbGroup,
    help="List, fetch and verify the trained weights of the extractors. They lie in $FINC_EVAL_WEIGHTS, default: "
    "~/.cache/finc-eval/weights. Their SHA-256 is checked before every use. $FINC_EVAL_MIRROR lists addresses to try "
    "first; FINC_EVAL_OFFLINE=1 forbids downloads.",
)

Extractors = Annotated[
    list[str] | None,
    typer.Argument(help="Names of extractors, or paths of cards; default: all that come with finc-eval."),
]


@weights.command(name="list")
def list_weights(extractors: Extractors = None, as_json: Json = False) -> None:
    """List the weights of the extractors, and which of them are here."""
    _print_states(weight_states(map(load_card, extractors or available_cards())), as_json)


@weights.command()
def fetch(extractors: ExtractorNames, quiet: Quiet = False, as_json: Json = False) -> None:
    """Download weights and check them. A download that was cut is resumed."""
    with show_progress(quiet) as progress:
        cards = {name: load_card(name) for name in extractors}
        paths = {name: str(fetch_weights(card, progress)) for name, card in cards.items()}
        for name, card in cards.items():
            if card.lpips is not None:
                paths[f"{name}: LPIPS"] = str(fetch_weights(card.with_lpips(), progress))
    print_json(paths) if as_json else print(*paths.values(), sep="\n")


@weights.command()
def verify(extractors: Extractors = None, as_json: Json = False) -> None:
    """Hash the weights that are here again, and compare them with their cards."""
    states = weight_states(map(load_card, extractors or available_cards()), rehash=True)
    if not extractors:
        states = [state for state in states if state.state != "missing"]
    _print_states(states, as_json)
    bad = [state.name for state in states if state.state in ("wrong", "missing")]
    if bad:
        raise DataError(
            f"the weights of {', '.join(bad)} are missing or wrong: run finc-eval doctor weights fetch {bad[0]}"
        )


@weights.command()
def where(extractors: ExtractorNames, as_json: Json = False) -> None:
    """Print where the weights are, or belong."""
    paths = {state.name: str(state.path) for state in weight_states(map(load_card, extractors))}
    print_json(paths) if as_json else print(*paths.values(), sep="\n")


def _print_states(states: list[WeightState], as_json: bool) -> None:
    if as_json:
        print_json(states)
        return
    rows = []
    for state in states:
        size = "" if state.size is None else f"{state.size / 1e6:,.0f}"
        rows.append([state.name, state.state, size, state.trust, state.license, str(state.path)])
    print_table("", ["extractor", "weights", "MB", "checked against", "license", "file"], rows)


def schema(
    type_name: Annotated[
        str | None, typer.Argument(metavar="[TYPE]", help='Type of result, such as "comparison".')
    ] = None,
) -> None:
    """Print the JSON Schema of a type of result, or list the types.

    The type of a result is the entry "type" of its JSON.
    """
    if type_name is None:
        print(*RESULTS, sep="\n")
        return
    check_choice("TYPE", type_name, RESULTS)
    print_json(result_class(type_name).json_schema())
