"""Tensors from a file into a network: no pickled code is run, and no tensor is missing or left over."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch

from finc_eval.core.doors.reading import NotAFileError, pin
from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.layouts import LAYOUTS, Tensors
from finc_eval.numerics.arrays import is_plain

STATE_KEYS = ("state_dict", "model", "teacher", "model_state_dict")
"""Keys under which training programs put the tensors."""

MAX_NESTING = 3
MAX_NAMES_SHOWN = 3


def load_tensors(path: Path) -> Tensors:
    """Read the named tensors of a .safetensors file, or of a torch.save file that holds only tensors and containers.

    Tensors under one of `STATE_KEYS` are taken out of it.
    """
    content = _read(path)
    for _ in range(MAX_NESTING):
        if isinstance(content, Mapping):
            content = next((content[name] for name in STATE_KEYS if isinstance(content.get(name), Mapping)), content)
    if not isinstance(content, Mapping) or not content or not all(map(_is_named_tensor, content.items())):
        raise DataError(f"{path} holds no tensors by name: save the network's state_dict, best as .safetensors")
    return dict(content)


def fill_network(network: torch.nn.Module, card: Card, path: Path | None) -> torch.nn.Module:
    """Put the tensors of the file into the network, and return it."""
    if card.weights is None or path is None:
        raise DataError(
            f"card {card.name}: the loader {card.loader.kind} makes a network that must be trained: "
            "add a table [weights] with file and license"
        )
    tensors = load_tensors(path)
    layout = card.weights.layout
    if layout is not None:
        if layout not in LAYOUTS:
            raise DataError(
                f'card {card.name}: unknown weights.layout "{layout}"{did_you_mean(layout, LAYOUTS)}: '
                f"choose one of {', '.join(LAYOUTS)}"
            )
        tensors = LAYOUTS[layout](tensors, network)
    if differences := _differences(tensors, network):
        raise DataError(
            f"card {card.name}: {path.name} does not fit the network: {'; '.join(differences)}: "
            "check loader.model, loader.options and weights.layout"
        )
    network.load_state_dict(tensors)
    return network


def _is_named_tensor(item: tuple[object, object]) -> bool:
    """Return whether an item is a name and an ordinary tensor: not sparse, quantized, complex or without content."""
    name, tensor = item
    return isinstance(name, str) and isinstance(tensor, torch.Tensor) and is_plain(tensor)


def _read(path: Path) -> object:
    try:
        with pin(path) as place:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file

                return load_file(place)
            return torch.load(place, map_location="cpu", weights_only=True)
    except NotAFileError:
        raise
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path} holds more than tensors, and reading it could run code: save its state_dict, best as .safetensors"
        ) from error
    except Exception as error:  # each format has exceptions of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} cannot be read as tensors ({reason}): fetch or copy it again") from error


def _differences(tensors: Tensors, network: torch.nn.Module) -> list[str]:
    own = network.state_dict()
    # Old files lack the counters of training steps; evaluation ignores them.
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
    more = len(names) - MAX_NAMES_SHOWN
    return ", ".join(names[:MAX_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
