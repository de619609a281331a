"""Rules that a card keeps beyond the types of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card, Golden, Preprocessing, Weights
from finc_eval.samples.clips import Clip

METHODS: dict[str, dict[str, tuple[Any, ...]]] = {
    "pil": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("uint8",)},
    "clean": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("none",)},
    "tensorflow1": {"interpolation": ("bilinear",), "antialias": (False,), "rounding": ("none",)},
    "torch": {"interpolation": ("bicubic", "bilinear"), "antialias": (True, False), "rounding": ("none", "uint8")},
}
"""Values that each method of resizing supports."""


def check_rules(card: Card, where: str) -> None:
    """Check the values that have the right type and still make no sense.

    Args:
        card: the card.
        where: what to call it in a message.

    Raises:
        DataError: a value breaks a rule; the message names its key.
    """
    for fault in _faults(card):
        raise DataError(f"{where}: {fault}")


def _faults(card: Card) -> Iterator[str]:
    yield from _faults_of_preprocessing(card.preprocessing)
    for name, output in {"output": card.output, **{f"extra.{name}": item for name, item in card.extra.items()}}.items():
        if output.dimension < 1:
            yield f'"{name}.dimension" must be positive, got {output.dimension}'
    for name in card.extra:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f'"extra.{name}" must have a name of lower-case letters, digits and underscores'
    if card.weights:
        yield from _faults_of_weights(card.weights)
    if card.clip:
        yield from _faults_of_clip(card.clip)
    if card.golden:
        yield from _faults_of_golden(card.golden, of_clip=card.clip is not None)


def _faults_of_preprocessing(how: Preprocessing) -> Iterator[str]:
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


def _faults_of_weights(weights: Weights) -> Iterator[str]:
    if Path(weights.file).name in ("", "..") or "\0" in weights.file:
        yield f'"weights.file" must name a file, got {weights.file!r}'
    if not re.fullmatch("[0-9a-f]{8,64}", weights.sha256 or "0" * 64):
        yield f'"weights.sha256" must be 8 to 64 lower-case hex digits, got {weights.sha256!r}'
    for url in weights.urls:
        if not url.startswith(("https://", "http://", "file://")):
            yield f'"weights.urls" must begin with https://, http:// or file://, got {url!r}'
    if weights.package is not None and not re.fullmatch(r"\w+(/[\w.-]+)*", weights.package):
        yield f'"weights.package" must be an import name and folders, such as "package/models", got {weights.package!r}'


def _faults_of_clip(clip: Clip) -> Iterator[str]:
    for field in ("frames", "stride", "windows"):
        if getattr(clip, field) < 1:
            yield f'"clip.{field}" must be at least 1, got {getattr(clip, field)}'
    if clip.fps is not None and not clip.fps > 0:
        yield f'"clip.fps" must be positive, got {clip.fps}'


def _faults_of_golden(golden: Golden, of_clip: bool) -> Iterator[str]:
    axes = ("frames", "height", "width", "3") if of_clip else ("height", "width", "3")
    if len(golden.shape) != len(axes) or min(golden.shape) < 1 or golden.shape[-1] != 3:
        yield f'"golden.shape" must be [{", ".join(axes)}], got {list(golden.shape)}'
    if golden.seed < 0:
        yield f'"golden.seed" must be at least 0, got {golden.seed}'
    if not golden.first:
        yield '"golden.first" must hold at least one value, got []'
    for field in ("norm", "tolerance"):
        if not getattr(golden, field) > 0:
            yield f'"golden.{field}" must be positive, got {getattr(golden, field)}'
