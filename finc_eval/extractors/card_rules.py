"""Rules that a card keeps beyond the types and ranges of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card, Weights

RESIZE_METHODS: dict[str, dict[str, tuple[Any, ...]]] = {
    "pil": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("uint8",)},
    "clean": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("none",)},
    "tensorflow1": {"interpolation": ("bilinear",), "antialias": (False,), "rounding": ("none",)},
    "torch": {"interpolation": ("bicubic", "bilinear"), "antialias": (True, False), "rounding": ("none", "uint8")},
}
"""Values that each method of resizing supports."""


def check_rules(card: Card, where: str) -> None:
    """Check the values that have the right type and still make no sense."""
    for fault in _faults(card):
        raise DataError(f"{where}: {fault}")


def _faults(card: Card) -> Iterator[str]:
    how, golden = card.preprocessing, card.golden
    if not how.range[0] < how.range[1]:
        yield f'"preprocessing.range" must be a lower and a higher value, got {list(how.range)}'
    for field, possible in RESIZE_METHODS[how.method].items():
        if getattr(how, field) not in possible:
            choices = " or ".join(json.dumps(choice) for choice in possible)
            got = json.dumps(getattr(how, field))
            yield f'"preprocessing.{field}" must be {choices} with method = "{how.method}", got {got}'
    for name in card.extra:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f'"extra.{name}" must have a name of lower-case letters, digits and underscores'
    if card.output.frames and not card.clip:
        yield '"output.frames" pools the frames of clips: add a table [clip], or remove it'
    axes = ("frames", "height", "width", "3") if card.clip else ("height", "width", "3")
    if golden and (len(golden.shape) != len(axes) or golden.shape[-1] != 3):
        yield f'"golden.shape" must be [{", ".join(axes)}], got {list(golden.shape)}'
    if card.weights:
        yield from _faults_of_weights(card.weights)


def _faults_of_weights(weights: Weights) -> Iterator[str]:
    if Path(weights.file).name in ("", "..") or "\0" in weights.file:
        yield f'"weights.file" must name a file, got {weights.file!r}'
    if not re.fullmatch("[0-9a-f]{8,64}", weights.sha256 or "0" * 64):
        yield f'"weights.sha256" must be 8 to 64 lower-case hex digits, got {weights.sha256!r}'
    for url in weights.urls:
        if not url.startswith(("https://", "http://", "file://")):
            yield f'"weights.urls" must begin with https://, http:// or file://, got {url!r}'
    if weights.package is not None and not re.fullmatch(r"\w+(/\w[\w.-]*)*", weights.package):
        yield f'"weights.package" must be an import name and folders, such as "package/models", got {weights.package!r}'
