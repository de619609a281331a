"""Protocols: exactly the number of the card is computed, or the field that does not hold is named."""

import hashlib
import json
import tomllib
from importlib import resources

import numpy as np
import pytest
from _cards import pixel_card, small_pixel_card
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.kept import entries
from finc_eval.measures.gaussians.opened import gaussian_statistics
from finc_eval.measures.gaussians.reference_statistics import read_statistics
from finc_eval.measures.protocols.card import PROTOCOLS, available_protocols, load_protocol

RUN = fe.Run(device="cpu")
SIDE = 4  # pixels of the extractor's input: embeddings have 48 entries
DIMENSION = ("dimension = 2352", f"dimension = {3 * SIDE**2}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two sets of 60 pictures of 8 x 8 pixels, and cards of an extractor and of another."""
    place, draw = tmp_path_factory.mktemp("protocol"), np.random.default_rng(0)
    for name, shift in (("gen", 20), ("ref", 0)):
        (place / name).mkdir()
        for number, image in enumerate(draw.integers(0, 200, (60, 8, 8, 3)) + shift):
            Image.fromarray(image.astype(np.uint8)).save(place / name / f"{number}.png")
    small_pixel_card(place / "small.toml", SIDE)
    small_pixel_card(place / "other.toml", 2)
    return place


@pytest.fixture(autouse=True)
def own_records(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "RECORDS", str(tmp_path / "records"))
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


def protocol(folder, name="mine", digest=None, parameters="", **changed):
    """Write a protocol card and return its path."""
    how = tomllib.loads((folder / "small.toml").read_text())["preprocessing"]
    fields = {"metric": "fd", "extractor": "small.toml", "samples": 60, "size": [8, 8], "n": 60} | changed
    lines = [f'name = "{name}"', 'description = "A test."']
    lines += [f"{key} = {json.dumps(fields[key])}" for key in ("metric", "extractor", "samples", "size")]
    lines += [parameters, "[preprocessing]", *(f"{key} = {json.dumps(value)}" for key, value in how.items())]
    lines += ["[reference]", 'description = "all"', 'license = "CC0"', f"n = {fields['n']}"]
    lines += [] if digest is None else [f'digest = "{digest}"']
    lines += ["[source]", "code = []", "numbers = []", "verified = []", 'unverified = ["whether it matters"]']
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines))
    return path


def score(folder, card, gen="gen", ref="ref", **options):
    return fe.metrics(str(folder / gen), str(folder / ref), protocol=card, run=RUN, **options)[0]


def fields(score):
    return dict(score.signature.fields)


def test_the_number_is_that_of_the_metric_and_the_signature_says_the_protocol(folder):
    found = score(folder, protocol(folder))
    plain = fe.metrics.fd(str(folder / "gen"), str(folder / "ref"), extractor=folder / "small.toml", run=RUN)[0]
    assert found.value == plain.value and found.interval == plain.interval
    assert fields(found)["protocol"] == "mine (reference not verified)"
    assert [*fields(found)][-1] == "v" and fe.Signature.parse(str(found.signature)) == found.signature
    assert any("whether it matters" in note for note in found.notes)


def test_the_first_use_pins_a_reference_without_a_digest_and_a_digest_verifies_it(folder):
    card = protocol(folder, "pinned")
    first = score(folder, card)
    assert fields(score(folder, card))["ref"] == fields(first)["ref"]
    with pytest.raises(IncompatibleError, match=r"reference\.digest must be .* first use"):
        score(folder, card, ref="gen")
    digest = next(note for note in first.notes if "no digest" in note).split()[-1]
    assert fields(first)["ref"] == digest[:12]
    verified = score(folder, protocol(folder, "verified", digest))
    assert fields(verified)["protocol"] == "verified" and verified.value == first.value
    with pytest.raises(IncompatibleError, match=rf"reference\.digest must be {digest}, and"):
        score(folder, protocol(folder, "verified", digest), ref="gen")


def test_a_refused_number_pins_nothing(folder):
    card = protocol(folder, "late", samples=61)
    with pytest.raises(IncompatibleError):
        score(folder, card)
    score(folder, protocol(folder, "late"), gen="ref", ref="gen")


FIELDS = {
    "samples": lambda folder: score(folder, protocol(folder, "a", samples=50_000)),
    "reference.n": lambda folder: score(folder, protocol(folder, "b", n=59)),
    "size": lambda folder: score(folder, protocol(folder, "c", size=[8, 16])),
    "extractor": lambda folder: score(folder, protocol(folder, "d"), extractor=folder / "other.toml"),
    "precision": lambda folder: score(folder, protocol(folder, "e"), extractor=fe.Extraction(precision="bfloat16")),
    "color": lambda folder: score(folder, protocol(folder, "f"), extractor=fe.Extraction(color="srgb")),
    "reference": lambda folder: fe.metrics(
        str(folder / "gen"), gaussian_statistics(np.eye(48)), protocol=protocol(folder, "g"), run=RUN
    ),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_does_not_hold_is_named_before_anything_is_embedded(folder, field, tmp_path):
    with pytest.raises(IncompatibleError, match=rf"does not hold: {field} must be "):
        FIELDS[field](folder)
    assert not list((tmp_path / "cache").rglob("*.h5"))


def test_a_shipped_protocol_names_the_field_before_it_asks_for_weights(folder):
    with pytest.raises(IncompatibleError, match=r"does not hold: samples must be 50,000, and gen has 60"):
        score(folder, "cifar10-edm-50k")


def test_what_a_file_says_of_its_samples_does_not_verify_it(folder, tmp_path):
    made = score(folder, protocol(folder, "made"), save_statistics=tmp_path / "ref.npz")
    digest = next(note for note in made.notes if "no digest" in note).split()[-1]
    with pytest.raises(IncompatibleError, match=rf"reference\.digest must be {digest}, and"):
        score(folder, protocol(folder, "strict", digest), ref=tmp_path / "ref.npz")


def test_embeddings_by_another_extractor_or_of_none_are_refused(folder, tmp_path):
    other = fe.extract(str(folder / "gen"), folder / "other.toml", out=tmp_path / "gen.h5", run=RUN)
    for gen in (str(other.path), np.ones((60, 48), np.float32)):
        with pytest.raises(IncompatibleError, match="extractor must be small"):
            fe.metrics(gen, str(folder / "ref"), protocol=protocol(folder), run=RUN)


def test_a_cache_counts_as_its_samples_if_it_was_made_as_the_card_says(folder, tmp_path):
    how = folder / "small.toml"
    caches = {
        name: fe.extract(str(folder / name), how, out=tmp_path / f"{name}.h5", run=RUN) for name in ("gen", "ref")
    }
    found = fe.metrics(*(str(cache.path) for cache in caches.values()), protocol=protocol(folder, "same"), run=RUN)[0]
    assert found.signature == score(folder, protocol(folder, "same")).signature
    changed = pixel_card(folder / "small.toml", ("[28, 28]", f"[{SIDE}, {SIDE}]"), ("bicubic", "bilinear"), DIMENSION)
    try:
        other = fe.extract(str(folder / "gen"), changed, out=tmp_path / "changed.h5", run=RUN)
    finally:
        small_pixel_card(folder / "small.toml", SIDE)
    with pytest.raises(IncompatibleError, match=r"preprocessing\.interpolation must be bicubic, and gen has bilinear"):
        fe.metrics(str(other.path), str(folder / "ref"), protocol=protocol(folder, "same"), run=RUN)


def test_reference_statistics_are_made_kept_and_handed_on(folder, tmp_path):
    """The file names its protocol and its license, and its SHA-256 is the digest that a card states."""
    statistics = tmp_path / "ref.npz"
    made = score(folder, protocol(folder, "made"), save_statistics=statistics)
    with np.load(statistics) as file:
        assert str(file["protocol"]) == "made" and str(file["license"]) == "CC0" and int(file["n"]) == 60
    assert read_statistics(statistics).n == 60
    again = score(folder, protocol(folder, "made"), ref=statistics)  # the same reference as on the first use
    assert again.value == pytest.approx(made.value) and fields(again)["ref"] == fields(made)["ref"]
    digest = hashlib.sha256(statistics.read_bytes()).hexdigest()
    found = score(folder, protocol(folder, "handed", digest), ref=statistics)
    assert found.value == pytest.approx(made.value) and fields(found)["protocol"] == "handed"
    with pytest.raises(IncompatibleError, match=r"reference\.n must be 61, and ref has 60"):
        score(folder, protocol(folder, "more", digest, n=61), ref=statistics)


def test_statistics_in_the_file_of_the_reference_count_and_not_the_images_beside_them(folder, tmp_path):
    """ADM's reference has both: statistics of the whole set, and some of its images."""
    reference, images = tmp_path / "both.npz", np.random.default_rng(1).integers(0, 200, (9, 8, 8, 3), dtype=np.uint8)
    score(folder, protocol(folder, "made"), save_statistics=tmp_path / "ref.npz")
    with np.load(tmp_path / "ref.npz") as file:
        np.savez(reference, arr_0=images, mu=file["mu"], sigma=file["sigma"])
    digest = hashlib.sha256(reference.read_bytes()).hexdigest()
    found = score(folder, protocol(folder, "both", digest), ref=reference)
    assert found.value == pytest.approx(score(folder, protocol(folder, "both"), ref="ref").value)
    assert fields(found)["protocol"] == "both" and fields(found)["n"] == "60/?"


def test_parameters_of_the_metric_are_those_of_the_card(folder):
    """StyleGAN's code divides covariances by n: here both sets have 60 samples, so that term shrinks by 59/60."""
    found = score(folder, protocol(folder, "styled", parameters="parameters = {ddof = 0}"))
    cards = (folder / "small.toml",)
    gen, ref = (np.asarray(fe.extract(str(folder / name), *cards, run=RUN), np.float64) for name in ("gen", "ref"))
    mean_term = ((gen.mean(0) - ref.mean(0)) ** 2).sum()
    whole = fe.metrics.fd(gen, ref, run=RUN).value
    assert found.value == pytest.approx(mean_term + (whole - mean_term) * 59 / 60, rel=1e-6)
    assert fields(found)["ddof"] == "0"
    with pytest.raises(UsageError, match="ddof must be 0 or 1, got 2"):
        fe.metrics.fd(gen, ref, ddof=2, run=RUN)
    with pytest.raises(UsageError, match="fd has no parameter 'ddoff'"):
        score(folder, protocol(folder, "wrong", parameters="parameters = {ddoff = 0}"))


@pytest.mark.parametrize("name", available_protocols())
def test_shipped_protocols_name_their_code_and_state_no_digest_that_nobody_computed(name):
    card = load_protocol(name).card
    assert card.name == name and card.reference.digest is None
    assert all("commit" in code for code in card.source.code) and card.source.code
    assert card.source.verified and card.source.unverified
    with pytest.raises(IncompatibleError, match=f"{name} does not hold: extractor must be {card.extractor}"):
        fe.metrics(np.ones((3, 4)), np.ones((3, 4)), protocol=name)


def test_there_are_five_shipped_protocols_and_a_wrong_name_lists_them():
    assert len(available_protocols()) == 5
    with pytest.raises(UsageError, match="cifar10-edm-50k"):
        fe.metrics(np.ones((3, 4)), np.ones((3, 4)), protocol="cifar10")


def test_cards_that_make_no_sense_are_refused(folder):
    shipped = (resources.files(PROTOCOLS) / "cifar10-edm-50k.toml").read_text()
    for old, new, named in (
        ("antialias = false", "antialias = true", "preprocessing.antialias"),
        ("n = 50000", 'n = 50000\ndigest = "12ab"', "reference.digest"),
        ("samples = 50000", "samples = 0", "samples"),
    ):
        (folder / "bad.toml").write_text(shipped.replace(old, new, 1))
        with pytest.raises(DataError, match=named):
            load_protocol(folder / "bad.toml")


def test_the_verb_takes_a_protocol_and_nothing_that_it_decides(folder):
    command = ["metrics", "--gen", folder / "gen", "--ref", folder / "ref", "--protocol", protocol(folder, "verb")]
    done = CliRunner().invoke(app, [*map(str, command), "--json", "--device", "cpu"])
    assert done.exit_code == 0, done.stderr
    assert "|protocol:verb (reference not verified)|" in json.loads(done.stdout)["scores"][0]["signature"]
    for option in (["--metrics", "kid"], ["--by", "label"], ["--explain", "2.5"]):
        refused = CliRunner().invoke(app, [*map(str, command), *option, "--device", "cpu"])
        assert refused.exit_code == 3 and option[0].strip("-") in refused.output.replace("--protocol", "explain")
