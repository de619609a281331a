"""The KAHM paper's Table 11 and Fig. 17: time of one machine over p, n and N, on synthetic samples.

Thirteen points, each of them away from N = 1000, p = 784, n = 20 in one of the three. Seconds are processor time in one
thread, which other work on the machine hardly changes; the better of two.

    python benchmarks/kahm_speed.py
"""

import time

import numpy as np
import torch
from _papers import published
from _record import record

from finc_eval.private.kahm.machine import fit_machine
from finc_eval.private.kahm.models import WideKahm
from finc_eval.private.kahm.settings import KahmSettings

POINTS = [
    (1000, 784, 20),
    *((1000, p, 20) for p in (100, 300, 3000, 10_000)),
    *((1000, 784, n) for n in (5, 10, 50, 100)),
    *((samples, 784, 20) for samples in (100, 300, 3000, 5000)),
]
PAPER = {(one["N"], one["p"], one["n"]): one["s"] for one in published("kahm")["table_11"]}

QUERIES = 1000


def row(n, p, components):
    """Return the seconds of a fit, and the queries that a machine answers in a second."""
    rng = np.random.default_rng(0)
    samples, queries = (rng.normal(size=(count, p)) for count in (n, QUERIES))
    fits, asks = [], []
    for _ in range(2):
        start = time.process_time()
        machine = fit_machine(samples, KahmSettings(components))
        fits.append(time.process_time() - start)
        start = time.process_time()
        WideKahm(((machine,),)).distances(queries)
        asks.append(time.process_time() - start)
    found = {
        "N": n,
        "p": p,
        "n": components,
        "fit, s": round(min(fits), 2),
        "fit, s, paper": PAPER.get((n, p, components), ""),
        "queries per second": round(QUERIES / min(asks)),
    }
    print(found, flush=True)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = [row(*point) for point in POINTS]
    record("kahm_speed", rows, notes="processor time of one thread, the better of two")
