"""Shards by the actors of Ray: the files of `extract`, also where an actor is killed; most need no Ray."""

import doctest
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.embeddings.job import Job
from finc_eval.extractors import network

N = 60
RANGES = ["1/3", "2/3", "3/3"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    np.savez("set.npz", np.random.default_rng(0).integers(0, 256, (N, 9, 9, 3), dtype=np.uint8))
    return tmp_path


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster of two processes on this machine."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    monkeypatch.setenv("PYTHONPATH", str(Path(fe.__file__).parents[1]))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 by default: on a busy machine workers would not even start
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def bytes_of_one_process(tmp_path):
    return fe.extract("set.npz", "pixels", "whole.h5").path.read_bytes()


def test_an_actor_writes_the_files_of_extract_and_loads_the_network_once(tmp_path, monkeypatch):
    for shard in RANGES:
        fe.extract("set.npz", "pixels", tmp_path / "right.h5", shard=shard).close()
    made, new = [], network.CardNetwork
    monkeypatch.setattr(network, "CardNetwork", lambda *given: made.append(given) or new(*given))
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "other"))
    told = fe.ShardActor("set.npz", tmp_path / "gen.h5", "pixels")({"item": np.array(RANGES)})
    assert told["shard"] == RANGES and told["n"] == [20, 20, 20]
    assert len(made) == 1
    for number, path in enumerate(told["path"], start=1):
        assert Path(path).read_bytes() == (tmp_path / f"right.{number}-of-3.h5").read_bytes()
    fe.merge(told["path"], "gen.h5").close()
    assert Path("gen.h5").read_bytes() == bytes_of_one_process(tmp_path)


def test_finished_shards_are_only_opened(monkeypatch):
    first = fe.ShardActor("set.npz", "gen.h5", "pixels")({"item": RANGES})
    monkeypatch.setattr(Job, "_fill", lambda *_: pytest.fail("it was embedded again"))
    assert fe.ShardActor("set.npz", "gen.h5", "pixels")({"item": RANGES}) == first


def test_an_actor_is_not_given_one_shard_for_all():
    with pytest.raises(fe.UsageError, match=r"gets its shards in its calls: leave shard='1/2' out"):
        fe.ShardActor("set.npz", "gen.h5", fe.Extraction("pixels", shard="1/2"))


def test_without_ray_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(fe.UsageError, match=r'needs Ray, which is not installed: pip install "finc-eval\[ray\]"'):
        fe.extract_on_ray("set.npz", "gen.h5", 3, "pixels")


@pytest.mark.long
def test_a_shard_whose_actor_is_killed_is_gone_on_with_by_another(cluster, tmp_path):
    class Killed(fe.ShardActor):
        """Dies once, after two batches of shard 2 have reached the disk."""

        def __call__(self, batch):
            from finc_eval.embeddings import writer

            write, died, calls = writer.CacheWriter.write, tmp_path / "died", []

            def killing(own, *arguments):
                write(own, *arguments)
                calls.append(1)
                if len(calls) == 2 and list(batch["item"]) == ["2/3"] and not died.exists():
                    died.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

            writer.CHECKPOINT_SECONDS, writer.CacheWriter.write = 0, killing
            try:
                begun = [path.name for path in tmp_path.glob("gen.2-of-3.h5.part")]
                return {**super().__call__(batch), "begun": [begun]}
            finally:
                writer.CacheWriter.write = write

    items = cluster.data.from_items(RANGES, override_num_blocks=len(RANGES))
    given = (str(tmp_path / "set.npz"), str(tmp_path / "gen.h5"), "pixels")
    made = items.map_batches(
        Killed,
        fn_constructor_args=given,
        fn_constructor_kwargs={"run": fe.Run(batch_size=4)},
        batch_size=1,
        compute=cluster.data.ActorPoolStrategy(size=2),
    )
    rows = {row["shard"]: row for row in made.take_all()}
    assert (tmp_path / "died").exists()
    assert [list(rows[shard]["begun"]) for shard in RANGES][1] == ["gen.2-of-3.h5.part"]
    fe.merge([row["path"] for row in rows.values()], "gen.h5").close()
    assert Path("gen.h5").read_bytes() == bytes_of_one_process(tmp_path)


@pytest.mark.long
def test_a_shard_that_fails_is_one_sentence_and_does_not_stop_the_others(cluster):
    (example,) = doctest.DocTestFinder().find(fe.extract_on_ray, "extract_on_ray", globs={})
    for line in example.examples:
        line.options.clear()  # the tests of all examples leave these lines out
    assert doctest.DocTestRunner().run(example).failed == 0
    Path("other.2-of-3.h5").write_text("other work")
    with pytest.raises(fe.UsageError, match=r"^shard 2/3: .*other\.2-of-3\.h5 .*"):
        fe.extract_on_ray("gen.npz", "other.h5", 3, "pixels")
    assert Path("other.1-of-3.h5").exists() and Path("other.3-of-3.h5").exists()
    Path("other.2-of-3.h5").unlink()
    fe.merge(fe.extract_on_ray("gen.npz", "other.h5", 3, "pixels"), "other.h5").close()
    assert Path("other.h5").read_bytes() == Path("gen.h5").read_bytes()
