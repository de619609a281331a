"""Extractors by name: the cards that come with finc-eval, a user's own .toml file, or timm:NAME."""

from __future__ import annotations

import dataclasses
import tomllib
from importlib import resources
from pathlib import Path

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.extractors.card import Card, _read_table
from finc_eval.extractors.card_rules import _faults

DEFAULT_EXTRACTOR = "efficientnet-lite0"
"""Trained weights that come with the installation: a first comparison needs no download."""


def available_cards() -> list[str]:
    """Return the names of the extractors that come with finc-eval, sorted."""
    cards = resources.files("finc_eval.extractors.cards").iterdir()
    return sorted(card.name.removesuffix(".toml") for card in cards if card.name.endswith(".toml"))


def load_card(name_or_path: str | Path) -> Card:
    """Read and check a card.

    Args:
        name_or_path: the name of an extractor that comes with finc-eval; the path of a .toml file; or "timm:NAME", for
            a network of timm as timm's own configuration says it is used.

    Raises:
        FincEvalError: there is no such card, or it is not as the dataclasses of this module say.
    """
    name = str(name_or_path)
    if name.startswith("timm:"):
        # timm takes seconds to import.
        from finc_eval.extractors.networks.timm_cards import timm_card

        return timm_card(name.removeprefix("timm:"))
    if name.endswith(".toml"):
        try:
            text = Path(name).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError) as error:  # no such file, no UTF-8, no such home
            raise FincEvalError(f"the card {name} cannot be read ({error}): check the path") from error
    elif name in available_cards():
        text = (resources.files("finc_eval.extractors.cards") / f"{name}.toml").read_text(encoding="utf-8")
    else:
        known = available_cards()
        raise FincEvalError(
            f'there is no extractor "{name}"{did_you_mean(name, known)}: choose one of {", ".join(known)}, '
            "pass the path of a card ending in .toml, or timm:NAME"
        )
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FincEvalError(f"the card {name} is no valid TOML: {error}") from error
    card = _read_table(Card, table, f"card {name}", "")
    for wrong in _faults(card):
        raise FincEvalError(f"card {name}: {wrong}")
    return _with_own_files(card, Path(name).expanduser()) if name.endswith(".toml") else card


def _with_own_files(card: Card, path: Path) -> Card:
    """Make a path of weights absolute that the user's card says relative to itself."""
    if card.weights is None or Path(card.weights.file).name == card.weights.file:
        return card
    file = str(path.absolute().parent / Path(card.weights.file).expanduser())
    return dataclasses.replace(card, weights=dataclasses.replace(card.weights, file=file))
