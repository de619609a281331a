"""The last layer of an extractor's network, read from its file of weights without making the network."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import torch

from finc_eval.core.doors.reading import read_text
from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.tensors import load_tensors
from finc_eval.extractors.weights import check_weights, locate


@dataclass(frozen=True)
class Classifier:
    """A linear layer with named classes.

    Attributes:
        weight: shape (c, d).
        bias: shape (c,).
        names: names of the classes, c of them.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    names: tuple[str, ...]

    def probabilities(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the probability of each class, shape (n, c), from embeddings of shape (n, d)."""
        return torch.softmax(rows.float().cpu() @ self.weight.T + self.bias, 1)


def load_classifier(card: Card) -> Classifier | None:
    """Read the card's last layer; None if it states none or its weights are not on this machine."""
    if card.head is None or card.weights is None or locate(card.weights) is None:
        return None
    found = check_weights(card)
    names = imagenet_names()
    if found is None or names is None:
        return None
    tensors = load_tensors(found[0])
    weight, bias = (
        _tensor(card, tensors, name, shape)
        for name, shape in ((card.head.weight, (len(names), card.output.dimension)), (card.head.bias, (len(names),)))
    )
    return Classifier(weight, bias, names)


def imagenet_names() -> tuple[str, ...] | None:
    """Return the first name of each of the 1000 classes of ImageNet; None if timm does not have its lists.

    They are timm's, read without importing it, which takes seconds.
    """
    spec = importlib.util.find_spec("timm")
    folder = Path((spec.submodule_search_locations or [""])[0] if spec else "") / "data" / "_info"
    try:
        synsets = read_text(folder / "imagenet_synsets.txt").split()
        lines = read_text(folder / "imagenet_synset_to_lemma.txt").splitlines()
    except OSError:
        return None
    lemmas = dict(line.split("\t", 1) for line in lines)
    return tuple(lemmas[synset].partition(",")[0] for synset in synsets)


def _tensor(card: Card, tensors: dict[str, torch.Tensor], name: str, shape: tuple[int, ...]) -> torch.Tensor:
    if name not in tensors:
        raise DataError(
            f'card {card.name}: its weights have no tensor "{name}"{did_you_mean(name, tensors)}: '
            "correct the table [head]"
        )
    if tuple(tensors[name].shape) != shape:
        raise DataError(
            f"card {card.name}: the tensor {name} has shape {tuple(tensors[name].shape)}, not {shape}: "
            "correct the table [head]"
        )
    return tensors[name].float()
