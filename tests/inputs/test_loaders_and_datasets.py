"""Loaders and data sets as they are: all that they draw, under any key, in any type; errors keep their name."""

import io
import re

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
TENSOR = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).contiguous()
SET = TensorDataset(TENSOR)


def read(source, **options):
    samples = list(open_source(source, **options).samples())
    assert not [sample.error for sample in samples if sample.error]
    return np.stack([sample.pixels for sample in samples])


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


class Items(Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 40

    def __getitem__(self, number):
        if number >= 40:
            raise IndexError
        return self.make(number)


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


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn]


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("form", ["tensor", "list", "iterator", "function", "dataset", "loader"])
def test_images_in_floats_of_any_kind_get_the_same_sentence(kind, form):
    floats = (TENSOR.float() / 255).to(kind)
    forms = {
        "tensor": lambda: (floats, {}),
        "list": lambda: (list(floats), {}),
        "iterator": lambda: (iter(floats), {"n": 40}),
        "function": lambda: (lambda count: floats[:count], {"n": 40}),
        "dataset": lambda: (Items(lambda i: floats[i]), {}),
        "loader": lambda: (DataLoader(Items(lambda i: floats[i]), batch_size=8), {}),
    }
    source, options = forms[form]()
    with pytest.raises(FincEvalError, match=str(kind).removeprefix("torch.") + r".*range is 0 to 1, pass \(255 \* x\)"):
        fe.extract(source, "pixels", **options)


SPECIAL = {
    "sparse": lambda x: x.to_sparse(),
    "meta": lambda x: x.to("meta"),
    "csr": lambda x: x.reshape(len(x), -1).float().to_sparse_csr(),
    "quantized": lambda x: torch.quantize_per_tensor(x.float(), 1.0, 0, torch.quint8),
    "nested": lambda x: torch.nested.nested_tensor(list(x.float())),
}


@pytest.mark.parametrize("special", SPECIAL)
def test_tensors_without_plain_numbers_are_one_sentence(special):
    with pytest.raises(FincEvalError, match=r"holds no plain numbers|images must be"):
        fe.extract(SPECIAL[special](TENSOR), "pixels")


@pytest.mark.parametrize("special", ["sparse", "meta", "csr", "quantized"])
def test_embeddings_without_plain_numbers_are_one_sentence(special):
    rows = torch.randn(40, 8)
    with pytest.raises(FincEvalError, match=r"is a tensor .*: pass a dense tensor"):
        fe.metrics(SPECIAL[special](rows), rows, "fd")


@pytest.mark.parametrize(
    "view",
    [lambda x: torch._neg_view(torch._neg_view(x)), lambda x: x.requires_grad_(False), lambda x: x[:, :, :, ::2]],
    ids=["negative", "detached", "strided"],
)
def test_views_of_tensors_are_their_values(view):
    assert len(read(view(TENSOR.clone()))) == 40


@pytest.mark.parametrize("shape", [(512, 100, 3), (64, 48, 1), (64, 48, 3)])
def test_one_photograph_is_one_sample(shape, tmp_path):
    one = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    tensor = torch.from_numpy(one)
    assert len(read(one)) == len(read(tensor)) == len(read(tensor.permute(2, 0, 1))) == 1
    np.savez(tmp_path / "one.npz", one)
    with pytest.raises(FincEvalError, match="is a single image"):
        open_source(tmp_path / "one.npz")


WAYS = {
    "object": lambda path: [Image.open(path)] * 2,
    "frame": lambda path: (image := Image.open(path), image.seek(2), [image] * 2)[2],
    "path": lambda path: [path, path],
    "bytes": lambda path: [{"image": {"bytes": path.read_bytes(), "path": None}}] * 2,
    "folder": lambda path: path.parent,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", ["gif", "png", "webp"])
def test_an_animation_is_refused_in_memory_as_in_a_file_and_one_of_its_frames_is_an_image(suffix, way, tmp_path):
    frames = [Image.fromarray(one) for one in IMAGES[:4]]
    frames[0].save(tmp_path / f"a.{suffix}", save_all=True, append_images=frames[1:], lossless=True)
    (sample, *_) = open_source(WAYS[way](tmp_path / f"a.{suffix}")).samples()
    assert "an animation" in sample.error
    with Image.open(tmp_path / f"a.{suffix}") as opened:
        assert read([opened.convert("RGB")] * 2).shape == (2, 8, 8, 3)


@pytest.mark.parametrize(
    "images, advice",
    [
        (IMAGES / 255, r"0 to 1, pass \(255 \* x\)"),
        (IMAGES / 127.5 - 1, r"-1 to 1, pass \(127\.5 \* x \+ 127\.5\)"),
        (IMAGES.astype("f4"), r"0 to 255, pass x\.round"),
        (IMAGES.astype("f4") * 9 - 5, "scale them to 0 to 255"),
        (np.full_like(IMAGES, np.nan, "f4"), "NaN or infinity"),
        (IMAGES > 127, r"255 \* x\.astype"),
        (IMAGES.astype("u2") * 257, r"x >> 8"),
        (IMAGES.astype("u2") << 4, r"12 bits.*x >> 4"),
        (IMAGES.astype("u2") << 2, r"10 bits.*x >> 2"),
        (IMAGES.astype("u2") << 6, r"x >> 8"),
        (IMAGES.astype("i8"), r"pass x\.astype\(np\.uint8\)"),
        ((IMAGES > 127).astype("i4"), r"255 \* x\.astype\(np\.uint8\) if 1 is white"),
        (IMAGES.astype("i4") - 128, "scale them to 0 to 255"),
        (np.concatenate([IMAGES, IMAGES[..., :1]], 3), r"drop the alpha channel, by x\[\.\.\., :3\]"),
        (np.zeros((9, 4, 8, 8), "f4"), "latents of a model"),
        (IMAGES.transpose(0, 3, 1, 2), r"x\.transpose\(0, 2, 3, 1\)"),
    ],
)
def test_advice_looks_at_the_values(images, advice, tmp_path):
    with pytest.raises(FincEvalError, match=advice):
        open_source(images)
    np.savez(tmp_path / "x.npz", arr_0=images)
    with pytest.raises(FincEvalError, match=advice):
        open_source(tmp_path / "x.npz")


TENSORS = {
    "0 to 1": lambda x: x / 255,
    "-1 to 1": lambda x: x / 127.5 - 1,
    "0 to 255": lambda x: x.float(),
    "whole numbers": lambda x: x.long(),
    "truth values": lambda x: x > 127,
}


@pytest.mark.parametrize("what", TENSORS)
@pytest.mark.parametrize("form", [lambda x: x, list, lambda x: iter(list(x))], ids=["tensor", "list", "iterator"])
def test_advice_on_tensors_is_in_calls_of_torch_that_run(what, form):
    images = TENSORS[what](torch.from_numpy(IMAGES).permute(0, 3, 1, 2))
    with pytest.raises(FincEvalError) as error:
        list(open_source(form(images), n=len(IMAGES)).samples())
    advice = re.search(r"pass (.*?\.to\(torch\.uint8\))", str(error.value))[1]
    assert "np." not in str(error.value)
    assert len(open_source(eval(advice, {"x": images, "torch": torch})).ids) == len(IMAGES)


ALPHA = np.concatenate([IMAGES, IMAGES[..., :1]], 3)
WITH_ALPHA = {
    "an array": lambda: ALPHA,
    "an array with channels first": lambda: ALPHA.transpose(0, 3, 1, 2),
    "a list": lambda: list(ALPHA),
    "a list with channels first": lambda: list(ALPHA.transpose(0, 3, 1, 2)),
    "tensors": lambda: list(torch.from_numpy(ALPHA).permute(0, 3, 1, 2)),
}


@pytest.mark.parametrize("form", WITH_ALPHA)
def test_advice_on_an_alpha_channel_is_about_the_axis_that_it_is_on(form):
    images = WITH_ALPHA[form]()
    with pytest.raises(FincEvalError, match="drop the alpha channel") as error:
        open_source(images)
    advice = re.search(r"by (x\[.*\])$", str(error.value))[1]
    opened = [eval(advice, {"x": one}) for one in images] if isinstance(images, list) else eval(advice, {"x": images})
    opened = torch.stack(opened) if form == "tensors" else np.stack(opened)
    pixels = (
        opened
        if opened.shape[-1] == 3
        else opened.permute(0, 2, 3, 1)
        if form == "tensors"
        else opened.transpose(0, 2, 3, 1)
    )
    assert np.array_equal(pixels, IMAGES)


def test_values_outside_of_a_range_name_their_set(tmp_path):
    np.savez(tmp_path / "x.npz", images=IMAGES / 127.5 - 1)
    for source, name in ((IMAGES / 127.5 - 1, "array"), (tmp_path / "x.npz", str(tmp_path / "x.npz"))):
        with pytest.raises(FincEvalError, match=f"row 0 of {name} holds values from .*: pass the range that they have"):
            list(open_source(source, range=(0, 1)).samples())


def test_a_sketch_of_samples_embeds_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path))
    for source in (IMAGES, list(IMAGES)):
        assert fe.Sketch.reference(source, extractor="pixels", features=20).n == len(IMAGES)


FORMS_THAT_ARE_NO_SET = {
    "a dictionary of images and labels": (lambda: {"images": IMAGES, "labels": [0] * len(IMAGES)}, "list.zip.images"),
    "a tuple of images and labels": (lambda: (IMAGES, np.zeros(len(IMAGES))), "list.zip.images"),
    "a list of tensors and labels": (lambda: [torch.from_numpy(IMAGES), torch.zeros(9)], "list.zip.images"),
    "an empty list": (list, "gen is an empty list"),
    "a table of paths": (
        lambda: pytest.importorskip("pandas").DataFrame({"path": ["a.png"], "label": ["b"]}),
        "its column path is not one of numbers: pass paths",
    ),
    "a table of vectors and labels": (
        lambda: pytest.importorskip("pandas").DataFrame({"x": [1.0], "label": ["b"]}),
        "metadata=others",
    ),
}


@pytest.mark.parametrize("what", FORMS_THAT_ARE_NO_SET)
def test_what_is_no_set_is_told_with_the_form_to_pass(what):
    make, said = FORMS_THAT_ARE_NO_SET[what]
    with pytest.raises(FincEvalError, match=said):
        fe.metrics(make(), IMAGES, "kid", extractor="pixels")


def test_images_of_four_rows_are_not_of_four_channels():
    assert len(read(IMAGES[:, :4, :4])) == 40


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
