"""Extractors by name: the cards that come with finc-eval, your own .toml file, or timm:NAME."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path

from finc_eval.core.doors import read_text, with_home
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.parsed import parse_toml
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE
from finc_eval.core.record import read_table
from finc_eval.extractors.card import BY_FRAMES, CARDS, Card, check_rules

WEIGHTS = (".pth", ".pt", ".safetensors")  # ends of the names of files of weights

DEFAULT_EXTRACTOR = "efficientnet-lite0"
"""Extractor whose trained weights come with the installation: a first comparison needs no download."""


def available_cards() -> list[str]:
    """Return the names of the extractors that come with finc-eval, sorted.

    Example:
        >>> from finc_eval.extractors.catalog import available_cards
        >>> [name for name in available_cards() if name.startswith("dinov2-vits")]
        ['dinov2-vits14', 'dinov2-vits14-reg']
    """
    files = resources.files(CARDS).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_card(name_or_path: str | Path) -> Card:
    """Read and check an extractor card.

    Args:
        name_or_path: name of an extractor that comes with finc-eval; path of a .toml file; path of a file of weights
            (.pth, .pt or .safetensors) whose card comes with finc-eval; or "timm:NAME", a network of timm with the
            preprocessing of timm's own configuration. With ":frames" behind it, a network of images embeds clips, as
            the mean of 16 frames at 8 a second.

    Raises:
        UsageError: the name is unknown, or not a name.
        DataError: the file cannot be read, or is not a valid card; the message names the key.

    Example:
        >>> import finc_eval as fe
        >>> card = fe.load_card("dinov2-vitl14")
        >>> card.takes, card.output.dimension, card.preprocessing.size
        ('images', 1024, (224, 224))
    """
    if not isinstance(name_or_path, str | Path):
        raise not_an_extractor(name_or_path, "the name of an extractor, or the path of a card")
    name = str(name_or_path)
    if name.endswith(BY_FRAMES):
        return load_card(name.removesuffix(BY_FRAMES)).by_frames()
    if name.startswith("timm:"):
        # timm takes seconds to import.
        from finc_eval.extractors.networks.timm_cards import timm_card

        return timm_card(name.removeprefix("timm:"))
    if name.endswith(".toml"):
        try:
            path = with_home(name)
        except DataError as error:
            raise DataError(f"the card {name} cannot be read: {error}") from error
        try:
            text = read_text(path, copies=BYTES_PER_TEXT_BYTE)
        except (OSError, ValueError) as error:  # no such file, not UTF-8
            raise DataError(f"the card {name} cannot be read ({error}): check the path") from error
        card = _read(text, name)
        if card.weights is None or Path(card.weights.file).name == card.weights.file:
            return card
        file = path.absolute().parent / with_home(card.weights.file)  # it is stated relative to the card
        return replace(card, weights=replace(card.weights, file=str(file)))
    if name.endswith(WEIGHTS):
        # torch takes seconds to import.
        from finc_eval.extractors.identify import card_of_file

        return card_of_file(name, all_cards())
    known = available_cards()
    if name not in known:
        near = did_you_mean(name, known)
        every = "finc-eval doctor extractors list shows all" if near else f"choose one of {', '.join(known)}"
        raise UsageError(
            f'unknown extractor "{name}"{near}: {every}; or '
            "pass the path of a card ending in .toml, of a file of weights, or timm:NAME"
        )
    return _packaged(name)


@lru_cache
def all_cards() -> tuple[Card, ...]:
    """Read the cards that come with finc-eval."""
    return tuple(_packaged(name) for name in available_cards())


def _packaged(name: str) -> Card:
    return _read((resources.files(CARDS) / f"{name}.toml").read_text(encoding="utf-8"), name)


def with_the_same_tensors(card: Card) -> list[Card]:
    """Return the cards of finc-eval's own whose files have the tensors of this card's, and that use them otherwise."""
    return [other for other in all_cards() if other.loader != card.loader and _tensors_of(other) == _tensors_of(card)]


def _tensors_of(card: Card) -> tuple[object, ...]:
    """Return what decides the names and shapes of a card's tensors: all but options that are fractions."""
    options = {name: value for name, value in card.loader.options.items() if not isinstance(value, float)}
    return card.loader.kind, card.loader.model, options, card.weights and card.weights.layout


def card_file(extractor: str) -> str | None:
    """Return the path of the card, or of the weights, that an extractor is given by; None for a name."""
    while extractor.endswith(BY_FRAMES):
        extractor = extractor.removesuffix(BY_FRAMES)
    return extractor if extractor.endswith((".toml", *WEIGHTS)) and not extractor.startswith("timm:") else None


def not_an_extractor(given: object, forms: str) -> UsageError:
    """Return the error for what is not an extractor; for a function or network, it says what to do instead."""
    if callable(given):
        return UsageError(
            f"extractor must be {forms}, got a {type(given).__name__}, which has no digest to know its embeddings by: "
            "compute them yourself, and pass the array of shape (n, d) instead of the samples"
        )
    return UsageError(f'extractor must be {forms}, got {given!r}: pass "{DEFAULT_EXTRACTOR}" for example')


def _read(text: str, name: str) -> Card:
    where = f"card {name}"
    card = read_table(Card, parse_toml(text, where), where)
    check_rules(card, where)
    return card


def card_again(made_by: str) -> str:
    """Return the name of the extractor behind embeddings, if it can be loaded by its name."""
    if made_by.startswith("timm:") or made_by.removesuffix(BY_FRAMES) in available_cards():
        return made_by
    raise UsageError(f"the embeddings were made with a card of your own, {made_by}: pass its path as --extractor")
