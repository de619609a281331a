"""Text towers: prompts become the vectors that CLIP's equations give, and what cannot be made is said."""

import sys

import pytest
import torch
from _clip import CARD, WIDTH, small_clip

from finc_eval.core.errors import DataError, FincEvalError, UsageError
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import TextTower

pytest.importorskip("open_clip")

HEADS = 2


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return small_clip(tmp_path_factory.mktemp("clip"))


def norm(x, weights, name):
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def embed_by_equations(tokens, weights):
    """Compute the vector of one list of tokens, which ends with the end of the text."""
    x = weights["token_embedding.weight"][tokens] + weights["positional_embedding"][: len(tokens)]
    for layer in range(2):
        own = {
            name.removeprefix(f"transformer.resblocks.{layer}."): one
            for name, one in weights.items()
            if name.startswith(f"transformer.resblocks.{layer}.")
        }
        q, k, v = (norm(x, own, "ln_1") @ own["attn.in_proj_weight"].T + own["attn.in_proj_bias"]).chunk(3, 1)
        mixed = []
        for part in range(HEADS):
            at = slice(part * WIDTH // HEADS, (part + 1) * WIDTH // HEADS)
            scores = q[:, at] @ k[:, at].T / (WIDTH // HEADS) ** 0.5
            for row in range(len(tokens)):
                scores[row, row + 1 :] = -torch.inf  # a token sees the ones before it
            mixed.append(scores.softmax(1) @ v[:, at])
        x = x + torch.cat(mixed, 1) @ own["attn.out_proj.weight"].T + own["attn.out_proj.bias"]
        hidden = norm(x, own, "ln_2") @ own["mlp.c_fc.weight"].T + own["mlp.c_fc.bias"]
        x = x + (hidden * torch.sigmoid(1.702 * hidden)) @ own["mlp.c_proj.weight"].T + own["mlp.c_proj.bias"]
    return norm(x, weights, "ln_final")[-1] @ weights["text_projection"]


def test_prompts_become_the_vectors_of_the_equations(clip):
    model, path = clip
    tower = TextTower(load_card(path), "cpu")
    texts = ["a photo of a cat", "A  PHOTO of a cat ", "größer, “quoted” & 日本", ""]
    begin, end = 49406, 49407
    assert tower.tokens(texts[:1])[0, :7].tolist() == [begin, 320, 1125, 539, 320, 2368, end]  # as OpenAI published
    weights = {name: one.double() for name, one in model.state_dict().items()}
    found = tower(texts)
    for row, text in zip(found, texts, strict=True):
        expected = embed_by_equations([begin, *tower.tokens.encode(text), end], weights)
        assert torch.allclose(row.double(), expected, atol=1e-5)
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[0], found[2])


def test_many_prompts_are_embedded_in_batches_and_long_ones_by_their_first_tokens(clip):
    tower = TextTower(load_card(clip[1]), "cpu")
    texts = [f"a cat number {one}" for one in range(130)]
    assert torch.allclose(tower(texts)[[0, 64, 129]], tower([texts[0], texts[64], texts[129]]), atol=1e-6)
    assert torch.equal(*tower(["cat " * 75, "cat " * 300]))
    assert not torch.equal(*tower(["cat " * 75, "cat " * 74]))


def changed(tmp_path, old, new):
    assert old in CARD
    path = tmp_path / "own.toml"
    path.write_text(CARD.replace(old, new))
    return load_card(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ViT-B-32-quickgelu", "ViT-B-32-quikgelu", 'has no model "ViT-B-32-quikgelu".*correct text.model'),
        ("ViT-B-32-quickgelu", "ViT-B-16-SigLIP", "files of a hub, which are not fetched"),
        ("width = 32, heads", "depth = 32, heads", "correct text.options"),
        ("width = 32, heads", "width = 64, heads", "does not fit the network"),
        ("./small.safetensors", "./absent.safetensors", "absent.safetensors, are not at .*: copy the file there"),
    ],
    ids=["name", "hub", "option", "width", "absent"],
)
def test_what_cannot_be_made_is_said(tmp_path, old, new, message):
    small_clip(tmp_path)
    with pytest.raises(FincEvalError, match=message):
        TextTower(changed(tmp_path, old, new), "cpu")


def test_a_card_without_a_text_tower_names_cards_that_have_one():
    with pytest.raises(
        UsageError, match="pixels has no text tower, which embeds prompts as its images: take clip-vitb32"
    ):
        TextTower(load_card("pixels"), "cpu")


def test_without_open_clip_the_message_says_how_to_install_it(clip, monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(UsageError, match="needs open_clip: pip install open_clip_torch"):
        TextTower(load_card(clip[1]), "cpu")


@pytest.mark.parametrize("name", ["clip-vitb32", "clip-vitl14-336"])
def test_shipped_cards_of_clip_name_a_text_tower_of_their_dimension(name):
    import open_clip

    card = load_card(name)
    assert open_clip.get_model_config(card.text.model)["embed_dim"] == card.output.dimension
    with pytest.raises(DataError, match=f"finc-eval doctor weights fetch {name}"):
        TextTower(card, "cpu")
