"""The same two sets under many bandwidths, or many ρ: each set is read once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from finc_eval.baselines.ken import ken_score, ken_spectrum
from finc_eval.comparison.compare import compare
from finc_eval.comparison.inputs import Kernel, Sketching, bottom_rows, centered_features, open_operand, open_sides
from finc_eval.comparison.modes import Mode
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.search import Rotation, check_search
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent, staged
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.serialize import Document
from finc_eval.core.storage import write_text
from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.bandwidth import BANDWIDTH_FACTOR, median_distance, stable_bandwidth
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.precision import Precision
from finc_eval.sketches.sketch import Sketch, sketch_all

SCHEMA = 1

FACTORS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0)
"""Bandwidths of a sweep, over the reference's median distance."""

RHOS = (1.0, 2.0, 5.0, 10.0)

SPREAD_OVER = 50
"""Samples of a mode whose mutual distances are its spreadness."""

RESAMPLE = 250
"""Samples of each set in a resample of the papers' rule."""


@dataclass(frozen=True)
class Point:
    """One comparison of a sweep.

    Attributes:
        value: of the parameter.
        comparison: from sketches, so with conservative intervals.
        spreadness: of every mode of the comparison, in its order (`all_modes`): the mean distance between the samples
            of the set that has more which are most of the mode, over the reference's median distance. 1 is as
            spread as the reference itself; NaN where fewer than two samples are known.
    """

    value: float
    comparison: Comparison
    spreadness: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Sweep(Document):
    """Comparisons of the same two sets under ascending values of one parameter.

    Attributes:
        parameter: "sigma" or "rho".
        points: one comparison a value.
        default: the value that `compare` takes when nothing is said.
        papers_rule: of a sweep of σ, the smallest value that the rule of the KEN and FINC papers accepts
            (`stable_bandwidth`), or None.
    """

    parameter: Literal["sigma", "rho"]
    points: tuple[Point, ...]
    default: float
    papers_rule: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types; `schema` numbers the layout."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": SCHEMA,
            "parameter": self.parameter,
            "default": self.default,
            "papers_rule": self.papers_rule,
            "points": [
                {
                    "value": point.value,
                    "spreadness": [None if np.isnan(s) else s for s in point.spreadness],
                    "comparison": point.comparison.to_dict(),
                }
                for point in self.points
            ],
        }

    def to_html(self, path: str | Path) -> Path:
        """Write the page of the sweep: one self-contained HTML file."""
        # The page is drawn by the layer above, which is loaded only when it is asked for.
        from finc_eval.report.sweep import render_sweep

        return write_text(path, render_sweep(self))

    def __repr__(self) -> str:
        found = ", ".join(f"{point.value:.4g}: {len(point.comparison.significant())}" for point in self.points)
        return f"Sweep({self.parameter}; modes with p ≤ 0.05 by value: {found})"


def sweep_sigma(
    gen: object,
    ref: object,
    sigmas: Sequence[float] | None = None,
    *,
    rho: float = 1.0,
    features: int = 1000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Compare two sets under several bandwidths, reading each set once: one sketch a bandwidth, all filled together.

    The memory is that of one comparison times the number of bandwidths, so the default number of frequencies is half
    of that of `compare`.

    Args:
        gen: the generated set's embeddings, as `compare` takes them; not a sketch, which has one bandwidth.
        ref: the reference set's, likewise.
        sigmas: the bandwidths; seven between 0.25 and 2 × the reference's median distance when left out.
        rho: ρ > 0.
        features: r, the number of frequencies of each bandwidth.
        modes: how many modes of each role at most.
        seed: of the frequencies.
        rotation: "varimax", or None for raw eigenvectors.
        batch_size: samples per matrix product.
        device: where to compute.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: when a set is a sketch, a bandwidth is not positive, and as `compare` does.
    """
    check_search(rho, modes, rotation)
    embeddings = {label: _streamed(source, label) for label, source in (("gen", gen), ("ref", ref))}
    rows = {label: bottom_rows(one) for label, one in embeddings.items()}
    sample = rows["ref"].cpu()
    median = median_distance(sample)
    chosen = [factor * median for factor in FACTORS] if sigmas is None else _ascending(sigmas)
    maps = [centered_features(sample, features, sigma, seed, device) for sigma in chosen]
    sketches = {
        label: sketch_all(one, maps, batch_size=batch_size, progress=staged(progress, f"sketch {label}"))
        for label, one in embeddings.items()
    }
    points = []
    for done, (sigma, first, second) in enumerate(zip(chosen, sketches["gen"], sketches["ref"], strict=True)):
        progress("compare", done, len(chosen))
        points.append(_point(sigma, first, second, median, rho=rho, modes=modes, rotation=rotation))
    progress("compare", len(chosen), len(chosen))
    return Sweep("sigma", tuple(points), BANDWIDTH_FACTOR * median, _papers_rule(rows["gen"], rows["ref"], chosen, rho))


def sweep_rho(
    gen: object,
    ref: object,
    rhos: Sequence[float] = RHOS,
    *,
    kernel: Kernel = "gaussian",
    sigma: float | None = None,
    features: int | Literal["auto"] = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Compare two sets for several ρ, from one sketch of each; "no mode passes ρ = 5" is a normal answer.

    Args:
        gen: the generated set, embeddings or sketch, as `compare` takes it.
        ref: the reference set, likewise.
        rhos: the values of ρ.
        kernel: "gaussian" or "cosine".
        sigma: σ of the Gaussian kernel; 0.5 × the reference's median distance when left out.
        features: r, the number of frequencies, or "auto".
        modes: how many modes of each role at most.
        seed: of the frequencies.
        rotation: "varimax", or None for raw eigenvectors.
        precision: of the covariances.
        batch_size: samples per matrix product.
        device: where to compute.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: as `compare` does.
    """
    how = Sketching(kernel, sigma, features, seed, precision, batch_size, device)
    sides, _ = open_sides({"gen": gen, "ref": ref}, ["ref"], how, progress)
    first, second = (sides[label].sketch for label in ("gen", "ref"))
    median = float("nan")
    with suppress(FincEvalError):  # a reference of copies has none, nor has a sketch without samples
        median = median_distance(second.sample.rows)
    chosen = _ascending(rhos)
    points = []
    for done, rho in enumerate(chosen):
        progress("compare", done, len(chosen))
        points.append(_point(rho, first, second, median, rho=rho, modes=modes, rotation=rotation))
    progress("compare", len(chosen), len(chosen))
    return Sweep("rho", tuple(points), 1.0)


def _ascending(values: Sequence[float]) -> list[float]:
    if not values:
        raise FincEvalError("a sweep needs at least one value of its parameter, got none")
    return sorted(set(values))


def _streamed(source: object, label: str) -> Embeddings:
    operand = open_operand(source, label)
    if isinstance(operand, Sketch):
        raise FincEvalError(f"{label} is a sketch, which has one bandwidth: pass its embeddings to try others")
    return operand


def _point(
    value: float, gen: Sketch, ref: Sketch, median: float, *, rho: float, modes: int, rotation: Rotation
) -> Point:
    found = compare(gen=gen, ref=ref, rho=rho, modes=modes, rotation=rotation)
    spreadness = tuple(_spreadness(mode, gen if mode.role == "over" else ref, median) for mode in found.all_modes)
    return Point(value, found, spreadness)


def _spreadness(mode: Mode, own: Sketch, median: float) -> float:
    best = mode.top_gen if mode.role == "over" else mode.top_ref
    rows = own.sample.rows[torch.from_numpy(best[:SPREAD_OVER])]
    return float(torch.pdist(rows).mean()) / median if len(rows) > 1 else float("nan")


def _papers_rule(gen: torch.Tensor, ref: torch.Tensor, sigmas: Sequence[float], rho: float) -> float | None:
    """The papers' rule on KEN, by exact kernels of resamples of both sets."""

    def score(sigma: float, rng: np.random.Generator) -> float:
        x, y = (rows[rng.choice(len(rows), min(RESAMPLE, len(rows)), replace=False)].cpu() for rows in (gen, ref))
        return ken_score(ken_spectrum(x, y, partial(gaussian_kernel, sigma=sigma), rho=rho))

    return stable_bandwidth(sigmas, score)
