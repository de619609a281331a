"""Private sketches in files, and of samples in files: what they hold, and what is refused."""

import json

import h5py
import numpy as np
import pytest
import torch
from _cards import small_pixel_card
from _files import forge
from _private import DELTA, sketch_of
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.privacy import Guarantee, PrivateSketch, PublicTransform
from finc_eval.private.hermite.coordinate_kernels import CoordinateSum

pytestmark = pytest.mark.usefixtures("seeded_noise")


def test_a_file_holds_what_was_released_and_nothing_else(tmp_path, digits, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = (digits[0][:80].reshape(-1, 28, 28) * 255).astype(np.uint8)
    for name, part in (("public", images[:40]), ("a-secret-place", images[40:])):
        np.savez(tmp_path / f"{name}.npz", images=part)
    card = small_pixel_card(tmp_path / "small.toml", 8)
    public, private = (fe.extract(tmp_path / f"{name}.npz", card) for name in ("public", "a-secret-place"))
    sketch = sketch_of(private, PublicTransform.fit(public, 3))
    path, again = tmp_path / "s.h5", tmp_path / "again.h5"
    sketch.save(path)
    PrivateSketch.load(path).save(again)
    assert path.read_bytes() == again.read_bytes()
    content = path.read_bytes()
    for secret in ("a-secret-place", str(tmp_path), private.manifest_digest, private.key):
        assert secret.encode() not in content
    with h5py.File(path) as file:
        names = []
        file.visit(names.append)
        of_maps = {"transform", "transform/axes", "transform/center", "feature_map", "feature_map/center"}
        assert set(names) == {"checksums", "mean"} | of_maps
        promise, releases = file.attrs["promise"].decode(), json.loads(file.attrs["releases"])
    assert "random bytes" in promise
    assert releases[0]["guarantee"]["promise"] == str(Guarantee.of(1, DELTA))
    assert releases[0]["guarantee"]["ceilings"]["auc"] == pytest.approx(0.575, abs=5e-4)


def test_a_stored_sketch_scores_as_before(sets, transform, tmp_path):
    _, private, whole, _, labels = sets
    for rest in (
        {},
        {"feature_map": CoordinateSum(10, 4, length_scale=3.0)},
        {"labels": labels, "classes": ["1", "7"], "max_undescribed": 1},
    ):
        sketch = sketch_of(private, transform, **rest)
        sketch.save(tmp_path / "s.h5")
        again = PrivateSketch.load(tmp_path / "s.h5")
        kinds = None if sketch.classes is None else np.ones(len(whole), int)
        expected = sketch.score(whole, kinds)
        assert again.score(whole, kinds).interval == pytest.approx(expected.interval, rel=1e-9)
        assert again.signature == sketch.signature
        assert again.releases == sketch.releases


def test_unreadable_samples_are_records_all_the_same(tmp_path, digits, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    for number, row in enumerate(digits[0][:30]):
        Image.fromarray((row.reshape(28, 28) * 255).astype(np.uint8)).save(folder / f"{number:02d}.png")
    (folder / "07.png").write_bytes(b"no image")
    cache = fe.extract(folder, "pixels")
    assert (cache.n, len(cache.failures)) == (29, 1)
    public = PublicTransform.constant(cache.dim, 2, length_scale=10, radius=10)
    assert sketch_of(cache, public).m == 30


def test_a_sketch_that_is_no_sketch_is_said_to_be_none(tmp_path, sets, transform):
    sketch_of(sets[1], transform).save(tmp_path / "s.h5")
    forge(tmp_path / "s.h5", lambda header, arrays: arrays.pop("mean"))
    with pytest.raises(FincEvalError, match="is damaged"):
        PrivateSketch.load(tmp_path / "s.h5")
    with pytest.raises(FincEvalError, match="does not exist"):
        PrivateSketch.load(tmp_path / "t.h5")


def test_a_sketch_with_constants_that_are_whole_numbers_is_read_again(tmp_path, sets):
    sketch = sketch_of(sets[1], PublicTransform.constant(784, 3, length_scale=5, radius=np.int64(10)))
    sketch.save(tmp_path / "s.h5")
    assert PrivateSketch.load(tmp_path / "s.h5").signature == sketch.signature


def test_the_header_of_a_file_keeps_its_keys(tmp_path, sets, transform):
    sketch_of(sets[1], transform).save(tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5") as file:
        header = {name: text.decode() for name, text in file.attrs.items()}
    about = "program type layout version promise space transform feature_map classes features m noise mean"
    assert set(header) == {*about.split(), "releases", "signature", "content"}
    about = ["digest", "origin", "dims", "radius", "length_scale", "space", "fitted_on"]
    assert list(json.loads(header["transform"])) == about
    assert (header["program"], header["type"], header["layout"]) == ("finc-eval", "private sketch", "2")


DAMAGES = {
    "a number": lambda header, made, arrays: arrays.update(mean=arrays["mean"] + 1e-3 * np.eye(len(arrays["mean"]))[3]),
    "a feature": lambda header, made, arrays: arrays.update(mean=arrays["mean"][:-1]),
    "the radius": lambda header, made, arrays: header["transform"].update(radius=2 * header["transform"]["radius"]),
    "the noise": lambda header, made, arrays: made.update(noise=made["noise"] / 2),
    "the promise": lambda header, made, arrays: made["guarantee"].update(epsilon=0.1),
    "the owner": lambda header, made, arrays: made.update(sensitivity=made["sensitivity"] / 2, noise=made["noise"] / 2),
    "the square": lambda header, made, arrays: made.update(square=5.0),
    "a possible square": lambda header, made, arrays: made.update(square=made["square"] - 0.01),
    "the sampling": lambda header, made, arrays: made.update(sampling=1e-12),
    "the digest": lambda header, made, arrays: header.update(mean="0" * 64),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_sketch_that_contradicts_itself_is_damaged(tmp_path, sets, transform, damage):
    sketch_of(sets[1][:300], transform).save(tmp_path / "s.h5")
    forge(tmp_path / "s.h5", lambda header, arrays: DAMAGES[damage](header, header["releases"][0], arrays))
    with pytest.raises(FincEvalError, match="is damaged"):
        PrivateSketch.load(tmp_path / "s.h5")


@pytest.mark.long  # a quicker one, of folders by one extractor: test_private_sketch_cli.py
def test_a_release_takes_samples_and_embeds_both_sets_by_one_extractor(tmp_path, monkeypatch, digits, seeded_noise):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    images = (255 * digits[0]).astype(np.uint8).reshape(-1, 28, 28)
    for name, part in (("private", images[:40]), ("public", images[40:80])):
        (tmp_path / name).mkdir()
        for number, image in enumerate(part):
            Image.fromarray(image).save(tmp_path / name / f"{number}.png")
    folder, public = tmp_path / "private", tmp_path / "public"
    cache = fe.extract(public, "pixels", tmp_path / "public.h5")
    of_folders = sketch_of(folder, public, extractor="pixels")
    assert of_folders.space == f"pixels@{cache.extractor_digest[:8]}" and of_folders.m == 40
    private = fe.extract(folder, "pixels", tmp_path / "private.h5")
    # A folder is embedded by the extractor behind the public set. The axes of 2352 pixels are found once.
    monkeypatch.setattr(PublicTransform, "fit", lambda public: of_folders.transform)
    for data, known in ((folder, cache), (folder, of_folders), (private, of_folders)):
        seeded_noise(0)
        again = sketch_of(data, known)
        assert again.space == of_folders.space and torch.equal(again.mean, of_folders.mean)


def test_records_in_files_of_other_programs_are_those_of_the_array(tmp_path, seeded_noise):
    rng = np.random.default_rng(0)
    private, public = (rng.normal(size=(50, 6)).astype(np.float32) for _ in range(2))
    private[3] = np.nan  # counts as the center: a record must not make a release fail
    labels = np.array(["a", "b"] * 25)
    np.savez(tmp_path / "private.npz", embeddings=private, label=labels)
    np.save(tmp_path / "public.npy", public)
    seeded_noise(0)
    of_arrays = sketch_of(private, public, labels=list(labels), classes=["a", "b"])
    seeded_noise(0)
    of_files = sketch_of(tmp_path / "private.npz", tmp_path / "public.npy", classes=["a", "b"])
    assert torch.equal(of_files.mean, of_arrays.mean)
    assert of_files.transform.fitted_on == of_arrays.transform.fitted_on
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(tmp_path / "public.npy", tmp_path / "public.npy")
