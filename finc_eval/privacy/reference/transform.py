"""The way from an embedding to the numbers that features are computed of, fixed by public data or constants alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import h5py
import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import ARRAY_SPACE, check_same_space
from finc_eval.metrics.inputs import gaussian_statistics
from finc_eval.numerics.bandwidth import median_distance
from finc_eval.privacy.dp.records import Records, opened_records

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LOOKED_AT = 2000
"""Public embeddings from which length scale and radius follow."""

INSIDE = 0.99
"""Share of the public embeddings within the radius."""

NO_VARIANCE = 1e-9
"""Variances below this times the largest are none."""


@dataclass(frozen=True, eq=False)
class PublicTransform:
    """x ↦ (x − center) · axes, drawn back to a ball: none of it may have seen the private records.

    A row that is not finite counts as the center. So whatever a record holds, its image is a point of the ball.

    Attributes:
        center: shape (d,), float64.
        axes: shape (d, D), float64.
        radius: of the ball, in the units of the images.
        length_scale: l of the Gaussian kernel on the images, in the same units.
        origin: in words, where all these come from.
        space: the extractor of the embeddings, as name@digest.
        fitted_on: digests that identify the public set; empty where there was none.
        content: digests of its samples' content, as long as they are known; they are not kept in files.
    """

    center: torch.Tensor
    axes: torch.Tensor
    radius: float
    length_scale: float
    origin: str
    space: str
    fitted_on: tuple[str, ...] = ()
    content: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)

    def __post_init__(self) -> None:
        for name, value in (("radius", self.radius), ("length scale", self.length_scale)):
            if not 0 < value < inf:
                raise FincEvalError(f"the {name} must be a positive number, got {value}")
        finite = bool(self.center.isfinite().all()) and bool(self.axes.isfinite().all())
        if self.axes.ndim != 2 or self.center.shape != self.axes.shape[:1] or not finite:
            raise FincEvalError(
                f"the center and the axes must be finite and have shapes (d,) and (d, D), got "
                f"{tuple(self.center.shape)} and {tuple(self.axes.shape)}"
            )

    @classmethod
    def fitted(cls, public: object, dims: int = 20, *, whiten: bool = True) -> PublicTransform:
        """The leading principal axes of public embeddings, with the median distance as length scale.

        Args:
            public: embeddings that anybody may see: an array or tensor (n, d), an `EmbeddingCache` or its path.
            dims: D, how many axes; fewer where the embeddings vary in fewer directions.
            whiten: whether every axis is scaled to variance one.

        Raises:
            FincEvalError: the public embeddings are too few or all alike, or dims is not positive.
        """
        if dims < 1:
            raise FincEvalError(f"the number of dimensions must be at least 1, got {dims}")
        records = opened_records(public, "the public set")
        statistics = gaussian_statistics(public, "the public set", device="cpu")
        values, vectors = torch.linalg.eigh(statistics.covariance)
        kept = int((values[-dims:] > NO_VARIANCE * values[-1]).sum()) if values[-1] > 0 else 0
        if not kept:
            raise FincEvalError("the public embeddings are all alike, so no axes follow from them: take another set")
        axes = vectors[:, -kept:].flip(1)
        axes = axes * axes[axes.abs().argmax(0), torch.arange(kept)].sign()  # libraries differ in the signs
        if whiten:
            axes = axes * values[-kept:].flip(0).rsqrt()
        shown = (records.some(LOOKED_AT).double() - statistics.mean) @ axes
        return cls(
            statistics.mean,
            axes,
            radius=float(torch.linalg.vector_norm(shown, dim=1).quantile(INSIDE)),
            length_scale=median_distance(shown.float()),
            origin=f"the {kept} leading principal axes of {records.m:,} public embeddings"
            f"{', each scaled to variance one' if whiten else ''}; their median distance is the length scale, and "
            f"{INSIDE:.0%} of them lie within the radius",
            space=records.space,
            fitted_on=records.identities,
            content=records.content,
        )

    @classmethod
    def constant(
        cls,
        dim: int,
        dims: int | None = None,
        *,
        length_scale: float,
        radius: float,
        center: ArrayLike | torch.Tensor | None = None,
        seed: int = 0,
        space: str | None = None,
    ) -> PublicTransform:
        """A transform by constants alone: a random projection from a seed, or none.

        Args:
            dim: d, entries of an embedding.
            dims: D, orthonormal directions drawn from the seed; the embedding's own entries when left out.
            length_scale: l, in the units of the embedding.
            radius: of the ball about the center.
            center: shape (d,), or one number for all entries; zero when left out.
            seed: of the directions.
            space: the extractor that the constants are meant for; any when left out.

        Raises:
            FincEvalError: an argument is out of range.
        """
        if dims is not None and not 1 <= dims <= dim:
            raise FincEvalError(f"a projection of {dim} entries has 1 to {dim} dimensions, got {dims}")
        axes = torch.eye(dim, dtype=torch.double)
        if dims is not None:
            drawn = torch.from_numpy(np.random.default_rng(seed).standard_normal((dim, dims)))
            axes = torch.linalg.qr(drawn)[0]
        mu = torch.zeros(dim) if center is None else torch.as_tensor(center)
        how = "the embedding's own entries" if dims is None else f"{dims} orthonormal directions drawn from seed {seed}"
        return cls(
            mu.double().expand(dim).contiguous(),
            axes,
            radius,
            length_scale,
            origin=f"constants: {how}",
            space=space or f"{ARRAY_SPACE}{dim}",
        )

    @property
    def dim(self) -> int:
        """d, entries of an embedding."""
        return len(self.center)

    @property
    def dims(self) -> int:
        """D, entries of an image."""
        return self.axes.shape[1]

    @property
    def digest(self) -> str:
        """SHA-256 of all numbers: sketches compare and merge only where it agrees."""
        sha = hashlib.sha256(f"{tuple(self.axes.shape)} {self.radius!r} {self.length_scale!r}".encode())
        for part in (self.center, self.axes):
            sha.update(part.contiguous().numpy().tobytes())
        return sha.hexdigest()

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """The images of embeddings: (n, d) → (n, D) float64, all of norm ≤ `radius`."""
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise FincEvalError(
                f"the transform takes embeddings of shape (n, {self.dim}), got {tuple(rows.shape)}: extract them with "
                f"{self.space.split('@')[0]}"
            )
        finite = rows.isfinite().all(1, keepdim=True)
        centered = torch.where(finite, rows.double(), self.center) - self.center
        # float64 embeddings may be so large that their squares are not: a norm of 1e100 is beyond any radius, too.
        images = centered.clamp(-1e100, 1e100) @ self.axes
        norms = torch.linalg.vector_norm(images, dim=1, keepdim=True)
        inside: torch.Tensor = images * (self.radius / norms.clamp_min(self.radius))
        return inside

    def check_public(self, private: Records) -> None:
        """Refuse to transform records that this transform was fitted on.

        Raises:
            FincEvalError: the sets are the same, or share samples, or are of different extractors.
        """
        check_same_space("the public set", self.space, "the private set", private.space)
        if set(self.fitted_on) & set(private.identities):
            raise FincEvalError(
                "the transform was fitted on the private set itself, which would release it without protection: fit "
                "it on public embeddings, or take constants"
            )
        shared = int(np.isin(private.content, self.content).sum())
        if shared:
            raise FincEvalError(
                f"{shared} of the {private.m} private records are also in the public set, which decides scales and "
                "axes: leave them out of it, or of the private set if they are public"
            )

    def write(self, file: h5py.Group) -> None:
        """Store it as a group of its own."""
        group = file.create_group("transform")
        group.attrs.update(radius=self.radius, length_scale=self.length_scale, origin=self.origin, space=self.space)
        group.attrs["fitted_on"] = list(self.fitted_on)
        group["center"], group["axes"] = self.center.numpy(), self.axes.numpy()

    @classmethod
    def read(cls, file: h5py.Group) -> PublicTransform:
        """What `write` stored."""
        group = file["transform"]
        numbers = group.attrs
        return cls(
            torch.from_numpy(group["center"][:]),
            torch.from_numpy(group["axes"][:]),
            float(numbers["radius"]),
            float(numbers["length_scale"]),
            str(numbers["origin"]),
            str(numbers["space"]),
            tuple(str(digest) for digest in numbers["fitted_on"]),
        )
