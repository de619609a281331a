"""Time and memory of a whole comparison against n, stage by stage, and of what a user could run instead.

Generated embeddings: a mixture of 20 Gaussian clusters, 5 of them only in the generated set, streamed from HDF5 caches;
r = 2 000. Each comparison runs in a process of its own, so that its peak memory can be measured. `compare` does all
that it does for a user: a look for repeats, bandwidth, two sketches with two folds and the Fréchet moments, a tree of
kinds with their counts, decompositions for the whole, for halves of the samples and of the frequencies, a scoring pass.
Small sets are compared by their features, without covariances. The alternatives run at the sizes that they can
handle: the published algorithm (FINC paper, Algorithm 1: one outer product per sample, summed by batch, then the full
decomposition of C_X − C_Y), which gives eigenvectors only; and the ten leading modes of exact KEN.
"""

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from _record import record

import finc_eval as fe
from finc_eval.baselines.ken import ken
from finc_eval.comparison import compare as pipeline
from finc_eval.comparison import directions
from finc_eval.embeddings import base as embeddings
from finc_eval.embeddings.recipe import Identity, recipe_of
from finc_eval.embeddings.writer import CacheWriter
from finc_eval.extractors.catalog import load_card
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.moments import Moments
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import Manifest

SIZES = (1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000)
DIM = 768
PUBLISHED_AT, KEN_AT = (1000,), (1000, 2500, 5000)
FEATURES, CHUNK, OUTER_BATCH = 2000, 5000, 16
PNG = Encoding("PNG", "RGB", 28, 28, False)
STAGES = ("read", "features", "covariance", "Fréchet moments", "eigen", "kinds", "score")
# FINC paper, Table 1: CPU FINC, r = 2 000, DINOv2 on ImageNet, 48 cores.
TABLE_1 = dict(zip(SIZES, (13.1, 31.6, 62.8, 125.5, 311.2, 617.6, 1248, 3090), strict=True))


def mixture(n, dim, clusters, seed):
    """Yield chunks of embeddings: clusters of spread 0.5 around centers of norm about √dim."""
    centers = np.random.default_rng(0).standard_normal((20, dim), np.float32)
    rng = np.random.default_rng(seed)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        yield centers[rng.integers(0, clusters, size)] + rng.standard_normal((size, dim), np.float32) / 2


def write_cache(path, n, dim, clusters, seed):
    manifest = Manifest("array", n, f"{n}-{dim}-{clusters}-{seed}", {})
    identity = Identity("array", manifest, "generated", recipe_of(load_card("pixels"), "float32"))
    # Digests of pixels that differ everywhere, so that nothing counts as a copy.
    digests = np.arange(n, dtype=np.uint64) + np.uint64(seed << 32)
    ids = [f"{seed}/{i:06d}.png" for i in range(n)]
    with CacheWriter(path, identity.key, ids, {"embeddings": dim}, CHUNK) as writer:
        for start, rows in zip(range(0, n, CHUNK), mixture(n, dim, clusters, seed), strict=True):
            writer.write(rows, digests[start : start + CHUNK], [None] * len(rows), [PNG] * len(rows))
        writer.finish(identity)


class Stopwatch:
    """Sums the seconds spent in functions by stage; a call into another stage counts for that stage alone."""

    def __init__(self, stages=STAGES, clock=time.perf_counter):
        self.seconds = dict.fromkeys(stages, 0.0)
        self.clock = clock
        self.running = []

    def run(self, stage, function, *arguments, **named):
        start = self.clock()
        self.running.append(0.0)
        try:
            return function(*arguments, **named)
        finally:
            seconds = self.clock() - start
            self.seconds[stage] += seconds - self.running.pop()
            if self.running:
                self.running[-1] += seconds

    def watch(self, owner, name, stage):
        """Time this function from now on; `stage` is a name, or a function that makes one from the first argument."""
        function = getattr(owner, name)

        def watched(*arguments, **named):
            what = stage if isinstance(stage, str) else stage(arguments[0])
            return self.run(what, function, *arguments, **named)

        setattr(owner, name, watched)

    def watch_waiting(self, owner, name, stage):
        """Time the waits of this generator's caller for its items."""
        generator = getattr(owner, name)

        def watched(items):
            source = generator(items)
            while (item := self.run(stage, next, source, None)) is not None:
                yield item

        setattr(owner, name, watched)


def one(gen, ref):
    """Run one comparison in this process and print its figures as JSON."""
    watch = Stopwatch()
    watch.watch_waiting(embeddings, "prefetch", "read")
    watch.watch(fe.RandomFourierFeatures, "apply", "features")
    watch.watch(Moments, "_multiply", lambda m: "Fréchet moments" if m.precision == "float64" else "covariance")
    watch.watch(directions, "extreme_eigenpairs", "eigen")
    watch.watch(pipeline, "divide", "kinds")
    watch.watch(pipeline, "score_sets", "score")
    start = time.perf_counter()
    found = fe.compare(gen, ref, features=FEATURES)
    seconds = time.perf_counter() - start
    peak, made = peak_memory(), watch.seconds["covariance"]
    blocks = Moments(2 * FEATURES, "float32", found.feature_map.device).blocks()
    operations = 2 * (found.gen.n + found.ref.n) * sum(block.numel() for _, block in blocks)
    share = operations / made / gemm_rate(found.feature_map.device) if made else None
    figures = {"seconds": seconds, "stages": watch.seconds, "peak": peak, "share": share}
    print(json.dumps({**figures, "sigma": found.settings.sigma, "significant": len(found.significant())}))


def peak_memory():
    """Return the peak resident bytes of this program; rusage would count what its parent held at the fork."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def gemm_rate(device):
    """Return the best rate of a float32 product of these sizes on this machine, in operations per second."""
    rows, best = torch.randn(2048, 2 * FEATURES, device=device), float("inf")
    with arithmetic():
        for _ in range(5):
            start = time.perf_counter()
            float((rows.T @ rows)[0, 0])
            best = min(best, time.perf_counter() - start)
    return 2 * rows.shape[1] ** 2 * len(rows) / best


def published(x, y, phi, size=OUTER_BATCH):
    """Run Algorithm 1 of the paper on batches of a size, and decompose the difference."""

    def covariance(rows):
        features = phi(rows)
        total = torch.zeros(phi.size, phi.size)
        for batch in features.split(size):
            total += torch.bmm(batch[:, :, None], batch[:, None, :]).sum(0)
        return total / len(rows)

    return torch.linalg.eigh(covariance(x) - covariance(y))


def seconds_of(function, *arguments, **named):
    start = time.perf_counter()
    function(*arguments, **named)
    return time.perf_counter() - start


def measured(folder, n):
    """Return one row of the table."""
    paths = [str(Path(folder) / f"{name}.h5") for name in ("gen", "ref")]
    for path, clusters, seed in zip(paths, (20, 15), (1, 2), strict=True):
        write_cache(Path(path), n, DIM, clusters, seed)
    child = subprocess.run([sys.executable, __file__, *paths], capture_output=True, text=True, check=True)
    figures = json.loads(child.stdout)
    row = {"n = m": n, "compare, s": round(figures["seconds"], 1)}
    row |= {f"{stage}, s": round(figures["stages"][stage], 1) for stage in STAGES}
    share = figures["share"]
    row |= {"of GEMM rate": "" if share is None else round(share, 2), "peak, GB": round(figures["peak"] / 1e9, 2)}
    others = {"published, s": None, "exact KEN, s": None}
    if n in PUBLISHED_AT + KEN_AT:
        gen, ref = (torch.from_numpy(fe.load(path)[:]) for path in paths)
        if n in PUBLISHED_AT:
            phi = fe.RandomFourierFeatures(DIM, FEATURES, sigma=figures["sigma"])
            others["published, s"] = seconds_of(published, gen, ref, phi)
        if n in KEN_AT:
            kernel = partial(gaussian_kernel, sigma=figures["sigma"])
            others["exact KEN, s"] = seconds_of(ken, gen, ref, kernel, count=10)
    row |= {name: "" if value is None else round(value, 1) for name, value in others.items()}
    return row | {"paper's FINC, 48 cores, s": TABLE_1[n]}


def main():
    rows = []
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(folder, n))
        print(rows[-1], flush=True)
    notes = f"d = {DIM}, r = {FEATURES}, float32, streamed from HDF5, each comparison in a process of its own"
    record("finc_scaling", rows, notes=notes)


if __name__ == "__main__":
    one(*sys.argv[1:]) if len(sys.argv) > 1 else main()
