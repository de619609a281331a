"""Tables with images, labels and vectors in their columns, and labels beside tensors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from inputs._images import ENCODED, IMAGES, first, pixels
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.samples.opening import open_source


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
hf = pytest.importorskip("datasets")


TABLES = {
    "bytes and path": {"image": [{"bytes": data, "path": "a.png"} for data in ENCODED]},
    "bytes": {"content": ENCODED},
    "with labels": {"img": ENCODED, "label": [i % 3 for i in range(20)], "caption": ["x"] * 20},
    "two columns": {"other": ENCODED[::-1], "image": ENCODED},
    "large bytes": {"image": arrow.array(ENCODED, arrow.large_binary())},
    "a structure of other bytes": {"size": [{"bytes": len(data)} for data in ENCODED], "picture": ENCODED},
}


@pytest.mark.one_of_each("table", "rows")
@pytest.mark.parametrize("rows", [7, 1000])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_with_encoded_images_is_a_set(table, rows):
    parquet.write_table(arrow.table(TABLES[table]), "x.parquet", row_group_size=rows)
    assert np.array_equal(pixels("x.parquet"), IMAGES)
    assert np.array_equal(pixels("x.parquet", n=5), IMAGES[[int(name) for name in open_source("x.parquet", n=5).ids]])
    source = open_source("x.parquet")
    assert source.labels == ([str(i % 3) for i in range(20)] if table == "with labels" else None)
    assert source.prompts == (["x"] * 20 if table == "with labels" else None)
    np.savez("y.npz", IMAGES[::-1])
    assert fe.metrics("x.parquet", "y.npz", "kid", extractor="pixels").ref == "y.npz"


def test_rows_far_into_a_table_are_read_by_their_numbers():
    parquet.write_table(arrow.table({"image": [*ENCODED, *[ENCODED[0]] * 100, *ENCODED[::-1]]}), "x.parquet")
    assert [sample.id for sample in open_source("x.parquet").samples()] == [str(row) for row in range(140)]


def test_columns_of_a_table_are_chosen_by_name():
    parquet.write_table(arrow.table({"image": [list(ENCODED[0])], "path": ["a.png"]}), "y.parquet")
    with pytest.raises(FincEvalError, match="has no column of images: none of its columns image, path hold the bytes"):
        open_source("y.parquet")
    parquet.write_table(arrow.table({"a": ENCODED[::-1], "b": ENCODED}), "x.parquet")
    assert np.array_equal(pixels("x.parquet", image_key="b"), IMAGES)
    for key in (None, "c"):
        with pytest.raises(FincEvalError, match="a, b"):
            open_source("x.parquet", image_key=key)


def test_a_folder_of_tables_is_one_set_and_a_missing_image_is_named():
    Path("hub/data").mkdir(parents=True)
    for part in range(4):
        rows = [None if (part, i) == (2, 1) else ENCODED[5 * part + i] for i in range(5)]
        parquet.write_table(arrow.table({"image": rows}), f"hub/data/train-{part}.parquet")
    cache = fe.extract("hub", "pixels")
    assert len(cache) == 19 and cache.failures == [("data/train-2/1", "the row has no image")]
    rows = fe.extract(np.delete(IMAGES, 11, 0), "pixels")
    assert np.array_equal(cache[:], rows[:])
    source = open_source("hub")
    assert [sample.id for sample in source.samples()] == source.ids
    few = {source.ids[number]: IMAGES[number] for number in (3, 7, 19)}
    found = source.read(few)
    assert list(found) == list(few) and all(np.array_equal(found[name], few[name]) for name in few)


def test_embeddings_in_a_table_are_embeddings():
    parquet.write_table(arrow.table({"embedding": [[1.0, 2.0]] * 30, "label": ["a"] * 30}), "x.parquet")
    assert fe.metrics("x.parquet", "x.parquet", "vendi")["vendi"].value == pytest.approx(1)


COLUMNS_WITHOUT_IMAGES = {
    "lists of numbers": [[1.0, 2.0]] * 3,
    "lists of images": [[Image.fromarray(IMAGES[0])]] * 3,
    "rows of pixels": [IMAGES[0, ..., 0].tolist()] * 3,
    "paths": ["a.png"] * 3,
}


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("how", COLUMNS_WITHOUT_IMAGES)
def test_a_dataset_without_images_says_what_its_columns_hold(how, key):
    table = hf.Dataset.from_dict({"x": COLUMNS_WITHOUT_IMAGES[how], "n": [1, 2, 3]})
    kind = "string" if how == "paths" else "lists"
    with pytest.raises(FincEvalError, match=rf"no column of images.* it has x \({kind}\), n \(int64\)") as refused:
        open_source(table, image_key=key)
    assert "image_key" not in str(refused.value)


LABELS = torch.arange(20) % 3
TEXTS = [str(i % 3) for i in range(20)]
BESIDE = {
    "a tuple": (lambda x: (x, LABELS), TEXTS),
    "a list": (lambda x: [x, LABELS], TEXTS),
    "labels": (lambda x: {"images": x, "labels": LABELS}, TEXTS),
    "targets": (lambda x: {"images": x, "targets": LABELS.byte()}, TEXTS),
    "whole numbers as floats": (lambda x: {"images": x, "label": LABELS.double()}, TEXTS),
    "halves": (lambda x: {"images": x, "label": LABELS.bfloat16()}, TEXTS),
    "before them": (lambda x: {"labels": LABELS, "images": x}, TEXTS),
    "scores": (lambda x: (x, LABELS + 0.5), None),
    "large numbers": (lambda x: (x, LABELS + 10**7), [f"1000000{text}" for text in TEXTS]),
    "a matrix": (lambda x: {"images": x, "labels": LABELS[:, None]}, None),
}


@pytest.mark.parametrize("are_embeddings", [False, True], ids=["images", "embeddings"])
@pytest.mark.parametrize("beside", BESIDE)
def test_labels_beside_tensors_are_their_labels(beside, are_embeddings):
    make, labels = BESIDE[beside]
    samples = torch.randn(20, 5) if are_embeddings else first(IMAGES)
    held = make(samples)
    if are_embeddings and isinstance(held, dict):
        held["embeddings"] = held.pop("images")
    torch.save(held, "x.pt")
    source = as_embeddings("x.pt") if are_embeddings else open_source("x.pt")
    if are_embeddings:
        assert (source.column("label") if "label" in source.columns else None) == labels
    else:
        assert source.labels == labels


def test_a_vector_of_another_length_beside_tensors_without_names_is_refused():
    for samples in (torch.randn(20, 5), first(IMAGES)):
        torch.save((samples, LABELS[:7]), "x.pt")
        with pytest.raises(FincEvalError, match="weights of a network, not samples"):
            fe.extract("x.pt", "pixels") if samples.ndim > 2 else as_embeddings("x.pt")


def test_the_layout_of_the_hub_has_the_names_of_its_classes():
    columns = {"image": [Image.fromarray(x) for x in IMAGES], "label": [i % 2 for i in range(20)]}
    table = hf.Dataset.from_dict(columns).cast_column("image", hf.Image())
    table.cast_column("label", hf.ClassLabel(names=["cat", "dog"])).to_parquet("x.parquet")
    source = open_source("x.parquet")
    assert np.array_equal(pixels("x.parquet"), IMAGES) and source.labels[:3] == ["cat", "dog", "cat"]


def test_a_column_of_a_dataset_is_chosen_by_name():
    columns = {name: [Image.fromarray(x) for x in images] for name, images in (("a", IMAGES), ("b", 255 - IMAGES))}
    table = hf.Dataset.from_dict(columns).cast_column("a", hf.Image()).cast_column("b", hf.Image())
    assert np.array_equal(pixels(table, image_key="b"), 255 - IMAGES)
    with pytest.raises(FincEvalError, match="name one by image_key"):
        open_source(table)
    with pytest.raises(FincEvalError, match="no column of images 'c'"):
        open_source(table, image_key="c")
