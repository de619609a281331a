"""`evaluate`: everything that makes sense for the sets of one generator; each set is embedded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, Unpack

from finc_eval.comparison.compare import compare
from finc_eval.comparison.methods import compare_methods
from finc_eval.comparison.settings import Options, Settings, settings_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import show_options
from finc_eval.core.run import Run
from finc_eval.core.serialize import Document
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.opening import as_embeddings, open_sets
from finc_eval.evaluations.result import Evaluation, PartName
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.measures.metrics import metrics
from finc_eval.memorization.audit import audit
from finc_eval.memorization.result import Audit
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.profile import Profile, unlike_encodings

T = TypeVar("T", bound=Document)

METRICS = ("fd", "kid", "prdc", "vendi", "rke")
"""Metrics of fidelity and of diversity that are defined on any extractor."""

BASELINES = ("finc", "rarity", "fld")
"""Methods that take sets of any size."""

NO_AUDIT = "an audit needs a training set and a holdout"

MAX_KEN_SAMPLES = 2000
"""Samples of each set up to which exact KEN is among the baselines: it takes the cube of them."""


@show_options(Settings)
@arithmetic("float32")
def evaluate(
    gen: object,
    ref: object,
    train: object | None = None,
    holdout: object | None = None,
    settings: Settings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate one generator: kinds, directions, metrics, diversity and baselines, and with its training set an audit.

    Every set is embedded once. A part that these sets do not allow is left out, and `Evaluation.missing` says why.

    Args:
        gen: generated set: embeddings, as `compare` takes them, or the path of samples, which are embedded first.
        ref: reference set, in the same forms.
        train: all samples that the generator was trained on; they and a holdout make an audit possible.
        holdout: samples of the same distribution that the generator has not seen.
        settings: settings of the comparison.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, which override `settings`.

    Raises:
        UsageError: only one of training set and holdout is given, or a setting is out of range.
        DataError: the two sets cannot be compared.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.evaluate(*example_sets(200), features=100)
        >>> list(found.parts)
        ['comparison', 'scores', 'methods']
        >>> page = found.to_html("evaluation.html")
    """
    if (train is None) != (holdout is None):
        raise UsageError("an audit needs both a training set and a holdout: pass both, or neither")
    settings, run = settings_of(settings, options), Run.of(run)
    given = {"gen": gen, "ref": ref} | ({} if train is None else {"train": train, "holdout": holdout})
    sets = open_sets(given, as_embeddings, extractor, run)
    x, y = sets["gen"], sets["ref"]
    two = {"gen": x, "ref": y}
    missing = {"audit": NO_AUDIT} if train is None else {}

    def part(name: PartName, compute: Callable[[], T]) -> T | None:
        try:
            return compute()
        except DataError as error:
            missing[name] = str(error)
            return None

    return Evaluation(
        comparison=compare(x, y, settings, run=run),
        scores=part("scores", lambda: metrics(x, y, METRICS, index=settings.index, run=run)),
        methods=part("methods", lambda: compare_methods(x, y, _methods(two), settings, run=run.prefixed("methods"))),
        audit=None if train is None else part("audit", lambda: _audit(sets, settings, run)),
        encodings=_encodings(two),
        missing=missing,
        provenance=Provenance.here(run.device),
    )


def _audit(sets: Mapping[str, Embeddings], settings: Settings, run: Run) -> Audit:
    return audit(sets["gen"], sets["train"], sets["holdout"], seed=settings.seed, index=settings.index, run=run)


def _methods(sets: Mapping[str, Embeddings]) -> tuple[str, ...]:
    small = max(one.n for one in sets.values()) <= MAX_KEN_SAMPLES
    return (*BASELINES, "ken") if small else BASELINES


def _encodings(sets: Mapping[str, Embeddings]) -> str:
    """Return how the files of two sets compare, in a sentence."""
    gen, ref = (one.cache.profile if isinstance(one, CachedEmbeddings) else Profile() for one in sets.values())
    if not (gen.n and ref.n):
        return "How the files were encoded is not known of sets that were given as embeddings."
    found = unlike_encodings(gen, ref)
    return " ".join(found) if found else "The files of the two sets were encoded alike, as far as their formats show."
