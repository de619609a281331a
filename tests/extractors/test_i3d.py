"""I3D is what the paper says, by a second formulation from its figure, and reads the files of both public ports."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import conv3d, max_pool3d, pad

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import i3d, load_backbone

CPU = torch.device("cpu")
CARD = load_card("i3d-rgb-k400")

# Figure 3 of the paper, row by row: name, and either kernel and stride of a pooling, or kernel, stride, channels in and
# out of a convolution, or an inception block's channels in and those of its six convolutions.
FIGURE = [
    ("Conv3d_1a_7x7", "conv", 7, 2, 3, 64),
    ("2a", "pool", (1, 3, 3), (1, 2, 2)),
    ("Conv3d_2b_1x1", "conv", 1, 1, 64, 64),
    ("Conv3d_2c_3x3", "conv", 3, 1, 64, 192),
    ("3a", "pool", (1, 3, 3), (1, 2, 2)),
    ("Mixed_3b", "mixed", 192, 64, 96, 128, 16, 32, 32),
    ("Mixed_3c", "mixed", 256, 128, 128, 192, 32, 96, 64),
    ("4a", "pool", (3, 3, 3), (2, 2, 2)),
    ("Mixed_4b", "mixed", 480, 192, 96, 208, 16, 48, 64),
    ("Mixed_4c", "mixed", 512, 160, 112, 224, 24, 64, 64),
    ("Mixed_4d", "mixed", 512, 128, 128, 256, 24, 64, 64),
    ("Mixed_4e", "mixed", 512, 112, 144, 288, 32, 64, 64),
    ("Mixed_4f", "mixed", 528, 256, 160, 320, 32, 128, 128),
    ("5a", "pool", (2, 2, 2), (2, 2, 2)),
    ("Mixed_5b", "mixed", 832, 256, 160, 320, 32, 128, 128),
    ("Mixed_5c", "mixed", 832, 384, 192, 384, 48, 128, 128),
]


def convolutions():
    """Every convolution as the port of piergiaj names it: name, kernel, channels in and out."""
    for name, kind, *row in FIGURE:
        if kind == "conv":
            kernel, _, inputs, outputs = row
            yield name, kernel, inputs, outputs
        elif kind == "mixed":
            inputs, b0, b1a, b1b, b2a, b2b, b3b = row
            yield f"{name}.b0", 1, inputs, b0
            yield f"{name}.b1a", 1, inputs, b1a
            yield f"{name}.b1b", 3, b1a, b1b
            yield f"{name}.b2a", 1, inputs, b2a
            yield f"{name}.b2b", 3, b2a, b2b
            yield f"{name}.b3b", 1, inputs, b3b


def checkpoint(classes=400):
    """A random file of the port of piergiaj, whose scales keep the activations in range."""
    random = torch.Generator().manual_seed(0)
    tensors = {}
    for name, kernel, inputs, outputs in convolutions():
        # Small variances, so that epsilon shows, and filters that give about these variances.
        variance = 0.01 + torch.rand(outputs, generator=random)
        scale = (2 * variance / (inputs * kernel**3)).sqrt()
        shape = (outputs, inputs, kernel, kernel, kernel)
        tensors[f"{name}.conv3d.weight"] = torch.randn(shape, generator=random) * scale.view(-1, 1, 1, 1, 1)
        tensors[f"{name}.bn.weight"] = 0.5 + torch.rand(outputs, generator=random)
        tensors[f"{name}.bn.bias"] = torch.randn(outputs, generator=random) * 0.1
        tensors[f"{name}.bn.running_mean"] = torch.randn(outputs, generator=random) * 0.1
        tensors[f"{name}.bn.running_var"] = variance
    tensors["logits.conv3d.weight"] = torch.randn(classes, 1024, 1, 1, 1, generator=random) * 0.03
    tensors["logits.conv3d.bias"] = torch.randn(classes, generator=random)
    return tensors


def in_hassonys_names(tensors):
    """The same file as the port of hassony2 names it, with the counters that later versions of torch save."""
    units = {"b0": "branch_0", "b1a": "branch_1.0", "b1b": "branch_1.1", "b2a": "branch_2.0", "b2b": "branch_2.1"}
    renamed = {}
    for name, tensor in tensors.items():
        parts = name.split(".")
        if parts[0] == "logits":
            parts[0] = "conv3d_0c_1x1"
        elif parts[0].startswith("Mixed"):
            parts[1] = (units | {"b3b": "branch_3.1"})[parts[1]]
        parts[0] = parts[0].replace("Conv", "conv").replace("Mixed", "mixed")
        renamed[".".join("batch3d" if part == "bn" else part for part in parts)] = tensor
    counters = [name.replace("running_mean", "num_batches_tracked") for name in renamed if "running_mean" in name]
    return renamed | {name: torch.tensor(7) for name in counters}


def tensorflow_same(x, kernel, stride, value):
    """Pad as TensorFlow's documentation says: by the remainder of the size, more behind than before."""
    sides = []
    for size, k, s in reversed(list(zip(x.shape[2:], kernel, stride, strict=True))):
        total = max(k - s, 0) if size % s == 0 else max(k - size % s, 0)
        sides += [total // 2, total - total // 2]
    return pad(x, sides, value=value)


def second_formulation(tensors, x, epsilon):
    """The trunk from the table and a file's tensors, without modules; maxima ignore what lies outside."""

    def convolve(x, name, kernel, stride):
        x = tensorflow_same(x, (kernel,) * 3, (stride,) * 3, 0.0)
        x = conv3d(x, tensors[f"{name}.conv3d.weight"], stride=stride)
        norm = {key: tensors[f"{name}.bn.{key}"].view(-1, 1, 1, 1) for key in ("weight", "bias")}
        mean, var = (tensors[f"{name}.bn.running_{key}"].view(-1, 1, 1, 1) for key in ("mean", "var"))
        return ((x - mean) / (var + epsilon).sqrt() * norm["weight"] + norm["bias"]).clamp(min=0)

    def maximum(x, kernel, stride):
        return max_pool3d(tensorflow_same(x, kernel, stride, -torch.inf), kernel, stride)

    for name, kind, *row in FIGURE:
        if kind == "conv":
            x = convolve(x, name, row[0], row[1])
        elif kind == "pool":
            x = maximum(x, *row)
        else:
            first = convolve(x, f"{name}.b0", 1, 1)
            second = convolve(convolve(x, f"{name}.b1a", 1, 1), f"{name}.b1b", 3, 1)
            third = convolve(convolve(x, f"{name}.b2a", 1, 1), f"{name}.b2b", 3, 1)
            fourth = convolve(maximum(x, (3, 3, 3), (1, 1, 1)), f"{name}.b3b", 1, 1)
            x = torch.cat([first, second, third, fourth], dim=1)
    return x


@pytest.fixture(scope="module")
def tensors():
    return checkpoint()


@pytest.fixture(scope="module")
def network(tensors, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "i3d_pretrained_400.pt"
    torch.save(tensors, path)
    return load_backbone(CARD, CPU, path)


def clips(*size, seed=0):
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed)) * 2 - 1


# Even and odd sides give TensorFlow's padding an odd and an even number of zeros.
@pytest.mark.parametrize(
    "size",
    [(9, 33, 47), *(pytest.param(one, marks=pytest.mark.long) for one in ((1, 40, 40), (16, 64, 64), (11, 50, 36)))],
    ids=str,
)
@torch.inference_mode()
def test_the_trunk_equals_a_second_formulation(network, tensors, size):
    # In float64, where a remaining difference is not rounding.
    x, exact = clips(2, 3, *size).double(), {name: tensor.double() for name, tensor in tensors.items()}
    expected = second_formulation(exact, x, 1e-5)
    assert expected.std() > 0.1
    torch.testing.assert_close(deepcopy(network.trunk).double()(x), expected, rtol=1e-9, atol=1e-9)


@torch.inference_mode()
def test_channels_last_in_memory_changes_nothing(network):
    x = clips(2, 3, 9, 40, 40)
    last = x.to(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(network.trunk(last), network.trunk(x), rtol=1e-5, atol=1e-5)


def test_it_has_the_parameters_of_the_paper():
    # Filters, then scale and shift of each channel of the 57 normalized convolutions, then the classifier.
    filters = sum(inputs * outputs * kernel**3 for _, kernel, inputs, outputs in convolutions())
    channels = sum(outputs for *_, outputs in convolutions())
    assert (filters, channels, len(list(convolutions()))) == (12_272_704, 7_280, 57)
    counted = sum(parameter.numel() for parameter in i3d.I3D().parameters())
    assert counted == filters + 2 * channels + 1024 * 400 + 400 == 12_697_264


@torch.inference_mode()
def test_the_file_of_the_other_port_gives_the_same_network(tensors, tmp_path):
    torch.save({"state_dict": in_hassonys_names(tensors)}, tmp_path / "model_rgb.pth")
    other = load_backbone(load_card("i3d-rgb-imagenet"), CPU, tmp_path / "model_rgb.pth")
    torch.save(tensors, tmp_path / "rgb_imagenet.pt")
    network = load_backbone(load_card("i3d-rgb-imagenet"), CPU, tmp_path / "rgb_imagenet.pt")
    x = clips(1, 3, 9, 40, 40)
    assert torch.equal(other.trunk(x), network.trunk(x))
    assert torch.equal(other.logits.weight, network.logits.weight)


def test_names_of_a_port_that_has_another_epsilon_speak_against_a_card(tensors, tmp_path):
    torch.save(in_hassonys_names(tensors), tmp_path / "model_rgb.pth")
    with pytest.raises(FincEvalError, match=r"runs with epsilon 0.001, and the card states 1e-05: take i3d-rgb-imagen"):
        load_backbone(CARD, CPU, tmp_path / "model_rgb.pth")


def test_a_file_saved_from_our_network_loads_again(network, tmp_path):
    torch.save(network.state_dict(), tmp_path / "ours.pt")
    again = load_backbone(CARD, CPU, tmp_path / "ours.pt").state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in network.state_dict().items())


@torch.inference_mode()
def test_epsilon_is_the_cards(tensors, tmp_path):
    torch.save(tensors, tmp_path / "rgb_imagenet.pt")
    card = replace(CARD, loader=replace(CARD.loader, options={"epsilon": 1e-3}))
    x = clips(1, 3, 9, 40, 40)
    out = load_backbone(card, CPU, tmp_path / "rgb_imagenet.pt").trunk(x)
    torch.testing.assert_close(out, second_formulation(tensors, x, 1e-3), rtol=1e-5, atol=1e-5)
    assert (out - second_formulation(tensors, x, 1e-5)).abs().max() > 1e-3


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.pop("Mixed_4e.b2b.bn.bias"), "lacks trunk.mixed_4e.branches.2.1.norm.bias"),
        (lambda t: t.update({"Mixed_9z.b0.conv3d.weight": torch.ones(1)}), "not know trunk.mixed_9z.branches.0.conv.w"),
        (lambda t: t.update({"logits.conv3d.bias": torch.ones(101)}), r"logits.bias \(101,\), not \(400,\)"),
        (lambda t: t.pop("Conv3d_1a_7x7.conv3d.weight"), 'is not of a known port of I3D .* "Conv3d_1a_7x7.bn.weight"'),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(tensors, tmp_path, change, sentence):
    changed = dict(tensors)
    change(changed)
    torch.save(changed, tmp_path / "other.pt")
    with pytest.raises(FincEvalError, match=sentence):
        load_backbone(CARD, CPU, tmp_path / "other.pt")


@pytest.mark.parametrize("size", [(8, 224, 224), (16, 192, 224), (16, 112, 112)])
def test_clips_that_are_too_short_or_small_are_refused(network, size):
    with pytest.raises(FincEvalError, match=f"at least 9 frames of 193x193 pixels, got {size[0]} frames of {size[1]}x"):
        network(torch.zeros(1, 3, *size))


@pytest.mark.long
@torch.inference_mode()
def test_nine_frames_of_193_pixels_are_enough(network):
    assert network(clips(1, 3, 9, 193, 193))["features"].shape == (1, 1024)


def test_unknown_options_are_refused():
    card = replace(CARD, loader=replace(CARD.loader, options={"eps": 1e-3}))
    with pytest.raises(FincEvalError, match=r"one option, epsilon, a number, got '' and \{'eps': 0\.001\}"):
        i3d.create(card)
