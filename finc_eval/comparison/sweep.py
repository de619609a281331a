"""`sweep`: the directions of the same two sets under many bandwidths, or many ρ. Each set is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Unpack

import numpy as np
import torch

from finc_eval.baselines.ken import ken_score, ken_spectrum
from finc_eval.comparison.compare import compare
from finc_eval.comparison.direction import SETS_OF, Direction, Role
from finc_eval.comparison.inputs import open_inputs, sketch_sets
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.settings import SIGMA_SWEEP_FEATURES, Finc, Options, Settings, settings_of, without_clusters
from finc_eval.comparison.side_by_side import SideBySide
from finc_eval.core.errors import DataError, UsageError, check_choice, check_positive
from finc_eval.core.progress import silent
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, show_options
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.near_repeats import near_repeat_warnings
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.numerics.inference import ALPHA
from finc_eval.numerics.kernels import BANDWIDTH_FACTOR, gaussian_kernel, median_distance, stable_bandwidth
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.opening import view_rows
from finc_eval.sketches.reference import bottom_rows, center_features
from finc_eval.sketches.sketch import Sketch, sketch_all

Parameter = Literal["sigma", "rho"]

BANDWIDTH_FACTORS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0)  # default bandwidths, over the reference's median distance
RHOS = (1.0, 2.0, 5.0, 10.0)  # default values of ρ
RESAMPLE = 250  # samples of each set in a resample of the papers' rule


@dataclass(frozen=True)
class Point(Record):
    """One comparison of a sweep.

    Attributes:
        value: value of the parameter.
        comparison: comparison of the two sketches by directions alone.
        spreadness: for every direction of `comparison.directions`, in their order: trace of the covariance of its best
            samples, in the set that has more (appendix B.5 of FINC's paper), over the reference's. 1 is as spread
            as the reference itself; None if fewer than two samples are known.
    """

    value: float
    comparison: Comparison
    spreadness: tuple[float | None, ...]

    @property
    def significant(self) -> list[tuple[Direction, float | None]]:
        """Significant directions, each with its spreadness."""
        pairs = zip(self.comparison.directions, self.spreadness, strict=True)
        return [(direction, spreadness) for direction, spreadness in pairs if direction.p_value <= ALPHA]

    def of(self, role: Role) -> list[Direction]:
        """Return the significant directions of a role."""
        return [direction for direction, _ in self.significant if direction.role == role]


@dataclass(frozen=True, eq=False)
class Sweep(SideBySide):
    """Comparisons of the same two sets under ascending values of one parameter.

    Attributes:
        parameter: "sigma" or "rho".
        points: one comparison a value.
        default: default value of the parameter in `compare`.
        warnings: sentences for a reader, on groups and repeats in the sets.
        papers_rule: for a sweep of σ, the smallest value that the rule of the KEN and FINC papers accepts
            (`stable_bandwidth`), or None.
    """

    type_name: ClassVar[str] = "sweep"
    page: ClassVar[str] = "finc_eval.comparison.pages.sweep"

    parameter: Parameter
    points: tuple[Point, ...]
    default: float
    warnings: tuple[str, ...]
    papers_rule: float | None = None

    @property
    def rows(self) -> Mapping[float, Comparison]:
        """The comparison at each value."""
        return {point.value: point.comparison for point in self.points}

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of both sets that a page shows: the most typical of significant directions."""
        directions = [direction for found in self.significant.values() for direction in found]
        return {
            label: [name for direction in directions for name in direction.typical(label)[: self.shown]]
            for label in SETS_OF["over"]
        }

    def _frame_rows(self) -> list[dict[str, object]]:
        return [{self.parameter: value, **direction.frame_row()} for value, direction in self.directions]

    def _summary(self) -> str:
        found = ", ".join(f"{value:.4g}: {len(directions)}" for value, directions in self.significant.items())
        return f"{self.parameter}; directions with p ≤ 0.05 by value: {found}"


@show_options(Settings)
@arithmetic()
def sweep(
    gen: object,
    ref: object,
    parameter: Parameter,
    values: Sequence[float] | None = None,
    settings: Settings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Sweep:
    """Compare two sets under several values of σ or ρ, reading each set once.

    A sweep over σ fills a sketch for each bandwidth at the same time. So it needs the memory of a comparison times the
    number of bandwidths, and its default number of frequencies is half the number of `compare`. A sweep over ρ needs
    one sketch. Only directions are tested, since kinds are the same under every σ, and intervals are conservative, as
    from sketches: `compare` may find more at the same value. "No direction passes ρ = 5" is a normal answer.

    Args:
        gen: generated set, as `compare` takes it; for σ not a sketch, which has a fixed bandwidth.
        ref: reference set, in any of the same forms.
        parameter: "sigma" or "rho".
        values: values of the parameter; default: seven bandwidths between 0.25 and 2 × the reference's median
            distance, or ρ = 1, 2, 5 and 10.
        settings: settings of the comparisons.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, which override `settings`.

    Raises:
        UsageError: the parameter is unknown, or a value or setting is out of range.
        DataError: a set cannot be used.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions or feature maps.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.sweep(*example_sets(), "rho", [1, 5], features=500)
        >>> [point.value for point in found.points]
        [1, 5]
    """
    check_choice("parameter", parameter, ("sigma", "rho"))
    run = Run.of(run)
    if parameter == "sigma" and settings is None:
        options = {"features": SIGMA_SWEEP_FEATURES, **options}
    chosen = settings_of(settings, options)
    if not isinstance(chosen.method, Finc):
        raise UsageError(f"sweep knows the method finc, got {chosen.method.name}: leave method out")
    chosen = without_clusters(chosen)
    ascending = None
    if values is not None:
        given: object = values
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise UsageError(f"values must be a list of values of {parameter}, such as [1, 2], got {given!r}")
        ascending = sorted({check_positive(parameter, value) for value in given})
        if not ascending:
            raise UsageError("a sweep needs at least one value of its parameter, got none")
    sources = {"gen": gen, "ref": ref}
    if parameter == "sigma":
        return _sweep_sigma(sources, ascending, chosen, run, extractor)
    settings_of_rho = [replace(chosen, rho=rho) for rho in ascending or RHOS]
    opened = sketch_sets(sources, chosen, run, extractor)
    first, second = (opened.sets[label].sketch for label in ("gen", "ref"))
    cases = [(of_rho.rho, first, second, replace(opened.settings, rho=of_rho.rho)) for of_rho in settings_of_rho]
    points = _points(cases, {label: sketched.embeddings for label, sketched in opened.sets.items()}, run)
    return Sweep("rho", points, Settings.rho, opened.warnings, provenance=Provenance.here(run.device))


def _sweep_sigma(
    sources: Mapping[str, object], sigmas: list[float] | None, settings: Settings, run: Run, extractor: AnyExtractor
) -> Sweep:
    if settings.kernel != "gaussian" or settings.features == "auto":
        raise UsageError("a sweep over sigma takes the gaussian kernel and a number of features: pass these")
    opened, sentences = open_inputs(sources, settings, run, extractor)
    warnings = (*sentences, *near_repeat_warnings(view_rows(opened.held), run))
    embeddings = opened.embeddings
    if sketched := [label for label in opened if label not in embeddings]:
        raise DataError(f"{sketched[0]} is a sketch, which has one bandwidth: pass its embeddings to try others")
    rows = {label: bottom_rows(samples) for label, samples in embeddings.items()}
    sample = rows["ref"].cpu()
    median = median_distance(sample)
    chosen = [factor * median for factor in BANDWIDTH_FACTORS] if sigmas is None else sigmas
    maps = [center_features(sample, settings.features, sigma, settings, run.torch_device) for sigma in chosen]
    sketches = {
        label: sketch_all(samples, maps, precision=settings.precision, is_kept=False, run=run.named(f"sketch {label}"))
        for label, samples in embeddings.items()
    }
    cases = [
        (sigma, gen, ref, replace(settings, sigma=sigma))
        for sigma, gen, ref in zip(chosen, sketches["gen"], sketches["ref"], strict=True)
    ]
    points = _points(cases, embeddings, run)
    papers_rule = _papers_rule(rows["gen"], rows["ref"], chosen, settings.rho)
    default = BANDWIDTH_FACTOR * median
    return Sweep("sigma", points, default, warnings, papers_rule, provenance=Provenance.here(run.device))


def _points(
    cases: Sequence[tuple[float, Sketch, Sketch, Settings]], sets: Mapping[str, Embeddings | None], run: Run
) -> tuple[Point, ...]:
    """Compare two sketches, gen and ref, for each value; the samples of the sets are where those of `sets` are."""
    points = []
    for done, (value, gen, ref, settings) in enumerate(cases):
        run.progress("compare", done, len(cases))
        found = compare(gen, ref, settings, run=replace(run, progress=silent))
        whole = _trace(ref.sample.rows)
        spreadness: list[float | None] = []
        for direction in found.directions:
            sketch, best = (gen, direction.top_gen) if direction.role == "over" else (ref, direction.top_ref)
            # 50: samples of a direction whose covariance is its spreadness.
            spread = _trace(sketch.sample.rows[torch.from_numpy(best[:50])])
            spreadness.append(spread / whole if whole > 0 and np.isfinite(spread) else None)
        infos = [
            replace(info, samples=None if given is None else given.samples)
            for info, given in zip((found.gen, found.ref), sets.values(), strict=True)
        ]
        points.append(Point(value, replace(found, gen=infos[0], ref=infos[1]), tuple(spreadness)))
    run.progress("compare", len(cases), len(cases))
    return tuple(points)


def _trace(rows: torch.Tensor) -> float:
    """Compute the trace of the covariance of embeddings, shape (n, d); NaN for fewer than two."""
    return float(rows.double().var(0).sum()) if len(rows) > 1 else float("nan")


def _papers_rule(gen: torch.Tensor, ref: torch.Tensor, sigmas: Sequence[float], rho: float) -> float | None:
    """Apply the papers' rule to KEN, by exact kernels of resamples of both sets, shapes (n, d) and (m, d)."""

    def score(sigma: float, rng: np.random.Generator) -> float:
        x, y = (rows[rng.choice(len(rows), min(RESAMPLE, len(rows)), replace=False)].cpu() for rows in (gen, ref))
        return ken_score(ken_spectrum(x, y, partial(gaussian_kernel, sigma=sigma), rho=rho))

    return stable_bandwidth(sigmas, score)
