"""`compare`: two sets, or their sketches, in; the modes on which they differ out."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Literal

import numpy as np
import torch

from finc_eval.comparison.assemble import assembled
from finc_eval.comparison.baseline_directions import baseline_fits, constant_features
from finc_eval.comparison.caveats import caveats
from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.inputs import ERROR_SAMPLE, EXAMPLES, Kernel, Side, Sketching, open_sides
from finc_eval.comparison.method import Method, MethodName
from finc_eval.comparison.result import Comparison, Copies, Settings
from finc_eval.comparison.search import Rotation, Search, check_search
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ARRAY_SPACE
from finc_eval.feature_maps.approximation import approximation_error
from finc_eval.numerics.bandwidth import bandwidth_warning
from finc_eval.numerics.precision import Precision, arithmetic


def compare(
    gen: object,
    ref: object,
    *,
    method: MethodName = "finc",
    rho: float = 1.0,
    kernel: Kernel = "gaussian",
    sigma: float | None = None,
    features: int | Literal["auto"] = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    novel: float | None = None,
    neighbors: int | None = None,
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Find the kinds of samples that `gen` has more of than `ref`, and fewer, with intervals and p-values.

    FINC (arXiv 2405.02700) on random Fourier features: the leading directions of Λ = C_gen − ρ·C_ref, rotated by
    varimax, with cross-fitted masses, intervals and p-values (docs/method.md). Embeddings are streamed, in one pass
    that sketches a set and one that scores it; of cached sets only the 8-byte digests of samples are held whole.

    The baselines of the paper propose other directions, and all else is the same. They need embeddings of both sets.
    Exact KEN holds the kernel matrix of both, of 20 000 samples in all at most: 8 GB, and a quarter of an hour.

    Args:
        gen: the generated set: array or tensor of embeddings (n, d), `EmbeddingCache`, `Sketch`, or the path of a
            cache or sketch.
        ref: the reference set, likewise. Two sketches must share their feature map.
        method: "finc"; or "ken", the eigenfunctions of exact KEN; or "rarity" or "fld", clusters of the samples that
            are most novel by that score.
        rho: ρ > 0: a kind counts when one set has more than ρ times the mass of the other.
        kernel: "gaussian", or "cosine", which is exact and has neither bandwidth nor frequencies. A sketch brings
            its own.
        sigma: bandwidth of the Gaussian kernel; 0.5 × the median pairwise distance of the reference when left
            out. A sketch brings its own.
        features: r, the number of random frequencies; "auto" takes 1000, 2000 or 4000, the first whose measured
            error of the kernel is within 0.01. A sketch brings its own.
        modes: how many modes of each role to report at most; those without positive excess are left out. Rarity and
            FLD cluster into as many.
        seed: of the frequencies; a sketch brings its own.
        rotation: of FINC's eigenvectors: "varimax", or None for those of the paper. The baselines have none.
        novel: of Rarity and FLD, the share of a set's samples that are clustered; 0.3 when left out.
        neighbors: of Rarity, to which neighbor the balls of its manifold reach; 3 when left out.
        precision: of the covariances: "float32", "tf32", "bfloat16" or "float64". A sketch brings its own.
        batch_size: samples per matrix product; it bounds the memory and does not change the result.
        device: where to compute; CUDA if available when left out. A sketch stays where it is.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: on sets of unlike extractors or dimensions, fewer than 20 samples, embeddings that are not
            finite, parameters out of range, or a baseline that has a sketch, too many samples or too few.
    """
    check_search(rho, modes, rotation)
    chosen = Method.of(method, novel, neighbors)
    how = Sketching(kernel, sigma, features, seed, precision, batch_size, device)
    sides, rule = open_sides({"gen": gen, "ref": ref}, ["ref"], how, progress)
    settings = settings_for(sides["gen"], rule, chosen, rho, modes, rotation)
    return compare_sides(sides["gen"], sides["ref"], settings, progress)


def settings_for(side: Side, rule: str, method: Method, rho: float, modes: int, rotation: Rotation) -> Settings:
    """The settings of a comparison of sides, of which this is one."""
    phi = side.sketch.feature_map
    return Settings(
        rho=float(rho),
        kernel=phi.kernel,
        sigma=phi.sigma,
        sigma_rule=rule,
        features=phi.features,
        modes=modes,
        seed=phi.seed,
        rotation=rotation if method.name == "finc" else None,
        method=method,
    )


@arithmetic("float32")
def compare_sides(gen_side: Side, ref_side: Side, settings: Settings, progress: Progress = silent) -> Comparison:
    """`compare` of sets that are opened and sketched."""
    over, under = _fits(gen_side, ref_side, settings, progress)
    gen, ref = (side.score([over, under], progress) for side in (gen_side, ref_side))
    modes, under_represented = assembled(over, under, gen, ref, settings)
    copies = _copies(gen_side, ref_side)
    samples = torch.cat([side.sketch.sample.rows[:ERROR_SAMPLE] for side in (gen_side, ref_side)])
    phi = gen_side.sketch.feature_map
    return Comparison(
        modes=modes,
        under_represented=under_represented,
        gen=gen_side.info(),
        ref=ref_side.info(),
        settings=settings,
        signature=_signature(gen_side, ref_side, settings),
        space=_space(gen_side, ref_side),
        tested=over.full.vectors.shape[1] + under.full.vectors.shape[1],
        spectrum=(tuple(over.full.eigenvalues.tolist()), tuple(under.full.eigenvalues.tolist())),
        kernel_error=approximation_error(phi, samples) if len(samples) > 1 else None,
        copies=copies,
        warnings=(
            *_of_bandwidth(phi.sigma, samples),
            *_of_method(settings.method, gen_side, ref_side),
            *caveats(gen_side, ref_side, copies),
        ),
        feature_map=phi,
        version=version("finc-eval"),
    )


def _fits(gen: Side, ref: Side, settings: Settings, progress: Progress) -> tuple[CrossFit, CrossFit]:
    """The directions on which gen has more, and those on which it has less."""
    fit = _fit(gen, ref, settings)
    fits = []
    for done, (one, other) in enumerate(((gen, ref), (ref, gen))):
        progress("decompose", done, 2)
        fits.append(fit(one, other))
    progress("decompose", 2, 2)
    return fits[0], fits[1]


def _fit(gen: Side, ref: Side, settings: Settings) -> Callable[[Side, Side], CrossFit]:
    """What fits the directions on which one set has more than another."""
    if settings.method.name != "finc":
        return baseline_fits(settings.method, gen, ref, settings.rho, settings.modes)
    search = Search.among([gen, ref], settings.rho, settings.modes, settings.rotation)
    return lambda one, other: search.fit([(1.0, one)], [(1.0, other)])


def _of_bandwidth(sigma: float | None, samples: torch.Tensor) -> list[str]:
    warning = None if sigma is None else bandwidth_warning(samples, sigma)
    return [] if warning is None else [warning]


def _of_method(method: Method, gen: Side, ref: Side) -> list[str]:
    """What a baseline leaves out of the sets."""
    if method.name != "fld":
        return []
    same = [constant_features(side.embeddings) for side in (gen, ref) if side.embeddings is not None]
    count = int(np.logical_or(*same).sum())
    if not count:
        return []
    return [f"{count} of the {gen.sketch.dim} features are constant in one of the sets, and FLD leaves them out there"]


def _copies(gen: Side, ref: Side) -> Copies | None:
    if gen.cache is None or ref.cache is None:
        return None
    contents, rows = np.unique(ref.cache.content, return_index=True)
    copied = np.flatnonzero(np.isin(gen.cache.content, contents))
    examples = copied[:EXAMPLES]
    originals = rows[np.searchsorted(contents, gen.cache.content[examples])]
    return Copies(len(copied), tuple(zip(gen.ids_at(examples), ref.ids_at(originals), strict=True)))


def _space(gen: Side, ref: Side) -> str:
    spaces = sorted({gen.sketch.space, ref.sketch.space}, key=lambda space: space.startswith(ARRAY_SPACE))
    return spaces[0]


def _signature(gen: Side, ref: Side, settings: Settings) -> Signature:
    phi = gen.sketch.feature_map
    method = settings.method
    return Signature(
        method.name,
        (
            ("n", f"{gen.sketch.n}/{ref.sketch.n}"),
            ("fx", _space(gen, ref)),
            ("ref", "+".join(source[:12] for source in ref.sketch.sources) or "streamed"),
            *phi.signature(),
            ("rho", f"{settings.rho:g}"),
            ("modes", str(settings.modes)),
            *((("rotation", settings.rotation or "none"),) if method.name == "finc" else method.fields),
            ("prec", "/".join(dict.fromkeys((gen.sketch.precision, ref.sketch.precision)))),
            ("se", "conservative" if gen.embeddings is None or ref.embeddings is None else "sharp"),
            ("v", version("finc-eval")),
        ),
    )
