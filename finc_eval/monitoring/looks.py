"""`Looks`: the memory of a monitor: counts of the bag, and a row of numbers for each look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.monitoring.exchange import BINS, MAX_BAG, Array, Counts, bins_of, score_of_ranks, score_of_shares
from finc_eval.monitoring.part import LookPart


@dataclass(eq=False)
class Looks:
    """Counts of all samples so far, with the reference, and what each look was.

    Its size depends on the number of looks and of followed things, and not on the number of samples.
    """

    shares: Counts  # units of the bag that have each share, and units, shape (shares, 2)
    bins: Counts  # values of the bag by bin, shape (scores, BINS)
    reference: Array  # sums of the reference, and their numbers, shape (things, 2)
    spread: Array  # standard deviation of the reference in each score, shape (scores,)
    steps: Array  # step of each look, shape (t,)
    sums: Array  # sums of each look, and their numbers, shape (t, things, 2)
    scores: Array  # scores of each look, NaN where it says nothing, shape (t, things)
    phi: Array  # sum of φ and number of samples of: the reference, the first look, the last look, shape (3, q + 1)
    distances: Array  # squared distances of each look in φ to these three, shape (t, 3)

    @classmethod
    def of(cls, part: LookPart) -> Self:
        """Begin with the reference, whose values give each score its spread."""
        things = len(part.sums)
        found = cls(
            part.shares,
            np.stack([np.bincount(bins_of(one), minlength=BINS) for one in part.scores]),
            part.sums,
            np.array([one.std() if len(one) > 1 else np.nan for one in part.scores]),
            np.empty(0),
            np.empty((0, things, 2)),
            np.empty((0, things)),
            np.zeros((3, len(part.phi) + 1)),
            np.empty((0, 3)),
        )
        found.phi[0] = np.append(part.phi, part.n)
        return found

    @property
    def looks(self) -> int:
        """Number of looks."""
        return len(self.steps)

    @property
    def samples(self) -> Array:
        """Number of samples of each look, shape (t,)."""
        return np.asarray(self.sums[:, 0, 1])

    @property
    def is_followed(self) -> NDArray[np.bool_]:
        """Mark whether there are samples of each thing at all, such as pictures for looks, shape (things,)."""
        return np.asarray(np.concatenate([self.shares[:, 1], self.bins.sum(1)]) > 0)

    def add(self, step: float, part: LookPart, seed: int) -> None:
        """Add a look, whose scores compare it to all before."""
        rng = np.random.default_rng([seed, self.looks])
        draws = rng.bit_generator.state  # random parts of a bag serve all scores whose bags have one size
        bins, of_scores = self.bins.copy(), []
        for before, values in zip(bins, part.scores, strict=True):
            own = bins_of(values)
            rng.bit_generator.state = draws
            of_scores.append(score_of_ranks(own, before, rng))
            before += np.bincount(own, minlength=BINS)
        scores = np.concatenate([score_of_shares(part.shares, self.shares, rng), of_scores])
        phi, now = self.phi.copy(), np.append(part.phi, part.n)
        if self.looks == 0:
            phi[1] = now
        apart = [_squared_distance(now, one) for one in phi]
        if self.looks == 0:
            apart[1:] = [0.0, 0.0]
        phi[2] = now
        vars(self).update(  # all at once: an error above leaves everything as it was
            shares=self.shares + part.shares,
            bins=bins,
            phi=phi,
            steps=np.append(self.steps, step),
            sums=np.concatenate([self.sums, part.sums[None]]),
            scores=np.concatenate([self.scores, scores[None]]),
            distances=np.concatenate([self.distances, np.array(apart)[None]]),
        )

    def means(self) -> Array:
        """Return the share or mean of each thing in each look, NaN without samples, shape (t, things)."""
        return _divide(self.sums)

    def before_and_after(self, start: int) -> tuple[Array, Array]:
        """Return the shares and means of the reference with the looks before `start`, and of the looks from it on."""
        before = self.reference + self.sums[:start].sum(0)
        return _divide(before), _divide(self.sums[start:].sum(0))

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        for name, values in vars(self).items():
            file.array(f"history/{name}", values)

    @classmethod
    def read(cls, file: StoredFile, things: int, shares: int, entries: int) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        steps = file.array("history/steps", None, dtype="<f8")
        t, scores = len(steps), things - shares
        shapes: dict[str, tuple[int, ...]] = {
            "reference": (things, 2),
            "spread": (scores,),
            "sums": (t, things, 2),
            "scores": (t, things),
            "phi": (3, entries + 1),
            "distances": (t, 3),
        }
        read = {name: file.array(f"history/{name}", *shape, dtype="<f8") for name, shape in shapes.items()}
        counts = {
            name: file.array(f"history/{name}", *shape, dtype="<i8")
            for name, shape in {"shares": (shares, 2), "bins": (scores, BINS)}.items()
        }
        has, units = counts["shares"].T
        few = max(units.max(initial=0), counts["bins"].max(initial=0), counts["bins"].sum(1).max(initial=0)) <= MAX_BAG
        finite = all(np.isfinite(read[name]).all() for name in ("reference", "sums", "phi", "distances"))
        numbers = (read["sums"][..., 1], read["reference"][..., 1], read["phi"][:, -1])  # of samples
        finite = finite and all((one >= 0).all() for one in numbers)
        finite = finite and min(read["reference"][0, 1], read["phi"][0, -1]) >= 1  # there is a reference
        finite = finite and bool((read["sums"][:, 0, 1] >= 1).all())  # a look has samples
        ordered = np.isfinite(steps).all() and (np.diff(steps) > 0).all()
        counted = few and (counts["bins"] >= 0).all() and (has >= 0).all() and (has <= units).all()
        if not (finite and ordered and counted):
            raise ValueError("its counts are not of samples")
        return cls(**counts, steps=steps, **read)


def _divide(sums: Array) -> Array:
    """Return sums over their numbers, NaN over 0."""
    found: Array = np.where(sums[..., 1] > 0, sums[..., 0] / np.maximum(sums[..., 1], 1), np.nan)
    return found


def _squared_distance(one: Array, other: Array) -> float:
    """Return the squared distance of two means of φ, without the bias of finite samples: each φ has the norm 1."""
    (a, n), (b, m) = ((each[:-1] / max(each[-1], 1), each[-1]) for each in (one, other))

    def inner(mean: Array, count: float) -> float:
        return (count * float(mean @ mean) - 1) / max(count - 1, 1)

    return inner(a, n) + inner(b, m) - 2 * float(a @ b)
