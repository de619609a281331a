"""The FINC paper's Table 1 on this machine: FINC against KEN, Rarity and FLD, each at the sizes it can bear.

Rarity and FLD are followed by spectral clustering of the samples that they find most novel, as in the paper. The paper
states neither the threshold nor the number of clusters; here they are a tenth, and ten. Embeddings are in memory,
d = 768, r = 2000. Seconds are processor time in one thread, which other work on the machine hardly changes. The paper's
seconds, in the last columns, are wall-clock time with 48 cores. If a method takes less than ten seconds, the best of
three turns counts. The exponents are the slopes of log seconds over log n at the three largest sizes of a method.

    python benchmarks/table1.py [largest]       up to this size; default: 250 000
    python benchmarks/table1.py --plot          draw results/table1.svg again, from results/table1.json
"""

import json
import sys
import time
from functools import partial

import numpy as np
import torch
from _papers import published
from _record import HERE, record
from threadpoolctl import threadpool_limits

import finc_eval as fe
from finc_eval.baselines.fld import sample_likelihoods
from finc_eval.baselines.ken import ken_spectrum
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import most_novel, spectral_clustering
from finc_eval.numerics.kernels import gaussian_kernel

DIM, KINDS, NOVEL, CLUSTERS = 768, 20, 5, 10
SHARE = 0.1
SIZES = (1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000)
LARGEST = {
    "FINC": 250_000,
    "KEN, Cholesky": 10_000,
    "KEN, eigen": 5000,
    "Rarity + clustering": 50_000,
    "FLD + clustering": 50_000,
}
PAPER = published("finc")["table_1"]["CPU"]
TURNS, BRIEF = 3, 10.0
FITTED = 3
"""Number of sizes that an exponent is fitted to."""

FIGURE = HERE / "results" / "table1.svg"
COLORS = dict(zip(PAPER, ("#c2410c", "#1d4ed8", "#6d28d9", "#047857", "#a16207"), strict=True))
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "finc-eval",
    "font.size": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e5e5e5",
}
WIDE, HIGH = 10, 1.6
"""Width and height of a label, as ratios of numbers on the axes."""


def sets(n):
    """Return a generated set with five kinds that the reference lacks, and the reference."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((KINDS + NOVEL, DIM), np.float32)
    gen, ref = (rng.standard_normal((n, DIM), np.float32) for _ in range(2))
    for rows, kinds in ((gen, KINDS + NOVEL), (ref, KINDS)):
        for row, kind in zip(rows, rng.integers(0, kinds, n), strict=True):
            row += centers[kind]
    return gen, ref


def finc(gen, ref):
    fe.compare(gen, ref)


def ken(form, gen, ref):
    x, y = torch.from_numpy(gen), torch.from_numpy(ref)
    ken_spectrum(x, y, partial(gaussian_kernel, sigma=20.0), form=form)


def rarity_clusters(gen, ref):
    spectral_clustering(gen, most_novel(rarity(gen, ref), SHARE), CLUSTERS)


def fld_clusters(gen, ref):
    half = len(ref) // 2
    spectral_clustering(gen, most_novel(sample_likelihoods(gen, ref[:half], ref[half:]), SHARE), CLUSTERS)


METHODS = {
    "FINC": finc,
    "KEN, Cholesky": partial(ken, "cholesky"),
    "KEN, eigen": partial(ken, "eigen"),
    "Rarity + clustering": rarity_clusters,
    "FLD + clustering": fld_clusters,
}


def seconds(method, gen, ref):
    """Return the processor time of one call to three digits; of brief calls, the best of three."""
    times = []
    for _ in range(TURNS):
        started = time.process_time()
        method(gen, ref)
        times.append(time.process_time() - started)
        if times[-1] > BRIEF:
            break
    return float(f"{min(times):.3g}")


def curve(rows, column):
    """Return the sizes that a column has, and its seconds."""
    found = [(row["n = m"], row[column]) for row in rows if row[column] != ""]
    return [n for n, _ in found], [time for _, time in found]


def exponent(rows, column):
    """Return the exponent of n at the largest sizes."""
    n, times = curve(rows, column)
    return np.polyfit(np.log(n[-FITTED:]), np.log(times[-FITTED:]), 1)[0]


def apart(labels):
    """Return labels (x, y, …) on logarithmic axes, moved up where they would touch."""
    placed = []
    for x, y, *rest in sorted(labels, key=lambda label: label[1]):
        while touched := [other for at, other, *_ in placed if max(x / at, at / x) < WIDE and y < HIGH * other]:
            y = HIGH * max(touched)
        placed.append((x, y, *rest))
    return placed


def plot():
    """Draw the recorded table."""
    from matplotlib import style
    from matplotlib.figure import Figure

    rows = json.loads((HERE / "results" / "table1.json").read_text())["rows"]
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(9, 5.6), layout="constrained")
        axes = figure.add_subplot()
        labels = []
        for name, color in COLORS.items():
            for column, line, who in ((name, "o-", "here"), (f"paper: {name}", "--", "paper")):
                n, times = curve(rows, column)
                axes.plot(n, times, line, color=color, markersize=3.5, linewidth=1.4)
                text = f"{name}, {who} $n^{{{exponent(rows, column):.1f}}}$"
                labels.append((n[-1], times[-1], text, color))
        for n, height, text, color in apart(labels):
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
            axes.text(1.08 * n, height, text, color=color, va="center", fontsize=9, bbox=box)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(SIZES[0] / 1.1, 6 * SIZES[-1])
        axes.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
        axes.minorticks_off()
        axes.set_xlabel("samples of each set")
        axes.set_ylabel("seconds")
        figure.savefig(FIGURE, metadata={"Date": None, "Creator": None})


def finish(rows):
    """Record the table with the exponents, and draw it."""
    exponents = ", ".join(
        f"{name} {exponent(rows, name):.1f} (the paper's {exponent(rows, f'paper: {name}'):.1f})" for name in METHODS
    )
    record(
        "table1",
        rows,
        f"seconds of one thread, the paper's of 48 cores; d = {DIM}, r = 2000, exact KEN in float64; "
        f"exponents of n: {exponents}",
    )
    plot()


def main(largest):
    for method in METHODS.values():  # loading and compiling at the first call does not count
        method(*sets(500))
    rows = []
    for place, n in enumerate(size for size in SIZES if size <= largest):
        gen, ref = sets(n)
        row = {"n = m": n} | {
            name: seconds(method, gen, ref) if n <= LARGEST[name] else "" for name, method in METHODS.items()
        }
        row |= {f"paper: {name}": PAPER[name][place] if place < len(PAPER[name]) else "" for name in METHODS}
        rows.append(row)
        print(row, flush=True)
    finish(rows)


if __name__ == "__main__":
    if "--plot" in sys.argv:
        plot()
    else:
        torch.set_num_threads(1)
        with threadpool_limits(1):
            main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1])
