"""`metrics --explain`: what it prints, and what does not go with it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app

RUN = fe.Run(device="cpu")


def run(*arguments):
    return CliRunner().invoke(app, ["metrics", *map(str, arguments), "--device", "cpu"])


def test_the_verb_names_the_convention(arrays):
    sets = "--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy"
    gen, ref = (np.load(arrays / f"{name}.npy") for name in ("gen", "ref"))
    number = f"{fe.metrics.fd(gen[:100], ref, run=RUN).value:.4f}"
    result = run(*sets, "--explain", number)
    assert result.exit_code == 0 and number in result.stdout and "first 100 generated samples" in result.stdout
    found = json.loads(run(*sets, "--explain", number, "--json").stdout)
    assert found["explanations"][0]["conventions"] == ["the first 100 generated samples"]
    assert found["value"] == number and found["metric"] == "fd" and found["not_tried"]
    assert found["as_is"]["value"] == pytest.approx(fe.metrics.fd(gen, ref, run=RUN).value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--explain", "much"], "much"),
        (["--explain", "2.5", "--by", "label"], "--by"),
        (["--explain", "2.5", "--out", "scores"], "--out"),
        (["--explain", "2.5", "--metrics", "fd,kid"], "fd, kid"),
    ],
)
def test_what_does_not_go_with_it_is_refused(arrays, options, named):
    result = run("--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", *options)
    assert result.exit_code == 3 and named in result.output
