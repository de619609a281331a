"""The KAHM paper's Table 11: time of one machine by the entries of its samples, and its largest: 1 000 x 20 000.

    python benchmarks/kahm_table11.py

The paper prints N x p alone. Its sizes from 2 500 000 on are those of p = 10 N, and are measured so. The smaller ones
are measured in shapes that they may have. Seconds are processor time in one thread, the better of two; the paper's are
of MATLAB on a laptop.
"""

import time

import numpy as np
import torch
from _papers import published
from _record import record

from finc_eval.private.kahm.machine import fit_machine
from finc_eval.private.kahm.settings import KahmSettings

SMALL = ((100, 100), (100, 1000), (1000, 100), (300, 1000), (1000, 300), (1000, 1000))
SHAPES = (*SMALL, *((n, 10 * n) for n in (500, 600, 700, 750, 800, 850, 900, 950, 1000)), (1000, 20_000))
PAPER = dict(published("tables")["kahm"]["table_11"]["rows"]) | {20_000_000: published("tables")["kahm"]["largest"]}


def seconds(n, p):
    """Return the processor time of a fit of n samples of dimension p with 20 components."""
    samples, found = np.random.default_rng(0).normal(size=(n, p)), []
    for _ in range(2):
        start = time.process_time()
        fit_machine(samples, KahmSettings(20))
        found.append(time.process_time() - start)
    return min(found)


def main():
    torch.set_num_threads(1)
    rows = [
        {"N": n, "p": p, "entries": n * p, "s": round(seconds(n, p), 4), "paper, s": PAPER[n * p]} for n, p in SHAPES
    ]
    record("kahm_table11", rows, notes="n = 20; processor time of one thread, the better of two")


if __name__ == "__main__":
    main()
