"""`Comparison`: the modes of two sets, the settings that made them, and its two files (HDF5 and a JSON twin)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import computed_field

from finc_eval.comparison.headline import headline, short
from finc_eval.comparison.members.file import read_neighborhood, write_neighborhood
from finc_eval.comparison.members.neighbors import Neighborhood
from finc_eval.comparison.modes import Interval, Mode, SetLabel, significant
from finc_eval.comparison.settings import StoredSettings
from finc_eval.core.errors import UsageError
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import ABSENT, NOT_IN_JSON, Record
from finc_eval.core.signature import SignatureText
from finc_eval.embeddings.base import Batch
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.embeddings.space import check_same_space
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.gallery.captions import Captions, checked_captions, stored_captions
from finc_eval.gallery.pictured import Pictured
from finc_eval.sketches.feature_map_file import read_feature_map, write_feature_map

SET_NAMES: dict[SetLabel, str] = {"gen": "generated set", "ref": "reference set"}
"""Names of the sets of a comparison."""

IN_SENTENCES: dict[str, str] = {label: f"the {name}" for label, name in SET_NAMES.items()}

SHOWN_COPIES = 6
"""Pairs of exact copies that a page shows."""


@dataclass(frozen=True)
class Copies(Record):
    """Samples of the generated set whose decoded pixels equal those of a reference sample.

    Attributes:
        count: number of generated samples that are such copies.
        examples: the first few, as (generated id, reference id).
    """

    count: int
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Spectrum(Record):
    """Leading eigenvalues of the two covariance differences, descending.

    Attributes:
        over: eigenvalues of C_gen − ρC_ref; empty where the method has none.
        under: eigenvalues of C_ref − ρC_gen; empty where the method has none.
    """

    over: tuple[float, ...]
    under: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Comparison(Pictured):
    """The modes on which a generated and a reference set differ.

    Attributes:
        over: modes over-represented in the generated set: the significant ones first, by the difference of shares
            (unrotated eigenvectors by eigenvalue).
        under: modes under-represented in the generated set, in the same order.
        difference: how different the two sets are: total variation between their shares of label-blind kinds, in
            [0, 1], without the part that chance makes; None when a sketch keeps no samples to divide into kinds.
            Differences within kinds do not count.
        difference_kinds: number of these kinds, at most 50: fewer where the samples are few.
        difference_interval: its 95 % interval.
        difference_p_value: p-value of "both sets are of one law"; None where a set is worth too few independent
            samples to test it.
        detectable: smallest share of a separate kind, of which one set has none, that would have been found with
            probability 0.8; None where clusters were not asked for.
        gen, ref: the two sets.
        settings: settings of the comparison, with the bandwidth and the number of frequencies that were used.
        sigma_rule: origin of the bandwidth.
        signature: everything that changes the numbers save the generated set itself.
        space: extractor of the embeddings, as name@digest.
        tested: number of directions tested, over both roles; 0 where a set is worth too few independent samples.
        clusters_tested: number of clusters that were large enough to be tested; 0 likewise.
        spectrum: leading eigenvalues.
        kernel_error: error of the feature map on a subsample of both sets; None when sketches keep no samples.
        copies: exact copies across the sets; None when the sets hold no decoded pixels to compare.
        warnings: what a reader should know before trusting the numbers.
        feature_map: φ.
        neighborhood: samples of both sets, and what the modes mark among them, to tell members in fresh data; None
            where the sets keep too few samples.
        captions: what is known of the samples that may be shown: metadata, and the nearest reference sample.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> comparison = fe.compare(*example_sets(), features=500)
        >>> comparison.save("comparison.h5")
        >>> fe.load("comparison.h5").under[0].id == comparison.under[0].id
        True
    """

    type_name: ClassVar[str] = "comparison"
    names_in_sentences = IN_SENTENCES

    over: tuple[Mode, ...]
    under: tuple[Mode, ...]
    difference: float | None
    difference_kinds: int | None
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
    clusters_tested: int
    spectrum: Spectrum
    kernel_error: KernelError | None
    copies: Copies | None
    warnings: tuple[str, ...]
    feature_map: Annotated[FeatureMap, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)
    neighborhood: Annotated[Neighborhood | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)
    captions: Annotated[Captions, *NOT_IN_JSON] = field(default_factory=dict, kw_only=True, repr=False)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def headline(self) -> str:
        """Findings in a few plain sentences."""
        return headline(self)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All modes, over- and then under-represented ones."""
        return self.over + self.under

    def significant(self, alpha: float = 0.05) -> tuple[Mode, ...]:
        """Return the modes whose adjusted p-value is at most α.

        Among all directions and clusters tested, a false one is in it with probability α at most.

        Raises:
            UsageError: α does not lie between 0 and 1.
        """
        return significant(self.modes, alpha)

    def shown_ids(self, label: SetLabel) -> list[str]:
        """Return the ids of the samples of a set that a page shows."""
        found = [name for mode in self.modes for name in mode.shown(label, self.shown)]
        pairs = self.copies.examples[:SHOWN_COPIES] if self.copies and self.shown else ()
        found += (pair[0 if label == "gen" else 1] for pair in pairs)
        return found if label == "gen" else [*found, *(other for mode in self.modes for other in self.nearest(mode))]

    def nearest(self, mode: Mode) -> tuple[str, ...]:
        """Return the ids of the reference samples nearest to the first half of the typical generated ones."""
        captions = self.captions.get("gen", {})
        known = (captions[name].nearest for name in mode.typical("gen")[: (self.shown + 1) // 2] if name in captions)
        return tuple(one[0] for one in known if one)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return both sets."""
        return {"gen": self.gen, "ref": self.ref}

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of both sets that a page shows."""
        return {label: self.shown_ids(label) for label in SET_NAMES}

    def score(self, embeddings: object, modes: Sequence[Mode] | None = None) -> NDArray[np.float32]:
        """Score any samples on the modes: s = φ(x)·v is high for samples of the mode.

        Args:
            embeddings: array or tensor of shape (n, d), `EmbeddingCache` or the path of one, of the same extractor.
            modes: modes to score on; default: all.

        Returns:
            Shape (n, k), between −1 and 1, one column a mode; a mode's mass is the mean of s².

        Raises:
            IncompatibleError: the embeddings are of another extractor or dimension.
        """
        rows = as_embeddings(embeddings)
        chosen = self.modes if modes is None else modes
        scores = np.empty((rows.n, len(chosen)), np.float32)
        for batch, batch_scores in self.score_batches(rows, chosen):
            scores[batch.start : batch.start + len(batch.rows)] = batch_scores
        return scores

    def score_batches(self, embeddings: object, modes: Sequence[Mode]) -> Iterator[tuple[Batch, NDArray[np.float32]]]:
        """Score batch by batch: yield each batch with its scores, shape (b, k), in the order of the set."""
        rows = as_embeddings(embeddings)
        check_same_space(rows.name, rows.space, "the comparison", self.space)
        shape = (len(modes), self.feature_map.size)
        vectors = np.array([mode.direction for mode in modes], np.float32).reshape(shape)
        directions = torch.from_numpy(vectors.T).to(self.feature_map.device)
        for batch in rows.batches():
            yield batch, (self.feature_map(batch.rows) @ directions).cpu().numpy()

    def tells_members(self, modes: Sequence[Mode] | None = None) -> NDArray[np.bool_]:
        """Return of which modes the members among fresh samples can be told, shape (k,); not of a rare cluster."""
        chosen = self.modes if modes is None else modes
        return np.logical_or(self._by_neighbors(chosen), [mode.threshold is not None for mode in chosen])

    def members(self, embeddings: object, modes: Sequence[Mode] | None = None) -> NDArray[np.bool_]:
        """Tell which of any samples are members of the modes.

        A sample is a member if enough of its nearest neighbors, among samples of both sets that the comparison keeps,
        are of the mode's kind; of a mode with few such samples, if its score is at least the mode's threshold.

        Args:
            embeddings: array or tensor of shape (n, d), `EmbeddingCache` or the path of one, of the same extractor.
            modes: modes of this comparison; default: all.

        Returns:
            Shape (n, k), one column a mode; False where members cannot be told (`tells_members`).

        Raises:
            UsageError: a mode is not of this comparison.
            IncompatibleError: the embeddings are of another extractor or dimension.
        """
        chosen = self.modes if modes is None else modes
        self._places(chosen)
        batches = self.score_batches(embeddings, chosen)
        return np.concatenate([self.members_of(batch.rows, scores, chosen) for batch, scores in batches])

    def members_of(self, rows: torch.Tensor, scores: NDArray[np.float32], modes: Sequence[Mode]) -> NDArray[np.bool_]:
        """Tell which of some rows, (n, d), with their scores, (n, k), are members of the modes: (n, k)."""
        least = [np.inf if mode.threshold is None else mode.threshold for mode in modes]
        beyond = np.asarray(scores >= np.array(least, np.float32))
        if self.neighborhood is None:
            return beyond
        near = self.neighborhood.members(rows.to(self.neighborhood.rows.device)).cpu().numpy()
        return np.where(self._by_neighbors(modes), near[:, self._places(modes)], beyond)

    def _by_neighbors(self, modes: Sequence[Mode]) -> NDArray[np.bool_]:
        """Return of which modes neighbors tell the members, shape (k,)."""
        if self.neighborhood is None:
            return np.zeros(len(modes), bool)
        return np.asarray(self.neighborhood.known.cpu().numpy()[self._places(modes)])

    def _places(self, modes: Sequence[Mode]) -> list[int]:
        places = {mode.id: place for place, mode in enumerate(self.modes)}
        for mode in modes:
            if mode.id not in places:
                raise UsageError(f"{mode.id} is not a mode of this comparison: pass those of comparison.modes")
        return [places[mode.id] for mode in modes]

    def _write(self, file: NewFile) -> None:
        directions = [mode.direction for mode in self.modes]
        file.array("directions", np.array(directions, np.float32).reshape(len(directions), self.feature_map.size))
        write_feature_map(file, self.feature_map)
        if self.neighborhood is not None:
            write_neighborhood(file, self.neighborhood)
        file.header["captions"] = stored_captions(self.captions, self.shown_samples())

    @classmethod
    def _read(cls, file: StoredFile, data: dict[str, Any]) -> dict[str, Any]:
        feature_map = read_feature_map(file)
        modes = [*data["over"], *data["under"]]
        directions = file.array("directions", len(modes), feature_map.size)
        if not np.isfinite(directions).all():
            raise ValueError("a direction has numbers that are not finite")
        for mode, direction in zip(modes, directions, strict=True):
            mode["direction"] = direction
        return {
            "feature_map": feature_map,
            "neighborhood": read_neighborhood(file, feature_map.dim, len(modes)),
            "captions": checked_captions(file.header["captions"]),
        }

    def _frame_rows(self) -> list[dict[str, object]]:
        return [mode.row() for mode in self.modes]

    def _lines(self) -> Iterator[str]:
        return (one._summary() for one in self.significant())

    def _summary(self) -> str:
        return f"{self.gen.n:,} generated, {self.ref.n:,} reference, {self.space}: {short(self)}"
