"""A small CLIP model with random weights, both towers in one file, and the card that names it."""

import torch
from safetensors.torch import save_file

from finc_eval.numerics.precision import kept_random_states

WIDTH, DIMENSION = 32, 16

CARD = """
name = "small-clip"
description = "A small CLIP with random weights."
citation = "None."
traps = []

[loader]
kind = "timm"
model = "vit_base_patch32_clip_quickgelu_224"
options = {img_size = 32, patch_size = 16, embed_dim = 32, depth = 2, num_heads = 2, num_classes = 16}

[weights]
file = "./small.safetensors"
license = "none"
layout = "timm"

[preprocessing]
size = [32, 32]
geometry = "squash"
method = "pil"
interpolation = "bicubic"
antialias = true
rounding = "uint8"
range = [0.0, 1.0]
mean = [0.5, 0.5, 0.5]
std = [0.5, 0.5, 0.5]

[output]
layer = "projection"
pooling = "class token, projected"
dimension = 16

[text]
model = "ViT-B-32-quickgelu"
options = {width = 32, heads = 2, layers = 2}
"""


def small_clip(folder):
    """Write the weights and the card, and return open_clip's model of both towers and the path of the card."""
    from open_clip import CLIP

    with kept_random_states():
        torch.manual_seed(0)
        images = {"image_size": 32, "layers": 2, "width": WIDTH, "patch_size": 16, "head_width": 16}
        texts = {"context_length": 77, "vocab_size": 49408, "width": WIDTH, "heads": 2, "layers": 2}
        model = CLIP(DIMENSION, images, texts, quick_gelu=True).eval()
        for one in model.parameters():
            one.data += 0.1 * torch.randn_like(one)
    folder.mkdir(exist_ok=True)
    save_file(model.state_dict(), folder / "small.safetensors")
    (folder / "small.toml").write_text(CARD)
    return model, folder / "small.toml"
