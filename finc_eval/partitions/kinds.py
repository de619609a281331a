"""`kinds`: what two or more sets consist of, in kinds whose shares add up, and which kinds differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from finc_eval.core.errors import UsageError, check_fraction
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import ABSENT, NOT_IN_JSON, check_names, settings_from, show_options
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature, SignatureText
from finc_eval.core.words import plural
from finc_eval.embeddings.embedding_set import take_arrays
from finc_eval.embeddings.opening import is_one_set, label_sets
from finc_eval.embeddings.recipe import known_space
from finc_eval.embeddings.repeats import LOOK
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gallery.members import KEPT_OF_IT, Members
from finc_eval.naming.looks import Look
from finc_eval.naming.properties import unused_columns
from finc_eval.numerics.families import bonferroni
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.answer import divide
from finc_eval.partitions.atlas import Mapped
from finc_eval.partitions.blocks import Pairs, needs_pairs, pair
from finc_eval.partitions.counts import COUNT, KindsOfSamples, countable_sets, read_kinds
from finc_eval.partitions.difference import Difference
from finc_eval.partitions.kind import Kind, check_kinds, shown_of
from finc_eval.partitions.kind_tree import DIVIDE
from finc_eval.partitions.sample_map import draw_samples, map_sets, read_map
from finc_eval.partitions.set_looks import looks_of_sets
from finc_eval.partitions.settings import KindOptions, KindSettings
from finc_eval.partitions.values import SharesBy, needs_values, shares_by
from finc_eval.sketches.one_law import sets_p_values


@dataclass(frozen=True, eq=False)
class Kinds(Mapped):
    """Sets divided into kinds that add up, and the kinds that differ.

    Attributes:
        kinds: all kinds, significant kinds first: every sample belongs to exactly one.
        headings: unions of kinds that all differ in the same way; their `children` are ids of `kinds`.
        differences: how different each set is from all others together.
        detectable: smallest share of a kind of one set alone that would have been found with probability 0.8.
        sets: the sets, by label.
        settings: settings, as asked for.
        signature: everything that changes the numbers.
        pairs: how the sets are paired; None for independent sets.
        by: shares of the values of the column `by`, such as labels; None if none was asked for.
        looks: looks of each set in which it differs from all others together, the clearest first; empty for sets whose
            pictures are not at hand, and for paired sets.
        sets_p_values: p-value of "this set and all others together are samples of one law", by label; None if a set has
            too few independent samples to test it.
        warnings: what to know before trusting the numbers.
        divided: the tree of kinds, to which fresh samples can be assigned.
        map: some samples of all sets in the plane; None for a result that was read from JSON.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros
        >>> found = fe.kinds({"gen": gen, "ref": ref})
        >>> len(found.shares["gen"]) == len(found.kinds), round(float(found.shares["gen"].sum()), 6)
        (True, 1.0)
    """

    type_name: ClassVar[str] = "kinds"
    page: ClassVar[str] = "finc_eval.partitions.pages.kinds"

    kinds: tuple[Kind, ...]
    headings: tuple[Kind, ...]
    differences: dict[str, Difference]
    detectable: float
    sets: dict[str, SetInfo]
    settings: KindSettings
    signature: SignatureText
    warnings: tuple[str, ...]
    pairs: Pairs | None = field(default=None, kw_only=True)
    by: SharesBy | None = field(default=None, kw_only=True)
    looks: dict[str, tuple[Look, ...]] = field(default_factory=dict, kw_only=True)
    sets_p_values: dict[str, float | None] = field(default_factory=dict, kw_only=True)
    divided: Annotated[KindsOfSamples, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True, repr=False)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        check_kinds(self.kinds, self.headings, self.sets)
        check_kinds(self.by.kinds if self.by else (), (), self.sets)
        check_names("set", self.differences, self.sets)
        check_names("set", self.looks, self.sets)
        check_names("set", self.sets_p_values, self.sets)
        return self

    @property
    def difference(self) -> float:
        """Total variation between two sets; of more sets, between the most different set and all others together."""
        return self._most_different.value

    @property
    def difference_interval(self) -> tuple[float, float]:
        """Interval of the difference, 95 %."""
        return self._most_different.interval

    @property
    def difference_p_value(self) -> float | None:
        """p-value of "all sets have one law", by their shares; None if the groups of a set are too few to test it."""
        return self._least([difference.p_value for difference in self.differences.values()])

    @property
    def sets_p_value(self) -> float | None:
        """p-value of "all sets have one law", by the means of φ, which sees a slight change of every sample."""
        return self._least([*self.sets_p_values.values()])

    def _least(self, p_values: Sequence[float | None]) -> float | None:
        """Return the smallest p-value of the sets, adjusted for their number."""
        known = [p for p in p_values if p is not None]
        tests = 1 if len(self.sets) == 2 else len(self.sets)
        return float(bonferroni(min(known), tests)) if known else None

    @property
    def _most_different(self) -> Difference:
        return max(self.differences.values(), key=lambda difference: difference.value)

    @property
    def shares(self) -> dict[str, NDArray[np.float64]]:
        """Shares of the kinds in each set, in the order of `kinds`: they add to 1."""
        return {label: np.array([kind.shares[label].share for kind in self.kinds]) for label in self.sets}

    def significant(self, alpha: float = 0.05) -> tuple[Kind, ...]:
        """Return the kinds whose adjusted p-value is at most α.

        Raises:
            UsageError: α does not lie between 0 and 1.
        """
        check_fraction("alpha", alpha)
        return tuple(kind for kind in self.kinds if kind.p_value <= alpha)

    def assign(self, embeddings: object) -> NDArray[np.int64]:
        """Return the place in `kinds` of the kind of each sample, shape (n,).

        Args:
            embeddings: array or tensor of shape (n, d), `EmbeddingSet`, `EmbeddingCache` or its path.

        Raises:
            IncompatibleError: the embeddings have another dimension.
        """
        return self.divided.assign(embeddings)

    def count(self, sets: Mapping[str, object], *, extractor: AnyExtractor = None, run: Run | None = None) -> Kinds:
        """Count other sets by the same tree of kinds, and choose the kinds in which these sets differ.

        Args:
            sets: two sets or more, by label, in any form that `kinds` takes.
            extractor: how to embed sets of samples; see `compare`.
            run: device, portions, threads and progress.
        """
        return _count(sets, self.settings, self.divided, run, extractor)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return all sets."""
        return self.sets

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of each set that a page shows."""
        shown = shown_of((*self.kinds, *self.headings), self.sets, self.shown)
        for label, looks in self.looks.items():
            shown[label] += (id for look in looks for id in look.examples["gen"][: self.shown])
        return shown

    def member_lists(self) -> list[Members]:
        """Return the samples that looks keep, and all members of kinds."""
        looks = [(label, look) for label, of_set in self.looks.items() for look in of_set]
        lists = [
            Members(f"{label}: {look.name}", look.name, KEPT_OF_IT, {label: look.examples["gen"]})
            for label, look in looks
        ]
        return lists + super().member_lists()

    def _counting(self) -> Self:
        return replace(self, kinds=tuple(significant(self.kinds, ALPHA)))

    def _write(self, file: NewFile) -> None:
        self.divided.write(file)
        if self.map is not None:
            self.map.write(file, [kind.id for kind in self.kinds])

    @classmethod
    def _read(cls, file: StoredFile, data: dict[str, Any]) -> dict[str, Any]:
        if len(data["differences"]) < 2 or set(data["differences"]) != set(data["sets"]):
            raise ValueError("its differences are not of its sets")
        return {
            "divided": read_kinds(file, len(data["kinds"])),
            "map": read_map(file, [str(kind["id"]) for kind in data["kinds"]], [*data["sets"]]),
        }

    def _frame_rows(self) -> list[dict[str, Any]]:
        return [kind.frame_row() for kind in self.kinds]

    def _lines(self) -> Iterator[str]:
        return (kind._summary() for kind in self.significant())

    def _summary(self) -> str:
        low, high = self.difference_interval
        return (
            f"{', '.join(self.sets)}: {plural(len(self.significant()), 'kind')} with p ≤ 0.05, "
            f"different by {self.difference:.1%} [{low:.1%}, {high:.1%}]"
        )


@show_options(KindSettings)
@arithmetic()
def kinds(
    sets: object,
    ref: object = None,
    settings: KindSettings | None = None,
    *,
    labels: object = None,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[KindOptions],
) -> Kinds:
    """Divide sets into kinds whose shares add up, and test which kinds differ.

    A sample of all sets together is divided into communities of its graph of shared neighbors, which are joined to a
    tree. The sets of the samples play no part in it. So the exact tests of all kinds of the tree may use every sample,
    and are one family (docs/how_kinds_are_found.md). Each set is tested against all others together. A sketch is
    counted by the sample of embeddings that it holds. Where pictures are at hand, looks of each set are compared with
    those of all others together, such as gray or blurred pictures (`Kinds.looks`).

    Args:
        sets: two sets or more, by label: arrays or tensors of shape (n, d), `EmbeddingSet`, `EmbeddingCache`, `Sketch`,
            paths of files, or paths of samples, which are embedded first. Sets of a list are called by the names of
            their files and folders, or else numbered. Or a single set, with a reference.
        ref: reference, in the same forms: `fe.kinds(gen, ref)` is `fe.kinds({"gen": gen, "ref": ref})`.
        settings: settings.
        labels: labels of the samples of sets that are arrays; see `compare`.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `KindSettings`, which override `settings`. With arrays, `groups` may be arrays.

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
        >>> found.difference_p_value < 0.05
        True
        >>> labels = ["a", "b"] * 250
        >>> by = fe.kinds(gen, ref, labels=(labels, labels)).by
        >>> by.to_frame()[["name", "shares.gen.share", "shares.ref.share", "p_value"]].values.tolist()
        [['a', 0.5, 0.5, 1.0], ['b', 0.5, 0.5, 1.0]]
    """
    if isinstance(ref, KindSettings):
        ref, settings = None, ref
    if ref is not None:
        are_many = isinstance(sets, Mapping) or not is_one_set(sets)
        named = label_sets(sets, "set", taken="ref") if are_many else {"gen": sets}  # type: ignore[arg-type]
        if "ref" in named:
            raise UsageError('a set is called "ref" already: give it another name, or leave the reference out')
        sets = {**named, "ref": ref}
    given, chosen = take_arrays(label_sets(sets, "set"), labels, options)  # type: ignore[arg-type]  # or it refuses
    return _count(given, settings_from(KindSettings, settings, chosen), None, run, extractor)


def _count(
    sets: Mapping[str, object],
    settings: KindSettings,
    divided: KindsOfSamples | None,
    run: Run | None,
    extractor: AnyExtractor,
) -> Kinds:
    """Count and test sets by the kinds of a tree; None: by kinds of their own samples."""
    run = Run.of(run).planned(LOOK, *([] if divided else [DIVIDE]), COUNT)
    checks = [needs_values(settings.by), needs_pairs(settings.pairs)]
    opened, warnings = countable_sets(sets, settings.groups, run, extractor, checks=checks)
    embeddings = opened.at_hand
    pairing, sentences = pair(embeddings, settings.pairs, settings.groups)
    embeddings = embeddings if pairing is None else pairing.sets
    answer = divide(
        embeddings, kinds=None if divided is None else divided.tree, seed=settings.seed, run=run, pairing=pairing
    )
    listed, headings, divided_by = answer.described(embeddings)
    return Kinds(
        kinds=listed,
        headings=headings,
        differences=answer.differences(settings.seed),
        detectable=answer.choice.tests.detectable(),
        sets=opened.infos,
        settings=settings,
        signature=Signature.of(
            Kinds.type_name,
            [each.n for each in embeddings.values()],
            known_space(each.space for each in embeddings.values()),
            *settings.signature(),
            ("kinds", answer.kinds.digest[:12]),
        ),
        pairs=None if pairing is None else pairing.info,
        sets_p_values=sets_p_values(
            embeddings, settings.seed, run, blocked=None if pairing is None else pairing.blocked
        ),
        by=None if settings.by is None else shares_by(embeddings, settings.by, pairing=pairing, seed=settings.seed),
        looks=looks_of_sets(embeddings, settings.seed) if pairing is None else {},
        warnings=(*warnings, *sentences, *unused_columns(embeddings)),
        divided=divided_by,
        map=map_sets(embeddings, draw_samples(embeddings), listed, divided_by, run),
        provenance=Provenance.here(run.device),
    )
