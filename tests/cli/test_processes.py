"""The command as a process: what it loads, and how it ends."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from _forks import exit_code, forked
from _verbs import done

import finc_eval as fe
from finc_eval.cli import main
from finc_eval.cli.app import PARTS, VERBS, load_verb

MAIN = [sys.executable, "-c", "from finc_eval.cli import main; main()"]


def test_help_teaches_and_loads_nothing_heavy():
    code = (
        "import sys, finc_eval, finc_eval.cli\n"
        "try: finc_eval.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'torchvision', 'timm', 'faiss', 'scipy', 'matplotlib', 'h5py', 'numpy', 'pydantic'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for verb in (verb for verbs in VERBS.values() for verb in verbs):
        assert f" {verb} " in result.stdout


LINES = {(name, None): line for verbs in VERBS.values() for name, line in verbs.items()} | {
    (name, part): line for name, parts in PARTS.items() for part, line in parts.items()
}


@pytest.mark.parametrize("name", LINES)
def test_the_list_of_verbs_has_the_first_line_of_each_help(name):
    line = LINES[name]
    help_text = " ".join(load_verb(*name).help.split("\n\n")[0].split())
    assert line == help_text or line == help_text.split(". ")[0] + "."


def test_help_and_wrong_options_of_a_verb_do_not_wait_for_torch():
    code = """
import sys, finc_eval.cli
for words, expected in (
    ("compare --gem a", 3), ("compare sweep --parameter x", 3), ("private sketch release --help", 0),
    *((f"{verb} --help", 0) for verb in sys.argv[1:]),
):
    sys.argv[1:], code = words.split(), None
    try:
        finc_eval.cli.main()
    except SystemExit as end:
        code = end.code
    assert code == expected, (words, code)
    assert "torch" not in sys.modules, words
"""
    subprocess.run([sys.executable, "-c", code, *(verb for verbs in VERBS.values() for verb in verbs)], check=True)


LOADED = """
import sys
loaded = lambda *names: {name for name in names if name in sys.modules}
from finc_eval.private.kahm import fabrication, federated, membership, models
assert not loaded("sklearn")
import finc_eval as fe
assert all(getattr(fe, name) for name in fe.__all__)
assert not loaded("faiss", "timm", "torchvision")
import numpy as np
sets = np.random.default_rng(0).normal(size=(2, 200, 8)).astype(np.float32)
for options in ({"rotation": None, "clusters": False}, {"clusters": False}):
    fe.compare(sets[0] + 1, sets[1], features=50, method=fe.Finc(**options))
assert not loaded("sknetwork")
"""


@pytest.mark.long
def test_what_kahm_the_api_and_finc_alone_do_not_need_is_not_loaded():
    ended = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


LIGHT = """
import sys, finc_eval.cli
for words in (
    "--version",
    "compare --gen gen.npy --ref ref.npy --features 50 --out compared --quiet",
    "metrics --gen gen.npy --ref ref.npy --metrics fd --quiet",
    "kinds --gen a=gen.npy --gen b=ref.npy --out kinds --quiet",
    "gate --init --baseline gen.npy --ref ref.npy --out gate --quiet",
    "report compared/comparison.json --out page.html",
    "extract pictures.npz --out embedded.h5 --quiet",
    "extract digits.npz --out digits.h5 --extractor pixels --quiet",
    "compare --gen digits.h5 --ref digits.h5 --features 50 --out stored --quiet",
):
    sys.argv[1:] = words.split()
    try: finc_eval.cli.main()
    except SystemExit as end: assert end.code in (None, 0), (words, end.code)
    heavy = ("timm", "torchvision", "torch._dynamo", "sklearn", "scipy.stats", "faiss", "pandas", "matplotlib", "av")
    loaded = [name for name in heavy if name in sys.modules]
    assert not loaded, (words, loaded)
"""


@pytest.mark.long
def test_sets_are_embedded_and_compared_without_what_other_extractors_and_audits_load(tmp_path):
    np.savez(tmp_path / "pictures.npz", np.zeros((2, 32, 32, 3), np.uint8))
    np.savez(tmp_path / "digits.npz", np.random.default_rng(1).integers(0, 256, (60, 4, 4, 3), np.uint8))
    sets = np.random.default_rng(0).normal(size=(2, 200, 8)).astype(np.float32)
    np.save(tmp_path / "gen.npy", sets[0])
    np.save(tmp_path / "ref.npy", sets[1])
    ended = subprocess.run([sys.executable, "-c", LIGHT], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_pipe_that_nobody_reads_does_not_end_as_a_regression():
    reading, writing = os.pipe()
    os.close(reading)
    command = [*MAIN, "--help"]
    process = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, "")


def told_by_main(told, words):
    """Run a command as a process that a terminal starts; what it prints goes to a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits an ignored SIGINT
    with told.open("w") as sys.stderr:
        sys.argv = ["finc-eval", *map(str, words)]
        main()


def test_unknown_flags_are_errors_with_exit_code_3(tmp_path):
    process = forked(told_by_main, tmp_path / "told", ("compare", "--generated", "a"))
    assert exit_code(process) == 3
    assert "--generated" in (tmp_path / "told").read_text()


def test_ctrl_c_ends_quietly_and_the_same_command_goes_on(tmp_path):
    n, out, told = 5000, tmp_path / "many.h5", tmp_path / "told"
    np.savez(tmp_path / "many.npz", arr_0=np.random.default_rng(0).integers(0, 256, (n, 28, 28, 3), np.uint8))
    arguments = ("extract", tmp_path / "many.npz", "--out", out, "--extractor", "pixels")
    process = forked(told_by_main, told, arguments)
    while process.is_alive() and not out.with_name("many.h5.part").exists():
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGINT)
    assert exit_code(process) == 130, told.read_text()
    assert "interrupted; finished work is kept, and the same command goes on from there" in told.read_text()
    assert "Traceback" not in told.read_text()
    assert not out.exists()
    done(*arguments)
    assert fe.EmbeddingCache(out).n == n
