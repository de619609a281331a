"""Measure how long first calls and commands take, and what they load: each in a new process, with its imports.

Calls and commands on 300 + 300 rows of 32 numbers, and on 100 photographs of 64 px in memory (smooth noise, embedded by
the default extractor and not yet in the cache). Then, with the test assets (FINC_EVAL_ASSETS), commands on digits that
are embedded by pixels, d = 784: `gate --init` of a baseline of 1 000, which also stands for the release, and a
reference of 2 000; `leaderboard` of five models of 1 000 and a reference of 2 000, with its page.

Wall time, CPU time and peak memory of the process, and which large packages are in its `sys.modules` at its end.

    python benchmarks/waiting.py
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _real import mnist
from _record import record
from PIL import Image

N, PHOTOGRAPHS = 1000, 100
LARGE = [
    "torch",
    "timm",
    "torchvision",
    "h5py",
    "scipy",
    "sklearn",
    "sknetwork",
    "faiss",
    "matplotlib",
    "pandas",
    "av",
    "PIL",
    "jinja2",
    "typer",
]
TELLING = (
    "import atexit, sys\n"
    "def tell():\n"
    "    peak, = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
    f"    with open('told', 'w') as file: print(peak, *[name for name in {LARGE} if name in sys.modules], file=file)\n"
    "atexit.register(tell)\n"
)
COMMAND = "from finc_eval.cli import main; main()"
PAIR = ["--gen", "gen.npy", "--ref", "other.npy"]
FIRST = {
    "import torch": ["import torch"],
    "import finc_eval": ["import finc_eval"],
    "finc-eval --help": [COMMAND, "--help"],
    "finc-eval compare --help": [COMMAND, "compare", "--help"],
    "fe.compare of arrays": [
        "import numpy as np, finc_eval as fe; fe.compare(np.load('gen.npy'), np.load('other.npy'))"
    ],
    "finc-eval compare of two .npy, with its page": [COMMAND, "compare", *PAIR, "--out", "compared"],
    "finc-eval metrics --metrics fd of two .npy": [COMMAND, "metrics", *PAIR, "--metrics", "fd"],
    "fe.extract of 100 photographs": ["import numpy as np, finc_eval as fe; fe.extract(np.load('photos.npy'))"],
}
EMBEDDED = {
    "finc-eval gate --init, 1,000 and a reference of 2,000": [
        "gate",
        "--init",
        "--baseline",
        "one.npy",
        "--ref",
        "ref.npy",
    ],
    "finc-eval leaderboard, 5 × 1,000 and a reference of 2,000": [
        "leaderboard",
        "--ref",
        "ref.npy",
        *(f"{name}={name}.npy" for name in ("one", "two", "three", "four", "five")),
    ],
}


def write_sets():
    """Write the sets of the first calls to the working folder."""
    rng = np.random.default_rng(0)
    for name in ("gen", "other"):
        np.save(f"{name}.npy", rng.standard_normal((300, 32), np.float32))
    noise = rng.integers(0, 256, (PHOTOGRAPHS, 8, 8, 3), np.uint8)
    np.save(
        "photos.npy", [np.asarray(Image.fromarray(one).resize((64, 64), Image.Resampling.BICUBIC)) for one in noise]
    )


def write_digits(digits):
    """Write the sets of digits to the working folder."""
    digits = digits[np.random.default_rng(0).permutation(len(digits))]
    for number, name in enumerate(("one", "two", "three", "four", "five")):
        np.save(f"{name}.npy", digits[number * N : (number + 1) * N])
    np.save("ref.npy", digits[5 * N : 7 * N])


def measured(command, code, *words):
    """Run a program in a process, and return its row."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", TELLING + code, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{command} ended with {status}")
    peak, *loaded = Path("told").read_text().split()
    row = {
        "command": command,
        "s": round(seconds, 1),
        "CPU s": round(used.ru_utime + used.ru_stime, 1),
        "peak, GB": round(int(peak) * 1024 / 1e9, 2),
        "loads": ", ".join(loaded),
    }
    print(row, flush=True)
    return row


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["FINC_EVAL_CACHE"] = f"{folder}/cache"
        write_sets()
        rows = [measured(command, *program) for command, program in FIRST.items()]
        if (found := mnist()) is not None:
            write_digits(found[0])
            rows += [measured(command, COMMAND, *words) for command, words in EMBEDDED.items()]
    record("waiting", rows, "Wall and CPU time and peak memory of a process, and what it loads.")


if __name__ == "__main__":
    main()
