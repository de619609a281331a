"""Columns that a monitor follows besides looks: registered by the user, or numbers of the metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import IncompatibleError
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.monitoring.basis import FITTED, Basis
from finc_eval.monitoring.evaluations import EvaluationPart, Evaluations, join_parts
from finc_eval.monitoring.exchange import Array, Counts
from finc_eval.monitoring.followed import BEFORE, FLAGS, LOOKS, SCORES, say_share
from finc_eval.monitoring.left_out import trace_all
from finc_eval.monitoring.measuring import (
    PICTURES,
    measure,
    middles_of,
    with_own_repeats,
    without_aligned,
    without_copied,
    without_fitted,
)
from finc_eval.monitoring.seen import SeenRepeats
from finc_eval.monitoring.shown import SHOWN, Ends
from finc_eval.naming.columns import ColumnMeasurer, RegisteredColumn, answers_of, registered_columns
from finc_eval.naming.measured import column_measurer, looked_rows
from finc_eval.naming.numbers import column_of_note, read_column, read_numbers, start_of_note
from finc_eval.naming.traits import Trait

METADATA = "column "  # start of the name of a column of metadata

ANOTHER = "register the function that the monitor began with, or begin another monitor"


@dataclass(frozen=True)
class FollowedColumn(Record):
    """A column that a monitor follows, and all that its alarms need of it.

    Attributes:
        name: name of the column.
        is_flag: whether samples have it or not, rather than more or less of it.
        less: what samples with less of it are called.
        more: what samples with more of it are called.
        high: what a sample that has it is called.
        brings: names of looks and columns that change with it.
        middle: median of it in some samples of the reference.
        scale: standard deviation there, in which its values are compared; 1 if they are all the same.
        digest: digest of the code of its function; None of metadata, and of code that no digest holds.
        answers: what such a function returns for pictures of chance; () of other columns, and where it fails on these.
        function: the function itself, while the process runs that the monitor began in.
    """

    name: str
    is_flag: bool
    less: str
    more: str
    high: str
    brings: tuple[str, ...] = ()
    middle: float = 0.0
    scale: float = 1.0
    digest: str | None = None
    answers: tuple[float, ...] = ()
    function: Annotated[object, *NOT_IN_JSON] = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, trait: Trait, values: Array, column: RegisteredColumn | None = None) -> FollowedColumn:
        """Describe a column by what it is called and by its values in the reference."""
        less, more, high = (word or trait.name for word in (trait.less, trait.more, trait.high))
        scale = float(values.std()) or 1.0
        is_flag = trait.least is not None
        middle = float(np.median(values))
        digest = None if column is None else column.digest
        answers = () if column is None or digest is not None else answers_of(column)
        function = None if column is None else column.function
        return cls(trait.name, is_flag, less, more, high, trait.brings, middle, scale, digest, answers, function)

    def is_of(self, column: RegisteredColumn) -> bool:
        """Return whether a registered column has its function, as far as anything shows it."""
        if self.digest is not None:
            return column.digest == self.digest
        if self.function is not None:
            return self.function is column.function
        answers = answers_of(column)
        return len(answers) == len(self.answers) and np.allclose(answers, self.answers, rtol=1e-4, atol=1e-6)

    def __getstate__(self) -> dict[str, object]:
        """Leave out the function, which another process may not be able to have."""
        return vars(self) | {"function": None}

    def scaled(self, values: Array) -> Array:
        """Return values in standard deviations of the reference from its median, as histories keep them."""
        return (values - self.middle) / self.scale

    def called(self, *, is_more: bool) -> str:
        """Return what a change is called: "redder", or of what a sample has or has not, what samples with it are."""
        return self.high if self.is_flag and is_more else self.more if is_more else self.less

    def say(self, before: float, after: float, spread: float, other: str = BEFORE) -> str:
        """Return what has changed; see `finc_eval.monitoring.followed.say`."""
        if self.is_flag:
            return say_share(f"are {self.high}", before, after, other)
        is_more, size = after > before, f"{(after - before) / (spread * self.scale):+.1f} σ".replace("-", "−")
        return f"samples are on average {self.more if is_more else self.less} ({self.name} {size})"


def follow_columns(reference: Embeddings, fitted: NDArray[np.int64], rest: NDArray[np.int64]) -> list[FollowedColumn]:
    """Return the columns that the reference has: those with True or False first, as shares come before scores.

    A column of metadata is followed if it measures something: its values come again in another part of the reference.
    """
    rows = looked_rows(reference)[:PICTURES]  # these tell whether a column is True or False, and its scale
    found: list[FollowedColumn] = []
    images = reference.images_at(rows) if registered_columns() else None
    if images is not None:
        measurer = column_measurer(reference, rows)
        measurer.add(range(len(rows)), images)
        measurer.keep()
        for column, own in measurer.found.items():
            trait = column.trait(own.is_flag)
            found.append(FollowedColumn.of(trait, own.values, column))
    halves = {"gen": Subset(reference, fitted), "ref": Subset(reference, rest)}
    looked = {label: looked_rows(one) for label, one in halves.items()}
    traits, values = read_numbers(halves, looked) or ((), {})
    for place, trait in enumerate(traits):
        found.append(FollowedColumn.of(trait, values["ref"][:, place]))
    return sorted(found, key=lambda one: not one.is_flag)


def say_not_followed(columns: Sequence[FollowedColumn], samples: Embeddings) -> tuple[str, ...]:
    """Return a sentence on each column of metadata that a monitor cannot compare of an evaluation."""
    rows, followed = looked_rows(samples), [one.name for one in columns if one.name.startswith(METADATA)]
    said = []
    for name in (one.removeprefix(METADATA) for one in followed):
        if name not in samples.columns:
            said.append(f"{start_of_note(name)}: the evaluation does not have it")
        elif read_column(samples, name, rows) is None:
            said.append(f"{start_of_note(name)}: the evaluation has another text in it, or too few numbers")
    traits, _ = read_numbers({"gen": samples}, {"gen": rows}) or ((), {})
    new = [trait.name.removeprefix(METADATA) for trait in traits if trait.name not in followed]
    return (*said, *(f"{start_of_note(name)}: the monitor began without it" for name in new))


def notes_once(notes: Sequence[str], said: Sequence[str]) -> list[str]:
    """Return the notes of an evaluation, each once, without those on columns that a warning names already."""
    named = [column for text in said if (column := column_of_note(text)) is not None]
    return [note for note in dict.fromkeys(notes) if column_of_note(note) not in named]


def find_registered(columns: Sequence[FollowedColumn]) -> list[RegisteredColumn]:
    """Return the registered columns that a monitor follows.

    Raises:
        IncompatibleError: one of them is not registered, or has another function than when the monitor began.
    """
    known = {one.name: one for one in registered_columns()}
    found = []
    for one in columns:
        if one.name.startswith(METADATA):
            continue
        column = known.get(one.name)
        if column is None:
            raise IncompatibleError(f"this monitor follows the column {one.name!r}, which is not registered: {ANOTHER}")
        if not one.is_of(column):
            raise IncompatibleError(
                f"the column {one.name!r} has another function, or runs on another version of Python, than when this "
                f"monitor began: {ANOTHER}"
            )
        found.append(column)
    return found


def say_unchecked(columns: Sequence[FollowedColumn]) -> list[str]:
    """Say which columns of a stored monitor may have another function now: those that nothing checks."""
    return [
        f"the column {one.name!r} uses what no digest holds, and fails on pictures of chance: nobody can check whether "
        "its function is the same as when this monitor began"
        for one in columns
        if one.digest is None and not one.answers and not one.name.startswith(METADATA)
    ]


def with_columns(
    part: EvaluationPart,
    columns: Sequence[FollowedColumn],
    samples: Embeddings | None,
    counted: NDArray[np.bool_] | None,
) -> EvaluationPart:
    """Add the columns to a part, shares after all shares and scores after all scores; nothing without samples.

    Args:
        part: what is measured of these samples.
        columns: the columns.
        samples: the samples; None if none is left.
        counted: whether each sample counts in the tests, shape (n,); None: all count.
    """
    if not columns:
        return part
    rows = np.empty(0, np.int64) if samples is None else looked_rows(samples)
    own = np.ones(len(rows), bool) if counted is None else counted[rows]
    values = {} if samples is None else _measure(columns, samples, rows)
    known = [values.get(one.name, np.empty(0)) for one in columns]
    counts = [own[: len(one)] for one in known]
    flags = sum(one.is_flag for one in columns)
    sums = np.array([(one.sum(), len(one)) for one in known], np.float64)
    shares = [(one[has].sum(), has.sum()) for one, has in zip(known[:flags], counts, strict=False)]
    first = len(part.shares)
    ids = {} if samples is None else _ends(columns, values, samples, rows)
    return replace(
        part,
        shared=_with_places(part.shared, len(part.shares), flags, len(columns) - flags),
        shown=replace(part.shown, ids=part.shown.ids | ids),
        shares=np.concatenate([part.shares, np.array(shares, np.int64).reshape(flags, 2)]),
        scores=(
            *part.scores,
            *(
                column.scaled(one[has])
                for column, one, has in zip(columns[flags:], known[flags:], counts[flags:], strict=True)
            ),
        ),
        sums=np.concatenate([part.sums[:first], sums[:flags], part.sums[first:], sums[flags:]]),
    )


def _ends(
    columns: Sequence[FollowedColumn], values: dict[str, Array], samples: Embeddings, rows: NDArray[np.int64]
) -> dict[str, Ends]:
    """Return ids of samples with least and with most of each column; of what a sample has or has not, that have it."""
    found: dict[str, Ends] = {}
    for one in columns:
        own = values.get(one.name, np.empty(0))
        order = rows[: len(own)][np.argsort(own, kind="stable")]
        if one.is_flag:
            found[one.name] = (), samples.ids_at(rows[: len(own)][own > 0][:SHOWN])
        else:
            found[one.name] = samples.ids_at(order[:SHOWN]), samples.ids_at(order[::-1][:SHOWN])
    return found


def _with_places(shared: Counts, shares: int, flags: int, scores: int) -> Counts:
    """Return what things share with places for columns, which share nothing: a user's column is a cause of its own."""
    if len(shared) == 1:  # it is not asked which samples have what
        return shared
    zeros = np.insert(shared, [1 + shares] * flags + [len(shared)] * scores, 0, axis=0)
    return np.insert(zeros, [1 + shares] * flags + [len(shared)] * scores, 0, axis=1)


def by_name(columns: Sequence[FollowedColumn]) -> dict[str, FollowedColumn]:
    """Return columns by their names."""
    return {one.name: one for one in columns}


def overlap_with(columns: Sequence[FollowedColumn], overlap: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Return whether a new thing is of the same samples as a thing with an alarm, or a column with an alarm brings it.

    `overlap` tells the former, by the names of both.
    """
    brings = {one.name: one.brings for one in columns}
    return lambda new, told: new in brings.get(told, ()) or overlap(new, told)


def without_columns(of_scores: Array, columns: Sequence[FollowedColumn]) -> Array:
    """Return numbers of scores, (scores,), without those of columns, which come last."""
    return of_scores[: len(of_scores) - sum(not one.is_flag for one in columns)]


def measure_reference(
    reference: Embeddings,
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    basis: Basis,
    columns: Sequence[FollowedColumn],
    rng: np.random.Generator,
    *,
    prompts: NDArray[np.int64] | None,
    fits: Array | None,
    run: Run,
) -> tuple[EvaluationPart, Array, SeenRepeats]:
    """Measure a reference: the medians of its scores, (scores,), and its repeats, too.

    What is fitted to one part is counted in the other; what is not fitted at all is counted in both.

    Args:
        reference: the reference.
        rows: rows of the part that the basis is fitted to, and all others.
        basis: what is held fixed.
        columns: columns of the user.
        rng: draws the units of diversity.
        prompts: number of the prompt of each sample; None without prompts.
        fits: fit of each sample to its prompt; None if it is not known.
        run: device and portions.
    """
    of_fitted, of_rest = (
        partial(
            measure,
            Subset(reference, own),
            basis,
            rng,
            prompts=None if prompts is None else prompts[own],
            fits=None if fits is None else fits[own],
            run=run,
        )
        for own in rows
    )
    part = of_fitted()
    middles = middles_of(part, basis)
    parts = without_fitted(part, basis), without_copied(of_rest(middles=middles), basis)
    each = zip(parts, rows, strict=True)
    whole = join_parts(with_columns(part, columns, Subset(reference, own), None) for part, own in each)
    own = Subset(reference, rows[1][:FITTED])  # the radius of repeats follows from the others
    whole, repeats = with_own_repeats(whole, basis, trace_all(own, basis, run))
    whole, middles = without_aligned(whole, middles)
    # Values of columns are from their median.
    return whole, np.append(middles, np.zeros(sum(not one.is_flag for one in columns))), repeats


def _measure(columns: Sequence[FollowedColumn], samples: Embeddings, rows: NDArray[np.int64]) -> dict[str, Array]:
    """Return the values of each column in some samples, shape (n,); those that the samples do not have are left out."""
    found: dict[str, Array] = {}
    registered = find_registered(columns)
    content = samples.content() if registered else None
    measurer = ColumnMeasurer(registered, samples.ids_at(rows), None if content is None else content[rows])
    for start in range(0, len(rows) if registered else 0, PICTURES):
        images = samples.images_at(rows[start : start + PICTURES])
        if images is None:
            break
        measurer.add(range(start, start + len(images)), images)
    else:
        measurer.keep()
        found |= {column.name: own.values for column, own in measurer.found.items()}
    for one in columns:
        name = one.name.removeprefix(METADATA)
        if name != one.name and name in samples.columns:
            values = read_column(samples, name, rows)
            found |= {} if values is None else {one.name: values}
    flags = {one.name for one in columns if one.is_flag}
    return {name: (own >= 0.5).astype(np.float64) if name in flags else own for name, own in found.items()}


def spreads_of(
    names: Sequence[str], history: Evaluations, columns: Sequence[FollowedColumn]
) -> dict[str, float | None]:
    """Return the standard deviation of each followed score in the reference, by its name; None of shares."""
    scales, shares = {column.name: column.scale for column in columns}, len(history.shares)
    return {
        name: None if place < shares else history.spread_of(place) * scales.get(name, 1.0)
        for place, name in enumerate(names)
    }


def names_of_things(kinds: Sequence[str], shares: Sequence[str], columns: Sequence[FollowedColumn]) -> tuple[str, ...]:
    """Return the names of all followed things, shares before scores, and columns after all else of both."""
    flags, looks = (tuple(one.name for one in traits) for traits in (FLAGS, LOOKS))
    shared, scored = (tuple(one.name for one in columns if one.is_flag == is_flag) for is_flag in (True, False))
    return (*kinds, *shares, *flags, *shared, *SCORES, *looks, *scored)
