"""Extractor cards: the dataclasses that a card's TOML file fills, so its format, and the rules between their values.

A card says everything that decides the numbers of an embedding. It has the fields below, of their types, and no others;
`card_rules` has the rules beyond types, and `catalog` finds and reads cards.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from finc_eval.core.doors import FORBIDDEN
from finc_eval.core.errors import DataError, UsageError, check_positive
from finc_eval.core.record import Record
from finc_eval.samples.clips import CLIPS, MAX_FPS, MIN_FPS, Clip

NetworkPrecision = Literal["float32", "bfloat16", "float16"]
"""Arithmetic of a network: float32 is exact on every device, the others run under autocast."""

CellStatistic = Literal["mean", "deviation"]  # statistic of a channel on a window: mean, or standard deviation

Positive = Annotated[FiniteFloat, Field(gt=0)]

CARDS = "finc_eval.extractors.cards"  # package of the cards that come with finc-eval, and of their tables

BY_FRAMES = ":frames"  # end of the name of an extractor of clips that a network of images makes, frame by frame

TWO_SECONDS = Clip(frames=16, stride=1, windows=1, short="hold", fps=8.0)
"""Frames of a clip that a network of images embeds, unless a card of the user's says otherwise."""

SHA256_DIGITS = 64

RESERVED_FILES = ("pins.json", "verified.json")  # records that earlier copies kept in the folder of weights
RESERVED_ENDS = (".part", ".part.json")  # ends of the names of an unfinished download and of its note
MAX_FILE_NAME = 200  # bytes of the name of a file of weights; file systems take 255, and locks have longer names

RESIZE_METHODS: dict[str, dict[str, tuple[Any, ...]]] = {
    "pil": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("uint8",)},
    "clean": {"interpolation": ("bicubic", "bilinear", "lanczos"), "antialias": (True,), "rounding": ("none",)},
    "tensorflow1": {"interpolation": ("bilinear",), "antialias": (False,), "rounding": ("none",)},
    "torch": {"interpolation": ("bicubic", "bilinear"), "antialias": (True, False), "rounding": ("none", "uint8")},
}
"""Values that each method of resizing supports."""


@dataclass(frozen=True)
class Loader(Record):
    """Choice of the code that makes the network.

    Attributes:
        kind: an entry of `finc_eval.extractors.networks.LOADERS`.
        model: name of the network of that kind, such as timm's "vit_large_patch14_dinov2.lvd142m"; "" where
            there is only one.
        options: keyword arguments of the network's constructor.
    """

    kind: str
    model: str = ""
    options: dict[str, str | int | FiniteFloat | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Weights(Record):
    """A file of trained weights.

    Attributes:
        file: file name, in the folder of weights and on a mirror. In your own card it may also be an absolute path, or
            a path that begins with a folder (./net.pt), relative to the card.
        license: license of the weights.
        sha256: SHA-256 (hex) of the file, or at least its first 8 digits where the publisher states no more. None if
            none is published: then the digest of the first file is recorded, and later files must have it.
        urls: addresses of the file.
        package: installed package that contains the file, as "import_name/folder"; None for a download.
        size: size in bytes, for display.
        layout: naming scheme of the file's tensors where it is not the network's own: an entry of
            `finc_eval.extractors.networks.tensors.LAYOUTS`.
    """

    file: str
    license: str
    sha256: str | None = None
    urls: tuple[str, ...] = ()
    package: str | None = None
    size: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class Preprocessing(Record):
    """Steps from an RGB image, or from each frame of a clip, to the network's input.

    Attributes:
        size: (height, width) in pixels.
        geometry: "squash" resizes both sides to `size`; "crop" resizes the short side and crops the center.
        crop_fraction: share of the resized sides that is kept, from their center: 0.875 resizes to 256 for 224. With
            "squash" the image is first squashed to 256x256, as timm's crop_mode "squash" does.
        method: implementation of the resizing. "pil": Pillow on 8-bit pixels, as in torchvision; "clean": Pillow per
            channel in float, clipped and not rounded, as in clean-fid; "tensorflow1": TensorFlow 1's bilinear, as in
            torch-fidelity; "torch": torch.nn.functional.interpolate on floats, as in pytorch-fid.
        interpolation: resampling filter.
        antialias: whether the filter widens when it shrinks: always with "pil" and "clean", never with "tensorflow1".
        rounding: "uint8" rounds resized pixels to 0…255 ("pil"); "none" keeps them.
        range: values that 0 and 255 become, before the mean is subtracted.
        mean: value subtracted from each channel, in units of `range`.
        std: value that divides each channel, in units of `range`.
    """

    size: tuple[PositiveInt, PositiveInt]
    geometry: Literal["squash", "crop"]
    method: Literal["pil", "clean", "tensorflow1", "torch"]
    interpolation: Literal["bicubic", "bilinear", "lanczos"]
    antialias: bool
    rounding: Literal["uint8", "none"]
    range: tuple[FiniteFloat, FiniteFloat]
    mean: tuple[FiniteFloat, FiniteFloat, FiniteFloat]
    std: tuple[Positive, Positive, Positive]
    crop_fraction: Annotated[Positive, Field(le=1)] = 1.0


@dataclass(frozen=True)
class Output(Record):
    """One output of the network.

    Attributes:
        layer: name among the network's outputs; it decides the numbers.
        pooling: pooling that the network applies, in words for the reader.
        dimension: number of values for each sample.
        frames: pooling over the frames of a clip that a network of images embeds one by one: "mean"; "mean and
            deviation", which doubles the dimension; or "thirds", the means of the first, middle and last third, in this
            order. None for other networks. Further outputs of the card are pooled as the embedding.
    """

    layer: str
    pooling: str
    dimension: PositiveInt
    frames: Literal["mean", "mean and deviation", "thirds"] | None = None

    @property
    def recipe(self) -> dict[str, Any]:
        """Fields that decide the numbers."""
        chosen = {"layer": self.layer, "dimension": self.dimension}
        return chosen if self.frames is None else chosen | {"frames": self.frames}


@dataclass(frozen=True)
class CellLayers(Record):
    """Early maps of the network whose statistics on 7 × 7 windows of an image are kept as its cells.

    Attributes:
        layers: statistics of the channels of each map, by the name of the module whose output it is.
        table: file with the mean and the standard deviation of each number over photographs, one of those that come
            with finc-eval.
        sha256: SHA-256 (hex) of that file.
    """

    layers: dict[str, tuple[CellStatistic, ...]]
    table: str
    sha256: str


@dataclass(frozen=True)
class Head(Record):
    """Last layer of the network: it turns an embedding into scores of classes, and classes name what an image shows.

    Attributes:
        weight: name of the tensor (classes, dimension) in the file of weights.
        bias: name of the tensor (classes,).
        vocabulary: names of the classes: "imagenet-1k".
    """

    weight: str
    bias: str
    vocabulary: Literal["imagenet-1k"]


@dataclass(frozen=True)
class Text(Record):
    """Text tower in the file of weights: open_clip embeds prompts by it, in the space of the images.

    Attributes:
        model: name of open_clip's model, such as "ViT-B-32-quickgelu", whose text tower and tokens it has.
        options: entries of that tower's configuration that differ: "width", "heads", "layers".
    """

    model: str
    options: dict[str, str | int | FiniteFloat | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class GoldenValues(Record):
    """Embedding that a correct installation computes for one sample of noise.

    The sample is `numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)`.

    Attributes:
        seed: seed of the noise.
        shape: (height, width, 3), or (frames, height, width, 3) for clips.
        norm: Euclidean norm of the embedding.
        first: first values of the embedding.
        tolerance: largest relative deviation.
    """

    seed: NonNegativeInt
    shape: tuple[PositiveInt, ...]
    norm: Positive
    first: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    tolerance: Positive


@dataclass(frozen=True)
class Card(Record):
    """One extractor.

    Attributes:
        name: name of the extractor.
        description: one or two sentences.
        citation: paper to cite.
        traps: common mistakes with this extractor.
        loader: code that makes the network.
        preprocessing: preprocessing of images, or of the frames of clips.
        output: the embedding.
        weights: file of weights; None for an extractor without weights.
        clip: choice of a clip's frames from a video; None for an extractor of images.
        extra: further outputs of the same pass that are kept with the embedding, by name ("logits").
        cells: early maps of the same pass that are kept for parts of images; None for an extractor without cells. They
            do not change the embedding, and so are not part of `recipe`.
        head: layer that names what the embeddings show; None if there is none that applies to them.
        text: text tower of the same model; None if there is none.
        lpips: linear layers by which the network measures LPIPS; None without any.
        golden: reference values; None if the weights were not available to compute them.
    """

    name: str
    description: str
    citation: str
    traps: tuple[str, ...]
    loader: Loader
    preprocessing: Preprocessing
    output: Output
    weights: Weights | None = None
    clip: Clip | None = None
    extra: dict[str, Output] = field(default_factory=dict)
    cells: CellLayers | None = None
    head: Head | None = None
    text: Text | None = None
    lpips: Weights | None = None
    golden: GoldenValues | None = None

    @property
    def takes(self) -> Literal["images", "clips"]:
        """Type of samples that the extractor embeds."""
        return "images" if self.clip is None else "clips"

    @property
    def recipe(self) -> dict[str, Any]:
        """Fields that decide the numbers: all but names, prose, addresses, and the bytes of the weights."""
        return {
            "loader": asdict(self.loader),
            "preprocessing": asdict(self.preprocessing),
            "clip": self.clip and asdict(self.clip),
            "output": self.output.recipe,
            "extra": {name: output.recipe for name, output in self.extra.items()},
            "layout": self.weights and self.weights.layout,
        }

    def by_frames(self) -> Card:
        """Return the extractor of clips that embeds frames by this network of images, and takes their mean."""
        if self.clip is not None:
            raise UsageError(f"{self.name} takes clips, and not their frames: name it without {BY_FRAMES}")
        output = replace(self.output, frames="mean")
        return replace(self, name=self.name + BY_FRAMES, clip=TWO_SECONDS, output=output, golden=None)

    def with_lpips(self) -> Card:
        """Return the card with the linear layers of LPIPS as its weights."""
        return replace(self, name=f"LPIPS on {self.name}", weights=self.lpips)

    def resampled(self, fps: float | None) -> Card:
        """Return the same extractor for videos at this rate; None: at the rate of the card."""
        if fps is None:
            return self
        if self.clip is None:
            raise UsageError(f"fps {fps:g} is of clips, and {self.name} takes images: {CLIPS}")
        return replace(self, clip=replace(self.clip, fps=check_positive("fps", fps, MAX_FPS, MIN_FPS)))


def options_of(card: Card) -> str:
    """Say which options a card's network has, such as " (epsilon 0.001)"; "" without any."""
    options = ", ".join(f"{name} {value:g}" for name, value in card.loader.options.items() if isinstance(value, float))
    return f" ({options})" if options else ""


def check_rules(card: Card, where: str) -> None:
    """Check the values that have the right type and still make no sense."""
    for fault in _faults(card):
        raise DataError(f"{where}: {fault}")


def _faults(card: Card) -> Iterator[str]:
    how, golden, weights = card.preprocessing, card.golden, card.weights
    if not how.range[0] < how.range[1]:
        yield f'"preprocessing.range" must be a lower and a higher value, got {list(how.range)}'
    for name, possible in RESIZE_METHODS[how.method].items():
        if getattr(how, name) not in possible:
            choices = " or ".join(json.dumps(choice) for choice in possible)
            got = json.dumps(getattr(how, name))
            yield f'"preprocessing.{name}" must be {choices} with method = "{how.method}", got {got}'
    for name in card.extra:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f'"extra.{name}" must have a name of lower-case letters, digits and underscores'
    if card.cells and card.clip and (card.output.frames is None or card.clip.frames < 3):
        yield '"cells" of clips are those of three or more frames, one by one: set output.frames, or remove [cells]'
    if card.cells and (Path(card.cells.table).name != card.cells.table or not card.cells.layers):
        yield '"cells" must state layers, and the name of a table of finc-eval'
    if card.output.frames and not card.clip:
        yield '"output.frames" pools the frames of clips: add a table [clip], or remove it'
    axes = ("frames", "height", "width", "3") if card.clip else ("height", "width", "3")
    if golden and (len(golden.shape) != len(axes) or golden.shape[-1] != 3):
        yield f'"golden.shape" must be [{", ".join(axes)}], got {list(golden.shape)}'
    if weights is None:
        return
    if fault := _fault_of_file(weights.file):
        yield f'"weights.file" {fault}, got {weights.file!r:.100}'
    if not re.fullmatch("[0-9a-f]{8,64}", weights.sha256 or "0" * 64):
        yield f'"weights.sha256" must be 8 to 64 lower-case hex digits, got {weights.sha256!r}'
    for url in weights.urls:
        if not url.startswith(("https://", "http://", "file://")):
            yield f'"weights.urls" must begin with https://, http:// or file://, got {url!r}'
    if weights.package is not None and not re.fullmatch(r"\w+(/\w[\w.-]*)*", weights.package):
        yield f'"weights.package" must be an import name and folders, such as "package/models", got {weights.package!r}'


def _fault_of_file(file: str) -> str | None:
    """Return what is wrong with the name of a file of weights, or None. Your own card may state a path."""
    name = Path(file).name
    if name in ("", "..") or not file.isprintable() or set(name) & set(FORBIDDEN) or "://" in file:
        return "must name a file, in letters, digits and signs that can be printed"
    if len(os.fsencode(name)) > MAX_FILE_NAME:
        return f"must have at most {MAX_FILE_NAME} bytes"
    if name == file and (name.startswith(".") or name in RESERVED_FILES or name.endswith(RESERVED_ENDS)):
        return "must not be a hidden file, or one of the files that finc-eval itself keeps with weights"
    return None
