"""`Run` as an argument: what is given in its place by mistake is named, before anything is computed."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.run import Run

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda run: fe.compare(ROWS, ROWS + 1, run=run),
        lambda run: fe.kinds({"a": ROWS, "b": ROWS + 1}, run=run),
        lambda run: fe.metrics({"a": ROWS}, ROWS + 1, run=run),
        lambda run: fe.Sketch.reference(ROWS, sigma=1.0, run=run),
        lambda run: fe.audit(ROWS, ROWS + 1, ROWS + 2, run=run),
    ],
)
def test_a_device_in_place_of_a_run_is_refused_with_what_to_give(call):
    with pytest.raises(fe.UsageError, match=r"run must be a Run, got 'cpu': give run=fe\.Run\(device=\"cpu\"\)"):
        call("cpu")
    with pytest.raises(fe.UsageError, match="run must be a Run, got 3: "):
        call(3)


def test_a_run_stays_as_it_is_and_none_is_the_default():
    run = Run(workers=1)
    assert Run.of(run) is run and Run.of(None) == Run()
