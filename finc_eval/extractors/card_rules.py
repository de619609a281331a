"""Rules a card must keep beyond the types of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finc_eval.extractors.card import Card, Weights

METHODS: dict[str, dict[str, tuple[Any, ...]]] = {
    "pil": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("uint8",)},
    "clean": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("none",)},
    "tensorflow1": {"interpolation": ("bilinear",), "antialias": (False,), "rounding": ("none",)},
    "torch": {"interpolation": ("bicubic", "bilinear"), "antialias": (True, False), "rounding": ("none", "uint8")},
}
"""What each method of resizing can do."""


def _faults(card: Card) -> Iterator[str]:
    """Say which values have the right type and still make no sense."""
    how = card.preprocessing
    if min(how.size) < 1:
        yield f'"preprocessing.size" must be positive, got {list(how.size)}'
    if not min(how.std) > 0:
        yield f'"preprocessing.std" must be positive, got {list(how.std)}'
    if not how.range[0] < how.range[1]:
        yield f'"preprocessing.range" must be a lower and a higher value, got {list(how.range)}'
    if not 0 < how.crop_fraction <= 1:
        yield f'"preprocessing.crop_fraction" must be above 0 and at most 1, got {how.crop_fraction}'
    for field, possible in METHODS[how.method].items():
        if getattr(how, field) not in possible:
            choices = " or ".join(json.dumps(choice) for choice in possible)
            got = json.dumps(getattr(how, field))
            yield f'"preprocessing.{field}" must be {choices} with method = "{how.method}", got {got}'
    for name, output in {"output": card.output, **{f"extra.{name}": item for name, item in card.extra.items()}}.items():
        if output.dimension < 1:
            yield f'"{name}.dimension" must be positive, got {output.dimension}'
    for name in card.extra:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f'"extra.{name}" must have a name of lower-case letters, digits and underscores'
    if card.weights:
        yield from _faults_of_weights(card.weights)
    if card.clip:
        for field in ("frames", "stride", "windows"):
            if getattr(card.clip, field) < 1:
                yield f'"clip.{field}" must be at least 1, got {getattr(card.clip, field)}'
        if card.clip.fps is not None and not card.clip.fps > 0:
            yield f'"clip.fps" must be positive, got {card.clip.fps}'
    if card.golden:
        wanted = 4 if card.clip else 3
        if len(card.golden.shape) != wanted or min(card.golden.shape) < 1 or card.golden.shape[-1] != 3:
            words = "[frames, height, width, 3]" if card.clip else "[height, width, 3]"
            yield f'"golden.shape" must be {words}, got {list(card.golden.shape)}'
        if card.golden.seed < 0 or not card.golden.norm > 0:
            yield '"golden.seed" must not be negative, and "golden.norm" be positive'
        if not card.golden.first or not card.golden.tolerance > 0:
            yield '"golden.first" must hold a value or more, and "golden.tolerance" be positive'


def _faults_of_weights(weights: Weights) -> Iterator[str]:
    if Path(weights.file).name in ("", "..") or "\0" in weights.file:
        yield f'"weights.file" must name a file, got {weights.file!r}'
    if not re.fullmatch("[0-9a-f]{8,64}", weights.sha256 or "0" * 64):
        yield f'"weights.sha256" must be 8 to 64 lower-case hex digits, got {weights.sha256!r}'
    for url in weights.urls:
        if not url.startswith(("https://", "http://", "file://")):
            yield f'"weights.urls" must begin with https://, http:// or file://, got {url!r}'
    if weights.package is not None and not re.fullmatch(r"\w+(/[\w.-]+)*", weights.package):
        yield f'"weights.package" must be an import name and folders, as "package/models", got {weights.package!r}'
