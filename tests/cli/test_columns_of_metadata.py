"""A column of metadata that holds numbers is compared, limited, ranked and followed on the command line."""

import csv

import numpy as np
import pytest
from _stored import made_once
from _verbs import run
from PIL import Image

import finc_eval as fe


def write(folder, seed, mean=0.0, pictures=None):
    """A folder of 50 pictures and the score of each; `pictures`: seed of the pictures, if not that of the scores."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed if pictures is None else pictures)
    squares = rng.integers(0, 255, (50, 4, 4, 3), dtype=np.uint8)
    noise = np.random.default_rng(seed).integers(0, 3, (50, 16, 16, 3), dtype=np.uint8)
    scores = np.random.default_rng(seed).normal(size=50) + mean
    with (folder / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "score"])
        for number, square in enumerate(squares):
            pixels = np.kron(np.minimum(square, 250), np.ones((4, 4, 1), np.uint8)) + noise[number]
            Image.fromarray(pixels).save(folder / f"{number:02}.png")
            table.writerow([f"{number:02}.png", f"{scores[number]:.4f}"])


VERBS = {
    "compare": "compare --gen {0}/gen --ref {0}/ref --features 20 --modes 1 --out {0}/out",
    "gate": "gate --gen {0}/gen --baseline {0}/old --ref {0}/ref --policy {0}/policy.toml",
    "leaderboard": "leaderboard {0}/gen {0}/old --ref {0}/ref --out {0}/out",
    "monitor": "monitor {0}/step-0 {0}/step-1 {0}/step-2 {0}/step-3 {0}/step-4 --ref {0}/ref",
    "same ids": "compare --gen {0}/gen --ref {0}/old --pairs id --features 20 --modes 1 --out {0}/out",
}


@pytest.fixture(scope="session")
def sets(tmp_path_factory):
    def make(folder):
        write(folder / "gen", 1, mean=2.5)
        write(folder / "old", 2, pictures=1)
        write(folder / "ref", 3)
        for step in range(5):
            write(folder / f"step-{step}", 10 + step, mean=2.5 * (step > 0))
        (folder / "policy.toml").write_text("[appearance]\nwhole = 0.3\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FINC_EVAL_CACHE", str(folder / "cache"))
            for name in ("gen", "old", "ref", *(f"step-{step}" for step in range(5))):
                fe.extract(folder / name, "pixels")
        return folder

    return made_once(tmp_path_factory, "scored", make)


@pytest.mark.one_of_each(by=lambda verb: verb == "monitor")
@pytest.mark.parametrize("verb", VERBS)
def test_the_numbers_of_a_column_of_metadata_are_named(verb, sets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(sets / "cache"))  # all verbs find the sets embedded
    words = VERBS[verb].replace("{0}/out", str(tmp_path / "out")).format(sets)
    result = run(*words.split(), "--extractor", "pixels")
    assert result.exit_code == int(verb == "gate"), result.output
    assert "higher in “score”" in " ".join(result.output.split())
