"""Shards in processes of their own, by hand and by torchrun: killed, at once, and joined from the command line."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from _forks import exit_code, forked
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.cli.verbs.extract import shard_of_rank
from finc_eval.core.device import default_device
from finc_eval.embeddings import writer

N = 60


def run_alone(words):
    """Run a command as a shell does: its words are those of the process."""
    sys.argv = ["finc-eval", *words]
    app()


def run_and_die(words):
    """Run a command, and be killed when it has written two batches."""
    write, calls = writer.CacheWriter.write, []

    def killing(self, *arguments):
        write(self, *arguments)
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    writer.CHECKPOINT_SECONDS, writer.CacheWriter.write = 0, killing
    run_alone(words)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    rng = np.random.default_rng(0)
    for number in range(N):
        Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(tmp_path / "set" / f"{number:02}.png")
    (tmp_path / "set" / "30.png").write_bytes(b"not a picture")


def extraction(*more):
    return ["extract", "set", "--extractor", "pixels", "--out", "gen.h5", "--batch-size", "8", "--quiet", *more]


def run(*arguments, **environment):
    return CliRunner().invoke(app, [str(one) for one in arguments], env=environment)


def bytes_of_one_process():
    return fe.extract("set", "pixels", "whole.h5", run=fe.Run(batch_size=8)).path.read_bytes()


def test_two_processes_one_of_which_is_killed_and_resumed_make_the_file_of_one(tmp_path):
    alive, dead = (
        forked(call, extraction("--shard", f"{number}/2")) for number, call in enumerate((run_alone, run_and_die), 1)
    )
    assert (exit_code(alive), exit_code(dead)) == (0, -signal.SIGKILL)
    assert sorted(path.name for path in tmp_path.glob("gen*")) == ["gen.1-of-2.h5", "gen.2-of-2.h5.part"]
    refused = run("extract", "merge", "gen.1-of-2.h5", "--out", "gen.h5")
    assert refused.exit_code == 3
    assert refused.stdout == f"finc-eval {' '.join(extraction())} --shard 2/2\n"
    begun = []
    progress = lambda stage, done, total: begun.append((stage, done, total))  # noqa: E731
    fe.extract("set", "pixels", "gen.h5", shard="2/2", run=fe.Run(batch_size=8, progress=progress))
    assert next(one for one in begun if one[0].startswith("embed")) == ("embed 30 images by pixels", 16, 30)
    assert run(*refused.stdout.split()[1:]).exit_code == 0
    assert run("extract", "merge", "gen.2-of-2.h5", "gen.1-of-2.h5", "--out", "gen.h5").exit_code == 0
    assert (tmp_path / "gen.h5").read_bytes() == bytes_of_one_process()


@pytest.mark.long
def test_torchrun_gives_each_of_its_processes_a_shard(tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "finc_eval"]
    subprocess.run([sys.executable, *torchrun, *extraction("--shard", "rank")], check=True, capture_output=True)
    assert run("extract", "merge", "gen.2-of-2.h5", "gen.1-of-2.h5", "--out", "gen.h5").exit_code == 0
    assert (tmp_path / "gen.h5").read_bytes() == bytes_of_one_process()


def test_ranks_do_not_wait_for_each_other(tmp_path):
    assert run(*extraction("--shard", "rank"), RANK="1", WORLD_SIZE="2").exit_code == 0  # nobody has rank 0
    assert [path.name for path in tmp_path.glob("gen*")] == ["gen.2-of-2.h5"]


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "0"}, None),
        ({"RANK": "x", "WORLD_SIZE": "4"}, None),
        ({"RANK": "0", "WORLD_SIZE": "4"}, "1/4"),
        ({"RANK": "3", "WORLD_SIZE": "4"}, "4/4"),
    ],
)
def test_the_rank_of_a_process_is_its_shard(environment, shard):
    assert shard_of_rank(environment) == shard


@pytest.mark.parametrize(("rank", "device"), [("0", "cuda:0"), ("5", "cuda:1"), ("", "cuda"), ("x", "cuda")])
def test_each_process_of_a_machine_has_its_gpu(monkeypatch, rank, device):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", rank)
    assert str(default_device()) == device


def test_the_command_line_prevails_over_the_rank(tmp_path):
    assert run(*extraction("--shard", "3/3"), RANK="0", WORLD_SIZE="2").exit_code == 0
    assert [path.name for path in tmp_path.glob("gen*")] == ["gen.3-of-3.h5"]


@pytest.mark.long
def test_sketches_of_shards_come_from_samples_or_from_their_embeddings(tmp_path):
    run(*extraction())
    assert (
        run("extract", "sketch", "gen.h5", "--features", 20, "--precision", "float64", "--out", "map.h5").exit_code == 0
    )
    run(*extraction("--shard", "1/2"))
    options = ("--feature-map-of", "map.h5", "--precision", "float64", "--out", "sketch.h5", "--quiet")
    from_embeddings = run("extract", "sketch", "gen.h5", "--shard", "1/2", *options)
    assert "shard 1/2: numbers 1 to 30 of 60 samples" in from_embeddings.output
    assert run("extract", "sketch", "set", "--extractor", "pixels", "--shard", "2/2", *options).exit_code == 0
    merged = run("extract", "merge", "sketch.1-of-2.h5", "sketch.2-of-2.h5", "--out", "sketch.h5")
    assert "sketch.h5: sketch of 59 samples, from 2 files" in merged.output
    one, both = fe.Sketch.load("map.h5"), fe.Sketch.load("sketch.h5")
    np.testing.assert_allclose(both.covariance, one.covariance, atol=1e-6)


WRONG = [
    (("extract", "set", "--shard", "1/2"), "shard 1/2 needs --out: name the file of the whole set"),
    (extraction("--shard", "3/2"), 'a shard is "i/N", number i of N counted from 1'),
    (
        ("extract", "sketch", "set", "--shard", "1/2", "--out", "s.h5"),
        "sketches of shards add up if they have one feature map",
    ),
    (("extract", "merge", "gone.h5", "--out", "gen.h5"), "gone.h5 does not exist"),
    (("extract", "merge", "set/00.png", "--out", "gen.html"), "--out must end in .h5"),
]


@pytest.mark.parametrize(("arguments", "why"), WRONG)
def test_what_cannot_be_is_one_sentence(arguments, why):
    result = run(*arguments)
    assert result.exit_code == 3
    assert why in result.stderr and result.stderr.count("\n") == 1


def test_a_shard_is_refused_by_compare_with_the_verb_that_helps():
    run(*extraction("--shard", "1/2"))
    result = run("compare", "--gen", "gen.1-of-2.h5", "--ref", "set")
    assert result.exit_code == 3
    assert "gen.1-of-2.h5 is shard 1/2 of a set: join all its shards first, by finc-eval extract merge" in result.stderr


def test_the_result_of_a_merge_is_told_in_json(tmp_path):
    run(*extraction("--shard", "1/1"))
    result = run("extract", "merge", "gen.1-of-1.h5", "--out", "gen.h5", "--json", "--quiet")
    assert '"n": 59' in result.stdout and '"shard": null' in result.stdout
