"""Sets of digits that the tests of the verbs share, and a cache for each test."""

import shutil
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from _quick import EVERYTHING, quick
from _stored import made_once
from _verbs import done

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.demo.planted import planted_sets


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Two folders of 200 digits: half of gen colored, ref gray."""

    def make(folder):
        for name, made in zip(("gen", "ref"), planted_sets(), strict=True):
            type(made)(made.images[:200], made.kinds[:200]).write(folder / name)
        return folder

    return made_once(tmp_path_factory, "folders of digits", make)


@pytest.fixture(scope="session")
def caches(folders, tmp_path_factory):
    """The two folders embedded."""

    def make(folder):
        for name in ("gen", "ref"):
            fe.extract(folders / name, "pixels", out=folder / f"{name}.h5")
        return folder

    return made_once(tmp_path_factory, "embedded digits", make)


@pytest.fixture(scope="session")
def arrays(tmp_path_factory):
    """Two files of embeddings, gen.npy and ref.npy, where nobody looks at pictures."""
    folder = tmp_path_factory.mktemp("arrays")
    for name, rows in zip(("gen", "ref"), example_sets(200), strict=True):
        np.save(folder / f"{name}.npy", rows[:, ::6])
    return folder


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(*EVERYTHING):
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def compared_once(folders, tmp_path_factory):
    """Run `compare` on the two folders; return what it prints, and the folder that it writes to."""

    def make(place):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FINC_EVAL_CACHE", str(place / "cache"))
            patch.setattr("finc_eval.core.progress.LONG", inf)  # on a busy machine short work takes long
            sets = ("--gen", folders / "gen", "--ref", folders / "ref")
            result = done("compare", *sets, "--features", 40, "--out", place / "c")
        return SimpleNamespace(stdout=result.stdout, stderr=result.stderr), place / "c"

    return made_once(tmp_path_factory, "digits compared", make)


@pytest.fixture
def compared(compared_once, tmp_path):
    """A copy of the folder of a comparison, to read and to change."""
    return shutil.copytree(compared_once[1], tmp_path / "c")
