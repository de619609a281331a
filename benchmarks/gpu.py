"""One command that tests and measures finc-eval on a GPU, and names the GPU.

It needs torch with CUDA, timm, h5py, scipy and scikit-learn, and what finc-eval imports: pydantic, lazy-loader, pillow.
It does not need faiss, PyAV or a network. Without CUDA it says so and ends. Each measurement is written when it is
made, and one that fails is a row with its reason.

    python benchmarks/gpu.py                  everything, in about 20 minutes
    python benchmarks/gpu.py finc extraction  some of the measurements
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from _record import record

import finc_eval as fe
from finc_eval.baselines.fld import fld
from finc_eval.baselines.ken import ken
from finc_eval.baselines.rarity import rarity
from finc_eval.comparison.directions import match
from finc_eval.extractors import network
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import loader_module, with_outputs
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.measures.precision_recall import precision_recall
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.moments import Moments
from finc_eval.numerics.precision import add_product, arithmetic, prepare

HERE = Path(__file__).parent
NEEDED = ("timm", "h5py", "scipy", "sklearn", "pydantic", "lazy_loader", "PIL")
PRECISIONS = ("float32", "tf32", "bfloat16")
FULL = {
    "sizes": (1000, 5000, 25_000, 50_000, 100_000, 250_000),
    "dim": 768,
    "features": 2000,
    "agree": 5000,
    "baselines": (1000, 2500, 5000),
    "neighbors": (50_000, 2048),
    "networks": ("dinov2-vitl14", "inception-fid", "i3d-rgb-k400"),
    "batches": (32, 128, 512),
    "rounds": 3,
}
TINY = {
    "sizes": (200,),
    "dim": 8,
    "features": 20,
    "agree": 200,
    "baselines": (100,),
    "neighbors": (200, 8),
    "networks": ("pixels",),
    "batches": (4,),
    "rounds": 1,
}
"""Sizes that a CPU measures in seconds, so that this script is tested."""


class Bench:
    """The sizes, the device and the rows of a run."""

    def __init__(self, device, sizes, out):
        self.device, self.sizes, self.out, self.rows = torch.device(device), sizes, out, []

    @property
    def run(self):
        return fe.Run(device=self.device)

    def row(self, what, size, *, seconds=None, figure="", note=""):
        """Keep a row, print it, and write all so far."""
        peak = torch.cuda.max_memory_allocated() / 1e9 if self.device.type == "cuda" else None
        self.rows.append(
            {
                "measurement": what,
                "size": size,
                "seconds": "" if seconds is None else f"{seconds:.3g}",
                "figure": figure,
                "peak, GB": "" if peak is None else f"{peak:.2f}",
                "note": note,
            }
        )
        print(json.dumps(self.rows[-1]), flush=True)
        self.out.write_text(json.dumps(self.rows, indent=1) + "\n")

    def seconds(self, function):
        """Return the shortest time of a function, which the device has finished, and its last result."""
        best, found = float("inf"), None
        for _ in range(self.sizes["rounds"] + 1):  # the first one loads libraries
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            self.wait()
            start = time.perf_counter()
            found = function()
            self.wait()
            best = min(best, time.perf_counter() - start)
        return best, found

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def mixture(self, n, clusters, seed, dim=None):
        """Return clusters of spread 0.5 around 20 centers of norm about √dim, or the first of them."""
        dim, rng = dim or self.sizes["dim"], np.random.default_rng(seed)
        centers = np.random.default_rng(0).standard_normal((20, dim), np.float32)
        rows = centers[rng.integers(0, clusters, n)]
        rows += rng.standard_normal((n, dim), np.float32) / 2
        return rows

    def pair(self, n):
        return self.mixture(n, 20, 1), self.mixture(n, 15, 2)


def tests(bench):
    """Run the tests that need a GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(HERE.parent / "tests")]
    if bench.device.type != "cuda":
        command.append("--collect-only")
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
    bench.row("pytest -m gpu", "", figure=lines[-1][:100], note="" if done.returncode == 0 else "FAILED")


def rate(bench, precision):
    """Return the rate of the products of the covariance, in operations per second."""
    size = 2 * bench.sizes["features"]
    rows = prepare(torch.randn(bench.run.portion, size, device=bench.device), precision)
    total = torch.zeros(size, size, device=bench.device)

    def products():
        with arithmetic(precision):
            for _ in range(10):
                add_product(total, rows, rows)

    seconds, _ = bench.seconds(products)
    return 10 * 2 * len(rows) * size**2 / seconds


def covariance(bench):
    """Measure the covariance of features against the rate of bare products."""
    size = 2 * bench.sizes["features"]
    features = torch.randn(bench.run.portion, size, device=bench.device)
    for precision in PRECISIONS:
        if precision == "bfloat16" and bench.device.type != "cuda":
            continue
        bare, moments = rate(bench, precision), Moments(size, precision, bench.device)
        operations = 2 * len(features) * sum(block.numel() for _, block in moments.blocks())
        seconds, _ = bench.seconds(partial(moments.update, features))
        share = operations / seconds / bare
        figure, shape = f"{share:.0%} of {bare / 1e12:.3g} TFLOP/s of bare products", f"{len(features)} × {size}"
        bench.row(f"covariance, {precision}", shape, seconds=seconds, figure=figure)


def differing(found):
    """Return the significant directions."""
    return [mode for mode in found.directions if mode.p_value <= 0.05]


def same_modes(found, expected):
    """Return the smallest overlap of paired directions, the largest difference of p-values, and the equal shares."""
    first, second = (
        torch.from_numpy(np.stack([mode.direction for mode in differing(one)])) for one in (found, expected)
    )
    rows, columns = match(overlap := (first @ second.T).square().cpu())
    pairs = [(differing(found)[i], differing(expected)[j]) for i, j in zip(rows, columns, strict=True)]
    return (
        float(overlap[rows, columns].min()),
        max(abs(mine.p_value - other.p_value) for mine, other in pairs),
        sum(mine.share_gen == other.share_gen and mine.share_ref == other.share_ref for mine, other in pairs),
        max(len(first), len(second)),
    )


def agreement(bench):
    """Compare the results of the device with those of the CPU, and low precisions with float64."""
    gen, ref = bench.pair(bench.sizes["agree"])
    compared = partial(fe.compare, gen, ref, features=bench.sizes["features"], method=fe.Finc(clusters=False))
    expected = compared(run=fe.Run(device="cpu"))
    cases = {"GPU and CPU": ({}, expected)}
    exact = compared(precision="float64", run=bench.run)
    cases |= {f"{precision} and float64": ({"precision": precision}, exact) for precision in PRECISIONS}
    for name, (options, other) in cases.items():
        overlap, apart, shares, modes = same_modes(compared(run=bench.run, **options), other)
        figure = f"overlap ≥ {overlap:.5f}, p within {apart:.1g}, {shares} of {modes} shares equal"
        passed = overlap > 0.999 and apart < 1e-3 and shares == modes
        bench.row(name, f"{len(gen)} + {len(ref)}", figure=figure, note="" if passed else "DIFFERENT")


def finc(bench):
    """Measure a comparison from arrays, from device memory, and from caches."""
    from finc_scaling import write_cache

    for n in bench.sizes["sizes"]:
        gen, ref = bench.pair(n)
        size, options = f"{n} + {n} × {bench.sizes['dim']}", {"features": bench.sizes["features"], "run": bench.run}
        device = [torch.from_numpy(rows).to(bench.device) for rows in (gen, ref)]
        bench.row("compare, device memory", size, seconds=bench.seconds(lambda: fe.compare(*device, **options))[0])  # noqa: B023
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{name}.h5" for name in ("gen", "ref")]
            for path, clusters, seed in zip(paths, (20, 15), (1, 2), strict=True):
                write_cache(path, n, bench.sizes["dim"], clusters, seed)
            bench.row("compare, caches", size, seconds=bench.seconds(lambda: fe.compare(*paths, **options))[0])  # noqa: B023
    for precision in PRECISIONS[1:]:
        seconds, _ = bench.seconds(lambda: fe.compare(*device, precision=precision, **options))  # noqa: B023
        bench.row(f"compare, device memory, {precision}", size, seconds=seconds)


def baselines(bench):
    """Measure KEN, Rarity and FLD at the sizes of the paper's Table 1."""
    for n in bench.sizes["baselines"]:
        gen, ref = bench.pair(n)
        x, y = (torch.from_numpy(rows).to(bench.device) for rows in (gen, ref))
        kernel = partial(gaussian_kernel, sigma=float(bench.sizes["dim"]) ** 0.5)
        for name, call in {
            "KEN": lambda: ken(x, y, kernel, count=10),  # noqa: B023
            "Rarity": lambda: rarity(gen, ref, run=bench.run),  # noqa: B023
            "FLD": lambda: fld(gen, ref, bench.mixture(len(gen), 20, 3), run=bench.run),  # noqa: B023
        }.items():
            bench.row(name, f"{n} + {n} × {bench.sizes['dim']}", seconds=bench.seconds(call)[0])


def neighbors(bench):
    """Measure precision, recall, density and coverage."""
    n, dim = bench.sizes["neighbors"]
    gen, ref = bench.mixture(n, 20, 1, dim), bench.mixture(n, 15, 2, dim)
    start = time.perf_counter()
    found = precision_recall(gen, ref, run=bench.run)
    figure = f"P {found.precision:.3f}, R {found.recall:.3f}"
    bench.row("PRDC", f"{n} + {n} × {dim}", seconds=time.perf_counter() - start, figure=figure)


def random_backbone(card, device, weights=None):
    """Make a card's network with random weights."""
    module = loader_module(card)
    made = module.load(card, None) if hasattr(module, "load") else with_outputs(module, module.create(card))
    return made.requires_grad_(False).eval().to(device)


def random_embedder(card, device, precision="float32"):
    with patch.multiple(network, load_backbone=random_backbone, check_weights=lambda card: None):
        return network.Embedder(card, device, precision)


def extraction(bench):
    """Measure embedding of pixels against the bare network, with and without autocast and torch.compile."""
    for name in bench.sizes["networks"]:
        card = load_card(name)
        how, clip = card.preprocessing, card.clip
        for precision in ("float32", "bfloat16"):
            embed = random_embedder(card, bench.device, precision)
            rates = {}
            for size in bench.sizes["batches"]:
                shape = (size, *([clip.frames] if clip else []), *how.size, 3)
                pixels = torch.randint(0, 256, shape, dtype=torch.uint8)
                ready = normalize_values(pixels.to(bench.device), how)
                bare, _ = bench.seconds(torch.inference_mode()(partial(embed._run, embed._network, ready)))
                whole, _ = bench.seconds(partial(embed, pixels))
                rates[size] = (size / whole, size / bare)
            best = max(rates, key=lambda size: rates[size][0])
            figure = f"{rates[best][0]:.0f} samples/s, {rates[best][0] / max(r for _, r in rates.values()):.0%} of bare"
            bench.row(f"{name}, {precision}", f"batch {best}", figure=figure)
        if bench.device.type == "cuda":
            compiled = torch.compile(embed._network)
            with torch.autocast("cuda", torch.bfloat16):
                seconds, _ = bench.seconds(torch.inference_mode()(partial(compiled, ready)))
            bench.row(f"{name}, bfloat16, compiled, bare", f"batch {size}", figure=f"{size / seconds:.0f} samples/s")


def memory(bench):
    """Check that a batch that does not fit is halved, with the same rows."""
    card = load_card(bench.sizes["networks"][0])
    size = bench.sizes["batches"][-1]
    pixels = torch.randint(0, 256, (size, *card.preprocessing.size, 3), dtype=torch.uint8)
    embed = random_embedder(card, bench.device)
    expected = embed(pixels)
    if bench.device.type == "cuda":
        total = torch.cuda.get_device_properties(bench.device).total_memory
        most = torch.cuda.memory_allocated() + (torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()) // 3
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(most / total)
    try:
        apart = float((embed(pixels) - expected).abs().max() / expected.abs().max())
    finally:
        if bench.device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(1.0)
    bench.row("out of memory", f"batch {size}", figure=f"halved to {embed._most}, rows within {apart:.1g}")


def sharing(bench):
    """Run the same comparison alone and in two processes at once."""
    n = bench.sizes["agree"]
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import gpu, finc_eval as fe; "
        "bench = gpu.Bench(sys.argv[2], gpu.TINY if sys.argv[3] == '8' else gpu.FULL, None); "
        "gen, ref = bench.pair(int(sys.argv[4])); start = time.perf_counter(); "
        "fe.compare(gen, ref, features=bench.sizes['features'], run=bench.run); print(time.perf_counter() - start)"
    )
    arguments = [sys.executable, "-c", code, str(HERE), str(bench.device), str(bench.sizes["dim"]), str(n)]
    for processes in (1, 2):
        started = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        seconds = [float(one.communicate()[0].splitlines()[-1]) for one in started]
        bench.row(f"compare, {processes} at once", f"{n} + {n}", seconds=max(seconds), note="with loading of libraries")


STEPS = {
    one.__name__: one for one in (tests, covariance, agreement, finc, baselines, neighbors, extraction, memory, sharing)
}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], help="measurements; default: all")
    parser.add_argument("--tiny", type=Path, help=argparse.SUPPRESS)  # on the CPU, into this file, for the tests
    chosen = parser.parse_args(arguments)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"not measured: {', '.join(missing)} cannot be imported here")
        return 0
    if not torch.cuda.is_available() and not chosen.tiny:
        print("not measured: torch finds no CUDA device here")
        return 0
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")
    out = chosen.tiny or HERE / "results" / "gpu.json"
    bench = Bench("cpu" if chosen.tiny else "cuda", TINY if chosen.tiny else FULL, out)
    for name in chosen.steps or STEPS:
        try:
            STEPS[name](bench)
        except Exception as error:  # an hour with a GPU is not lost with one measurement
            traceback.print_exc()
            bench.row(name, "", note=f"FAILED: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    if not chosen.tiny:
        record("gpu", bench.rows, notes="shortest of four runs; peak memory is torch's on the GPU")
    return int(any(row["note"].startswith(("FAILED", "DIFFERENT")) for row in bench.rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
