"""Networks by the `loader.kind` of their card; one module per kind."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from finc_eval.cards import Card
from finc_eval.errors import FincEvalError, did_you_mean

if TYPE_CHECKING:
    import torch

LOADERS = {
    "pixels": "pixels",
    "timm": "timm_models",
    "torchvision": "torchvision_models",
    "fid-inception": "fid_inception",
    "torchscript": "torchscript",
    "i3d": "i3d",
    "torchvision-video": "torchvision_video",
    "transnetv2": "transnetv2",
}
"""The module of each kind. It has `load(card, weights)`: from a card and the path of its checked weights, None where it
has none, to a network in evaluation mode. The network maps (n, 3, height, width) or (n, 3, frames, height, width)
float32, normalised as the card says, to its outputs by the names of their layers, (n, dimension) each: those of
`card.output` and `card.extra`, pooled."""


def load_backbone(card: Card, device: torch.device, weights: Path | None = None) -> torch.nn.Module:
    """Return the card's network on `device`, in evaluation mode.

    Raises:
        FincEvalError: the card asks for a kind of loader there is none of, or its loader refuses the card.
    """
    kind = card.loader.kind
    if kind not in LOADERS:
        raise FincEvalError(
            f'card {card.name}: there is no loader.kind "{kind}"{did_you_mean(kind, LOADERS)}: '
            f"choose one of {', '.join(LOADERS)}"
        )
    network: torch.nn.Module = import_module(f"finc_eval.backbones.{LOADERS[kind]}").load(card, weights)
    return network.to(device)
