"""Measure the processor time of each step of a comparison, with one thread.

Sets as in finc_scaling.py, in memory: a mixture of 20 Gaussian clusters in 768 entries, 5 of them only in the generated
set; 2 000 frequencies. Each size runs in a process of its own. The seconds of a function are those without the steps
that it calls. Other processes may share the cores: parts count, and not seconds.
"""

import json
import subprocess
import sys
import time

import numpy as np
import torch
from _record import record
from finc_scaling import DIM, FEATURES, Stopwatch, mixture

import finc_eval as fe
from finc_eval.comparison import compare as pipeline
from finc_eval.comparison import directions, inputs
from finc_eval.numerics.moments import Moments

SIZES = (1000, 50_000)
OTHER = "all else"
STEPS = {
    "repeats, bandwidth, halves": (pipeline, "sketch_sets"),
    "random features": (fe.RandomFourierFeatures, "apply"),
    "moments": (Moments, "_multiply"),
    "kinds": (pipeline, "divide"),
    "eigenproblems": (directions, "extreme_eigenpairs"),
    "rotation": (directions, "varimax"),
    "directions, without both": (pipeline, "_fit"),
    "scores": (pipeline, "score_sets"),
    "the test of the sets": (pipeline, "sets_p_value"),
    "error of the kernel": (inputs, "approximation_error"),
    "names": (pipeline, "_name"),
}
"""Steps, and the function of each."""


def one(n):
    """Compare two sets of n samples, and print the processor seconds of each step as JSON."""
    torch.set_num_threads(1)
    gen, ref = (np.concatenate([*mixture(n, DIM, clusters, seed)]) for clusters, seed in ((20, 1), (15, 2)))
    fe.compare(gen[:100], ref[:100], features=10)  # imports and first calls are not of the comparison
    watch = Stopwatch(STEPS, time.process_time)
    for step, (owner, name) in STEPS.items():
        watch.watch(owner, name, step)
    start = time.process_time()
    fe.compare(gen, ref, features=FEATURES)
    seconds = time.process_time() - start
    print(json.dumps({**watch.seconds, OTHER: seconds - sum(watch.seconds.values())}))


def main():
    command = [sys.executable, __file__]
    found = {n: json.loads(subprocess.run([*command, str(n)], capture_output=True, check=True).stdout) for n in SIZES}
    whole = {n: sum(seconds.values()) for n, seconds in found.items()}
    rows = [{"step": "all, CPU s"} | {f"{n} + {n}": round(whole[n], 1) for n in SIZES}]
    for step in (*STEPS, OTHER):
        rows.append({"step": step} | {f"{n} + {n}": f"{100 * found[n][step] / whole[n]:.0f} %" for n in SIZES})
    record("engine_steps", rows, notes=f"d = {DIM}, r = {FEATURES}, float32, arrays, one thread")


if __name__ == "__main__":
    one(int(sys.argv[1])) if len(sys.argv) > 1 else main()
