"""Tests of the test: the simulated device finds the bugs that are planted here."""

import numpy as np
import pytest
import torch
from _bounds import SMALL_BATCH, check_steady, measured, mixture
from _simulated import simulated

import finc_eval as fe
from finc_eval.comparison.directions import RotationSample
from finc_eval.comparison.score_pass import ScorePass
from finc_eval.feature_maps.fourier import RandomFourierFeatures

GEN, REF = mixture(1, 6), mixture(2, 4)


def compared(run):
    return fe.compare(GEN, REF, features=20, modes=1, method=fe.Finc(clusters=False), run=run)


def test_a_tensor_of_the_device_refuses_one_of_the_host():
    with simulated():
        here = torch.ones(3, 2, device="sim")
        for operation in (lambda: here + torch.ones(3, 2), lambda: here @ torch.ones(2), lambda: here.gather(0, ROWS)):
            with pytest.raises(RuntimeError, match="same device"):
                operation()
        with pytest.raises(TypeError, match="to numpy"):
            np.asarray(here)
        assert ((2.0 * here + torch.tensor(1.0)).cpu() == 3).all()  # numbers are of any device


ROWS = torch.tensor([[0, 1]])


def test_what_crosses_is_counted_with_its_place():
    with simulated() as device:
        here = torch.arange(6.0).to("sim")
        float(here.sum()), here.tolist(), here.cpu(), here[here > 2], torch.linalg.svd(here.view(2, 3))
        torch.zeros(6).copy_(here)
        torch.ones(2).pin_memory().to("sim", non_blocking=True)
        torch.tensor([1.0, 2.0], device="sim"), here[torch.tensor([0])], here.view(2, 3) @ here[:3]
    assert dict(device.counts) == {
        "plain copy": 2,
        "to device": 1,
        "item": 2,
        "to host": 2,
        "data shape": 1,
        "solver check": 1,
        "host index": 1,
    }
    assert device.waits == 8
    assert "test_simulated_device.py" in device.by_place("item")


def test_operators_that_change_a_shape_in_place_change_what_is_said():
    with simulated():
        here = torch.arange(6.0, device="sim").view(1, 2, 3)
        assert here.squeeze_(0).shape == (2, 3) == here.shape
        assert here.t_().shape == (3, 2) == here.shape and here.stride() == (1, 3)
        assert here.unsqueeze_(0).shape == (1, 3, 2)
        assert here.resize_(2, 2).shape == (2, 2) == here.shape
        assert torch.outer(here[0] @ here, here[0]).shape == (2, 2)


def test_a_device_that_nobody_simulates_is_refused():
    with pytest.raises(fe.UsageError, match="cannot be used"):
        fe.compare(GEN, REF, features=40, run=fe.Run(device="nowhere"))


def test_an_index_of_the_host_is_found(monkeypatch):
    def scores(self, vectors, *, fold=None, entries=None):
        found = torch.cat([part @ vectors for part in self.features])
        return found if fold is None else found[self.folds == fold]

    monkeypatch.setattr(RotationSample, "scores", scores)
    with pytest.raises(AssertionError, match="indices of the host on tensors of the device"):
        measured(lambda run: fe.compare(GEN, REF, kernel="cosine", modes=2, run=run))


@pytest.mark.long
def test_a_number_read_in_the_loop_is_found(monkeypatch):
    update = ScorePass.update

    def reading(self, features, *arguments):
        if features.sum() > -np.inf:
            update(self, features, *arguments)

    monkeypatch.setattr(ScorePass, "update", reading)
    with pytest.raises(AssertionError, match="waits grow with batches"):
        check_steady(compared, waits=250)


@pytest.mark.long  # a number that is read in the loop is found, too
def test_a_round_trip_through_numpy_is_found(monkeypatch):
    features = RandomFourierFeatures.apply

    def rounded(self, rows):
        return torch.from_numpy(np.round(features(self, rows).cpu().numpy(), 6)).to(rows.device)

    def careless(self, rows):
        return torch.from_numpy(np.round(features(self, rows), 6)).to(rows.device)

    monkeypatch.setattr(RandomFourierFeatures, "apply", rounded)
    with pytest.raises(AssertionError, match="waits grow with batches"):
        check_steady(compared, waits=250)
    monkeypatch.setattr(RandomFourierFeatures, "apply", careless)
    with pytest.raises(TypeError, match="numpy"):
        measured(compared, SMALL_BATCH)
