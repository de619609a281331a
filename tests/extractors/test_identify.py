"""A file of weights is known by its digest, or by the names and shapes of its tensors, and is never guessed."""

import hashlib
from dataclasses import replace

import pytest
import torch
from _networks import message, save
from test_i3d import checkpoint, in_hassonys_names

from finc_eval.core.kept import entries
from finc_eval.extractors import catalog
from finc_eval.extractors import weights as weights_folder
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.fetch import fetch_weights
from finc_eval.extractors.weights import check_weights, weight_states

CONTENT = b"the bytes of a published file"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of weights and empty caches."""
    for name, place in (("TORCH_HOME", "torch"), ("HF_HOME", "hf"), (weights_folder.FOLDER_VARIABLE, "weights")):
        monkeypatch.setenv(name, str(tmp_path / place))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr(entries, "RECORDS", str(tmp_path / "records"))
    return tmp_path / "weights"


@pytest.fixture(scope="module")
def i3d_tensors():
    return checkpoint()


def published(sha256=SHA256, name="inception-fid"):
    """A card of which CONTENT is the file."""
    card = load_card(name)
    return replace(card, weights=replace(card.weights, sha256=sha256))


def put(path, content=CONTENT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


CACHES = {
    "torch hub": "torch/hub/checkpoints/pt_inception-2015-12-05-6726825d.pth",
    "torch hub, torch-fidelity's name": "torch/hub/checkpoints/weights-inception-2015-12-05-6726825d.pth",
    "the folder of weights, torch-fidelity's name": "weights/weights-inception-2015-12-05-6726825d.pth",
}


@pytest.mark.parametrize("place", CACHES)
def test_a_file_with_the_stated_digest_is_found_where_other_programs_keep_it(tmp_path, place):
    path = put(tmp_path / CACHES[place])
    assert check_weights(published()) == (path, SHA256)
    assert fetch_weights(published()) == path
    assert weight_states([published()])[0].state == "in cache"


def test_a_file_in_the_cache_of_hugging_face_is_found_by_its_digest_under_any_name(tmp_path):
    blob = put(tmp_path / "hf" / "hub" / "models--some--one" / "blobs" / SHA256)
    link = blob.parents[1] / "snapshots" / "0a1b" / "model.safetensors"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    assert check_weights(published()) == (link, SHA256)


@pytest.mark.parametrize("content", [b"", b"other bytes"])
def test_a_file_with_another_digest_in_a_cache_is_not_used_nor_changed(tmp_path, content):
    path = put(tmp_path / CACHES["torch hub"], content)
    assert "are not in" in message(check_weights, published())
    assert path.read_bytes() == content


def test_caches_are_not_searched_for_a_file_whose_digest_nobody_states(tmp_path):
    put(tmp_path / "torch" / "hub" / "checkpoints" / "i3d_pretrained_400.pt")
    assert "are not in" in message(check_weights, load_card("i3d-rgb-k400"))


def test_a_file_is_known_by_its_digest(tmp_path, monkeypatch):
    path = put(tmp_path / "any-name.pth")
    monkeypatch.setattr(catalog, "all_cards", lambda: (published(name="resnet50"), load_card("i3d-rgb-k400")))
    card = load_card(path)
    assert (card.name, check_weights(card)) == ("resnet50", (path, SHA256))


def test_a_file_of_several_cards_names_them(tmp_path, monkeypatch):
    path = put(tmp_path / "any-name.pth")
    cards = (published(), published(name="inception-fid-clean"))
    monkeypatch.setattr(catalog, "all_cards", lambda: cards)
    assert "could be of inception-fid or inception-fid-clean: name one of them" in message(load_card, path)


def test_a_file_is_known_by_the_names_of_its_tensors(tmp_path, monkeypatch, i3d_tensors):
    path = save(tmp_path / "any-name.pth", in_hassonys_names(i3d_tensors))
    few(monkeypatch)
    card = load_card(str(path))
    assert (card.name, card.loader.options, card.weights.file) == ("i3d-rgb-imagenet", {"epsilon": 1e-3}, str(path))


def few(monkeypatch):
    """Leave a few cards, so that the test does not make the networks of all of them."""
    names = ("i3d-rgb-k400", "i3d-rgb-imagenet", "i3d-torchscript", "inception-fid", "dinov2-vits14")
    cards = tuple(map(load_card, names))
    monkeypatch.setattr(catalog, "all_cards", lambda: cards)


def test_a_file_that_two_cards_run_with_another_epsilon_is_not_guessed(tmp_path, monkeypatch, i3d_tensors):
    path = save(tmp_path / "rgb_imagenet.pt", i3d_tensors)
    few(monkeypatch)
    text = message(load_card, path)
    assert "could be of i3d-rgb-k400 (epsilon 1e-05) or i3d-rgb-imagenet (epsilon 0.001): name one of them" in text


@pytest.mark.parametrize("name", ["i3d-rgb-k400", "i3d-rgb-imagenet"])
def test_the_first_use_of_such_a_file_says_which_epsilon_it_is_run_with(folder, recwarn, i3d_tensors, name):
    card = load_card(name)
    path = save(folder / card.weights.file, i3d_tensors)
    with pytest.warns(UserWarning, match="no digest is published") as caught:
        check_weights(card)
    text, epsilon = str(caught[0].message), f"{card.loader.options['epsilon']:g}"
    assert f"used as {name} (epsilon {epsilon}), and by its tensors it could be of i3d-rgb-" in text
    assert hashlib.sha256(path.read_bytes()).hexdigest() in text
    recwarn.clear()
    check_weights(card)
    assert not recwarn


def test_a_digest_that_was_recorded_for_another_card_speaks_against_a_file(folder, i3d_tensors):
    right = save(folder / "rgb_imagenet.pt", i3d_tensors)
    with pytest.warns(UserWarning, match="it is used as i3d-rgb-imagenet"):
        check_weights(load_card("i3d-rgb-imagenet"))
    put(folder / "i3d_pretrained_400.pt", right.read_bytes())
    text = message(check_weights, load_card("i3d-rgb-k400"))
    assert f"was first used as {right}, the file of i3d-rgb-imagenet" in text


def test_a_digest_that_another_card_states_speaks_against_a_file(folder, monkeypatch):
    put(folder / "i3d_pretrained_400.pt")
    monkeypatch.setattr(weights_folder, "all_cards", lambda: (published(name="resnet50"),))
    assert "is the file of resnet50" in message(check_weights, load_card("i3d-rgb-k400"))


def test_a_file_trained_further_is_not_taken_for_the_published_one(tmp_path, monkeypatch):
    network = catalog.load_card("inception-fid")
    from finc_eval.extractors.networks import loader_module

    path = save(tmp_path / "mine.pth", loader_module(network).create(network).state_dict())
    few(monkeypatch)
    text = message(load_card, path)
    assert "has the tensors of inception-fid, and another digest" in text and "write a card of your own" in text


def test_a_file_of_no_card_and_a_missing_one_are_one_sentence(tmp_path, monkeypatch):
    few(monkeypatch)
    path = save(tmp_path / "other.pt", {"weight": torch.ones(3)})
    assert "is not the file of a card that comes with finc-eval" in message(load_card, path)
    assert "missing.pt cannot be read" in message(load_card, tmp_path / "missing.pt")
