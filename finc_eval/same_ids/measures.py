"""Measures of two pictures of one id: PSNR, SSIM and multi-scale SSIM of their light, and its structure alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import avg_pool2d

Array = NDArray[np.float64]

WINDOW, SIGMA = 11, 1.5  # side and standard deviation of SSIM's Gaussian window, in pixels (Wang et al. 2004)
STABLE = (0.01**2, 0.03**2)  # C1 and C2 of SSIM, for light in [0, 1]
SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # weights of the scales of MS-SSIM, the finest first (Wang 2003)
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in light (ITU-R BT.601)

TOGETHER = 2**18
"""Pixels of pictures that are measured at once. Of 512 × 512 pixels, a pair takes half the time if it is alone: the
fields that SSIM multiplies then stay in the cache."""


def measure_pairs(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> dict[str, Array]:
    """Measure pairs of pictures of one size, (n, h, w, 3) uint8 each.

    Returns:
        Arrays of shape (n,). "mse" is the mean squared difference of all values in [0, 1], from which PSNR follows.
        "ssim" (Wang et al. 2004) and "ms_ssim" (Wang et al. 2003) are of the light. "structure" is SSIM's third factor
        alone, over the scales of MS-SSIM: other brightness and contrast leave it as it is. There are as many of the
        five scales as leave room for the window of 11 pixels, and their weights add to 1. Smaller pictures have a
        smaller window. "detail" is the mean squared step from pixel to pixel of the second pictures.

    Example:
        >>> import numpy as np
        >>> black, white = np.zeros((1, 16, 16, 3), np.uint8), np.full((1, 16, 16, 3), 255, np.uint8)
        >>> {name: round(float(value[0]), 4) for name, value in measure_pairs(black, white).items()}
        {'mse': 1.0, 'ssim': 0.0001, 'ms_ssim': 0.0001, 'structure': 1.0, 'detail': 0.0}
    """
    count = max(1, TOGETHER // (first.shape[1] * first.shape[2]))
    parts = [_measure(first[at : at + count], second[at : at + count]) for at in range(0, len(first), count)]
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}


def _measure(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> dict[str, Array]:
    one, other = (torch.from_numpy(pixels).float().div_(255) for pixels in (first, second))
    scales = _similarities(one @ torch.tensor(LUMA), other @ torch.tensor(LUMA))
    steps = [other.diff(dim=axis).square_().mean((1, 2, 3), dtype=torch.float64).numpy() for axis in (1, 2)]
    squares = one.sub_(other).square_().mean((1, 2, 3), dtype=torch.float64).numpy()
    return {
        "mse": squares,
        "ssim": scales[0][0],
        "ms_ssim": _product([*(similar for _, similar, _ in scales[:-1]), scales[-1][0]]),
        "structure": _product([alone for *_, alone in scales]),
        "detail": (steps[0] + steps[1]) / 2,
    }


def psnr(squares: Array) -> Array:
    """Return the peak signal-to-noise ratio in dB, infinite for equal pictures, from mean squared differences."""
    return np.asarray(np.where(squares > 0, -10 * np.log10(np.maximum(squares, np.finfo(float).tiny)), np.inf))


def _product(scales: Sequence[Array]) -> Array:
    """Return the product of a similarity at several scales, (n,) each, to the powers of MS-SSIM."""
    weights = np.array(SCALES[: len(scales)]) / sum(SCALES[: len(scales)])
    powers = [np.maximum(one, 0) ** weight for one, weight in zip(scales, weights, strict=True)]
    return np.asarray(np.prod(powers, axis=0))


def _similarities(one: torch.Tensor, other: torch.Tensor) -> list[tuple[Array, Array, Array]]:
    """Return mean SSIM, its factor of contrast and structure, and structure alone, of light (n, h, w) at each scale."""
    found = []
    one, other = one[:, None], other[:, None]
    for _ in SCALES:
        found.append(_ssim(one, other))
        if min(one.shape[2:]) < 2 * WINDOW:
            break
        one, other = (avg_pool2d(light, 2, padding=[side % 2 for side in light.shape[2:]]) for light in (one, other))
    return found


def _ssim(one: torch.Tensor, other: torch.Tensor) -> tuple[Array, Array, Array]:
    side = min(WINDOW, *one.shape[2:])
    first, second, squares, other_squares, both = (
        _blur(light, side) for light in (one, other, one * one, other * other, one * other)
    )
    covariance = both - first * second
    variance, other_variance = squares - first**2, other_squares - second**2
    similar = (2 * covariance + STABLE[1]) / (variance + other_variance + STABLE[1])
    whole = similar * (2 * first * second + STABLE[0]) / (first**2 + second**2 + STABLE[0])
    deviations = (variance.clamp(min=0) * other_variance.clamp(min=0)).sqrt()
    alone = (covariance + STABLE[1] / 2) / (deviations + STABLE[1] / 2)
    return _mean(whole), _mean(similar), _mean(alone)


def _blur(light: torch.Tensor, side: int) -> torch.Tensor:
    """Return light, (n, 1, h, w), under a Gaussian window of so many pixels, where the whole window is inside.

    Sums of shifted copies take a sixth of the time of products with a banded matrix, and a twentieth of a convolution.
    """
    place = torch.arange(side) - (side - 1) / 2
    weights = torch.exp(-(place**2) / (2 * SIGMA**2))
    for axis in (-1, -2):
        places = light.shape[axis] - side + 1
        sums = torch.zeros(())
        for shift, weight in enumerate((weights / weights.sum()).tolist()):
            moved = light.narrow(axis, shift, places)
            sums = sums.add_(moved, alpha=weight) if shift else moved * weight
        light = sums
    return light


def _mean(values: torch.Tensor) -> Array:
    return np.asarray(values.mean((1, 2, 3), dtype=torch.float64).numpy())
