"""Forms of golden pictures and of tonight's: folders, lists, arrays, dictionaries, single pictures, embeddings."""

import io
import struct

import numpy as np
import pytest
import torch
from _nights import scenes
from PIL import Image

import finc_eval as fe
from finc_eval.golden.pictures import match_pictures

N = 3


def as_folder(folder, suffix=".png", **how):
    folder.mkdir()
    for name, pixels in scenes(N).items():
        Image.fromarray(pixels).save(folder / f"{name}{suffix}", **how)
    return folder


def as_bytes(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


FORMS = {
    "a dictionary": lambda _: scenes(N),
    "a dictionary of pictures": lambda _: {name: Image.fromarray(one) for name, one in scenes(N).items()},
    "a dictionary of bytes": lambda _: {name: as_bytes(one) for name, one in scenes(N).items()},
    "a dictionary of floats": lambda _: {name: one.astype(np.float32) / 255 for name, one in scenes(N).items()},
    "a dictionary of tensors": lambda _: {
        name: torch.from_numpy(one.transpose(2, 0, 1).copy()) for name, one in scenes(N).items()
    },
    "a dictionary of float tensors": lambda _: {
        name: torch.from_numpy(one.transpose(2, 0, 1) / 255) for name, one in scenes(N).items()
    },
    "a dictionary of paths": lambda folder: {one.stem: one for one in as_folder(folder / "one").iterdir()},
    "a folder": lambda folder: as_folder(folder / "one"),
    "a path as text": lambda folder: str(as_folder(folder / "one")),
    "a folder of another format": lambda folder: as_folder(folder / "one", ".webp", lossless=True),
    "embeddings": lambda _: fe.EmbeddingSet(np.eye(N, dtype=np.float32), [*scenes(N)], images=[*scenes(N).values()]),
}


@pytest.mark.parametrize("form", FORMS)
def test_pictures_are_paired_by_id_in_any_form(tmp_path, form):
    found = match_pictures(FORMS[form](tmp_path), as_folder(tmp_path / "golden"))
    assert found.ids == ["p00.png", "p01.png", "p02.png"] and not found.missing and not found.additional
    for gen, ref in zip(found.gen, found.ref, strict=True):
        assert gen.digest == ref.digest and not gen.problem and not gen.is_clear


LISTS = {
    "a list of arrays": lambda many: [*many],
    "a list of pictures": lambda many: [Image.fromarray(one) for one in many],
    "a tuple": lambda many: tuple(many),
    "an array": np.stack,
    "a tensor": lambda many: torch.from_numpy(np.stack(many).transpose(0, 3, 1, 2).copy()),
}


@pytest.mark.parametrize("form", LISTS)
def test_lists_are_paired_by_their_order(form):
    many = [*scenes(N).values()]
    found = match_pictures(LISTS[form](many), many)
    assert found.ids == ["0", "1", "2"]
    assert [one.digest for one in found.gen] == [one.digest for one in found.ref]


SINGLE = {
    "an array": lambda one, _: one,
    "a picture": lambda one, _: Image.fromarray(one),
    "floats": lambda one, _: one / 255,
    "a tensor": lambda one, _: torch.from_numpy(one.transpose(2, 0, 1).copy()),
    "a file": lambda one, folder: Image.fromarray(one).save(folder / "made.png") or folder / "made.png",
}


@pytest.mark.parametrize("form", SINGLE)
def test_two_single_pictures_are_a_pair_whatever_their_names(tmp_path, form):
    pixels = scenes(1)["p00"]
    Image.fromarray(pixels).save(tmp_path / "golden.png")
    found = match_pictures(SINGLE[form](pixels, tmp_path), tmp_path / "golden.png")
    assert found.ids == ["golden.png"] and found.gen[0].digest == found.ref[0].digest


def test_missing_and_additional_pictures_are_said_and_a_missing_one_is_not_green(tmp_path):
    golden = scenes(N)
    made = {"p00": golden["p00"], "p01": golden["p01"], "new": golden["p02"]}
    night = fe.Golden(tmp_path / "floor.jsonl").add(made, golden)
    assert night.verdict == "amber"
    assert night.sentence.startswith("Amber: 1 golden picture (p02) is without a picture of tonight.")
    assert "1 picture (new) is without a golden picture, and not judged." in night.sentence
    more = fe.Golden(tmp_path / "floor.jsonl").add(golden | {"new": golden["p02"]}, golden)
    assert more.verdict == "green" and "(new)" in more.sentence


def test_transparent_files_are_seen_and_opaque_ones_are_not(tmp_path):
    golden, folder = scenes(2), tmp_path / "made"
    folder.mkdir()
    for (name, pixels), alpha in zip(golden.items(), (255, 100), strict=True):
        channel = np.full(pixels.shape[:2], alpha, np.uint8)
        Image.fromarray(np.dstack([pixels, channel])).save(folder / f"{name}.png")
    for made in (folder, {one.stem: str(one) for one in folder.iterdir()}):
        night = fe.Golden(tmp_path / "floor.jsonl").add(made, golden)
        assert night.sentence == "Red: p01 is partly transparent."


TRANSPARENT = {
    "a color of a palette": lambda one: one.quantize(200),
    "one color": lambda one: one,
    "one gray": lambda one: one.convert("L"),
    "one gray of 16 bits": lambda one: Image.fromarray(np.asarray(one.convert("L")).astype(np.uint16) * 257),
}
"""Modes in which a PNG file names a color that is transparent, as it has no channel of that."""


@pytest.mark.parametrize("name", TRANSPARENT)
def test_a_color_that_is_transparent_is_seen_in_any_mode(tmp_path, name):
    image = TRANSPARENT[name](Image.fromarray(scenes(1)["p00"]))
    color = image.getpixel((9, 9))
    for folder, how in (("golden", {}), ("tonight", {"transparency": color})):
        (tmp_path / folder).mkdir()
        image.save(tmp_path / folder / "p00.png", **how)
    for made in (tmp_path / "tonight", {"p00.png": str(tmp_path / "tonight" / "p00.png")}):
        night = fe.Golden(tmp_path / "floor.jsonl").add(made, tmp_path / "golden")
        assert night.sentence == "Red: p00.png is partly transparent."


def test_gray_that_was_multiplied_by_its_alpha_is_seen_in_a_tiff(tmp_path):
    """Pillow reads such a file as "La", and converts that to hardly any other mode."""
    stream, gray = io.BytesIO(), Image.fromarray(scenes(1)["p00"]).convert("L")
    Image.merge("LA", [gray, Image.new("L", gray.size, 100)]).save(stream, "TIFF")
    data = bytearray(stream.getvalue())
    data[data.find(struct.pack("<HH", 338, 3)) + 8] = 1  # kind of the further channel: associated alpha
    (tmp_path / "tonight").mkdir()
    (tmp_path / "tonight" / "p00.tif").write_bytes(data)
    for made in (tmp_path / "tonight", {"p00.tif": bytes(data)}):
        night = fe.Golden(tmp_path / "floor.jsonl").add(made, {"p00.tif": np.asarray(gray.convert("RGB"))})
        assert night.sentence == "Red: p00.tif is partly transparent."


REFUSED = {
    "no id in both": ({"a": scenes(1)["p00"]}, scenes(2), "no id is in both gen (a) and ref (p00 and p01)"),
    "nothing": ({}, scenes(2), "gen has no pictures"),
    "too many": ([scenes(1)["p00"]] * 1001, scenes(1), "gen has more than 1,000 pictures"),
    "values beyond 1": ({"p00": scenes(1)["p00"] * 1.0}, scenes(1), "p00 of gen"),
    "no picture": ({"p00": 7}, scenes(1), "p00 of gen is of type int"),
    "a missing file": ({"p00": "nowhere.png"}, scenes(1), "nowhere.png does not exist"),
    "a missing folder": ("nowhere/", scenes(1), "nowhere"),
    "a damaged golden picture": (scenes(1), {"p00": b"no picture"}, "the golden picture p00 cannot be read"),
    "a clip": (np.zeros((2, 4, 8, 8, 3), np.uint8), scenes(1), "gen"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_paired_is_refused_in_one_sentence_and_nothing_is_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    gen, ref, words = REFUSED[name]
    with pytest.raises(fe.FincEvalError) as refused:
        fe.Golden("floor.jsonl").add(gen, ref)
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert not (tmp_path / "floor.jsonl").exists()


@pytest.mark.parametrize("machine", ["", " ", 3, "m" * 1001])
def test_a_machine_is_a_name(tmp_path, machine):
    with pytest.raises(fe.UsageError, match="machine must be the name of a machine"):
        fe.Golden(tmp_path / "floor.jsonl").add(scenes(1), scenes(1), machine)
