"""Measure how often classifiers of past evaluations claim something of one law, and how soon they see what is planted.

    python benchmarks/monitor_classifiers.py [--regime … --runs … --jobs …]

A run asks about evaluations of 64 samples. *law*: 50 evaluations of one law; an alarm is an e-value of 20, as one thing
alone would have it. Others are planted from the first evaluation on, in 12 evaluations; an alarm is an e-value of
1 200, as one of 60 things has it. *kinds*: by embeddings, a class of 8 % that the reference lacks, of 24 in turn.
*parts*: by cells, pictures with writing (15 %) or a patch of one color (10 %). Photographs have 64 pixels, and no
picture comes twice, but for *few*: 300 photographs, again and again. *normal* has 8 entries, and *heavy* 32 entries of
t variables around ten middles.
"""

from functools import cache
from types import SimpleNamespace

import _real
import local_evidence
import numpy as np
import torch
from _local_faults import patch
from _planted_faults import writing
from _pool import pool
from _record import record
from _runs import rate, run

from finc_eval.embeddings.cells import Cells
from finc_eval.monitoring.evidence.parts import Parts, summarize_cells
from finc_eval.monitoring.evidence.unlike import Unlike, represent

SAMPLES, OF_ONE_LAW, PLANTED, DRAWN = 64, 50, 12, 700
LAWS = {"photographs": 650, "few": 650, "normal": 200, "heavy": 1000, "cells": 500}
FAULTS = {"writing": (writing, 0.15), "patch": (patch, 0.1)}
REGIMES = [
    *(f"law: {name}, {n}" for name, n in LAWS.items()),
    "kinds: a class of 8 %, 650", "kinds: a class of 8 %, 1000",
    *(f"parts: {name}, 500" for name in FAULTS),
]  # fmt: skip


class Rows:
    """Rows as a set without an extractor's last layer."""

    def __init__(self, rows):
        self.rows, self.n, self.space = rows, len(rows), "none"
        self.dim = min(rows.shape[1], pool("photographs").dim)  # probabilities stand behind the embeddings

    def rows_at(self, places):
        return torch.from_numpy(self.rows[places])


@cache
def embedded():
    """Return what classifiers of kinds know of all photographs."""
    return represent(pool("photographs"), np.arange(pool("photographs").n))


def summary(values):
    return summarize_cells(SimpleNamespace(cells=Cells(values, np.arange(len(values)), "")), np.arange(len(values)))[0]


@cache
def cells():
    return summary(local_evidence.photographs()[0])


@cache
def faulty(name):
    """Return the rows of some photographs, and the cells of these with a fault; they are computed once and kept."""
    kept = _real.CACHE / f"monitor-classifiers-{name}.npz"
    if not kept.exists():
        rng, images = np.random.default_rng(3), local_evidence.images()[0]
        rows = rng.permutation(len(images))[:DRAWN]
        drawn = [FAULTS[name][0](images[row].copy(), rng) for row in rows.tolist()]
        np.savez(kept, rows=rows, cells=local_evidence.Photographs().look(drawn)[0])
    with np.load(kept) as found:
        return found["rows"], summary(found["cells"])


def begin(kind, reference):
    if kind == "parts":
        return Parts.begun(reference, np.float32(1) / np.maximum(reference.std(0), np.float32(1)), 0)
    return Unlike.of(Rows(reference), 0, 0)


def follow(asked, sets, rng):
    for samples in sets:
        asked = asked.with_evaluation(samples, rng)
    return asked.bets


def of_law(name, n, rng):
    if name in ("photographs", "cells", "few"):
        source = cells() if name == "cells" else embedded()
        drawn = rng.permutation(len(source))[: n + OF_ONE_LAW * SAMPLES]
        rows = source[drawn if name != "few" else drawn[rng.integers(0, 300, len(drawn))]]
    else:
        count = n + OF_ONE_LAW * SAMPLES
        rows = rng.normal(size=(count, 8)) if name == "normal" else rng.standard_t(3, (count, 32))
        rows = (rows + 0 if name == "normal" else rows + rng.integers(0, 10, count)[:, None]).astype(np.float32)
    return rows[:n], np.split(rows[n:], OF_ONE_LAW)


def planted(kind, name, n, seed, rng):
    """Return a reference, and evaluations with new samples among theirs."""
    classes = local_evidence.photographs()[3]
    if kind == "kinds":
        source, share, new = embedded(), 0.08, np.flatnonzero(classes == seed % 24)
        old, new = np.flatnonzero(classes != seed % 24), embedded()[rng.permutation(new)]
    else:
        source, share, (rows, new) = cells(), FAULTS[name][1], faulty(name)
        old, new = np.setdiff1d(np.arange(len(source)), rows), new[rng.permutation(len(new))]
    old, sets, used = rng.permutation(old), [], 0
    for number in range(PLANTED):
        count = int(rng.binomial(SAMPLES, share))
        own = source[old[n + SAMPLES * number : n + SAMPLES * (number + 1) - count]]
        sets.append(np.concatenate([own, new[used : used + count]]))
        used += count
    return source[old[:n]], sets


def one(regime, seed):
    kind, rest = regime.split(": ")
    name, n = rest.rsplit(", ", 1)
    rng = np.random.default_rng(seed)
    if kind == "law":
        reference, sets = of_law(name, int(n), rng)
        bets = follow(begin("parts" if name == "cells" else "kinds", reference), sets, rng)
        return {"alarm": bool(bets.max() >= np.log(20)), "a half": bool(bets.max() >= np.log(2))}
    bets = follow(begin(kind, (given := planted(kind, name, int(n), seed, rng))[0]), given[1], rng)
    reached = np.flatnonzero(bets >= np.log(1200))
    first = int(reached[0]) + 1 if len(reached) else None
    return {"alarm": first is not None and first <= 10, "first": first}


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        row = {"regime": regime, "an alarm": rate(runs, "alarm")}
        if regime.startswith("law"):
            row["an e-value of 2"] = rate(runs, "a half")
        else:
            median = np.median([np.inf if found["first"] is None else found["first"] for found in runs])
            row["median evaluation"] = "–" if np.isinf(median) else f"{median:g}"
        rows.append(row)
    record("monitor_classifiers", rows, "Runs with an alarm, of planted things within ten evaluations.")


if __name__ == "__main__":
    run("monitor_classifiers", REGIMES, one, report, {regime: 100 if regime[:3] == "law" else 24 for regime in REGIMES})
