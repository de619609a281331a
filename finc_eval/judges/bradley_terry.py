"""Bradley-Terry strengths with ties (Davidson 1970), and their covariance with prompts and voters as clusters.

P(i beats j) = πᵢ / (πᵢ + πⱼ + ν·√(πᵢ·πⱼ)),   P(tie) = ν·√(πᵢ·πⱼ) / (πᵢ + πⱼ + ν·√(πᵢ·πⱼ)),   θᵢ = log πᵢ, Σ θᵢ = 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from finc_eval.core.errors import DataError
from finc_eval.core.words import join_words

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LEFT, RIGHT, TIE = 0, 1, 2  # outcomes of a vote

CLOSE = 1e-12  # entry of a Newton step below which a fit is done

PRIOR = 1.0
"""Votes against a model of mean strength, half of them won, that each model is given, only if some models win every
vote against the others: their strengths would be infinite. Strengths are then finite by it, and a board says so."""

BATCH_CLUSTERS = 512  # clusters whose information is inverted together, which bounds memory


@dataclass(frozen=True, eq=False)
class StrengthFit:
    """Strengths of p models by v votes.

    A parameter vector has p − 1 free strengths and, if there are ties, log ν; `basis` maps it to the p strengths.
    """

    strengths: Array  # log strength of each model, shape (p,), with mean 0
    log_tie: float  # log ν; −inf without ties
    basis: Array  # strengths of each free parameter, shape (p, q)
    scores: Array  # derivative of the log-likelihood of each vote by the free parameters, shape (v, q)
    information: Array  # −second derivative of the log-likelihood, shape (q, q)
    by_vote: Array  # information of each vote's pair of models at the fit, by pair, shape (p·p, q, q)
    pair: Integers  # number of each vote's pair in `by_vote`, shape (v,)
    separated: tuple[tuple[int, ...], ...]  # sets of models, best first, if each wins all votes against later ones

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the information: covariance of the parameters if all votes are independent."""
        return np.asarray(np.linalg.inv(self.information))

    @property
    def influences(self) -> Array:
        """Influence of each vote on each strength, shape (v, p)."""
        return np.asarray(self.scores @ self.inverse @ self.basis.T)

    def without(self, cluster: Integers) -> Array:
        """Return strengths without each cluster of votes, minus the strengths of all, shape (g, p): one Newton step.

        This is the delete-a-cluster jackknife (CR3): a cluster that holds half of the votes has the leverage to pull
        the fit towards itself, and its own scores are small.
        """
        count = int(cluster.max()) + 1
        summed = np.zeros((count, self.scores.shape[1]))
        np.add.at(summed, cluster, self.scores)
        pairs, place = np.unique(self.pair, return_inverse=True)
        votes = np.zeros((count, len(pairs)))
        np.add.at(votes, (cluster, place), 1)
        found = np.empty((count, len(self.basis)))
        ridge = np.eye(len(self.information)) * np.diag(self.information).mean() * 1e-6  # a cluster may hold a model
        for start in range(0, count, BATCH_CLUSTERS):
            rows = slice(start, start + BATCH_CLUSTERS)
            rest = self.information - np.tensordot(votes[rows], self.by_vote[pairs], 1) + ridge
            found[rows] = -np.linalg.solve(rest, summed[rows][:, :, None])[:, :, 0] @ self.basis.T
        return found


def fit_strengths(left: Integers, right: Integers, outcome: Integers, models: int) -> StrengthFit:
    """Fit Davidson's model by maximum likelihood.

    Args:
        left: number of the left model of each vote, shape (v,).
        right: number of the right model, shape (v,).
        outcome: `LEFT`, `RIGHT` or `TIE`, shape (v,).
        models: number of models, p.

    Raises:
        DataError: a model has no vote, or votes never compare two sets of models.
    """
    ties = bool((outcome == TIE).any())
    beaten = np.zeros((models, models))
    won = outcome != RIGHT
    np.add.at(beaten, (left[won], right[won]), 1)
    lost = outcome != LEFT
    np.add.at(beaten, (right[lost], left[lost]), 1)
    if connected_components(beaten)[0] > 1:
        raise DataError("votes never compare some models with the others, directly or through a third: collect some")
    separated = _separated(beaten)
    # Columns of the basis: orthonormal directions of strengths with sum 0.
    directions = np.linalg.svd(np.eye(models) - 1 / models)[0][:, : models - 1]
    basis = np.hstack([directions, np.zeros((models, int(ties)))])
    cells = np.zeros((models * models, 3))
    pair = left * models + right
    np.add.at(cells, (pair, outcome), 1)
    used = np.flatnonzero(cells.any(1))
    if not cells[:, :TIE].any():  # nothing but ties: every model is as strong as all others
        cells, ties, basis = np.full((1, 3), [0.5, 0.5, 0]) * cells.sum(1)[:, None], False, directions
    parameters = _maximize(cells[used], used, basis, ties, PRIOR if separated else 0.0)
    scores, information = _derivatives(used, basis, parameters, ties)
    by_vote = np.zeros((models * models, basis.shape[1], basis.shape[1]))
    by_vote[used] = information
    place = np.zeros(models * models, np.int64)
    place[used] = np.arange(len(used))
    total = np.tensordot(cells[used].sum(1), information, 1)
    if separated:
        total = total + _prior(basis, parameters, ties, PRIOR)[1]
    return StrengthFit(
        strengths=basis @ parameters,
        log_tie=float(parameters[-1]) if ties else -inf,
        basis=basis,
        scores=scores[place[pair], outcome],
        information=total,
        by_vote=by_vote,
        pair=pair,
        separated=separated,
    )


def _separated(beaten: Array) -> tuple[tuple[int, ...], ...]:
    """Return the sets of models that win all votes against others, best first; () if every model is bounded."""
    count, label = connected_components(beaten, directed=True, connection="strong")
    if count == 1:
        return ()
    wins = np.zeros((count, count))
    for first, second in zip(*np.nonzero(beaten), strict=True):
        wins[label[first], label[second]] += label[first] != label[second]
    left, order = [*range(count)], []
    while left:
        best = next(one for one in left if not wins[left, one].any())
        order.append(best)
        left.remove(best)
    return tuple(tuple(np.flatnonzero(label == one).tolist()) for one in order)


def _shares(used: Integers, strengths: Array, log_tie: float) -> tuple[Array, Integers, Integers]:
    """Return the probability of the outcomes of each pair, shape (k, 3), and its models."""
    first, second = np.divmod(used, len(strengths))
    a, b = strengths[first], strengths[second]
    logits = np.stack([a, b, log_tie + (a + b) / 2], 1)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True), first, second


def _derivatives(used: Integers, basis: Array, parameters: Array, ties: bool) -> tuple[Array, Array]:
    """Return scores of each pair's outcomes, shape (k, 3, q), and the information of a vote, shape (k, q, q)."""
    shares, first, second = _shares(used, basis @ parameters, parameters[-1] if ties else -inf)
    a, b = basis[first], basis[second]
    slopes = np.stack([a, b, (a + b) / 2], 1)
    if ties:
        slopes[:, 2, -1] = 1
    centered = slopes - np.einsum("ko,koq->kq", shares, slopes)[:, None]
    return centered, np.einsum("ko,koq,kor->kqr", shares, centered, centered)


def _prior(basis: Array, parameters: Array, ties: bool, weight: float) -> tuple[Array, Array]:
    """Return derivatives of the log-likelihood of half a win and half a loss per unit against strength 0."""
    share = 1 / (1 + np.exp(-(basis @ parameters)))
    information = basis.T @ (basis * (weight * share * (1 - share))[:, None])
    if ties:
        information[-1, -1] += 1e-9
    return np.asarray(basis.T @ (weight * (0.5 - share))), information


def _maximize(cells: Array, used: Integers, basis: Array, ties: bool, prior: float) -> Array:
    """Return the parameters of the largest likelihood, by Newton's method with halved steps."""
    parameters = np.zeros(basis.shape[1])

    def value(at: Array) -> float:
        strengths = basis @ at
        shares = _shares(used, strengths, at[-1] if ties else -inf)[0]
        bound = -prior / 2 * float(np.logaddexp(0, strengths).sum() + np.logaddexp(0, -strengths).sum())
        with np.errstate(divide="ignore"):
            return float(np.sum(np.where(cells > 0, cells * np.log(np.maximum(shares, 1e-300)), 0))) + bound

    for _ in range(100):  # a fit takes about 6 steps
        scores, information = _derivatives(used, basis, parameters, ties)
        slope = np.einsum("ko,koq->q", cells, scores)
        curve = np.tensordot(cells.sum(1), information, 1)
        if prior:
            more = _prior(basis, parameters, ties, prior)
            slope, curve = slope + more[0], curve + more[1]
        step, now = np.linalg.solve(curve, slope), value(parameters)
        while value(parameters + step) < now - 1e-9 and np.abs(step).max() > CLOSE:
            step = step / 2
        parameters = parameters + step
        if np.abs(step).max() <= CLOSE * (1 + np.abs(parameters).max()):
            break
    return parameters


def effective_clusters(cluster: Integers) -> float:
    """Return the number of equal clusters that inform like these: (Σ m)² / Σ m² over clusters of m votes."""
    sizes = np.bincount(cluster).astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


@dataclass(frozen=True, eq=False)
class Spread:
    """Joint error of the strengths of p models."""

    covariance: Array  # shape (p, p)
    degrees: float  # degrees of freedom of it, by Welch and Satterthwaite


def spread_of(fit: StrengthFit, *clusterings: Integers) -> Spread:
    """Return the covariance of strengths from votes whose clusters, such as prompts and voters, are random.

    V = V_votes + Σ_c (V_c − V_votes)₊: the variance of independent votes, and what each clustering adds to it, which
    is not negative. V_c is the jackknife over the clusters c. A clustering of one cluster adds nothing: what it would
    add is not known.
    """
    base = fit.basis @ fit.inverse @ fit.basis.T
    total, parts = base.copy(), [(float(np.trace(base)), inf)]
    for cluster in clusterings:
        count = int(cluster.max()) + 1
        if count < 2:
            continue
        # Around the fit of all votes, not around the mean: as much wider as clusters differ in size.
        moved = fit.without(cluster)
        added = positive_part(moved.T @ moved * (count - 1) / count - base)
        total += added
        parts.append((float(np.trace(added)), max(effective_clusters(cluster) - 1, 1.0)))
    spread = sum(size**2 / degrees for size, degrees in parts)
    return Spread(total, float(np.trace(total)) ** 2 / spread if spread else inf)


def positive_part(matrix: Array) -> Array:
    """Return the nearest positive semidefinite matrix of a symmetric one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * values.clip(0)) @ vectors.T)


def say_separated(separated: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Say which models win all votes against the others."""
    best, rest = separated[0], [one for part in separated[1:] for one in part]
    won = join_words([names[one] for one in best])
    others = join_words([names[one] for one in rest])
    return (
        f"{won} {'win' if len(best) > 1 else 'wins'} every vote against {others}: how much stronger is not known from "
        "these votes. Half a win and half a loss against a mean model are added for each model, which makes strengths "
        "finite"
    )
