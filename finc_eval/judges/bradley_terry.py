"""Bradley-Terry strengths with ties (Davidson 1970), and their covariance with prompts and voters as clusters.

P(i beats j) = πᵢ / (πᵢ + πⱼ + ν·√(πᵢ·πⱼ)),   P(tie) = ν·√(πᵢ·πⱼ) / (πᵢ + πⱼ + ν·√(πᵢ·πⱼ)),   θᵢ = log πᵢ, Σ θᵢ = 0

With covariates x of what is shown, log πᵢ = θᵢ + β·x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from finc_eval.core.errors import DataError
from finc_eval.core.words import join_words

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LEFT, RIGHT, TIE = 0, 1, 2  # outcomes of a vote

CLOSE = 1e-12  # entry of a Newton step below which a fit is done

STEPS = 30
"""Newton steps of a fit, which takes about 6. If the likelihood grows without end, each adds about 1 to log odds."""

PRIOR = 1.0
"""Votes against a model of mean strength, half of them won, that each model is given, only if some models win every
vote against the others: their strengths would be infinite. Strengths are then finite by it, and a board says so."""

BATCH = 2048  # clusters, and rows of votes, whose information is held together, which bounds memory


Likelihood = tuple[float, Array, Array]
"""A log-likelihood, its derivative by the parameters, shape (q,), and −its second derivative, shape (q, q)."""


@dataclass(frozen=True, eq=False)
class Design:
    """Votes by rows of votes that are alike, and what their log odds are linear in.

    A parameter vector has p − 1 free strengths, c effects of covariates, and log ν if there are ties.
    """

    left: Integers  # left model of each row, shape (k,)
    right: Integers  # right model, shape (k,)
    differences: Array  # covariates on the left minus those on the right, shape (k, c)
    cells: Array  # votes of each row by outcome, shape (k, 3)
    row: Integers  # row of each vote, shape (v,)
    basis: Array  # strengths of each parameter, shape (p, q)
    ties: bool  # whether log ν is a parameter

    @classmethod
    def of(cls, left: Integers, right: Integers, outcome: Integers, models: int, differences: Array) -> Design:
        """Return the design of v votes; see `fit_strengths`. Without covariates, a row is two models on their sides.

        `left`, `right` and `outcome` have shape (v,), and `differences` of covariates shape (v, covariates).
        """
        pair, covariates = left * models + right, differences.shape[1]
        _, first, row = np.unique(
            pair if covariates == 0 else np.arange(len(pair)), return_index=True, return_inverse=True
        )
        cells = np.zeros((len(first), 3))
        np.add.at(cells, (row, outcome), 1)
        ties = bool(cells[:, TIE].any())
        if not cells[:, :TIE].any():  # nothing but ties: every model is as strong as all others
            cells, ties = np.full((1, 3), [0.5, 0.5, 0]) * cells.sum(1)[:, None], False
        # Columns of the basis: orthonormal directions of strengths with sum 0.
        directions = np.linalg.svd(np.eye(models) - 1 / models)[0][:, : models - 1]
        basis = np.hstack([directions, np.zeros((models, covariates + ties))])
        return cls(left[first], right[first], differences[first], cells, row, basis, ties)

    @property
    def slopes(self) -> Array:
        """Effects of covariates of each parameter, shape (c, q)."""
        models, count = len(self.basis), self.differences.shape[1]
        return np.eye(count, self.basis.shape[1], models - 1)

    def at(self, parameters: Array, rows: slice | Integers) -> tuple[Array, Array]:
        """Return the log probability of the outcomes of rows, shape (k, 3), and its derivatives, shape (k, 3, q)."""
        half = self.differences[rows] @ self.slopes / 2
        a, b = self.basis[self.left[rows]] + half, self.basis[self.right[rows]] - half
        slopes = np.stack([a, b, (a + b) / 2], 1)
        if self.ties:
            slopes[:, TIE, -1] = 1
        logits = slopes @ parameters
        if not self.ties:
            logits[:, TIE] = -inf
        logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return logs, slopes - np.einsum("ko,koq->kq", np.exp(logs), slopes)[:, None]

    def batches(self) -> Iterator[slice]:
        """Yield the rows, some at a time."""
        for start in range(0, len(self.cells), BATCH):
            yield slice(start, start + BATCH)

    def likelihood(self, parameters: Array) -> Likelihood:
        """Return the log-likelihood of parameters, shape (q,), with its slope (q,) and its information (q, q)."""
        value, slope, information = 0.0, np.zeros(len(parameters)), np.zeros((len(parameters),) * 2)
        for rows in self.batches():
            logs, centered = self.at(parameters, rows)
            cells = self.cells[rows]
            value += float(cells[cells > 0] @ logs[cells > 0])
            slope += np.einsum("ko,koq->q", cells, centered)
            weighted = (np.sqrt(cells.sum(1)[:, None] * np.exp(logs))[:, :, None] * centered).reshape(-1, len(slope))
            information += weighted.T @ weighted
        return value, slope, information


@dataclass(frozen=True, eq=False)
class StrengthFit:
    """Strengths of p models by v votes, and the effects of c covariates."""

    design: Design
    parameters: Array  # shape (q,)
    scores: Array  # derivative of the log-likelihood of each vote by the parameters, shape (v, q)
    information: Array  # −second derivative of the log-likelihood, shape (q, q)
    separated: tuple[tuple[int, ...], ...]  # sets of models, best first, if each wins all votes against later ones
    is_finite: bool = True  # False if covariates decide votes entirely, so that the likelihood grows without end

    @property
    def basis(self) -> Array:
        """Strengths of each parameter, shape (p, q)."""
        return self.design.basis

    @property
    def strengths(self) -> Array:
        """Log strength of each model, shape (p,), with mean 0."""
        return np.asarray(self.basis @ self.parameters)

    @property
    def effects(self) -> Array:
        """Log odds of winning by a unit more of each covariate, shape (c,)."""
        return np.asarray(self.design.slopes @ self.parameters)

    @property
    def log_tie(self) -> float:
        """Log ν; −inf without ties."""
        return float(self.parameters[-1]) if self.design.ties else -inf

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the information: covariance of the parameters if all votes are independent."""
        return np.asarray(np.linalg.inv(self.information))

    @property
    def influences(self) -> Array:
        """Influence of each vote on each strength, shape (v, p)."""
        return np.asarray(self.scores @ self.inverse @ self.basis.T)

    def without(self, cluster: Integers) -> Array:
        """Return parameters without each cluster of votes, minus the parameters of all, shape (g, q): one Newton step.

        This is the delete-a-cluster jackknife (CR3): a cluster that holds half of the votes has the leverage to pull
        the fit towards itself, and its own scores are small.
        """
        count, size, rows = int(cluster.max()) + 1, len(self.parameters), len(self.design.cells)
        summed = np.zeros((count, size))
        np.add.at(summed, cluster, self.scores)
        cells, votes = np.unique(cluster * rows + self.design.row, return_counts=True)
        owner, row = np.divmod(cells, rows)
        found = np.empty((count, size))
        ridge = np.eye(size) * np.diag(self.information).mean() * 1e-6  # a cluster may hold a model
        for start in range(0, count, BATCH):
            stop = min(start + BATCH, count)
            information = np.zeros((stop - start, size * size))
            first, last = np.searchsorted(owner, [start, stop])
            for place in range(first, last, BATCH):
                some = slice(place, min(place + BATCH, last))
                logs, centered = self.design.at(self.parameters, row[some])
                each = np.einsum("ko,koq,kor->kqr", np.exp(logs) * votes[some][:, None], centered, centered)
                where = (owner[some] - start, np.arange(some.stop - some.start))
                shape = (stop - start, some.stop - some.start)
                information += csr_array((np.ones(shape[1]), where), shape=shape) @ each.reshape(shape[1], -1)
            rest = self.information - information.reshape(-1, size, size) + ridge
            found[start:stop] = -np.linalg.solve(rest, summed[start:stop, :, None])[:, :, 0]
        return found


def fit_strengths(
    left: Integers, right: Integers, outcome: Integers, models: int, differences: Array | None = None
) -> StrengthFit:
    """Fit Davidson's model by maximum likelihood.

    Args:
        left: number of the left model of each vote, shape (v,).
        right: number of the right model, shape (v,).
        outcome: `LEFT`, `RIGHT` or `TIE`, shape (v,).
        models: number of models, p.
        differences: covariates of the left sample of each vote minus those of the right one, shape (v, c), which do
            not follow from each other or from the models; default: none.

    Raises:
        DataError: a model has no vote, or votes never compare two sets of models.
    """
    beaten = np.zeros((models, models))
    won = outcome != RIGHT
    np.add.at(beaten, (left[won], right[won]), 1)
    lost = outcome != LEFT
    np.add.at(beaten, (right[lost], left[lost]), 1)
    if connected_components(beaten)[0] > 1:
        raise DataError("votes never compare some models with the others, directly or through a third: collect some")
    separated = _separated(beaten)
    design = Design.of(left, right, outcome, models, np.zeros((len(left), 0)) if differences is None else differences)
    prior = PRIOR if separated else 0.0
    parameters, is_finite = _maximize(design, prior)
    information = _with_prior(design, parameters, prior)[2]
    scores = np.empty((len(left), len(parameters)))
    for start in range(0, len(left), BATCH):
        some = slice(start, start + BATCH)
        centered = design.at(parameters, design.row[some])[1]
        scores[some] = centered[np.arange(len(centered)), outcome[some]]
    return StrengthFit(design, parameters, scores, information, separated, is_finite)


def _separated(beaten: Array) -> tuple[tuple[int, ...], ...]:
    """Return the sets of models that win all votes against others, best first; () if every model is bounded.

    `beaten` counts the votes of each model (row) against each other model (column), shape (p, p).
    """
    count, label = connected_components(beaten, directed=True, connection="strong")
    if count == 1:
        return ()
    wins = np.zeros((count, count))
    for first, second in zip(*np.nonzero(beaten), strict=True):
        wins[label[first], label[second]] += label[first] != label[second]
    left, order = [*range(count)], []
    while left:
        best = next(model for model in left if not wins[left, model].any())
        order.append(best)
        left.remove(best)
    return tuple(tuple(np.flatnonzero(label == group).tolist()) for group in order)


def _with_prior(design: Design, parameters: Array, weight: float) -> Likelihood:
    """Return the log-likelihood with half a win and half a loss of each model, per unit, against strength 0."""
    value, slope, information = design.likelihood(parameters)
    basis, strengths = design.basis, design.basis @ parameters
    share = 1 / (1 + np.exp(-strengths))
    value -= weight / 2 * float(np.logaddexp(0, strengths).sum() + np.logaddexp(0, -strengths).sum())
    slope = slope + basis.T @ (weight * (0.5 - share))
    return value, slope, information + basis.T @ (basis * (weight * share * (1 - share))[:, None])


def _maximize(design: Design, prior: float) -> tuple[Array, bool]:
    """Return the parameters of the largest likelihood, by Newton's method with halved steps, and whether it exists."""
    parameters = np.zeros(design.basis.shape[1])
    value, slope, curve = _with_prior(design, parameters, prior)
    for _ in range(STEPS):
        try:
            step = np.linalg.solve(curve, slope)
        except np.linalg.LinAlgError:
            return parameters, False
        while (found := _with_prior(design, parameters + step, prior))[0] < value - 1e-9 and np.abs(step).max() > CLOSE:
            step = step / 2
        parameters, (value, slope, curve) = parameters + step, found
        if np.abs(step).max() <= CLOSE * (1 + np.abs(parameters).max()):
            return parameters, True
    return parameters, False


def effective_clusters(cluster: Integers) -> float:
    """Return the number of equal clusters that inform like these: (Σ m)² / Σ m² over clusters of m votes.

    `cluster` has the number of the cluster of each vote, shape (v,).
    """
    sizes = np.bincount(cluster).astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


@dataclass(frozen=True, eq=False)
class Spread:
    """Joint error of the strengths of p models, or of other m estimates.

    An `Estimate` has the error of a single number as parts of units. Votes have two clusterings that cross, prompts and
    voters, whose variances add up less that of the votes: only the covariance of all strengths is known.
    """

    covariance: Array  # shape (m, m)
    degrees: float  # degrees of freedom of it, by Welch and Satterthwaite


def spread_of(fit: StrengthFit, *clusterings: Integers, of: Array | None = None) -> Spread:
    """Return the covariance of strengths from votes whose clusters, such as prompts and voters, are random.

    `of` has other estimates of each parameter, shape (m, q); default: strengths.

    V = V_votes + Σ_c (V_c − V_votes)₊: the variance of independent votes, and what each clustering adds to it, which
    is not negative. V_c is the jackknife over the clusters c. A clustering of one cluster adds nothing: what it would
    add is not known.
    """
    of = fit.basis if of is None else of
    base = of @ fit.inverse @ of.T
    total, parts = base.copy(), [(float(np.trace(base)), inf)]
    for cluster in clusterings:
        count = int(cluster.max()) + 1
        if count < 2:
            continue
        # Around the fit of all votes, not around the mean: as much wider as clusters differ in size.
        moved = fit.without(cluster) @ of.T
        added = positive_part(moved.T @ moved * (count - 1) / count - base)
        total += added
        parts.append((float(np.trace(added)), max(effective_clusters(cluster) - 1, 1.0)))
    spread = sum(size**2 / degrees for size, degrees in parts)
    return Spread(total, float(np.trace(total)) ** 2 / spread if spread else inf)


def positive_part(matrix: Array) -> Array:
    """Return the positive semidefinite matrix that is nearest to a symmetric matrix, shape (p, p)."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * values.clip(0)) @ vectors.T)


def say_separated(separated: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Say which models win all votes against the others."""
    best, rest = separated[0], [model for part in separated[1:] for model in part]
    won = join_words([names[model] for model in best])
    others = join_words([names[model] for model in rest])
    return (
        f"{won} {'win' if len(best) > 1 else 'wins'} every vote against {others}: how much stronger is not known from "
        "these votes. Half a win and half a loss against a mean model are added for each model, which makes strengths "
        "finite"
    )
