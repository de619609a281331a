"""Sets of Hugging Face: in any format, split, stream, and columns of arrays."""

import numpy as np
import pytest
from inputs._loaded import IMAGES, read
from PIL import Image

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

hf = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def table():
    columns = {"image": [Image.fromarray(x) for x in IMAGES], "label": [i % 3 for i in range(40)], "text": ["x"] * 40}
    return hf.Dataset.from_dict(columns).cast_column("image", hf.Image())


FORMATS = {
    "plain": lambda d: d,
    "transform": lambda d: d.with_transform(lambda rows: {"pixel_values": [0] * len(rows["image"])}),
    "torch": lambda d: d.with_format("torch"),
    "numpy": lambda d: d.with_format("numpy"),
    "pandas": lambda d: d.with_format("pandas"),
    "arrow": lambda d: d.with_format("arrow"),
    "torch, class labels": lambda d: d.cast_column("label", hf.ClassLabel(names=["0", "1", "2"])).with_format("torch"),
    "one split": lambda d: hf.DatasetDict({"train": d}),
    "columns of a format": lambda d: d.with_format("torch", columns=["label"]),
}


@pytest.mark.parametrize("how", FORMATS)
def test_a_dataset_of_hugging_face_is_what_is_stored_in_any_format(how, table):
    source = open_source(FORMATS[how](table))
    assert np.array_equal(np.stack([sample.pixels for sample in source.samples()]), IMAGES)
    assert source.labels == [str(i % 3) for i in range(40)]


SPLITS = {
    "two": (lambda d: hf.DatasetDict({"train": d, "test": d}), "holds the splits train, test: pass one of them, such"),
    "none": (lambda d: hf.DatasetDict(), "the dataset is empty"),
    "two streams": (
        lambda d: hf.IterableDatasetDict({one: d.to_iterable_dataset() for one in ("a", "b")}),
        r"holds the splits a, b: pass one of them, such as d\['a'\]",
    ),
    "a stream": (
        lambda d: hf.IterableDatasetDict({"train": d.to_iterable_dataset()}),
        r"holds the splits train: pass d\['train'\], and n",
    ),
}


@pytest.mark.parametrize("splits", SPLITS)
def test_splits_of_hugging_face_are_named(splits, table):
    make, message = SPLITS[splits]
    with pytest.raises(FincEvalError, match=message):
        open_source(make(table))


SHAPES = {
    "array 3-d": ("Array3D", IMAGES, "uint8"),
    "channels first": ("Array3D", IMAGES.transpose(0, 3, 1, 2), "uint8"),
    "gray": ("Array2D", IMAGES[..., 0], "uint8"),
    "floats": ("Array3D", IMAGES / np.float32(255), "float32"),
    "wide integers": ("Array3D", IMAGES.astype(np.int32), "int32"),
}


@pytest.fixture(params=SHAPES)
def arrays(request):
    """A dataset of Hugging Face with images as arrays, and what their pixels are."""
    kind, values, dtype = SHAPES[request.param]
    names = hf.ClassLabel(names=["cat", "dog"])
    features = hf.Features(
        picture=getattr(hf, kind)(shape=values.shape[1:], dtype=dtype), label=names, text=hf.Value("string")
    )
    columns = {"picture": list(values), "label": [i % 2 for i in range(40)], "text": [f"t{i}" for i in range(40)]}
    pixels = np.repeat(IMAGES[..., :1], 3, axis=-1) if kind == "Array2D" else IMAGES
    return hf.Dataset.from_dict(columns, features=features), pixels, dtype


@pytest.mark.one_of_each("arrays", "form")
@pytest.mark.parametrize("form", ["plain", "torch", "numpy", "saved", "split", "key"])
def test_a_column_of_arrays_is_images(arrays, form, tmp_path):
    given, pixels, dtype = arrays
    made = {
        "torch": lambda: given.with_format("torch"),
        "numpy": lambda: given.with_format("numpy"),
        "saved": lambda: given.save_to_disk(tmp_path / "set") or tmp_path / "set",
        "split": lambda: hf.DatasetDict({"train": given}),
    }.get(form, lambda: given)()
    more = {"image_key": "picture"} if form == "key" else {}
    if dtype != "uint8":
        with pytest.raises(FincEvalError, match=f"item 0 of the dataset has shape .* and dtype {dtype}, but images"):
            open_source(made, **more)
        more["range"] = (0, 1) if dtype == "float32" else (0, 255)
    source = open_source(made, **more)
    assert np.array_equal(np.stack([sample.pixels for sample in source.samples()]), pixels)
    assert source.labels == ["cat", "dog"] * 20 and source.prompts == [f"t{i}" for i in range(40)]


@pytest.mark.one_of_each
def test_one_of_several_columns_of_arrays_is_named(arrays, table):
    given, _, _ = arrays
    two = given.add_column("other", list(given["picture"]), feature=given.features["picture"])
    with pytest.raises(FincEvalError, match="has the columns of arrays picture, other: name one of them by image_key"):
        open_source(two)
    with pytest.raises(FincEvalError, match="has the columns of arrays picture: name one of them by image_key"):
        open_source(given, image_key="pictur")
    both = table.add_column("picture", list(given["picture"]), feature=given.features["picture"])
    assert np.array_equal(read(both), IMAGES)


def test_a_stream_of_hugging_face_is_its_images(table):
    assert np.array_equal(read(table.to_iterable_dataset(), n=40), IMAGES)
