"""The public transform from embeddings to the input of the features, fixed by public data or constants alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_count, check_positive
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.run import Run
from finc_eval.embeddings.recipe import ARRAY_SPACE, check_same_space
from finc_eval.measures.gaussians.opened import gaussian_statistics
from finc_eval.numerics.kernels import median_distance
from finc_eval.private.dp.records import Records, open_records
from finc_eval.private.reference.result import TransformHeader

SHARE_WITHIN_RADIUS = 0.99  # share of the public embeddings that lie within the radius


@dataclass(frozen=True, eq=False)
class PublicTransform:
    """The map x ↦ (x − center) · axes, drawn back to a ball. None of its numbers may depend on the private records.

    A row that is not finite counts as the center, so the image of any record is a point of the ball.

    Attributes:
        center: shape (d,), float64.
        axes: shape (d, D), float64.
        radius: radius of the ball, in the units of the images.
        length_scale: length scale l of the Gaussian kernel on the images, in the same units.
        origin: where these numbers come from, in words.
        space: the extractor of the embeddings, as name@digest.
        fitted_on: digests that identify the public set; empty without a public set.
        content: digests of the content of its samples. They are not kept in files.

    Raises:
        UsageError: radius or length scale is not positive, or center and axes do not fit together.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> _, public = example_sets(200)
        >>> transform = fe.privacy.PublicTransform.fit(public, dims=10)
        >>> transform.dim, transform.dims
        (784, 10)
        >>> constant = fe.privacy.PublicTransform.constant(784, 10, length_scale=5, radius=10)
        >>> constant.origin
        'constants: 10 orthonormal directions drawn from seed 0'
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
        for name in ("radius", "length_scale"):  # float, as files have it: 3 and 3.0 have unlike digests
            object.__setattr__(self, name, float(check_positive(name, getattr(self, name))))
        finite = bool(self.center.isfinite().all()) and bool(self.axes.isfinite().all())
        if self.axes.ndim != 2 or self.center.shape != self.axes.shape[:1] or not finite:
            raise UsageError(
                f"the center and the axes must be finite and have shapes (d,) and (d, D), got "
                f"{tuple(self.center.shape)} and {tuple(self.axes.shape)}"
            )

    @classmethod
    def fit(cls, public: object, dims: int = 20, *, whiten: bool = True) -> PublicTransform:
        """Take the leading principal axes of public embeddings, with their median distance as length scale.

        Args:
            public: embeddings that anybody may see: an array or tensor (n, d), an `EmbeddingCache` or its path.
            dims: D, number of axes; fewer if the embeddings vary in fewer directions.
            whiten: scale every axis to variance one.

        Raises:
            UsageError: dims is not a positive whole number.
            DataError: the public embeddings are too few, or all alike.
        """
        check_count("dims", dims)
        records = open_records(public, "the public set")
        statistics = gaussian_statistics(public, "the public set", run=Run(device="cpu"))
        values, vectors = torch.linalg.eigh(statistics.covariance)
        # 1e-9: smallest variance of an axis, relative to the largest variance.
        kept = int((values[-dims:] > 1e-9 * values[-1]).sum()) if values[-1] > 0 else 0
        if not kept:
            raise DataError("the public embeddings are all alike, so no axes follow from them: take another set")
        axes = vectors[:, -kept:].flip(1)
        axes = axes * axes[axes.abs().argmax(0), torch.arange(kept)].sign()  # libraries differ in the signs
        if whiten:
            axes = axes * values[-kept:].flip(0).rsqrt()
        # 2000: largest number of public embeddings from which length scale and radius are computed.
        step = -(-records.m // 2000)
        rows = torch.cat([rows[-start % step :: step] for start, rows in records.batches()])
        rows = rows[rows.isfinite().all(1)]  # samples that could not be read are also records
        shown = (rows.double() - statistics.mean) @ axes
        return cls(
            statistics.mean,
            axes,
            radius=float(torch.linalg.vector_norm(shown, dim=1).quantile(SHARE_WITHIN_RADIUS)),
            length_scale=median_distance(shown.float()),
            origin=f"the {kept} leading principal axes of {statistics.n:,} public embeddings"
            f"{', each scaled to variance one' if whiten else ''}; their median distance is the length scale, and "
            f"{SHARE_WITHIN_RADIUS:.0%} of them lie within the radius",
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
        """Build a transform from constants alone, with or without a random projection.

        Args:
            dim: d, entries of an embedding.
            dims: D, number of orthonormal directions drawn from the seed; default: the embedding's own entries.
            length_scale: l, in the units of the embedding.
            radius: radius of the ball around the center.
            center: shape (d,), or one number for all entries; default: zero.
            seed: random seed of the directions.
            space: extractor that the constants are meant for; default: any.

        Raises:
            UsageError: an argument is out of range.
        """
        if dims is not None and not 1 <= dims <= dim:
            raise UsageError(f"a projection of {dim} entries has 1 to {dim} dimensions, got {dims}")
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
        """SHA-256 of all numbers. Sketches can be compared and merged only if their digests agree."""
        scales = f"{tuple(self.axes.shape)} {self.radius!r} {self.length_scale!r}"
        return sha256_of(scales, self.center, self.axes)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Map embeddings to their images: (n, d) → (n, D) float64, all of norm ≤ `radius`.

        Raises:
            IncompatibleError: the embeddings have another number of entries.
        """
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise IncompatibleError(
                f"the transform takes embeddings of shape (n, {self.dim}), got {tuple(rows.shape)}: extract them with "
                f"{self.space.split('@')[0]}"
            )
        finite = rows.isfinite().all(1, keepdim=True)
        centered = torch.where(finite, rows.double(), self.center) - self.center
        # float64 embeddings may be so large that their squares overflow; a norm of 1e100 is also beyond any radius.
        images = centered.clamp(-1e100, 1e100) @ self.axes
        norms = torch.linalg.vector_norm(images, dim=1, keepdim=True)
        inside: torch.Tensor = images * (self.radius / norms.clamp_min(self.radius))
        return inside

    def check_public(self, private: Records) -> None:
        """Refuse private records that this transform was fitted on, or of another extractor."""
        check_same_space("the public set", self.space, "the private set", private.space)
        if set(self.fitted_on) & set(private.identities):
            raise DataError(
                "the transform was fitted on the private set itself, which would release it without protection: fit "
                "it on public embeddings, or take constants"
            )
        shared = int(np.isin(private.content, self.content).sum())
        if shared:
            raise DataError(
                f"{shared} of the {private.m} private records are also in the public set, which decides scales and "
                "axes: remove them from the public set, or from the private set if they are public"
            )

    @property
    def header(self) -> TransformHeader:
        """Everything but the arrays."""
        return TransformHeader(
            self.digest, self.origin, self.dims, self.radius, self.length_scale, self.space, self.fitted_on
        )

    def write(self, file: NewFile) -> None:
        """Store the arrays of the transform in a file."""
        file.array("transform/center", self.center.numpy())
        file.array("transform/axes", self.axes.numpy())

    @classmethod
    def read(cls, file: StoredFile, header: TransformHeader) -> PublicTransform:
        """Read a transform that `write` stored; call it in `content_of`."""
        axes = file.array("transform/axes", None, header.dims, dtype="<f8")
        transform = cls(
            torch.from_numpy(file.array("transform/center", len(axes), dtype="<f8")),
            torch.from_numpy(axes),
            header.radius,
            header.length_scale,
            header.origin,
            header.space,
            header.fitted_on,
        )
        if transform.digest != header.digest:
            raise ValueError("its transform is not the one that was released")
        return transform
