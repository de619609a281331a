"""Real data for the tests: the digits in the package, and the assets where FINC_EVAL_ASSETS names them.

The package and torch are imported where they are used: the process that hands tests to the workers needs neither, and
the workers wait for it.
"""

import gc
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from _cpu import CpuSeconds
from _kinds_of_cases import more_of_a_kind
from _quick import AUDITS, EVERYTHING, quick
from _reports import FewReports, are_few
from _stored import made_once
from _turns import keep_turn, of_other_turns

os.environ.setdefault("OMP_NUM_THREADS", "1")  # libraries that are loaded later, and processes that tests start
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process that a test starts compiles the package again
sys.dont_write_bytecode = False
keep_turn()
gc.disable()  # until all modules and tests are there: none of them is garbage
os.environ.pop("COLUMNS", None)  # the width of the terminal that runs the tests, which tables of logs would keep to


def pytest_addoption(parser):
    parser.addoption("--cpu-seconds", metavar="FILE", help="write the CPU seconds of tests, and print those of rooms")


def pytest_configure(config):
    if path := config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds(path))
    if are_few(config.option):
        config.pluginmanager.register(FewReports())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items, config):
    for item in more_of_a_kind(items):
        item.add_marker(pytest.mark.long)
    for item in items:
        if item.get_closest_marker("one_of_each"):
            item.add_marker(pytest.mark.by_turns(3))  # unless the test says how many turns
    if "::" not in "".join(config.args):  # a case that somebody names runs in any turn
        others = {*of_other_turns(items)}
        items[:] = [item for item in items if item not in others]


def pytest_collection_finish():
    import torch
    from threadpoolctl import threadpool_limits

    # Lightning sets it, and each question for a GPU then looks for NVIDIA's library anew.
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    # The matrices here are small: threads gain nothing, and where other work shares the cores they cost a lot.
    torch.set_num_threads(1)
    threadpool_limits(1)
    gc.freeze()  # modules and tests stay: no collection of garbage walks over them, and no fork copies them
    gc.set_threshold(50_000, 20, 100)  # with Python's own thresholds collections take 4 % of the whole run
    gc.enable()


@pytest.fixture(scope="session")
def assets():
    folder = os.environ.get("FINC_EVAL_ASSETS")
    if not folder:
        pytest.skip("needs the test assets: set FINC_EVAL_ASSETS to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def digits():
    """4 000 digits as pixel embeddings in [0, 1], shape (4000, 784), in a random order, with their labels."""
    from finc_eval.demo.planted import shipped_digits

    images, labels = shipped_digits()
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order].reshape(-1, 784).astype(np.float32) / 255, labels[order]


@pytest.fixture(scope="session")
def mnist_test(assets):
    """The official MNIST test set: images (10000, 28, 28) uint8 and labels."""
    with gzip.open(assets / "mnist" / "t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(assets / "mnist" / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images, labels


@pytest.fixture(scope="session")
def documents(tmp_path_factory):
    """One result of every type, by the name of the type."""
    from _documents import one_of_each

    with quick(*EVERYTHING):  # whichever room asks first
        return made_once(tmp_path_factory, "documents", one_of_each)


@pytest.fixture
def seeded_noise(monkeypatch):
    """Noise that is the same in every run: with noise nobody can predict, one test in many would fail by chance.

    Call it with a number for other noise.
    """
    import torch

    from finc_eval.private.dp import gaussian_mechanism as gaussian

    def seed(number):
        generator = torch.Generator().manual_seed(number)
        normal = lambda shape: torch.randn(shape, generator=generator, dtype=torch.double)  # noqa: E731
        monkeypatch.setattr(gaussian, "secure_normal", normal)

    seed(0)
    return seed


@pytest.fixture(scope="session")
def s3_server():
    pytest.importorskip("moto", reason="needs moto's S3 server")
    pytest.importorskip("s3fs")
    from _object_store import ObjectStore, served

    store = ObjectStore()
    with served(store) as address:
        yield store, address


@pytest.fixture
def no_copies(tmp_path, monkeypatch):
    """An empty folder of copies, without records of earlier ones; waiting takes no time."""
    from finc_eval.core.remote import mirror, store

    monkeypatch.setenv("FINC_EVAL_REMOTE", str(tmp_path / "remote"))
    monkeypatch.setattr(store, "DELAYS", (0, 0, 0, 0))
    monkeypatch.setattr(mirror, "_known", {})
    monkeypatch.setattr(mirror, "_room", 0.0)


@pytest.fixture
def s3(s3_server, no_copies, tmp_path, monkeypatch):
    """An empty bucket on an S3 server of this machine, and an empty folder of copies; waiting takes no time."""
    import s3fs
    from _object_store import BUCKET

    server, address = s3_server
    variables = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "FINC_EVAL_CACHE": str(tmp_path / "caches"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    server.files = s3fs.S3FileSystem(endpoint_url=address, use_listings_cache=False)
    server.files.mkdir(BUCKET)
    server.forget()
    yield server
    server.forget()
    server.files.rm(BUCKET, recursive=True)


@pytest.fixture(scope="module")
def quick_audits():
    with quick(AUDITS):
        yield
