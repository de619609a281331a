"""Extractor cards: TOML files that say everything that decides the numbers of an embedding.

The dataclasses below are the format: a card must have their fields, of their types, and no others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import types
import typing
from typing import Any, Literal, TypeVar

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.samples.clips import Clip

Table = TypeVar("Table")
WORDS = {str: "a string", int: "an integer", float: "a finite number", bool: "true or false"}


@dataclasses.dataclass(frozen=True)
class Loader:
    """How the network is made.

    Attributes:
        kind: an entry of `finc_eval.extractors.networks.LOADERS`.
        model: the network's name within that kind ("vit_large_patch14_dinov2.lvd142m" of timm); "" where there is one.
        options: passed to the network's constructor.
    """

    kind: str
    model: str = ""
    options: dict[str, str | int | float | bool] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Weights:
    """A file of weights.

    Attributes:
        file: its name, in the folder of weights and at a mirror; in a user's card also an absolute path, or one that
            begins with a folder (./net.pt), relative to the card.
        license: what it comes under.
        sha256: its SHA-256 (hex), or the first 8 digits or more where its publisher states no more; None where none
            is published: then the digest of the first download is written down, and holds from there on.
        urls: where it can be had.
        package: the installed package that carries it, as "import_name/folder"; None for a download.
        size: bytes, for those who wonder what to expect.
        layout: whose names its tensors have, where they are not the network's own: an entry of
            `finc_eval.extractors.networks.layouts`.
    """

    file: str
    license: str
    sha256: str | None = None
    urls: tuple[str, ...] = ()
    package: str | None = None
    size: int | None = None
    layout: str | None = None


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """What is done to an RGB image, or to every frame of a clip, before the network sees it.

    Attributes:
        size: (height, width) in pixels.
        geometry: "squash" to the size, or resize the short side and "crop" the center.
        crop_fraction: the share of the resized sides that is kept, from their center: 0.875 resizes to 256 for 224;
            "squash" then squashes to 256x256, as timm's crop_mode of that name does.
        method: who resizes. "pil": Pillow on 8-bit pixels, as torchvision does; "clean": Pillow per channel in float,
            clipped and not rounded, as clean-fid does; "tensorflow1": TensorFlow 1's bilinear, as torch-fidelity does;
            "torch": torch.nn.functional.interpolate on floats, as pytorch-fid does.
        interpolation: the filter.
        antialias: whether the filter widens when it shrinks: always with "pil" and "clean", never with "tensorflow1".
        rounding: "uint8" where resized pixels are rounded to 0…255 ("pil"), "none" where not.
        range: the values that 0 and 255 become, before the mean is subtracted.
        mean: subtracted per channel, in units of `range`.
        std: divided by per channel, in the same units.
    """

    size: tuple[int, int]
    geometry: Literal["squash", "crop"]
    method: Literal["pil", "clean", "tensorflow1", "torch"]
    interpolation: Literal["bicubic", "bilinear", "lanczos"]
    antialias: bool
    rounding: Literal["uint8", "none"]
    range: tuple[float, float]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    crop_fraction: float = 1.0


@dataclasses.dataclass(frozen=True)
class Output:
    """Which numbers of the network these are.

    Attributes:
        layer: their name among the network's outputs, which decides them.
        pooling: how the network comes to them, in words for the reader.
        dimension: how many there are.
    """

    layer: str
    pooling: str
    dimension: int

    @property
    def recipe(self) -> dict[str, Any]:
        """What decides the numbers."""
        return {"layer": self.layer, "dimension": self.dimension}


@dataclasses.dataclass(frozen=True)
class Golden:
    """What a right installation gives for one sample of noise.

    The sample is `numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)`, with `shape` (height,
    width, 3) or (frames, height, width, 3); `norm` is the Euclidean norm of its embedding, `first` the embedding's
    first values.
    """

    seed: int
    shape: tuple[int, ...]
    norm: float
    first: tuple[float, ...]
    tolerance: float


@dataclasses.dataclass(frozen=True)
class Card:
    """One extractor.

    Attributes:
        name: what the extractor is called.
        description: in a sentence or two.
        citation: the paper.
        traps: what people get wrong with it.
        loader: the network.
        preprocessing: of images, and of the frames of clips.
        output: the embedding.
        weights: None where none are needed.
        clip: None where the extractor takes images.
        extra: other outputs of the same pass that are kept beside the embedding, by name ("logits").
        golden: None where nobody could compute it yet.
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
    extra: dict[str, Output] = dataclasses.field(default_factory=dict)
    golden: Golden | None = None

    @property
    def takes(self) -> Literal["images", "clips"]:
        """What the extractor is for."""
        return "images" if self.clip is None else "clips"

    @property
    def recipe(self) -> dict[str, Any]:
        """What decides the numbers, save the bytes of the weights; names, prose and places do not."""
        return {
            "loader": dataclasses.asdict(self.loader),
            "preprocessing": dataclasses.asdict(self.preprocessing),
            "clip": self.clip and dataclasses.asdict(self.clip),
            "output": self.output.recipe,
            "extra": {name: output.recipe for name, output in self.extra.items()},
            "layout": self.weights and self.weights.layout,
        }

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the recipe and the published digest of the weights."""
        decisive = self.recipe | {"weights": self.weights and self.weights.sha256}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def _read_table(cls: type[Table], table: dict[str, Any], card: str, section: str) -> Table:
    """Build the dataclass `cls` from a TOML table that has just its fields."""
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    for key in table:
        if key not in fields:
            raise FincEvalError(
                f'{card}: unknown key "{section}{key}"{did_you_mean(key, fields)}: the keys are {", ".join(fields)}'
            )
    values = {}
    for key, field in fields.items():
        if key in table:
            values[key] = _read_value(hints[key], table[key], card, section + key)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise FincEvalError(f'{card}: the key "{section}{key}" is missing: add {_wanted(hints[key])}')
    return cls(**values)


def _read_value(hint: Any, value: Any, card: str, key: str) -> Any:
    """Return `value` as the type `hint`, or refuse it."""
    hint = _present(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType) and type(value) in arguments:
        return value
    if origin is dict and isinstance(value, dict):
        return {name: _read_value(arguments[1], item, card, f"{key}.{name}") for name, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return _read_table(hint, value, card, f"{key}.")
    if origin is tuple and isinstance(value, list):
        of_any_length = arguments[-1] is Ellipsis
        if of_any_length or len(value) == len(arguments):
            kinds = [arguments[0]] * len(value) if of_any_length else arguments
            return tuple(_read_value(kind, item, card, key) for kind, item in zip(kinds, value, strict=True))
    if origin is Literal and any(value == choice and type(value) is type(choice) for choice in arguments):
        return value
    if hint is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if type(value) is hint and hint is not float:
        return value
    raise FincEvalError(f'{card}: "{key}" must be {_wanted(hint)}, got {value!r}')


def _present(hint: Any) -> Any:
    """`X` of `X | None`: TOML has no null, so a key that is there is an X."""
    rest = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    return rest[0] if isinstance(hint, types.UnionType) and len(rest) == 1 else hint


def _wanted(hint: Any) -> str:
    """Say in words what a value of type `hint` is."""
    hint = _present(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return " or ".join(_wanted(kind) for kind in arguments)
    if origin is dict:
        return "a table"
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in arguments)
    if origin is tuple:
        number = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"a list of {number}{WORDS[arguments[0]].split()[1]}s"
    if dataclasses.is_dataclass(hint):
        return "a table"
    return WORDS[hint]


NetworkPrecision = Literal["float32", "bfloat16", "float16"]
"""The arithmetic of a network: float32 is exact on every device, the others run under autocast."""
