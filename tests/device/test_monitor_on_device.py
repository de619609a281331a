"""A look at embeddings on a device: one copy to the host, however many samples it has."""

import copy

import numpy as np
import pytest
import torch
from _simulated import simulated

import finc_eval as fe


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_a_look_at_a_tensor_of_a_device_waits_once(device):
    rng = np.random.default_rng(0)
    with simulated() as counted:
        monitor = fe.Monitor(rng.normal(size=(200, 8)), run=fe.Run(device=device))
        on_host = copy.deepcopy(monitor)
        for step, n in enumerate((64, 700)):
            rows = torch.from_numpy(rng.normal(size=(n, 8)).astype(np.float32))
            here, before = rows.to("sim"), counted.waits
            monitor.update(step, here)
            assert counted.waits == before + 1
            on_host.update(step, rows)
    assert np.array_equal(monitor.history.scores, on_host.history.scores, equal_nan=True)
