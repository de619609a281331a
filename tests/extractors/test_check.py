"""A check says whether an extractor gives on this machine what its card says."""

from dataclasses import replace

import pytest
import timm
from safetensors.torch import save_file

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.network import check_extractor
from finc_eval.extractors.weights import locate

GOLDEN = [name for name in available_cards() if load_card(name).golden]


@pytest.mark.parametrize("name", GOLDEN)
def test_every_card_gives_its_golden_values(name):
    card = load_card(name)
    if card.weights and locate(card.weights) is None:
        pytest.skip(f"the weights of {name} are not here")
    report = check_extractor(card, "cpu")
    assert report.golden == "agrees"
    assert report.passed
    assert report.dimension == card.output.dimension
    assert report.norm == pytest.approx(card.golden.norm, rel=card.golden.tolerance)


@pytest.mark.parametrize("change", [{"norm": 25.7}, {"first": (0.7, 0.44313726)}])
def test_values_unlike_the_golden_ones_are_told(change):
    card = load_card("pixels")
    report = check_extractor(replace(card, golden=replace(card.golden, **change)), "cpu")
    assert report.golden == "differs"
    assert not report.passed
    assert report.deviation > card.golden.tolerance


def test_without_golden_values_the_numbers_are_shown_and_must_be_finite():
    report = check_extractor(replace(load_card("pixels"), golden=None), "cpu")
    assert (report.golden, report.finite, report.dimension, len(report.first)) == ("none", True, 2352, 4)
    assert report.passed


def test_missing_weights_are_said(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path))
    with pytest.raises(FincEvalError, match="run finc-eval doctor weights fetch dinov2-vits14"):
        check_extractor(load_card("dinov2-vits14"), "cpu")


USERS_CARD = """
name = "mine"
description = "A ResNet-18 of my own."
citation = "None."
traps = []

[loader]
kind = "timm"
model = "resnet18"
options = { num_classes = 7 }

[weights]
file = "./mine.safetensors"
license = "mine"

[preprocessing]
size = [64, 64]
geometry = "crop"
crop_fraction = 0.875
method = "pil"
interpolation = "bicubic"
antialias = true
rounding = "uint8"
range = [0.0, 1.0]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]

[output]
layer = "features"
pooling = "average"
dimension = 512

[extra.logits]
layer = "logits"
pooling = "none"
dimension = 7
"""


def test_a_card_and_a_file_beside_it_are_an_extractor(tmp_path):
    (tmp_path / "mine.toml").write_text(USERS_CARD)
    with pytest.raises(FincEvalError, match=r"are not at .*mine\.safetensors"):
        check_extractor(load_card(tmp_path / "mine.toml"), "cpu")
    save_file(timm.create_model("resnet18", num_classes=7).state_dict(), tmp_path / "mine.safetensors")
    report = check_extractor(load_card(tmp_path / "mine.toml"), "cpu")
    assert (report.dimension, report.finite) == (512, True)
