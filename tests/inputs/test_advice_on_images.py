"""Images that do not have 8 bits are refused, with a call that converts them; the tests run that call."""

import re

import numpy as np
import pytest
import torch
from inputs._loaded import IMAGES, TENSOR, Items, read
from PIL import Image
from torch.utils.data import DataLoader

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

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
