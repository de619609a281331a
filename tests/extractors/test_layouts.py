"""Layouts of weights as their authors stored them: fitted one for one, outputs as of an independent formulation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torchvision
from _networks import largest, message, with_weights
from safetensors.torch import load_file, save_file
from torch.nn import functional

from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone, loader_module

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def saliency(assets):
    """Weights in DINOv2's layout under Facebook's names: those of a saliency model, good for testing the layout."""
    return assets / "weights" / "dinov2_vits14_saliency_finetuned_fp16.safetensors"


def plain_dinov2(tensors, images, resize=None):
    """The class token of DINOv2 ViT-S/14 as its paper and Facebook's code define it, written out step by step."""
    weight = {name: tensor.float() for name, tensor in tensors.items()}

    def linear(x, name):
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    def norm(x, name):
        centered = x - x.mean(-1, keepdim=True)
        scaled = centered / (centered.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        return scaled * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    n, _, height, width = images.shape
    rows, columns = height // 14, width // 14
    patches = images.reshape(n, 3, rows, 14, columns, 14).permute(0, 2, 4, 1, 3, 5).reshape(n, rows * columns, -1)
    x = patches @ weight["patch_embed.proj.weight"].flatten(1).T + weight["patch_embed.proj.bias"]
    x = torch.cat([weight["cls_token"].expand(n, 1, -1), x], dim=1)
    of_class, of_patches = weight["pos_embed"][0, :1], weight["pos_embed"][0, 1:]
    grid = of_patches.reshape(37, 37, -1)
    resize = resize or bicubic
    grid = torch.einsum("ij,kl,jld->ikd", resize(37, rows), resize(37, columns), grid)
    x = x + torch.cat([of_class, grid.reshape(rows * columns, -1)])
    if "register_tokens" in weight:
        x = torch.cat([x[:, :1], weight["register_tokens"].expand(n, -1, -1), x[:, 1:]], dim=1)
    for block in range(12):
        name = f"blocks.{block}"
        qkv = linear(norm(x, f"{name}.norm1"), f"{name}.attn.qkv")
        q, k, v = qkv.reshape(n, -1, 3, 6, 64).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-1, -2) / 8).softmax(-1)
        mixed = (attention @ v).transpose(1, 2).reshape(n, -1, 384)
        x = x + weight[f"{name}.ls1.gamma"] * linear(mixed, f"{name}.attn.proj")
        hidden = linear(norm(x, f"{name}.norm2"), f"{name}.mlp.fc1")
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
        x = x + weight[f"{name}.ls2.gamma"] * linear(hidden, f"{name}.mlp.fc2")
    return norm(x, "norm")[:, 0]


def bicubic(old, new):
    """The matrix (new, old) of Keys' bicubic interpolation, a = -0.75, by the scale (new + 0.1) / old."""
    matrix = torch.zeros(new, old, dtype=torch.float64)
    for i in range(new):
        place = (i + 0.5) * old / (new + 0.1) - 0.5
        for j in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
            t, a = abs(place - j), -0.75
            near = (a + 2) * t**3 - (a + 3) * t**2 + 1
            share = near if t <= 1 else a * (t**3 - 5 * t**2 + 8 * t - 4)
            matrix[i, min(max(j, 0), old - 1)] += share
    return matrix.float()


def antialiased(old, new):
    """The matrix (new, old) of bicubic interpolation with antialiasing, a = -0.5, as Pillow's."""
    matrix, scale = torch.zeros(new, old, dtype=torch.float64), old / new
    for i in range(new):
        center = (i + 0.5) * scale
        for j in range(max(int(center - 2 * scale + 0.5), 0), min(int(center + 2 * scale + 0.5), old)):
            t, a = abs(j + 0.5 - center) / scale, -0.5
            near = (a + 2) * t**3 - (a + 3) * t**2 + 1
            matrix[i, j] = near if t <= 1 else a * (t**3 - 5 * t**2 + 8 * t - 4)
    return (matrix / matrix.sum(1, keepdim=True)).float()


@pytest.mark.parametrize("side", [224, pytest.param(280, marks=pytest.mark.long)])
def test_dinov2_equals_a_plain_implementation(saliency, side):
    card = with_weights(load_card("dinov2-vits14"), saliency, options={"img_size": side})
    images = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(side))
    with torch.inference_mode():
        mine = load_backbone(card, CPU, saliency)(images)["cls"]
        wanted = plain_dinov2(load_file(saliency), images)
    assert mine.shape == (1, 384)
    assert largest(mine - wanted) <= 1e-4 * largest(wanted)


@pytest.mark.long
def test_dinov2_with_registers_equals_a_plain_implementation(saliency, tmp_path):
    tensors = {name: tensor.float() for name, tensor in load_file(saliency).items()}
    tensors["register_tokens"] = torch.randn(1, 4, 384, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "dinov2_vits14_reg4_pretrain.pth"
    torch.save(tensors | {"mask_token": torch.zeros(1, 384)}, path)
    images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        mine = load_backbone(with_weights(load_card("dinov2-vits14-reg"), path), CPU, path)(images)["cls"]
        wanted = plain_dinov2(tensors, images, antialiased)
    assert largest(mine - wanted) <= 1e-4 * largest(wanted) < largest(mine - plain_dinov2(tensors, images))


def test_positions_are_facebooks_and_not_those_timm_would_make(saliency):
    card = load_card("dinov2-vits14")
    facebooks = load_backbone(with_weights(card, saliency), CPU, saliency).network.pos_embed
    timms = load_backbone(with_weights(card, saliency, layout="timm"), CPU, saliency).network.pos_embed
    assert facebooks.shape == timms.shape
    assert largest(facebooks - timms) > 0.01 * largest(facebooks)


@pytest.mark.long
def test_the_mask_token_of_facebooks_file_is_left_out_and_nothing_else(saliency, tmp_path):
    card = load_card("dinov2-vits14")
    tensors = load_file(saliency)
    torch.save(tensors | {"mask_token": torch.zeros(1, 384)}, tmp_path / "net.pth")
    load_backbone(with_weights(card, tmp_path / "net.pth"), CPU, tmp_path / "net.pth")
    del tensors["blocks.3.ls1.gamma"]
    save_file(tensors | {"register_tokens": torch.zeros(1, 4, 384)}, tmp_path / "net.safetensors")
    text = message(load_backbone, with_weights(card, tmp_path / "net.safetensors"), CPU, tmp_path / "net.safetensors")
    assert "it lacks blocks.3.ls1.gamma; the network does not know register_tokens" in text


def test_the_gated_perceptron_of_the_giant_is_renamed(tmp_path):
    card = load_card("dinov2-vitg14")
    card = replace(
        card, loader=replace(card.loader, options={"img_size": 28, "depth": 1, "embed_dim": 48, "num_heads": 2})
    )
    network = loader_module(card).create(card)
    names = {"mlp.fc1.": "mlp.w12.", "mlp.fc2.": "mlp.w3."}
    tensors = {}
    for name, tensor in network.state_dict().items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        tensors[name] = tensor
    torch.save(tensors, tmp_path / "net.pth")
    assert any("mlp.w12.weight" in name for name in tensors)
    loaded = load_backbone(with_weights(card, tmp_path / "net.pth"), CPU, tmp_path / "net.pth").network
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], tensor, rtol=0, atol=0)


# Other layouts


def test_clip_reads_the_image_tower_of_openais_names_and_projects(tmp_path):
    card = load_card("clip-vitb32")
    card = replace(card, loader=replace(card.loader, options={"depth": 1}))
    generator = torch.Generator().manual_seed(0)
    shapes = {
        "class_embedding": (768,),
        "positional_embedding": (50, 768),
        "proj": (768, 512),
        "conv1.weight": (768, 3, 32, 32),
        **{f"{norm}.{part}": (768,) for norm in ("ln_pre", "ln_post") for part in ("weight", "bias")},
    }
    block = "transformer.resblocks.0"
    shapes |= {f"{block}.{norm}.{part}": (768,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
    shapes |= {f"{block}.attn.in_proj_weight": (2304, 768), f"{block}.attn.in_proj_bias": (2304,)}
    for name, (rows, columns) in {
        "attn.out_proj": (768, 768),
        "mlp.c_fc": (3072, 768),
        "mlp.c_proj": (768, 3072),
    }.items():
        shapes |= {f"{block}.{name}.weight": (rows, columns), f"{block}.{name}.bias": (rows,)}
    tensors = {name: torch.randn(shape, generator=generator) * 0.05 for name, shape in shapes.items()}
    path = tmp_path / "clip.safetensors"
    text = {"token_embedding.weight": torch.zeros(9, 512), "logit_scale": torch.zeros(1)}
    save_file({f"visual.{name}": tensor for name, tensor in tensors.items()} | text, path)

    def norm(x, name):
        return functional.layer_norm(x, (768,), tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def linear(x, name):
        return functional.linear(x, tensors[f"{block}.{name}.weight"], tensors[f"{block}.{name}.bias"])

    images = torch.randn(2, 3, 224, 224, generator=generator)
    x = functional.conv2d(images, tensors["conv1.weight"], stride=32).flatten(2).transpose(1, 2)
    x = torch.cat([tensors["class_embedding"].expand(2, 1, -1), x], dim=1) + tensors["positional_embedding"]
    x = norm(x, "ln_pre")
    qkv = functional.linear(
        norm(x, f"{block}.ln_1"), *(tensors[f"{block}.attn.in_proj_{p}"] for p in ("weight", "bias"))
    )
    q, k, v = qkv.reshape(2, 50, 3, 12, 64).permute(2, 0, 3, 1, 4)
    mixed = ((q @ k.transpose(-1, -2) / 8).softmax(-1) @ v).transpose(1, 2).flatten(2)
    x = x + linear(mixed, "attn.out_proj")
    hidden = linear(norm(x, f"{block}.ln_2"), "mlp.c_fc")
    x = x + linear(hidden * torch.sigmoid(1.702 * hidden), "mlp.c_proj")
    wanted = norm(x[:, 0], "ln_post") @ tensors["proj"]

    with torch.inference_mode():
        mine = load_backbone(with_weights(card, path), CPU, path)(images)["projection"]
    assert largest(mine - wanted) <= 1e-4 * largest(wanted)


def test_in_order_needs_as_many_tensors(tmp_path):
    card = load_card("efficientnet-lite0")
    torch.save({"one": torch.zeros(1)}, tmp_path / "net.pth")
    text = message(load_backbone, with_weights(card, tmp_path / "net.pth"), CPU, tmp_path / "net.pth")
    assert "the file has 1 tensors" in text


def test_an_unknown_layout_is_refused_with_the_nearest(tmp_path):
    card = with_weights(load_card("resnet50"), tmp_path / "net.pth", layout="facebook-dino2", model="resnet18")
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), tmp_path / "net.pth")
    text = message(load_backbone, card, CPU, tmp_path / "net.pth")
    assert 'unknown weights.layout "facebook-dino2" (did you mean "facebook-dinov2"?)' in text


# timm and torchvision
