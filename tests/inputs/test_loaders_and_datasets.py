"""Loaders and data sets as they are: all that they draw, under any key; errors keep their name."""

import io

import numpy as np
import pytest
import torch
from inputs._loaded import IMAGES, TENSOR, Items, read
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    DataLoader,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

SET = TensorDataset(TENSOR)


@pytest.mark.parametrize(
    "options, n",
    [
        ({}, 40),
        ({"shuffle": True}, 40),
        ({"sampler": [*range(40)] * 2}, 80),
        ({"sampler": range(10)}, 10),
        ({"sampler": WeightedRandomSampler([1.0] * 40, 200)}, 200),
        ({"sampler": RandomSampler(SET, replacement=True, num_samples=55)}, 55),
        ({"drop_last": True}, 32),
        ({"batch_sampler": BatchSampler(range(40), 7, drop_last=False)}, 40),
    ],
    ids=range(8),
)
def test_a_loader_has_as_many_samples_as_it_draws(options, n):
    sizes = {} if "batch_sampler" in options else {"batch_size": 16}
    assert len(read(DataLoader(SET, **sizes, **options))) == n


class Stream(IterableDataset):
    def __iter__(self):
        return iter(TENSOR)


class CountedStream(Stream):
    def __len__(self):
        return 40


STREAMS = {
    "stream": Stream,
    "stream that counts": CountedStream,
    "chain": lambda: ChainDataset([CountedStream()]),
    "loader": lambda: DataLoader(Stream(), 8),
    "loader of items": lambda: DataLoader(Stream(), None),
    "loader that counts": lambda: DataLoader(CountedStream(), 8),
    "loader of a chain": lambda: DataLoader(ChainDataset([CountedStream()]), 7),
}


@pytest.mark.parametrize("make", STREAMS)
def test_a_stream_of_torch_is_iterated_and_says_how_many_it_has_if_it_knows(make):
    assert np.array_equal(read(STREAMS[make](), n=40), IMAGES)
    if "count" in make or "chain" in make:
        assert np.array_equal(read(STREAMS[make]()), IMAGES)
    else:
        with pytest.raises(FincEvalError, match="does not say how many images it has: pass their number as n"):
            open_source(STREAMS[make]())


@pytest.mark.parametrize(
    "options",
    [
        {"batch_sampler": BatchSampler([*range(40)] * 2, 8, drop_last=False)},
        {"batch_size": 8, "collate_fn": lambda items: torch.cat([torch.stack([x for (x,) in items])] * 2)},
        {"batch_sampler": [list(range(40)), [0]]},
    ],
    ids=["batches", "two crops", "one too many"],
)
def test_a_loader_that_yields_more_than_it_says_is_refused(options):
    with pytest.raises(FincEvalError, match="yields more than the 40 images"):
        fe.extract(DataLoader(SET, **options), "pixels")
    assert len(read(DataLoader(SET, **options), n=41)) == 41


def encoded(image):
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


MAKERS = {
    "image and label": lambda i: {"image": TENSOR[i], "label": i % 3},
    "img": lambda i: {"img": IMAGES[i], "idx": i},
    "pixel_values": lambda i: {"pixel_values": TENSOR[i], "input_ids": torch.zeros(77)},
    "image beside a mask": lambda i: {"image": TENSOR[i], "mask": TENSOR[i][0]},
    "the only image": lambda i: {"photo": Image.fromarray(IMAGES[i]), "name": "x", "score": 0.5},
    "a dictionary and a label": lambda i: ({"image": TENSOR[i]}, i % 3),
    "bytes": lambda i: {"image": encoded(IMAGES[i])},
    "bytes of Hugging Face": lambda i: {"image": {"bytes": encoded(IMAGES[i]), "path": None}},
    "a tuple": lambda i: (TENSOR[i], i % 3, "more"),
    "encoded": lambda i: encoded(IMAGES[i]),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_items_are_their_images(make):
    assert np.array_equal(read(Items(make)), IMAGES)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_an_iterator_of_items_is_their_images(make):
    if not isinstance(make(0), tuple):
        assert np.array_equal(read((make(i) for i in range(40)), n=40), IMAGES)


@pytest.mark.parametrize("make", [MAKERS[key] for key in ("image and label", "img", "pixel_values", "a tuple")])
def test_a_loader_of_items_is_their_images(make):
    assert np.array_equal(read(DataLoader(Items(make), batch_size=16)), IMAGES)


UNCOLLATED = {
    "dictionaries": lambda i: {"image": IMAGES[i], "label": i % 2},
    "dictionaries of bytes": lambda i: {"image": encoded(IMAGES[i]), "label": i % 2},
    "tuples": lambda i: (IMAGES[i], i % 2),
    "images of Pillow and labels": lambda i: (Image.fromarray(IMAGES[i]), i % 2),
}


@pytest.mark.parametrize("what", UNCOLLATED)
def test_a_loader_that_collates_nothing_yields_its_items(what):
    loader = DataLoader([UNCOLLATED[what](i) for i in range(40)], batch_size=7, collate_fn=list)
    source = open_source(loader)
    assert np.array_equal([one.pixels for one in source.samples()], IMAGES)
    assert source.labels == [str(i % 2) for i in range(len(IMAGES))]


def test_labels_that_are_none_are_no_labels():
    loader = [(IMAGES[:4], [None] * 4), (IMAGES[4:8], [None] * 4)]
    source = open_source(iter(loader), n=8)
    assert len(list(source.samples())) == 8 and source.labels is None


UNOPENED = {
    "a table": (lambda: pytest.importorskip("pandas").DataFrame({"path": ["a.png"]}), r"list\(x\['path'\]\)"),
    "an array of paths": (lambda: np.array(["a.png", "b.png"]), r"pass list\(x\)"),
    "an array of objects": (lambda: np.array([IMAGES[0], None], dtype=object), r"pass list\(x\)"),
}


@pytest.mark.parametrize("what", UNOPENED)
def test_what_holds_images_in_another_way_is_refused_with_the_way(what):
    make, message = UNOPENED[what]
    with pytest.raises(FincEvalError, match=message):
        open_source(make())


def test_labels_of_dictionaries_are_labels():
    assert fe.extract(Items(MAKERS["image and label"]), "pixels").labels == [str(i % 3) for i in range(40)]


def test_the_output_of_a_pipeline_is_its_images():
    class Output:
        images = [Image.fromarray(one) for one in IMAGES]  # noqa: RUF012

    assert np.array_equal(read(iter([Output()]), n=40), IMAGES)
    assert np.array_equal(read(lambda count: Output(), n=40), IMAGES)


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["texts", "paths"])
@pytest.mark.parametrize("labeled", [False, True])
def test_a_list_of_paths_is_a_set(kind, labeled, tmp_path):
    paths = []
    for number, image in enumerate(IMAGES):
        paths.append(kind(tmp_path / f"{number}.png"))
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    assert np.array_equal(read([(path, "a") for path in paths] if labeled else paths), IMAGES)


@pytest.mark.parametrize("make", [lambda i: {"a": TENSOR[i], "b": TENSOR[i]}, lambda i: {"text": "x"}])
def test_a_dictionary_without_one_image_names_its_keys(make):
    with pytest.raises(FincEvalError, match=r"is a dictionary of .*: name its images by image_key"):
        fe.extract(Items(make), "pixels")


def raises(error):
    def make(number):
        if number in (0, 3, 7):
            raise error
        return IMAGES[number]

    return make


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize(
    "error",
    [KeyError("image"), IndexError("x"), TypeError("x"), AttributeError("x"), NameError("x"), AssertionError("x")],
)
def test_an_error_in_the_code_of_a_dataset_is_that_error(error, first):
    make = raises(error)
    with pytest.raises(FincEvalError, match=f"item {first} of the dataset raises {type(error).__name__}"):
        fe.extract(Items(lambda i: IMAGES[0] if i < first else make(i)), "pixels")


@pytest.mark.parametrize("error", [OSError("image file is truncated"), ValueError("bad"), SyntaxError("broken PNG")])
def test_a_damaged_file_of_a_dataset_is_an_unreadable_sample(error):
    make = raises(error)
    assert len(fe.extract(Items(lambda i: IMAGES[0] if not i else make(i)), "pixels").failures) == 2
