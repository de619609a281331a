"""Many metrics of two sets, each in the space that its name means, from the same caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

from finc_eval.bandwidth import median_bandwidth
from finc_eval.baselines.novelty import novelty
from finc_eval.documents import Document
from finc_eval.embeddings import ARRAY_SPACE, CachedEmbeddings, Embeddings
from finc_eval.errors import FincEvalError, did_you_mean
from finc_eval.metrics.frechet import fd_infinity, frechet_distance, frechet_interval, fvd, same_set_floor
from finc_eval.metrics.gaussian import GaussianStatistics, opened
from finc_eval.metrics.inception_score import inception_score
from finc_eval.metrics.kid import kid, kid_interval
from finc_eval.metrics.mmd import CMMD_SCALE, CMMD_SIGMA, cmmd, mmd
from finc_eval.metrics.precision_recall import Convention, precision_recall
from finc_eval.metrics.precision_recall import Metric as Share
from finc_eval.metrics.score import Score
from finc_eval.metrics.vendi import gaussian_vendi, vendi
from finc_eval.progress import Progress, silent
from finc_eval.sides import bottom_rows
from finc_eval.signature import Signature

Set = Embeddings | GaussianStatistics

FEWEST_FOR_INTERVAL = 200
"""Samples of a set from which a Fréchet distance gets an interval and a floor."""


@dataclass(frozen=True)
class Pair:
    """Two sets in one space, of which a metric called `name` is asked."""

    name: str
    gen: Set
    ref: Set
    device: str | None

    def signature(self, *fields: tuple[str, object]) -> Signature:
        """What pins a value."""
        sizes = "/".join("?" if one.n is None else str(one.n) for one in (self.gen, self.ref))
        return Signature(
            self.name,
            (
                ("n", sizes),
                ("fx", self.gen.space),
                *((name, str(value)) for name, value in fields),
                ("v", version("finc-eval")),
            ),
        )

    def rows(self) -> tuple[Embeddings, Embeddings]:
        """Both as embeddings.

        Raises:
            FincEvalError: one of them is known by its moments only.
        """
        if isinstance(self.gen, Embeddings) and isinstance(self.ref, Embeddings):
            return self.gen, self.ref
        raise FincEvalError(
            f"{self.name} needs the embeddings of both sets: moments are enough for Fréchet distances only"
        )


@dataclass(frozen=True)
class Metric:
    """One name on the command line.

    Attributes:
        what: in a few words.
        compute: its scores, of two sets in one space.
        extractor: the card that its name means; None where any will do.
        output: the output of that card that it is of; None for the embedding.
    """

    what: str
    compute: Callable[[Pair], list[Score]]
    extractor: str | None = None
    output: str | None = None


@dataclass(frozen=True)
class Scores(Document):
    """The scores of two sets.

    Attributes:
        gen, ref: what they are called.
        scores: in the order asked for.
        failures: by the name of the metric, why there is none.
    """

    gen: str
    ref: str
    scores: tuple[Score, ...]
    failures: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": 1,
            "gen": self.gen,
            "ref": self.ref,
            "scores": [score.to_dict() for score in self.scores],
            "failures": dict(self.failures),
        }

    def __getitem__(self, key: str) -> Score:
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(f"{key}{did_you_mean(key, [score.key for score in self.scores])}")


def evaluate(
    gen: object,
    ref: object,
    metrics: Sequence[str] = ("fd", "kid", "vendi"),
    *,
    device: str | None = None,
    progress: Progress = silent,
) -> Scores:
    """Compute metrics of two sets of embeddings.

    Args:
        gen: the generated set: embeddings (array or tensor (n, d), `EmbeddingCache` or the path of one), a `Sketch`,
            `GaussianStatistics`, or an npz of statistics. Moments are enough for Fréchet distances.
        ref: the reference set, likewise.
        metrics: names of `METRICS`. Those whose name means a space, as fid does, refuse embeddings of another.
        device: where to compute; CUDA if there is one when left out.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: a set or a name is not usable. What a single metric refuses is in `Scores.failures`.
    """
    chosen = {name: metric_named(name) for name in metrics}
    sets = opened(gen, "gen"), opened(ref, "ref")
    scores: list[Score] = []
    failures = {}
    for done, (name, metric) in enumerate(chosen.items()):
        progress("metrics", done, len(chosen))
        try:
            pair = Pair(name, _space_of(name, metric, sets[0]), _space_of(name, metric, sets[1]), device)
            scores += metric.compute(pair)
        except FincEvalError as error:
            failures[name] = str(error)
    progress("metrics", len(chosen), len(chosen))
    return Scores(_called(sets[0]), _called(sets[1]), tuple(scores), failures)


def _called(one: Set) -> str:
    """The name of a set: of a cache that of its samples."""
    return Path(one.cache.source).name if isinstance(one, CachedEmbeddings) else one.name


def metric_named(name: str) -> Metric:
    """The metric of that name.

    Raises:
        FincEvalError: there is none.
    """
    if name not in METRICS:
        raise FincEvalError(f'there is no metric "{name}"{did_you_mean(name, METRICS)}: choose of {", ".join(METRICS)}')
    return METRICS[name]


def _space_of(name: str, metric: Metric, one: Set) -> Set:
    """The set in the space that the metric's name means."""
    extractor = one.space.split("@")[0]
    if metric.extractor not in (None, extractor):
        unknown = one.space.startswith(ARRAY_SPACE)
        has = "do not say by what they were made" if unknown else f"are of {extractor}"
        alike = [other for other, m in METRICS.items() if m.extractor is None and m.compute is metric.compute]
        hint = f", or ask for {alike[0]}" if alike else ""
        raise FincEvalError(
            f"{name} is defined on {metric.extractor}, and the embeddings of {one.name} {has}: extract with "
            f"--extractor {metric.extractor}{hint}"
        )
    if metric.output is None:
        return one
    if not isinstance(one, CachedEmbeddings):
        raise FincEvalError(f"{name} is of the {metric.output} of {metric.extractor}: give the caches of extract")
    return CachedEmbeddings(one.cache.output(metric.output))


def _frechet(pair: Pair) -> list[Score]:
    found = frechet_distance(pair.gen, pair.ref, device=pair.device)
    return [_with_interval(pair, found.value, found.warnings)]


def _fvd(pair: Pair) -> list[Score]:
    found = fvd(pair.gen, pair.ref, device=pair.device)
    return [_with_interval(pair, found.value, found.warnings)]


def _with_interval(pair: Pair, value: float, warnings: Sequence[str]) -> Score:
    """A Fréchet distance with its jackknife interval and its floor, where the samples are at hand."""
    gen, ref, notes = pair.gen, pair.ref, list(warnings)
    interval = floor = None
    if isinstance(gen, Embeddings) and isinstance(ref, Embeddings) and min(gen.n, ref.n) >= FEWEST_FOR_INTERVAL:
        jackknife = frechet_interval(gen, ref, device=pair.device)
        interval = (jackknife.low, jackknife.high)
        floor = same_set_floor(ref, gen.n, device=pair.device).value
        notes.append(f"the interval is of the distance without its bias, {jackknife.corrected:.6g}")
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


def _inception_score(pair: Pair) -> list[Score]:
    found = inception_score(pair.gen)
    signature = pair.signature(("splits", found.splits), ("seed", found.seed))
    return [
        Score("inception_score_mean", found.mean, None, None, True, signature),
        Score("inception_score_std", found.std, None, None, None, signature),
    ]


def _precision_recall(convention: Convention, keys: Sequence[Share]) -> Callable[[Pair], list[Score]]:
    def compute(pair: Pair) -> list[Score]:
        found = precision_recall(*pair.rows(), convention=convention)
        return [Score(key, getattr(found, key), found.interval(key), None, True, found.signature) for key in keys]

    return compute


def _vendi(order: float) -> Callable[[Pair], list[Score]]:
    def compute(pair: Pair) -> list[Score]:
        value, of_ref = (vendi(one, order=order, device=pair.device).value for one in pair.rows())
        signature = pair.signature(("kernel", "cosine"), ("order", f"{order:g}"))
        return [Score(pair.name, value, None, of_ref, None, signature, (OF_REFERENCE,))]

    return compute


def _rke(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    sigma = _bandwidth(ref)
    value, of_ref = (gaussian_vendi(one, sigma, order=2, device=pair.device).value for one in (gen, ref))
    signature = pair.signature(("kernel", "gaussian"), ("sigma", f"{sigma:.6g}"), ("order", 2))
    return [Score(pair.name, value, None, of_ref, None, signature, (OF_REFERENCE,))]


def _cmmd(pair: Pair) -> list[Score]:
    value = cmmd(*pair.rows(), device=pair.device)
    return [Score(pair.name, value, None, None, False, pair.signature(("sigma", CMMD_SIGMA), ("scale", CMMD_SCALE)))]


def _mmd(pair: Pair) -> list[Score]:
    gen, ref = pair.rows()
    sigma = _bandwidth(ref)
    found = mmd(gen, ref, sigma, device=pair.device)
    signature = pair.signature(("kernel", "gaussian"), ("sigma", f"{sigma:.6g}"))
    return [Score(pair.name, found.value, (found.low, found.high), None, False, signature)]


def _ken(pair: Pair) -> list[Score]:
    found = novelty(*pair.rows())
    notes = (found.warning,) if found.warning else ()
    return [Score(pair.name, found.score, None, None, None, found.signature, notes)]


def _bandwidth(ref: Embeddings) -> float:
    """Half the median distance of the reference, as a comparison takes it."""
    return median_bandwidth(bottom_rows(ref))


OF_REFERENCE = "the floor is the score of the reference"

METRICS: dict[str, Metric] = {
    "fid": Metric("Fréchet inception distance", _frechet, "inception-fid"),
    "fd_dinov2": Metric("Fréchet distance of DINOv2 ViT-L/14", _frechet, "dinov2-vitl14"),
    "fd": Metric("Fréchet distance in any space", _frechet),
    "fd_infinity": Metric("the same, extrapolated to infinitely many samples", _fd_infinity),
    "fvd": Metric("Fréchet video distance", _fvd, "i3d-rgb-k400", "logits"),
    "kid": Metric("kernel inception distance: mean and deviation over subsets", _kid),
    "mmd": Metric("squared maximum mean discrepancy of the Gaussian kernel", _mmd),
    "cmmd": Metric("CLIP maximum mean discrepancy", _cmmd, "clip-vitl14-336"),
    "precision_recall": Metric(
        "precision and recall of Kynkäänniemi et al.: k = 3, balls with their surface",
        _precision_recall("kynkaanniemi", ("precision", "recall")),
    ),
    "prdc": Metric(
        "precision, recall, density, coverage of the package prdc: k = 5, balls without their surface",
        _precision_recall("prdc", ("precision", "recall", "density", "coverage")),
    ),
    "inception_score": Metric("inception score", _inception_score, "inception-fid", "logits_unbiased"),
    "vendi": Metric("Vendi score, the effective number of kinds: cosine kernel, order 1", _vendi(1.0)),
    "vendi_q2": Metric("the same of order 2", _vendi(2.0)),
    "vendi_qinf": Metric("the same of order infinity", _vendi(inf)),
    "rke": Metric("effective number of kinds: Gaussian kernel, order 2", _rke),
    "ken": Metric("kernel-based entropic novelty", _ken),
}
"""What can be asked for, by name."""
