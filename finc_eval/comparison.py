"""`compare`: two sets, or their sketches, in; the modes on which they differ out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from math import ceil
from typing import Literal

import numpy as np
import torch

from finc_eval.approximation import approximation_error
from finc_eval.audit import audit
from finc_eval.bandwidth import bandwidth_warning
from finc_eval.differential import CrossFit, Estimates, holm
from finc_eval.embeddings import ARRAY_SPACE, BATCH_SIZE
from finc_eval.modes import Mode, Role, Tail, mode_id
from finc_eval.products import Precision, arithmetic
from finc_eval.progress import Progress, silent
from finc_eval.results import Comparison, Copies, SetInfo, Settings
from finc_eval.scoring import excess_frequency
from finc_eval.search import NUMERICAL_ZERO, Rotation, Search, check_search
from finc_eval.sides import ERROR_SAMPLE, EXAMPLES, Kernel, Scored, Side, Sketching, open_sides
from finc_eval.signature import Signature

FEW = 500
"""Below this many samples a comparison carries a warning."""

ALL_BUT_FEW = 0.99
"""Share of a set's samples that are distinct, below which a comparison carries a warning."""


def compare(
    gen: object,
    ref: object,
    *,
    rho: float = 1.0,
    kernel: Kernel = "gaussian",
    sigma: float | None = None,
    features: int | Literal["auto"] = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Find the kinds of samples that `gen` has more of than `ref`, and fewer, with intervals and p-values.

    FINC (arXiv 2405.02700) on random Fourier features: the leading directions of Λ = C_gen − ρ·C_ref, rotated by
    varimax, with cross-fitted masses, intervals and p-values (docs/method.md). Embeddings are streamed, in one pass
    that sketches a set and one that scores it; of cached sets only the 8-byte digests of samples are held whole.

    Args:
        gen: the generated set: array or tensor of embeddings (n, d), `EmbeddingCache`, `Sketch`, or the path of a
            cache or sketch.
        ref: the reference set, likewise. Two sketches must share their feature map.
        rho: ρ > 0: a kind counts when one set has more than ρ times the mass of the other.
        kernel: "gaussian", or "cosine", which is exact and has neither bandwidth nor frequencies. A sketch brings
            its own.
        sigma: bandwidth of the Gaussian kernel; 0.5 × the median pairwise distance of the reference when left
            out. A sketch brings its own.
        features: r, the number of random frequencies; "auto" takes 1000, 2000 or 4000, the first whose measured
            error of the kernel is within 0.01. A sketch brings its own.
        modes: how many modes of each role to report at most; those without positive excess are left out.
        seed: of the frequencies; a sketch brings its own.
        rotation: "varimax", or None for the paper's raw eigenvectors.
        precision: of the covariances: "float32", "tf32", "bfloat16" or "float64". A sketch brings its own.
        batch_size: samples per matrix product; it bounds the memory and does not change the result.
        device: where to compute; CUDA if available when left out. A sketch stays where it is.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: on sets of unlike extractors or dimensions, fewer than 20 samples, embeddings that are not
            finite, or parameters out of range.
    """
    check_search(rho, modes, rotation)
    how = Sketching(kernel, sigma, features, seed, precision, batch_size, device)
    sides, rule = open_sides({"gen": gen, "ref": ref}, ["ref"], how, progress)
    phi = sides["gen"].sketch.feature_map
    settings = Settings(
        rho=float(rho),
        kernel=phi.kernel,
        sigma=phi.sigma,
        sigma_rule=rule,
        features=phi.features,
        modes=modes,
        seed=phi.seed,
        rotation=rotation,
    )
    return _compare(sides["gen"], sides["ref"], settings, progress)


@dataclass(frozen=True)
class _Tested:
    """One role of the comparison: its directions, their columns in the score passes, and what the passes say."""

    role: Role
    fit: CrossFit
    columns: slice
    estimates: Estimates


@arithmetic("float32")
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
    phi = gen_side.sketch.feature_map
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
        kernel_error=approximation_error(phi, samples) if len(samples) > 1 else None,
        copies=copies,
        warnings=(
            *_warnings(infos, copies, None if phi.sigma is None else bandwidth_warning(samples, phi.sigma)),
            *_repeated(gen_side),
            *_repeated(ref_side),
            *_unlike_encodings(gen_side, ref_side),
        ),
        feature_map=phi,
        version=version("finc-eval"),
    )


def _fits(gen: Side, ref: Side, settings: Settings, progress: Progress) -> tuple[CrossFit, CrossFit]:
    """The directions on which gen has more, and those on which it has less."""
    search = Search.among([gen, ref], settings.rho, settings.modes, settings.rotation)
    fits = []
    for done, (one, other) in enumerate(((gen, ref), (ref, gen))):
        progress("decompose", done, 2)
        fits.append(search.fit([(1.0, one)], [(1.0, other)]))
    progress("decompose", 2, 2)
    return fits[0], fits[1]


def _test(role: Role, fit: CrossFit, columns: slice, first: Scored, second: Scored, rho: float) -> _Tested:
    return _Tested(
        role, fit, columns, Estimates.of([(1.0, first.masses[columns])], [(1.0, second.masses[columns])], rho)
    )


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
        side, column = 0 if sign > 0 else 1, tested.columns.start + rank
        powers = [one.scores.powers()[:, side, column] for one in ((gen, ref) if role == "over" else (ref, gen))]
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
            excess_frequency=excess_frequency(powers[0], powers[1], settings.rho),
            interval=(excess - width, excess + width),
            p_value=float(p_values[rank]),
            standard_error=float(estimates.error[rank]),
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
            *phi.signature(),
            ("rho", f"{settings.rho:g}"),
            ("modes", str(settings.modes)),
            ("rotation", settings.rotation or "none"),
            ("prec", "/".join(dict.fromkeys((gen.sketch.precision, ref.sketch.precision)))),
            ("se", "conservative" if gen.embeddings is None or ref.embeddings is None else "sharp"),
            ("v", version("finc-eval")),
        ),
    )


def _warnings(infos: tuple[SetInfo, SetInfo], copies: Copies | None, bandwidth: str | None) -> tuple[str, ...]:
    found = [] if bandwidth is None else [bandwidth]
    for label, info in zip(("gen", "ref"), infos, strict=True):
        if info.n < FEW:
            found.append(f"{label} has only {info.n} samples: expect wide intervals and unstable modes below {FEW}")
        if info.unreadable:
            found.append(f"{info.unreadable} samples of {label} could not be read and are not in the comparison")
        if info.clip and info.clip.windows > 1:
            videos = ceil(info.n / info.clip.windows)
            found.append(
                f"the {info.n} samples of {label} are windows of about {videos} videos, and those of one video are "
                "alike: intervals and p-values take them for independent, and are too sure"
            )
    if copies and copies.count:
        found.append(f"{copies.count} generated samples are exact copies of reference samples")
    return tuple(found)


def _repeated(side: Side) -> list[str]:
    """Whether a set consists of copies of itself, as that of a collapsed generator."""
    distinct = len(np.unique(side.cache.content)) if side.cache else side.sketch.n
    if distinct > ALL_BUT_FEW * side.sketch.n:
        return []
    return [
        f"only {distinct:,} of the {side.sketch.n:,} samples of {side.label} are distinct, the others are exact copies"
    ]


def _unlike_encodings(gen: Side, ref: Side) -> list[str]:
    """What sets the files of the two sets apart, beside what they show."""
    return audit(gen.cache.profile, ref.cache.profile) if gen.cache and ref.cache else []
