"""`Comparison`: the kinds and directions on which two sets differ, how they were found, and its two files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import computed_field, model_validator

from finc_eval.comparison.direction import Direction, Interval, SetLabel, Spectrum
from finc_eval.comparison.findings import findings_of
from finc_eval.comparison.headline import more_and_less, says, short
from finc_eval.comparison.sets_test import read_law
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.errors import UsageError
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import ABSENT, NOT_IN_JSON, Record
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import SET_NAMES
from finc_eval.embeddings.base import Batch
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import check_same_space
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.findings.finding import Finding
from finc_eval.findings.local import PartOfSet
from finc_eval.findings.visible import Visible
from finc_eval.gallery.members import KEPT_OF_IT, Members
from finc_eval.gallery.pictured import Captions, check_captions, store_captions
from finc_eval.naming.looks import Look
from finc_eval.numerics.exchanges import MeanLaw
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.partitions.atlas import Mapped
from finc_eval.partitions.blocks import Pairs
from finc_eval.partitions.counts import KindsOfSamples, read_kinds
from finc_eval.partitions.kind import Kind, check_kinds, shown_of
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.sample_map import read_map
from finc_eval.partitions.values import SharesBy
from finc_eval.prompts.result import PromptDifferences
from finc_eval.same_ids.result import ById
from finc_eval.sketches.one_law import Separability
from finc_eval.sketches.stored import read_feature_map, write_feature_map

IN_SENTENCES: dict[str, str] = {label: f"the {name}" for label, name in SET_NAMES.items()}

DERIVED: Any = None
"""Findings of a file of an earlier version: they are derived from what the comparison itself knows."""

SHOWN_COPIES = 6  # pairs of exact copies that a page shows


@dataclass(frozen=True)
class Copies(Record):
    """Samples of the generated set whose decoded pixels equal the pixels of a reference sample.

    Attributes:
        count: number of generated samples that are such copies.
        examples: the first few, as (generated id, reference id).
    """

    count: int
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Comparison(Mapped):
    """The kinds and the directions on which a generated and a reference set differ.

    Attributes:
        kinds: kinds of samples, significant kinds first, by p-value. Every sample belongs to exactly one kind, and the
            shares of each set add to 1. Empty if kinds were not asked for.
        headings: unions of significant kinds that differ in the same way, the largest first; their `children` are ids
            of `kinds`.
        over: directions on which the generated set has more mass: significant directions first, by the difference of
            shares (unrotated eigenvectors by eigenvalue).
        under: directions on which it has less, in the same order.
        difference: how different the two sets are: total variation between their shares of at most 50 label-blind
            kinds, in [0, 1], without the part that chance makes; None without kinds. Differences within kinds do not
            count.
        difference_interval: its 95 % interval.
        difference_p_value: p-value of "both sets have one law", by the shares of kinds; None if a set has too few
            independent samples to test it.
        detectable: smallest share of a separate kind, absent from one set, that would have been found with
            probability 0.8; None if kinds were not asked for.
        gen, ref: the two sets.
        settings: settings of the comparison, with the bandwidth and the number of frequencies that were used.
        sigma_rule: origin of the bandwidth.
        signature: everything that changes the numbers save the generated set itself.
        space: extractor of the embeddings, as name@digest.
        tested: number of directions tested, over both roles; 0 if a set has too few independent samples.
        kinds_tested: number of kinds of the tree that were tested; 0 if a set has too few independent samples.
        spectrum: leading eigenvalues.
        kernel_error: error of the feature map on a subsample of both sets; None when sketches keep no samples.
        copies: exact copies across the sets; None when the sets hold no decoded pixels to compare.
        pairs: how the sets are paired; None for independent sets.
        by: shares of the values of the column `by`, such as labels; None if none was asked for.
        prompts: the prompts, and the words of prompts, whose images differ; None for sets that are not paired.
        by_id: what changed, broke and is worse, pair by pair; None for sets that are not paired by their ids.
        sets_p_value: p-value of "both sets are samples of one law", by the means of φ, which sees a slight change of
            every sample; None if a set has too few independent samples to test it, and for ρ other than 1.
        separability: how well a simple classifier tells held-out samples of both sets apart; None unless
            `sets_p_value` is significant.
        local_p_value: p-value of "both sets are samples of one law", by what is local in pictures: cells of their
            network, their likeness to themselves, near pairs; None where neither cells nor pictures are at hand.
        parts: parts of the sets that local evidence shows, significant at .05, the surest first.
        looks: what the pictures of one set look like more often than the other's, significant at `BESIDE_ALPHA`, the
            clearest first; empty without pictures.
        findings: what is said of the sets, in all outputs: looks, repeats, copies, kinds, words of prompts, without
            kinds directions, or that the sets differ as a whole; each cause once, the largest first.
        visible: which shares of three faults would have been found; None where something was, and for pairs by id.
        warnings: what a reader should know before trusting the numbers.
        feature_map: φ.
        divided: the tree of kinds, to which fresh samples can be assigned; None without kinds.
        map: some samples of both sets in the plane; None without kinds, and for a result that was read from JSON.
        captions: what is known of the samples that may be shown: metadata, and the nearest reference sample.
        law: the mean of φ over the generated set and moments of its error, against which a later release is tested;
            None for sketches and paired sets.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> comparison = fe.compare(*example_sets(), features=500)
        >>> comparison.save("comparison.h5")
        >>> fe.load("comparison.h5").kinds[0].id == comparison.kinds[0].id
        True
    """

    type_name: ClassVar[str] = "comparison"
    page: ClassVar[str] = "finc_eval.comparison.pages.comparison"
    names_in_sentences = IN_SENTENCES

    kinds: tuple[Kind, ...]
    headings: tuple[Kind, ...]
    over: tuple[Direction, ...]
    under: tuple[Direction, ...]
    difference: float | None
    difference_interval: Interval | None
    difference_p_value: float | None
    detectable: float | None
    gen: SetInfo
    ref: SetInfo
    settings: StoredSettings
    sigma_rule: str
    signature: SignatureText
    space: str
    tested: int
    kinds_tested: int
    spectrum: Spectrum
    kernel_error: KernelError | None
    copies: Copies | None
    warnings: tuple[str, ...]
    pairs: Pairs | None = field(default=None, kw_only=True)
    by: SharesBy | None = field(default=None, kw_only=True)
    prompts: PromptDifferences | None = field(default=None, kw_only=True)
    by_id: ById | None = field(default=None, kw_only=True)
    sets_p_value: float | None = field(default=None, kw_only=True)
    separability: Separability | None = field(default=None, kw_only=True)
    looks: tuple[Look, ...] = field(default=(), kw_only=True)
    local_p_value: float | None = field(default=None, kw_only=True)
    parts: tuple[PartOfSet, ...] = field(default=(), kw_only=True)
    findings: tuple[Finding, ...] = field(default=DERIVED, kw_only=True)
    visible: Visible | None = field(default=None, kw_only=True)
    feature_map: Annotated[FeatureMap, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)
    divided: Annotated[KindsOfSamples | None, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True, repr=False)
    captions: Annotated[Captions, *NOT_IN_JSON] = field(default_factory=dict, kw_only=True, repr=False)
    law: Annotated[MeanLaw | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.findings is DERIVED:
            self._store(findings=findings_of(self))

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if (self.difference is None) != (self.difference_interval is None):
            raise ValueError("has a difference without an interval, or an interval alone")
        check_kinds(self.kinds, self.headings, SET_NAMES)
        check_kinds(self.by.kinds if self.by else (), (), SET_NAMES)
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def headline(self) -> str:
        """Findings in a few plain sentences."""
        return " ".join(says(self).values())

    @computed_field  # type: ignore[prop-decorator]
    @property
    def explained(self) -> float | None:
        """Part of `difference` that the significant kinds explain, at most all of it; None without kinds."""
        if self.difference is None:
            return None
        sums = [abs(sum(kind.share_difference for kind in kinds)) for kinds in more_and_less(self.significant(ALPHA))]
        return min(self.difference, max(sums))

    @property
    def directions(self) -> tuple[Direction, ...]:
        """All directions: first with more, then with less mass in the generated set."""
        return self.over + self.under

    def significant(self, alpha: float = 0.05) -> tuple[Kind, ...]:
        """Return the kinds whose adjusted p-value is at most α.

        With probability α at most, it contains a false kind. Directions are a family of their own: see
        `Direction.p_value`.

        Raises:
            UsageError: α does not lie between 0 and 1.
        """
        return significant(self.kinds, alpha)

    def assign(self, embeddings: object) -> NDArray[np.int64]:
        """Return the place in `kinds` of the kind of each sample, shape (n,); −1 for samples of no listed kind.

        Args:
            embeddings: array or tensor of shape (n, d), `EmbeddingCache` or its path, of the same extractor.

        Raises:
            UsageError: the comparison has no kinds.
            IncompatibleError: the embeddings have another extractor or dimension.
        """
        rows = as_embeddings(embeddings, "the embeddings")
        check_same_space(rows.name, rows.space, "the comparison", self.space)
        return self.counted_kinds.assign(rows)

    @property
    def counted_kinds(self) -> KindsOfSamples:
        """The tree of kinds, with the numbers of samples of all its nodes.

        Raises:
            UsageError: the comparison has no kinds.
        """
        if self.divided is None:
            raise UsageError("the comparison has no kinds: compare embeddings, with clusters")
        return self.divided

    @property
    def tree(self) -> KindTree:
        """The tree of kinds; errors as in `counted_kinds`."""
        return self.counted_kinds.tree

    def shown_ids(self, label: SetLabel) -> list[str]:
        """Return the ids of the samples of a set that a page shows."""
        found = [name for direction in self.directions for name in direction.shown(label, self.shown)]
        found += shown_of((*self.kinds, *self.headings), SET_NAMES, self.shown)[label]
        found += (name for look in self.looks for name in look.examples.get(label, ())[: self.shown])
        found += (name for part in self.parts for name in part.examples(label) if self.shown)
        drifts = (one for one in self.findings if one.kind == "drift" and one.is_more is (label == "gen"))
        found += (name for drift in drifts for name in drift.ids[: self.shown])
        pairs = self.copies.examples[:SHOWN_COPIES] if self.copies and self.shown else ()
        found += (pair[0 if label == "gen" else 1] for pair in pairs)
        found += self.drawn_ids(label)
        if self.prompts is not None and self.shown:
            found += self.prompts.shown(label)
        if self.by_id is not None and self.shown:
            found += self.by_id.shown()
        if label == "ref":
            found += (other for direction in significant(self.directions, ALPHA) for other in self.nearest(direction))
        return found

    def _counting(self) -> Self:
        over, under = tuple(significant(self.over, ALPHA)), tuple(significant(self.under, ALPHA))
        return replace(self, kinds=tuple(significant(self.kinds, ALPHA)), over=over, under=under)

    def drawn_ids(self, label: str) -> tuple[str, ...]:
        """Return the ids of samples drawn at random, which a page shows where no kind, direction or look was found."""
        differs = (
            self.looks or self.significant(ALPHA) or any(direction.p_value <= ALPHA for direction in self.directions)
        )
        # 24: as many as a row of eight three times.
        return () if differs or self.map is None or not self.shown else self.map.drawn(label, 24)

    def nearest(self, direction: Direction) -> tuple[str, ...]:
        """Return the ids of the reference samples nearest to the first half of the typical generated samples."""
        captions = self.captions.get("gen", {})
        known = (
            captions[name].nearest for name in direction.typical("gen")[: (self.shown + 1) // 2] if name in captions
        )
        return tuple(ids[0] for ids in known if ids)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return both sets."""
        return {"gen": self.gen, "ref": self.ref}

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of both sets that a page shows."""
        return {label: self.shown_ids(label) for label in SET_NAMES}

    def member_lists(self) -> list[Members]:
        """Return the samples that looks, parts and clips that drift keep, all of kinds, and those of directions."""
        which = KEPT_OF_IT
        of_looks = ((look, {str(label): look.samples_with_it(label) for label in SET_NAMES}) for look in self.looks)
        lists = [Members(look.name, look.sentence, which, ids) for look, ids in of_looks]
        lists += [Members(part.words, part.finding.text, which, {part.owner: part.samples}) for part in self.parts]
        drifts = [finding for finding in self.findings if finding.kind == "drift"]
        lists += [Members(each.name, each.text, which, {("ref", "gen")[each.is_more]: each.ids}) for each in drifts]
        lists += super().member_lists() if self.kinds else []
        ends = (
            (direction, {"gen": direction.typical("gen"), "ref": direction.typical("ref")})
            for direction in self.directions
        )
        return lists + [Members(each.id, each.title, which, ids, are_members=False) for each, ids in ends]

    def score(self, embeddings: object, modes: Sequence[Direction] | None = None) -> NDArray[np.float32]:
        """Score any samples on the directions: s = φ(x)·v is high for samples of the direction.

        Args:
            embeddings: array or tensor of shape (n, d), `EmbeddingCache` or its path, of the same extractor.
            modes: directions to score on; default: all.

        Returns:
            Shape (n, k), between −1 and 1, a column for each direction, whose mass is the mean of s².

        Raises:
            IncompatibleError: the embeddings have another extractor or dimension.
        """
        rows = as_embeddings(embeddings)
        chosen = self.directions if modes is None else modes
        scores = np.empty((rows.n, len(chosen)), np.float32)
        for batch, batch_scores in self.score_batches(rows, chosen):
            scores[batch.start : batch.start + len(batch.rows)] = batch_scores
        return scores

    def score_batches(
        self, embeddings: object, directions: Sequence[Direction]
    ) -> Iterator[tuple[Batch, NDArray[np.float32]]]:
        """Score batch by batch: yield each batch with its scores, shape (b, k), in the order of the set."""
        rows = as_embeddings(embeddings)
        check_same_space(rows.name, rows.space, "the comparison", self.space)
        if self.settings.text is not None:
            raise UsageError("directions of prompts and images together do not score images: compare without text")
        shape = (len(directions), self.feature_map.size)
        vectors = np.array([direction.direction for direction in directions], np.float32).reshape(shape)
        columns = torch.from_numpy(vectors.T).to(self.feature_map.device)
        for batch in rows.batches():
            yield batch, (self.feature_map(batch.rows) @ columns).cpu().numpy()

    def _write(self, file: NewFile) -> None:
        directions = [direction.direction for direction in self.directions]
        file.array("directions", np.array(directions, np.float32).reshape(len(directions), self.feature_map.size))
        write_feature_map(file, self.feature_map)
        if self.divided is not None:
            self.divided.write(file)
        if self.map is not None:
            self.map.write(file, [kind.id for kind in self.kinds])
        file.header["captions"] = store_captions(self.captions, self.shown_samples())
        if self.law is not None:
            file.array("law", self.law.mean)
            file.header["law"] = [self.law.trace, self.law.squares]
            if isfinite(self.law.units):  # a law from an older file does not know it
                file.header["law_units"] = self.law.units

    @classmethod
    def _read(cls, file: StoredFile, data: dict[str, Any]) -> dict[str, Any]:
        feature_map = read_feature_map(file)
        directions = [*data["over"], *data["under"]]
        vectors = file.array("directions", len(directions), feature_map.size)
        if not np.isfinite(vectors).all():
            raise ValueError("a direction has numbers that are not finite")
        for direction, vector in zip(directions, vectors, strict=True):
            direction["direction"] = vector
        return {
            "feature_map": feature_map,
            "divided": read_kinds(file, len(data["kinds"])) if data["kinds"] else None,
            "map": read_map(file, [str(kind["id"]) for kind in data["kinds"]], [*SET_NAMES]),
            "captions": check_captions(file.header["captions"]),
            "law": read_law(file),
        }

    def _frame_rows(self) -> Sequence[object]:
        return [part.frame_row() for part in self.kinds or self.directions]

    def _lines(self) -> Iterator[str]:
        return (
            finding.say("reference", "" if finding.p_value is None else f"p={finding.p_value:.2g}")
            for finding in self.findings
        )

    def _summary(self) -> str:
        return f"{self.gen.n:,} generated, {self.ref.n:,} reference, {self.space}: {short(self)}"


def as_comparison(given: object, name: str) -> Comparison:
    """Return a comparison, or read the one at a path."""
    if isinstance(given, str | Path):
        return Comparison.load(given)
    if isinstance(given, Comparison):
        return given
    raise UsageError(
        f"{name} must be a comparison, as fe.compare returns it, or the path of a comparison, got "
        f"{type(given).__name__}"
    )
