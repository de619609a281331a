"""The search: conventions in their order, and what lands on the number without being explained by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from math import sqrt

from finc_eval.conventions.opened import Ids
from finc_eval.conventions.quoted import MAX_EXACT, MAX_OTHER_SAMPLES, Quoted, Window
from finc_eval.conventions.table import (
    FIRST_HALF,
    SETS,
    Convention,
    Pair,
    joined,
    of_arithmetic,
    of_draws,
    of_parts,
    of_pixels,
    pairs_of,
)
from finc_eval.conventions.values import Key, Recomputed
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.progress import Stage, divide_stage
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.numerics.inference import normal_quantile

AS_IS = "nothing differs: it is the number that finc-eval gives"

FRESH = sqrt(2)
"""Standard errors between two numbers of independent samples, in standard errors of one of them."""

SCREENED = 500
"""Samples of each set that conventions of pixels are tried on first, if a set has more than twice as many."""

PAIR_SLACK, INTERACTION = 0.02, 1.5
"""Relative difference of a pair's number and the product of both effects, up to which it is computed: a constant, and
in smaller effects of the two. Of 72 pairs on two sets of digits, the difference beyond 2 % was at most 1.06 smaller
effects, except for two pairs of the square root and unit length."""

MAX_PAIRS, MAX_NEW_VIEWS = 100, 4
"""Pairs that are computed at most, and sets that are embedded for pairs at most."""


@dataclass(frozen=True)
class Landing:
    """Conventions whose number is the quoted number."""

    conventions: tuple[Convention, ...]
    value: float
    is_exact: bool = True
    by_chance: float = 0.0


@dataclass(eq=False)
class Search:
    """Search for the conventions of a number.

    Attributes:
        quoted: number to explain.
        values: numbers under any conventions.
        ids: names of the samples, by "gen" and "ref".
        run: device and progress.
        tried: number of conventions and pairs that were tried.
        not_tried: what the search left out, and why.
    """

    quoted: Quoted
    values: Recomputed
    ids: Ids
    run: Run
    tried: int = 0
    not_tried: list[str] = field(default_factory=list)
    _windows: list[Window] = field(default_factory=list)
    _predicted: dict[Convention, float] = field(default_factory=dict)  # numbers of whole sets by the effect on parts

    @cached_property
    def as_is(self) -> Landing:
        """The number without any other convention."""
        value = self.values.of({})
        return Landing((), value, self.quoted.lies_in(self.quoted.exact(value)))

    @cached_property
    def _error(self) -> float | None:
        """Relative standard error of the number over generated samples."""
        error, value = self.values.error({}), abs(self.as_is.value)
        return None if error is None or not value else error / value

    def error(self, landing: Landing) -> float | None:
        """Return the standard error between the number and that of other samples; None if it is not known."""
        error = self.values.error(joined(landing.conventions))
        return None if error is None else FRESH * error

    def landings(self) -> list[Landing]:
        """Return what lands on the number, the best first; steps end with the first that explains it."""
        sizes = {label: rows.n for label, rows in self.values.sets.items()}
        cheap = [*of_arithmetic(self.values.number.forms, [*self.values.outputs]), *of_parts(sizes, self.ids)]
        steps: tuple[Callable[[], list[Landing]], ...] = (
            lambda: self._each([(), *((convention,) for convention in cheap)]),
            self._of_pixels,
            lambda: self._each([(convention,) for convention in of_draws(sizes)]),
            lambda: self._by_other_samples(cheap),
            lambda: self._of_pairs(cheap),
        )
        for step in steps:
            if found := step():
                return found
            if self._is_crowded:
                break
        if self._is_crowded:
            self.not_tried.append(f"more conventions: {self.quoted.text} has too few digits to tell them apart")
        return []

    @property
    def _is_crowded(self) -> bool:
        return self.quoted.part_covered(self._windows) > MAX_EXACT

    def _each(self, conventions: Iterable[tuple[Convention, ...]]) -> list[Landing]:
        """Try conventions in their order."""
        return [landing for some in conventions if (landing := self._try(some)) is not None]

    def _try(self, conventions: tuple[Convention, ...]) -> Landing | None:
        """Compute the number under conventions, and return the landing if it is not by chance."""
        try:
            value = self.values.of(joined(conventions))
        except (DataError, IncompatibleError, UsageError):  # too few samples for this convention
            return None
        return self._seen(conventions, value)

    def _seen(self, conventions: tuple[Convention, ...], value: float) -> Landing | None:
        """Count a number, and return the landing if it has all digits and not too many other numbers would."""
        self.tried += 1
        self._windows.append(window := self.quoted.exact(value))
        if not self.quoted.lies_in(window):
            return None
        by_chance = self.quoted.part_covered(self._windows)
        return Landing(conventions, value, True, by_chance) if by_chance <= MAX_EXACT else None

    @cached_property
    def _pixels(self) -> list[tuple[str, str, list[Convention]]]:
        """Conventions of pixels: the knob, the name and its conventions, in turns of both knobs."""
        pictures = self.values.pictures
        if pictures is None:
            return []
        looks = [("look", name, of_pixels("look", name)) for name in pictures.looks]
        cards = [("card", name, of_pixels("card", name)) for name in pictures.cards]
        networks = [("card", name, of_pixels("card", name)[:1]) for name in pictures.networks]
        return [known for pair in zip_longest(looks, cards) for known in pair if known is not None] + networks

    def _of_pixels(self) -> list[Landing]:
        """Embed the sets in other ways, until a way explains the number."""
        if not self._pixels:
            return []
        part = self.values.of_part(SCREENED)
        values = part or self.values
        assert values.pictures is not None
        sizes = [len(source.ids) for source in values.pictures.sources.values()]
        progress = iter(divide_stage(self.run.progress, self._stage(sum(sizes)), sizes * len(self._pixels)))
        for knob, name, conventions in self._pixels:
            for label in SETS:
                values.embed((label, name, None) if knob == "look" else (label, None, name), next(progress))
            chosen = [single for single in conventions if part is None or self._may_land(part, single)]
            if found := self._each((single,) for single in chosen):
                return found
        return []

    def _stage(self, samples: int) -> Stage:
        return Stage(f"embed {plural(samples, 'image')} in {plural(len(self._pixels), 'other way')} at most")

    def _may_land(self, part: Recomputed, convention: Convention) -> bool:
        """Return whether a convention may give the number, by its effect on parts of the sets."""
        low, high = self._effect(part, convention.changes)
        before = self.as_is.value
        if before + low <= self.quoted.value <= before + high:
            return True
        self._predicted[convention] = before + (low + high) / 2
        self._seen((convention,), self._predicted[convention])
        return False

    def _number(self, convention: Convention) -> float | None:
        """Return the number under one convention, or what is predicted; None if it cannot be computed."""
        if convention in self._predicted:
            return self._predicted[convention]
        try:
            return self.values.of(convention.changes)
        except (DataError, IncompatibleError, UsageError):  # too few samples for this convention
            return None

    def _effect(self, part: Recomputed, changes: Mapping[str, object]) -> Window:
        """Return the range of the effect on whole sets, from parts and from halves of these.

        The effect on n samples differs from the effect on infinitely many by about 1/n: from both follows the effect
        on many. The range is three times what the two differ by, and half of the effect.
        """
        half = {f"{label}.rows": FIRST_HALF for label in SETS}
        of_part = part.of(changes) - part.of({})
        of_half = part.of({**changes, **half}) - part.of(half)
        effect = 2 * of_part - of_half
        reach = 3 * abs(of_part - of_half) + abs(effect) / 2
        return effect - reach, effect + reach

    def _by_other_samples(self, cheap: Sequence[Convention]) -> list[Landing]:
        """Return the conventions under which other samples of the same generator would give the number."""
        if self._error is None:
            return []
        found, windows = [], list[Window]()
        singles = [*cheap, *(single for _, _, some in self._pixels for single in some)]
        numbers = [((), self.as_is.value), *(((single,), self._number(single)) for single in singles)]
        for some, value in numbers:
            if value is None:
                continue
            reach = normal_quantile() * FRESH * self._error * abs(value)
            windows.append((value - reach, value + reach))
            by_chance = self.quoted.part_covered(windows)
            if by_chance > MAX_OTHER_SAMPLES:
                break
            if self.quoted.lies_in(windows[-1]) and not set(some) & self._predicted.keys():
                found.append(Landing(some, value, False, by_chance))
        return found

    def _of_pairs(self, cheap: Sequence[Convention]) -> list[Landing]:
        """Try two conventions at a time: those that may give the number by the effects of each."""
        singles = [
            *cheap,
            *(single for knob, _, some in self._pixels for single in (some if knob == "look" else some[:1])),
        ]
        place = {single.text: number for number, single in enumerate(singles)}
        pairs = sorted(pairs_of(singles), key=lambda pair: place[pair[0].text] + place[pair[1].text])
        expected = {pair: number for pair in pairs if (number := self._expected(pair)) is not None}
        chosen = self._near(expected)
        for pair, (value, _) in expected.items():
            if pair not in chosen:
                self._seen(pair, value)
            elif landing := self._try(pair):
                return [landing]
            if self._is_crowded:
                break
        return []

    def _near(self, expected: Mapping[Pair, tuple[float, float]]) -> set[Pair]:
        """Return the pairs that are computed: they may give the number, by what is expected of them."""
        gaps = {
            pair: abs(value - self.quoted.value) / (slack * abs(value)) if value else 1.0
            for pair, (value, slack) in expected.items()
        }
        chosen, views = set[Pair](), set[Key]()
        for pair in sorted(gaps, key=lambda pair: gaps[pair]):
            more = views.union(self.values.missing(joined(pair)))
            if gaps[pair] <= 1 and len(chosen) < MAX_PAIRS and len(more) <= MAX_NEW_VIEWS:
                chosen.add(pair)
                views = more
        if left := sum(gap <= 1 for gap in gaps.values()) - len(chosen):
            self.not_tried.append(f"{plural(left, 'pair')} of conventions that may give the number, too")
        return chosen

    def _expected(self, pair: Pair) -> tuple[float, float] | None:
        """Return the number if both effects are factors that are multiplied, and its relative error; None without."""
        before = self.as_is.value
        first, second = map(self._number, pair)
        if first is None or second is None or not before:
            return None
        slack = PAIR_SLACK + INTERACTION * min(abs(first / before - 1), abs(second / before - 1))
        return first * second / before, slack
