"""The benchmark of a GPU runs on a CPU at tiny sizes, so that it works in the hour when there is a GPU."""

import json
import subprocess
import sys
import time

import gpu
import pytest
import torch

SLOW = ("tests", "sharing")  # they start processes


@pytest.mark.parametrize(
    "part",
    [pytest.param(one, marks=[pytest.mark.long] * (one == "comparison")) for one in gpu.NAMES if one not in SLOW],
)
def test_each_measurement_of_a_gpu_runs_and_is_in_the_table(part, tmp_path, capsys):
    out = tmp_path / "gpu.json"
    assert gpu.main([part, "--tiny", str(out)]) == 0, out.read_text()
    rows = json.loads(out.read_text())
    assert rows and {"measurement", "size", "seconds", "figure", "note"} <= set(rows[0])
    printed = capsys.readouterr().out
    assert printed.startswith("measured at ") and all(f"| {row['measurement']} |" in printed for row in rows)


def test_extraction_says_how_long_the_network_waits_for_samples(capsys):
    bench = gpu.Bench("cpu", gpu.TINY)
    gpu.extraction(bench)
    whole = [row for row in bench.rows if row["measurement"].startswith("extract by pixels")]
    assert [row["size"] for row in whole] == ["30 JPEG"] * 2
    assert all("the network waits for samples" in row["figure"] for row in whole)


def test_where_no_time_is_left_a_part_is_left_out_with_a_word(tmp_path, capsys):
    assert gpu.main(["parity", "kinds", "--tiny", str(tmp_path / "gpu.json"), "--seconds", "1"]) == 0
    assert [row["note"] for row in json.loads((tmp_path / "gpu.json").read_text())] == [
        "left out: it takes about 10 s, and 1 s were left",
        "left out: it takes about 15 s, and 1 s were left",
    ]
    assert "parity: about 10 s, and 1 s are left" in capsys.readouterr().err


def test_a_part_that_runs_past_the_end_is_stopped_and_what_fails_is_a_row():
    bench = gpu.Bench("cpu", gpu.TINY, seconds=0.5)

    def endless(bench):
        bench.row("first", "1")
        time.sleep(60)

    def broken(bench):
        raise ValueError("no such kernel")

    gpu.measure(bench, endless, 0)
    gpu.measure(gpu_of := gpu.Bench("cpu", gpu.TINY), broken, 0)
    assert [(row["measurement"], row["note"]) for row in bench.rows] == [
        ("first", ""),
        ("endless", "stopped: the time of the run is spent"),
    ]
    assert [row["note"] for row in gpu_of.rows] == ["FAILED: ValueError: no such kernel"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    assert gpu.main([]) == 0
    assert "no CUDA device" in capsys.readouterr().out


@pytest.mark.long
def test_it_needs_neither_faiss_nor_pyav_nor_git(tmp_path, monkeypatch):
    """The machines that have a GPU for a quarter of an hour have none of them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    code = (
        "import sys; sys.modules |= dict.fromkeys(['faiss', 'av', 'sknetwork']); sys.path.insert(0, sys.argv.pop(1)); "
        "import gpu; sys.exit(gpu.main(sys.argv[1:]))"
    )
    parts = [name for name in gpu.NAMES if name not in SLOW]
    command = [sys.executable, "-c", code, str(gpu.HERE), *parts, "--tiny", str(tmp_path / "gpu.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: scikit-network cannot be imported here" in done.stdout
