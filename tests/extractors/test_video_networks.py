"""torchvision's video networks give their own logits, and the features those are made of."""

import hashlib
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torchvision import models

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.networks import LOADERS, load_backbone, torchvision_models
from finc_eval.extractors.preprocess import normalize_values, resize_frames

CARDS = [card for name in available_cards() if (card := load_card(name)).loader.kind == "torchvision-video"]
SLOW = {"mvit-v2-s", "swin3d-t", "r3d-18"}
"""Networks whose forward pass takes seconds."""

PRESETS = {card.name: models.get_model_weights(card.loader.model).DEFAULT for card in CARDS}


def by_name(card):
    return card.name


def clip_for(card, frames):
    rng = np.random.default_rng(0)
    clip = rng.integers(0, 256, (1, frames, *card.preprocessing.size, 3), np.uint8)
    return normalize_values(torch.from_numpy(clip), card.preprocessing)


def test_there_are_cards_of_four_networks():
    assert [card.name for card in CARDS] == ["mvit-v2-s", "r3d-18", "s3d", "swin3d-t"]


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    "card", [pytest.param(card, marks=[pytest.mark.long] * (card.name in SLOW)) for card in CARDS], ids=by_name
)
@torch.inference_mode()
def test_a_saved_network_gives_torchvisions_logits_and_their_features(card, tmp_path):
    torch.manual_seed(0)
    original = models.get_model(card.loader.model, weights=None).eval()
    torch.save(original.state_dict(), tmp_path / card.weights.file)
    network = load_backbone(card, torch.device("cpu"), tmp_path / card.weights.file)
    clip = clip_for(card, 16 if card.name != "swin3d-t" else 8)
    out = network(clip)
    assert out[card.output.layer].shape == (1, card.output.dimension)
    assert out[card.extra["logits"].layer].shape == (1, card.extra["logits"].dimension)
    assert torch.equal(out["logits"], original(clip))
    head = next(layer for layer in reversed(list(original.modules())) if hasattr(layer, "weight"))
    by_hand = out["features"] @ head.weight.flatten(1).T + head.bias
    torch.testing.assert_close(out["logits"], by_hand, rtol=1e-5, atol=1e-5)
    assert not network.training
    assert not any(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_the_file_is_the_one_torchvision_names(card):
    assert card.weights.urls == (PRESETS[card.name].url,)
    assert PRESETS[card.name].url.endswith(f"/{card.weights.file}")
    assert card.weights.file.endswith(f"-{card.weights.sha256}.pth")


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_preprocessing_is_torchvisions_for_videos_of_4_to_3(card):
    coarse = np.random.default_rng(0).integers(0, 256, (2, 24, 32, 3), np.uint8)
    frames = resize_frames(coarse, replace(card.preprocessing, size=(240, 320), geometry="squash", crop_fraction=1.0))
    ours = normalize_values(torch.from_numpy(resize_frames(frames, card.preprocessing))[None], card.preprocessing)[0]
    theirs = PRESETS[card.name].transforms()(torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous())
    assert ours.shape == theirs.shape
    if card.name == "r3d-18":
        # 128x170 pixels here and 128x171 there, as the card says: less than a shift by one pixel.
        assert (ours - theirs).abs().mean() < theirs.diff(dim=-1).abs().mean()
    else:
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


def test_an_unknown_network_is_refused_with_the_nearest_name():
    card = replace(CARDS[0], loader=replace(CARDS[0].loader, model="mvit_v2"))
    with pytest.raises(FincEvalError, match=r'has no video network "mvit_v2" \(did you mean "mvit_v2_s"\?\)'):
        torchvision_models.create(card)


def test_unknown_options_are_refused():
    card = replace(CARDS[0], loader=replace(CARDS[0].loader, options={"depth": 5}))
    with pytest.raises(FincEvalError, match=r"cannot make mvit_v2_s with \{'depth': 5\}"):
        torchvision_models.create(card)


@pytest.mark.one_of_each
@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_they_are_never_without_weights(card):
    with pytest.raises(FincEvalError, match="must be trained"):
        load_backbone(replace(card, weights=None), torch.device("cpu"))


@pytest.mark.parametrize("kind", ["i3d", "transnetv2", "torchvision-video"])
def test_every_kind_has_its_module(kind):
    __import__(f"finc_eval.extractors.networks.{LOADERS[kind]}")
    assert hasattr(sys.modules[f"finc_eval.extractors.networks.{LOADERS[kind]}"], "create")


class SmallJepa(torch.nn.Module):
    """What V-JEPA is in small: patches of two frames, attention, the mean of the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = torch.nn.Conv3d(3, 16, (2, 16, 16), (2, 16, 16))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(clips).flatten(2).transpose(1, 2)
        return ((tokens @ tokens.transpose(1, 2)).softmax(2) @ tokens).mean(1)


JEPA = """
name = "jepa"
description = "An encoder of clips of one's own."
citation = "none"
traps = []

[loader]
kind = "torchscript"

[weights]
file = "{file}"
license = "own"
sha256 = "{sha256}"

[preprocessing]
size = [32, 32]
geometry = "squash"
method = "pil"
interpolation = "bicubic"
antialias = true
rounding = "uint8"
range = [0.0, 1.0]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]

[clip]
frames = 4
stride = 1
windows = 1
short = "hold"

[output]
layer = "tokens"
pooling = "average"
dimension = 16
"""


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning", "ignore:Detected pickle protocol:UserWarning")
def test_an_encoder_of_clips_in_a_torchscript_file_embeds_by_a_card(tmp_path):
    torch.manual_seed(0)
    network = SmallJepa().eval()
    torch.jit.script(network).save(tmp_path / "jepa.pt")
    digest = hashlib.sha256((tmp_path / "jepa.pt").read_bytes()).hexdigest()
    (tmp_path / "jepa.toml").write_text(JEPA.format(file=tmp_path / "jepa.pt", sha256=digest))
    clips = np.random.default_rng(0).integers(0, 256, (5, 4, 32, 32, 3), dtype=np.uint8)
    found = fe.extract(clips, tmp_path / "jepa.toml", tmp_path / "gen.h5")
    mean, std = (torch.tensor(values).view(3, 1, 1, 1) for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    pixels = (torch.from_numpy(clips).permute(0, 4, 1, 2, 3) / 255 - mean) / std
    with torch.inference_mode():
        torch.testing.assert_close(torch.as_tensor(found[:]), network(pixels), rtol=0, atol=1e-4)
    assert fe.metrics(found, found, ["jedi"])["jedi"].value == pytest.approx(0, abs=1e-6)
