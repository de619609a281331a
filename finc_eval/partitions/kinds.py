"""`kinds`: what two or more sets consist of, in kinds whose shares add up, and which kinds differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.checks import check_fraction
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import ABSENT, NOT_IN_JSON, settings_from
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.core.words import counted
from finc_eval.embeddings.opening import as_embeddings, labeled
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.embeddings.space import known_space
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gallery.pictured import Pictured
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.counts import Counts, count, tallied
from finc_eval.partitions.difference import Difference, total_variation
from finc_eval.partitions.modes import Kind, reported_kinds, shown_of
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.sets import open_sets
from finc_eval.partitions.settings import KindOptions, KindSettings
from finc_eval.partitions.tests import test_kinds


@dataclass(frozen=True, eq=False)
class Kinds(Pictured):
    """Sets divided into kinds that add up, and the kinds that differ.

    Attributes:
        modes: kinds by p-value: the significant ones of all levels, of overlapping ones the clearest, and then the
            others of the main level.
        differences: how different each set is from all others together.
        detectable: smallest share of a kind that only one set has, which would have been found with probability 0.8.
        sets: the sets, by label.
        levels: number of kinds of each level.
        level: number of kinds of the main level, which `shares` and `differences` are of.
        settings: settings, as asked for.
        signature: everything that changes the numbers.
        warnings: what to know before trusting the numbers.
        partition: the centers.
        counts: samples of each kind in each set.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros
        >>> found = fe.kinds({"gen": gen, "ref": ref})
        >>> found.level, len(found.shares["gen"])
        (50, 50)
        >>> round(float(found.shares["gen"].sum()), 6)
        1.0
    """

    type_name: ClassVar[str] = "kinds"

    modes: tuple[Kind, ...]
    differences: dict[str, Difference]
    detectable: float
    sets: dict[str, SetInfo]
    levels: tuple[int, ...]
    level: int
    settings: KindSettings
    signature: SignatureText
    warnings: tuple[str, ...]
    partition: Annotated[Partition, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)
    counts: Annotated[dict[str, Counts], *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)

    @property
    def difference(self) -> float:
        """Total variation between two sets; of more sets, between the most different one and all others together."""
        return self._most_different.value

    @property
    def difference_interval(self) -> tuple[float, float]:
        """Interval of the difference, 95 %."""
        return self._most_different.interval

    @property
    def difference_p_value(self) -> float | None:
        """p-value of "all sets are of one law"; None where the groups of a set are too few to test it."""
        known = [one.p_value for one in self.differences.values() if one.p_value is not None]
        tests = 1 if len(self.differences) == 2 else len(self.differences)
        return min(1.0, tests * min(known)) if known else None

    @property
    def _most_different(self) -> Difference:
        return max(self.differences.values(), key=lambda one: one.value)

    @property
    def shares(self) -> dict[str, NDArray[np.float64]]:
        """Shares of the kinds of the main level in each set: they add to 1.

        Sets that were counted against an existing partition have the samples that are far from all kinds as their last.
        """
        return self.shares_at(self.level)

    def shares_at(self, level: int) -> dict[str, NDArray[np.float64]]:
        """Return the shares of the kinds of a level in each set, which add to 1.

        Raises:
            UsageError: the level does not exist.
        """
        place = self._place(level)
        return {label: one.members(place) / one.n for label, one in self.counts.items()}

    def _place(self, level: int) -> int:
        if level not in self.levels:
            raise UsageError(f"a level of {level} kinds does not exist: choose from {', '.join(map(str, self.levels))}")
        return self.levels.index(level)

    def significant(self, alpha: float = 0.05) -> tuple[Kind, ...]:
        """Return the kinds whose adjusted p-value is at most α.

        Raises:
            UsageError: α does not lie between 0 and 1.
        """
        check_fraction("alpha", alpha)
        return tuple(kind for kind in self.modes if kind.p_value <= alpha)

    def assign(self, rows: object, level: int | None = None) -> NDArray[np.int64]:
        """Return the number of the kind of each sample, shape (n,): that of the nearest center.

        Args:
            rows: array or tensor of shape (n, d), `EmbeddingSet`, `EmbeddingCache` or the path of one.
            level: number of kinds of the level; default: the main level.

        Raises:
            UsageError: the level does not exist.
            IncompatibleError: the embeddings have another dimension.
        """
        place = self._place(self.level if level is None else level)
        batches = as_embeddings(rows, "the rows").batches()
        return np.concatenate([self.partition.assign(batch.rows)[0][:, place] for batch in batches]).astype(np.int64)

    def count(self, sets: Mapping[str, object], *, extractor: AnyExtractor = None, run: Run | None = None) -> Kinds:
        """Count other sets by these kinds, which stay as they are.

        Samples that are farther from all kinds than any sample that made them are a kind of their own, the last.

        Args:
            sets: two sets or more, by label, in any form that `kinds` takes.
            extractor: how to embed sets of samples; see `compare`.
            run: device, portions, threads and progress.
        """
        return _count(sets, self.settings, self.partition, run, extractor)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return all sets."""
        return self.sets

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of each set that a page shows."""
        return shown_of(self.modes, self.sets, self.shown)

    def _write(self, file: NewFile) -> None:
        self.partition.write(file)
        for number, one in enumerate(self.counts.values()):
            one.write(file, f"counts/{number}")

    @classmethod
    def _read(cls, file: StoredFile, data: dict[str, Any]) -> dict[str, Any]:
        partition = Partition.read(file)
        counts = {label: Counts.read(file, f"counts/{number}") for number, label in enumerate(data["sets"])}
        for one in counts.values():
            one.check(partition.levels)
        if set(data["differences"]) != set(counts) or len(counts) < 2:
            raise ValueError("its differences are not of its sets")
        if data["levels"] != [*partition.levels] or data["level"] not in data["levels"]:
            raise ValueError("its kinds are not those of its centers")
        return {"partition": partition, "counts": counts}

    def _frame_rows(self) -> tuple[Kind, ...]:
        return self.modes

    def _lines(self) -> Iterator[str]:
        return (one._summary() for one in self.significant())

    def _summary(self) -> str:
        low, high = self.difference_interval
        return (
            f"{', '.join(self.sets)}: {counted(len(self.significant()), 'kind')} with p ≤ 0.05, "
            f"different by {self.difference:.1%} [{low:.1%}, {high:.1%}]"
        )


@arithmetic("float32")
def kinds(
    sets: Mapping[str, object] | Sequence[object],
    settings: KindSettings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[KindOptions],
) -> Kinds:
    """Divide sets into kinds whose shares add up, and test which kinds differ.

    All samples together are divided by k-means at several levels, blind to which set a sample is from. So the exact
    tests of all kinds of all levels may use every sample, and are one family (docs/kinds.md). Each set is tested
    against all others together. A sketch is counted by the sample of embeddings that it holds.

    Args:
        sets: two sets or more, by label: arrays or tensors of shape (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, paths of files, or paths of samples, which are embedded first. Those of a list are called by the
            names of their files and folders, or else numbered.
        settings: settings.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `KindSettings`, in place of those of `settings`.

    Raises:
        UsageError: there are fewer than two sets, or a setting is out of range.
        DataError: a set has too few samples, or cannot be read.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros
        >>> found = fe.kinds({"gen": gen, "ref": ref})
        >>> {kind.set_with_most for kind in found.significant()} == {"gen", "ref"}
        True
        >>> found.difference_p_value < 0.05, found.levels
        (True, (20, 35, 50))
    """
    return _count(labeled(sets, "set"), settings_from(KindSettings, settings, options), None, run, extractor)


def _count(
    sets: Mapping[str, object],
    settings: KindSettings,
    partition: Partition | None,
    run: Run | None,
    extractor: AnyExtractor,
) -> Kinds:
    """Count and test sets by the kinds of a partition; None: by those of their own samples."""
    run = Run.of(run)
    opened, warnings = open_sets(sets, settings.groups, run, extractor)
    embeddings = {label: one.embeddings for label, one in opened.items()}
    fixed = partition is not None
    if partition is None:
        run.progress("partition", 0, 1)
        rows = pooled_sample(list(embeddings.values()))
        partition = Partition.fit(rows, settings.levels, settings.seed, run)
        run.progress("partition", 1, 1)
    counted = {
        label: count(one, partition, far=fixed, run=run.named(f"count {label}")) for label, one in embeddings.items()
    }
    counts, levels = {label: one.counts for label, one in counted.items()}, partition.levels
    tallies = tallied(counts)
    tests = test_kinds(tallies)
    place = partition.place_of(settings.level)
    effective = {label: one.effective(place) for label, one in tallies.items()}
    others = {label: [one for other, one in effective.items() if other != label] for label in effective}
    return Kinds(
        modes=reported_kinds(tests, counted, embeddings, levels, place),
        differences={
            label: total_variation(own, reduce(add, others[label]), settings.seed) for label, own in effective.items()
        },
        detectable=tests.detectable(),
        sets={label: one.info() for label, one in opened.items()},
        levels=levels,
        level=levels[place],
        settings=settings,
        signature=Signature.of(
            Kinds.type_name,
            [one.n for one in embeddings.values()],
            known_space(one.space for one in embeddings.values()),
            *settings.signature(),
            ("partition", partition.digest[:12]),
        ),
        warnings=warnings,
        partition=partition,
        counts=counts,
        provenance=Provenance.here(run.device),
    )
