"""Sets of digits that the tests of the verbs share, and a cache for each test."""

import shutil
from math import inf

import numpy as np
import pytest
from _quick import AUDITS, BOARDS, quick
from _verbs import done

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.demo.planted import planted_sets


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Two folders of 200 digits: half of gen colored, ref gray."""
    folder = tmp_path_factory.mktemp("sets")
    for name, made in zip(("gen", "ref"), planted_sets(), strict=True):
        type(made)(made.images[:200], made.kinds[:200]).write(folder / name)
    return folder


@pytest.fixture(scope="session")
def caches(folders, tmp_path_factory):
    """The two folders embedded."""
    folder = tmp_path_factory.mktemp("caches")
    for name in ("gen", "ref"):
        fe.extract(folders / name, "pixels", out=folder / f"{name}.h5")
    return folder


@pytest.fixture(scope="session")
def arrays(tmp_path_factory):
    """Two files of embeddings, gen.npy and ref.npy, where nobody looks at pictures."""
    folder = tmp_path_factory.mktemp("arrays")
    for name, rows in zip(("gen", "ref"), example_sets(200), strict=True):
        np.save(folder / f"{name}.npy", rows)
    return folder


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS):
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def compared_once(folders, tmp_path_factory):
    """Run `compare` on the two folders; return what it prints, and the folder that it writes to."""
    place = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINC_EVAL_CACHE", str(place / "cache"))
        patch.setattr("finc_eval.core.progress.LONG", inf)  # on a busy machine short work takes long
        sets = ("--gen", folders / "gen", "--ref", folders / "ref")
        return done("compare", *sets, "--features", 100, "--out", place / "c"), place / "c"


@pytest.fixture
def compared(compared_once, tmp_path):
    """A copy of the folder of a comparison, to read and to change."""
    return shutil.copytree(compared_once[1], tmp_path / "c")
