"""The Fréchet wavelet distance: the values of its authors' code, and pixels alone."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.wavelets import packets, wavelet_distance


def images(side, n, m):
    """Noise of two laws, as rows of pixels from 0 to 1."""
    rng = np.random.default_rng(side)
    x, y = (rng.random((k, 3, side, side), dtype="f4") for k in (n, m))
    return [ArrayEmbeddings(one.reshape(len(one), -1)) for one in (x**1.2, y)]


# Values of pytorchfwd 1.0.1 with ptwt 1.0.1, Haar's wavelet: level 1 for 32 pixels, level 2 for 64. The authors take a
# matrix square root of the covariance, which is exact to 7 digits if there are fewer samples than coefficients.
@pytest.mark.parametrize(
    ("side", "n", "m", "theirs", "digits"),
    [
        (32, 900, 1000, 28.412418602375777, 1e-10),
        pytest.param(64, 40, 60, 109.03018617238382, 2e-7, marks=pytest.mark.long),
    ],
)
def test_it_equals_the_authors_values(side, n, m, theirs, digits):
    assert wavelet_distance(*images(side, n, m)) == pytest.approx(theirs, rel=digits)


@pytest.mark.parametrize("bands", [2, 4, 8, 16])
def test_packets_keep_the_energy_of_an_image_and_the_first_one_is_its_thumbnail(bands):
    image = torch.rand(1, 3, 16 * bands, 16 * bands, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    found = packets(image.flatten(1), bands)
    assert found.shape == (bands**2, 1, 3 * 16 * 16)
    assert float(found.square().sum()) == pytest.approx(float(image.square().sum()))
    thumbnail = torch.nn.functional.avg_pool2d(image, bands) * bands
    torch.testing.assert_close(found[0], thumbnail.flatten(1))


@pytest.mark.long
def test_equal_sets_are_at_distance_zero_and_few_samples_have_a_note():
    x, _ = images(32, 30, 30)
    score = fe.metrics(x, x, "fwd")["fwd"]
    assert score.value == 0 and score.interval is None
    assert "30 samples: packets of 768 coefficients lack full rank" in score.notes[0]


def test_it_takes_pixels_alone():
    rows = np.random.default_rng(0).random((30, 700), dtype="f4")
    with pytest.raises(DataError, match=r"fwd takes pixels of square images with sides of 32, 64, 128, 256"):
        fe.metrics(rows, rows, "fwd")


@pytest.mark.by_turns(4)
@pytest.mark.long
def test_it_is_ranked_with_an_interval():
    rng = np.random.default_rng(1)
    ref, fresh, far = (ArrayEmbeddings(rng.random((200, 3072), dtype="f4") + shift) for shift in (0, 0, 1))
    board = fe.leaderboard({"far": far, "fresh": fresh}, ref, metrics=["fwd"])
    assert [row.name for row in board.rows] == ["fresh", "far"]
    assert all(row.scores["fwd"].interval is not None for row in board.rows)
