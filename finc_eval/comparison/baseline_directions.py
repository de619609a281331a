"""The baselines as proposers of directions: what they find becomes modes in the way of FINC's eigenvectors.

Each of them ends in functions Σ_i c_i k(·, x_i) of the kernel: KEN in eigenfunctions, the others in the kernel means of
clusters. With k(x, y) ≈ φ(x)·φ(y), such a function is the direction Σ_i c_i φ(x_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.baselines.fld import sample_likelihoods
from finc_eval.baselines.ken import ken
from finc_eval.baselines.novelty import MAX_EXACT_KEN_SAMPLES
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import spectral_clustering
from finc_eval.comparison.cross_fit import CrossFit, cross_fit
from finc_eval.comparison.directions import Directions
from finc_eval.comparison.inputs import Side
from finc_eval.comparison.method import Method
from finc_eval.comparison.search import directions_sought
from finc_eval.core.errors import FincEvalError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.sketches.folds import fold_of

KEN_BYTES = 20
"""Memory at the peak per pair of samples, in float64: 7.9 GB were measured at 20 000 samples."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """Functions Σ_i coefficients[i] · k(·, samples[i]).

    Attributes:
        samples: shape (m, d).
        coefficients: shape (m, t), float64, one function a column.
        eigenvalues: of eigenfunctions, descending; None of kernel means.
    """

    samples: torch.Tensor
    coefficients: torch.Tensor
    eigenvalues: torch.Tensor | None = None

    def directions(self, phi: FeatureMap) -> torch.Tensor:
        """Σ_i c_i φ(x_i) of each function, shape (q, t), float64."""
        total = torch.zeros(phi.size, self.coefficients.shape[1], dtype=torch.double, device=phi.device)
        for start in range(0, len(self.samples), BATCH_SIZE):
            part = slice(start, start + BATCH_SIZE)
            total += phi(self.samples[part]).double().T @ self.coefficients[part].to(total)
        return total


Find = Callable[[Embeddings, Embeddings], Expansion]
"""A method: what it finds that the first set has more of than the second."""


@dataclass(frozen=True)
class Expanded:
    """A `Proposer` of the directions of expansions.

    Kernel means of any samples lie near to each other, along the mean φ of all samples. So their directions are taken
    at right angles to the mean φ of the second set, which finds more of planted kinds (docs/method.md).

    Attributes:
        find: the method.
        first: the set that may have more.
        second: the set compared with.
        rho: ρ.
    """

    find: Find
    first: Side
    second: Side
    rho: float

    def __call__(
        self, folds: Sequence[int], parts: Sequence[torch.Tensor] = ()
    ) -> tuple[Directions, list[torch.Tensor]]:
        """As of `Proposer`; a part of the frequencies changes φ, and not what the method finds."""
        found = self.find(_of_folds(self.first, folds), _of_folds(self.second, folds))
        raw = found.directions(self.first.sketch.feature_map)
        mean = None if found.eigenvalues is not None else mean_features(self.second, folds).to(raw)
        vectors = unit_vectors(raw, mean)
        excess = mass(self.first, folds, vectors) - self.rho * mass(self.second, folds, vectors)
        order = excess.argsort(descending=True) if mean is not None else torch.arange(len(excess), device=excess.device)
        values = excess.new_empty(0) if found.eigenvalues is None else found.eigenvalues
        restricted = [unit_vectors(raw[part], None if mean is None else mean[part]) for part in parts]
        return Directions(vectors[:, order], excess[order], values), [part[:, order] for part in restricted]


def unit_vectors(vectors: torch.Tensor, mean: torch.Tensor | None) -> torch.Tensor:
    """Every column without its component along `mean` if there is one, at norm 1 and in float32; zeros stay zeros."""
    if mean is not None:
        axis = mean / torch.linalg.vector_norm(mean)
        vectors = vectors - torch.outer(axis, axis @ vectors)
    norms: torch.Tensor = torch.linalg.vector_norm(vectors, dim=0).clamp_min(torch.finfo(vectors.dtype).tiny)
    return (vectors / norms).float()


def mass(side: Side, folds: Sequence[int], vectors: torch.Tensor) -> torch.Tensor:
    """vᵀCv over the samples of some folds, for every column: (q, t) → (t,)."""
    chosen = [side.sketch.folds[fold] for fold in folds]
    total = torch.stack([fold.n * (vectors * fold.apply(vectors)).sum(0) for fold in chosen]).sum(0)
    return total / float(sum(fold.n for fold in chosen))


def mean_features(side: Side, folds: Sequence[int]) -> torch.Tensor:
    """The mean φ over the samples of some folds, shape (q,)."""
    chosen = [side.sketch.folds[fold] for fold in folds]
    return torch.stack([fold.first for fold in chosen]).sum(0) / float(sum(fold.n for fold in chosen))


def baseline_fits(method: Method, gen: Side, ref: Side, rho: float, modes: int) -> Callable[[Side, Side], CrossFit]:
    """What fits this many modes of a baseline, those of which its first argument has more than its second.

    Raises:
        FincEvalError: where a set came as a sketch, or there are too many samples for KEN, or too few to cluster.
    """
    for side in (gen, ref):
        _embeddings(side)
    if method.name == "ken":
        _check_few_enough(gen, ref)
    else:
        for side in (gen, ref):
            _check_enough_novel(method, side, modes)
    phi = gen.sketch.feature_map
    find: Find
    if method.name == "ken":
        find = partial(ken_expansion, phi=phi, rho=rho, count=directions_sought([gen, ref], modes))
    elif method.name == "rarity":
        find = partial(rarity_expansion, method=method, clusters=modes)
    else:
        find = partial(fld_expansion, method=method, clusters=modes)

    def fit(first: Side, second: Side) -> CrossFit:
        populations = [(1.0, side.population) for side in (first, second)]
        return cross_fit(Expanded(find, first, second, rho), populations, phi.halves())

    return fit


def _check_few_enough(gen: Side, ref: Side) -> None:
    count = gen.sketch.n + ref.sketch.n
    if count > MAX_EXACT_KEN_SAMPLES:
        gigabytes = KEN_BYTES * count**2 / 1e9
        raise FincEvalError(
            f"exact KEN needs the kernel matrix of all {count:,} samples, at its peak {gigabytes:,.0f} GB: pass "
            f"subsets of at most {MAX_EXACT_KEN_SAMPLES:,} in all, or leave ken out"
        )


def _check_enough_novel(method: Method, side: Side, modes: int) -> None:
    if modes < 2:
        raise FincEvalError(f"{method.name} clusters samples into modes and needs at least 2 of them, got {modes}")
    half = min(fold.n for fold in side.sketch.folds)
    novel = round((method.novel or 0) * half)
    if novel <= modes:
        raise FincEvalError(
            f"{method.name} finds {novel} of the {half} samples of half of {side.label} novel, too few for {modes} "
            "clusters: pass more samples, a larger novel share, or fewer modes"
        )


def ken_expansion(x: Embeddings, y: Embeddings, *, phi: FeatureMap, rho: float, count: int) -> Expansion:
    """The leading eigenfunctions of C_x − ρ·C_y, by exact KEN."""
    rows, others = (torch.cat([batch.rows for batch in part.batches()]).to(phi.device) for part in (x, y))
    found = ken(rows, others, phi.exact, rho=rho, count=count)
    return Expansion(found.samples, found.coefficients, found.eigenvalues)


def rarity_expansion(x: Embeddings, y: Embeddings, *, method: Method, clusters: int) -> Expansion:
    """Clusters of the samples of x that have the highest Rarity scores beside y, those outside every ball first."""
    assert method.neighbors is not None
    return _clusters(x, rarity(x, y, k=method.neighbors).novel(share=method.novel), clusters)


def fld_expansion(x: Embeddings, y: Embeddings, *, method: Method, clusters: int) -> Expansion:
    """Clusters of the samples of x that are least likely under FLD's mixture around y.

    One half of y are the centers, the other decides their widths. Features that are constant among the centers are left
    out, because nothing standardizes them.

    Raises:
        FincEvalError: when too few samples, or features, are left.
    """
    part = (_keys(y) >> np.uint64(1)) & np.uint64(1) == 1  # the last bit is the fold
    centers, others = (Subset(y, np.flatnonzero(chosen)) for chosen in (part, ~part))
    if min(centers.n, others.n) < 2:
        raise FincEvalError(f"{y.name} has {y.n} samples, too few for FLD to split in two: pass more")
    entries = np.flatnonzero(~constant_features(centers))
    if not len(entries):
        raise FincEvalError(f"all samples of {y.name} are the same, which FLD cannot standardize: pass others")
    generated, train, test = (
        Subset(source, np.arange(source.n), entries, name)
        for source, name in ((x, x.name), (others, "train"), (centers, "test"))
    )
    return _clusters(x, sample_likelihoods(generated, train, test).novel(share=method.novel), clusters)


def constant_features(embeddings: Embeddings) -> NDArray[np.bool_]:
    """Which features have one value in all samples, shape (d,)."""
    low, high = torch.full((embeddings.dim,), torch.inf), torch.full((embeddings.dim,), -torch.inf)
    for batch in embeddings.batches():
        rows = batch.rows.cpu()
        low, high = low.minimum(rows.amin(0)), high.maximum(rows.amax(0))
    return (low == high).numpy()


def _clusters(x: Embeddings, novel: NDArray[np.int64], clusters: int) -> Expansion:
    """The kernel means of clusters of some samples."""
    found = spectral_clustering(x, novel, clusters)
    coefficients = torch.zeros(len(novel), clusters, dtype=torch.double)
    coefficients[np.arange(len(novel)), found.labels] = 1.0
    return Expansion(x.rows_at(found.samples), coefficients)


def _of_folds(side: Side, folds: Sequence[int]) -> Embeddings:
    """The embeddings of the samples of some folds."""
    embeddings = _embeddings(side)
    if len(folds) == 2:
        return embeddings
    return Subset(embeddings, np.flatnonzero(fold_of(_keys(embeddings)) == folds[0]), name=f"half of {side.label}")


def _embeddings(side: Side) -> Embeddings:
    if side.embeddings is None:
        raise FincEvalError(
            f"ken, rarity and fld need embeddings, and {side.label} is a sketch: pass the embeddings that it was made "
            "from, or take finc"
        )
    return side.embeddings


def _keys(embeddings: Embeddings) -> NDArray[np.uint64]:
    return np.concatenate([keys for _, keys in embeddings.id_hashes()])
