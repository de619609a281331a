"""Preprocessing, as a card states it: images are resized in the decoding threads and normalized on the device."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.core.memory import max_pixels
from finc_eval.extractors.card import Preprocessing

if TYPE_CHECKING:
    # `embeddings.job` imports this module; torch, which takes seconds, is needed only to normalize.
    import torch

FILTERS = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
}

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Resized = Bytes | Floats
Size = tuple[int, int]


def resize_frames(pixels: Bytes, how: Preprocessing) -> Resized:
    """Resize an image, or every frame of a clip, to `how.size`.

    Pixels are uint8 RGB, (height, width, 3) or (frames, height, width, 3); the result is uint8 if `how.rounding` is,
    else float32 in 0…255. An image of the right size is not resampled.
    """
    if pixels.ndim == 4:
        frames: list[npt.NDArray[Any]] = [resize_frames(frame, how) for frame in pixels]
        return np.stack(frames)
    # The size before the center is cropped: sides are rounded as in timm and, for a square target, as in torchvision.
    height, width = pixels.shape[:2]
    whole = math.floor(how.size[0] / how.crop_fraction), math.floor(how.size[1] / how.crop_fraction)
    if how.geometry == "crop" and whole[0] == whole[1]:
        short = whole[0]
        whole = (short, int(short * width / height)) if height < width else (int(short * height / width), short)
    elif how.geometry == "crop":
        shrink = min(height / whole[0], width / whole[1])
        whole = round(height / shrink), round(width / shrink)
    if math.prod(whole) > pixels[..., 0].size and math.prod(whole) > max_pixels():
        raise ValueError(f"{width}x{height} pixels become {whole[1]}x{whole[0]} before they are cropped")
    image = pixels if (height, width) == whole else _METHODS[how.method](pixels, whole, how)
    # The center is cropped at the offsets of torchvision's CenterCrop: halves are rounded to the even pixel.
    top, left = (round((side - kept) / 2) for side, kept in zip(whole, how.size, strict=True))
    image = image[top : top + how.size[0], left : left + how.size[1]]
    if how.rounding == "none":
        return image.astype(np.float32, copy=False)
    # Halves are rounded to the even number, as torch.round does.
    return image if image.dtype == np.uint8 else np.rint(image).astype(np.uint8)


def normalize_values(batch: torch.Tensor, how: Preprocessing) -> torch.Tensor:
    """Scale to `how.range`, subtract the mean, divide by the standard deviation.

    Samples (n, height, width, 3) or (n, frames, height, width, 3) become float32, (n, 3, height, width) or (n, 3,
    frames, height, width), channels last in memory.
    """
    low, high = how.range
    width = batch.shape[-2]
    # One multiplication and one addition per value. The three channels are repeated along the row: a loop over three
    # values takes several times as long on the CPU.
    scale = tuple((high - low) / 255 / std for std in how.std)
    shift = tuple((low - mean) / std for mean, std in zip(how.mean, how.std, strict=True))
    rows = batch.flatten(-2) * _repeat(scale, width, batch.device)
    rows += _repeat(shift, width, batch.device)
    return rows.view(batch.shape).movedim(-1, 1)


@lru_cache(maxsize=16)
def _repeat(values: tuple[float, ...], times: int, device: torch.device) -> torch.Tensor:
    """Return values, repeated, on a device, where they stay for the next batch."""
    import torch

    return torch.tensor(values * times, dtype=torch.float32, device=device)


def _pil(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Resize with Pillow on 8-bit pixels, as torchvision's Resize does on a PIL image."""
    return np.asarray(Image.fromarray(image).resize(size[::-1], FILTERS[how.interpolation]))


def _clean(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Resize with Pillow per channel in float, clipped and not rounded: clean-fid (Parmar et al., arXiv:2104.11222)."""
    out = np.empty((*size, 3), np.float32)
    for channel in range(3):
        plane = Image.fromarray(image[..., channel].astype(np.float32))
        np.clip(np.asarray(plane.resize(size[::-1], FILTERS[how.interpolation])), 0, 255, out=out[..., channel])
    return out


def _tensorflow1(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Resize as TensorFlow 1's resize_bilinear: pixel i of the result lies at i * scale, without a half-pixel shift.

    The operations and their order follow torch-fidelity's port, so the floats are equal.
    """
    (top, bottom, down), (left, right, along) = map(_neighbors, image.shape[:2], size)
    above, below = image[top], image[bottom]
    across = along[:, None]
    upper = _between(above[:, left].astype(np.float32), above[:, right].astype(np.float32), across)
    lower = _between(below[:, left].astype(np.float32), below[:, right].astype(np.float32), across)
    return _between(upper, lower, down[:, None, None])


def _neighbors(old: int, new: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return, for each new pixel, the two old pixels it lies between, and its distance from the first."""
    position = np.arange(new, dtype=np.float32) * np.float32(old / new)
    first = position.astype(np.int64)
    return first, np.minimum(first + 1, old - 1), position - first.astype(np.float32)


def _between(first: Floats, second: Floats, share: Floats) -> Floats:
    second -= first
    second *= share
    second += first
    return second


def _torch(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Resize with torch.nn.functional.interpolate on floats (align_corners=False), clipped to 0…255.

    This is what clean-fid's legacy_pytorch and torchvision's presets for video do. pytorch-fid interpolates values in
    0…1, which is equal up to float rounding.
    """
    import torch
    from torch.nn.functional import interpolate

    # Channels first in memory: torch chooses its kernel by the memory order, and the last bits differ between kernels.
    planes = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1), np.float32))[None]
    out = interpolate(planes, size, mode=how.interpolation, align_corners=False, antialias=how.antialias)
    return out[0].clamp_(0, 255).permute(1, 2, 0).numpy()


_METHODS = {"pil": _pil, "clean": _clean, "tensorflow1": _tensorflow1, "torch": _torch}
