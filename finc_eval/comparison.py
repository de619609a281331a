"""`compare`: two sets, or their sketches, in; the modes on which they differ out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from math import ceil, inf
from typing import Literal

import numpy as np
import torch

from finc_eval.device import default_device
from finc_eval.differential import OVERSAMPLING, CrossFit, Estimates, cross_fit, holm
from finc_eval.embeddings import ARRAY_SPACE
from finc_eval.errors import FincEvalError
from finc_eval.kernels import approximation_error
from finc_eval.modes import Mode, Role, Tail, mode_id
from finc_eval.progress import Progress, silent
from finc_eval.results import Comparison, Copies, SetInfo, Settings
from finc_eval.sides import EXAMPLES, Scored, Side, check_alike, open_operand, reference_feature_map
from finc_eval.signature import Signature
from finc_eval.sketch import Sketch

SPECTRUM = 25
"""Leading eigenvalues kept for the plot."""

ERROR_SAMPLE = 500
"""Samples per set on which the kernel approximation is checked."""

FEW = 500
"""Below this many samples a comparison carries a warning."""

NUMERICAL_ZERO = 1e-6
"""Excess below this is rounding: moments are float32, and masses lie between 0 and 1."""


def compare(
    gen: object,
    ref: object,
    *,
    rho: float = 1.0,
    sigma: float | None = None,
    features: int = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Literal["varimax"] | None = "varimax",
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Find the kinds of samples that `gen` has more of than `ref`, and fewer, with intervals and p-values.

    FINC (arXiv 2405.02700) on random Fourier features: the leading directions of Λ = C_gen − ρ·C_ref, rotated by
    varimax, with cross-fitted masses, intervals and p-values (docs/method.md). Embeddings are streamed: of the
    samples only ids and 8-byte digests are held.

    Args:
        gen: the generated set: array or tensor of embeddings (n, d), `EmbeddingCache`, `Sketch`, or the path of a
            cache or sketch.
        ref: the reference set, likewise. Two sketches must share their feature map.
        rho: ρ > 0: a kind counts when one set has more than ρ times the mass of the other.
        sigma: bandwidth of the Gaussian kernel; 0.5 × the median pairwise distance of the reference when left
            out. A sketch brings its own.
        features: r, the number of random frequencies; a sketch brings its own.
        modes: how many modes of each role to report at most; those without positive excess are left out.
        seed: of the frequencies; a sketch brings its own.
        rotation: "varimax", or None for the paper's raw eigenvectors.
        device: where to compute; CUDA if available when left out. A sketch stays where it is.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: on sets of unlike extractors or dimensions, fewer than 20 samples, embeddings that are not
            finite, or parameters out of range.
    """
    for name, value in (("rho", rho), ("sigma", sigma), ("features", features), ("modes", modes)):
        if value is not None and not 0 < value < inf:
            raise FincEvalError(f"{name} must be a positive number, got {value}")
    if rotation not in ("varimax", None):
        raise FincEvalError(f'rotation must be "varimax" or None, got {rotation!r}')
    gen_operand, ref_operand = open_operand(gen, "gen"), open_operand(ref, "ref")
    check_alike(gen_operand, ref_operand)
    sketched = next((o for o in (ref_operand, gen_operand) if isinstance(o, Sketch)), None)
    if sketched is None:
        place = default_device() if device is None else device
        feature_map, rule = reference_feature_map(ref_operand, features=features, sigma=sigma, seed=seed, device=place)
    else:
        feature_map, rule = sketched.feature_map, "of the sketch"
        if sigma not in (None, feature_map.sigma):
            raise FincEvalError(
                f"sigma {sigma} was asked for, but the sketch was made with {feature_map.sigma}: leave sigma out, "
                "or make the sketch again"
            )
    settings = Settings(
        rho=float(rho),
        sigma=feature_map.sigma,
        sigma_rule=rule,
        features=feature_map.features,
        modes=modes,
        seed=feature_map.seed,
        rotation=rotation,
    )
    gen_side = Side.of(gen_operand, "gen", feature_map, progress)
    ref_side = Side.of(ref_operand, "ref", feature_map, progress)
    gen_side.sketch.check_comparable(ref_side.sketch)
    return _compare(gen_side, ref_side, settings, progress)


@dataclass(frozen=True)
class _Tested:
    """One role of the comparison: its directions, their columns in the score passes, and what the passes say."""

    role: Role
    fit: CrossFit
    columns: slice
    estimates: Estimates


def _compare(gen_side: Side, ref_side: Side, settings: Settings, progress: Progress) -> Comparison:
    over, under = _fits(gen_side, ref_side, settings, progress)
    gen, ref = (side.score([over, under], progress) for side in (gen_side, ref_side))
    count = over.full.vectors.shape[1]
    tested = (
        _test("over", over, slice(0, count), gen, ref, settings.rho),
        _test("under", under, slice(count, 2 * count), ref, gen, settings.rho),
    )
    family = 2 * count
    adjusted = holm(torch.cat([one.estimates.p_values() for one in tested]))
    modes, under_represented = (_modes(one, adjusted[one.columns], family, gen, ref, settings) for one in tested)
    infos, copies = (gen_side.info(), ref_side.info()), _copies(gen_side, ref_side)
    samples = torch.cat([side.sketch.sample.rows[:ERROR_SAMPLE] for side in (gen_side, ref_side)])
    return Comparison(
        modes=modes,
        under_represented=under_represented,
        gen=infos[0],
        ref=infos[1],
        settings=settings,
        signature=_signature(gen_side, ref_side, settings),
        space=_space(gen_side, ref_side),
        tested=family,
        spectrum=(tuple(over.full.eigenvalues.tolist()), tuple(under.full.eigenvalues.tolist())),
        kernel_error=approximation_error(gen_side.sketch.feature_map, samples),
        copies=copies,
        warnings=_warnings(infos, copies),
        feature_map=gen_side.sketch.feature_map,
        version=version("finc-eval"),
    )


def _fits(gen: Side, ref: Side, settings: Settings, progress: Progress) -> tuple[CrossFit, CrossFit]:
    """The directions on which gen has more, and those on which it has less."""
    (gen_sample, gen_folds), (ref_sample, ref_folds) = gen.sample, ref.sample
    folds = torch.cat([gen_folds, ref_folds])
    sample = None if settings.rotation is None else torch.cat([gen_sample, ref_sample])
    if sample is not None and min(int((folds == fold).sum()) for fold in (0, 1)) < 2:
        raise FincEvalError("the sketches keep no sample to rotate by: make them with one, or pass rotation=None")
    size = gen.sketch.feature_map.size
    count = min(ceil(OVERSAMPLING * settings.modes), size)
    fits = []
    for done, (one, other) in enumerate(((gen, ref), (ref, gen))):
        progress("decompose", done, 2)
        moments = one.sketch.folds, other.sketch.folds
        fits.append(cross_fit(*moments, settings.rho, count, sample, folds, min(SPECTRUM, size)))
    progress("decompose", 2, 2)
    return fits[0], fits[1]


def _test(role: Role, fit: CrossFit, columns: slice, first: Scored, second: Scored, rho: float) -> _Tested:
    return _Tested(role, fit, columns, Estimates.of(first.masses[columns], second.masses[columns], rho))


def _modes(
    tested: _Tested, p_values: torch.Tensor, family: int, gen: Scored, ref: Scored, settings: Settings
) -> tuple[Mode, ...]:
    """The modes of one role: eigenvectors by eigenvalue, rotated ones by cross-fitted excess."""
    role, fit, estimates = tested.role, tested.fit, tested.estimates
    masses = estimates.mass_first, estimates.mass_second
    mass_gen, mass_ref = masses if role == "over" else masses[::-1]
    half_width = estimates.half_widths(family)
    own = gen.side if role == "over" else ref.side
    found: dict[str, Mode] = {}
    for rank in range(min(settings.modes, len(p_values))):
        if float(fit.full.excess[rank]) <= NUMERICAL_ZERO:
            break
        tails, sign = _tails(role, tested.columns.start + rank, gen, ref, settings.rho)
        direction = sign * fit.full.vectors[:, rank]
        excess, width = float(estimates.excess[rank]), float(half_width[rank])
        # Two modes can share their best sample; the second is then named after its next best.
        names = (mode_id(role, sample) for sample in (*own.typical(direction), str(rank)))
        name = next(name for name in names if name not in found)
        found[name] = Mode(
            id=name,
            role=role,
            excess=excess,
            mass_gen=float(mass_gen[rank]),
            mass_ref=float(mass_ref[rank]),
            interval=(excess - width, excess + width),
            p_value=float(p_values[rank]),
            stability=float(fit.stability[rank]),
            fitted_excess=float(fit.full.excess[rank]),
            direction=direction.float().cpu().numpy(),
            tails=tails,
        )
    if settings.rotation is None:
        return tuple(found.values())
    return tuple(sorted(found.values(), key=lambda mode: mode.excess, reverse=True))


def _tails(role: Role, column: int, gen: Scored, ref: Scored, rho: float) -> tuple[tuple[Tail, Tail], int]:
    """Both sides of a direction, the one that carries most of the excess first, and the sign that makes it positive.

    The excess is quadratic in s, so neither side alone is the mode.
    """
    energy_gen, energy_ref = gen.scores.energies()[:, column], ref.scores.energies()[:, column]
    energy = energy_gen - rho * energy_ref if role == "over" else energy_ref - rho * energy_gen
    order = (0, 1) if energy[0] >= energy[1] else (1, 0)
    total = float(energy.sum())
    tails = []
    for side in order:
        (gen_index, gen_best), (ref_index, ref_best) = gen.scores.best(side, column), ref.scores.best(side, column)
        tails.append(
            Tail(
                share=float(energy[side]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=gen.side.ids_at(gen_index),
                ref_ids=ref.side.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return (tails[0], tails[1]), 1 if order[0] == 0 else -1


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
    return Signature(
        "finc",
        (
            ("n", f"{gen.sketch.n}/{ref.sketch.n}"),
            ("fx", _space(gen, ref)),
            ("ref", "+".join(source[:12] for source in ref.sketch.sources) or "streamed"),
            ("kernel", "gaussian"),
            ("sigma", f"{settings.sigma:.6g}"),
            ("r", str(settings.features)),
            ("phi", phi.digest[:12]),
            ("rho", f"{settings.rho:g}"),
            ("modes", str(settings.modes)),
            ("rotation", settings.rotation or "none"),
            ("se", "conservative" if gen.embeddings is None or ref.embeddings is None else "sharp"),
            ("v", version("finc-eval")),
        ),
    )


def _warnings(infos: tuple[SetInfo, SetInfo], copies: Copies | None) -> tuple[str, ...]:
    found = []
    for label, info in zip(("gen", "ref"), infos, strict=True):
        if info.n < FEW:
            found.append(f"{label} has only {info.n} samples: expect wide intervals and unstable modes below {FEW}")
        if info.unreadable:
            found.append(f"{info.unreadable} samples of {label} could not be read and are not in the comparison")
    if copies and copies.count:
        found.append(f"{copies.count} generated samples are exact copies of reference samples")
    return tuple(found)
