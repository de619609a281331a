"""Networks by the `loader.kind` of their card; one module per kind."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.extractors.card import Card

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
"""The module of each kind. It has `create(card)`, a network whose tensors a file of weights fills, and if that does not
return outputs by name, `Outputs(network)`, which does; or `load(card, weights)`, if there is nothing to fill."""


def load_backbone(card: Card, device: torch.device, weights: Path | None = None) -> torch.nn.Module:
    """Return the card's network on `device`, frozen and in evaluation mode.

    It maps (n, 3, height, width) or (n, 3, frames, height, width) float32, normalized as the card says, to its outputs
    by the names of their layers, (n, dimension) each: those of `card.output` and `card.extra`, pooled.

    Args:
        card: names the network.
        device: where to put it.
        weights: the checked file of its weights; None where the card has none.

    Raises:
        FincEvalError: the card asks for a kind of loader there is none of, or its loader or the file refuses it.
    """
    module = loader(card)
    if hasattr(module, "load"):
        network = module.load(card, weights)
    else:
        # Seconds of import.
        from finc_eval.extractors.networks.tensors import filled

        network = with_outputs(module, filled(module.create(card), card, weights))
    ready: torch.nn.Module = network.requires_grad_(False).eval().to(device)
    return ready


def loader(card: Card) -> ModuleType:
    """The module that makes the card's network.

    Raises:
        FincEvalError: there is none of that kind.
    """
    kind = card.loader.kind
    if kind not in LOADERS:
        raise FincEvalError(
            f'card {card.name}: there is no loader.kind "{kind}"{did_you_mean(kind, LOADERS)}: '
            f"choose one of {', '.join(LOADERS)}"
        )
    return import_module(f"finc_eval.extractors.networks.{LOADERS[kind]}")


def with_outputs(module: ModuleType, network: torch.nn.Module) -> torch.nn.Module:
    """The network of a loader's `create`, with outputs by name."""
    named: torch.nn.Module = module.Outputs(network) if hasattr(module, "Outputs") else network
    return named
