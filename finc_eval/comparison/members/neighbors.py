"""Members of modes, told by their neighbors.

A mode marks some samples of each fold: those beyond a threshold on a direction that was fitted to the fold, or those
of its clusters. A sample of the other fold is a member if enough of its nearest neighbors in that fold are marked, and
if the set that has more of the mode prevails around it. So the samples of a kind that a direction misses are members,
too, and most samples of other kinds that it touches are not; and no sample helps to decide whether it is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding_bag

from finc_eval.comparison.inputs import SketchedSet
from finc_eval.core.device import sent
from finc_eval.numerics.axes import PrincipalAxes
from finc_eval.numerics.folds import rows_of
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.folds import FoldChunk

NEIGHBORS = 16
"""Nearest samples that tell whether a sample is a member."""

MARKED = 0.24
"""Part of the neighbors of the set that has more, of which more must be marked: a direction marks perhaps half of the
samples of a loose kind."""

PREVAILS = 0.55
"""Part of the samples around a member that must be of the set that has more, if all sets were of one size."""

MARGIN = 0.12
"""Part by which it may be less than around marked samples, too: of a kind that one set has 1.5 times as often, the set
has .6 of the samples, give or take .04 around single ones.

Together the four were chosen on 18 draws of planted changes of photographs and digits and 6 of other designs, among 12
to 24 neighbors, a fifth to two fifths marked, and parts of .53 to .6, which hardly differ
(`benchmarks/inference_shares.py` has the errors of shares, also on other draws)."""

MIN_SAMPLES = 8 * NEIGHBORS
"""Samples that a fold needs: of fewer, neighbors are not near."""

MIN_MARKED = 10
"""Marked samples that a mode needs in each fold: of fewer, chance decides who has them near."""


@dataclass(frozen=True, eq=False)
class Marks:
    """Samples that t modes mark, among the bottom-k samples of all sets.

    Attributes:
        samples: by label of the set, which samples each mode marks, shape (m, t), on the CPU; only those of the set
            that has more of it.
        balance: by label, shape (t,): 1 for the set that has more of a mode, and −ρ times its weight for another.
    """

    samples: Mapping[str, torch.Tensor]
    balance: Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Samples among which neighbors are found, and what they tell of t modes; all on one device.

    Attributes:
        axes: axes of their coordinates.
        rows: coordinates, shape (m, k).
        marks: by how much each sample adds to the marked ones beyond the part that they must be, shape (m, t).
        lean: by how much the set that has more of a mode prevails around each sample beyond what it must, shape (m, t).
    """

    axes: PrincipalAxes
    rows: torch.Tensor
    marks: torch.Tensor
    lean: torch.Tensor

    @classmethod
    def of(cls, axes: PrincipalAxes, rows: torch.Tensor, marked: torch.Tensor, weights: torch.Tensor) -> Neighborhood:
        """Prepare to tell members.

        Args:
            axes: axes of the coordinates.
            rows: coordinates of samples, shape (m, k).
            marked: 1 where a mode marks a sample, else 0, shape (m, t).
            weights: of each sample, positive for those of the set that has more of a mode and negative for the others,
                with sums that are alike where the sets have it equally often; shape (m, t).
        """
        nearest = _nearest(rows, rows)
        own, all_ = (_pooled(nearest, one, "mean") for one in (weights.clamp_min(0), weights.abs()))
        around_marked = (own / all_ * marked).sum(0) / marked.sum(0).clamp_min(1)
        least = (around_marked - MARGIN).clamp_max(PREVAILS)
        return cls(axes, rows, marked - MARKED * (weights > 0), own - least * all_)

    @property
    def known(self) -> torch.Tensor:
        """The modes that mark samples, shape (t,), bool."""
        return (self.marks > 0).any(0)

    def members(self, rows: torch.Tensor) -> torch.Tensor:
        """Return which other samples are members of which modes: (n, d), on the device → (n, t)."""
        nearest = _nearest(self.axes(rows), self.rows)
        marks, lean = (_pooled(nearest, table, "sum") for table in (self.marks, self.lean))
        return (marks > 0) & (lean >= 0)


def _nearest(points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the places of the rows that are nearest to each point: (n, k), (m, k) → (n, `NEIGHBORS`)."""
    with arithmetic("float32"):
        # ‖x − y‖² without ‖x‖², which all y share.
        squared = rows.square().sum(1) - 2 * points @ rows.T
    return squared.topk(min(NEIGHBORS, len(rows)), largest=False).indices


def _pooled(nearest: torch.Tensor, table: torch.Tensor, how: Literal["sum", "mean"]) -> torch.Tensor:
    """Return the sum or mean of the rows of a table over the neighbors of each point: (n, k), (m, t) → (n, t)."""
    if not table.shape[1]:  # a comparison without modes; torch refuses tables without columns
        return table.new_zeros(len(nearest), 0)
    return embedding_bag(nearest, table, mode=how)


@dataclass(frozen=True, eq=False)
class SetMembers:
    """Members of a set, of each of t modes.

    Attributes:
        known: which modes mark enough samples to tell members, shape (t,).
        count: number of members, shape (t,).
        sample: which samples of the bottom-k sample are members, shape (m, t), on the CPU.
    """

    known: NDArray[np.bool_]
    count: NDArray[np.int64]
    sample: torch.Tensor


@dataclass(frozen=True, eq=False)
class Members:
    """Tells members of t modes in held-out data.

    Attributes:
        halves: samples of fold 0, which tell the members in fold 1, and those of fold 1.
        known: which modes mark enough samples, shape (t,).
    """

    halves: tuple[Neighborhood, Neighborhood]
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, sets: Mapping[str, SketchedSet], marks: Marks, axes: PrincipalAxes | None = None) -> Members | None:
        """Prepare to tell members; None where the sets keep too few samples.

        Args:
            sets: the sets.
            marks: what the modes mark among their samples.
            axes: axes of the coordinates; default: those of all samples together.
        """
        device = next(iter(sets.values())).sketch.feature_map.device
        kept = {label: [rows_of(one.sample_folds, fold) for fold in (0, 1)] for label, one in sets.items()}
        sizes = np.array([[len(rows) for rows in folds] for folds in kept.values()])
        if not sizes.all() or min(sizes.sum(0)) < MIN_SAMPLES:
            return None
        axes = (axes or PrincipalAxes.of(torch.cat([one.sketch.sample.rows for one in sets.values()]))).to(device)
        halves, enough = [], []
        for fold in (0, 1):
            places = {label: folds[fold] for label, folds in kept.items()}
            rows = torch.cat([sets[label].sketch.sample.rows[rows] for label, rows in places.items()])
            marked = torch.cat([marks.samples[label][rows] for label, rows in places.items()]).float()
            weights = [(marks.balance[label] / len(rows)).expand(len(rows), -1) for label, rows in places.items()]
            on_device = (sent(one, device) for one in (marked, torch.cat(weights)))
            halves.append(Neighborhood.of(axes, axes(sent(rows, device)), *on_device))
            enough.append(marked.sum(0) >= MIN_MARKED)
        return cls((halves[0], halves[1]), (enough[0] & enough[1]).numpy())

    def among(self, rows: torch.Tensor, fold: int) -> torch.Tensor:
        """Return which samples of a fold are members of which modes: (n, d), on the device → (n, t)."""
        return self.halves[1 - fold].members(rows)

    def of_sample(self, one: SketchedSet) -> SetMembers:
        """Tell the members in the bottom-k sample of a set."""
        folds, rows = one.sample_folds, one.sketch.sample.rows
        sample = torch.zeros(len(folds), len(self.known), dtype=torch.bool)
        for fold in (0, 1):
            mine = rows_of(folds, fold)
            sample[mine] = self.among(sent(rows[mine], one.sketch.feature_map.device), fold).cpu()
        return SetMembers(self.known, sample.sum(0).numpy(), sample)

    def whole(self, columns: Sequence[int]) -> Neighborhood:
        """Return the samples of both folds, with the modes in these columns, to tell members in fresh data.

        Modes that mark too few samples mark none.
        """
        first, second = self.halves
        chosen, known = torch.tensor(columns, dtype=torch.long), torch.from_numpy(self.known)
        places, tell = sent(chosen, first.rows.device), sent(known[chosen], first.rows.device)
        return Neighborhood(
            first.axes,
            torch.cat([first.rows, second.rows]),
            torch.cat([first.marks, second.marks])[:, places] * tell,
            torch.cat([first.lean, second.lean])[:, places],
        )


class MemberCount:
    """Counts the members of a set in one pass, on its device."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._count = torch.zeros(len(members.known), dtype=torch.long, device=members.halves[0].rows.device)

    def update(self, chunk: FoldChunk) -> None:
        """Add the samples of a chunk."""
        self._count += self._members.among(chunk.rows, chunk.fold).sum(0)

    def result(self) -> NDArray[np.int64]:
        """Return the number of members of each mode, shape (t,)."""
        return self._count.cpu().numpy()
