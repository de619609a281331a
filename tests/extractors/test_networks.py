"""Networks are the ones their cards name: weights fit one for one, outputs equal an independent formulation's."""

import io
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file
from torch.nn import functional

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.card import Loader, Output, Weights
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.network import Embedder
from finc_eval.extractors.networks import load_backbone, loader_module, with_outputs
from finc_eval.extractors.networks.tensors import load_tensors
from finc_eval.extractors.preprocess import normalized, resized

TRAINED = ("timm", "torchvision", "fid-inception")
BUILT = [name for name in available_cards() if load_card(name).loader.kind in TRAINED]
CPU = torch.device("cpu")


def message(call, *arguments):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments)
    return str(caught.value)


def largest(difference):
    return float(difference.abs().max())


def stirred(network, seed=0):
    """The network with random weights that keep its signals at the size of its inputs, and statistics of their own."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
        if isinstance(module, torch.nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                tensor.data.uniform_(0.8, 1.2, generator=generator)
            for tensor in (module.bias, module.running_mean):
                tensor.data.normal_(0, 0.1, generator=generator)
    return network


def with_weights(card, path, layout=None, **loader):
    weights = Weights(str(path), "none", layout=layout or (card.weights and card.weights.layout))
    return replace(card, weights=weights, loader=replace(card.loader, **loader))


@pytest.mark.parametrize("name", BUILT)
def test_every_cards_network_has_the_outputs_the_card_names(name):
    card = load_card(name)
    if card.loader.model.startswith("vit_"):
        # One block says as much of the shapes as forty.
        card = replace(card, loader=replace(card.loader, options=card.loader.options | {"depth": 1}))
    network = with_outputs(loader_module(card), loader_module(card).create(card)).eval()
    outputs = network(torch.zeros(1, 3, *card.preprocessing.size))
    for output in (card.output, *card.extra.values()):
        assert outputs[output.layer].shape == (1, output.dimension)


@pytest.mark.parametrize("name", BUILT)
def test_no_network_that_must_be_trained_is_made_without_weights(name):
    card = load_card(name)
    tiny = {"timm": "resnet18", "torchvision": "resnet18"}.get(card.loader.kind, "")
    bare = replace(card, weights=None, loader=Loader(card.loader.kind, tiny))
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


@pytest.mark.parametrize("size", [(32, 32), (64, 48), (299, 299), (400, 512), (613, 100)])
def test_inception_fid_equals_torch_fidelitys_extractor(inceptions, size):
    ours, theirs = inceptions
    how = load_card("inception-fid").preprocessing
    images = np.random.default_rng(size).integers(0, 256, (2, *size, 3), dtype=np.uint8)
    with torch.inference_mode():
        batch = normalized(torch.from_numpy(np.stack([resized(image, how) for image in images])), how)
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


def test_the_fid_network_has_no_options():
    card = replace(load_card("inception-fid"), loader=Loader("fid-inception", options={"resize": True}))
    assert "has one network and no options" in message(loader_module(card).create, card)


# EfficientNet-Lite0


@pytest.mark.long
def test_efficientnet_lite0_recognizes_the_classes_of_photographs(assets):
    card = load_card("efficientnet-lite0")
    embedder = Embedder(card, "cpu")
    right = []
    with zipfile.ZipFile(assets / "photos" / "imagenet_500.zip") as photographs:
        names = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        for start in range(0, len(names), 50):
            some = names[start : start + 50]
            pixels = [np.asarray(Image.open(io.BytesIO(photographs.read(name))).convert("RGB")) for name in some]
            batch = np.stack([resized(image, card.preprocessing) for image in pixels])
            logits = embedder(torch.from_numpy(batch))[:, card.output.dimension :]
            right += [int(Path(name).name[:4]) == top for name, top in zip(some, logits.argmax(1), strict=True)]
    assert len(right) == 500
    assert np.mean(right) >= 0.86


# DINOv2


@pytest.fixture(scope="module")
def saliency(assets):
    """Weights in DINOv2's layout under Facebook's names: those of a saliency model, good for testing the layout."""
    return assets / "weights" / "dinov2_vits14_saliency_finetuned_fp16.safetensors"


def plain_dinov2(tensors, images):
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
    grid = torch.einsum("ij,kl,jld->ikd", bicubic(37, rows), bicubic(37, columns), grid)
    x = x + torch.cat([of_class, grid.reshape(rows * columns, -1)])
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


@pytest.mark.parametrize("side", [224, 280])
def test_dinov2_equals_a_plain_implementation(saliency, side):
    card = with_weights(load_card("dinov2-vits14"), saliency, options={"img_size": side})
    images = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(side))
    with torch.inference_mode():
        mine = load_backbone(card, CPU, saliency)(images)["cls"]
        wanted = plain_dinov2(load_file(saliency), images)
    assert mine.shape == (2, 384)
    assert largest(mine - wanted) <= 1e-4 * largest(wanted)


def test_positions_are_facebooks_and_not_those_timm_would_make(saliency):
    card = load_card("dinov2-vits14")
    facebooks = load_backbone(with_weights(card, saliency), CPU, saliency).network.pos_embed
    timms = load_backbone(with_weights(card, saliency, layout="timm"), CPU, saliency).network.pos_embed
    assert facebooks.shape == timms.shape
    assert largest(facebooks - timms) > 0.01 * largest(facebooks)


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


def test_swav_drops_what_it_was_trained_with_and_equals_torchvisions_resnet(tmp_path):
    plain = stirred(torchvision.models.resnet50(weights=None)).eval()
    plain.fc = torch.nn.Identity()
    heads = {"projection_head.0.weight": torch.zeros(2, 2), "prototypes.weight": torch.zeros(2, 2)}
    path = tmp_path / "swav.pth.tar"
    torch.save({f"module.{name}": tensor for name, tensor in (plain.state_dict() | heads).items()}, path)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        mine = load_backbone(with_weights(load_card("swav-resnet50"), path), CPU, path)(images)
        wanted = plain(images)
    assert set(mine) == {"features"}
    assert largest(mine["features"] - wanted) <= 1e-5 * largest(wanted)


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
    assert largest(outputs["logits"] - wanted) <= 1e-6 * largest(wanted)
    assert largest(again - wanted) <= 1e-6 * largest(wanted)


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
    text = message(loader_module(card).create, card)
    assert '"resnet18x" (did you mean "resnet18' in text


@pytest.mark.parametrize("kind", ["timm", "torchvision"])
def test_options_a_network_does_not_have_are_refused(kind):
    card = replace(load_card("resnet50"), loader=Loader(kind, "resnet18", {"color": "red"}))
    assert "correct loader.options" in message(loader_module(card).create, card)


def test_weights_that_do_not_fit_are_refused_with_what_differs(tmp_path):
    tensors = torchvision.models.resnet18(weights=None, num_classes=10).state_dict()
    tensors["mine.weight"] = tensors.pop("conv1.weight")
    torch.save(tensors, tmp_path / "net.pth")
    card = with_weights(load_card("resnet50"), tmp_path / "net.pth", model="resnet18")
    assert (
        "net.pth does not fit the network: it lacks conv1.weight; the network does not know mine.weight; "
        "of another shape are fc.weight (10, 512), not (1000, 512), fc.bias (10,), not (1000,): check loader.model"
    ) in message(load_backbone, card, CPU, tmp_path / "net.pth")


# Files


def test_a_network_of_torchvision_without_a_linear_layer_is_refused():
    card = replace(load_card("resnet50"), loader=Loader("torchvision", "squeezenet1_1"))
    assert "squeezenet1_1 has no linear layer" in message(loader_module(card).create, card)


class Malice:
    def __reduce__(self):
        return print, ("code of a pickle ran",)


def test_a_pickle_that_would_run_code_is_refused(tmp_path, capsys):
    torch.save({"weight": Malice()}, tmp_path / "net.pth")
    assert "reading it could run code" in message(load_tensors, tmp_path / "net.pth")
    (tmp_path / "net.pkl").write_bytes(pickle.dumps(Malice()))
    assert "net.pkl" in message(load_tensors, tmp_path / "net.pkl")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("nest", [("state_dict",), ("model",), ("teacher", "state_dict")])
def test_tensors_are_taken_out_of_what_training_programs_wrap_them_in(tmp_path, nest):
    content = {"weight": torch.ones(2)}
    for name in reversed(nest):
        content = {name: content, "epoch": 3}
    torch.save(content, tmp_path / "net.pth")
    assert list(load_tensors(tmp_path / "net.pth")) == ["weight"]


@pytest.mark.parametrize("content", [{}, {"epoch": 3}, [torch.ones(1)]])
def test_a_file_without_tensors_by_name_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "net.pth")
    assert "holds no tensors by name" in message(load_tensors, tmp_path / "net.pth")


@pytest.mark.parametrize("name", ["net.pth", "net.safetensors"])
def test_a_damaged_file_is_one_sentence(tmp_path, name):
    path = tmp_path / name
    save = torch.save if name.endswith(".pth") else save_file
    save({"weight": torch.ones(1000)}, path)
    path.write_bytes(path.read_bytes()[:700])
    assert f"{path} cannot be read as tensors" in message(load_tensors, path)


# TorchScript

# torch still reads these files and says that it will not make them for ever.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit:FutureWarning", "ignore:Detected pickle protocol:UserWarning"
)


class Scripted(torch.nn.Module):
    def forward(self, images: torch.Tensor, rescale: bool = True) -> torch.Tensor:
        if rescale:
            images = images * 2
        return images.flatten(1)


def scripted(path, sha256="0" * 64, **changes):
    torch.jit.script(Scripted()).save(path)
    card = load_card("pixels")
    weights = Weights(str(path), "none", sha256)
    return replace(card, loader=Loader("torchscript", options={"rescale": False}), weights=weights, **changes)


def test_a_torchscript_file_is_called_with_the_cards_options(tmp_path):
    card = scripted(tmp_path / "net.pt", output=Output("features", "none", 12))
    images = torch.randn(2, 3, 2, 2)
    outputs = load_backbone(card, CPU, tmp_path / "net.pt")(images)
    torch.testing.assert_close(outputs["features"], images.flatten(1), rtol=0, atol=0)


def test_a_torchscript_file_must_be_pinned_by_the_card(tmp_path):
    card = scripted(tmp_path / "net.pt", sha256=None)
    assert "a TorchScript file is a program" in message(load_backbone, card, CPU, tmp_path / "net.pt")


def test_what_is_no_torchscript_is_refused(tmp_path):
    card = scripted(tmp_path / "net.pt")
    (tmp_path / "net.pt").write_bytes(b"no program")
    assert "cannot be read as TorchScript" in message(load_backbone, card, CPU, tmp_path / "net.pt")


@pytest.mark.filterwarnings("ignore:Validating sparse tensor")
@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(2).to_sparse(), torch.zeros(2, device="meta"), torch.zeros(2, dtype=torch.complex64)],
    ids=["sparse", "without content", "complex"],
)
def test_tensors_that_are_no_plain_numbers_are_refused(tmp_path, tensor):
    torch.save({"weight": tensor}, tmp_path / "net.pth")
    assert "holds no tensors by name" in message(load_tensors, tmp_path / "net.pth")


def test_tensors_with_numbers_for_names_and_a_table_within_itself_are_refused(tmp_path):
    circle = {}
    circle["model"] = circle
    for content in ({1: torch.zeros(2)}, circle):
        torch.save(content, tmp_path / "net.pth")
        assert "holds no tensors by name" in message(load_tensors, tmp_path / "net.pth")
