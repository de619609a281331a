"""The directions that each method fits: eigenvectors for FINC, and for the baselines what they find.

Each baseline ends in functions Σ_i c_i k(·, x_i) of the kernel: KEN in eigenfunctions, the others in the kernel means
of clusters. With k(x, y) ≈ φ(x)·φ(y), such a function is the direction Σ_i c_i φ(x_i).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.baselines.fld import sample_likelihoods
from finc_eval.baselines.ken import check_few_enough, ken
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import most_novel, spectral_clustering
from finc_eval.comparison.direction import Role, Spectrum
from finc_eval.comparison.directions import (
    OVERSAMPLING,
    CrossFit,
    Directions,
    EigenProblem,
    RotationSample,
    cross_fit,
    eigen_directions,
)
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.settings import Fld, Ken, Rarity, Settings
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import BATCH_SIZE, Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.arrays import fold_of, without_fold
from finc_eval.numerics.names import SearchIndex

Fit = Callable[[SketchedSet, SketchedSet], CrossFit]
"""A function that fits the directions on which its first set has more than its second."""

SPECTRUM = 25  # leading eigenvalues kept for the plot


def direction_count(sets: Sequence[SketchedSet], settings: Settings) -> int:
    """Return the number of eigenvectors to fit for the directions asked for."""
    phi, wanted = sets[0].sketch.feature_map, ceil(OVERSAMPLING * settings.modes)
    # No fit has more directions with mass than it has samples, or entries of φ.
    if settings.by_eigenvalue:  # all that Algorithm 1 has, whether a half of the data has a counterpart or not
        return min(wanted, sum(sketched.sketch.n for sketched in sets), phi.size)
    halves = phi.halves()
    smallest_half = min(sum(sketched.sketch.folds[fold].n for sketched in sets) for fold in (0, 1))
    return min(wanted, smallest_half, phi.size if halves is None else min(len(half) for half in halves))


def finc_fit(settings: Settings, gen: SketchedSet, ref: SketchedSet) -> Fit:
    """Return a function that fits the directions of FINC between two sets.

    With ρ = 1, what ref has more of is the other end of the spectrum of what gen has more of.
    """
    sample, count = None, direction_count([gen, ref], settings)
    if not settings.by_eigenvalue:
        features, folds = zip(gen.sample, ref.sample, strict=True)
        sample = RotationSample(features, torch.cat(folds))
        if min(int((sample.folds == fold).sum()) for fold in (0, 1)) < 2:
            raise DataError(
                "the sketches keep no sample to rotate by: make them with one, or ask for unrotated eigenvectors "
                "(method=Finc(rotation=None), --no-rotation)"
            )
    halves, rho = gen.sketch.feature_map.halves(), settings.rho
    of_both = EigenProblem(gen.moments, ref.moments, rho, count, SPECTRUM, both=True) if rho == 1 else None

    def fit(first: SketchedSet, second: SketchedSet) -> CrossFit:
        problem = of_both or EigenProblem(first.moments, second.moments, rho, count, SPECTRUM)
        find = partial(eigen_directions, problem, sample, end=int(of_both is not None and first is not gen))
        return cross_fit(find, [problem.first, problem.second], halves)

    return fit


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Functions Σ_i coefficients[i] · k(·, samples[i])."""

    samples: torch.Tensor  # shape (m, d)
    coefficients: torch.Tensor  # shape (m, t), float64, one function a column
    eigenvalues: torch.Tensor | None = None  # eigenvalues of the eigenfunctions, descending; None for kernel means
    recall: float | None = None  # share of the exact neighbors that were found on the way; None if all are exact

    def directions(self, phi: FeatureMap) -> torch.Tensor:
        """Return Σ_i c_i φ(x_i) of each function, shape (q, t), float64."""
        total = torch.zeros(phi.size, self.coefficients.shape[1], dtype=torch.double, device=phi.device)
        for start in range(0, len(self.samples), BATCH_SIZE):
            part = slice(start, start + BATCH_SIZE)
            total += phi(self.samples[part]).double().T @ self.coefficients[part].to(total)
        return total


Finder = Callable[[Embeddings, Embeddings], KernelExpansion]
"""A method: finds the kernel expansions with more mass in the first set than in the second."""


def expansion_directions(
    find: Finder,
    first: SketchedSet,
    second: SketchedSet,
    rho: float,
    folds: Sequence[int],
    parts: Sequence[torch.Tensor] = (),
) -> tuple[Directions, list[torch.Tensor]]:
    """Find the directions of kernel expansions in some folds; see `DirectionFinder`.

    Kernel means of any samples lie near to each other, along the mean φ of all samples. So their directions are taken
    at right angles to the mean φ of the second set, which finds more of planted kinds (docs/directions.md). Some of the
    frequencies alone change φ, and not what the method finds.
    """
    sets = []
    for sketched in (first, second):
        embeddings = cast(Embeddings, sketched.embeddings)
        if len(folds) == 1:
            inside = np.flatnonzero(fold_of(embeddings.id_keys()) == folds[0])
            embeddings = Subset(embeddings, inside, name=f"half of {sketched.label}")
        sets.append(embeddings)
    found = find(*sets)
    raw = found.directions(first.sketch.feature_map)
    chosen, mean = [second.sketch.folds[fold] for fold in folds], None
    if found.eigenvalues is None:
        mean = (
            torch.stack([moments.first for moments in chosen]).sum(0) / float(sum(moments.n for moments in chosen))
        ).to(raw)
    vectors = unit_vectors(raw, mean)
    excess = mass(first, folds, vectors) - rho * mass(second, folds, vectors)
    order = torch.arange(len(excess), device=excess.device) if mean is None else excess.argsort(descending=True)
    values = excess.new_empty(0) if found.eigenvalues is None else found.eigenvalues
    restricted = [unit_vectors(raw[part], None if mean is None else mean[part]) for part in parts]
    best = Directions(vectors[:, order], excess[order].cpu(), values.cpu(), found.recall)
    return best, [part[:, order] for part in restricted]


def unit_vectors(vectors: torch.Tensor, mean: torch.Tensor | None) -> torch.Tensor:
    """Remove from each column its component along `mean`, and scale it to norm 1, in float32; zeros stay zeros.

    `vectors` has shape (q, t), as the result, and `mean` shape (q,).
    """
    if mean is not None:
        axis = mean / torch.linalg.vector_norm(mean)
        vectors = vectors - torch.outer(axis, axis @ vectors)
    norms: torch.Tensor = torch.linalg.vector_norm(vectors, dim=0).clamp_min(torch.finfo(vectors.dtype).tiny)
    return (vectors / norms).float()


def mass(sketched: SketchedSet, folds: Sequence[int], vectors: torch.Tensor) -> torch.Tensor:
    """Return vᵀCv over the samples of some folds, for every column: (q, t) → (t,)."""
    chosen = [sketched.sketch.folds[fold] for fold in folds]
    total = torch.stack([fold.n * (vectors * fold.apply(vectors)).sum(0) for fold in chosen]).sum(0)
    return total / float(sum(fold.n for fold in chosen))


def baseline_fit(settings: Settings, gen: SketchedSet, ref: SketchedSet) -> Fit:
    """Return a baseline's fit: it finds the directions with more mass in its first set than in its second."""
    method, clusters = settings.method, settings.modes
    for sketched in (gen, ref):
        if sketched.embeddings is None:
            raise DataError(
                f"ken, rarity and fld need embeddings, and {sketched.label} is a sketch: pass the embeddings that it "
                "was made from, or take finc"
            )
    phi = gen.sketch.feature_map
    run = Run(phi.device)
    find: Finder
    match method:
        case Ken():
            check_few_enough(gen.sketch.n + ref.sketch.n, "leave ken out")
            find = partial(ken_expansion, phi=phi, rho=settings.rho, count=direction_count([gen, ref], settings))
        case Rarity():
            _check_enough_novel(method, (gen, ref), clusters)
            find = partial(rarity_expansion, method=method, clusters=clusters, run=run, index=settings.index)
        case Fld():
            _check_enough_novel(method, (gen, ref), clusters)
            find = partial(fld_expansion, method=method, clusters=clusters, run=run)
        case _:
            raise TypeError(f"{method} is not a baseline")

    def fit(first: SketchedSet, second: SketchedSet) -> CrossFit:
        directions = partial(expansion_directions, find, first, second, settings.rho)
        return cross_fit(directions, [first.moments, second.moments], phi.halves())

    return fit


def _check_enough_novel(method: Rarity | Fld, sets: Sequence[SketchedSet], clusters: int) -> None:
    if clusters < 2:
        raise UsageError(
            f"{method.name} makes a direction of each cluster and needs at least 2 of them, got {clusters}"
        )
    for sketched in sets:
        half = min(fold.n for fold in sketched.sketch.folds)
        novel = round(method.novel * half)
        if novel <= clusters:
            raise DataError(
                f"{method.name} finds {novel} of the {half} samples of half of {sketched.label} novel, too few for "
                f"{clusters} clusters: pass more samples, a larger novel share, or fewer directions"
            )


def ken_expansion(x: Embeddings, y: Embeddings, *, phi: FeatureMap, rho: float, count: int) -> KernelExpansion:
    """Find the leading eigenfunctions of C_x − ρ·C_y, by exact KEN."""
    rows, others = (torch.cat([batch.rows for batch in part.batches()]).to(phi.device) for part in (x, y))
    found = ken(rows, others, phi.exact, rho=rho, count=count)
    return KernelExpansion(found.samples, found.coefficients, found.eigenvalues)


def rarity_expansion(
    x: Embeddings, y: Embeddings, *, method: Rarity, clusters: int, run: Run | None = None, index: SearchIndex = "exact"
) -> KernelExpansion:
    """Cluster the samples of x that have the highest Rarity scores against y, those outside every ball first."""
    found = rarity(x, y, k=method.neighbors, run=run, index=index)
    return replace(_clusters(x, most_novel(found, method.novel), clusters, run), recall=found.recall)


def fld_expansion(
    x: Embeddings, y: Embeddings, *, method: Fld, clusters: int, run: Run | None = None
) -> KernelExpansion:
    """Cluster the samples of x that are least likely under FLD's mixture around y.

    One half of y are the centers, the other decides their widths. Features that are constant among the centers are left
    out, because nothing standardizes them.
    """
    part = without_fold(y.id_keys()) & np.uint64(1) == 1
    centers, others = (Subset(y, np.flatnonzero(chosen)) for chosen in (part, ~part))
    if min(centers.n, others.n) < 2:
        raise DataError(f"{y.name} has {plural(y.n, 'sample')}, too few for FLD to split in two: pass more")
    entries = np.flatnonzero(~constant_features(centers))
    if not len(entries):
        raise DataError(f"all samples of {y.name} are the same, which FLD cannot standardize: pass others")
    generated, train, test = (
        Subset(source, np.arange(source.n), entries, name)
        for source, name in ((x, x.name), (others, "train"), (centers, "test"))
    )
    found = sample_likelihoods(generated, train, test, run=run)
    return _clusters(x, most_novel(found, method.novel), clusters, run)


def constant_features(embeddings: Embeddings) -> NDArray[np.bool_]:
    """Mark the features that have one value in all samples, shape (d,)."""
    low, high = torch.full((embeddings.dim,), torch.inf), torch.full((embeddings.dim,), -torch.inf)
    for batch in embeddings.batches():
        rows = batch.rows.cpu()
        low, high = low.minimum(rows.amin(0)), high.maximum(rows.amax(0))
    return (low == high).numpy()


def _clusters(x: Embeddings, novel: NDArray[np.int64], clusters: int, run: Run | None = None) -> KernelExpansion:
    """Return the kernel means of clusters of some samples of x; `novel` has their rows, shape (n,)."""
    coefficients = torch.zeros(len(novel), clusters, dtype=torch.double)
    coefficients[np.arange(len(novel)), spectral_clustering(x, novel, clusters, run=run)] = 1.0
    return KernelExpansion(x.rows_at(novel), coefficients)


def spectrum_of(fits: Mapping[Role, CrossFit]) -> Spectrum:
    """Return the eigenvalues of both roles; none for a role that was not fitted."""
    found = {role: tuple(fit.full.eigenvalues.tolist()) for role, fit in fits.items()}
    return Spectrum(found.get("over", ()), found.get("under", ()))
