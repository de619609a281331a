"""The sets of a gate, opened together and paired: the new release, its baselines and the reference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.forms import named
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.needs import Check, Known, ListedSamples
from finc_eval.embeddings.opened import Sets
from finc_eval.embeddings.recipe import known_space
from finc_eval.embeddings.same_names import ID, names_of
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.findings.visible import Visible, find_visible
from finc_eval.naming.measured import MeasuredSets, PictureLooks, left_out_columns, measure_sets
from finc_eval.naming.properties import TEXT_COLUMNS
from finc_eval.partitions.answer import Answer
from finc_eval.partitions.blocks import Pairing, check_pair_column, designs, needs_pairs, pair
from finc_eval.partitions.counts import MIN_SAMPLES, countable_sets
from finc_eval.sketches.opening import SetInput

GEN, BASELINE, ANCHOR, REF = "gen", "baseline", "anchor", "ref"
"""Labels of the sets; with replicates, the baselines are called baseline-1, baseline-2 …"""


@dataclass(frozen=True)
class GateSets:
    """The sets of a gate."""

    gen: Embeddings
    baselines: dict[str, Embeddings]  # the baseline, or its replicates, by label; none for a first release
    anchor: Embeddings | None  # an old baseline, which slow drift is seen against; None without one
    ref: Embeddings
    opened: Sets[SetInput]  # the sets as they were opened, by label, neither paired nor divided
    extractor: AnyExtractor
    warnings: tuple[str, ...]
    replicates: tuple[str, ...]  # labels of the baselines that the noise of training is measured on
    again: dict[str, Embeddings] = field(default_factory=dict)  # further runs of the baseline, with the same ids
    # row of an older release that belongs to each row of `gen`, by its label; none if samples are not paired
    pairs: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    runs: dict[str, Embeddings] = field(default_factory=dict)  # the baselines, where the anchor stands for them
    part: str = ""  # name of the slice that these sets are; "" for whole sets
    # column whose values, such as prompts, the release and its baselines are compared within, or the column of groups,
    # if they share it; see `pair`
    blocks: tuple[str | None, str | None] = (None, None)

    @property
    def all(self) -> dict[str, Embeddings]:
        """All sets by label."""
        anchor = {} if self.anchor is None else {ANCHOR: self.anchor}
        return {GEN: self.gen, **self.baselines, **anchor, REF: self.ref}

    @property
    def space(self) -> str:
        """Extractor of the sets, as name@digest."""
        return known_space(one.space for one in self.all.values())

    @property
    def comparisons(self) -> tuple[GateSets, ...]:
        """These sets, and the same with the anchor as the baseline; none of what has no baseline."""
        own = (self,) if self.baselines else ()
        if self.anchor is None:
            return own
        return (*own, replace(self, baselines={ANCHOR: self.anchor}, anchor=None, runs=self.baselines))

    @property
    def compared(self) -> dict[str, Embeddings]:
        """The sets that this comparison is between, and the training runs that show how much training moves."""
        return {**replace(self, anchor=None).all, **self.runs}

    def rule(self, name: str) -> str:
        """Return the name of a rule: of one against the anchor, or in a slice, it says so."""
        against = f"{name}-{ANCHOR}" if ANCHOR in self.baselines else name
        return f"{against}@{self.part}" if self.part else against

    @classmethod
    def open(
        cls,
        gen: object,
        baselines: Sequence[object],
        ref: object,
        groups: str | None,
        run: Run,
        *,
        anchor: object | None = None,
        pairs: str | None = None,
        by_id: bool = False,
        columns: Collection[str] = (),
        checks: Sequence[Check] = (),
        extractor: AnyExtractor = None,
    ) -> GateSets:
        """Open the sets, and check that they are of one extractor, and have all columns that limits are on.

        With `by_id`, all baselines but the first are further runs of it.
        """
        labels = [BASELINE] if len(baselines) == 1 else [f"{BASELINE}-{i}" for i in range(1, len(baselines) + 1)]
        old = {} if anchor is None else {ANCHOR: anchor}
        named = dict(zip(labels, baselines, strict=True))
        sources = {GEN: gen, **named, **old, REF: ref}
        if any(one is gen for one in baselines):  # it stands for a release: what is wrong with it is the baseline's
            sources = {**named, GEN: gen, **old, REF: ref}
        # With the groups of the policy: of a set without them there is but a warning, which may be overlooked.
        checks = [*checks, needs_partners(pairs, labels, by_id)] if pairs is not None and labels else checks
        opened, warnings = countable_sets(sources, groups, run, extractor, columns=[groups, *columns], checks=checks)
        embeddings = opened.at_hand
        judged = [embeddings[label] for label in (GEN, *labels)]
        by_block = is_by_block(judged, pairs)
        if by_block and groups is None:
            embeddings = {
                label: one.grouped(pairs) if pairs in one.columns else one for label, one in embeddings.items()
            }
            opened = opened.with_rows(embeddings)
        sets = cls(
            gen=embeddings[GEN],
            baselines={label: embeddings[label] for label in labels},
            anchor=embeddings.get(ANCHOR),
            ref=embeddings[REF],
            opened=opened,
            extractor=extractor,
            warnings=(*warnings, *(left_out_columns(embeddings, (groups, pairs, *columns)) if labels else ())),
            replicates=tuple(labels),
            blocks=(pairs, groups),
        )
        sets = sets.as_runs() if by_id else sets
        if pairs is None or by_block:
            return sets
        return sets._pair(pairs)

    def as_runs(self) -> GateSets:
        """Return these sets with the first baseline alone; the others are further runs of it."""
        if not self.baselines:
            return self  # of a first release
        first, *others = self.baselines
        again = {label: self.baselines[label] for label in others}
        return replace(self, baselines={first: self.baselines[first]}, replicates=(first,), again=again)

    def pairing(self, column: str | None) -> Pairing | None:
        """Pair the release and its baselines, unless by the column that names the kinds; None if they cannot be.

        A column of prompts that a set has a fixed number of samples of each pairs them too: counts of such a design are
        not random, and what a release lacks of it is not a matter of chance.
        """
        sets = {GEN: self.gen, **self.baselines}
        by, groups = self.blocks
        if by is None and groups is None:
            found = [name for _, name in designs(sets) if name in TEXT_COLUMNS]
            groups = found[0] if found else None
        if column is not None and column in (by, groups):
            return None
        try:
            return pair(sets, by, groups)[0]
        except DataError:
            if ANCHOR not in sets:
                raise
            return None  # prompts may have changed since the anchor

    def blocks_with(self, old: str) -> dict[str, NDArray[np.int64]] | None:
        """Return the block of each sample of the release and of an older one, labelled "ref"; None unless paired."""
        pairing = replace(self, baselines={old: self.all[old]}).pairing(None)
        return None if pairing is None else {GEN: pairing.block_of_all(GEN), "ref": pairing.block_of_all(old)}

    def _pair(self, by: str) -> GateSets:
        """Return the same sets with their pairs. Prompts may have changed since the anchor, which may stay without."""
        found = {label: partners(self.gen, old, by, label) for label, old in self.baselines.items()}
        warnings = self.warnings
        if self.anchor is not None:
            try:
                found[ANCHOR] = partners(self.gen, self.anchor, by, ANCHOR)
            except DataError as error:
                warnings += (f"the anchor is compared without pairs: {error}",)
        return replace(self, pairs=found, warnings=warnings)

    def slice_of(self, name: str, column: str, values: Sequence[str], pairs: str | None) -> GateSets | str:
        """Return the samples with these values of a column, or the reason why there are too few of them."""
        parts: dict[str, Embeddings] = {}
        for label, one in self.all.items():
            own = np.array(one.column(column))
            rows = np.flatnonzero(np.isin(own, named(values, np.unique(own).tolist())))
            if len(rows) < MIN_SAMPLES:
                slice_name = " or ".join(f"{column}={value}" for value in values)
                return f"{label} has {plural(len(rows), 'sample')} with {slice_name}: at least {MIN_SAMPLES} are needed"
            parts[label] = Subset(one, rows)
        sets = replace(
            self,
            gen=parts[GEN],
            baselines={label: parts[label] for label in self.baselines},
            anchor=parts.get(ANCHOR),
            ref=parts[REF],
            opened=self.opened.narrowed(parts),
            warnings=(),
            pairs={},
            part=name,
        )
        return sets if pairs is None or not self.pairs else sets._pair(pairs)


Names = NDArray[np.str_]


def needs_partners(by: str, labels: Sequence[str], by_id: bool) -> Check:
    """Return the check that the release can be paired with its baselines, which have these labels, as a policy asks."""

    def check(sets: Mapping[str, Known]) -> None:
        judged = {label: one for label, one in sets.items() if label in (GEN, *labels)}
        if len(judged) <= len(labels):  # a sketch among them says what it lacks when it is opened
            return
        check_pair_column(judged, by)
        if is_by_block(judged.values(), by):
            needs_pairs(by)(judged)
            return
        first, *others = labels
        if others and not by_id:
            raise UsageError("samples are paired with one baseline: pass one, or take pairs out of the policy")
        gen, old = readable_of(judged[GEN], judged[first], by)
        partners(gen, old, by, first)

    return check


def is_by_block(sets: Iterable[Known], by: str | None) -> bool:
    """Return whether sets are paired by blocks: by the values of a column, such as prompts, that samples share."""
    if by is None or by == ID:
        return False
    return all(by in one.columns and len(set(one.column(by))) < one.n for one in sets)


def readable_of(one: Known, other: Known, by: str) -> tuple[Known, Known]:
    """Return two sets without the samples that cannot be read, of those that have no partner in the other set."""
    names, _ = names_of({"one": one, "other": other}, by)
    shared = np.intersect1d(names["one"], names["other"])
    left = [
        known.without_unreadable(np.flatnonzero(~np.isin(own, shared)).tolist())
        if isinstance(known, ListedSamples)
        else known
        for known, own in zip((one, other), names.values(), strict=True)
    ]
    return left[0], left[1]


def partners(gen: Known, old: Known, by: str, label: str) -> NDArray[np.int64]:
    """Return the row of `old` that belongs to each row of `gen`, shape (n,), by "id" or a metadata column.

    A sample without a partner is a DataError: to leave it out would hide what a release has lost.
    """
    named, notes = names_of({"gen": gen, label: old}, by)
    new_names, old_names = (_check_different(names, by, which) for which, names in named.items())
    order = np.argsort(old_names, kind="stable")
    place = np.searchsorted(old_names, new_names, sorter=order).clip(max=old.n - 1)
    found = order[place]
    alone = np.flatnonzero(old_names[found] != new_names)
    if len(alone) or gen.n != old.n:
        strange = str(new_names[alone[0]]) if len(alone) else str(np.setdiff1d(old_names, new_names)[0])
        without = len(alone) or old.n - gen.n
        where = ("gen", label) if len(alone) else (label, "gen")
        raise DataError(
            f"{plural(without, 'sample')} of {where[0]} have no partner in {where[1]} by {by}, such as "
            f"{strange!r:.60}: draw the same prompts and seeds for both, or take pairs and by_id out of the policy"
            f"{'; '.join(['', *notes])}"
        )
    return np.asarray(found, np.int64)


def _check_different(names: Names, by: str, label: str) -> Names:
    """Return the names of samples, after a check that no two are equal."""
    sorted_names = np.sort(names)
    twice = np.flatnonzero(sorted_names[1:] == sorted_names[:-1])
    if len(twice):
        raise DataError(
            f"{label} has several samples with the {by} {str(sorted_names[twice[0]])!r:.60}: pairs need a column that "
            "is different for all samples, such as prompt and seed together"
        )
    return names


def same_samples(sets: GateSets) -> list[str]:
    """Return a sentence about each two sets that are the same; only an anchor may equal the baseline."""
    pairs = combinations((GEN, *sets.baselines, REF), 2)
    same = [(one, other) for one, other in pairs if sets.opened.infos[one].digest == sets.opened.infos[other].digest]
    return [
        f"{one} and {other} are the same samples, which shows nothing: pass another set as {one}" for one, other in same
    ]


def measure_pair(sets: GateSets, old: str, pictures: Mapping[str, PictureLooks | None]) -> MeasuredSets:
    """Measure the samples of a release and of an older one, labelled "ref".

    `pictures` has what was measured of the pictures of sets, by label, as far as it was.
    """
    known = {label: pictures[name] for label, name in ((GEN, GEN), ("ref", old)) if name in pictures}
    return measure_sets({GEN: sets.gen, "ref": sets.all[old]}, known)


def find_visible_change(
    sets: GateSets, answer: Answer, old: str, measured: MeasuredSets, level: float, seed: int, run: Run
) -> Visible:
    """Return what a gate that found no difference from an older release would have found.

    `level` is that of the kinds that are said. Copies of an older release are not asked for.
    """
    pair = {GEN: sets.gen, "ref": sets.all[old]}
    # equal=1: a gate does not look for samples of an older release, and says nothing of them.
    return find_visible(pair, measured, answer.choice.tests.detectable(level), seed, equal=1, run=run)
