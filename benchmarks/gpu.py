"""One command that tests and measures finc-eval on a GPU in eight minutes, and prints one table for README.md.

It needs torch with CUDA, timm, h5py, scipy and scikit-learn, and what finc-eval imports: pydantic, lazy-loader, pillow.
It does not need faiss, PyAV, git or a network; kinds need scikit-network, and are left out without it. On an image that
has its own torch, `pip install --no-deps --no-build-isolation -e .` installs finc-eval alone. Without CUDA it says so
and ends. Each row is printed as it is measured, so that a run that is cut off is not lost. The parts come in the order
of their worth. Each says what it will take and is left out if less time is left; a part that runs past the end is
stopped. A part that fails is a row with its reason.

    python benchmarks/gpu.py                        everything that fits into eight minutes
    python benchmarks/gpu.py parity extraction      some of the parts
    python benchmarks/gpu.py --seconds 240          what fits into four minutes
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import date
from functools import partial
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from unittest.mock import patch

NEEDED = ("numpy", "torch", "timm", "h5py", "scipy", "sklearn", "pydantic", "lazy_loader", "PIL", "jinja2", "filelock")
if missing := [name for name in NEEDED if find_spec(name) is None]:
    print(f"not measured: {', '.join(missing)} cannot be imported here")
    sys.exit(0)

import numpy as np
import torch
from _gpu import BUDGET, FULL, TINY, Bench, OutOfTime
from _record import commit_of_now, machine, record, table
from PIL import Image

import finc_eval as fe
from finc_eval.baselines.fld import fld
from finc_eval.baselines.ken import ken
from finc_eval.baselines.rarity import rarity
from finc_eval.comparison.directions import match
from finc_eval.core.device import send
from finc_eval.core.run import WORKERS
from finc_eval.embeddings import job
from finc_eval.extractors import network
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import loader_module, with_outputs
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.measures.precision_recall import precision_recall
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.moments import Moments
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.opening import open_source

HERE = Path(__file__).parent
HAS_KINDS = find_spec("sknetwork") is not None


def finc_alone():
    return fe.Finc(clusters=False)


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


def parity(bench):
    """Compare the results of the device with those of the CPU, and with float64."""
    gen, ref = bench.pair(bench.sizes["agree"])
    size, cpu = f"{len(gen)} + {len(ref)} × {bench.sizes['dim']}", fe.Run(device="cpu")
    compared = partial(fe.compare, gen, ref, features=bench.sizes["features"], method=finc_alone())
    expected = compared(run=cpu)
    cases = {"device and CPU": ({}, expected)}
    exact = compared(precision="float64", run=bench.run)
    cases["float32 and float64"] = ({}, exact)
    for name, (options, other) in cases.items():
        overlap, apart, shares, modes = same_modes(compared(run=bench.run, **options), other)
        figure = f"overlap ≥ {overlap:.5f}, p within {apart:.1g}, {shares} of {modes} shares equal"
        passed = overlap > 0.999 and apart < 1e-3 and shares == modes
        bench.row(f"parity, {name}", size, figure=figure, note="" if passed else "DIFFERENT")
    if HAS_KINDS:
        mine, other = (fe.kinds({"gen": gen, "ref": ref}, run=run) for run in (bench.run, cpu))
        same = {kind.id: kind.shares for kind in mine.kinds} == {kind.id: kind.shares for kind in other.kinds}
        figure = f"{len(mine.kinds)} kinds, {len(other.kinds)} on the CPU"
        bench.row("parity, kinds", size, figure=figure, note="" if same else "DIFFERENT")


def comparison(bench):
    """Measure a comparison of sets in memory, with and without kinds: seconds, waits of the host, the busy share."""
    options, expected = {"features": bench.sizes["features"], "run": bench.run}, 25.0
    for n in bench.sizes["sizes"]:
        if not bench.fits(f"compare {n} + {n}", expected):
            return
        started, size = time.perf_counter(), f"{n} + {n} × {bench.sizes['dim']}"
        gen, ref = bench.pair(n)
        device = bench.on_device(gen, ref)
        everything = {} if HAS_KINDS else {"method": finc_alone()}
        whole = partial(fe.compare, *device, **options, **everything)
        seconds, _ = bench.seconds(whole)
        bench.row("compare, device memory", size, seconds=seconds, figure=f"{bench.waits(whole)}, {bench.busy(whole)}")
        alone = bench.seconds(partial(fe.compare, *device, method=finc_alone(), **options))[0]
        figure = f"kinds take {1 - alone / seconds:.0%}" if HAS_KINDS else "no kinds: scikit-network is missing"
        bench.row("compare, device memory, directions alone", size, seconds=alone, figure=figure)
        for name, method in (("", everything), (", directions alone", {"method": finc_alone()})):
            host = partial(fe.compare, gen, ref, **options, **method)
            bench.row(f"compare, host memory{name}", size, seconds=bench.seconds(host)[0])
        expected = (time.perf_counter() - started) * 5  # the next size is five times as large


def random_backbone(card, device, weights=None):
    """Make a card's network with random weights."""
    module = loader_module(card)
    made = module.load(card, None) if hasattr(module, "load") else with_outputs(module, module.create(card))
    return made.requires_grad_(False).eval().to(device)


@contextmanager
def random_weights():
    with patch.multiple(network, load_backbone=random_backbone, check_weights=lambda card: None):
        yield


def random_embedder(card, device, precision="float32"):
    with random_weights():
        return network.CardNetwork(card, device, precision)


def bare_network(embed, pixels, how, device):
    """Return the network's own work on a batch that lies on the device, in the same arithmetic as an extraction."""
    ready = normalize_values(send(pixels, device), how)
    return arithmetic()(torch.inference_mode()(partial(embed._run, embed._network, ready)))


def write_images(folder, n, side):
    """Write images of smooth noise as JPEG, each another, with all cores."""

    def write(number):
        noise = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(noise).resize((side, side), Image.Resampling.BICUBIC).save(
            folder / f"{number:06}.jpg", quality=90
        )

    folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(write, range(n)))
    return folder


def extraction(bench):
    """Embed images of files by a large network with random weights: which part waits for which?"""
    name, side = bench.sizes["network"], bench.sizes["pixels"]
    card = load_card(name)
    how, batch = card.preprocessing, job.default_batch_size(card, bench.device)
    with tempfile.TemporaryDirectory() as place, patch.dict(os.environ, {"FINC_EVAL_CACHE": f"{place}/cache"}):
        few = min(bench.sizes["images"], 16 * batch)
        source = open_source(write_images(Path(place) / "few", few, side))
        start = time.perf_counter()
        with closing(job.decode_batches(source, 0, batch, how, WORKERS)) as batches:
            pixels, *_ = (one.pixels for one in batches)
        decoding = few / (time.perf_counter() - start)
        size = f"batches of {batch}"
        bench.row("decode and resize", f"JPEG of {side} px", figure=f"{decoding:.0f} images/s by {WORKERS} threads")
        moving = len(pixels) / bench.seconds(lambda: send(pixels, bench.device))[0]
        bench.row("host to device", size, figure=f"{moving:.0f} images/s")
        for precision in ("float32", "bfloat16"):
            embed = random_embedder(card, bench.device, precision)
            rate = len(pixels) / bench.seconds(bare_network(embed, pixels, how, bench.device))[0]
            bench.row(f"{name}, {precision}, network alone", size, figure=f"{rate:.0f} images/s")
            slowest = min(decoding, rate)
            n = min(bench.sizes["images"], int(bench.left / 3 * slowest))
            if n and bench.fits(f"extract {n} images, {precision}", 1.2 * n / slowest):
                extracted(bench, Path(place) / precision, n, precision, (decoding, rate))


def extracted(bench, folder, n, precision, rates):
    """Extract a folder: how long does the network wait for samples, and what takes time before and after it?"""
    name, waited, times = bench.sizes["network"], [0.0], []

    def timed(*arguments):
        times.append(time.perf_counter())
        with closing(decode(*arguments)) as batches:
            while True:
                start = time.perf_counter()
                one = next(batches, None)
                waited[0] += time.perf_counter() - start
                if one is None:
                    times.append(time.perf_counter())
                    return
                yield one

    decode = job.decode_batches
    write_images(folder, n, bench.sizes["pixels"])
    start = time.perf_counter()
    with random_weights(), patch.object(job, "decode_batches", timed):
        fe.extract(folder, name, folder.with_suffix(".h5"), precision=precision, run=bench.run).close()
    seconds, (first, last) = time.perf_counter() - start, times
    figure = (
        f"{n / seconds:.0f} images/s: {n / seconds / rates[1]:.0%} of the network alone, "
        f"{n / seconds / rates[0]:.0%} of decoding alone; the network waits for samples {waited[0] / seconds:.0%}; "
        f"{first - start:.1f} s before the first image, {start + seconds - last:.1f} s after the last"
    )
    bench.row(f"extract by {name}, {precision}", f"{n} JPEG", seconds=seconds, figure=figure)


def distances(bench):
    """Measure the Fréchet distance with its interval and floor, from device memory."""
    for n, dim in bench.sizes["distances"]:
        sets = bench.on_device(*bench.pair(n, dim))
        call = partial(fe.metrics, *sets, ["fd"], run=bench.run)
        seconds, found = bench.seconds(call)
        figure = f"fd {found['fd'].value:.4g}, {bench.waits(call)}, {bench.busy(call)}"
        bench.row("FD", f"{n} + {n} × {dim}", seconds=seconds, figure=figure)


def kinds(bench):
    """Measure the kinds of three sets."""
    if not HAS_KINDS:
        bench.row("kinds", "", note="left out: scikit-network cannot be imported here")
        return
    n = bench.sizes["sizes"][0]
    sets = bench.on_device(*bench.pair(n), bench.mixture(n, 18, 3))
    call = partial(fe.kinds, dict(zip("abc", sets, strict=True)), run=bench.run)
    seconds, found = bench.seconds(call)
    figure = f"{len(found.kinds)} kinds, {bench.waits(call)}, {bench.busy(call)}"
    bench.row("kinds of three sets", f"3 · {n} × {bench.sizes['dim']}", seconds=seconds, figure=figure)


def rate(bench):
    """Return the rate of the products of the covariance, in operations per second."""
    size = 2 * bench.sizes["features"]
    rows = torch.randn(bench.run.portion, size, device=bench.device)
    total = torch.zeros(size, size, device=bench.device)

    def products():
        with arithmetic():
            for _ in range(10):
                total.addmm_(rows.T, rows)

    seconds, _ = bench.seconds(products)
    return 10 * 2 * len(rows) * size**2 / seconds


def covariance(bench):
    """Measure the covariance of features against the rate of bare products."""
    size = 2 * bench.sizes["features"]
    features = torch.randn(bench.run.portion, size, device=bench.device)
    bare, moments = rate(bench), Moments(size, "float32", bench.device)
    operations = 2 * len(features) * sum(block.numel() for _, block in moments.blocks())
    seconds, _ = bench.seconds(partial(moments.update, features))
    share = operations / seconds / bare
    figure, shape = f"{share:.0%} of {bare / 1e12:.3g} TFLOP/s of bare products", f"{len(features)} × {size}"
    bench.row("covariance, float32", shape, seconds=seconds, figure=figure)


def baselines(bench):
    """Measure KEN, Rarity and FLD at the sizes of the paper's Table 1."""
    for n in bench.sizes["baselines"]:
        gen, ref = bench.pair(n)
        x, y = bench.on_device(gen, ref)
        kernel = partial(gaussian_kernel, sigma=float(bench.sizes["dim"]) ** 0.5)
        for name, call in {
            "KEN": partial(ken, x, y, kernel, count=10),
            "Rarity": partial(rarity, gen, ref, run=bench.run),
            "FLD": partial(fld, gen, ref, bench.mixture(n, 20, 3), run=bench.run),
        }.items():
            bench.row(name, f"{n} + {n} × {bench.sizes['dim']}", seconds=bench.seconds(call)[0])


def neighbors(bench):
    """Measure precision, recall, density and coverage."""
    n, dim = bench.sizes["neighbors"]
    gen, ref = bench.pair(n, dim)
    start = time.perf_counter()
    found = precision_recall(gen, ref, run=bench.run)
    figure = f"P {found.precision:.3f}, R {found.recall:.3f}"
    bench.row("PRDC", f"{n} + {n} × {dim}", seconds=time.perf_counter() - start, figure=figure)


def networks(bench):
    """Measure embedding of pixels in memory against the bare networks."""
    for name in bench.sizes["networks"]:
        card = load_card(name)
        how, clip = card.preprocessing, card.clip
        for precision in ("float32", "bfloat16"):
            embed, rates = random_embedder(card, bench.device, precision), {}
            for size in bench.sizes["batches"]:
                shape = (size, *([clip.frames] if clip else []), *how.size, 3)
                pixels = torch.randint(0, 256, shape, dtype=torch.uint8)
                bare, _ = bench.seconds(bare_network(embed, pixels, how, bench.device))
                rates[size] = (size / bench.seconds(partial(embed, pixels))[0], size / bare)
            best = max(rates, key=lambda size: rates[size][0])
            figure = f"{rates[best][0]:.0f} samples/s, {rates[best][0] / max(r for _, r in rates.values()):.0%} of bare"
            bench.row(f"{name}, {precision}", f"batch {best}", figure=figure)


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


def tests(bench):
    """Run the tests that need a GPU. Other files are not collected: they may need packages that are not here."""
    files = [str(file) for file in (HERE.parent / "tests").rglob("test_*.py") if "mark.gpu" in file.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", *files]
    if bench.device.type != "cuda":
        command.append("--collect-only")
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    bench.row("pytest -m gpu", "", figure=lines[-1][:100], note="" if done.returncode == 0 else "FAILED")


def sharing(bench):
    """Run the same comparison alone and in two processes at once."""
    n = bench.sizes["agree"]
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import gpu, finc_eval as fe; "
        "bench = gpu.Bench(sys.argv[2], gpu.TINY if sys.argv[3] == '8' else gpu.FULL); "
        "gen, ref = bench.pair(int(sys.argv[4])); start = time.perf_counter(); "
        "fe.compare(gen, ref, features=bench.sizes['features'], method=gpu.finc_alone(), run=bench.run); "
        "print(time.perf_counter() - start)"
    )
    arguments = [sys.executable, "-c", code, str(HERE), str(bench.device), str(bench.sizes["dim"]), str(n)]
    for processes in (1, 2):
        started = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        seconds = [float(one.communicate()[0].splitlines()[-1]) for one in started]
        bench.row(f"compare, {processes} at once", f"{n} + {n}", seconds=max(seconds), note="with loading of libraries")


PARTS = {
    parity: 10,
    comparison: 90,
    distances: 10,
    kinds: 15,
    covariance: 5,
    neighbors: 20,
    tests: 15,
    baselines: 5,
    memory: 5,
    networks: 50,
    sharing: 40,
    extraction: 60,
}
"""The parts by their worth, and the seconds that each takes on an H200; extraction takes what is left."""
NAMES = {one.__name__: one for one in PARTS}


def measure(bench, part, expected):
    """Run a part within the time left; what fails, and what is stopped, is a row."""
    name = part.__name__
    if not bench.fits(name, expected):
        return

    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(max(1, ceil(bench.left)))
    try:
        part(bench)
    except OutOfTime:
        bench.row(name, "", note="stopped: the time of the run is spent")
    except Exception as error:  # a quarter of an hour with a GPU is not lost with one measurement
        traceback.print_exc()
        bench.row(name, "", note=f"FAILED: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:150]}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if bench.device.type == "cuda":
            torch.cuda.empty_cache()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*NAMES, []], help="parts to measure; default: all")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="time of the run; default: %(default)s")
    parser.add_argument("--tiny", type=Path, help=argparse.SUPPRESS)  # on the CPU, into this file, for the tests
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available() and not chosen.tiny:
        print("not measured: torch finds no CUDA device here")
        return 0
    bench = Bench("cpu" if chosen.tiny else "cuda", TINY if chosen.tiny else FULL, chosen.tiny, chosen.seconds)
    for part, expected in PARTS.items():
        if part.__name__ in (chosen.parts or NAMES):
            measure(bench, part, 0 if chosen.tiny and chosen.seconds == BUDGET else expected)
    if not chosen.tiny:
        record("gpu", bench.rows, notes="shortest of up to four runs; peak memory is torch's on the GPU")
    made = {"commit": commit_of_now(), "date": date.today().isoformat(), "machine": machine(), "rows": bench.rows}
    print(table(made))
    return int(any(row["note"].startswith(("FAILED", "DIFFERENT")) for row in bench.rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
