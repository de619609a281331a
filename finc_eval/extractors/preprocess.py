"""From an RGB image to what a network takes, as its card says: resized by workers, normalized on the device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.extractors.card import Preprocessing

if TYPE_CHECKING:
    # The command line imports this module, and torch takes seconds.
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


def resized(pixels: Bytes, how: Preprocessing) -> Resized:
    """Bring an image, or every frame of a clip, to `how.size`.

    Args:
        pixels: uint8 RGB, (height, width, 3) or (frames, height, width, 3).
        how: the card's preprocessing.

    Returns:
        (*how.size, 3) or (frames, *how.size, 3): uint8 where `how.rounding` says so, otherwise float32 in 0…255. No
        method resamples what has the right size already.

    Raises:
        ValueError: the sides are so unlike that the image would be of an unsafe size before its center is cropped.
    """
    if pixels.ndim == 4:
        frames: list[npt.NDArray[Any]] = [resized(frame, how) for frame in pixels]
        return np.stack(frames)
    whole = _resized_size(pixels.shape[:2], how)
    if Image.MAX_IMAGE_PIXELS is not None and math.prod(whole) > Image.MAX_IMAGE_PIXELS:
        raise ValueError(
            f"{pixels.shape[1]}x{pixels.shape[0]} pixels become {whole[1]}x{whole[0]} before they are cropped"
        )
    image = pixels if pixels.shape[:2] == whole else _METHODS[how.method](pixels, whole, how)
    image = _center(image, how.size)
    if how.rounding == "none":
        return image.astype(np.float32, copy=False)
    # Halves go to the even number, as torch.round has them.
    return image if image.dtype == np.uint8 else np.rint(image).astype(np.uint8)


def normalized(batch: torch.Tensor, how: Preprocessing) -> torch.Tensor:
    """Scale to `how.range`, subtract the mean, divide by the standard deviation.

    Args:
        batch: resized samples, (n, height, width, 3) or (n, frames, height, width, 3), on any device.
        how: the card's preprocessing.

    Returns:
        float32, (n, 3, height, width) or (n, 3, frames, height, width), channels last in memory.
    """
    import torch

    low, high = how.range
    width = batch.shape[-2]
    # One multiplication and one addition per value. The three channels are repeated along the row, as loops over
    # three values would take several times as long on the CPU.
    scale = [(high - low) / 255 / std for std in how.std] * width
    shift = [(low - mean) / std for mean, std in zip(how.mean, how.std, strict=True)] * width
    rows = batch.flatten(-2) * torch.tensor(scale, dtype=torch.float32, device=batch.device)
    rows += rows.new_tensor(shift)
    return rows.view(batch.shape).movedim(-1, 1)


def _resized_size(size: Size, how: Preprocessing) -> Size:
    """Return the (height, width) that an image of this size gets before the center is cropped.

    The rounding is that of timm and, where the target is square, of torchvision's Resize.
    """
    target = math.floor(how.size[0] / how.crop_fraction), math.floor(how.size[1] / how.crop_fraction)
    if how.geometry == "squash":
        return target
    height, width = size
    if target[0] == target[1]:
        short = target[0]
        return (short, int(short * width / height)) if height < width else (int(short * height / width), short)
    shrink = min(height / target[0], width / target[1])
    return round(height / shrink), round(width / shrink)


def _center(image: Resized, size: Size) -> Resized:
    """Cut out the center, at the offsets of torchvision's CenterCrop: halves go to the even pixel."""
    top, left = (round((side - kept) / 2) for side, kept in zip(image.shape[:2], size, strict=True))
    return image[top : top + size[0], left : left + size[1]]


def _pil(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Pillow on 8-bit pixels: torchvision's Resize of a PIL image."""
    return np.asarray(Image.fromarray(image).resize(size[::-1], FILTERS[how.interpolation]))


def _clean(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """Pillow per channel in floats, clipped and not rounded: clean-fid (Parmar et al., arXiv:2104.11222)."""
    out = np.empty((*size, 3), np.float32)
    for channel in range(3):
        plane = Image.fromarray(image[..., channel].astype(np.float32))
        np.clip(np.asarray(plane.resize(size[::-1], FILTERS[how.interpolation])), 0, 255, out=out[..., channel])
    return out


def _tensorflow1(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """TensorFlow 1's resize_bilinear: pixel i of the result lies at i * scale, with no half-pixel shift.

    The operations and their order are those of torch-fidelity's port, so that the floats are the same.
    """
    (top, bottom, down), (left, right, along) = map(_neighbors, image.shape[:2], size)
    above, below = image[top], image[bottom]
    across = along[:, None]
    upper = _between(above[:, left].astype(np.float32), above[:, right].astype(np.float32), across)
    lower = _between(below[:, left].astype(np.float32), below[:, right].astype(np.float32), across)
    return _between(upper, lower, down[:, None, None])


def _neighbors(old: int, new: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """For each new pixel, the two old ones it lies between, and how far it is towards the second."""
    place = np.arange(new, dtype=np.float32) * np.float32(old / new)
    first = place.astype(np.int64)
    return first, np.minimum(first + 1, old - 1), place - first.astype(np.float32)


def _between(first: Floats, second: Floats, share: Floats) -> Floats:
    second -= first
    second *= share
    second += first
    return second


def _torch(image: Bytes, size: Size, how: Preprocessing) -> Resized:
    """torch.nn.functional.interpolate on floats, with pixels as areas (align_corners=False), clipped to 0…255.

    As clean-fid's legacy_pytorch, and torchvision's presets for video. pytorch-fid interpolates values in 0…1, which
    is the same up to float rounding.
    """
    import torch
    from torch.nn.functional import interpolate

    # Planes one after another: in torch the order in memory chooses the kernel, and with it the last bits.
    planes = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1), np.float32))[None]
    out = interpolate(planes, size, mode=how.interpolation, align_corners=False, antialias=how.antialias)
    return out[0].clamp_(0, 255).permute(1, 2, 0).numpy()


_METHODS = {"pil": _pil, "clean": _clean, "tensorflow1": _tensorflow1, "torch": _torch}
