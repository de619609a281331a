"""Files of weights: those that do not fit, are damaged, hostile or TorchScript."""

import pickle
from dataclasses import replace

import pytest
import torch
import torchvision
from _networks import message, with_weights
from safetensors.torch import save_file

from finc_eval.extractors.card import Loader, Output, Weights
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.networks.tensors import load_tensors

CPU = torch.device("cpu")


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
