"""Measures of pairs of pictures equal those of other libraries, and say what changed in a picture."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from finc_eval.extractors.networks.motion import LUMA
from finc_eval.same_ids.measures import measure_pairs, psnr


def pictures(shape=(3, 200, 190, 3), seed=0):
    rng = np.random.default_rng(seed)
    return gaussian_filter(rng.integers(0, 256, shape, dtype=np.uint8), (0, 2, 2, 0))


def noisy(first, deviation=10):
    noise = np.random.default_rng(1).normal(0, deviation, first.shape)
    return np.clip(np.rint(first + noise), 0, 255).astype(np.uint8)


CHANGES = {
    "noise": noisy,
    "half darker": lambda first: np.concatenate([first[:, :100], first[:, 100:] // 4], 1),
    "side darker": lambda first: np.concatenate([first[:, :, :-40], first[:, :, -40:] // 4], 2),
}


@pytest.mark.parametrize(
    ("shape", "change", "error"),
    [
        ((3, 200, 190, 3), "noise", 1e-4),
        *(((1, *size, 3), change, 4e-4) for size in ((256, 300), (301, 257)) for change in CHANGES),
    ],
)
def test_ssim_and_multi_scale_ssim_are_those_of_pytorch_msssim(shape, change, error):
    oracle = pytest.importorskip("pytorch_msssim")
    first = pictures(shape)
    second = CHANGES[change](first)
    light = [
        (torch.from_numpy(one).double() / 255 @ torch.tensor(LUMA, dtype=torch.float64))[:, None]
        for one in (first, second)
    ]
    found = measure_pairs(first, second)
    for name, function in (("ssim", oracle.ssim), ("ms_ssim", oracle.ms_ssim)):
        expected = function(*light, data_range=1, size_average=False).numpy()
        assert found[name] == pytest.approx(expected, abs=error)


def test_psnr_is_of_the_mean_squared_difference_of_all_values():
    first = np.zeros((1, 16, 16, 3), np.uint8)
    second = np.full_like(first, 51)
    assert psnr(measure_pairs(first, second)["mse"]) == pytest.approx([20 * np.log10(5)])
    assert psnr(measure_pairs(first, first)["mse"]) == [np.inf]


@pytest.mark.parametrize("side", [1, 7, 16, 64, 65])
def test_pictures_of_any_size_are_measured(side):
    first = pictures((2, side, side + 3, 3))
    found = measure_pairs(first, first)
    assert found["mse"] == pytest.approx([0, 0])
    for name in ("ssim", "ms_ssim", "structure"):
        assert found[name] == pytest.approx([1, 1], abs=1e-4)


def test_structure_stays_where_light_and_contrast_change_and_falls_where_content_moves():
    first = pictures((1, 64, 64, 3))
    darker = np.rint(first * 0.7).astype(np.uint8)
    moved = np.roll(first, 8, 2)
    assert measure_pairs(darker, first)["structure"] > 0.98
    assert measure_pairs(moved, first)["structure"] < 0.5


def test_a_batch_is_measured_as_its_pictures_are():
    first = pictures((3, 40, 50, 3))
    second = noisy(first)
    together = measure_pairs(first, second)
    for row in range(3):
        alone = measure_pairs(first[row : row + 1], second[row : row + 1])
        for name, values in together.items():
            assert values[row] == pytest.approx(float(alone[name][0]), abs=1e-6)
