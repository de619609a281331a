"""What `extract` embeds is embedded by every verb that compares sets, and what it does not take is said."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import FincEvalError

PIXELS = np.random.default_rng(0).integers(0, 255, (2, 40, 8, 8, 3), dtype=np.uint8)


def pictures(pixels):
    return [Image.fromarray(one) for one in pixels]


def saved(pixels, folder):
    folder.mkdir()
    for number, picture in enumerate(pictures(pixels)):
        picture.save(folder / f"{number:03d}.png")
    return sorted(folder.iterdir())


FORMS: dict[str, Callable] = {
    "one array": lambda pixels, folder: pixels,
    "a list of arrays": lambda pixels, folder: list(pixels),
    "a tuple of PIL images": lambda pixels, folder: tuple(pictures(pixels)),
    "a tensor, channels first": lambda pixels, folder: torch.from_numpy(pixels).permute(0, 3, 1, 2),
    "a list of tensors": lambda pixels, folder: [torch.from_numpy(one).permute(2, 0, 1) for one in pixels],
    "a list of paths": saved,
    "a list of texts": lambda pixels, folder: list(map(str, saved(pixels, folder))),
    "a list of encoded files": lambda pixels, folder: [path.read_bytes() for path in saved(pixels, folder)],
    "a folder": lambda pixels, folder: saved(pixels, folder)[0].parent,
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_images_gives_the_same(form, tmp_path):
    gen, ref = (FORMS[form](own, tmp_path / str(number)) for number, own in enumerate(PIXELS))
    expected = fe.metrics(*(fe.extract(own, "pixels") for own in PIXELS), "fd")["fd"].value
    assert fe.metrics(gen, ref, "fd", extractor="pixels")["fd"].value == pytest.approx(expected, rel=1e-6)


def test_gray_images_in_one_array_are_images():
    scores = fe.metrics(PIXELS[0, ..., 0], PIXELS[1, ..., 0], "fd", extractor="pixels")
    assert scores["fd"].value > 0


NO_IMAGES = {
    "features before pooling": np.ones((30, 48, 1, 1), np.float32),
    "tokens": np.ones((30, 4, 8), np.float32),
    "clips": np.ones((30, 9, 8, 8, 3), np.uint8),
    "lists of embeddings": [np.ones((30, 8), np.float32)] * 3,
}


@pytest.mark.parametrize("what", NO_IMAGES)
def test_arrays_of_other_shapes_are_no_images(what):
    with pytest.raises(FincEvalError, match=r"must be embeddings of shape \(n, d\), got shape"):
        fe.metrics(NO_IMAGES[what], NO_IMAGES[what], "fd")


def test_an_iterator_says_how_many_images_it_has():
    with pytest.raises(FincEvalError, match="pass their number as n"):
        fe.metrics(iter(pictures(PIXELS[0])), PIXELS[1], "fd", extractor="pixels")


CALLS: dict[str, Callable] = {
    "extract": lambda **options: fe.extract(PIXELS[0], "pixels", **options),
    "metrics": lambda **options: fe.metrics(PIXELS[0], PIXELS[1], "fd", **options),
    "metrics.kid": lambda **options: fe.metrics.kid(PIXELS[0], PIXELS[1], **options),
    "compare": lambda **options: fe.compare(PIXELS[0], PIXELS[1], **options),
    "kinds": lambda **options: fe.kinds({"gen": PIXELS[0], "ref": PIXELS[1]}, **options),
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("option, value", [("device", "cuda"), ("batch_size", 8)])
def test_an_option_of_a_run_is_told_from_an_option_of_a_result(verb, option, value):
    with pytest.raises(FincEvalError, match=rf"pass run=fe.Run\({option}={value!r}\)"):
        CALLS[verb](**{option: value})


@pytest.mark.parametrize("verb", ["extract", "metrics", "compare", "kinds"])
def test_an_unknown_option_is_told_with_what_is_known(verb):
    with pytest.raises(FincEvalError, match="unknown option 'extracter'"):
        CALLS[verb](extracter="pixels")
