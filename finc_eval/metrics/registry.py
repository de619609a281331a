"""The metrics by their names: of two sets, their scores with intervals, floors and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from finc_eval.baselines.fld import fld
from finc_eval.baselines.novelty import novelty
from finc_eval.baselines.rarity import rarity
from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.metrics.authenticity import authpct
from finc_eval.metrics.frechet import fd_infinity, frechet_distance, frechet_interval, fvd, same_set_floor
from finc_eval.metrics.inception_score import inception_score
from finc_eval.metrics.inputs import Metric, Pair
from finc_eval.metrics.kid import kid, kid_interval
from finc_eval.metrics.mind import mind
from finc_eval.metrics.mmd import CMMD_SCALE, CMMD_SIGMA, cmmd, mmd
from finc_eval.metrics.precision_recall import Convention, precision_recall
from finc_eval.metrics.precision_recall import Metric as Share
from finc_eval.metrics.score import Score, mean_interval, wilson
from finc_eval.metrics.vendi import VendiInterval, rke_interval, vendi, vendi_interval
from finc_eval.numerics.bandwidth import median_bandwidth
from finc_eval.sketches.reference import bottom_rows

FEWEST_FOR_INTERVAL = 200
"""Samples of a set from which a resampled interval and a floor are given."""

FEWEST_FOR_BALLS = 1000
"""Samples of a set below which the size of its balls says more than what they contain."""

USUAL_SPLIT = 500
"""Images of a split of the inception score below which a note says so; published ones have 5000."""

NOTED_GAIN = 0.05
"""Share of itself from which it is said by how much a score would be higher for infinitely many samples."""

OF_REFERENCE = "the floor is the score of the reference"
SPATIAL = "spatial"
TRAIN_AND_TEST = ("gen", "ref", "test")
Z95 = 1.959964


def _frechet(pair: Pair) -> list[Score]:
    found = frechet_distance(pair.gen, pair.ref, device=pair.device)
    return [_with_interval(pair, found.value, found.warnings)]


def _fvd(pair: Pair) -> list[Score]:
    found = fvd(pair.gen, pair.ref, device=pair.device)
    return [_with_interval(pair, found.value, found.warnings)]


def _with_interval(pair: Pair, value: float, warnings: Sequence[str]) -> Score:
    """A Fréchet distance with its jackknife interval and its floor, where there are samples enough.

    Of covariances without full rank the jackknife finds a part of the bias only: with n = d/2 samples the interval of
    95 % held the distance in 0 and 25 % of repetitions, with n just above d in 90 % and more
    (60 of them, d = 100, spectrum 1/k).
    """
    gen, ref, notes = pair.gen, pair.ref, list(warnings)
    interval = floor = None
    if isinstance(gen, Embeddings) and isinstance(ref, Embeddings):
        fewest, needed = min(gen.n, ref.n), max(gen.dim + 1, FEWEST_FOR_INTERVAL)
        if fewest >= FEWEST_FOR_INTERVAL:
            floor = same_set_floor(ref, gen.n, device=pair.device).value
        if fewest >= needed:
            jackknife = frechet_interval(gen, ref, device=pair.device)
            interval = (jackknife.low, jackknife.high)
            notes.append(f"the interval is of the distance without its bias, {jackknife.corrected:.6g}")
        else:
            notes.append(f"no interval: in {gen.dim} dimensions that takes {needed} samples of each set")
    return Score(pair.name, value, interval, floor, False, pair.signature(), tuple(notes))


def _fd_infinity(pair: Pair) -> list[Score]:
    found = fd_infinity(pair.gen, pair.ref, device=pair.device)
    signature = pair.signature(("sizes", len(found.sizes)), ("seed", found.seed))
    return [Score(pair.name, found.value, None, None, False, signature, found.warnings)]


def _kid(pair: Pair) -> list[Score]:
    found, exact = kid(*pair.rows(), device=pair.device), kid_interval(*pair.rows(), device=pair.device)
    signature = pair.signature(("subsets", f"{found.subsets}x{found.subset_size}"), ("seed", found.seed))
    note = f"of all pairs of samples: {exact.value:.6g}, to which the interval belongs"
    return [
        Score("kid_mean", found.mean, (exact.low, exact.high), None, False, signature, (note,)),
        Score("kid_std", found.std, None, None, None, signature),
    ]


def _mind(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    found = mind(gen, ref, device=pair.device)
    first, second = _parts(ref, found.n)
    part = mind(first, second, seed=found.seed, device=pair.device)
    notes = () if gen.n == ref.n else (f"of {found.n} samples of each set, those of the larger one drawn at random",)
    signature = pair.signature(("projections", found.projections), ("seed", found.seed))
    return [Score(pair.name, found.value, None, part.value * part.n / found.n, False, signature, notes)]


def _parts(ref: Embeddings, n_gen: int) -> tuple[Embeddings, Embeddings]:
    """The reference split at random: n_gen samples, half of them all at most, against the rest."""
    order = np.random.default_rng(0).permutation(ref.n)
    part = min(n_gen, ref.n // 2)
    if part < 1:
        raise FincEvalError(f"{ref.name} has {ref.n} sample: give more, which the same-set floor is measured on")
    first, second = (ArrayEmbeddings(ref.rows_at(np.sort(rows)), ref.name) for rows in (order[:part], order[part:]))
    return first, second


def _inception_score(pair: Pair) -> list[Score]:
    found = inception_score(pair.gen)
    signature = pair.signature(("splits", found.splits), ("seed", found.seed))
    size = found.n // found.splits
    notes: tuple[str, ...] = ()
    if size < USUAL_SPLIT:
        notes = (
            f"each split has {size} samples: the score cannot exceed that, and reads low; published ones have 5000",
        )
    return [
        Score("inception_score_mean", found.mean, found.interval(), None, True, signature, notes),
        Score("inception_score_std", found.std, None, None, None, signature),
    ]


def _few_for_balls(*sets: Embeddings) -> tuple[str, ...]:
    return tuple(
        f"{one.name} has {one.n} samples: the balls of so few reach far, compare at equal n only; 10 000 are usual"
        for one in sets
        if one.n < FEWEST_FOR_BALLS
    )


def _precision_recall(convention: Convention, keys: Sequence[Share]) -> Callable[[Pair], list[Score]]:
    def compute(pair: Pair) -> list[Score]:
        gen, ref = pair.rows()
        found, notes = precision_recall(gen, ref, convention=convention), _few_for_balls(gen, ref)
        return [
            Score(key, getattr(found, key), found.interval(key), None, True, found.signature, notes) for key in keys
        ]

    return compute


def _realism(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    found = precision_recall(gen, ref, convention="kynkaanniemi")
    finite = found.realism[np.isfinite(found.realism)]
    copies = gen.n - len(finite)
    if copies == gen.n:
        raise FincEvalError(
            f"all {gen.n} samples of {gen.name} are copies of reference samples: their realism is infinite"
        )
    notes = _few_for_balls(ref)
    if copies:
        notes += (f"{copies} samples of infinite realism, copies of reference samples, are left out",)
    signature = replace(found.signature, metric="realism")
    return [Score("realism", float(finite.mean()), mean_interval(finite), None, True, signature, notes)]


def _rarity(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    found = rarity(gen, ref)
    scores = found.scores[found.inside]
    if not len(scores):
        raise FincEvalError(
            f"all {gen.n} samples of {gen.name} lie outside every ball of the reference, where rarity has no score: "
            "take prdc, or finc_eval.baselines.rarity for their distances"
        )
    outside = found.outside / gen.n
    note = f"of the {len(scores)} samples inside a ball: rarity_outside is the share of those that have no score"
    return [
        Score(
            "rarity",
            float(scores.mean()),
            mean_interval(scores),
            None,
            None,
            found.signature,
            (note, *_few_for_balls(ref)),
        ),
        Score("rarity_outside", outside, wilson(outside, gen.n), None, None, found.signature),
    ]


def _fld(pair: Pair) -> list[Score]:
    found = fld(*pair.rows(), pair.third())
    half = Z95 * found.standard_error
    notes = ("0 is as good as samples of the training set", *((found.warning,) if found.warning else ()))
    return [
        Score("fld", found.fld, (found.fld - half, found.fld + half), None, False, found.signature, notes),
        Score(
            "fld_gap",
            found.gap,
            None,
            None,
            None,
            found.signature,
            ("far below 0 where training samples are memorized",),
        ),
    ]


def _authpct(pair: Pair) -> list[Score]:
    found = authpct(*pair.rows())
    floor, notes = None, ["percent; neither end is better: copies read low, and samples unlike all training ones high"]
    if pair.test is not None:
        floor = authpct(pair.third(), pair.ref).percent
        notes.append("the floor is the number of the test set")
    if found.copies:
        notes.append(f"{found.copies} of {len(found.authentic)} have the very embedding of a training sample")
    return [Score("authpct", found.percent, found.interval(), floor, None, found.signature, tuple(notes))]


def _vendi(order: float) -> Callable[[Pair], list[Score]]:
    def compute(pair: Pair) -> list[Score]:
        gen, ref = pair.rows()
        signature = pair.signature(("kernel", "cosine"), ("order", f"{order:g}"))
        of_ref = vendi(ref, order=order, device=pair.device).value
        if gen.n < FEWEST_FOR_INTERVAL:
            value = vendi(gen, order=order, device=pair.device).value
            few = (
                f"no interval: that takes {FEWEST_FOR_INTERVAL} samples; the score cannot exceed {gen.n}, their number"
            )
            return [Score(pair.name, value, None, of_ref, None, signature, (OF_REFERENCE, few))]
        return [_diversity(pair, vendi_interval(gen, order=order, device=pair.device), of_ref, signature)]

    return compute


def _rke(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    sigma = _bandwidth(ref)
    found, of_ref = (rke_interval(one, sigma, device=pair.device) for one in (gen, ref))
    signature = pair.signature(("kernel", "gaussian"), ("sigma", f"{sigma:.6g}"), ("order", 2))
    return [_diversity(pair, found, of_ref.value, signature)]


def _diversity(pair: Pair, found: VendiInterval, of_ref: float, signature: Signature) -> Score:
    notes = [OF_REFERENCE]
    if found.gain > NOTED_GAIN:
        more = f"{found.gain:.0%} " if found.gain < 1 else ""
        notes.append(f"more samples would make it about {more}higher: compare at equal n only")
    return Score(pair.name, found.value, (found.low, found.high), of_ref, None, signature, tuple(notes))


def _cmmd(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    value, (first, second) = cmmd(gen, ref, device=pair.device), _parts(ref, gen.n)
    # The V-statistic of one law is proportional to 1/n + 1/m.
    scale = (1 / gen.n + 1 / ref.n) / (1 / first.n + 1 / second.n)
    floor = scale * cmmd(first, second, device=pair.device)
    signature = pair.signature(("sigma", CMMD_SIGMA), ("scale", CMMD_SCALE))
    return [Score(pair.name, value, None, floor, False, signature)]


def _mmd(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    sigma = _bandwidth(ref)
    found = mmd(gen, ref, sigma, device=pair.device)
    signature = pair.signature(("kernel", "gaussian"), ("sigma", f"{sigma:.6g}"))
    return [Score(pair.name, found.value, (found.low, found.high), None, False, signature)]


def _private_mmd(pair: Pair) -> list[Score]:
    if pair.private is None:
        raise FincEvalError(
            f"{pair.name} needs a private sketch as ref: its owner makes one, with private-sketch release"
        )
    return [pair.private.score(pair.gen).metric]


def _ken(pair: Pair) -> list[Score]:
    found = novelty(*pair.rows())
    notes = (found.warning,) if found.warning else ()
    return [Score(pair.name, found.score, None, None, None, found.signature, notes)]


def _bandwidth(ref: Embeddings) -> float:
    """Half the median distance of the reference, as a comparison takes it."""
    return median_bandwidth(bottom_rows(ref))


def metric_named(name: str) -> Metric:
    """The metric of that name.

    Raises:
        FincEvalError: there is none.
    """
    if name not in METRICS:
        raise FincEvalError(f'there is no metric "{name}"{did_you_mean(name, METRICS)}: choose of {", ".join(METRICS)}')
    return METRICS[name]


METRICS: dict[str, Metric] = {
    "fid": Metric("Fréchet inception distance", _frechet, "inception-fid"),
    "sfid": Metric("the same of spatial features: where things are", _frechet, "inception-fid", SPATIAL),
    "fd_dinov2": Metric("Fréchet distance of DINOv2 ViT-L/14", _frechet, "dinov2-vitl14"),
    "fd": Metric("Fréchet distance in any space", _frechet),
    "fd_infinity": Metric("the same, extrapolated to infinitely many samples", _fd_infinity),
    "fvd": Metric("Fréchet video distance", _fvd, "i3d-rgb-k400", "logits"),
    "kid": Metric("kernel inception distance: mean and deviation over subsets", _kid),
    "mind": Metric("Monge inception distance: sliced Wasserstein, 1000 directions", _mind),
    "mmd": Metric("squared maximum mean discrepancy of the Gaussian kernel", _mmd),
    "private_mmd": Metric(
        "mmd from private records, by the sketch that their owner released: --ref is that sketch",
        _private_mmd,
        sets=("gen", "private"),
    ),
    "cmmd": Metric("CLIP maximum mean discrepancy", _cmmd, "clip-vitl14-336"),
    "precision_recall": Metric(
        "precision and recall of Kynkäänniemi et al.: k = 3, balls with their surface",
        _precision_recall("kynkaanniemi", ("precision", "recall")),
    ),
    "prdc": Metric(
        "precision, recall, density, coverage of the package prdc: k = 5, balls without their surface",
        _precision_recall("prdc", ("precision", "recall", "density", "coverage")),
    ),
    "realism": Metric("mean realism of generated samples, of Kynkäänniemi et al.", _realism),
    "rarity": Metric("mean rarity of the generated samples that have one, and the share that has none", _rarity),
    "inception_score": Metric("inception score", _inception_score, "inception-fid", "logits_unbiased", ("gen",)),
    "vendi": Metric("Vendi score, the effective number of kinds: cosine kernel, order 1", _vendi(1.0)),
    "vendi_q2": Metric("the same of order 2", _vendi(2.0)),
    "vendi_qinf": Metric("the same of order infinity", _vendi(inf)),
    "rke": Metric("effective number of kinds: Gaussian kernel, order 2", _rke),
    "ken": Metric("kernel-based entropic novelty", _ken),
    "fld": Metric(
        "feature likelihood divergence: --ref is the training set, --test unseen samples", _fld, sets=TRAIN_AND_TEST
    ),
    "authpct": Metric(
        "percentage of samples that copy no training sample: --ref is the training set", _authpct, sets=TRAIN_AND_TEST
    ),
}
"""What can be asked for, by name."""
