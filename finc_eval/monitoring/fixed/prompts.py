"""`FixedPrompts`: pictures of the same prompts at every evaluation, and what has changed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np
from PIL import Image

from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.thumbnails import Thumbnail, thumbnail
from finc_eval.monitoring.basis import Basis
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.evidence.saturation import saturation_of
from finc_eval.monitoring.evidence.units import prompts_of
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.fixed.ranks import score_of_pairs
from finc_eval.monitoring.followed import DISTANCE, LOOKS, MARK, say, words_of
from finc_eval.monitoring.measuring import PLACES
from finc_eval.monitoring.shown import Pictures, read_pictures, with_pictures, write_pictures
from finc_eval.monitoring.steps import step_text
from finc_eval.naming.traits import measure_looks
from finc_eval.numerics.families import closed_e_values
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, student_quantile

MARGIN = 0.2
"""Standard deviations of the reference that a change of fixed prompts must surely exceed: any step of training moves
all pictures a little, and pairs show it at once. The needed sentence of a monitor is about a shift of .3."""

MAX_STEPS_SHOWN = 24  # steps whose pictures are kept: a page has 192 of them, of about 2 kB
THINGS = (DISTANCE, *(look.name for look in LOOKS if look.name != MARK))  # followed things of each picture


@dataclass(frozen=True)
class FixedChange(Record):
    """A followed thing that has changed in the pictures of fixed prompts, surely by more than `MARGIN`.

    Attributes:
        name: name of the followed thing.
        step: step at which it was found.
        text: what has changed.
        first: its mean at the first evaluation.
        now: its mean at the last evaluation.
        interval: interval of the mean change of a prompt from the first to the last evaluation, at 95 %.
        e_value: its e-value, adjusted for all followed things of fixed prompts.
        finding: name of what it is, such as "more vivid".
    """

    name: str
    step: float
    text: str
    first: float
    now: float
    interval: tuple[float, float]
    e_value: float
    finding: str


@dataclass(frozen=True)
class FixedCourse(Record):
    """Pictures of fixed prompts over the evaluations that had them.

    Attributes:
        prompts: the prompts, or the ids of the pictures.
        steps: step of each evaluation with these pictures.
        moved: mean distance of each picture from the first of its prompt, in mean distances of two prompts at first.
        changes: what has changed, the largest evidence first; any is false with probability `Course.alpha` at most.
        pictures: thumbnails of some prompts by step.
    """

    prompts: tuple[str, ...]
    steps: tuple[float, ...]
    moved: tuple[float, ...]
    changes: tuple[FixedChange, ...]
    pictures: Annotated[dict[float, dict[str, Thumbnail]], *NOT_IN_JSON] = field(
        default_factory=dict, compare=False, repr=False
    )


@dataclass(frozen=True, eq=False)
class FixedPrompts:
    """Measurements of the pictures of fixed prompts, by evaluation.

    Attributes:
        names: the prompts, or the ids of the pictures.
        spreads: standard deviation of each thing in the reference, shape (k,), NaN if it is not followed.
        first: embeddings of the first evaluation, shape (n, d).
        steps: step of each evaluation.
        values: values of all pictures, shape (t, k, n), NaN where they are not known.
        scores: score of each thing, shape (t, k).
        moved: how far the pictures are from the first ones, shape (t,).
        found: step at which the change of each thing was found, shape (k,), NaN if it was not.
        pictures: thumbnails of some prompts by step.
    """

    names: tuple[str, ...]
    spreads: Array
    first: Array
    steps: Array
    values: Array
    scores: Array
    moved: Array
    found: Array
    pictures: Pictures

    @classmethod
    def of(cls, samples: Embeddings, prompts: Sequence[str] | None, spreads: Mapping[str, float | None]) -> Self:
        """Begin with the prompts of the first evaluation.

        Raises:
            UsageError: there are fewer than two.
        """
        if samples.n < 2:
            raise UsageError(f"{plural(samples.n, 'fixed picture')} cannot be compared pair by pair: give several")
        # 64: prompts that are followed at most, as their values of all evaluations are kept.
        k, rows = len(THINGS), np.arange(min(samples.n, 64))
        known = np.array([spreads[name] or np.nan for name in THINGS])
        return cls(
            tuple(names_of_pairs(samples, prompts)[: len(rows)]),
            known,
            samples.rows_at(rows).cpu().double().numpy(),
            np.empty(0),
            np.empty((0, k, len(rows))),
            np.empty((0, k)),
            np.empty(0),
            np.full(k, np.nan),
            {},
        )

    def with_step(
        self, step: float, samples: Embeddings, prompts: Sequence[str] | None, basis: Basis, alpha: float, run: Run
    ) -> FixedPrompts:
        """Return the same with an evaluation; a step that it has already changes nothing.

        Args:
            step: its step.
            samples: a picture of each prompt.
            prompts: the prompts; default: a column of the samples, or else their ids.
            basis: what is held fixed.
            alpha: probability of any false change.
            run: device and portions.

        Raises:
            IncompatibleError: the samples are not of the same prompts.
        """
        if len(self.steps) and step <= self.steps[-1]:
            return self
        rows = self._rows_of(names_of_pairs(samples, prompts))
        embedded = samples.rows_at(rows).cpu()
        images = samples.images_at(rows)
        values, shown = _measure(images, basis.distances(embedded, run)), _thumbnails(self.names, images)
        rng = np.random.default_rng(len(self.steps))
        scores = [
            score_of_pairs(own, before, rng) if np.isfinite(spread) else np.nan
            for own, before, spread in zip(values, np.moveaxis(self.values, 1, 0), self.spreads, strict=True)
        ]
        every = np.concatenate([self.scores, np.array(scores)[None]])
        all_values = np.concatenate([self.values, values[None]])
        is_sure = closed_e_values(weigh(every)) >= -np.log(alpha)
        is_large = [
            _is_beyond(first, last, spread)
            for first, last, spread in zip(all_values[0], values, self.spreads, strict=True)
        ]
        own, first = embedded.double().numpy(), self.first
        apart = np.linalg.norm(first[:, None] - first, axis=2)
        unit = apart.sum() / (len(first) * (len(first) - 1)) or 1.0
        pictures = with_pictures(self.pictures, step, shown, MAX_STEPS_SHOWN) if shown else self.pictures
        return FixedPrompts(
            self.names,
            self.spreads,
            first,
            np.append(self.steps, step),
            all_values,
            every,
            np.append(self.moved, np.linalg.norm(own - first, axis=1).mean() / unit),
            np.where(np.isnan(self.found) & is_sure & is_large, step, self.found),
            pictures,
        )

    def _rows_of(self, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        places = {name: row for row, name in enumerate(names)}
        lacking = [name for name in self.names if name not in places]
        if lacking:
            raise IncompatibleError(
                f"the fixed pictures lack {plural(len(lacking), 'prompt')} of the first evaluation, such as "
                f"{lacking[0]!r}: give a picture of each of them, with the same prompts or names of files"
            )
        return np.array([places[name] for name in self.names], np.int64)

    @property
    def course(self) -> FixedCourse:
        """The course of the fixed prompts so far."""
        e_values = np.exp(closed_e_values(weigh(self.scores)))
        order = [place for place in np.argsort(-e_values, kind="stable").tolist() if np.isfinite(self.found[place])]
        changes = tuple(self._change(place, float(e_values[place])) for place in order)
        return FixedCourse(self.names, tuple(self.steps.tolist()), tuple(self.moved.tolist()), changes, self.pictures)

    def _change(self, thing: int, e_value: float) -> FixedChange:
        """Describe a change by the pairs of the first and the last evaluation."""
        name, (first, now) = THINGS[thing], self.values[[0, -1], thing]
        both = np.isfinite(first) & np.isfinite(now)
        before, after = float(first[both].mean()), float(now[both].mean())
        return FixedChange(
            name,
            float(self.found[thing]),
            say(name, before, after, float(self.spreads[thing])),
            before,
            after,
            change_interval(first, now),
            e_value,
            words_of(name, after > before),
        )

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        write_pictures(file, "fixed/pictures", self.pictures)
        file.texts("fixed/names", self.names)
        for name in ("spreads", "first", "steps", "values", "scores", "moved", "found"):
            file.array(f"fixed/{name}", getattr(self, name))

    @classmethod
    def read(cls, file: StoredFile) -> Self | None:
        """Read what `write` wrote, None of a monitor without fixed prompts; call it in `content_of`."""
        if "fixed/steps" not in file.arrays:
            return None
        steps, names = file.array("fixed/steps", None, dtype="<f8"), tuple(file.texts("fixed/names").all())
        t, n, k = len(steps), len(names), len(THINGS)
        shapes = {"spreads": (k,), "first": (n, None), "values": (t, k, n), "scores": (t, k), "moved": (t,)}
        shapes |= {"found": (k,)}
        read = {name: file.array(f"fixed/{name}", *shape, dtype="<f8") for name, shape in shapes.items()}
        if not (np.isfinite(read["first"]).all() and np.isfinite(steps).all() and (np.diff(steps) > 0).all()):
            raise ValueError("its fixed prompts are not of pictures")
        pictures, _ = read_pictures(file, "fixed/pictures", MAX_STEPS_SHOWN)
        return cls(names, steps=steps, pictures=pictures, **read)


def change_interval(first: Array, now: Array) -> tuple[float, float]:
    """Return the interval of the mean change of a pair at 95 %, by the t distribution; infinite for fewer than two.

    Args:
        first: values at the first evaluation, shape (n,), NaN where they are not known.
        now: values of the same prompts now, shape (n,).
    """
    apart = (now - first)[np.isfinite(first) & np.isfinite(now)]
    if len(apart) < 2:
        return -np.inf, np.inf
    half = student_quantile(len(apart) - 1, DEFAULT_CONFIDENCE) * float(apart.std(ddof=1)) / len(apart) ** 0.5
    return float(apart.mean()) - half, float(apart.mean()) + half


def _measure(images: Sequence[Image.Image] | None, distances: Array) -> Array:
    """Return the values of all things, shape (k, n), from pictures, and distances of embeddings to the reference."""
    values = np.full((len(THINGS), len(distances)), np.nan)
    values[0] = distances
    if images is not None:
        looks = measure_looks(images)[0]
        looks[:, PLACES["saturation"]] = saturation_of(images)
        values[1:] = looks[:, [PLACES[name] for name in THINGS[1:]]].T
    return values


def _thumbnails(names: Sequence[str], images: Sequence[Image.Image] | None) -> dict[str, Thumbnail]:
    # 8 and 72: prompts whose pictures are shown, and pixels of their longer edge.
    named = zip(names[:8], images or (), strict=False)
    return {name: thumbnail(np.asarray(image.convert("RGB")), 72) for name, image in named}


def _is_beyond(first: Array, now: Array, spread: float) -> bool:
    """Return whether the mean change is surely larger than the margin."""
    low, high = change_interval(first, now)
    return bool(max(low, -high) > MARGIN * spread)


def names_of_pairs(samples: Embeddings, prompts: Sequence[str] | None) -> list[str]:
    """Return what pairs pictures of one prompt: the prompts, if all differ, or else the ids of the samples."""
    own = prompts_of(samples, prompts)
    if own is not None and len({*own}) == samples.n:
        return own
    return [*samples.ids_at(np.arange(samples.n))]


def say_fixed(course: FixedCourse) -> str:
    """Say what has changed in the pictures of fixed prompts; "" if nothing has."""
    if not course.changes:
        return ""
    texts = [f"since step {step_text(change.step)} or before, {change.text}" for change in course.changes[:2]]
    more = len(course.changes) - len(texts)
    further = f" and {plural(more, 'further change')}" if more else ""
    return f"Pictures of {plural(len(course.prompts), 'fixed prompt')} have changed: {'; '.join(texts)}{further}."
