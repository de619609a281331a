"""`finc-eval doctor extractors` and `finc-eval doctor weights`."""

import hashlib
import json
from importlib import resources

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, available_cards


@pytest.fixture(autouse=True)
def weights_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.delenv("FINC_EVAL_MIRROR", raising=False)
    return tmp_path / "weights"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def card(tmp_path):
    """A card of a small network whose weights are at an address, and not here yet."""
    torch.manual_seed(0)
    (tmp_path / "server").mkdir()
    file = tmp_path / "server" / "small.safetensors"
    save_file(timm.create_model("test_resnet", num_classes=3).state_dict(), file)
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text().split("[golden]")[0]
    text = text.replace('"pixels"', '"small"', 1).replace('kind = "pixels"', 'kind = "timm"\nmodel = "test_resnet"')
    text = text.replace('layer = "input"', 'layer = "features"').replace("dimension = 2352", "dimension = 96")
    text = text.replace("[28, 28]", "[64, 64]").replace('kind = "timm"', 'kind = "timm"\noptions = { num_classes = 3 }')
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    weights = (
        f'[weights]\nfile = "small.safetensors"\nlicense = "none"\nsha256 = "{digest}"\nurls = ["{file.as_uri()}"]\n'
    )
    (tmp_path / "small.toml").write_text(text + "\n" + weights)
    return tmp_path / "small.toml"


def test_all_cards_are_listed_with_what_they_take_and_whether_their_weights_are_here():
    result = run("doctor", "extractors", "list", "--json")
    records = {record["name"]: record for record in json.loads(result.stdout)}
    assert sorted(records) == available_cards()
    assert records["pixels"]["weights"] is None
    assert records[DEFAULT_EXTRACTOR] == {
        "name": DEFAULT_EXTRACTOR, "dimension": 1280, "takes": "images", "weights": "in package",
    }  # fmt: skip
    assert records["dinov2-vitl14"]["weights"] == "missing"
    assert records["i3d-rgb-k400"]["takes"] == "clips"
    assert "dinov2-vitl14" in run("doctor", "extractors", "list").stdout


def test_a_card_is_shown_with_its_traps():
    text = run("doctor", "extractors", "show", "inception-fid").stdout
    assert "method: tensorflow1" in text
    assert "Common mistakes:" in text
    assert (
        json.loads(run("doctor", "extractors", "show", "inception-fid", "--json").stdout)["output"]["dimension"] == 2048
    )


def test_an_extractor_is_known_by_one_digest_in_cards_caches_and_signatures(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    cache = fe.extract(images, "pixels", out=tmp_path / "a.h5")
    space = f"pixels@{cache.extractor_digest[:8]}"
    assert run("doctor", "extractors", "show", "pixels").stdout.startswith(f"{space}\n")
    assert json.loads(run("doctor", "extractors", "show", "pixels", "--json").stdout)["space"] == space
    assert fe.compare(cache, cache, features=20).space == space
    assert json.loads(run("doctor", "extractors", "show", "dinov2-vits14", "--json").stdout)["space"].startswith(
        "dinov2-vits14@"
    )


def test_the_default_extractor_gives_its_golden_values():
    result = run("doctor", "extractors", "check", DEFAULT_EXTRACTOR, "pixels")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("the golden values agree") == 2


def test_a_card_whose_golden_values_differ_is_said_to_be_wrong(tmp_path):
    text = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace("std = [1.0, 1.0, 1.0]", "std = [1.1, 1.0, 1.0]"))
    result = run("doctor", "extractors", "check", tmp_path / "mine.toml")
    assert result.exit_code == 3
    assert "the golden values differ by" in result.stdout
    assert "pixels: the embedding is not what the card says" in result.stderr


def test_missing_weights_are_one_sentence_with_the_command_that_gets_them(card, weights_folder):
    result = run("doctor", "extractors", "check", card)
    assert result.exit_code == 3
    assert "small.safetensors" in result.stderr and "finc-eval doctor weights fetch" in result.stderr
    (listed,) = json.loads(run("doctor", "weights", "list", card, "--json").stdout)
    assert (listed["name"], listed["state"]) == ("small", "missing")
    assert run("doctor", "weights", "where", card).stdout.strip() == str(weights_folder / "small.safetensors")
    assert run("doctor", "weights", "verify", card).exit_code == 3


def test_weights_are_fetched_verified_and_used(card, weights_folder):
    fetched = run("doctor", "weights", "fetch", card)
    assert fetched.exit_code == 0, fetched.stderr
    assert fetched.stdout.strip() == str(weights_folder / "small.safetensors")
    assert run("doctor", "weights", "verify", card).exit_code == 0
    assert "small on cpu: 96 values" in run("doctor", "extractors", "check", card, "--device", "cpu").stdout
    with (weights_folder / "small.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    result = run("doctor", "weights", "verify", card)
    assert result.exit_code == 3
    assert "the weights of small are missing or wrong" in result.stderr
