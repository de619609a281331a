"""The parts of the benchmark of a GPU, on a simulated device."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from _simulated import simulated

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu

SIZES = gpu.TINY | {"sizes": (60,), "rounds": 0}
PARTS = [
    pytest.param(one, marks=[pytest.mark.long] * (one in (gpu.parity, gpu.comparison, gpu.kinds, gpu.distances)))
    for one in gpu.PARTS
    if one not in (gpu.tests, gpu.sharing)  # they start processes, where nothing is simulated
]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_a_part_runs_on_a_device_and_finds_what_the_cpu_does(part, monkeypatch):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # the simulated device has none
    with simulated() as device:
        bench = gpu.Bench("sim", SIZES)
        part(bench)
    assert bench.rows and not [row for row in bench.rows if row["note"]]
    assert device.host_indices == 0
