"""Seconds that a fast GPU would wait for the host, in a comparison from caches.

The caches are read whole, and of each row the first 8 entries enter the computation, with 16 frequencies; scores,
kinds and distances are computed of some rows of each batch and stand for the others. So the work of the device takes
next to nothing, and what remains is the work of the host: hashes of ids, counts, decompositions on the host, tests, and
the thread that reads ahead. Seconds are of the processor, in the second of two comparisons, so that they neither depend
on what else runs nor contain the loading of libraries.

    python benchmarks/host_profile.py [n] [d]      default: 250 000 × 768, half a minute and 1.5 GB of disk
"""

import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from unittest.mock import patch

import torch
from _record import record
from finc_scaling import write_cache

import finc_eval as fe
from finc_eval.comparison import compare, inputs
from finc_eval.comparison.score_pass import ScorePass
from finc_eval.core.run import GPU_BATCH_SIZE
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.search.distance_blocks import Rows
from finc_eval.partitions import answer, kind_tree
from finc_eval.partitions.counts import Counter
from finc_eval.partitions.kind_tree import Assignment, KindTree
from finc_eval.sketches.folds import FarSamples

ENTRIES, FEATURES, STAND_INS = 8, 16, 256
STAGES = {
    "hash the ids": (CachedEmbeddings, "_hashes_between"),
    "look for repeats": (inputs, "group_sets"),
    "look for near-repeats": (inputs, "near_repeat_warnings"),
    "bandwidth and frequencies": (inputs, "reference_feature_map"),
    "sketch": (inputs, "_sketch"),
    "divide into kinds": (KindTree, "fit"),
    "count kinds": (Counter, "of"),
    "test kinds": (answer, "test_kinds"),
    "directions": (compare, "_fit"),
    "score": (compare, "score_sets"),
    "assemble directions": (compare, "assemble_directions"),
    "describe": (compare, "_describe"),
}
READ, REST = "read, in its own thread", "all else"


class Clock:
    """Sums the processor's seconds of a thread by stage; a stage within another counts for itself alone."""

    def __init__(self):
        self.seconds, self.running = dict.fromkeys([*STAGES, REST, READ], 0.0), []

    def run(self, stage, function, *arguments, **named):
        start = time.thread_time()
        self.running.append(0.0)
        try:
            return function(*arguments, **named)
        finally:
            seconds = time.thread_time() - start
            self.seconds[stage] += seconds - self.running.pop()
            if self.running:
                self.running[-1] += seconds

    def watching(self, stage, owner, name):
        function = getattr(owner, name)
        if isinstance(vars(owner)[name], classmethod):
            return patch.object(owner, name, partial(self.run, stage, function))
        return patch.object(owner, name, lambda *arguments, **named: self.run(stage, function, *arguments, **named))


class Narrow(CachedEmbeddings):
    """A cache that is read whole, and of whose rows the first entries are given out."""

    def __init__(self, path, clock):
        super().__init__(fe.EmbeddingCache(path))
        self.dim, self.clock = ENTRIES, clock

    def rows_at(self, indices):
        return self._cut(super().rows_at, indices)

    def _rows_in_order(self, size):
        rows = super()._rows_in_order(size)
        while (batch := self._cut(next, rows, None)) is not None:
            yield batch

    def _cut(self, read, *arguments):
        start = time.thread_time()
        rows = read(*arguments)
        if current_thread() is not main_thread():
            self.clock.seconds[READ] += time.thread_time() - start
        return None if rows is None else rows[:, :ENTRIES].contiguous()


def few(function):
    """Let a score pass see some samples of each batch."""

    def update(self, features, fold, index, groups):
        groups = None if groups is None else groups[:STAND_INS]
        function(self, features[:STAND_INS], fold, index[:STAND_INS], groups)

    return update


def near_middle(function):
    """Look for far samples among some of each chunk."""
    return lambda self, chunk: function(
        self, replace(chunk, rows=chunk.rows[:STAND_INS], index=chunk.index[:STAND_INS])
    )


def repeated(function):
    """Assign some rows, and repeat their kinds for the others."""

    def assign(self, rows):
        found = function(self, rows[:STAND_INS])
        places = torch.arange(len(rows)) % len(found[0])
        return tuple(one[places] for one in found)

    return assign


def nearby(function):
    """Let some rows of a block of distances stand for all."""
    return lambda self, start, rows, frame: function(self, start, rows[: 2 * STAND_INS], frame)


def of_some(function):
    """Find the neighbors of some rows, and repeat them for the others."""

    def nearest(rows, base, k, **how):
        found = function(rows[:STAND_INS], base[:STAND_INS], k, **how)
        return found._replace(indices=found.indices[torch.arange(len(rows)) % len(found.indices)])

    return nearest


def profiled(paths):
    """Compare two caches; return the seconds by stage, and those that passed."""
    clock, start = Clock(), time.perf_counter()
    watches = [clock.watching(stage, *where) for stage, where in STAGES.items()]
    for watch in watches:
        watch.start()
    sets = [Narrow(path, clock) for path in paths]
    clock.run(REST, fe.compare, *sets, features=FEATURES, run=fe.Run(device="cpu"))
    for watch in watches:
        watch.stop()
    return clock.seconds, time.perf_counter() - start


def without_products():
    """Let the work of the device take next to nothing, in portions of a GPU."""
    fe.Run.portion = GPU_BATCH_SIZE
    for owner, name, stand_in in (
        (ScorePass, "update", few),
        (Assignment, "__call__", repeated),
        (FarSamples, "update", near_middle),
        (Rows, "__init__", nearby),
        (kind_tree, "nearest", of_some),
    ):
        setattr(owner, name, stand_in(getattr(owner, name)))


def main(n, dim):
    without_products()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.h5" for name in ("gen", "ref")]
        for path, kinds, seed in zip(paths, (20, 15), (1, 2), strict=True):
            write_cache(path, n, dim, kinds, seed)
        profiled(paths)
        seconds, passed = profiled(paths)
    host = sum(seconds.values()) - seconds[READ]
    seconds |= {"all, without reading": host, "all": host + seconds[READ]}
    rows = [{"stage": stage, "seconds of the processor": f"{value:.2f}"} for stage, value in seconds.items()]
    print(*rows, sep="\n")
    record("host_profile", rows, notes=f"{n} + {n} × {dim} from caches; {passed:.1f} s passed on a machine in use")


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:]] or [250_000, 768]))
