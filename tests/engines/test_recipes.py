"""The recipes of docs/scale_engines.md run as they stand there: each engine's sums are those of one process."""

import os
import shutil
import socket
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from _engines import IDS, IMAGES, ROOT, check_sums, make_files, one_of_three, run_recipe

import finc_eval as fe

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    make_files(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster of three processes on this machine."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 by default: on a busy machine workers would not even start
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_ray_data():
    check_sums(run_recipe("Ray Data"))


@pytest.mark.usefixtures("cluster")
def test_a_worker_of_ray_that_is_killed_changes_nothing(folder):
    killed = [('fe.Embedder("pixels")', f'Killed("{folder}")'), ("batch_size=64", "batch_size=10")]
    names = run_recipe("Ray Data", [*killed, ("import ray.data\n", "import ray.data\nfrom _engines import Killed\n")])
    assert (folder / "died").exists()
    check_sums(names)


def test_daft():
    pytest.importorskip("daft")
    check_sums(run_recipe("Daft"))


def test_spark(monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    try:
        check_sums(run_recipe("Spark"))
    finally:
        pyspark.SparkSession.builder.getOrCreate().stop()


def test_torch_distributed_and_accelerate(folder):
    pytest.importorskip("accelerate")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    torch.multiprocessing.spawn(one_of_three, (str(folder), port), nprocs=3)
    assert len([*folder.glob("checked *")]) == 3


@pytest.mark.parametrize("form", ["Parquet", "Lance"])
def test_vectors_that_exist_already(form):
    vectors = fe.Embedder("pixels")(IMAGES)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = pa.table({"id": IDS, "embedding": lists})
    replaced = []
    if form == "Lance":
        lance = pytest.importorskip("lance")
        lance.write_dataset(table, "vectors.lance", max_rows_per_group=32)
        replaced = [
            ("import pyarrow.dataset", "import lance"),
            ("fragment_readahead=0", "batch_readahead=1, fragment_readahead=1"),
            ('pyarrow.dataset.dataset("embeddings")', 'lance.dataset("vectors.lance")'),
        ]
    else:
        Path("embeddings").mkdir()
        pq.write_table(table.slice(0, 50), "embeddings/a.parquet", row_group_size=16)
        pq.write_table(table.slice(50), "embeddings/b.parquet")
    check_sums(run_recipe("## Vectors that exist already", replaced))
