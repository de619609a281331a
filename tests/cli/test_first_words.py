"""First commands of a newcomer: help, version, wrong paths, devices and names. Each has an answer of one sentence."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.cli.options import title_of
from finc_eval.demo import example_sets

FEW = {"features": 10, "modes": 1, "method": fe.Finc(clusters=False)}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """A folder of twenty digits, two of which cannot be read."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "digits"
    folder.mkdir()
    for number, digit in enumerate((255 * example_sets(20)[0]).astype(np.uint8).reshape(-1, 28, 28)):
        Image.fromarray(digit).save(folder / f"{number:02}.png")
    for name in ("a.png", "b.png"):
        (folder / name).write_bytes(b"no picture")
    return folder


@pytest.mark.parametrize(
    "arguments", [(), ("-h",), ("--help",), ("extract", "cache"), ("extract", "cache", "-h"), ("private",)]
)
def test_help_is_what_is_printed_without_arguments(arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    assert "Usage: " in result.stdout and not result.stderr


def test_a_verb_and_its_part_may_be_one_word():
    for verb, part in (("private", "sketch"), ("compare", "methods"), ("extract", "merge")):
        assert run(f"{verb}-{part}", "-h").stdout == run(verb, part, "-h").stdout
    assert "No such command 'private-sketches'" in run("private-sketches").output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("gone", "."), "gone"),
        (("gone/", "missing/"), "gone"),
        ((".", "gone"), "gone"),
        (("comapre", "."), "No such command 'comapre'"),
        (("gone",), "No such command 'gone'"),
        (("gone", "missing"), "No such command 'gone'"),
    ],
)
def test_two_words_are_sets_unless_the_first_is_nearly_a_verb(words, named):
    result = run(*words)
    assert result.exit_code == 3 and named in result.output
    assert named != "gone" or ("No such command" not in result.output and len(result.stderr.splitlines()) == 1)


def test_the_version_is_told():
    assert run("--version").stdout == f"finc-eval {fe.__version__}\n"
    assert fe.__version__.count(".") == 2
    as_module = subprocess.run([sys.executable, "-m", "finc_eval", "--version"], capture_output=True, text=True)
    assert as_module.stdout == f"finc-eval {fe.__version__}\n"


WRONG = [
    ("compare", "--gen", "gone", "--ref", "."),
    ("compare", "--gen", ".", "--ref", "gone"),
    ("compare", "--gen", ".", "--ref", ".", "--extractor", "gone"),
    ("compare", "--gen", ".", "--ref", ".", "--out", "gone.html"),
    ("evaluate", "--gen", ".", "--ref", ".", "--train", ".", "--holdout", "gone"),
    ("extract", "gone"),
    ("metrics", "--gen", "gone", "--ref", "."),
    ("compare", "kinds", "--gen", "a=gone", "--gen", "b=."),
    ("report", "gone"),
    ("compare", "score", "--comparison", "gone", ".", "--out", "s.csv"),
    ("extract", "sketch", "gone", "--out", "s.h5"),
    ("audit", "--gen", ".", "--train", "gone", "--holdout", "."),
    ("report", ".", "--out", "gone.pdf"),
    ("compare", "score", "--comparison", ".", ".", "--out", "gone.json"),
    ("extract", "sketch", ".", "--out", "gone.json"),
    ("compare", "changes", "--old", "gone", "--new", "."),
    ("kahm", "fit", "gone", "--out", "m.h5"),
    ("kahm", "fit", ".", "--out", "gone.json"),
    ("kahm", "classify", ".", "--models", "gone", "--out", "c.csv"),
    ("kahm", "fabricate", ".", "--epsilon", "1", "--out", "gone.csv"),
    ("private", "sketch", "score", "--gen", "gone", "--ref", "."),
]
"""Commands with something that is not there, or cannot be written."""


@pytest.mark.long
def test_what_is_not_there_is_told_before_torch_is_loaded():
    code = (
        "import ast, sys, finc_eval.cli\n"
        "for sys.argv[1:] in ast.literal_eval(sys.argv[1]):\n"
        "    try: finc_eval.cli.main()\n"
        "    except SystemExit as end: assert end.code == 3, sys.argv\n"
        "    assert 'torch' not in sys.modules, sys.argv\n"
    )
    result = subprocess.run([sys.executable, "-c", code, repr(WRONG)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    sentences = result.stderr.splitlines()
    assert len(sentences) == len(WRONG)
    assert all(sentence.startswith("finc-eval: ") and "gone" in sentence for sentence in sentences)


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_here_is_one_sentence(digits, device):
    result = run("extract", digits, "--extractor", "pixels", "--device", device)
    assert result.exit_code == 3
    assert result.stderr.startswith(f'finc-eval: the device "{device}" cannot be used: torch finds only cpu')
    assert len(result.stderr.splitlines()) == 1, "no work has begun"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this GPU works")
def test_a_gpu_that_torch_finds_and_cannot_use_is_one_sentence_with_a_way_out(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as in a forked process, or with an old driver
    gen, ref = example_sets(120)
    with pytest.raises(fe.UsageError, match=r"finds a GPU that cannot be used \(.+\): .*run=fe.Run\(device=\"cpu\"\)"):
        fe.compare(gen, ref, features=10)


CPU = fe.Run(device="cpu")
ON_THE_CPU = {
    "compare": lambda x, y: fe.compare(x, y, features=10, run=CPU),
    "sketches": lambda x, y: fe.compare(x, fe.Sketch.reference(y, features=10, run=CPU), run=CPU),
    "spaces": lambda x, y: fe.compare({"a": x, "b": -x}, {"a": y, "b": -y}, features=10, run=CPU),
    "kinds": lambda x, y: fe.kinds({"x": x, "y": y}, run=CPU),
    "metrics": lambda x, y: fe.metrics(x, y, ["fd", "kid", "prdc"], run=CPU),
    "leaderboard": lambda x, y: fe.leaderboard({"a": x, "b": x[:90]}, y, run=CPU),
    "gate": lambda x, y: fe.gate(x, y, y, {"metrics": {"kid": {"difference": "noise"}}}, run=CPU),
    "audit": lambda x, y: fe.audit(x, y[:100], y[100:], run=CPU),
    "sweep": lambda x, y: fe.sweep(x, y, "sigma", [3.0], features=10, run=CPU),
}


@pytest.mark.one_of_each
@pytest.mark.skipif(torch.cuda.is_available(), reason="this GPU works")
@pytest.mark.parametrize("verb", ON_THE_CPU)
def test_with_the_cpu_asked_for_no_verb_touches_a_gpu(verb, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert ON_THE_CPU[verb](*(one.numpy() if torch.is_tensor(one) else one for one in example_sets(200)))


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_here_is_a_usage_error_in_python(device):
    gen, ref = (torch.from_numpy(one) for one in example_sets(120))
    run = fe.Run(device=device)
    reference = fe.Sketch.reference(ref, features=10)
    calls = [
        lambda: fe.compare(gen, ref, features=10, run=run),
        lambda: fe.compare(fe.Sketch.of(gen, reference), reference, run=run),
        lambda: fe.metrics(gen, ref, ["vendi"], run=run),
        lambda: fe.kinds({"gen": gen, "ref": ref}, run=run),
        lambda: fe.audit(gen, ref, ref.flip(0), run=run),
    ]
    for call in calls:
        with pytest.raises(fe.UsageError, match=f'the device "{device}" cannot be used'):
            call()


def test_the_names_of_samples_that_cannot_be_read_are_told(digits):
    for name in ("gen", "ref"):
        fe.extract(digits, "pixels", f"{name}.h5", n=None)
    warnings = fe.compare("gen.h5", "ref.h5", **FEW).warnings
    reason = "no image that can be recognized"
    sentence = f"2 samples of gen could not be read and are left out: a.png ({reason}) and b.png ({reason})"
    assert sentence in warnings


def test_each_extractor_is_checked_though_one_before_it_is_unknown():
    result = run("doctor", "extractors", "check", "dino", "pixels", "nosuch")
    assert result.exit_code == 3
    assert "pixels on " in result.stdout
    assert 'unknown extractor "dino" (did you mean "dinov2-vitb14", "dinov2-vitb14-reg"' in result.stderr
    assert 'unknown extractor "nosuch"' in result.stderr


def test_a_set_has_one_title_whatever_form_it_has(digits):
    embeddings = fe.extract(digits, "pixels", "e.h5")
    fe.Sketch.reference(embeddings, features=10).save("s.h5")
    assert {title_of(str(place), "ref") for place in (digits, "e.h5", "s.h5")} == {"digits"}
    found = fe.compare(embeddings, "s.h5", **FEW)
    assert (found.gen.name, found.ref.name) == ("digits", "digits")
    assert fe.metrics("e.h5", "e.h5", ["vendi"]).ref == "digits"
    assert fe.kinds({"a": "e.h5", "b": "s.h5"}).sets["b"].name == "digits"


@pytest.mark.parametrize(("words", "usage"), [("kinds", "compare kinds"), ("score", "compare score")])
def test_a_verb_of_an_earlier_version_works_and_says_what_it_is_called_now(words, usage):
    result = CliRunner().invoke(app, [words, "--help"], prog_name="finc-eval")
    assert result.exit_code == 0 and f"Usage: finc-eval {usage} " in " ".join(result.stdout.split())
    assert result.stderr == f"note: {words} is called {usage} now\n"
    assert CliRunner().invoke(app, [words, "--help", "--quiet"]).stderr == ""


def test_sets_with_names_are_compared_by_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compare", "a=gone/", "b=gone/"])
    assert result.exit_code == 3 and "gone" in result.stderr
    shown = CliRunner().invoke(app, ["compare", "a=gone/", "--help"], prog_name="finc-eval").stdout
    assert "Usage: finc-eval compare kinds " in " ".join(shown.split())
