"""With the same random weights, networks give what their publishers' own classes give, to the last bit, before folding.

The classes of torch-fidelity, pytorch-fid and torchvision are run; more of torchvision's and timm's are run in
test_networks.py and test_video_networks.py. Those of Facebook (DINOv2) and of the ports of I3D come in no package:
their operations are written out here from the published definitions.
"""

from functools import partial

import pytest
import torch
import torchvision
from _networks import largest, stirred, with_weights
from test_i3d import FIGURE, checkpoint, in_hassonys_names, tensorflow_same
from torch.nn import functional as f

from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone, loader_module

CPU = torch.device("cpu")


def noise(*size, seed=0):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def ours(name, tensors, path, samples):
    """Outputs of a card's network with the tensors of a file."""
    torch.save(tensors, path)
    return load_backbone(with_weights(load_card(name), path), CPU, path)(samples)


def inception(name):
    """Random tensors of the Inception of FID."""
    card = load_card(name)
    return stirred(loader_module(card).create(card)).state_dict()


def by_torch_fidelity(path):
    package = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
    tensors = inception("inception-fid")
    torch.save(tensors, path)
    layers = ["2048", "logits_unbiased", "logits"]
    theirs = package.FeatureExtractorInceptionV3("theirs", layers, feature_extractor_weights_path=str(path))
    pixels = torch.randint(0, 256, (2, 3, 299, 299), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    mine = ours("inception-fid", tensors, path, (pixels.float() - 128) / 128)
    return [mine[name] for name in ("features", "logits_unbiased", "logits")], theirs(pixels)


def by_pytorch_fid(path, monkeypatch):
    package = pytest.importorskip("pytorch_fid.inception")
    tensors = inception("inception-fid-legacy-pytorch")
    monkeypatch.setattr(package, "load_state_dict_from_url", lambda *_, **__: tensors)
    theirs = package.InceptionV3([3], resize_input=False, normalize_input=True).eval()
    pixels = torch.rand(2, 3, 299, 299, generator=torch.Generator().manual_seed(0))
    mine = ours("inception-fid-legacy-pytorch", tensors, path, 2 * pixels - 1)
    return [mine["features"]], [theirs(pixels)[0].flatten(1)]


def by_swav(path):
    """torch hub's network of SwAV is torchvision's; its file has heads that are not used, and names of a wrapper."""
    theirs = stirred(torchvision.models.resnet50()).eval()
    theirs.fc = torch.nn.Identity()
    heads = {"projection_head.0.weight": torch.zeros(2, 2), "prototypes.weight": torch.zeros(2, 2)}
    tensors = {f"module.{name}": tensor for name, tensor in (theirs.state_dict() | heads).items()}
    images = noise(2, 3, 224, 224)
    mine = ours("swav-resnet50", tensors, path, images)
    assert set(mine) == {"features"}
    return [mine["features"]], [theirs(images)]


def i3d(tensors, clips, epsilon):
    """I3D by the operations of both public ports: zeros as TensorFlow pads, batch norm, classes for each place."""

    def unit(x, name, kernel, stride):
        x = tensorflow_same(x, (kernel,) * 3, (stride,) * 3, 0.0)
        x = f.conv3d(x, tensors[f"{name}.conv3d.weight"], stride=stride)
        norm = [tensors[f"{name}.bn.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return f.relu(f.batch_norm(x, *norm, eps=epsilon))

    def pool(x, kernel, stride):
        return f.max_pool3d(tensorflow_same(x, kernel, stride, 0.0), kernel, stride)

    x = clips
    for name, kind, *row in FIGURE:
        if kind == "mixed":
            pooled = pool(x, (3, 3, 3), (1, 1, 1))
            double = [unit(unit(x, f"{name}.{b}a", 1, 1), f"{name}.{b}b", 3, 1) for b in ("b1", "b2")]
            x = torch.cat([unit(x, f"{name}.b0", 1, 1), *double, unit(pooled, f"{name}.b3b", 1, 1)], 1)
        else:
            x = unit(x, name, *row[:2]) if kind == "conv" else pool(x, *row)
    pooled = f.avg_pool3d(x, (2, 7, 7), stride=1)
    classes = f.conv3d(pooled, tensors["logits.conv3d.weight"], tensors["logits.conv3d.bias"])
    return [pooled.mean((2, 3, 4)), classes.mean((2, 3, 4))]


def by_i3d(path, name, epsilon, names=dict):
    tensors = checkpoint()
    clips = torch.rand(1, 3, 16, 224, 224, generator=torch.Generator().manual_seed(0)) * 2 - 1
    mine = ours(name, names(tensors), path, clips)
    return [mine["features"], mine["logits"]], i3d(tensors, clips, epsilon)


def dinov2(tensors, images, heads, antialias):
    """The class token of DINOv2 by the operations of Facebook's class without xFormers."""
    n, _, height, width = images.shape
    rows, columns = height // 14, width // 14
    x = f.conv2d(images, tensors["patch_embed.proj.weight"], tensors["patch_embed.proj.bias"], stride=14)
    x = torch.cat([tensors["cls_token"].expand(n, -1, -1), x.flatten(2).transpose(1, 2)], 1)
    positions, size = tensors["pos_embed"], x.shape[-1]
    side = int((positions.shape[1] - 1) ** 0.5)
    grid = positions[:, 1:].reshape(1, side, side, size).permute(0, 3, 1, 2)
    how = {"size": (rows, columns), "antialias": True}
    if not antialias:
        how = {"scale_factor": ((rows + 0.1) / side, (columns + 0.1) / side)}
    grid = f.interpolate(grid, mode="bicubic", **how).permute(0, 2, 3, 1).reshape(1, -1, size)
    x = x + torch.cat([positions[:, :1], grid], 1)
    if "register_tokens" in tensors:
        x = torch.cat([x[:, :1], tensors["register_tokens"].expand(n, -1, -1), x[:, 1:]], 1)

    def linear(x, name):
        return f.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(x, name):
        return f.layer_norm(x, (size,), tensors[f"{name}.weight"], tensors[f"{name}.bias"], 1e-6)

    for block in (f"blocks.{number}" for number in range(12)):
        qkv = linear(norm(x, f"{block}.norm1"), f"{block}.attn.qkv").reshape(n, -1, 3, heads, size // heads)
        mixed = f.scaled_dot_product_attention(*(part.transpose(1, 2) for part in qkv.unbind(2)))
        mixed = linear(mixed.transpose(1, 2).reshape(n, -1, size), f"{block}.attn.proj")
        x = x + mixed * tensors[f"{block}.ls1.gamma"]
        hidden = f.gelu(linear(norm(x, f"{block}.norm2"), f"{block}.mlp.fc1"))
        x = x + linear(hidden, f"{block}.mlp.fc2") * tensors[f"{block}.ls2.gamma"]
    return norm(x, "norm")[:, 0]


def by_dinov2(path, name, heads):
    card = load_card(name)
    network = loader_module(card).create(card)
    size = network.embed_dim
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items() if key != "reg_token"}
    shapes |= {"pos_embed": (1, 37 * 37 + 1, size), "mask_token": (1, size)}
    if name.endswith("-reg"):
        shapes["register_tokens"] = (1, 4, size)
    generator = torch.Generator().manual_seed(0)
    tensors = {key: torch.randn(shape, generator=generator) * 0.05 for key, shape in shapes.items()}
    tensors |= {key: tensor + 0.5 for key, tensor in tensors.items() if key.endswith("gamma")}
    images = noise(2, 3, 224, 224)
    wanted = dinov2(tensors, images, heads, antialias=name.endswith("-reg"))
    return [ours(name, tensors, path, images)["cls"]], [wanted]


def long(call):
    return pytest.param(call, marks=pytest.mark.long)


CASES = {
    "torch-fidelity": by_torch_fidelity,
    "pytorch-fid": by_pytorch_fid,
    "SwAV": by_swav,
    "I3D, pytorch-i3d": partial(by_i3d, name="i3d-rgb-imagenet", epsilon=1e-3),
    "I3D, kinetics_i3d_pytorch": long(partial(by_i3d, name="i3d-rgb-imagenet", epsilon=1e-3, names=in_hassonys_names)),
    "I3D, VideoGPT": partial(by_i3d, name="i3d-rgb-k400", epsilon=1e-5),
    "DINOv2": partial(by_dinov2, name="dinov2-vits14", heads=6),
    "DINOv2 with registers": partial(by_dinov2, name="dinov2-vits14-reg", heads=6),
    "DINOv2, base": long(partial(by_dinov2, name="dinov2-vitb14", heads=12)),
    "DINOv2 with registers, base": long(partial(by_dinov2, name="dinov2-vitb14-reg", heads=12)),
}


@pytest.mark.by_turns(3)
@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("outputs", CASES.values(), ids=CASES)
@torch.inference_mode()
def test_a_network_gives_what_its_publishers_class_gives(outputs, tmp_path, monkeypatch):
    more = [monkeypatch] if outputs is by_pytorch_fid else []
    mine, theirs = outputs(tmp_path / "weights.pth", *more)
    for one, other in zip(mine, theirs, strict=True):
        assert float(other.std()) > 0.01
        assert largest(one - other) == 0
