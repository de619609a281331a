"""The holdout: whether it is of the training set's distribution, and whether suspicious samples are as near to it.

Only sets of one distribution let nearness to the training set show copying. Samples that resemble many real ones are
near to some, of whatever set. But copies of training samples are only as near to the holdout as training samples are.
So what the tests of single samples find is held against how near these samples are to the holdout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.copying import CopyingMeasure, TailName
from finc_eval.memorization.nearness import Near, Nearness, nearness_to
from finc_eval.memorization.settings import AUDIT_ALPHA, AuditSettings
from finc_eval.memorization.strata import Stratum
from finc_eval.numerics.families import holm

HOLDOUT_NEIGHBORS = 15
"""Neighbors of each sample in both sets together. Of 20 holdouts of 300 samples that lack 2 of 20 kinds, 10, 15 and 25
neighbors find 16, 16 and 11; of 20 that lack a class of ten, 17, 20 and 20."""

HOLDOUT_EXCHANGES = 499  # random exchanges of the two sets; the least p-value is .002


def holdout_p_value(train: Embeddings, holdout: Embeddings, seed: int, run: Run) -> float:
    """Return the p-value of "training set and holdout have one distribution".

    The least of three p-values, adjusted (Holm 1979). One is of the neighbors of samples: the share of a set among them
    varies as much as after exchanges of the sets (Schilling 1986, squared, so that a kind that a set lacks counts). Two
    are of distances: samples of both sets are equally near to a half of either set that they are not in (Mann and
    Whitney). Tests of copying would take the difference for copies. Given that half, the distances are independent.
    Groups are exchanged whole, and count by the median distance of their samples.
    """
    rng = np.random.default_rng(seed)
    # 2000: samples of each set that the test takes.
    n = min(train.n, holdout.n, 2000)
    sets = [Subset(embeddings, np.sort(rng.permutation(embeddings.n)[:n])) for embeddings in (train, holdout)]
    hashes = [embeddings.group_hashes() for embeddings in sets]
    groups = [np.arange(n) if keys is None else np.unique(keys, return_inverse=True)[1] for keys in hashes]
    p_values = [_neighbors_p(sets, groups, rng, run)]
    p_values += [_distance_p(target, sets, groups, rng, run) for target in (0, 1)]
    return float(holm(p_values).min())


def _neighbors_p(sets: list[Subset], groups: list[NDArray[np.int64]], rng: np.random.Generator, run: Run) -> float:
    """Test by neighbors, with groups (n,) of each set, whether both sets are of one law; return the p-value."""
    rows = torch.cat([embeddings.rows_at(np.arange(embeddings.n)) for embeddings in sets])
    # Equal samples are found in the order of rows, which must not tell the set.
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    rows = rows[order].to(run.torch_device)
    distances = torch.cdist(rows, rows)
    distances.fill_diagonal_(torch.inf)
    neighbors = distances.topk(min(HOLDOUT_NEIGHBORS, len(rows) // 4), largest=False).indices.cpu().numpy()
    group = np.concatenate([groups[0], groups[1] + groups[0].max() + 1])[order]
    of_group = np.arange(group.max() + 1) > groups[0].max()

    def spread(labels: NDArray[np.bool_]) -> float:
        """Return how unevenly the neighbors of a sample are of both sets, by the set of each group, shape (g,)."""
        return float(np.square(labels[group][neighbors].mean(1) - 0.5).mean())

    seen = spread(of_group)
    exchanged = [spread(rng.permutation(of_group)) for _ in range(HOLDOUT_EXCHANGES)]
    return (1 + sum(drawn >= seen for drawn in exchanged)) / (1 + HOLDOUT_EXCHANGES)


def _distance_p(
    target: int, sets: list[Subset], groups: list[NDArray[np.int64]], rng: np.random.Generator, run: Run
) -> float:
    """Test whether samples of both sets are equally near to a half of one of them, which they are not in."""
    from scipy.stats import mannwhitneyu

    count = groups[target].max() + 1
    is_target = (rng.permutation(count) < count // 2)[groups[target]]
    half = Subset(sets[target], np.flatnonzero(is_target))
    samples = []
    for number, (embeddings, group) in enumerate(zip(sets, groups, strict=True)):
        rows = np.flatnonzero(~is_target) if number == target else np.arange(embeddings.n)
        distances = nearest(Subset(embeddings, rows), half, 1, device=run.torch_device).distances[:, 0]
        group_of = group[rows]
        samples.append(
            [np.median(distances[group_of == name]) for name in np.unique(group_of)]
            if len(set(group_of)) < len(group_of)
            else distances
        )
    return float(mannwhitneyu(*samples, method="asymptotic").pvalue)


MOST_SUSPICIOUS = 12
"""Real samples, each by the generated sample nearest to it, that are checked for their set: ten of the training set
are enough (p = .02), which are as many copies as the tests of single samples need."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Nearness of the generated samples to training set and holdout, one way."""

    # distance of each generated sample to the training set, in units of both sets, shape (n,)
    to_train: NDArray[np.float64]
    to_holdout: NDArray[np.float64]  # the same to the holdout
    # number of the real sample that each is nearest to, shape (n,): from 0 on in the training set, and from −1 down in
    # the holdout
    nearest: NDArray[np.int64]

    @classmethod
    def of(cls, to_train: Near, to_holdout: Near, real: tuple[Near, Near] | None = None) -> Sides:
        """Hold either distance against the median one of real samples, which unlike sizes move as much.

        Real samples are as near as in `real`; default: as in the two.
        """
        fresh, train = (np.median(near.fresh) for near in real or (to_train, to_holdout))
        train_ratio, holdout_ratio = to_train.gen * train, to_holdout.gen * fresh
        return cls(
            train_ratio,
            holdout_ratio,
            np.where(train_ratio < holdout_ratio, to_train.partners, -1 - to_holdout.partners),
        )

    def p_value(self, among: NDArray[np.bool_] | None = None) -> float:
        """Return the p-value of "the most suspicious samples are as often nearer to the holdout", by a sign test.

        Among all samples that are nearest to one real sample, only the most suspicious counts: repeats add nothing.
        """
        from scipy.stats import binom  # slow to import, and reports of other results load this module

        rows = np.arange(len(self.to_train)) if among is None else np.flatnonzero(among)
        least = np.minimum(self.to_train, self.to_holdout)[rows]
        rows = rows[np.argsort(least, kind="stable")]
        _, first = np.unique(self.nearest[rows], return_index=True)
        rows = rows[np.sort(first)[:MOST_SUSPICIOUS]]
        # 0.9: medians of a few hundred distances are not known better.
        nearer = int((self.to_train < 0.9 * self.to_holdout)[rows].sum())
        return float(binom.sf(nearer - 1, len(rows), 0.5))


def find_sides(
    sets: Mapping[str, Embeddings], nearness: Nearness, neighbors: int, settings: AuditSettings, run: Run
) -> dict[TailName, Sides]:
    """Return the nearness of the generated samples to training set and holdout, each way that is known for both.

    From a holdout that is larger than the training set, as many samples are drawn: distances to a smaller set spread
    more, so that the most suspicious distances would nearly always be to the training set.
    """
    most = min(sets["train"].n, sets["holdout"].n)
    train, holdout = (
        Subset(embeddings, np.sort(np.random.default_rng(settings.seed).permutation(embeddings.n)[:most]))
        for embeddings in (sets["train"], sets["holdout"])
    )
    others = {"gen": sets["gen"], "train": train}
    of_gen, fresh = (
        nearest(side, holdout, neighbors, device=run.torch_device, index=settings.index) for side in others.values()
    )
    exchanged = nearness_to(("holdout", holdout), others, (of_gen, fresh), run, nearness.embed, ("gen",))
    # A median does not move by views of a few suspects, and those of training samples are not embedded.
    plain = nearness.ways["calibrated"], exchanged.ways["calibrated"]
    return {
        name: Sides.of(near, exchanged.ways[name], plain if name == "views" else None)
        for name, near in nearness.ways.items()
        if name in exchanged.ways
    }


def against_holdout(
    measures: Sequence[CopyingMeasure],
    strata: Sequence[Stratum],
    cells: NDArray[np.object_],
    sides: Callable[[], Mapping[TailName, Sides]],
) -> tuple[tuple[CopyingMeasure, ...], tuple[Stratum, ...]]:
    """Return measures and strata; tests of single samples that find copying get their p-value against the holdout."""
    by_distance = {
        measure.name for measure in measures if measure.name in get_args(TailName) and measure.adjusted <= AUDIT_ALPHA
    }
    in_strata = {stratum.id for stratum in strata if stratum.p_value <= AUDIT_ALPHA}
    if not by_distance | in_strata:
        return tuple(measures), tuple(strata)
    known = sides()
    by_name = {name: known[name].p_value() for name in known if name in by_distance}
    by_stratum = {id: known["calibrated"].p_value(cells == id) for id in in_strata}
    return (
        tuple(replace(measure, against_holdout=by_name.get(cast(TailName, measure.name))) for measure in measures),
        tuple(replace(stratum, against_holdout=by_stratum.get(stratum.id)) for stratum in strata),
    )
