"""`compare_methods`: the directions of several methods on the same two sets, grouped by the samples they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import ClassVar, Self, Unpack

import numpy as np
import torch
from pydantic import model_validator

from finc_eval.comparison.compare import DIRECTIONS, compare_opened
from finc_eval.comparison.direction import ROLES, SETS_OF, Direction, Role
from finc_eval.comparison.inputs import SKETCH, SketchedSet, sketch_sets
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.score_pass import SCORE
from finc_eval.comparison.settings import DIRECTION_METHODS, AnyMethod, Options, Settings, methods_of, settings_of
from finc_eval.comparison.side_by_side import SideBySide
from finc_eval.core.errors import UsageError
from finc_eval.core.progress import Stage
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, show_options
from finc_eval.core.run import Run
from finc_eval.embeddings.repeats import LOOK
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.numerics.inference import ALPHA
from finc_eval.numerics.precision import arithmetic

SAME_GROUP_CORRELATION = 0.7
"""Correlation of what samples add to the masses of two directions from which on they are grouped. On the demo's digits
it is 0.71 to 0.98 for directions of one digit, and 0.6 at most for directions of two digits."""


@dataclass(frozen=True)
class DirectionGroup(Record):
    """Directions of several methods that show the same samples, grouped around the direction found first.

    Attributes:
        name: a letter, or more.
        role: role of all its directions.
        modes: ids of the directions of each method that has some, best first; the first of all was found first.
    """

    name: str
    role: Role
    modes: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class MethodComparison(SideBySide):
    """The directions that several methods find on the same two sets.

    Attributes:
        comparisons: comparison of the two sets by each method.
        groups: groups of the directions of all methods, first with more and then with less mass in the generated
            set, in the order in which they were found.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.compare_methods(*example_sets(), ["finc", "rarity"], features=500, modes=3)
        >>> list(found.comparisons)
        ['finc', 'rarity']
    """

    type_name: ClassVar[str] = "methods"
    page: ClassVar[str] = "finc_eval.comparison.pages.methods"

    comparisons: dict[str, Comparison]
    groups: tuple[DirectionGroup, ...]

    warnings = SideBySide.all_warnings

    @property
    def rows(self) -> Mapping[str, Comparison]:
        """The comparison by each method."""
        return self.comparisons

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        grouped = {(method, id) for group in self.groups for method, ids in group.modes.items() for id in ids}
        found = {(method, direction.id) for method, direction in self.directions}
        if grouped != found or not all(any(group.modes.values()) for group in self.groups):
            raise ValueError("has groups that do not match its directions")
        return self

    def group_of(self, method: str, direction: Direction) -> DirectionGroup:
        """Return the group that holds a direction of a method."""
        return next(group for group in self.groups if direction.id in group.modes.get(method, ()))

    def shown_direction(self, group: DirectionGroup) -> Direction:
        """Return the direction that shows a group: its first significant, or else its first direction."""
        directions = [direction for method, direction in self.directions if direction.id in group.modes.get(method, ())]
        return next((direction for direction in directions if direction.p_value <= ALPHA), directions[0])

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of both sets that a page shows: of one direction of each group."""
        directions = [self.shown_direction(group) for group in self.groups]
        return {
            label: [name for direction in directions for name in direction.shown(label, self.shown)]
            for label in SETS_OF["over"]
        }

    def _frame_rows(self) -> list[dict[str, object]]:
        return [
            {"method": method, "group": self.group_of(method, direction).name, **direction.frame_row()}
            for method, direction in self.directions
        ]

    def _summary(self) -> str:
        texts = ", ".join(f"{method} {len(found)}" for method, found in self.significant.items())
        return f"directions with p ≤ 0.05: {texts}; {len(self.groups)} groups"


@show_options(Settings)
@arithmetic()
def compare_methods(
    gen: object,
    ref: object,
    methods: Sequence[AnyMethod | str] | AnyMethod | str = DIRECTION_METHODS,
    settings: Settings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> MethodComparison:
    """Compare two sets by FINC and the baselines of its paper, and group the directions that show the same samples.

    All methods share sets, feature map, folds and tests, and differ in nothing but in how they find directions. Each is
    tested as a family of its own, so that every method is another chance of a false discovery.

    Args:
        gen: generated set: embeddings, as `compare` takes them; a sketch does for "finc" alone.
        ref: reference set, in any of the same forms.
        methods: methods in the order of the columns: names ("finc", "ken", "rarity", "fld") or instances; a single
            method need not be in a list. Kinds have no directions: `kinds` finds them.
        settings: settings of the comparison; its method does not count.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, which override `settings`.

    Raises:
        UsageError: no method is named, a method is named twice or has no directions, or a setting is out of range.
        DataError: a set cannot be used, or not by every method.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions or feature maps.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.compare_methods(*example_sets(), ["finc", "rarity"], features=500, modes=3)
        >>> found.groups[0].role
        'over'
    """
    run = Run.of(run)
    chosen = methods_of(methods)
    run = run.planned(LOOK, SKETCH, *(Stage.of_parts(each.name, (DIRECTIONS, SCORE)) for each in chosen))
    if not chosen:
        raise UsageError(f"no method was named: name some of {', '.join(DIRECTION_METHODS)}")
    opened = sketch_sets({"gen": gen, "ref": ref}, settings_of(settings, options), run, extractor)
    comparisons: dict[str, Comparison] = {}
    for method in chosen:
        with_method = replace(opened.settings, method=method)
        comparisons[method.name] = compare_opened(opened, with_method, run.prefixed(method.name))
    groups = group_directions(comparisons, list(opened.sets.values()))
    return MethodComparison(comparisons, groups, provenance=Provenance.here(run.device))


def group_directions(comparisons: Mapping[str, Comparison], sets: Sequence[SketchedSet]) -> tuple[DirectionGroup, ...]:
    """Group directions by what the bottom-k samples of both sets add to the mass of their first tails, s₊².

    Directions are taken method by method, by rank. Each joins the group whose first direction it correlates with most,
    by `SAME_GROUP_CORRELATION` at least, or else is the first of a new group.
    """
    samples = torch.cat([sketch.sample[0] for sketch in sets])
    groups: list[DirectionGroup] = []
    for role in ROLES:
        by_method = [(method, listed) for method, comparison in comparisons.items() for listed in comparison.directions]
        found = [(method, listed) for method, listed in by_method if listed.role == role]
        if not found:
            continue
        vectors = torch.from_numpy(np.stack([listed.direction for _, listed in found])).to(samples)
        masses = (vectors @ samples.T).clamp_min(0).square()
        alike = masses.new_zeros(len(found), len(found))
        if len(samples) > 1:  # 0 for a direction that does not vary
            alike = torch.corrcoef(masses).reshape(len(found), -1).nan_to_num(0.0)
        firsts: dict[int, DirectionGroup] = {}
        for place, (method, direction) in enumerate(found):
            nearest = max(firsts, key=lambda first: float(alike[first, place]), default=None)
            if nearest is None or alike[nearest, place] < SAME_GROUP_CORRELATION:
                nearest = place
                firsts[place] = DirectionGroup(_letters(len(groups) + len(firsts)), role, {})
            ids = firsts[nearest].modes
            ids[method] = (*ids.get(method, ()), direction.id)
        groups += firsts.values()
    return tuple(groups)


def _letters(number: int) -> str:
    """Return A, B, …, Z, AA, AB, and so on."""
    more, last = divmod(number, len(ascii_uppercase))
    return (_letters(more - 1) if more else "") + ascii_uppercase[last]
