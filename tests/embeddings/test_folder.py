"""The folder of caches: what is there, why a cache would not be used again, and how it is deleted."""

import errno
import json
import os
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from _cards import pixel_card
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.extract import extract
from finc_eval.embeddings.folder import entries, find
from finc_eval.embeddings.writer import only_writer, part_of


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def folder(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (6, 28, 28, 3), dtype=np.uint8)
    (tmp_path / "set").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / "set" / f"{number}.png")
    return tmp_path / "set"


def run(*arguments):
    result = CliRunner().invoke(app, ["extract", "cache", *map(str, arguments)])
    return result.exit_code, " ".join(result.stdout.split()), result.stderr


def test_the_folder_is_listed_with_what_each_cache_is_made_from(folder, cache_folder):
    assert run("ls")[:2] == (0, f"{cache_folder} holds no caches")
    cache = extract(folder, "pixels")
    (entry,) = entries()
    assert (entry.path, entry.state, entry.n, entry.dim) == (cache.path, "whole", 6, 2352)
    assert (entry.extractor, entry.source, entry.source_is_there) == ("pixels", str(folder), True)
    folder.rename(folder.with_name("moved"))
    (cache_folder / "damaged.h5").write_bytes(cache.path.read_bytes()[:5000])
    part_of(cache_folder / "begun.h5").write_bytes(b"")
    states = {entry.path.name: (entry.state, entry.source_is_there) for entry in entries()}
    expected = {"damaged.h5": ("unreadable", None), "begun.h5": ("unfinished", None)}
    assert states == expected | {cache.path.name: ("whole", False)}
    code, text, _ = run("ls")
    assert code == 0
    assert "(gone)" in text and "unfinished" in text
    records = json.loads(CliRunner().invoke(app, ["extract", "cache", "ls", "--json"]).stdout)
    notes = {record["state"]: record["note"] or "" for record in records}
    assert set(notes) == {"whole", "unfinished", "unreadable"}
    assert "is damaged (it has" in notes["unreadable"]


def test_explain_names_the_part_of_the_key_that_has_changed(folder, tmp_path):
    cache = extract(folder, "pixels")
    key = cache.key[:10]
    assert run("explain", key)[1].endswith("nothing has changed: it would be used as it is")
    changed = run("explain", key, "--precision", "bfloat16", "--extractor", "efficientnet-lite0")[1]
    assert "changed: loader.kind: pixels, now timm" in changed
    assert "changed: precision: float32, now bfloat16" in changed
    assert "samples" not in changed.split("changed:", 1)[1]
    Image.new("RGB", (28, 28)).save(folder / "3.png")
    assert "(0 added, 0 removed, though all 6 names are the same)" in run("explain", key)[1]
    (folder / "4.png").unlink()
    Image.new("RGB", (28, 28)).save(folder / "new.png")
    assert "(1 added, 1 removed)" in run("explain", key)[1]


def test_verify_finds_a_changed_row(folder):
    cache = extract(folder, "pixels")
    assert run("verify")[:2] == (0, f"{cache.path}: whole")
    cache.close()
    with h5py.File(cache.path, "r+") as file:
        file["embeddings"][2, 7] += 1
    code, text, error = run("verify", cache.path)
    assert code == 3
    assert text.startswith(f"{cache.path}: damaged (embeddings is not what was written)")
    assert "1 of 1 cache damaged" in error


def test_caches_are_deleted_by_the_beginning_of_their_key_or_all_that_is_unfinished(folder, cache_folder):
    cache = extract(folder, "pixels")
    part_of(cache_folder / "begun.h5").write_bytes(b"x" * 9000)
    assert run("rm")[0] == 3
    assert run("rm", "--unfinished", "--all")[0] == 3
    assert run("rm", "--unfinished")[1].startswith("deleted 1 cache,")
    assert [entry.path for entry in entries()] == [cache.path]
    assert run("rm", cache.key[:6])[1].startswith("deleted 1 cache,")
    assert list(cache_folder.iterdir()) == []


def test_a_cache_that_may_not_be_deleted_is_one_sentence(folder, monkeypatch):
    cache = extract(folder, "pixels")
    unlink = Path.unlink

    def forbidden(path, missing_ok=False):
        if path == cache.path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", forbidden)
    code, _, error = run("rm", "--all")
    assert code == 3
    assert f"{cache.path} cannot be deleted (Permission denied): check who may write to its folder" in error


def test_a_cache_that_is_being_written_is_not_deleted(folder):
    cache = extract(folder, "pixels")
    with only_writer(cache.path):
        code, _, error = run("rm", "--all")
    assert code == 3
    assert "is being written by another process" in error
    assert cache.path.exists()


def test_a_key_that_is_none_or_of_two_is_said_to_be(folder, cache_folder):
    cache = extract(folder, "pixels")
    with pytest.raises(FincEvalError, match="neither a cache file nor the beginning of a key"):
        find("no such key")
    (cache_folder / f"{cache.key[:8]}.h5").write_bytes(cache.path.read_bytes())
    with pytest.raises(FincEvalError, match="2 keys"):
        find(cache.key[:8])


def test_explain_names_labels_that_have_changed(folder):
    names = sorted(path.name for path in folder.iterdir())

    def label(last):
        rows = [f"{name},a" for name in names[:-1]] + [f"{names[-1]},{last}"]
        (folder / "metadata.csv").write_text("\n".join(["file_name,label", *rows]))

    label("b")
    key = extract(folder, "pixels").key[:10]
    assert "nothing has changed" in run("explain", key)[1]
    label("c")
    assert "changed: annotations: " in run("explain", key)[1]
    Image.new("RGB", (28, 28)).save(folder / "3.png")
    text = run("explain", key)[1]
    assert "changed: samples" in text and "changed: annotations" in text


def test_explain_asks_for_the_path_of_a_card_that_is_not_ours(folder, tmp_path):
    own = pixel_card(tmp_path / "mine.toml")
    cache = extract(folder, own)
    assert "made with a card of your own, mine: pass its path as --extractor" in run("explain", cache.key)[2]
    assert run("explain", cache.key, "--extractor", own)[1].endswith("it would be used as it is")


def test_files_of_others_are_neither_listed_nor_deleted(folder, cache_folder, tmp_path):
    extract(folder, "pixels")
    with h5py.File(cache_folder / "thesis.h5", "w") as file:
        file["x"] = 1
    (tmp_path / "photo.jpg").write_bytes(b"a photograph")
    assert [entry.state for entry in entries()] == ["whole"]
    for name in (cache_folder / "thesis.h5", tmp_path / "photo.jpg"):
        code, _, error = run("rm", name)
        assert code == 3 and "is not an embedding cache" in error
        assert name.exists()
    assert run("rm", "--all")[1].startswith("deleted 1 cache,")
    assert [file.name for file in cache_folder.iterdir()] == ["thesis.h5"]


def test_a_cache_elsewhere_is_deleted_by_its_path_whatever_its_name(folder, tmp_path):
    cache = extract(folder, "pixels", tmp_path / "embeddings")
    assert run("rm", cache.path)[1].startswith("deleted 1 cache,")
    assert not cache.path.exists()


def test_what_nobody_is_writing_is_deleted_though_something_else_is_being_written(folder, cache_folder):
    idle, busy = extract(folder, "pixels", n=3), extract(folder, "pixels")  # the latest is looked at first
    with only_writer(busy.path):
        code, text, error = run("rm", "--all")
    assert (code, text.startswith("deleted 1 cache,")) == (3, True)
    assert "is being written by another process" in error
    assert (busy.path.exists(), idle.path.exists()) == (True, False)


def test_shards_named_by_a_pattern_are_gone_only_when_one_of_them_is(tmp_path, folder):
    for number in range(2):
        with tarfile.open(tmp_path / f"s-{number}.tar", "w") as shard:
            shard.add(folder / f"{number}.png", f"{number}.png")
    extract(tmp_path / "s-{0..1}.tar", "pixels")
    assert entries()[0].source_is_there is True
    (tmp_path / "s-1.tar").unlink()
    assert entries()[0].source_is_there is False
