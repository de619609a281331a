"""The benchmark of a GPU runs on a CPU at tiny sizes, so that it works in the hour when there is a GPU."""

import json

import gpu
import pytest
import torch


@pytest.mark.parametrize("step", [name for name in gpu.STEPS if name not in ("tests", "sharing")])
def test_each_measurement_of_a_gpu_runs(step, tmp_path):
    out = tmp_path / "gpu.json"
    assert gpu.main([step, "--tiny", str(out)]) == 0, out.read_text()
    rows = json.loads(out.read_text())
    assert rows and {"measurement", "size", "seconds", "figure", "note"} <= set(rows[0])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    assert gpu.main([]) == 0
    assert "no CUDA device" in capsys.readouterr().out
