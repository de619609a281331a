"""The private sketch: a noisy mean of features that its owner releases once, for anybody to score generators against.

Scoring reads only what was released, so it costs no privacy, however often it is done. A generator that was trained on
the sketch has also fitted its noise, and must be scored with another sketch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isclose, sqrt
from pathlib import Path
from typing import Any, ClassVar

import torch

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_choice, check_fraction
from finc_eval.core.files.stored import existing_file, file_type
from finc_eval.core.files.writing import new_file
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain, structure
from finc_eval.core.run import Run
from finc_eval.core.serialize import Shown
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.needs import needs_labels
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.embeddings.recipe import check_same_space
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.private.dp.gaussian_mechanism import class_features, class_indices
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.hermite.hermite import HermiteFeatures
from finc_eval.private.reference.mean_distance import (
    NoisyMean,
    SampleMean,
    largest_by_chance,
    noise_interval,
    sample_mean,
    sampling_variance,
    smallest_detected,
)
from finc_eval.private.reference.result import (
    PRIVATE_SKETCH,
    PRIVATE_SKETCH_LAYOUT,
    PrivateComparison,
    PrivateScore,
    PrivateSketchHeader,
    ReleaseRecord,
    estimate_part,
    estimate_parts,
    paired_differences,
)
from finc_eval.private.reference.transform import PublicTransform
from finc_eval.sketches.stored import read_feature_map, write_feature_map

MAX_SKETCH_FEATURES = 5000
"""Largest number of features of a sketch: error bars need their covariance, 200 MB of float64."""

VARIATION_HIDDEN = "the noise hides how much the records vary: there are too few records for this epsilon"


@dataclass(frozen=True, eq=False)
class PrivateSketch(Shown):
    """A released mean of features, with everything that is needed to score generators against it, and nothing else.

    Attributes:
        transform: public map from embeddings to the input of φ.
        feature_map: φ.
        classes: public list of classes, with one mean of φ per class; None without classes.
        space: the extractor of the embeddings, as name@digest.
        mean: released mean, shape (A,), float64; for several owners, the mean weighted by their records.
        releases: record of each owner's release.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(400)
        >>> public, private = ref[:200], ref[200:]
        >>> sketch = fe.privacy.release_sketch(private, public=public, epsilon=3, ledger=None)
        >>> sketch.save("reference.h5")
        >>> score = fe.privacy.PrivateSketch.load("reference.h5").score(gen)
        >>> score.n, [part.name for part in score.degrees]
        (400, ['degree 0', 'degree 1', 'degree 2'])
    """

    type_name: ClassVar[str] = PRIVATE_SKETCH

    transform: PublicTransform
    feature_map: HermiteFeatures
    classes: tuple[str, ...] | None
    space: str
    mean: torch.Tensor
    releases: tuple[ReleaseRecord, ...]

    @property
    def m(self) -> int:
        """Number of records of all owners."""
        return sum(release.m for release in self.releases)

    @property
    def size(self) -> int:
        """A, the number of released entries."""
        return len(self.mean)

    @property
    def noise(self) -> float:
        """s, the standard deviation of the noise on every entry: s² = Σ w² s_i², with w an owner's share of records."""
        return sqrt(sum((release.m / self.m * release.noise) ** 2 for release in self.releases))

    @property
    def digest(self) -> str:
        """SHA-256 of all releases, which identifies the sketch."""
        return sha256_of(*(release.digest for release in self.releases))

    @property
    def noisy_mean(self) -> NoisyMean:
        """The released mean with its noise, as the estimators take it."""
        sampling = sum((release.m / self.m) ** 2 * release.sampling for release in self.releases)
        return NoisyMean(self.mean, self.noise, sampling)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Guarantee to the records of each owner."""
        return tuple(release.guarantee for release in self.releases)

    @property
    def signature(self) -> Signature:
        """Everything that changes a score, except for the generated set."""
        return Signature(
            "private_mmd",
            (
                ("fx", self.space),
                ("transform", self.transform.digest[:12]),
                *self.feature_map.signature(),
                ("classes", "none" if self.classes is None else str(len(self.classes))),
                ("m", str(self.m)),
                ("ref", self.digest[:12]),
                ("noise", f"{self.noise:.6g}"),
            ),
        )

    def summarize(
        self,
        gen: object,
        labels: Sequence[object] | None = None,
        *,
        extractor: AnyExtractor = None,
        run: Run | None = None,
    ) -> SampleMean:
        """Compute mean and covariance of the features of generated samples, in one pass.

        Args:
            gen: embeddings: an array or tensor (n, d), an `EmbeddingCache` or its path; or the path of samples, which
                are embedded first; or what this method returned.
            labels: class of each sample, if the sketch has classes; default: the labels of the cache.
            extractor: how to embed samples; default: by the extractor behind the sketch.
            run: portions, threads and progress. Features are computed on the CPU.

        Raises:
            IncompatibleError: the embeddings come from another extractor.
            DataError: there are fewer than two samples, or the sketch has classes and the samples have no labels.
        """
        if isinstance(gen, SampleMean):
            return gen
        run, label = Run.of(run), "the generated set"
        checks = [needs_labels(label, self._no_labels(label))] if labels is None and self.classes is not None else []
        embeddings = open_embeddings({label: gen}, extractor, run, [self.space], checks=checks)[label]
        check_same_space(label, embeddings.space, "the private sketch", self.space)
        if embeddings.n < 2:
            raise DataError("a score against a private sketch needs at least two samples, got one")
        return sample_mean(self._features(embeddings, labels, run))

    def score(
        self,
        gen: object,
        labels: Sequence[object] | None = None,
        *,
        name: str = "gen",
        confidence: float = 0.95,
        extractor: AnyExtractor = None,
        run: Run | None = None,
    ) -> PrivateScore:
        """Estimate how far a generator is from the private records: an unbiased MMD² with its error bars.

        Args:
            gen: generated samples, as in `summarize`.
            labels: class of each sample, as in `summarize`.
            name: name of the generator.
            confidence: confidence of the intervals.
            extractor: how to embed samples, as in `summarize`.
            run: portions, threads and progress. Features are computed on the CPU.

        Raises:
            UsageError: the confidence is out of range.
            IncompatibleError: the embeddings come from another extractor.
            DataError: the samples are too few, or lack labels; see `summarize`.
        """
        check_fraction("confidence", confidence)
        return self._score(self.summarize(gen, labels, extractor=extractor, run=run), name, confidence)

    def compare(
        self,
        gens: Mapping[str, object],
        labels: Mapping[str, Sequence[object]] | None = None,
        *,
        yardstick: str | None = None,
        confidence: float = 0.95,
        extractor: AnyExtractor = None,
        run: Run | None = None,
    ) -> PrivateComparison:
        """Rank generators by this sketch. Most of the noise cancels in the difference of two scores.

        Args:
            gens: independent generated sets by name, each as in `summarize`.
            labels: classes of the samples by name of the set, as in `summarize`.
            yardstick: name of the set that holds real samples, such as a holdout: it is scored and not ranked.
            confidence: confidence of the intervals.
            extractor: how to embed samples, as in `summarize`.
            run: portions, threads and progress. Features are computed on the CPU.

        Raises:
            UsageError: there are fewer than two sets, an unknown yardstick, or the confidence is out of range.
            IncompatibleError: the embeddings of a set come from another extractor.
            DataError: a set is too small, or lacks labels; see `summarize`.
        """
        check_fraction("confidence", confidence)
        if len(gens) < 2:
            raise UsageError(f"a comparison needs at least two generators, got {len(gens)}: score a single one instead")
        if yardstick is not None:
            check_choice("yardstick", yardstick, gens)
        summarize, known = partial(self.summarize, extractor=extractor, run=run), labels or {}
        samples = {name: summarize(gen, known.get(name)) for name, gen in gens.items()}
        scores = sorted(
            (self._score(sample, name, confidence) for name, sample in samples.items()), key=lambda score: score.value
        )
        pairs = paired_differences(self.noisy_mean, {score.name: samples[score.name] for score in scores}, confidence)
        about = pairs, confidence, self.guarantees, self.signature, yardstick
        last = tuple(sorted(scores, key=lambda score: score.name == yardstick))
        return PrivateComparison(last, *about, provenance=Provenance.here("cpu"))

    @staticmethod
    def merge(sketches: Sequence[PrivateSketch]) -> PrivateSketch:
        """Merge the sketches of several owners: means are weighted by the numbers of records.

        The guarantee to each owner's records stays the same, as long as no record belongs to two owners.

        Raises:
            UsageError: there are fewer than two sketches, or two contain the same release.
            IncompatibleError: the sketches differ in extractor, transform, features or classes.
        """
        if len(sketches) < 2:
            raise UsageError(f"merging needs at least two sketches, got {len(sketches)}")
        first = sketches[0]
        for other in sketches[1:]:
            first.check_comparable(other)
        releases = tuple(release for sketch in sketches for release in sketch.releases)
        if len({release.digest for release in releases}) < len(releases):
            raise UsageError("one release is in two of the sketches: merge each owner's sketch once")
        total = sum(release.m for release in releases)
        mean = torch.stack([sketch.m / total * sketch.mean for sketch in sketches]).sum(0)
        return PrivateSketch(first.transform, first.feature_map, first.classes, first.space, mean, releases)

    def check_comparable(self, other: PrivateSketch) -> None:
        """Raise IncompatibleError unless both sketches share extractor, transform, feature map and list of classes."""
        check_same_space("one sketch", self.space, "the other", other.space)
        unlike = [
            what
            for what, mine, others in (
                ("transform", self.transform.digest, other.transform.digest),
                ("feature map", self.feature_map.digest, other.feature_map.digest),
                ("list of classes", self.classes, other.classes),
            )
            if mine != others
        ]
        if unlike:
            raise IncompatibleError(
                f"the sketches differ in their {' and '.join(unlike)}: release one of them like the other, which "
                "spends its budget again"
            )

    @property
    def header(self) -> PrivateSketchHeader:
        """Everything but the released mean."""
        return PrivateSketchHeader(
            space=self.space,
            transform=self.transform.header,
            feature_map=self.feature_map.parameters,
            classes=self.classes,
            features=self.size,
            m=self.m,
            noise=self.noise,
            mean=sha256_of(self.mean),
            releases=self.releases,
            signature=self.signature,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the released mean as plain JSON types."""
        return dict(plain(self.header))

    def _summary(self) -> str:
        spent = ", ".join(f"epsilon {guarantee.epsilon:g}" for guarantee in self.guarantees)
        return f"m={self.m}, space={self.space!r}, {spent}"

    def save(self, path: str | Path) -> None:
        """Write the sketch to an HDF5 file, which holds no time and nothing about the owner's machine."""
        with new_file(path, PRIVATE_SKETCH, PRIVATE_SKETCH_LAYOUT) as file:
            file.header |= plain(self.header)
            self.transform.write(file)
            write_feature_map(file, self.feature_map)
            file.array("mean", self.mean.numpy())

    @classmethod
    def load(cls, path: str | Path) -> PrivateSketch:
        """Read a sketch that `save` wrote.

        Raises:
            DataError: the file is missing, damaged, or not a private sketch.
        """
        with existing_file(path, PRIVATE_SKETCH, PRIVATE_SKETCH_LAYOUT, "ask its owner for the file again") as file:
            stated = {"version": file.version, **file.header}
            header = structure(PrivateSketchHeader, stated, f"{path} is damaged: its header")
            phi = read_feature_map(file)
            if not isinstance(phi, HermiteFeatures):
                raise ValueError(f"it has features of the kernel {phi.kernel}")
            entries = phi.size * len((1,) if header.classes is None else header.classes)
            sketch = cls(
                transform=PublicTransform.read(file, header.transform),
                feature_map=phi,
                classes=header.classes,
                space=header.space,
                mean=torch.from_numpy(file.array("mean", entries, dtype="<f8")),
                releases=header.releases,
            )
            if phi.dim != sketch.transform.dims:
                raise ValueError("its features are not of its transform")
            if (header.mean, header.signature) != (sketch.header.mean, sketch.signature):
                raise ValueError(f"its signature is {sketch.signature} instead of {header.signature}")
            if len(sketch.releases) == 1:  # the single means of merged owners are not known
                # Whoever alters a file can make its checksum again, but not what follows from the mean.
                (made,) = sketch.releases
                expected = sampling_variance(sketch.mean, made.noise, made.square, made.m)
                follows = isclose(made.sampling, expected, rel_tol=1e-6, abs_tol=1e-12)
                if made.digest != sha256_of(sketch.mean) or not follows:
                    raise ValueError(f"the sampling variance is {made.sampling}, and {expected} follows from the mean")
        return sketch

    def _score(self, sample: SampleMean, name: str, confidence: float) -> PrivateScore:
        ref = self.noisy_mean
        whole = estimate_part("all", ref, sample, confidence)
        hidden = any(release.sampling < 0 for release in self.releases)
        degrees = self.feature_map.degrees.repeat(len(self.classes or (1,)))
        by_degree = {f"degree {d}": (degrees == d).nonzero()[:, 0] for d in sorted(set(degrees.tolist()))}
        entries = torch.arange(self.size).view(-1, self.feature_map.size)
        by_class = {f"class {name}": entries[number] for number, name in enumerate(self.classes or ())}
        return PrivateScore(
            provenance=Provenance.here("cpu"),
            name=name,
            n=sample.n,
            value=whole.value,
            standard_error=whole.standard_error,
            interval=whole.interval,
            noise_interval=noise_interval(ref, sample, confidence),
            confidence=confidence,
            smallest_detected=smallest_detected(ref, confidence),
            by_chance=largest_by_chance(ref, sample, confidence),
            degrees=estimate_parts(ref, sample, by_degree, confidence),
            classes=estimate_parts(ref, sample, by_class, confidence),
            guarantees=self.guarantees,
            signature=self.signature,
            notes=(VARIATION_HIDDEN,) if hidden else (),
        )

    def _no_labels(self, name: str) -> DataError:
        known = ", ".join(self.classes or ())
        return DataError(f"the private sketch has classes ({known}), but {name} has no labels: pass labels")

    def _features(self, embeddings: Embeddings, labels: Sequence[object] | None, run: Run) -> Iterator[torch.Tensor]:
        """Yield φ of generated samples batch by batch, (b, A)."""
        places = None
        if self.classes is not None:
            known = embeddings.cache.labels if isinstance(embeddings, CachedEmbeddings) else None
            given = labels if labels is not None else known
            if given is None:
                raise self._no_labels(embeddings.name)
            places = class_indices(given, self.classes, embeddings.n)
        for batch in embeddings.batches(run.portion):
            stop = batch.start + len(batch.rows)
            here = None if places is None else places[batch.start : stop]
            yield class_features(self.feature_map, self.transform(batch.rows.cpu()), here, len(self.classes or (1,)))
            run.progress("score", stop, embeddings.n)


def as_private_sketch(source: object) -> PrivateSketch | None:
    """Open a set that is a private sketch, or the path of one; None for any other."""
    if isinstance(source, str | Path) and file_type(source) == PRIVATE_SKETCH:
        return PrivateSketch.load(source)
    return source if isinstance(source, PrivateSketch) else None
