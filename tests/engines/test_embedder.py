"""`Embedder`: a class that is called with a batch has the rows of `extract`, and keeps no files."""

import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from _videos import encode, scene
from PIL import Image

import finc_eval as fe

NETWORK = "efficientnet-lite0"
IMAGES = np.random.default_rng(0).integers(0, 256, (10, 24, 24, 3), dtype=np.uint8)
CPU = fe.Run(device="cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("FINC_EVAL_CACHE", str(folder))
    return folder


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def column(items):
    made = np.empty(len(items), object)
    made[:] = items
    return made


FORMS = {
    "array": lambda: IMAGES,
    "list of arrays": lambda: [*IMAGES],
    "channels first": lambda: [image.transpose(2, 0, 1) for image in IMAGES],
    "tensor": lambda: torch.from_numpy(IMAGES).permute(0, 3, 1, 2),
    "Pillow": lambda: [Image.fromarray(image) for image in IMAGES],
    "bytes": lambda: [png(image) for image in IMAGES],
    "column of bytes": lambda: column([png(image) for image in IMAGES]),
    "column of arrays": lambda: column([*IMAGES]),
    "pandas": lambda: pd.Series([png(image) for image in IMAGES]),
    "Arrow": lambda: pa.array([png(image) for image in IMAGES]),
    "Arrow of Hugging Face": lambda: pa.array([{"bytes": png(image), "path": None} for image in IMAGES]),
    "dictionary": lambda: {"image": IMAGES, "label": np.arange(10)},
    "dictionary of a column of bytes": lambda: {"image": column([png(image) for image in IMAGES])},
    "dictionary of another name": lambda: {"photo": IMAGES, "label": np.arange(10)},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_batch_has_the_rows_of_extract(form):
    right = fe.extract(IMAGES, "pixels")[:]
    rows = fe.Embedder("pixels")(FORMS[form]())
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, right)


def test_a_network_gives_the_same_bits_for_the_same_batches_and_writes_nothing(cache):
    embedder = fe.Embedder(NETWORK, run=CPU)
    parts = [embedder(IMAGES[start : start + 4]) for start in (0, 4, 8)]
    whole = embedder(IMAGES)
    assert not cache.exists()
    made = fe.extract(IMAGES, NETWORK, run=fe.Run(device="cpu", batch_size=4))
    np.testing.assert_array_equal(np.concatenate(parts), made[:])
    assert embedder.space == fe.Sketch.reference(made, features=10).space and embedder.dim == made.dim == 1280
    np.testing.assert_allclose(whole, made[:], atol=1e-5)


def test_a_pickle_names_the_weights_and_loads_them_in_its_own_process(tmp_path):
    embedder = fe.Embedder(NETWORK, run=CPU)
    right = embedder(IMAGES[:2])
    pickled = pickle.dumps(embedder)
    assert len(pickled) < 20_000
    (tmp_path / "pickled").write_bytes(pickled)
    np.save(tmp_path / "images.npy", IMAGES[:2])
    code = (
        "import pickle, numpy, sys; rows = pickle.load(open('pickled', 'rb'))(numpy.load('images.npy')); "
        "numpy.save('rows.npy', rows)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), right)


def test_other_weights_on_another_machine_are_refused():
    embedder = fe.Embedder(NETWORK, run=CPU)
    state = embedder.__getstate__() | {"space": f"{NETWORK}@00000000"}
    moved = object.__new__(fe.Embedder)
    moved.__dict__.update(state)
    with pytest.raises(fe.DataError, match=f"{NETWORK}@00000000"):
        moved(IMAGES)


CLIPS = np.stack([scene(seed=seed) for seed in range(3)])


@pytest.mark.parametrize("extractor", ["motion", "pixels:frames"])
def test_clips_have_the_rows_of_extract(extractor):
    right = fe.extract(CLIPS, extractor, run=CPU)[:]
    embedder = fe.Embedder(extractor, run=CPU)
    np.testing.assert_array_equal(embedder(CLIPS), right)
    np.testing.assert_array_equal(embedder([*CLIPS]), right)
    np.testing.assert_array_equal(embedder([CLIPS[0], CLIPS[1][:20]])[0], right[0])


def test_bytes_of_videos_have_the_rows_of_their_files(tmp_path):
    files = [encode("mp4", clip) for clip in CLIPS]
    (tmp_path / "set").mkdir()
    for number, data in enumerate(files):
        (tmp_path / "set" / f"{number}.mp4").write_bytes(data)
    np.testing.assert_array_equal(fe.Embedder("motion", run=CPU)(files), fe.extract(tmp_path / "set", "motion")[:])


UNREADABLE = {
    "damaged": ("pixels", b"no sample"),
    "damaged clip": ("motion", b"no sample"),
    "missing": ("pixels", None),
    "missing clip": ("motion", None),
    "missing bytes": ("pixels", {"bytes": None, "path": None}),
    "missing file": ("pixels", "there/is/none.png"),
}
"""Extractor, and what came in place of a sample."""


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_sample_that_cannot_be_read_is_an_error_or_a_row_of_nan(case):
    extractor, broken = UNREADABLE[case]
    fine = png(IMAGES[0]) if extractor == "pixels" else CLIPS[0]
    batch = [fine, broken, fine]
    with pytest.raises(fe.DataError, match=r"the batch has 1 unreadable sample \(1: "):
        fe.Embedder(extractor)(batch)
    rows = fe.Embedder(extractor, strict=False)(batch)
    assert np.isnan(rows[1]).all() and np.isfinite(rows[[0, 2]]).all()
    np.testing.assert_array_equal(rows[0], rows[2])


@pytest.mark.parametrize("empty", [[], np.empty(0, object), pa.array([], pa.binary())])
def test_an_empty_batch_has_no_rows(empty):
    assert fe.Embedder("pixels")(empty).shape == (0, 2352)


@pytest.mark.parametrize("options", [{"range": (-1, 1)}, {"color": "srgb"}])
def test_options_read_pixels_as_extract_does(options):
    images = IMAGES / np.float32(127.5) - 1 if "range" in options else [png(image) for image in IMAGES]
    np.testing.assert_array_equal(fe.Embedder("pixels", **options)(images), fe.extract(images, "pixels", **options)[:])


WRONG = {
    "a single image in bytes": (png(IMAGES[0]), fe.UsageError, r"is one bytes, .*: pass \[sample\]"),
    "a path": ("a.png", fe.UsageError, r"is one str, and"),
    "a number": (3, fe.UsageError, "of the type int"),
    "floats": (IMAGES / 255, fe.DataError, "uint8"),
    "a list of numbers": ([1, 2], fe.DataError, "sample 0 of the batch is of type int"),
    "a dictionary without images": (
        {"text": ["a", "b"]},
        fe.UsageError,
        "a dictionary of text, .*: pass the column alone",
    ),
    "latents": ([np.zeros((4, 8, 8), np.uint8)], fe.DataError, r"sample 0 of the batch has shape \(4, 8, 8\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_batch_is_refused(case):
    batch, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        fe.Embedder("pixels")(batch)


def test_clips_that_are_none_and_options_of_images_are_refused():
    with pytest.raises(fe.DataError, match="sample 0 of the batch"):
        fe.Embedder("motion")([IMAGES[0]])
    with pytest.raises(fe.DataError, match=r"sample 0 of the batch is the path a\.mp4: pass the bytes"):
        fe.Embedder("motion")(["a.mp4"])
    with pytest.raises(fe.UsageError, match="motion takes clips"):
        fe.Embedder("motion", range=(-1, 1))
    with pytest.raises(fe.UsageError, match="unknown extractor"):
        fe.Embedder("pixel")
