"""Numbers have the range that is stated, in every form of a set; or one clear sentence."""

import numpy as np
import pytest
import torch
from inputs._images import IMAGES, Items, first, pixels, saved
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


RANGES = {
    (-1, 1): lambda images: images / 127.5 - 1,
    (0, 1): lambda images: (images / 255).astype(np.float32),
    (0, 255): lambda images: images.astype(np.float64),
    (0, 4080): lambda images: images.astype(np.uint16) * 16,
    (-128, 127): lambda images: (images.astype(int) - 128).astype(np.int8),
    (-2.5, 2.5): lambda images: images / 51 - 2.5,
}
FORMS = {
    "array": lambda x: x,
    "tensor": first,
    "list of arrays": list,
    "dataset of tuples": lambda x: Items(lambda i: (first(x[i]), i)),
    "dataset of dictionaries": lambda x: Items(lambda i: {"image": first(x[i]), "label": i}),
    "loader": lambda x: torch.utils.data.DataLoader(Items(lambda i: first(x[i])), batch_size=3),
    "npz": lambda x: saved("x.npz", np.savez, x),
    "npy": lambda x: saved("x.npy", np.save, x),
    "pt": lambda x: saved("x.pt", lambda name, x: torch.save(first(x), name), x),
    "pth of a dictionary": lambda x: saved("x.pth", lambda name, x: torch.save({"images": first(x)}, name), x),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limits", RANGES, ids=str)
def test_numbers_of_a_stated_range_are_the_images_of_8_bits(limits, form):
    assert np.array_equal(pixels(FORMS[form](RANGES[limits](IMAGES)), range=limits), IMAGES)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_halved_precision_of_a_stated_range_is_near_the_images(kind):
    found = pixels(first(IMAGES / 127.5 - 1).to(kind), range=(-1, 1))
    assert np.abs(found.astype(int) - IMAGES).max() <= 1


@pytest.mark.parametrize("form", FORMS)
def test_numbers_outside_of_the_range_are_refused_with_their_range(form):
    source = FORMS[form](IMAGES / 127.5 - 1)
    with pytest.raises(FincEvalError, match=r"values from -\d.*outside of the range 0 to 1"):
        pixels(source, range=(0, 1))


@pytest.mark.parametrize("form", FORMS)
def test_numbers_without_a_range_are_refused_and_the_range_is_advised(form):
    with pytest.raises(FincEvalError, match=r"range=\(-1, 1\)"):
        pixels(FORMS[form]((IMAGES / 127.5 - 1).astype(np.float32)))


@pytest.mark.parametrize("limits", [(1,), (1, 1), (1, -1), (0, np.inf), (0, np.nan), "ab", 5, (0, 1, 2)], ids=str)
def test_a_range_is_two_increasing_numbers(limits):
    with pytest.raises(FincEvalError, match="range must be the numbers of black and white"):
        open_source(IMAGES, range=limits)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_in_no_range(value):
    images = IMAGES / 255
    images[3, 2, 1, 0] = value
    with pytest.raises(FincEvalError, match="outside of the range"):
        pixels(images, range=(0, 1))


DEEP = {
    ("png", (0, 4080)): lambda gray: gray.astype(np.uint16) * 16,
    ("tif", (0, 4080)): lambda gray: gray.astype(np.uint16) * 16,
    ("tif", (-1, 1)): lambda gray: (gray / 127.5 - 1).astype(np.float32),
    ("tif", (0, 255)): lambda gray: gray.astype(np.int32),
}


@pytest.mark.parametrize("suffix, limits", DEEP, ids=str)
def test_files_of_more_than_8_bits_have_the_stated_range(suffix, limits, tmp_path):
    (tmp_path / "set").mkdir()
    for number, gray in enumerate(IMAGES[..., 0]):
        Image.fromarray(DEEP[suffix, limits](gray)).save(tmp_path / f"set/{number:02d}.{suffix}")
    assert np.array_equal(pixels(tmp_path / "set", range=limits)[..., 0], IMAGES[..., 0])
    caches = [fe.extract(tmp_path / "set", "pixels", range=(limits[0], most)) for most in (limits[1], 2 * limits[1])]
    assert caches[0].key != caches[1].key and not np.array_equal(caches[0][:], caches[1][:])


def test_the_command_line_takes_a_range():
    np.save("x.npy", IMAGES / 127.5 - 1)
    done = CliRunner().invoke(
        app, ["extract", "x.npy", "--range", "-1,1", "--extractor", "pixels", "--out", "x.h5", "--quiet"]
    )
    assert done.exit_code == 0, done.output
    assert np.array_equal(fe.EmbeddingCache("x.h5")[:], fe.extract(IMAGES, "pixels")[:])
