"""Cards for a file of weights: it is known by its digest, else by the names and shapes of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from finc_eval.core.digest import sha256_of_file
from finc_eval.core.doors import with_home
from finc_eval.core.errors import DataError
from finc_eval.extractors.card import SHA256_DIGITS, Card, options_of
from finc_eval.extractors.networks import loader_module
from finc_eval.extractors.networks.tensors import Tensors, differences, load_tensors, renamed


def card_of_file(name: str, cards: Sequence[Card]) -> Card:
    """Return the one of these cards whose weights a file holds, to be used with that file.

    Raises:
        DataError: the file cannot be read, or is of no card or of several; the message names them.
    """
    path = with_home(name).absolute()
    try:
        status = path.stat()
    except (OSError, RuntimeError) as error:
        raise DataError(f"{name} cannot be read ({error}): check the path") from error
    digest = _digest(path, status.st_size, status.st_mtime_ns)
    stated = {card.name: card.weights.sha256 for card in cards if card.weights and card.weights.sha256}
    stating = [card for card in cards if digest.startswith(stated.get(card.name, "-"))]
    if not stating:
        alike = _alike(path, cards)
        stating = [card for card in alike if len(stated.get(card.name, "")) < SHA256_DIGITS]
        if alike and not stating:
            names = " and of ".join(card.name for card in alike)
            raise DataError(
                f"{name} has the tensors of {names}, and another digest, {digest}: write a card of your own for it"
            )
    if not stating:
        raise DataError(f"{name} is not the file of a card that comes with finc-eval: write a card of your own for it")
    if len(stating) > 1:
        choices = " or ".join(f"{card.name}{options_of(card)}" for card in stating)
        files = {card.weights.file: None for card in stating if card.weights}  # in the order of the cards, each once
        raise DataError(
            f"{name} could be of {choices}: name one of them as the extractor, and copy the file to the folder of "
            f"weights as {' or '.join(files)}{', in this order' if len(files) > 1 else ''}"
        )
    (card,) = stating
    return replace(card, weights=card.weights and replace(card.weights, file=str(path)))


@lru_cache
def _digest(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 (hex) of a file of this size and time."""
    return sha256_of_file(path)


def _alike(path: Path, cards: Sequence[Card]) -> list[Card]:
    """Return the cards whose networks have the tensors of a file."""
    tensors = load_tensors(path)
    return [card for card in cards if card.weights is not None and _fits(card, tensors)]


def _fits(card: Card, tensors: Tensors) -> bool:
    module = loader_module(card)
    if hasattr(module, "load"):  # the file is the network
        return False
    with torch.device("meta"):  # shapes without numbers
        network = module.create(card)
    try:
        named = renamed(tensors, card, network)
    except Exception:  # a layout that does not know the names or shapes raises almost anything, as timm's do
        return False
    return not differences(network, named)
