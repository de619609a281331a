"""Images that the tests of extraction share."""

import numpy as np
import pytest
from _extraction import N
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick
from PIL import Image

from finc_eval.embeddings import writer as cache_writer


@pytest.fixture
def own_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "default"))
    monkeypatch.setattr(cache_writer, "CHECKPOINT_SECONDS", 0)


@pytest.fixture(scope="session")
def images():
    return np.random.default_rng(0).integers(0, 256, (N, 28, 28, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, images):
    path = tmp_path / "set"
    path.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(path / f"{number:03}.png")
    return path


@pytest.fixture
def broken_folder(folder):
    (folder / "003.png").write_bytes(b"no picture")
    (folder / "011.png").write_bytes((folder / "011.png").read_bytes()[:200])
    return folder


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
