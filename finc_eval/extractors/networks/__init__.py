"""Networks: one module for each `loader.kind` of a card."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.tensors import WithoutDraws, fill_network

LOADERS = {
    "pixels": "pixels",
    "timm": "timm_cards",
    "torchvision": "torchvision_models",
    "fid-inception": "fid_inception",
    "torchscript": "torchscript",
    "i3d": "i3d",
    "torchvision-video": "torchvision_models",
    "transnetv2": "transnetv2",
    "motion": "motion",
}
"""Module of each kind.

It has `create(card)`, which makes a network for the tensors of a file of weights, and `Outputs(network)` if that
network does not return its outputs by name; or `load(card, weights)` if the file is the network.
"""

WRITTEN_OUT = {("timm", "tf_efficientnet_lite0"): "efficientnet_lite"}
"""Module of networks of other packages that are written out here, by the kind of the loader and the model.

Importing timm takes 1.5 of the 10.4 CPU seconds of embedding 500 photographs by the default extractor.
"""

WITHOUT_CHOICE = ("pixels", "fid-inception", "transnetv2", "motion")  # kinds of one network without options


def load_backbone(card: Card, device: torch.device, weights: Path | None = None) -> torch.nn.Module:
    """Return the card's network on `device`, frozen and in evaluation mode.

    It maps (n, 3, height, width) or (n, 3, frames, height, width) float32, normalized as the card says, to a dict of
    pooled outputs, (n, dimension) each, by the name of their layer. One with `takes_times` also takes the times of the
    frames in seconds, (n, frames).
    """
    module = loader_module(card)
    if hasattr(module, "load"):
        network = module.load(card, weights)
    else:
        with WithoutDraws():
            made = module.create(card)
        network = with_outputs(module, fill_network(made, card, weights))
    if card.output.frames is not None:
        network = FrameByFrame(network, card.output.frames)
    ready: torch.nn.Module = network.requires_grad_(False).eval().to(device)
    return ready


class FrameByFrame(torch.nn.Module):
    """A network of images for clips: it embeds each frame, and pools the outputs over the frames as a card says."""

    def __init__(self, network: torch.nn.Module, pooling: str) -> None:
        super().__init__()
        self.network, self.pooling = network, pooling

    def forward(self, clips: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the pooled outputs of clips, (n, 3, frames, height, width), by the name of their layer."""
        pooled = {}
        for name, rows in self.network(clips.transpose(1, 2).flatten(0, 1)).items():
            frames = rows.view(len(clips), -1, rows.shape[1])
            parts = frames.tensor_split(3, dim=1) if self.pooling == "thirds" else [frames]
            values = [part.mean(1) for part in parts]
            if self.pooling == "mean and deviation":
                values.append(frames.std(1, correction=0))
            pooled[name] = torch.cat(values, dim=1)
        return pooled


def loader_module(card: Card) -> ModuleType:
    """Import the module that makes the card's network."""
    kind = card.loader.kind
    if kind not in LOADERS:
        raise DataError(
            f'card {card.name}: unknown loader.kind "{kind}"{did_you_mean(kind, LOADERS)}: '
            f"choose one of {', '.join(LOADERS)}"
        )
    if kind in WITHOUT_CHOICE and (card.loader.model or card.loader.options):
        raise DataError(
            f"card {card.name}: the loader {kind} has one network and no options, got {card.loader.model!r} and "
            f"{card.loader.options}: remove them"
        )
    written_out = None if card.loader.options else WRITTEN_OUT.get((kind, card.loader.model or ""))
    return import_module(f"finc_eval.extractors.networks.{written_out or LOADERS[kind]}")


def with_outputs(module: ModuleType, network: torch.nn.Module) -> torch.nn.Module:
    """Return the network that `module.create` made, with outputs by name."""
    named: torch.nn.Module = module.Outputs(network) if hasattr(module, "Outputs") else network
    return named
