"""Networks are the ones their cards name: outputs equal an independent formulation's."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from _networks import largest, message, stirred, with_weights
from PIL import Image
from safetensors.torch import save_file

from finc_eval.extractors.card import Loader
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.extractors.networks import load_backbone, loader_module, with_outputs
from finc_eval.extractors.preprocess import normalize_values, resize_frames

TRAINED = ("timm", "torchvision", "fid-inception")


BUILT = [name for name in available_cards() if load_card(name).loader.kind in TRAINED]


def family(name):
    """Return the maker of the network of a card, and the first word of its name there."""
    loader = load_card(name).loader
    return loader.kind, loader.model.partition("_")[0]


CPU = torch.device("cpu")


@pytest.mark.one_of_each(by=family)
@pytest.mark.parametrize("name", BUILT)
def test_every_cards_network_has_the_outputs_the_card_names(name):
    card = load_card(name)
    if card.loader.model.startswith("vit_"):
        # One block says as much of the shapes as forty.
        card = replace(card, loader=replace(card.loader, options=card.loader.options | {"depth": 1}))
    with torch.device("meta"):  # shapes without numbers
        network = with_outputs(loader_module(card), loader_module(card).create(card)).eval()
        outputs = network(torch.zeros(1, 3, *card.preprocessing.size))
    for output in (card.output, *card.extra.values()):
        assert outputs[output.layer].shape == (1, output.dimension)


@pytest.mark.one_of_each(by=lambda name: load_card(name).loader.kind)
@pytest.mark.parametrize("name", BUILT)
def test_no_network_that_must_be_trained_is_made_without_weights(name):
    card = load_card(name)
    tiny = {"timm": "resnet18", "torchvision": "resnet18"}.get(card.loader.kind, "")
    bare = replace(card, weights=None, loader=Loader(card.loader.kind, tiny))
    with torch.device("meta"):
        assert "makes a network that must be trained" in message(load_backbone, bare, CPU)


# FID Inception


@pytest.fixture(scope="module")
def inceptions(tmp_path_factory):
    """Our network and torch-fidelity's whole extractor, with the same random weights."""
    fidelity = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
    card = load_card("inception-fid")
    path = tmp_path_factory.mktemp("fid") / "inception.pth"
    torch.save(stirred(loader_module(card).create(card)).state_dict(), path)
    layers = ["2048", "logits_unbiased", "logits"]
    theirs = fidelity.FeatureExtractorInceptionV3("theirs", layers, feature_extractor_weights_path=path)
    return load_backbone(with_weights(card, path), CPU, path), theirs


@pytest.mark.parametrize(
    "size",
    [(613, 100), *(pytest.param(one, marks=pytest.mark.long) for one in ((32, 32), (64, 48), (299, 299), (400, 512)))],
    ids=str,
)
def test_inception_fid_equals_torch_fidelitys_extractor(inceptions, size):
    ours, theirs = inceptions
    how = load_card("inception-fid").preprocessing
    images = np.random.default_rng(size).integers(0, 256, (1, *size, 3), dtype=np.uint8)
    with torch.inference_mode():
        batch = normalize_values(torch.from_numpy(np.stack([resize_frames(image, how) for image in images])), how)
        mine = ours(batch)
        wanted = theirs(torch.from_numpy(images).permute(0, 3, 1, 2))
    for layer, other in zip(["features", "logits_unbiased", "logits"], wanted, strict=True):
        assert float(other.std()) > 0.01
        assert largest(mine[layer] - other) <= 1e-5 * largest(other)


def test_sfid_takes_the_first_seven_channels_of_the_blocks_first_branch(inceptions):
    ours, theirs = inceptions
    seen = []
    theirs.Mixed_6d.branch1x1.register_forward_hook(lambda module, inputs, output: seen.append(output))
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 3, 299, 299), dtype=np.uint8))
    with torch.inference_mode():
        theirs(image)
        mine = ours((image.float() - 128) / 128)["spatial"]
    assert mine.shape == (1, 2023)
    wanted = seen[0][0, :7].permute(1, 2, 0).flatten()
    assert largest(mine[0] - wanted) <= 1e-5 * largest(wanted)


@pytest.mark.parametrize("kind", ["pixels", "motion", "fid-inception", "transnetv2"])
@pytest.mark.parametrize("choice", [{"model": "v1"}, {"options": {"resize": True}}], ids=["model", "options"])
def test_a_kind_of_one_network_has_no_names_and_no_options(kind, choice):
    card = replace(load_card("pixels"), loader=Loader(kind, **choice))
    assert f"the loader {kind} has one network and no options, got" in message(load_backbone, card, CPU)


# EfficientNet-Lite0


@pytest.mark.one_of_each
@pytest.mark.parametrize(("height", "width"), [(65, 98), (64, 64), (33, 1)])
def test_efficientnet_lite0_is_timms(tmp_path, height, width):
    plain, card = stirred(timm.create_model("tf_efficientnet_lite0")).eval(), load_card("efficientnet-lite0")
    torch.save(plain.state_dict(), tmp_path / "net.pth")
    images = torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    for options in ({}, {"drop_rate": 0.2}):  # ours, and timm's own, which the options need
        before = torch.get_rng_state()
        network = load_backbone(with_weights(card, tmp_path / "net.pth", options=options), CPU, tmp_path / "net.pth")
        assert options or torch.equal(before, torch.get_rng_state()), "numbers are drawn, and the file has them"
        with torch.inference_mode():
            outputs = network(images)
            features = plain.forward_head(plain.forward_features(images), pre_logits=True)
            torch.testing.assert_close(outputs["features"], features, rtol=0, atol=0)
            torch.testing.assert_close(outputs["logits"], plain(images), rtol=0, atol=0)
    assert [*loader_module(card).create(card).state_dict()] == [*plain.state_dict()]


@pytest.mark.long
def test_efficientnet_lite0_recognizes_the_classes_of_photographs(assets):
    card = load_card("efficientnet-lite0")
    embedder = CardNetwork(card, "cpu")
    right = []
    with zipfile.ZipFile(assets / "photos" / "imagenet_500.zip") as photographs:
        names = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))[::2]
        for start in range(0, len(names), 50):
            some = names[start : start + 50]
            pixels = [np.asarray(Image.open(io.BytesIO(photographs.read(name))).convert("RGB")) for name in some]
            batch = np.stack([resize_frames(image, card.preprocessing) for image in pixels])
            logits = embedder(torch.from_numpy(batch))[:, card.output.dimension :]
            right += [int(Path(name).name[:4]) == top for name, top in zip(some, logits.argmax(1), strict=True)]
    assert len(right) == 250
    assert np.mean(right) >= 0.86


# DINOv2


@pytest.mark.one_of_each
@pytest.mark.parametrize(("model", "options"), [("resnet18", {}), ("inception_v3", {"init_weights": False})])
def test_torchvisions_networks_give_what_goes_into_their_last_layer_and_what_comes_out(tmp_path, model, options):
    if model == "inception_v3":
        options = options | {"transform_input": True, "aux_logits": True}
    plain = stirred(torchvision.models.get_model(model, weights=None, **options)).eval()
    torch.save(plain.state_dict(), tmp_path / "net.pth")
    card = with_weights(load_card("resnet50"), tmp_path / "net.pth", model=model, options=options)
    images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        outputs = load_backbone(card, CPU, tmp_path / "net.pth")(images)
        wanted, again = plain(images), plain.fc(outputs["features"])
    assert largest(outputs["logits"] - wanted) == 0
    assert largest(again - wanted) == 0


def test_timms_networks_give_pooled_features_and_logits(tmp_path):
    plain = stirred(timm.create_model("resnet18")).eval()
    save_file(plain.state_dict(), tmp_path / "net.safetensors")
    card = with_weights(load_card("timm:resnet18"), tmp_path / "net.safetensors")
    images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        outputs = load_backbone(card, CPU, tmp_path / "net.safetensors")(images)
        wanted, again = plain(images), plain.fc(outputs["features"])
    assert set(outputs) == {"features", "logits", "projection"}
    assert largest(outputs["logits"] - wanted) == 0
    assert largest(again - wanted) == 0


@pytest.mark.parametrize(("kind", "model"), [("timm", "resnet18x"), ("torchvision", "resnet18x")])
def test_an_unknown_network_is_refused_with_the_nearest(kind, model):
    card = replace(load_card("resnet50"), loader=Loader(kind, model))
    text = message(load_backbone, card, CPU)
    assert '"resnet18x" (did you mean "resnet18' in text


@pytest.mark.parametrize("kind", ["timm", "torchvision"])
def test_options_a_network_does_not_have_are_refused(kind):
    card = replace(load_card("resnet50"), loader=Loader(kind, "resnet18", {"color": "red"}))
    assert "correct loader.options" in message(load_backbone, card, CPU)


def test_a_network_of_torchvision_without_a_linear_layer_is_refused():
    card = replace(load_card("resnet50"), loader=Loader("torchvision", "squeezenet1_1"))
    assert "squeezenet1_1 has no linear layer" in message(load_backbone, card, CPU)
