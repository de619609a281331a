"""Measures of two pictures of one id: PSNR, SSIM and multi-scale SSIM of their light, and its structure alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import avg_pool2d, pad

Array = NDArray[np.float64]

WINDOW, SIGMA = 11, 1.5  # side and standard deviation of SSIM's Gaussian window, in pixels (Wang et al. 2004)
STABLE = (0.01**2, 0.03**2)  # C1 and C2 of SSIM, for light in [0, 1]
SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # weights of the scales of MS-SSIM, the finest first (Wang 2003)
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in light (ITU-R BT.601)

TOGETHER = 64
"""Neighbors that a product with a band of the blur makes at once: five lights of 512 × 512 pixels take .26 s, and .97 s
by a convolution."""


def measure_pairs(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> dict[str, Array]:
    """Measure pairs of pictures of one size, (n, h, w, 3) uint8 each.

    Returns:
        Arrays of shape (n,). "mse" is the mean squared difference of all values in [0, 1], from which PSNR follows.
        "ssim" (Wang et al. 2004) and "ms_ssim" (Wang et al. 2003) are of the light. "structure" is SSIM's third factor
        alone, over the scales of MS-SSIM: other brightness and contrast leave it as it is. There are as many of the
        five scales as leave room for the window of 11 pixels, and their weights add to 1. Smaller pictures have a
        smaller window.

    Example:
        >>> import numpy as np
        >>> black, white = np.zeros((1, 16, 16, 3), np.uint8), np.full((1, 16, 16, 3), 255, np.uint8)
        >>> {name: round(float(value[0]), 4) for name, value in measure_pairs(black, white).items()}
        {'mse': 1.0, 'ssim': 0.0001, 'ms_ssim': 0.0001, 'structure': 1.0}
    """
    one, other = (torch.from_numpy(pixels).float() / 255 for pixels in (first, second))
    scales = _similarities(one @ torch.tensor(LUMA), other @ torch.tensor(LUMA))
    squares = (one - other).square().mean((1, 2, 3), dtype=torch.float64).numpy()
    return {
        "mse": squares,
        "ssim": scales[0][0],
        "ms_ssim": _product([*(similar for _, similar, _ in scales[:-1]), scales[-1][0]]),
        "structure": _product([alone for *_, alone in scales]),
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
    """Return light, (n, 1, h, w), under a Gaussian window of so many pixels, where the whole window is inside."""
    return _blur_rows(_blur_rows(light, side).mT, side).mT


def _blur_rows(light: torch.Tensor, side: int) -> torch.Tensor:
    """Blur along the last axis, by products with a banded matrix, which take a quarter of the time of a convolution."""
    place = torch.arange(side) - (side - 1) / 2
    weights = torch.exp(-(place**2) / (2 * SIGMA**2))
    band = torch.zeros(TOGETHER + side - 1, TOGETHER)
    for row, weight in enumerate(weights / weights.sum()):
        band.diagonal(-row).fill_(weight)
    places = light.shape[-1] - side + 1
    blocks = -(-places // TOGETHER)
    padded = pad(light, (0, blocks * TOGETHER + side - 1 - light.shape[-1]))
    return (padded.unfold(-1, len(band), TOGETHER) @ band).flatten(-2)[..., :places]


def _mean(values: torch.Tensor) -> Array:
    return np.asarray(values.mean((1, 2, 3), dtype=torch.float64).numpy())
