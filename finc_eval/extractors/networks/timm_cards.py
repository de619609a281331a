"""Pretrained networks of timm, and their cards, made from timm's own configuration."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, Literal

import timm
import torch

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.extractors.card import Card, Loader, Output, Preprocessing, Weights

GEOMETRIES: dict[str, Literal["crop", "squash"]] = {"center": "crop", "squash": "squash"}
INTERPOLATIONS = ("bicubic", "bilinear", "lanczos")


def timm_card(name: str) -> Card:
    """Make the card of timm's network `name`, such as "resnet18.a1_in1k"; without a tag, of its default weights.

    Size, crop, filter, mean and deviation follow timm's evaluation; the embedding is the input of the last layer.
    timm does not publish digests, so the first file is trusted and pinned.
    """
    known = timm.list_models(pretrained=True)
    config: Any = None
    with suppress(RuntimeError):  # the network is known, the tag is not
        config = timm.get_pretrained_cfg(name)
    if config is None or not (config.hf_hub_id or config.url):
        raise UsageError(
            f'timm {timm.__version__} has no trained weights of "{name}"{did_you_mean(name, known)}: '
            f"choose one of its {len(known)} (timm.list_models(pretrained=True))"
        )
    full = f"{config.architecture}.{config.tag}" if config.tag else str(config.architecture)
    try:  # neither weights nor memory are needed
        with torch.device("meta"), torch.inference_mode():
            outputs = Outputs(timm.create_model(full, pretrained=False)).eval()(torch.empty(1, *config.input_size))
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"timm's {full} does not give one row of features for each image ({error}): choose another network"
        ) from error
    dimensions = {layer: rows[0].numel() for layer, rows in outputs.items()}
    file, url = f"{full}.safetensors", f"https://huggingface.co/{config.hf_hub_id}/resolve/main/model.safetensors"
    if not config.hf_hub_id:
        file, url = PurePosixPath(config.url).name, config.url
    extra = {"logits": Output("logits", "none", dimensions["logits"])} if "logits" in dimensions else {}
    return Card(
        name=f"timm:{full}",
        description=f"{full} of timm, used as timm's configuration says.",
        citation="Wightman: PyTorch Image Models, https://github.com/huggingface/pytorch-image-models.",
        traps=("Made from timm's configuration, not checked by hand; its weights are trusted on their first use.",),
        loader=Loader("timm", full),
        preprocessing=_preprocessing(full, config),
        output=Output("features", "the network's own", dimensions["features"]),
        weights=Weights(file, config.license or "not stated by timm", urls=(url,), layout="timm"),
        extra=extra,
    )


def _preprocessing(name: str, config: Any) -> Preprocessing:
    channels, height, width = config.input_size
    for what, value, possible in (
        ("channels", channels, (3,)),
        ("crop_mode", config.crop_mode, tuple(GEOMETRIES)),
        ("interpolation", config.interpolation, INTERPOLATIONS),
    ):
        if value not in possible:
            raise UsageError(
                f"timm uses {name} with {what} {value!r}, which this card cannot state: write a card of your own"
            )
    return Preprocessing(
        size=(height, width),
        geometry=GEOMETRIES[config.crop_mode],
        method="pil",
        interpolation=config.interpolation,
        antialias=True,
        rounding="uint8",
        range=(0.0, 1.0),
        mean=tuple(config.mean),
        std=tuple(config.std),
        crop_fraction=float(config.crop_pct),
    )


class Outputs(torch.nn.Module):
    """Map (n, 3, height, width) to outputs by name, (n, d) each.

    "features": the input of the last layer, after the network's own pooling and norm. "cls": the class token after the
    norm of the trunk, for transformers that have one. "logits": the output of the last layer, if there is one. timm
    does not say what that layer is for, so it is also called "projection": in CLIP's image towers it leads into the
    space shared with text.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        trunk = self.network.forward_features(images)
        outputs = {"features": self.network.forward_head(trunk, pre_logits=True)}
        if getattr(self.network, "cls_token", None) is not None and trunk.ndim == 3:
            outputs["cls"] = trunk[:, 0]
        if self.network.num_classes > 0:
            outputs["logits"] = outputs["projection"] = self.network.forward_head(trunk)
        return outputs


def create(card: Card) -> torch.nn.Module:
    """Make the card's network with random weights."""
    model = card.loader.model
    if not timm.is_model(model):
        known = timm.list_models()
        near = did_you_mean(model, known) or did_you_mean(model.partition(".")[0], known)
        raise DataError(
            f'card {card.name}: timm {timm.__version__} has no network "{model}"{near}: '
            "correct loader.model, or install another version of timm"
        )
    try:
        options: dict[str, Any] = dict(card.loader.options)
        network: torch.nn.Module = timm.create_model(model, pretrained=False, **options)
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise DataError(
            f"card {card.name}: timm cannot make {model} with {card.loader.options} ({error}): correct loader.options"
        ) from error
    return network
