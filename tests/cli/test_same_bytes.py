"""The same inputs give the same bytes in a second run that has other batches and another number of threads."""

import shutil

import numpy as np
import pytest
from _releases import release
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app

N = 2100
"""Samples of a set: more than matrix products take at once."""

SETS = "--gen gen.npy --ref ref.npy"
PICTURES = "--gen gen --ref ref --extractor pixels"
COMMANDS = {
    "compare": f"compare {SETS} --features 60 --modes 3",
    "compare pictures": f"compare {PICTURES} --features 20 --modes 1",
    "leaderboard": "leaderboard one=gen.npy two=new.npy --ref ref.npy --metrics fd,kid",
    "gate": "gate --gen new.npy --baseline gen.npy --ref ref.npy --policy gate.toml",
    "evaluate": "evaluate --gen gen --ref ref --extractor pixels --features 30",
}
WAYS = ("--batch-size 1000 --workers 1", "--batch-size 7 --workers 4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three folders of pictures."""
    place = tmp_path_factory.mktemp("sets")
    for seed, name in enumerate(("gen", "new", "ref")):
        (place / name).mkdir()
        pictures = np.random.default_rng(seed).integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
        for number, pixels in enumerate(pictures):
            Image.fromarray(pixels).save(place / name / f"{number:02}.png")
    return place


@pytest.fixture(scope="module")
def arrays(folder):
    """Three files of embeddings beside them, and a policy."""
    for seed, name in enumerate(("gen", "new", "ref")):
        np.save(folder / f"{name}.npy", release(N, seed, lost=seed, part=0.5))
    (folder / "gate.toml").write_text("kinds.moved = 0.2\nmetrics.fd.worse = 0.2\n")


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name in ("compare", "evaluate", "leaderboard")))
        for name in COMMANDS
    ],
)
def test_neither_a_second_run_nor_batches_nor_threads_change_a_byte(folder, monkeypatch, name, request):
    monkeypatch.chdir(folder)
    if ".npy" in COMMANDS[name]:
        request.getfixturevalue("arrays")
    seen = []
    for number, way in enumerate(WAYS):
        monkeypatch.setenv("FINC_EVAL_CACHE", f"{folder}/cache of {name} {number}")  # nothing is taken from another run
        shutil.rmtree("out", ignore_errors=True)
        done = CliRunner().invoke(app, [*COMMANDS[name].split(), *way.split(), "--quiet", "--out", "out"])
        assert done.exit_code in (0, 1, 2), done.output
        seen.append({path.name: path.read_bytes() for path in sorted((folder / "out").rglob("*.*"))})
    assert {path.rsplit(".")[1] for path in seen[0]} >= {"json", "html"}
    assert all(one == seen[0] for one in seen), [
        path for one in seen for path in seen[0] if one.get(path) != seen[0][path]
    ]
