"""Tensors from a file, and into a network: never a pickle's code, never a tensor more or less than the network has."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.layouts import LAYOUTS, Tensors

NESTS = ("state_dict", "model", "teacher", "model_state_dict")
NESTED_AT_MOST = 3
NAMED_AT_MOST = 3


def load_tensors(path: Path) -> Tensors:
    """Read a .safetensors file, or a file of torch.save that holds tensors and plain containers only.

    Tensors that lie under "state_dict", "model" or "teacher", as training programs put them, are taken out.

    Raises:
        FincEvalError: the file is damaged, would run code, or holds no tensors by name.
    """
    content = _read(path)
    for _ in range(NESTED_AT_MOST):
        if isinstance(content, Mapping):
            content = next((content[name] for name in NESTS if isinstance(content.get(name), Mapping)), content)
    if not isinstance(content, Mapping) or not content or not all(map(_is_named_tensor, content.items())):
        raise FincEvalError(f"{path} holds no tensors by name: save the network's state_dict, best as .safetensors")
    return dict(content)


def filled(network: torch.nn.Module, card: Card, path: Path | None) -> torch.nn.Module:
    """Put the tensors of the file into the network.

    Raises:
        FincEvalError: the card has no weights, or those in the file are not the network's, one for one.
    """
    if card.weights is None or path is None:
        raise FincEvalError(
            f"card {card.name}: the loader {card.loader.kind} makes a network that must be trained: "
            "add a table [weights] with file and license"
        )
    tensors = load_tensors(path)
    layout = card.weights.layout
    if layout is not None:
        if layout not in LAYOUTS:
            raise FincEvalError(
                f'card {card.name}: there is no weights.layout "{layout}"{did_you_mean(layout, LAYOUTS)}: '
                f"choose one of {', '.join(LAYOUTS)}"
            )
        tensors = LAYOUTS[layout](tensors, network)
    if differences := _differences(tensors, network):
        raise FincEvalError(
            f"card {card.name}: {path.name} does not fit the network: {'; '.join(differences)}: "
            "check loader.model, loader.options and weights.layout"
        )
    network.load_state_dict(tensors)
    return network


def _is_named_tensor(item: tuple[object, object]) -> bool:
    """Whether this is a name and an ordinary tensor: not sparse, quantized, complex or without content."""
    name, tensor = item
    return (
        isinstance(name, str)
        and isinstance(tensor, torch.Tensor)
        and tensor.layout == torch.strided
        and not (tensor.is_quantized or tensor.is_complex() or tensor.is_meta or tensor.is_nested)
    )


def _read(path: Path) -> object:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FincEvalError(
            f"{path} holds more than tensors, and reading it could run code: save its state_dict, best as .safetensors"
        ) from error
    except Exception as error:  # each format has exceptions of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FincEvalError(f"{path} cannot be read as tensors ({reason}): fetch or copy it again") from error


def _differences(tensors: Tensors, network: torch.nn.Module) -> list[str]:
    own = network.state_dict()
    # Counters of training steps, which old files lack and evaluation ignores.
    missing = [name for name in own if name not in tensors and not name.endswith("num_batches_tracked")]
    unknown = [name for name in tensors if name not in own]
    reshaped = [
        f"{name} {tuple(tensors[name].shape)}, not {tuple(own[name].shape)}"
        for name in own
        if name in tensors and tensors[name].shape != own[name].shape
    ]
    groups = (("it lacks", missing), ("the network does not know", unknown), ("of another shape are", reshaped))
    return [f"{what} {_some(names)}" for what, names in groups if names]


def _some(names: list[str]) -> str:
    more = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
