"""How long do the first commands take once their sets are embedded? Digits by pixels, d = 784, a process each.

`gate --init` of a baseline of 1 000 digits, which also stands for the release, and a reference of 2 000; `leaderboard`
of five models of 1 000 digits and a reference of 2 000, with its page. Wall time and CPU time of the process, start and
imports included. Needs the test assets (FINC_EVAL_ASSETS).

    python benchmarks/waiting.py
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from _real import mnist
from _record import record

N = 1000
COMMANDS = {
    "gate --init, 1,000 and a reference of 2,000": ["gate", "--init", "--baseline", "one.npy", "--ref", "ref.npy"],
    "leaderboard, 5 × 1,000 and a reference of 2,000": [
        "leaderboard",
        "--ref",
        "ref.npy",
        *(f"{name}={name}.npy" for name in ("one", "two", "three", "four", "five")),
    ],
}


def main():
    found = mnist()
    if found is None:
        return
    digits = found[0][np.random.default_rng(0).permutation(len(found[0]))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, name in enumerate(("one", "two", "three", "four", "five")):
            np.save(f"{name}.npy", digits[number * N : (number + 1) * N])
        np.save("ref.npy", digits[5 * N : 7 * N])
        for command, words in COMMANDS.items():
            before, began = os.times(), time.perf_counter()
            subprocess.run([sys.executable, "-m", "finc_eval", *words], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            rows.append({"command": command, "s": round(time.perf_counter() - began, 1), "CPU s": round(cpu, 1)})
            print(rows[-1], flush=True)
    record("waiting", rows, "Wall and CPU time of a process, on digits that are embedded.")


if __name__ == "__main__":
    main()
