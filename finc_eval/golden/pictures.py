"""Tonight's pictures and the golden pictures, by their ids, from any form: a picture, a list, a dictionary, a set."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import at_most, read_bytes
from finc_eval.core.errors import DataError, FincEvalError, UsageError
from finc_eval.core.memory import max_decoded
from finc_eval.core.words import join_first, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings, form_of
from finc_eval.embeddings.same_names import without_suffixes
from finc_eval.samples.images import FORMATS, IMAGE_SUFFIXES, FixedSettings
from finc_eval.samples.in_memory import to_pixels
from finc_eval.samples.opening import existing_path, open_source
from finc_eval.samples.reading import Reading
from finc_eval.samples.rows import is_tensor, tensor_values
from finc_eval.samples.source import NOT_OF_THE_SAMPLE, Source, reason

Pixels = NDArray[np.uint8]

MAX_PAIRS = 1000  # golden pictures, which are meant to be ten; of more, pairs by id in a comparison say more
NAMED_IDS = 5  # ids that a message names
OF_FLOATS = Reading((), (), None, (0.0, 1.0))  # reading of floats: 0 is black, and 1 is white
NOT_NUMBERS = "has values that are NaN or infinite"


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture of tonight, or a golden one.

    Attributes:
        pixels: (height, width, 3); None for a picture that cannot be used.
        problem: what is wrong with it, as the end of a sentence; "" for nothing.
        is_clear: whether some of it is transparent.
    """

    pixels: Pixels | None
    problem: str = ""
    is_clear: bool = False

    @property
    def digest(self) -> str:
        """Digest of its pixels, whatever file they come from; "" without pixels."""
        return "" if self.pixels is None else sha256_of(f"{self.pixels.shape}", self.pixels)[:32]


@dataclass(frozen=True, eq=False)
class Matched:
    """Pictures of tonight and golden pictures with the same ids, in the order of the golden pictures."""

    ids: list[str]
    gen: list[Shot]
    ref: list[Shot]
    missing: tuple[str, ...]  # ids of golden pictures without a picture of tonight
    additional: tuple[str, ...]  # ids of pictures of tonight without a golden one


def match_pictures(gen: Any, ref: Any) -> Matched:
    """Pair pictures of tonight with golden pictures, by id; two single pictures are a pair.

    Raises:
        UsageError: there are too many, or the form is not known.
        DataError: no id is in both, or a golden picture cannot be read.
    """
    sides = {"gen": _read(gen, "gen"), "ref": _read(ref, "ref")}
    ids, _ = without_suffixes({label: [*names] for label, names in sides.items()})
    if _is_single(gen) and _is_single(ref):
        ids["gen"] = ids["ref"]
    # A pair has the name of its golden picture, in whatever format tonight's is saved.
    as_written = dict(zip(ids["ref"], sides["ref"], strict=True))
    golden = sides["ref"]
    tonight = {as_written.get(name, name): shot for name, shot in zip(ids["gen"], sides["gen"].values(), strict=True)}
    shared = [name for name in golden if name in tonight]
    if not shared:
        raise DataError(
            f"no id is in both gen ({join_first(ids['gen'], NAMED_IDS)}) and ref "
            f"({join_first(ids['ref'], NAMED_IDS)}): give each picture the name of its golden picture"
        )
    if bad := [name for name in shared if golden[name].pixels is None]:
        raise DataError(f"the golden picture {bad[0]} {golden[bad[0]].problem}: make it again")
    return Matched(
        shared,
        [tonight[name] for name in shared],
        [golden[name] for name in shared],
        tuple(name for name in golden if name not in tonight),
        tuple(name for name in tonight if name not in golden),
    )


def _is_single(source: Any) -> bool:
    """Return whether a source is one picture: a picture of Pillow, an array of one, or the path of an image file."""
    if isinstance(source, str | PathLike):
        return Path(source).suffix.lower() in IMAGE_SUFFIXES and Path(source).is_file()
    if isinstance(source, Image.Image):
        return True
    if not isinstance(source, np.ndarray) and not is_tensor(source):
        return False
    return source.ndim == 2 or (source.ndim == 3 and (source.shape[-1] in (3, 4) or is_tensor(source)))


def _read(source: Any, label: str) -> dict[str, Shot]:
    """Return the pictures of a source by id."""
    if _is_single(source):
        name = Path(source).name if isinstance(source, str | PathLike) else "0"
        return {name: _shot(source, label)}
    if isinstance(source, Mapping) and not hasattr(source, "features"):
        return {str(name): _shot(picture, f"{name} of {label}") for name, picture in _few(source.items(), label)}
    is_array = isinstance(source, np.ndarray) or is_tensor(source)
    if isinstance(source, list | tuple) or (is_array and source.ndim in (3, 4)):
        return {
            str(name): _shot(picture, f"picture {name} of {label}") for name, picture in _few(enumerate(source), label)
        }
    if form_of(source) == "embeddings":
        return _behind(as_embeddings(source, label), label)
    opened = open_source(source)
    if len(opened.ids) > MAX_PAIRS:
        _refuse(label)
    return dict(_shots(opened))


def _behind(embeddings: Embeddings, label: str) -> dict[str, Shot]:
    """Return the pictures behind embeddings by id."""
    if embeddings.n > MAX_PAIRS:
        _refuse(label)
    pixels = embeddings.pixels_at(np.arange(embeddings.n))
    if pixels is None or any(picture.ndim != 3 for picture in pixels):
        raise DataError(f"the pictures behind the embeddings {label} are not at hand: pass the pictures themselves")
    return {name: Shot(picture) for name, picture in zip(embeddings.ids_between(0, embeddings.n), pixels, strict=True)}


def _few(items: Any, label: str) -> list[tuple[Any, Any]]:
    few = []
    for item in items:
        few.append(item)
        if len(few) > MAX_PAIRS:
            _refuse(label)
    if not few:
        raise DataError(f"{label} has no pictures: pass one or more")
    return few


def _refuse(label: str) -> None:
    raise UsageError(
        f"{label} has more than {plural(MAX_PAIRS, 'picture')}, and golden pictures are a few: compare larger sets by "
        'compare(gen, ref, pairs="id")'
    )


def _shots(source: Source) -> Iterator[tuple[str, Shot]]:
    """Yield the pictures of an opened set, also those that cannot be read."""
    for number, sample in enumerate(source.samples()):
        if sample.pixels is None:
            yield sample.id, Shot(None, f"cannot be read ({sample.error})")
        elif sample.pixels.ndim != 3:
            raise UsageError(f"{sample.id} is a clip, and golden pictures are pictures: pass frames as pictures")
        else:
            opener = getattr(source, "open", None)
            is_clear = False
            if opener is not None and sample.encoding is not None:
                with opener(number) as stream:
                    is_clear = _is_clear(at_most(stream, max_decoded()))
            yield sample.id, Shot(sample.pixels, "", is_clear)


def _is_clear(data: bytes) -> bool:
    """Return whether some of a picture is transparent, from the bytes of its file."""
    with FixedSettings(), Image.open(io.BytesIO(data), formats=FORMATS) as image:
        return _has_clear(image)


def _has_clear(image: Image.Image) -> bool:
    if not image.has_transparency_data:
        return False
    if image.mode.startswith("I"):  # one gray of 16 bits is transparent, which Pillow does not convert
        return bool((np.asarray(image) == image.info["transparency"]).any())
    # A palette, or one of its colors, may be transparent, too.
    straight = image.convert("LA") if image.mode == "La" else image
    return bool((np.asarray(straight.convert("RGBA").getchannel("A")) < 255).any())


def _shot(value: Any, who: str) -> Shot:
    """Return one picture, from a picture of Pillow, a path, bytes, or an array or tensor; floats are in [0, 1]."""
    try:
        if isinstance(value, np.ndarray) or is_tensor(value):
            return _of_array(value if isinstance(value, np.ndarray) else tensor_values(value, who), value, who)
        if isinstance(value, str | PathLike):
            path = existing_path(str(value))
            if path is None or not path.is_file():
                raise DataError(f"{who} is {value}, which is not an image file: pass the paths of images")
            value = read_bytes(path)
        pixels, _ = to_pixels(value, who)
        if isinstance(value, bytes):
            return Shot(pixels, "", _is_clear(value))
        return Shot(pixels, "", isinstance(value, Image.Image) and _has_clear(value))
    except (FincEvalError, *NOT_OF_THE_SAMPLE):
        raise
    except Exception as error:  # Pillow's readers raise almost anything on damaged bytes
        return Shot(None, f"cannot be read ({reason(error)})")


def _of_array(array: NDArray[Any], given: Any, who: str) -> Shot:
    """Return a picture from an array (h, w), (h, w, 3) or (h, w, 4); a fourth channel is alpha."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return Shot(None, NOT_NUMBERS)
    scale = Reading() if array.dtype.kind != "f" else OF_FLOATS
    axis = 0 if array.ndim == 3 and is_tensor(given) and array.shape[0] == 4 else -1
    is_clear = False
    if array.ndim == 3 and array.shape[axis] == 4:
        colors, alpha = np.split(array, [3], axis=axis)
        is_clear = bool((alpha < (1.0 if array.dtype.kind == "f" else 255)).any())
        array = np.moveaxis(colors, axis, -1)
    elif is_tensor(given):
        pixels, _ = to_pixels(given, who, scale)
        return Shot(pixels)
    pixels, _ = to_pixels(np.ascontiguousarray(array), who, scale)
    return Shot(pixels, "", is_clear)
