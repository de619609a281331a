"""A ledger is never overspent, and a run that is killed goes on and gives the same file."""

import signal
import subprocess
import sys
from math import exp

import numpy as np
from PIL import Image
from scipy.optimize import brentq
from scipy.stats import norm

import finc_eval as fe
from finc_eval.privacy import Ledger

BUDGET, DELTA = 1.0, 1e-5

SPENDER = """
import os, signal, sys
import numpy as np
from finc_eval.core.errors import BudgetError
from finc_eval.privacy import PublicTransform, release_sketch
ledger, out, number = sys.argv[1:]
rng = np.random.default_rng(int(number))
public = PublicTransform.constant(4, length_scale=2, radius=3)
print("ready", flush=True)
sys.stdin.readline()
for turn in range(15):
    data, epsilon = turn // 3, round(float(rng.uniform(0.3, 0.8)), 3)
    rows = np.random.default_rng(data).normal(size=(50, 4))
    try:
        sketch = release_sketch(rows, public=public, epsilon=epsilon, delta=1e-5, ledger=ledger)
    except BudgetError:
        continue
    sketch.save(f"{out}/{number}-{turn}.h5")
    print(data, epsilon, flush=True)
    if number == "0" and data == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""

EXTRACTOR = """
import os, signal, sys
import finc_eval as fe
from finc_eval.embeddings import writer
writer.CHECKPOINT_SECONDS = 0
steps = iter(range(int(sys.argv[3]), -1, -1))

def progress(stage, done, total):
    print(stage, done, flush=True)
    if next(steps) == 0:
        os.kill(os.getpid(), signal.SIGKILL)

fe.extract(sys.argv[1], "pixels", sys.argv[2], run=fe.Run("cpu", batch_size=8, progress=progress))
"""


def process(code, *words):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], **pipes)


def gaussian_privacy(epsilon, delta):
    """Return the μ of Gaussian differential privacy that is (ε, δ)-DP (Balle and Wang 2018, eq. 6)."""

    def excess(mu):
        return norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return brentq(excess, 1e-6, 10, xtol=1e-14)


def test_a_ledger_is_never_overspent_by_processes_at_once_of_which_one_is_killed(tmp_path):
    """Four processes want three releases of each of five data sets. What came out composes to the budget, to 1e-6."""
    ledger = Ledger.create(tmp_path / "ledger.jsonl", BUDGET, DELTA)
    running = [process(SPENDER, ledger.path, tmp_path, number) for number in range(4)]
    assert [one.stdout.readline() for one in running] == ["ready\n"] * 4
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    released = [line.split() for one in running for line in one.communicate()[0].splitlines()]
    assert [one.returncode for one in running][1:] == [0, 0, 0]
    assert len([*tmp_path.glob("*.h5")]) == len(released) <= len(ledger.spendings())
    spent = {}
    for data, epsilon in released:
        spent[data] = spent.get(data, 0) + gaussian_privacy(float(epsilon), DELTA) ** 2
    assert len(spent) == 5 and max(spent.values()) ** 0.5 <= gaussian_privacy(BUDGET, DELTA) + 1e-6


def test_an_extraction_that_is_killed_again_and_again_goes_on_and_gives_the_same_file(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "images"
    folder.mkdir()
    for number in range(96):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / f"{number:02}.png")
    out, whole = tmp_path / "killed" / "gen.h5", tmp_path / "whole" / "gen.h5"
    begun = []
    for kill in (3, 5, 4, 6, 1000):
        one = process(EXTRACTOR, folder, out, kill)
        steps = [line.rsplit(" ", 1) for line in one.communicate()[0].splitlines()]
        begun.append(next((int(done) for stage, done in steps if stage.startswith("embed")), 96))
        assert one.returncode == (-signal.SIGKILL if kill < 1000 else 0)
    fe.extract(folder, "pixels", whole, run=fe.Run("cpu", batch_size=8))
    assert begun == sorted(begun) and begun[-1] >= 32, "each run goes on from where the last one was killed"
    np.testing.assert_array_equal(fe.load(out), fe.load(whole))
    assert out.read_bytes() == whole.read_bytes()
    assert [file.name for file in out.parent.iterdir()] == ["gen.h5"]
