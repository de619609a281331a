"""Nearness of single samples to the training set, three ways: by embedding, by perceptual hash, and over views.

Each way gives calibrated distances of generated and of fresh samples, to which the exact test of `tails` applies. The
number of copies and the most suspicious pairs come from all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import Neighbors
from finc_eval.memorization.copying import MeasureName, TailName
from finc_eval.memorization.hashes import HASHES, PLAIN_VIEWS, TRAIN_VIEWS, base_hashes, nearest_by_hash, query_views
from finc_eval.memorization.kept_steps import KeptSteps
from finc_eval.memorization.result import SuspiciousPair
from finc_eval.memorization.settings import AuditSettings
from finc_eval.memorization.tails import Power, calibrated_distances, least_copies, powers
from finc_eval.memorization.verdict import CopiesFound
from finc_eval.memorization.views import SUSPECTS, SuspectViews, altered_distances, multi_view_distances

NO_PICTURES = (
    "the pictures are not at hand: copies that are mirrored, cropped, shifted or compressed again are looked for in "
    "the embeddings alone, without perceptual hashes and views"
)

NO_SHIFTS = (
    "the sets are so large that hashes of shifted views are left out: a copy that is shifted by several percent, or "
    "cropped elsewhere than at a corner or around the center, may not be seen by its hash"
)


@dataclass(frozen=True, eq=False)
class Near:
    """Nearness to the training set, one way."""

    gen: NDArray[np.float64]  # calibrated distances of generated samples, shape (n,)
    fresh: NDArray[np.float64]  # the same of fresh samples, shape (m,)
    partners: NDArray[np.int64]  # index of the training sample that each generated one is nearest to, shape (n,)

    @classmethod
    def of(cls, gen: Neighbors, fresh: Neighbors) -> Near:
        """Compute it from the nearest training samples of generated and of fresh samples."""
        return cls(calibrated_distances(gen.distances), calibrated_distances(fresh.distances), gen.indices[:, 0])


@dataclass(frozen=True, eq=False)
class Nearness:
    """Nearness of generated and fresh samples to the training set."""

    ways: dict[TailName, Near]  # nearness by each measure that could be computed, first by embedding
    # bits in which each sample's hash differs from the nearest, of generated and of fresh samples; None without
    # pictures
    bits: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    # calibrated distances by hash of altered copies, planted on purpose, by alteration
    planted: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    base: NDArray[np.uint8] | None = None  # hashes of the training pictures; None without pictures
    embed: SuspectViews | None = None  # embeddings of views, as far as they are made; None without any

    def copies(
        self,
        sets: tuple[Embeddings, Embeddings],
        train: Embeddings,
        equal: tuple[int, int],
        alpha: float,
        ways: Collection[MeasureName],
    ) -> CopiesFound:
        """Count copies.

        `equal` generated and fresh samples have the embedding of a training sample; `ways` show copies according to the
        holdout.
        """
        bounds = {
            name: least_copies(near.gen, near.fresh, alpha) if name in ways else 0 for name, near in self.ways.items()
        }
        best = max(bounds, key=lambda name: bounds[name])
        bits, (gen, fresh) = None, sets
        if self.bits and bounds["hash"]:
            lowest = np.argsort(self.ways["hash"].gen, kind="stable")[: bounds["hash"]]
            bits = float(np.median(self.bits[0][lowest])), float(np.median(self.bits[1]))
        return CopiesFound(
            same_embedding=equal[0],
            fresh_same_embedding=equal[1],
            same_pixels=same_pixels(gen, train),
            fresh_same_pixels=same_pixels(fresh, train),
            at_least=bounds[best],
            shown_by=best if bounds[best] else None,
            hash_bits=bits,
        )

    def power(self, n: int, alpha: float, seed: int) -> tuple[Power, ...]:
        """Compute the power of the test by hash against altered copies among n samples, at a level."""
        rng = np.random.default_rng(seed)
        return tuple(
            power
            for kind, scores in self.planted.items()
            for power in powers("hash", kind, scores, self.ways["hash"].fresh, n, alpha, rng)
        )

    def pairs(self, gen: Embeddings, train: Embeddings, strata: list[str], count: int) -> tuple[SuspiciousPair, ...]:
        """Return the most suspicious pairs, those first that fewest fresh samples are as near as, by any measure."""
        names, nears = list(self.ways), self.ways.values()
        counts = [np.searchsorted(np.sort(near.fresh), near.gen, side="right") for near in nears]
        shares = np.stack([count / len(near.fresh) for count, near in zip(counts, nears, strict=True)])
        calibrated = np.stack([near.gen for near in nears])
        way = np.lexsort((calibrated, shares), axis=0)[0]
        every = np.arange(gen.n)
        share, distance = shares[way, every], calibrated[way, every]
        # Among equals, such as exact copies, the first in the set comes first.
        order = np.lexsort((every, distance, share))[:count]
        partners = np.array([self.ways[names[way[row]]].partners[row] for row in order])
        ours, theirs = gen.content(), train.content()
        same = None if ours is None or theirs is None else ours[order] == theirs[partners]
        apart = (gen.rows_at(order).cpu().double() - train.rows_at(partners).cpu().double()).norm(dim=1)
        ids, originals = gen.ids_at(order), train.ids_at(partners)
        return tuple(
            SuspiciousPair(
                gen=ids[number],
                train=originals[number],
                shown_by=names[way[row]],
                same_pixels=None if same is None else bool(same[number]),
                distance=float(apart[number]),
                hash_distance=int(self.bits[0][row]) if self.bits and names[way[row]] == "hash" else None,
                calibrated=float(distance[row]),
                fresh_share=float(share[row]),
                stratum=strata[row],
            )
            for number, row in enumerate(order.tolist())
        )


def find_nearness(
    sets: Mapping[str, Embeddings],
    train: Embeddings,
    by_embedding: tuple[Neighbors, Neighbors],
    settings: AuditSettings,
    run: Run,
    keep: KeptSteps,
    embed: SuspectViews | None,
) -> Nearness:
    """Measure how near samples are to the training set, and how near altered copies, planted on purpose, would be."""
    nearness = nearness_to(("train", train), sets, by_embedding, run, embed, keep=keep)
    if nearness.base is None:
        return nearness
    k, views = (
        by_embedding[0].distances.shape[1],
        query_views(max(embeddings.n for embeddings in sets.values()), train.n),
    )
    try:
        return replace(nearness, planted=altered_distances(train, nearness.base, k, views, settings.seed, run))
    except DataError as error:
        return replace(nearness, notes=(*nearness.notes, f"altered copies are not planted: {error}"))


def nearness_to(
    base: tuple[str, Embeddings],
    sets: Mapping[str, Embeddings],
    by_embedding: tuple[Neighbors, Neighbors],
    run: Run,
    embed: SuspectViews | None = None,
    viewed: Collection[str] = (),
    keep: KeptSteps | None = None,
) -> Nearness:
    """Measure how near samples are to a set: and if there are pictures, also by hash and over views.

    Views are embedded of suspects of the sets `viewed`, by default of both; `embed` has those of an earlier call.
    """
    nearness, (name, near_to) = Nearness({"calibrated": Near.of(*by_embedding)}), base
    if any(embeddings.images_at(np.arange(1)) is None for embeddings in (*sets.values(), near_to)):
        return replace(nearness, notes=(NO_PICTURES,))
    k, searched = (
        by_embedding[0].distances.shape[1],
        query_views(max(embeddings.n for embeddings in sets.values()), near_to.n),
    )
    sizes = [embeddings.n * len(searched) for embeddings in sets.values()]
    of_base, *of_sets = run.over(HASHES, [near_to.n * len(TRAIN_VIEWS), *sizes])
    keep = keep or KeptSteps(0)
    try:
        hashes: NDArray[np.uint8] = keep("hashes", np.ndarray, lambda: base_hashes(near_to, name, of_base))
        gen, fresh = (
            keep(
                f"hashes of {label}", Neighbors, partial(nearest_by_hash, embeddings, hashes, k, searched, label, part)
            )
            for (label, embeddings), part in zip(sets.items(), of_sets, strict=True)
        )
    except DataError as error:
        return replace(nearness, notes=(f"perceptual hashes and views are left out: {error}",))
    ways = nearness.ways | {"hash": Near.of(gen, fresh)}
    notes = [NO_SHIFTS] if searched == PLAIN_VIEWS else []
    try:
        embed = embed or SuspectViews(near_to, run)
        screens = [(near.gen, near.fresh) for near in ways.values()]
        moved, (of_fresh, _) = multi_view_distances(
            sets, screens, near_to, hashes, k, SUSPECTS, embed, run, viewed or tuple(sets)
        )
        ways["views"] = Near(moved[0], of_fresh, np.where(moved[1] < 0, ways["calibrated"].partners, moved[1]))
    except DataError as error:
        notes.append(f"views of suspects are left out: {error}")
    bits = gen.distances[:, 0], fresh.distances[:, 0]
    return Nearness(ways, bits, notes=tuple(notes), base=hashes, embed=embed)


def same_pixels(samples: Embeddings, train: Embeddings) -> int | None:
    """Count the samples that have the same pixels as a training sample; None if pixels are unknown."""
    ours, theirs = samples.content(), train.content()
    return None if ours is None or theirs is None else int(np.isin(ours, theirs).sum())
