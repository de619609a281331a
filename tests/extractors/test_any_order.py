"""Each card knows its file, whatever other cards tried before: a layout changes no tensors of its caller's."""

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from _networks import message, save
from test_i3d import checkpoint
from test_identify import folder  # noqa: F401 (empty folders of weights)

from finc_eval.extractors import catalog, identify
from finc_eval.extractors.catalog import all_cards, load_card
from finc_eval.extractors.networks import load_backbone, loader_module
from finc_eval.extractors.networks.tensors import LAYOUTS, load_tensors, renamed
from finc_eval.extractors.weights import check_weights

WITH_TENSORS = [card for card in all_cards() if card.weights and not hasattr(loader_module(card), "load")]

SMALL = [card for card in WITH_TENSORS if not any(size in card.name for size in ("vitl", "vitg"))]
"""Cards without the larger networks of a family, which take most of the time."""


FIRST_OF_EACH_LAYOUT = [*{card.weights.layout: card for card in reversed(SMALL)}.values()]


@cache
def network_of(name):
    """The network of a card, with shapes and without numbers; of a transformer, two blocks say as much as forty."""
    card = load_card(name)
    if (card.loader.model or "").startswith("vit_"):
        card = replace(card, loader=replace(card.loader, options=card.loader.options | {"depth": 2}))
    with torch.device("meta"):
        return loader_module(card).create(card)


@pytest.fixture
def once(monkeypatch):
    """Make each network once: 900 pairs of a file and a card need no more."""
    made = SimpleNamespace(create=lambda card: network_of(card.name))
    monkeypatch.setattr(identify, "loader_module", lambda _: made)


def of_facebook(own):
    """DINOv2 as Facebook publishes it: positions of 37 × 37 patches, a mask token, registers under their name."""
    width = own["cls_token"].shape[-1]
    found = {name.replace("mlp.fc1.", "mlp.w12.").replace("mlp.fc2.", "mlp.w3."): one for name, one in own.items()}
    if not any("mlp.w12.weight" in name and own[name.replace("w12", "fc1")].shape[0] != 4 * width for name in found):
        found = dict(own)  # only the giant's perceptron is gated
    if "reg_token" in found:
        found["register_tokens"] = found.pop("reg_token")
    blank = torch.empty(1, 1 + 37 * 37, width, device="meta")
    return found | {"mask_token": torch.empty(1, width, device="meta"), "pos_embed": blank}


OPENAI = (
    (r"^patch_embed\.proj", "conv1"),
    (r"^pos_embed", "positional_embedding"),
    (r"^cls_token", "class_embedding"),
    (r"^norm_pre", "ln_pre"),
    (r"^norm\.", "ln_post."),
    (r"^blocks\.", "transformer.resblocks."),
    (r"\.norm(\d)", r".ln_\1"),
    (r"attn\.qkv\.", "attn.in_proj_"),
    (r"attn\.proj", "attn.out_proj"),
    (r"mlp\.fc1", "mlp.c_fc"),
    (r"mlp\.fc2", "mlp.c_proj"),
    (r"^head\.weight", "proj"),
)


def of_openai(own):
    """The image tower of CLIP under OpenAI's names, with a part of the text tower."""
    found = {"token_embedding.weight": torch.empty(9, 512, device="meta")}
    for name, one in own.items():
        for pattern, theirs in OPENAI:
            name = re.sub(pattern, theirs, name)
        if name == "proj":
            one = one.T
        if name in ("class_embedding", "positional_embedding"):
            one = one.reshape(one.shape[-2:] if name.startswith("pos") else -1)
        if name != "head.bias":
            found[f"visual.{name}"] = one
    return found


def of_swav(own):
    heads = {name: torch.empty(3, device="meta") for name in ("projection_head.0.weight", "prototypes.weight")}
    return {f"module.{name}": one for name, one in (own | heads).items()}


def of_piergiaj(_):
    return {name: torch.empty(one.shape, device="meta") for name, one in checkpoint().items()}


PUBLISHED = {"facebook-dinov2": of_facebook, "swav": of_swav, "i3d": of_piergiaj}
"""What turns the tensors of a card's network into those of its published file, by its layout."""


def published(card):
    """The tensors of a card's file as they are published, without numbers."""
    own = dict(network_of(card.name).state_dict())
    if card.name.startswith("clip-"):
        return of_openai(own)
    return PUBLISHED.get(card.weights.layout, dict)(own)


def fits(cards, tensors):
    return {card.name for card in cards if identify._fits(card, tensors)}


@pytest.mark.parametrize("card", WITH_TENSORS, ids=lambda card: card.name)
@pytest.mark.one_of_each(by=lambda name: load_card(name).weights.layout)
def test_a_file_is_of_its_card_in_any_order_of_the_cards(once, card, request):
    alone = fits([card], published(card))
    assert alone == {card.name}
    tensors = published(card)
    before = {name: (one, one.shape) for name, one in tensors.items()}
    cards = SMALL if card in SMALL else WITH_TENSORS
    if not request.node.get_closest_marker("long"):
        cards = [*FIRST_OF_EACH_LAYOUT, *([card] if card not in FIRST_OF_EACH_LAYOUT else [])]
    forwards, backwards = fits(cards, tensors), fits(cards[::-1], tensors)
    assert card.name in forwards and forwards == backwards
    assert {name: (one, one.shape) for name, one in tensors.items()} == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_layout_changes_the_tensors_of_its_caller(layout):
    """The tensors of any two cards, one after the other, are those of each alone."""
    cards = [card for card in WITH_TENSORS if card.weights.layout == layout] or WITH_TENSORS[:1]
    for card in cards[:2]:
        for other in [one for one in WITH_TENSORS if one.name in ("dinov2-vits14-reg", "clip-vitb32", card.name)]:
            tensors = published(other)
            before = list(tensors.items())
            with suppress(Exception):  # a layout that does not know the names
                renamed(tensors, card, network_of(card.name))
            assert list(tensors.items()) == before


def test_dinov2_with_registers_is_known_by_its_path_though_clip_is_tried_first(tmp_path, monkeypatch):
    """A small file: networks of one block, of which the card of CLIP, which comes first, takes tensors out."""
    small = {"depth": 1, "embed_dim": 48, "num_heads": 2}
    cards = tuple(_shrunk(load_card(name), small) for name in ("clip-vitb32", "dinov2-vits14", "dinov2-vits14-reg"))
    monkeypatch.setattr(catalog, "all_cards", lambda: cards)
    network = loader_module(cards[2]).create(cards[2])
    tensors = {name: torch.randn(one.shape) for name, one in of_facebook(dict(network.state_dict())).items()}
    path = tmp_path / "mine.pth"
    torch.save(tensors, path)
    card = load_card(str(path))
    assert card.name == "dinov2-vits14-reg"
    loaded = load_backbone(card, torch.device("cpu"), path).network.state_dict()
    assert all(torch.equal(loaded[name], one) for name, one in renamed(load_tensors(path), card, network).items())


def _shrunk(card, options):
    loader = replace(card.loader, options={**card.loader.options, **options})
    return replace(card, loader=loader, weights=replace(card.weights, sha256=None))


# A file under a wrong name


def test_a_wrong_first_use_has_the_way_back_that_its_refusal_names(folder, monkeypatch):  # noqa: F811
    tensors = checkpoint()
    wrong, right = folder / "i3d_pretrained_400.pt", folder / "rgb_imagenet.pt"
    save(wrong, tensors)
    with pytest.warns(UserWarning, match="no digest is published"):
        check_weights(load_card("i3d-rgb-k400"))
    shutil.copy(wrong, right)
    text = message(check_weights, load_card("i3d-rgb-imagenet"))
    line, record = re.search(r"remove the line of (\S+) from (\S+), and that file", text).groups()
    assert line == str(wrong)
    _remove_line(record, line)
    wrong.unlink()
    with pytest.warns(UserWarning, match="it is used as i3d-rgb-imagenet"):
        assert check_weights(load_card("i3d-rgb-imagenet"))[0] == right
    # The wrong name is refused from now on.
    shutil.copy(right, wrong)
    assert "take i3d-rgb-imagenet" in message(check_weights, load_card("i3d-rgb-k400"))


def _remove_line(record, line):
    place = Path(record)
    entries = json.loads(place.read_text())
    del entries[line]
    place.write_text(json.dumps(entries))


def test_the_choice_of_two_cards_lists_their_files_in_the_order_of_the_cards(tmp_path, monkeypatch):
    path = save(tmp_path / "any.pt", checkpoint())
    for names in (("i3d-rgb-imagenet", "i3d-rgb-k400"), ("i3d-rgb-k400", "i3d-rgb-imagenet")):
        cards = tuple(map(load_card, names))
        monkeypatch.setattr(catalog, "all_cards", lambda cards=cards: cards)
        text = message(load_card, path)
        files = [card.weights.file for card in cards]
        assert f"weights as {files[0]} or {files[1]}, in this order" in text


def test_a_program_given_by_its_path_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "all_cards", lambda: (load_card("inception-fid"),))
    path = tmp_path / "program.pt"
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))
    text = message(load_card, path)
    assert "a TorchScript program" in text and 'loader.kind = "torchscript"' in text and "copy it again" not in text
