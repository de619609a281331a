"""`Evaluations`: the memory of a monitor: counts of the bag, and a row of numbers for each evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.words import plural
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.evidence.change_points import ChangePoint, estimate_change
from finc_eval.monitoring.evidence.classifiers import AskedSamples, Classifiers
from finc_eval.monitoring.exchange import BINS, MAX_BAG, Array, Counts, bins_of, score_of_ranks, score_of_shares
from finc_eval.monitoring.shown import ShownSamples

RECENT = 8  # last evaluations whose shared samples are kept: an alarm comes a few evaluations after a change
TRACED = 512  # samples of an evaluation that are traced


@dataclass(frozen=True)
class EvaluationPart:
    """Measurements of the samples that one process has of an evaluation; those of several processes add up by `+`.

    Everything is in the order of the followed things, shares before scores.
    """

    n: int  # number of samples
    shares: Counts  # independent units that have it, and units, shape (shares, 2)
    scores: tuple[Array, ...]  # values of independent units, for each score
    sums: Array  # sum over all samples, or pairs of samples, and their number, for what is shown, shape (things, 2)
    phi: Array  # sum of φ over all samples, shape (q,)
    traces: Array  # random projections of the first samples, by which those of the same seeds are known, shape (m, 16)
    counted: NDArray[np.bool_]  # whether each of these samples counts in the tests, shape (m,)
    shared: Counts = field(default_factory=lambda: np.zeros((1, 1), np.int64))  # see `causes.count_shared`
    shown: ShownSamples = field(default_factory=lambda: ShownSamples())  # what is shown of the samples
    broken: int = 0  # samples that are left out because they are not finite
    known: int = 0  # samples that are left out because they are samples of the reference
    notes: tuple[str, ...] = ()  # what to know of the samples, such as how many could not be read
    asked: AskedSamples = field(default_factory=AskedSamples)  # samples that classifiers are asked about

    def __add__(self, other: EvaluationPart) -> EvaluationPart:
        traces = np.concatenate([self.traces, other.traces])[:TRACED]
        counted = np.concatenate([self.counted, other.counted])[:TRACED]
        return EvaluationPart(
            self.n + other.n,
            self.shares + other.shares,
            tuple(np.concatenate(pair) for pair in zip(self.scores, other.scores, strict=True)),
            self.sums + other.sums,
            self.phi + other.phi,
            traces,
            counted,
            self.shared + other.shared,
            self.shown + other.shown,
            self.broken + other.broken,
            self.known + other.known,
            self.notes + other.notes,
            self.asked + other.asked,
        )

    @property
    def brought(self) -> int:
        """Number of samples, with those that are left out."""
        return self.n + self.known + self.broken


def join_parts(parts: Iterable[EvaluationPart]) -> EvaluationPart:
    """Join the parts of an evaluation, at least one."""
    return reduce(EvaluationPart.__add__, parts)


@dataclass(eq=False)
class Evaluations:
    """Counts of all samples so far, with the reference, and what each evaluation was.

    Its size depends on the number of evaluations and of followed things, and not on the number of samples.
    """

    shares: Counts  # units of the bag that have each share, and units, shape (shares, 2)
    bins: Counts  # values of the bag by bin, shape (scores, BINS)
    reference: Array  # sums of the reference, and their numbers, shape (things, 2)
    spread: Array  # standard deviation of the reference in each score, shape (scores,)
    steps: Array  # step of each evaluation, shape (t,)
    sums: Array  # sums of each evaluation, and their numbers, shape (t, things, 2)
    scores: Array  # scores of each evaluation, NaN where it says nothing, shape (t, things)
    phi: Array  # sum of φ and number of samples: of the reference, the first and the last evaluation, shape (3, q + 1)
    distances: Array  # squared distances of each evaluation in φ to these three, shape (t, 3)
    shared: Counts  # of the reference, and of the last evaluations: `causes.count_shared`, (1 + `RECENT`, k + 1, k + 1)
    middles: Array  # medians of scores in the reference, beyond which a sample has more of it, shape (scores,)
    classifiers: Classifiers | None = None  # what is asked about each evaluation

    @classmethod
    def of(cls, part: EvaluationPart, middles: Array | None = None, classifiers: Classifiers | None = None) -> Self:
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
            part.shared[None],
            np.full(len(part.scores), np.nan) if middles is None else middles,
            classifiers,
        )
        for place, counts in ({} if classifiers is None else classifiers.followed_parts()).items():
            found.reference[place] = counts
        found.phi[0] = np.append(part.phi, part.n)
        return found

    @property
    def count(self) -> int:
        """Number of evaluations."""
        return len(self.steps)

    @property
    def samples(self) -> Array:
        """Number of samples of each evaluation, shape (t,)."""
        return np.asarray(self.sums[:, 0, 1])

    @property
    def is_followed(self) -> NDArray[np.bool_]:
        """Mark whether there are samples of each thing at all, such as pictures for flags, shape (things,)."""
        found = np.concatenate([self.shares[:, 1], self.bins.sum(1)]) > 0
        found[[*({} if self.classifiers is None else self.classifiers.followed_parts())]] = True
        return np.asarray(found)

    def add(
        self, step: float, part: EvaluationPart, seed: int, scored: Mapping[int, float] = MappingProxyType({})
    ) -> None:
        """Add an evaluation, whose scores compare it to all before; `scored` has those of shares of another law."""
        rng = np.random.default_rng([seed, self.count])
        draws = rng.bit_generator.state  # random parts of a bag serve all scores whose bags have one size
        bins, of_scores = self.bins.copy(), []
        for before, values in zip(bins, part.scores, strict=True):
            own = bins_of(values)
            rng.bit_generator.state = draws
            of_scores.append(score_of_ranks(own, before, rng))
            before += np.bincount(own, minlength=BINS)
        scores = np.concatenate([score_of_shares(part.shares, self.shares, rng), of_scores])
        scores[[*scored]] = [*scored.values()]
        phi, now = self.phi.copy(), np.append(part.phi, part.n)
        if self.count == 0:
            phi[1] = now
        apart = [squared_distance(now, one) for one in phi]
        if self.count == 0:
            apart[1:] = [0.0, 0.0]
        phi[2] = now
        asked = None if self.classifiers is None else self.classifiers.with_evaluation(part.asked, rng)
        vars(self).update(  # all at once: an error above leaves everything as it was
            shares=self.shares + part.shares,
            bins=bins,
            phi=phi,
            steps=np.append(self.steps, step),
            sums=np.concatenate([self.sums, part.sums[None]]),
            scores=np.concatenate([self.scores, scores[None]]),
            distances=np.concatenate([self.distances, np.array(apart)[None]]),
            classifiers=asked,
            shared=np.concatenate([self.shared[:1], np.concatenate([self.shared[1:], part.shared[None]])[-RECENT:]]),
        )

    def join(self, parts: Iterable[EvaluationPart]) -> EvaluationPart:
        """Join the parts of all processes; raise an error for parts of another monitor."""
        found = [*parts] if isinstance(parts, Iterable) else []
        wrong = next((one for one in found if not isinstance(one, EvaluationPart)), None)
        if not found or wrong is not None:
            what = type(parts).__name__ if not isinstance(parts, Iterable) else "an empty list"
            what = what if wrong is None else type(wrong).__name__
            raise UsageError(f"parts must be a list of what measure returned on each process, got {what}")
        for one in found:
            if one.shares.shape != self.shares.shape or len(one.phi) + 1 != self.phi.shape[1]:
                raise IncompatibleError(
                    f"a part has {plural(len(one.shares), 'share')}, and this monitor {len(self.shares)}: load the "
                    "same file of a monitor on each process, and measure with it"
                )
        return join_parts(found)

    def evidence(self, count: int | None = None) -> Array:
        """Return the logarithm of the e-value of each thing after some evaluations, default: all, shape (things,).

        Those of new kinds and of parts are of classifiers, too; see `Classifiers.add_evidence`.
        """
        found = weigh(self.scores[:count])
        return found if self.classifiers is None else self.classifiers.add_evidence(found, count)

    def means(self) -> Array:
        """Return the share or mean of each thing in each evaluation, NaN without samples, shape (t, things)."""
        return means_of(self.sums)

    def before_and_after(self, start: int) -> tuple[Array, Array]:
        """Return the shares and means of the reference with the evaluations before `start`, and from it on."""
        before = self.reference + self.sums[:start].sum(0)
        return means_of(before), means_of(self.sums[start:].sum(0))

    def change_of(self, thing: int, raised: int) -> ChangePoint:
        """Estimate the change of a thing whose alarm was raised at an evaluation, by the number of this."""
        place = thing - len(self.shares)
        spread = self.spread[place] if place >= 0 else np.nan
        variance = None if place < 0 else float(spread**2) or 1.0 if np.isfinite(spread) else 1.0
        sums = self.sums[:, thing]
        sums = sums if self.classifiers is None else self.classifiers.look_back(thing, sums)
        return estimate_change(sums, self.reference[thing], raised, variance)

    def spread_of(self, thing: int) -> float:
        """Return the standard deviation of a score in the reference; 1 of a share, and where all values are equal."""
        place = thing - len(self.shares)
        return float(self.spread[place]) or 1.0 if place >= 0 else 1.0

    def shared_before_and_after(self, before: int, since: int) -> tuple[Counts, Counts]:
        """Return what two things share in the reference with the evaluations before one, and from another on.

        Of the evaluations, the last `RECENT` are known.
        """
        first, start = (min(max(one - self.count + len(self.shared), 1), len(self.shared)) for one in (before, since))
        return self.shared[:first].sum(0), self.shared[start:].sum(0)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        for name, values in vars(self).items():
            if name != "classifiers":
                file.array(f"history/{name}", values)
        if self.classifiers is not None:
            self.classifiers.write(file)

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
            "middles": (scores,),
        }
        read = {name: file.array(f"history/{name}", *shape, dtype="<f8") for name, shape in shapes.items()}
        counts = {
            name: file.array(f"history/{name}", *shape, dtype="<i8")
            for name, shape in {
                "shares": (shares, 2),
                "bins": (scores, BINS),
                "shared": (1 + min(t, RECENT), things + 1, things + 1),
            }.items()
        }
        has, units = counts["shares"].T
        few = max(units.max(initial=0), counts["bins"].max(initial=0), counts["bins"].sum(1).max(initial=0)) <= MAX_BAG
        finite = all(np.isfinite(read[name]).all() for name in ("reference", "sums", "phi", "distances"))
        numbers = (read["sums"][..., 1], read["reference"][..., 1], read["phi"][:, -1])  # of samples
        finite = finite and all((one >= 0).all() for one in numbers)
        finite = finite and min(read["reference"][0, 1], read["phi"][0, -1]) >= 1  # there is a reference
        finite = finite and bool((read["sums"][:, 0, 1] >= 1).all())  # an evaluation has samples
        ordered = np.isfinite(steps).all() and (np.diff(steps) > 0).all()
        counted = few and (counts["bins"] >= 0).all() and (has >= 0).all() and (has <= units).all()
        counted = counted and bool(
            (counts["shared"] >= 0).all() and (counts["shared"] <= counts["shared"][:, :1, :1]).all()
        )
        if not (finite and ordered and counted):
            raise ValueError("its counts are not of samples")
        return cls(**counts, steps=steps, **read, classifiers=Classifiers.read(file, t, shares))


def means_of(sums: Array) -> Array:
    """Return sums over their numbers, NaN over 0."""
    found: Array = np.where(sums[..., 1] > 0, sums[..., 0] / np.maximum(sums[..., 1], 1), np.nan)
    return found


def squared_distance(one: Array, other: Array) -> float:
    """Return the squared distance of two means of φ, without the bias of finite samples: each φ has the norm 1.

    Args:
        one: sum of φ, and the number of samples, shape (q + 1,).
        other: the same of other samples.
    """
    (a, n), (b, m) = ((each[:-1] / max(each[-1], 1), each[-1]) for each in (one, other))

    def inner(mean: Array, count: float) -> float:
        return (count * float(mean @ mean) - 1) / max(count - 1, 1)

    return inner(a, n) + inner(b, m) - 2 * float(a @ b)
