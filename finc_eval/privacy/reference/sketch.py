"""The private sketch: a noisy mean of features that its owner releases once, and anybody scores generators against.

Scoring reads what was released and nothing else, so it costs no privacy, however often it is done. The exception is a
generator that was trained on the sketch: it fits the noise, too, and needs another sketch to be scored with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

import torch

from finc_eval.core.checks import check_fraction
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.signature import Signature
from finc_eval.core.storage import existing_hdf5, new_hdf5
from finc_eval.embeddings.base import check_same_space
from finc_eval.feature_maps.hermite import HermiteFeatures
from finc_eval.privacy.dp.gaussian_mechanism import Guarantee
from finc_eval.privacy.reference import scoring as private_scoring
from finc_eval.privacy.reference.mean_distance import NoisyMean, SampleMean
from finc_eval.privacy.reference.note import Release, digest_of
from finc_eval.privacy.reference.result import Part, PrivateComparison, PrivateScore
from finc_eval.privacy.reference.transform import PublicTransform
from finc_eval.sketches.feature_map_file import read_feature_map, write_feature_map

KIND = "private sketch"
SCHEMA = 1

LARGEST = 5000
"""Features of a sketch, at most: error bars need their covariance, 200 MB of float64."""

PROMISE = (
    "Everything here that depends on the private records had Gaussian noise added before it was written. The releases "
    "say to what guarantee, for each record of a data set whose number of records is public. The noise is from the "
    "operating system's random bytes, by inversion in float64, and is rounded to a grid of about 2^-20 of its size."
)


@dataclass(frozen=True, eq=False)
class PrivateSketch:
    """A released mean of features, with all that is needed to score against it, and nothing else.

    Attributes:
        transform: from embeddings to what φ takes, public.
        feature_map: φ.
        classes: the public list of classes, by each of which there is a mean of φ; None without.
        space: the extractor of the embeddings, as name@digest.
        mean: the released mean, shape (A,), float64; of several owners the mean weighted by their records.
        releases: one for each owner.
    """

    transform: PublicTransform
    feature_map: HermiteFeatures
    classes: tuple[str, ...] | None
    space: str
    mean: torch.Tensor
    releases: tuple[Release, ...]

    @property
    def m(self) -> int:
        """How many records, of all owners."""
        return sum(release.m for release in self.releases)

    @property
    def size(self) -> int:
        """A, the number of released entries."""
        return len(self.mean)

    @property
    def noise(self) -> float:
        """s, the standard deviation of the noise on every entry: s² = Σ w² s_i², with w the shares of the records."""
        return sqrt(sum((release.m / self.m * release.noise) ** 2 for release in self.releases))

    @property
    def digest(self) -> str:
        """SHA-256 of all releases: what tells two sketches apart."""
        return hashlib.sha256("".join(release.digest for release in self.releases).encode()).hexdigest()

    @property
    def noisy_mean(self) -> NoisyMean:
        """What the estimators take."""
        sampling = sum((release.m / self.m) ** 2 * release.sampling for release in self.releases)
        return NoisyMean(self.mean, self.noise, sampling)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What the records of each owner are promised."""
        return tuple(release.guarantee for release in self.releases)

    def sampled(
        self, gen: object, labels: Sequence[object] | None = None, *, progress: Progress = silent
    ) -> SampleMean:
        """Mean and covariance of the features of generated samples, in one pass.

        Args:
            gen: embeddings: an array or tensor (n, d), an `EmbeddingCache` or its path.
            labels: their classes, where the sketch has classes; those of the cache when left out.
            progress: told the stage, the samples done and their number.

        Raises:
            FincEvalError: they are of another extractor, or fewer than two, or have no labels where they are needed.
        """
        return private_scoring.sampled(self, gen, labels, progress)

    def score(
        self,
        gen: object,
        labels: Sequence[object] | None = None,
        *,
        name: str = "gen",
        level: float = 0.95,
        progress: Progress = silent,
    ) -> PrivateScore:
        """How far a generator is from the private records: an unbiased MMD² with its error bars.

        Args:
            gen: as of `sampled`, or what that returned.
            labels: likewise.
            name: what to call the generator.
            level: of the intervals.
            progress: told the stage, the samples done and their number.

        Raises:
            FincEvalError: as of `sampled`, or the level is no confidence.
        """
        check_fraction("level", level)
        sampled = gen if isinstance(gen, SampleMean) else self.sampled(gen, labels, progress=progress)
        return private_scoring.scored(self, sampled, name, level)

    def by_degree(
        self, gen: object, labels: Sequence[object] | None = None, *, level: float = 0.95
    ) -> tuple[Part, ...]:
        """The score taken apart by the degree of the features: which order of moments is wrong. The parts add to it."""
        return self.score(gen, labels, level=level).degrees

    def compare(
        self,
        gens: Mapping[str, object],
        labels: Mapping[str, Sequence[object]] | None = None,
        *,
        level: float = 0.95,
        progress: Progress = silent,
    ) -> PrivateComparison:
        """Rank generators by this one sketch. Of a difference of two scores most of the noise cancels.

        Args:
            gens: by name, as of `sampled`; independent of each other.
            labels: by name, likewise.
            level: of the intervals.
            progress: told the stage, the samples done and their number.

        Raises:
            FincEvalError: there are fewer than two, or as of `sampled`.
        """
        check_fraction("level", level)
        if len(gens) < 2:
            raise FincEvalError(f"a comparison needs two generators at least, got {len(gens)}: score one alone")
        known = labels or {}
        sampled = {
            name: gen if isinstance(gen, SampleMean) else self.sampled(gen, known.get(name), progress=progress)
            for name, gen in gens.items()
        }
        return private_scoring.compared(self, sampled, level)

    @property
    def signature(self) -> Signature:
        """Everything that changes a score save the generated set."""
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

    @staticmethod
    def merge(sketches: Sequence[PrivateSketch]) -> PrivateSketch:
        """The sketch of the records of several owners: means weighted by the numbers of records.

        What each owner's records are promised stays as it is, as long as no record is with two owners.

        Raises:
            FincEvalError: there are fewer than two, they differ in transform, features or classes, or one release is
                in two of them.
        """
        if len(sketches) < 2:
            raise FincEvalError(f"merging needs two sketches at least, got {len(sketches)}")
        first = sketches[0]
        for other in sketches[1:]:
            first.check_comparable(other)
        releases = tuple(release for sketch in sketches for release in sketch.releases)
        if len({release.digest for release in releases}) < len(releases):
            raise FincEvalError("one release is in two of the sketches: merge each owner's once")
        total = sum(release.m for release in releases)
        mean = torch.stack([sketch.m / total * sketch.mean for sketch in sketches]).sum(0)
        return PrivateSketch(first.transform, first.feature_map, first.classes, first.space, mean, releases)

    def check_comparable(self, other: PrivateSketch) -> None:
        """Raise FincEvalError unless both sketches are of one space, transform, feature map and list of classes."""
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
            raise FincEvalError(
                f"the sketches differ in their {' and '.join(unlike)}: release one of them like the other, which "
                "spends its budget again"
            )

    def header(self) -> dict[str, Any]:
        """Everything but the released mean, as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "kind": KIND,
            "schema": SCHEMA,
            "promise": PROMISE,
            "space": self.space,
            "transform": {
                "digest": self.transform.digest,
                "origin": self.transform.origin,
                "dims": self.transform.dims,
                "radius": self.transform.radius,
                "length_scale": self.transform.length_scale,
            },
            "feature_map": self.feature_map.parameters,
            "classes": None if self.classes is None else list(self.classes),
            "features": self.size,
            "m": self.m,
            "noise": self.noise,
            "mean": digest_of(self.mean),
            "releases": [release.to_dict() for release in self.releases],
            "signature": str(self.signature),
        }

    def save(self, path: str | Path) -> None:
        """Write the sketch to an HDF5 file, which holds nothing of the owner's machine, and no time."""
        with new_hdf5(path, KIND, SCHEMA) as file:
            file.attrs["header"] = json.dumps(self.header(), ensure_ascii=False)
            self.transform.write(file)
            write_feature_map(file, self.feature_map)
            file["mean"] = self.mean.numpy()

    @classmethod
    def load(cls, path: str | Path) -> PrivateSketch:
        """Read a sketch that `save` wrote.

        Raises:
            FincEvalError: the file is missing, damaged, or no private sketch.
        """
        with existing_hdf5(path, KIND, SCHEMA) as file:
            try:
                header = json.loads(file.attrs["header"])
                phi = read_feature_map(file)
                if not isinstance(phi, HermiteFeatures):
                    raise TypeError(f"features of the kind {phi.kernel}")
                sketch = cls(
                    transform=PublicTransform.read(file),
                    feature_map=phi,
                    classes=None if header["classes"] is None else tuple(header["classes"]),
                    space=header["space"],
                    mean=torch.from_numpy(file["mean"][:]),
                    releases=tuple(map(Release.from_dict, header["releases"])),
                )
                said, found = ((one["mean"], one["signature"]) for one in (header, sketch.header()))
                if said != found:
                    raise ValueError(f"{found} in place of {said}")
            except (FincEvalError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
                raise FincEvalError(f"{path} is damaged: ask its owner for the file again") from error
        return sketch
