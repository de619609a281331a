"""Networks that give what they should not, take too much memory, are compiled, or are of lower precision."""

import numpy as np
import pytest
import torch
from _extraction import BATCH, ROUNDING, N, extract, leftovers, message

from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork

pytestmark = pytest.mark.usefixtures("own_cache_folder")


class Network(torch.nn.Module):
    """The pixels, with what `spoil` does to them."""

    def __init__(self, spoil):
        super().__init__()
        self.spoil, self.calls = spoil, 0

    def forward(self, batch):
        self.calls += 1
        return {"input": self.spoil(batch.flatten(1).clone(), self.calls)}


@pytest.fixture
def network(monkeypatch):
    """Put another network in the place of that of pixels."""

    def put(spoil):
        made = Network(spoil)
        monkeypatch.setattr("finc_eval.extractors.network.load_backbone", lambda card, device, weights: made)
        return made

    return put


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_are_refused_with_their_sample(folder, network, value):
    def spoil(rows, call):
        rows[3 if call == 2 else len(rows) :, 100] = value
        return rows

    network(spoil)
    text = message(extract, folder, batch_size=BATCH)
    assert "the embedding of sample 011.png by pixels holds NaN or infinity" in text


def test_a_network_of_another_dimension_than_its_card_is_refused(images, network):
    network(lambda rows, call: rows[:, :7])
    assert "gives input of shape (7,), the card says 2352: correct output.dimension" in message(extract, images)


def test_a_batch_that_does_not_fit_is_halved_until_it_does(images, network):
    sizes = []

    def hungry(rows, call):
        sizes.append(len(rows))
        if len(rows) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rows

    network(hungry)
    expected = images.transpose(0, 3, 1, 2).reshape(N, -1) / np.float32(255)
    np.testing.assert_allclose(extract(images, batch_size=32), expected, rtol=ROUNDING)
    assert sizes == [32, 16, 8, *[4] * 10]


def test_a_device_without_room_for_one_sample_is_named(images, network):
    def starved(rows, call):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried")

    network(starved)
    assert "cpu has too little memory for one sample of pixels" in message(extract, images)


def test_a_compiled_network_sees_batches_of_one_size(images, monkeypatch):
    card, shapes = load_card("pixels"), []

    def compiled(network, dynamic):
        def run(batch):
            shapes.append(tuple(batch.shape))
            return network(batch)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    plain, made = CardNetwork(card, "cpu"), CardNetwork(card, "cpu", compiled_for=16)
    for count in (16, 5, 40):
        part = torch.from_numpy(images[:count])
        torch.testing.assert_close(made(part), plain(part), rtol=0, atol=0)
    assert set(shapes) == {(16, 3, 28, 28)}


def test_a_network_that_cannot_be_compiled_runs_as_it_is(images, monkeypatch):
    def no_compiler(network, dynamic):
        def run(batch):
            raise RuntimeError("no C++ compiler")

        return run

    monkeypatch.setattr(torch, "compile", no_compiler)
    assert CardNetwork(load_card("pixels"), "cpu", compiled_for=16)(torch.from_numpy(images)).shape == (N, 2352)


@pytest.mark.long
def test_lower_precision_is_another_key_and_nearly_the_same_embedding(images):
    large = np.repeat(np.repeat(images[:2], 4, axis=1), 4, axis=2)
    exact, lower = (extract(large, "efficientnet-lite0", precision=kind) for kind in ("float32", "bfloat16"))
    assert exact.key != lower.key
    assert exact.outputs == ("logits",) and exact.output("logits").shape == (2, 1000)
    error = np.linalg.norm(np.asarray(exact) - np.asarray(lower), axis=1) / np.linalg.norm(exact, axis=1)
    assert 1e-6 < error.max() < 0.1


def test_a_network_that_refuses_its_inputs_is_one_sentence_that_names_the_card(tmp_path, images, monkeypatch):
    monkeypatch.setattr("finc_eval.extractors.network.load_backbone", lambda *_: torch.nn.Linear(5, 5))
    text = message(extract, images, batch_size=BATCH)
    assert text.startswith("card pixels: the network fails on a batch of shape (8, 3, 28, 28) (")
    assert "mat1 and mat2 shapes cannot be multiplied" in text
    assert "check preprocessing.size" in text and "\n" not in text
    assert leftovers(tmp_path / "default") == []
