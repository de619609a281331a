"""Measurements of some samples of sets, in which their looks are compared: of pictures, of motion, and of metadata.

Their columns are the values and the tails of each trait, and units or blocks exchange them between two sets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.embeddings.stored.turned import TURNED, TurnedRows, Turner
from finc_eval.extractors.networks import motion
from finc_eval.naming.columns import ColumnMeasurer, ColumnValues, RegisteredColumn, join_columns, registered_columns
from finc_eval.naming.explained import TAIL
from finc_eval.naming.likeness import LIKENESS, measure_likeness
from finc_eval.naming.numbers import Parts, Rows, read_numbers, say_left_out
from finc_eval.naming.properties import smallest_hashes
from finc_eval.naming.questions import MOTION
from finc_eval.naming.repeated import MIN_MEASURED
from finc_eval.naming.texture import Array, marks
from finc_eval.naming.traits import (
    LOOKS_OF_CLIPS,
    SIDE,
    TRAITS,
    MeasuredCourse,
    Trait,
    measure_clips,
    measure_course,
    measure_looks,
)
from finc_eval.numerics.blocks import MIN_BLOCKS, Blocked
from finc_eval.numerics.exchanges import Exchanged, UnitSums, exchange_units, flip_blocks, unit_numbers
from finc_eval.numerics.families import TIE

LOOKED = 1000  # samples of a set that are measured: a part of 5 % has 50 of these
CLIPPED = 4.0  # standard deviations at which values count no further


class Sampled(Protocol):
    """Samples with their units: what a test by exchanges needs of a set."""

    def unit_keys(self) -> NDArray[np.uint64]:
        """Return the key of the unit of each sample, (n,)."""

    def ids_at(self, rows: NDArray[np.int64], /) -> tuple[str, ...]:
        """Return the ids of samples, by their row numbers."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Traits of some samples of a set."""

    rows: NDArray[np.int64]  # indices of the samples in the set, shape (m,)
    values: Array  # shape (m, traits)
    pictures: PictureLooks | None = None  # what the pictures of these samples show


BINS = 16  # pages draw the share of samples in so many ranges of a trait, at most


@dataclass(frozen=True)
class TraitSpread(Record):
    """Shares of the samples of two sets by the value of a trait, in bins of as many samples of both sets together.

    Long tails are as wide as they have samples. Equal values are of one bin.

    Attributes:
        starts: smallest value in each bin, from low to high.
        shares: share of the measured samples of each set in each bin, by label.

    Example:
        >>> import numpy as np
        >>> from finc_eval.naming.measured import TraitSpread
        >>> spread = TraitSpread.of({"gen": np.array([0, 0, 0, 1]), "ref": np.array([0, 1, 1, 1])})
        >>> spread.starts, spread.shares["gen"], spread.shares["ref"]
        ((0.0, 1.0), (0.75, 0.25), (0.25, 0.75))
    """

    starts: tuple[float, ...]
    shares: dict[str, tuple[float, ...]]

    @classmethod
    def of(cls, values: Mapping[str, Array]) -> TraitSpread | None:
        """Count the values of each set, (n,) by label; None where all values are equal, or none is known."""
        known = {label: each[np.isfinite(each)] for label, each in values.items()}
        if not all(map(len, known.values())):
            return None
        pooled = np.concatenate([*known.values()])
        cuts = np.unique(np.quantile(pooled, np.arange(1, BINS) / BINS, method="lower"))
        bins = {label: np.searchsorted(cuts, each, side="right") for label, each in known.items()}
        used = np.unique(np.concatenate([*bins.values()]))
        if len(used) < 2:
            return None
        of_pooled = np.searchsorted(cuts, pooled, side="right")
        starts = tuple(float(pooled[of_pooled == number].min()) for number in used)
        shares = {label: np.bincount(each, minlength=BINS)[used] / len(each) for label, each in bins.items()}
        return cls(starts, {label: tuple(np.round(each, 4).tolist()) for label, each in shares.items()})


@dataclass(frozen=True, eq=False)
class PictureLooks:
    """Measurements of the pictures of a set."""

    values: Array  # built-in traits, shape (n, traits)
    residuals: NDArray[np.int8]  # what is left without the picture itself, in which marks are looked for, (n, SIDE²)
    likeness: NDArray[np.float32]  # likeness of pictures to themselves, shape (n, 5); see `measure_likeness`
    columns: dict[RegisteredColumn, ColumnValues]  # columns that a user registered
    turned: TurnedRows | None = None  # embeddings of some of the pictures upside down
    courses: tuple[MeasuredCourse | None, ...] = ()  # what each whole clip does over time; None for a picture


MeasuredSets = tuple[tuple[Trait, ...], dict[str, Measured]]  # traits, and measurements by set


def looked_rows(samples: Embeddings) -> NDArray[np.int64]:
    """Return the indices of the samples whose looks are compared: at most `LOOKED`, drawn by their ids."""
    return smallest_hashes(samples, LOOKED)


def left_out_columns(sets: Mapping[str, Embeddings], used: Collection[str | None] = ()) -> list[str]:
    """Return a sentence on each column of metadata that holds numbers and is not compared; see `say_left_out`."""
    return say_left_out(sets, {label: looked_rows(samples) for label, samples in sets.items()}, used)


def measure_sets(
    sets: Mapping[str, Embeddings],
    pictures: Mapping[str, PictureLooks | None] = MappingProxyType({}),
    run: Run | None = None,
) -> MeasuredSets:
    """Measure the samples of `looked_rows` of each set in all traits that all sets have.

    `pictures` has what `measure_pictures` returns for some of the sets, where it is known; see there for `run`.
    """
    rows = {label: looked_rows(samples) for label, samples in sets.items()}
    seen = _see_all(sets, pictures, run)
    of_pictures = _join_pictures(seen) if seen else None
    parts = [part for part in (_motion(sets, rows), of_pictures, read_numbers(sets, rows)) if part is not None]
    if len(sets) < 2 or not parts:
        return (), {}
    traits = tuple(trait for found, _ in parts for trait in found)
    return traits, {
        label: Measured(of_set, np.concatenate([values[label] for _, values in parts], 1), seen.get(label))
        for label, of_set in rows.items()
    }


def _motion(sets: Mapping[str, Embeddings], rows: Rows) -> Parts | None:
    """Read off embeddings how clips move; None for embeddings of another extractor."""
    if any(extractor_of(samples.space) != MOTION for samples in sets.values()):
        return None
    found = {label: motion.measurements(samples.rows_at(rows[label])).cpu().numpy() for label, samples in sets.items()}
    return LOOKS_OF_CLIPS, {label: measure_clips(values) for label, values in found.items()}


def measure_pictures(samples: Embeddings, run: Run | None = None) -> PictureLooks | None:
    """Measure the pictures of `looked_rows` of a set, each decoded once; None if they are not at hand.

    With a `run`, on whose device they are embedded, some of them are also embedded upside down; see `Turner`.
    """
    rows = looked_rows(samples)
    turner = None
    if run is not None and samples.are_images:
        turner = Turner.of(samples.space, samples.content(), rows, smallest_hashes(samples, TURNED), run)
    return _measure_at(samples, rows, column_measurer(samples, rows), turner)


def _measure_at(
    samples: Embeddings, rows: NDArray[np.int64], columns: ColumnMeasurer, turner: Turner | None = None
) -> PictureLooks | None:
    """Measure the pictures of some samples, a few at a time; None if they are not at hand.

    `rows` has the indices of the samples, shape (n,), and `columns` measures what users registered.
    """
    parts = [(np.empty((0, len(TRAITS))), np.empty((0, SIDE**2), np.int8))]
    likeness = [np.empty((0, len(LIKENESS)), np.float32)]
    courses: list[MeasuredCourse | None] = []
    for start in range(0, len(rows), 64):  # pictures in memory
        seen = samples.courses_at(rows[start : start + 64])
        if seen is None:
            return None
        images = [image for image, _ in seen]
        courses += [None if course is None else measure_course(course) for _, course in seen]
        parts.append(measure_looks(images))
        likeness.append(np.stack([measure_likeness(image) for image in images]))
        columns.add(range(start, start + len(images)), images)
        if turner is not None:
            turner.add(start, images)
    columns.keep()
    values, residuals = (np.concatenate(some) for some in zip(*parts, strict=True))
    turned = None if turner is None else turner.keep()
    return PictureLooks(values, residuals, np.concatenate(likeness), columns.found, turned, tuple(courses))


def column_measurer(samples: Embeddings, rows: NDArray[np.int64]) -> ColumnMeasurer:
    """Return what measures the registered columns of some samples, which knows the values that are kept of these."""
    columns = registered_columns()
    content = samples.content() if columns else None
    return ColumnMeasurer(columns, samples.ids_at(rows), None if content is None else content[rows])


def looks_of(samples: Embeddings) -> tuple[Trait, ...]:
    """Return the looks that each sample of a set has by itself: of motion, or else of pictures."""
    return LOOKS_OF_CLIPS if extractor_of(samples.space) == MOTION else tuple(t for t in TRAITS if t.name != "mark")


def measure_rows(samples: Embeddings, rows: NDArray[np.int64]) -> Array | None:
    """Measure the `looks_of` of some samples, shape (n, looks); None if the pictures are not at hand."""
    if extractor_of(samples.space) == MOTION:
        return measure_clips(motion.measurements(samples.rows_at(rows)).cpu().numpy())
    found = _measure_at(samples, rows, ColumnMeasurer((), (), None))
    return None if found is None else found.values[:, [trait.name != "mark" for trait in TRAITS]]


def _see_all(
    sets: Mapping[str, Embeddings], known: Mapping[str, PictureLooks | None], run: Run | None
) -> dict[str, PictureLooks]:
    """Return the measurements of the pictures of all sets; none of any where those of a set are not at hand."""
    seen: dict[str, PictureLooks] = {}
    for label, samples in sets.items():
        found = known[label] if label in known else measure_pictures(samples, run)
        if found is not None and not {*registered_columns()} <= {*found.columns}:  # registered since it was measured
            found = measure_pictures(samples, run)
        if found is None:
            return {}
        seen[label] = found
    return seen


def _join_pictures(seen: Mapping[str, PictureLooks]) -> Parts:
    """Join the measurements of pictures of all sets, among which marks are looked for."""
    values = {label: found.values.copy() for label, found in seen.items()}
    columns = [{column: found.columns[column] for column in registered_columns()} for found in seen.values()]
    ends = np.cumsum([len(value) for value in values.values()])[:-1]
    place = [trait.name for trait in TRAITS].index("mark")
    marked = np.split(marks(np.concatenate([found.residuals for found in seen.values()])), ends)
    for table, of_set in zip(values.values(), marked, strict=True):
        table[:, place] = of_set
    asked, of_users = join_columns(columns, [*map(len, values.values())])
    joined = zip(values.items(), of_users, strict=True)
    return (*asked, *TRAITS), {label: np.concatenate([users, looks], 1) for (label, looks), users in joined}


@dataclass(frozen=True)
class LookColumn:
    """A column of the family: a trait, or one of its tails."""

    place: int  # of the trait among the values
    trait: Trait
    tail: int  # 0 for the values, −1 and 1 for the indicators of the lower and of the upper tail


def columns_of(traits: Sequence[Trait], measured: Mapping[str, Measured]) -> tuple[dict[str, Array], list[LookColumn]]:
    """Return values and indicators of tails, standardized over both sets, (m, columns) by set, and what they are."""
    both = np.concatenate([one.values for one in measured.values()])
    parts, columns = [], []
    for place, trait in enumerate(traits):
        values = both[:, place]
        if np.ptp(values) == 0:
            continue
        low, high = np.quantile(values, [TAIL, 1 - TAIL])
        scale = 1.4826 * np.median(np.abs(values - np.median(values))) or values.std()
        standard = np.clip((values - np.median(values)) / scale, -CLIPPED, CLIPPED)
        choices = (
            [(0, standard), (-1, values < low), (1, values > high)]
            if trait.least is None
            else [(1, values >= trait.least)]
        )
        for tail, numbers in choices:
            if np.ptp(numbers.astype(float)):
                parts.append(numbers.astype(float))
                columns.append(LookColumn(place, trait, tail))
    table = np.stack(parts, 1) if parts else np.empty((len(both), 0))
    ends = np.cumsum([len(one.rows) for one in measured.values()])[:-1]
    return dict(zip(measured, np.split(table, ends), strict=True)), columns


def exchange_columns(
    table: Mapping[str, Array],
    sets: Mapping[str, Sampled],
    rows: Mapping[str, NDArray[np.int64]],
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None,
    exchanges: int,
) -> Exchanged | None:
    """Exchange units between the sets, or both sets within blocks; None if there are too few samples or blocks.

    Args:
        table: values of the samples, by set, shape (m, columns).
        sets: embeddings, "gen" and "ref".
        rows: indices of the samples, by set, shape (m,).
        seed: random seed of the exchanges.
        blocks: block of each sample of paired sets, by label.
        exchanges: number of exchanges.
    """
    if min(map(len, rows.values())) < MIN_MEASURED:
        return None
    if blocks is None:
        first, second = (
            _sum_units(table[label], unit_numbers(sets[label].unit_keys()[rows[label]])) for label in ("gen", "ref")
        )
        return exchange_units(first, second, seed, exchanges=exchanges)
    own = {label: blocks[label][rows[label]] for label in ("gen", "ref")}
    shared = np.intersect1d(own["gen"], own["ref"])
    if len(shared) < MIN_BLOCKS:
        return None
    inside = {label: np.isin(each, shared) for label, each in own.items()}
    number = np.concatenate([np.searchsorted(shared, each[inside[label]]) for label, each in own.items()])
    owner = np.repeat([0, 1], [inside[label].sum() for label in own])
    values = np.concatenate([table[label][inside[label]] for label in own])
    weights = Blocked(number, owner).contrasts[0]
    return flip_blocks(_sum_contrasts(values * weights[:, None], number), seed, exchanges)


def _sum_contrasts(values: Array, blocks: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the sums of weighted values of each block, shape (B, q); 0 where both sets have the same, up to rounding.

    What all samples of a block have leaves sums of about 1e-19 that all have one sign, and count as a clear difference.
    """
    sums, size = (_sum_units(each, blocks).sums for each in (values, np.abs(values)))
    return np.where(np.abs(sums) > TIE * size, sums, np.float32(0))


def _sum_units(values: Array, units: NDArray[np.int64]) -> UnitSums:
    count = int(units.max()) + 1
    sums = np.zeros((count, values.shape[1]), np.float64)
    np.add.at(sums, units, values)
    return UnitSums(sums.astype(np.float32), np.bincount(units, minlength=count).astype(float))
