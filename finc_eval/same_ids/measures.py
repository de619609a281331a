"""Measures of two pictures of one id: PSNR, SSIM and multi-scale SSIM of their light, and its structure alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import avg_pool2d

from finc_eval.extractors.networks.motion import LUMA
from finc_eval.naming.texture import BLANK

Array = NDArray[np.float64]

WINDOW, SIGMA = 11, 1.5  # side and standard deviation of SSIM's Gaussian window, in pixels (Wang et al. 2004)
STABLE = (0.01**2, 0.03**2)  # C1 and C2 of SSIM, for light in [0, 1]
SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # weights of the scales of MS-SSIM, the finest first (Wang 2003)

TOGETHER = 2**18
"""Pixels of pictures that are measured at once. Of 512 × 512 pixels, a pair takes half the time if it is alone: the
fields that SSIM multiplies then stay in the cache."""

LARGE = 256
"""Pixels of the shorter side from which SSIM's window is at every other place along both sides. The window is so smooth
that the places between follow from these: of 40 photographs under eleven changes, from noise to another picture, no
SSIM or MS-SSIM changed by more than 0.0004."""


def measure_pairs(first: Sequence[NDArray[np.uint8]], second: Sequence[NDArray[np.uint8]]) -> dict[str, Array]:
    """Measure pairs of pictures of one size, uint8 of shape (h, w, 3) each.

    Returns:
        Arrays of shape (n,). "mse" is the mean squared difference of all values in [0, 1], from which PSNR follows.
        "ssim" (Wang et al. 2004) and "ms_ssim" (Wang et al. 2003) are of the light. "structure" is SSIM's third factor
        alone, over the scales of MS-SSIM: other brightness and contrast leave it as it is. There are as many of the
        five scales as leave room for the window of 11 pixels, and their weights add to 1. Smaller pictures have a
        smaller window. "detail" is the mean squared step from pixel to pixel of the second pictures, "grain" of the
        first. "blank" is 1 where the first shows nothing and the second does, else 0.

    Example:
        >>> import numpy as np
        >>> black, white = np.zeros((1, 16, 16, 3), np.uint8), np.full((1, 16, 16, 3), 255, np.uint8)
        >>> {name: round(float(value[0]), 4) for name, value in measure_pairs(black, white).items()}
        {'mse': 1.0, 'ssim': 0.0001, 'ms_ssim': 0.0001, 'structure': 1.0, 'detail': 0.0, 'grain': 0.0, 'blank': 0.0}
    """
    count = max(1, TOGETHER // max(first[0][..., 0].size, 1))
    some = [slice(at, at + count) for at in range(0, len(first), count)]
    parts = [_measure(np.stack([first[block], second[block]], 1)) for block in some]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _measure(pairs: NDArray[np.uint8]) -> dict[str, Array]:
    """Measure pairs of shape (n, 2, h, w, 3)."""
    both = torch.from_numpy(pairs).float()
    new, other = both.unbind(1)
    light = both @ (torch.tensor(LUMA) / 255)
    is_blank = _is_blank(light)
    scales = _similarities(light)
    steps = [[_mean_square(side.diff(dim=axis)) for axis in (1, 2)] for side in (other, new)]
    return {
        "mse": _mean_square(new.sub_(other)),
        "ssim": scales[0][0],
        "ms_ssim": _product([*(similar for _, similar, _ in scales[:-1]), scales[-1][0]]),
        "structure": _product([alone for *_, alone in scales]),
        "detail": (steps[0][0] + steps[0][1]) / 2,
        "grain": (steps[1][0] + steps[1][1]) / 2,
        "blank": (is_blank[:, 0] & ~is_blank[:, 1]).astype(np.float64),
    }


def _is_blank(light: torch.Tensor) -> NDArray[np.bool_]:
    """Return whether pictures, (n, 2, h, w), show nothing, by the deviation of their light."""
    rows = light.flatten(2)
    apart = torch.linalg.vector_norm(rows - rows.mean(2, keepdim=True), dim=2) / rows.shape[2] ** 0.5
    return np.asarray((apart < BLANK).numpy())


def _mean_square(codes: torch.Tensor) -> Array:
    """Return the mean square of values in [0, 255], (n, …), as of values in [0, 1]; rows are summed in float64."""
    rows = torch.linalg.vector_norm(codes.flatten(2), dim=2).double()
    return np.asarray(rows.square().sum(1).div(max(codes[0].numel(), 1) * 255**2).numpy())


def psnr(squares: Array) -> Array:
    """Return the peak signal-to-noise ratio in dB, infinite for equal pictures.

    `squares` are mean squared differences of pictures in [0, 1], of any shape.
    """
    return np.asarray(np.where(squares > 0, -10 * np.log10(np.maximum(squares, np.finfo(float).tiny)), np.inf))


def _product(scales: Sequence[Array]) -> Array:
    """Return the product of a similarity at several scales, (n,) each, to the powers of MS-SSIM."""
    weights = np.array(SCALES[: len(scales)]) / sum(SCALES[: len(scales)])
    powers = [np.maximum(similarity, 0) ** weight for similarity, weight in zip(scales, weights, strict=True)]
    return np.asarray(np.prod(powers, axis=0))


def _similarities(light: torch.Tensor) -> list[tuple[Array, ...]]:
    """Return mean SSIM, its factor of contrast and structure, and structure alone, of light (n, 2, h, w) by scale."""
    found = []
    for _ in SCALES:
        found.append(_ssim(light))
        if min(light.shape[2:]) < 2 * WINDOW:
            break
        light = _halve(light)
    return found


def _ssim(light: torch.Tensor) -> tuple[Array, ...]:
    side = min(WINDOW, *light.shape[2:])
    step = 2 if min(light.shape[2:]) >= LARGE else 1
    fields = light.new_empty(len(light), 5, *light.shape[2:])
    fields[:, :2] = light
    torch.mul(light, light, out=fields[:, 2:4])
    torch.mul(light[:, 0], light[:, 1], out=fields[:, 4])
    first, second, squares, other_squares, both = _blur(fields, side, step).unbind(1)
    product, first_square, second_square = first * second, first.square(), second.square()
    covariance = both - product
    variance, other_variance = squares - first_square, other_squares - second_square
    similar = (2 * covariance + STABLE[1]) / (variance + other_variance + STABLE[1])
    whole = similar * (2 * product + STABLE[0]) / (first_square + second_square + STABLE[0])
    deviations = (variance.clamp(min=0) * other_variance.clamp(min=0)).sqrt()
    alone = (covariance + STABLE[1] / 2) / (deviations + STABLE[1] / 2)
    rows, columns = (_weigh(size - side + 1, step) for size in light.shape[2:])
    return tuple(np.asarray((values.double() @ columns @ rows).numpy()) for values in (whole, similar, alone))


def _blur(fields: torch.Tensor, side: int, step: int) -> torch.Tensor:
    """Return fields, (…, h, w), under a Gaussian window of so many pixels, at every so-manyth place inside.

    Sums of shifted copies take a sixth of the time of products with a banded matrix, and a twentieth of a convolution.
    """
    place = torch.arange(side) - (side - 1) / 2
    weights = torch.exp(-(place**2) / (2 * SIGMA**2))
    for axis in (-2, -1):
        places = (fields.shape[axis] - side) // step + 1
        every = [_from(fields, axis, start, step) for start in range(step)]
        sums = torch.zeros(())
        for shift, weight in enumerate((weights / weights.sum()).tolist()):
            moved = every[shift % step].narrow(axis, shift // step, places)
            sums = sums.add_(moved, alpha=weight) if shift else moved * weight
        fields = sums
    return fields


def _from(fields: torch.Tensor, axis: int, start: int, step: int) -> torch.Tensor:
    """Return every so-manyth row (axis −2) or column (−1), so that neighbors in a row lie side by side in memory."""
    return fields[..., start::step, :] if axis == -2 else fields[..., start::step].contiguous()


@cache
def _weigh(places: int, step: int) -> torch.Tensor:
    """Return the parts of a mean over all places that each measured place has; between two, values change evenly."""
    at = torch.arange(places, dtype=torch.float64) / step
    before, part = at.long(), at.frac()
    found = torch.zeros(int(before[-1]) + 1, dtype=torch.float64)
    found.index_add_(0, before, 1 - part)
    return found.index_add_(0, (before + 1).clamp(max=len(found) - 1), part) / places


def _halve(light: torch.Tensor) -> torch.Tensor:
    """Return light, (n, 2, h, w), of half the size, by means of four pixels."""
    if any(side % 2 for side in light.shape[2:]):
        return avg_pool2d(light, 2, padding=[side % 2 for side in light.shape[2:]])
    rows = light[..., ::2, :] + light[..., 1::2, :]  # an eighth of the time of avg_pool2d
    return (rows[..., ::2] + rows[..., 1::2]) / 4
