"""Extractor cards: TOML files that say everything that decides the numbers of an embedding.

The dataclasses below are the format: a card must have their fields, of their types, and no others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
import types
import typing
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from finc_eval.errors import FincEvalError, did_you_mean

Table = TypeVar("Table")
WORDS = {str: "a string", int: "an integer", float: "a number"}


@dataclasses.dataclass(frozen=True)
class Loader:
    """How the network is made: `kind` names an entry of `finc_eval.backbones`."""

    kind: str


@dataclasses.dataclass(frozen=True)
class Weights:
    """A file of weights, its SHA-256 (hex) and the licence it comes under."""

    file: str
    sha256: str
    licence: str


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """What is done to an RGB image before the network sees it.

    Attributes:
        size: (height, width) in pixels.
        geometry: "squash" to the size, or resize the short side and "crop" the centre.
        interpolation: Pillow's filter; all of them are antialiased.
        antialias: true, said aloud because other tools differ in it.
        mean: subtracted per channel, in units of pixels scaled to [0, 1].
        std: divided by per channel, in the same units.
    """

    size: tuple[int, int]
    geometry: Literal["squash", "crop"]
    interpolation: Literal["bicubic", "bilinear", "lanczos"]
    antialias: Literal[True]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class Output:
    """Which numbers of the network are the embedding, and how many there are."""

    layer: str
    pooling: str
    dimension: int


@dataclasses.dataclass(frozen=True)
class Golden:
    """What a right installation gives for one image of noise.

    The image is `numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)`, with `shape`
    (height, width, 3); `norm` is the Euclidean norm of its embedding, `first` the embedding's first values.
    """

    seed: int
    shape: tuple[int, int, int]
    norm: float
    first: tuple[float, ...]
    tolerance: float


@dataclasses.dataclass(frozen=True)
class Card:
    """One extractor. `weights` is None where none are needed, `golden` where a user's card has none."""

    name: str
    description: str
    citation: str
    traps: tuple[str, ...]
    loader: Loader
    preprocessing: Preprocessing
    output: Output
    weights: Weights | None = None
    golden: Golden | None = None

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what decides the numbers; names, prose and the place of the weights do not."""
        decisive = {
            "loader": dataclasses.asdict(self.loader),
            "weights": self.weights and self.weights.sha256,
            "preprocessing": dataclasses.asdict(self.preprocessing),
            "output": dataclasses.asdict(self.output),
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def available_cards() -> list[str]:
    """Return the names of the extractors that come with finc-eval, sorted."""
    cards = resources.files("finc_eval.extractors").iterdir()
    return sorted(card.name.removesuffix(".toml") for card in cards if card.name.endswith(".toml"))


def load_card(name_or_path: str | Path) -> Card:
    """Read and check a card.

    Args:
        name_or_path: the name of an extractor that comes with finc-eval, or the path of a .toml file.

    Raises:
        FincEvalError: there is no such card, or it is not as the dataclasses of this module say.
    """
    name = str(name_or_path)
    if name.endswith(".toml"):
        try:
            text = Path(name).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FincEvalError(f"the card {name} cannot be read ({error}): check the path") from error
    elif name in available_cards():
        text = (resources.files("finc_eval.extractors") / f"{name}.toml").read_text(encoding="utf-8")
    else:
        known = available_cards()
        raise FincEvalError(
            f'there is no extractor "{name}"{did_you_mean(name, known)}: choose one of {", ".join(known)}, '
            "or pass the path of a card ending in .toml"
        )
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FincEvalError(f"the card {name} is no valid TOML: {error}") from error
    card = _read_table(Card, table, f"card {name}", "")
    _check_ranges(card, f"card {name}")
    return card


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
        elif field.default is dataclasses.MISSING:
            raise FincEvalError(f'{card}: the key "{section}{key}" is missing: add {_wanted(hints[key])}')
    return cls(**values)


def _read_value(hint: Any, value: Any, card: str, key: str) -> Any:
    """Return `value` as the type `hint`, or refuse it."""
    if isinstance(hint, types.UnionType):  # `X | None`: TOML has no null, so a key that is there is an X
        hint = typing.get_args(hint)[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return _read_table(hint, value, card, f"{key}.")
    if origin is tuple and isinstance(value, list):
        of_any_length = arguments[-1] is Ellipsis
        if of_any_length or len(value) == len(arguments):
            kinds = [arguments[0]] * len(value) if of_any_length else arguments
            return tuple(_read_value(kind, item, card, key) for kind, item in zip(kinds, value, strict=True))
    if origin is Literal and any(value == choice and type(value) is type(choice) for choice in arguments):
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is hint:
        return value
    raise FincEvalError(f'{card}: "{key}" must be {_wanted(hint)}, got {value!r}')


def _wanted(hint: Any) -> str:
    """Say in words what a value of type `hint` is."""
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in arguments)
    if origin is tuple:
        number = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"a list of {number}{WORDS[arguments[0]].split()[1]}s"
    if dataclasses.is_dataclass(hint):
        return "a table"
    return WORDS[hint]


def _check_ranges(card: Card, who: str) -> None:
    """Refuse values that have the right type and still make no sense."""
    if min(card.preprocessing.size) < 1:
        raise FincEvalError(f'{who}: "preprocessing.size" must be positive, got {list(card.preprocessing.size)}')
    if not min(card.preprocessing.std) > 0:
        raise FincEvalError(f'{who}: "preprocessing.std" must be positive, got {list(card.preprocessing.std)}')
    if card.output.dimension < 1:
        raise FincEvalError(f'{who}: "output.dimension" must be positive, got {card.output.dimension}')
    if card.weights and not re.fullmatch("[0-9a-f]{64}", card.weights.sha256):
        raise FincEvalError(f'{who}: "weights.sha256" must be 64 lower-case hex digits, got {card.weights.sha256!r}')
