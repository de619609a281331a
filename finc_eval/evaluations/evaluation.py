"""`evaluate`: everything that makes sense for the sets of one generator; each set is embedded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeVar, Unpack, get_args

from pydantic import model_validator

from finc_eval.comparison.compare import DIRECTIONS, compare, stages_of
from finc_eval.comparison.inputs import SKETCH, needs_of, refuse_sketches
from finc_eval.comparison.methods import MethodComparison, compare_methods
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.score_pass import SCORE
from finc_eval.comparison.settings import MethodName, Options, Settings, settings_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.progress import Stage
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import check_names, plain, show_options
from finc_eval.core.run import Run
from finc_eval.core.serialize import Document
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.opening import open_embeddings, open_sets
from finc_eval.embeddings.repeats import LOOK
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.measures.gaussians.opened import OF_METRICS
from finc_eval.measures.metrics import COMPUTE, choose_metrics, compute_scores
from finc_eval.measures.score import Score, Scores
from finc_eval.memorization.audit import audit
from finc_eval.memorization.result import Audit
from finc_eval.memorization.stages import AUDIT_STAGES
from finc_eval.numerics.precision import arithmetic
from finc_eval.private.reference.result import PrivateComparison, PrivateScore
from finc_eval.private.reference.sketch import PrivateSketch, as_private_sketch
from finc_eval.samples.profile import Profile, unlike_encodings

PartName = Literal["comparison", "scores", "methods", "private", "audit"]
PARTS: tuple[PartName, ...] = get_args(PartName)  # parts of an evaluation, which may lack any of them


@dataclass(frozen=True, eq=False)
class Evaluation(Document):
    """Result of `evaluate`: each part is a result of its own, with its own page and its own error.

    `evaluation["fd"]` is the score of a metric.

    No number joins them: a set can be close to its reference and copied, or far from it and honest.

    Attributes:
        comparison: kinds, whose shares add to 1, and directions on which the two sets differ; None of moments alone.
        scores: metrics of fidelity and diversity.
        methods: directions by FINC and by the baselines of its paper.
        audit: copies, attacks on membership, and the membership-inference score; None without training set and holdout.
        encodings: how the files of the two sets compare, in a sentence.
        missing: reason for each part that could not be computed, by its name; "private" needs none.
        private: distances of the generated set, and of a holdout, from a private reference; None for another reference.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.evaluate(*example_sets(200), features=100)
        >>> found.audit is None, found.missing["audit"]
        (True, 'an audit needs a training set and a holdout')
    """

    type_name: ClassVar[str] = "evaluation"
    page: ClassVar[str] = "finc_eval.evaluations.page"

    comparison: Comparison | None
    scores: Scores | None
    methods: MethodComparison | None
    audit: Audit | None
    encodings: str
    missing: dict[str, str]
    private: PrivateScore | PrivateComparison | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        check_names("part", self.missing, PARTS)
        lacking = [name for name in PARTS if name not in self.parts and name != "private"]
        check_names("reason for lacking the part", lacking, self.missing)
        return self

    @property
    def parts(self) -> dict[str, Document]:
        """The parts that were computed, by name."""
        return {name: part for name in PARTS if (part := getattr(self, name)) is not None}

    def __getitem__(self, metric: str) -> Score:
        """Return the score of a metric, as `Scores` does."""
        if self.scores is None:
            raise DataError(f"no metric could be computed: {self.missing['scores']}")
        return self.scores[metric]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of all parts, each once."""
        return tuple(
            dict.fromkeys(warning for part in self.parts.values() for warning in getattr(part, "warnings", ()))
        )

    def _frame_rows(self) -> list[dict[str, object]]:
        kinds = [{"part": "comparison", **plain(kind)} for kind in (self.comparison.kinds if self.comparison else ())]
        return kinds + [{"part": "scores", **plain(score)} for score in self.scores or ()]

    def _summary(self) -> str:
        whole = self.comparison or self.scores
        return f"{whole._summary() if whole else 'nothing computed'}; parts: {', '.join(self.parts)}"


T = TypeVar("T", bound=Document)

METRICS = ("fd", "kid", "prdc", "vendi", "rke")
"""Metrics of fidelity and of diversity that are defined on any extractor."""

BASELINES: tuple[MethodName, ...] = ("finc", "rarity", "fld")  # methods that take sets of any size

ONLY_MOMENTS = "{} is the mean and covariance of a set, which give metrics alone: give samples or embeddings"

ONLY_PRIVATE = "the reference is a private sketch, which gives a distance with a guarantee alone"

NO_AUDIT = "an audit needs a training set and a holdout"


@show_options(Settings)
@arithmetic()
def evaluate(
    gen: object,
    ref: object,
    metrics: Sequence[str] | str | None = None,
    *,
    train: object | None = None,
    holdout: object | None = None,
    settings: Settings | None = None,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate one generator: kinds, directions, metrics, diversity and baselines, and with its training set an audit.

    Every set is embedded once. A part that these sets do not allow is left out, and `Evaluation.missing` says why: the
    mean and covariance of a set give metrics alone.

    Args:
        gen: generated set, as `metrics` takes it: embeddings, or the path of samples, which are embedded first.
        ref: reference set, in the same forms; or a private sketch or its path, for the distance from private records.
        metrics: a name or names of metrics, as `metrics` takes them; default: fd, kid, prdc, vendi and rke.
        train: all samples that the generator was trained on; they and a holdout make an audit possible.
        holdout: samples of the same distribution that the generator has not seen.
        settings: settings of the comparison.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress of the computation.
        options: fields of `Settings`, which override `settings`.

    Raises:
        UsageError: training set or holdout is given without the other, a metric is unknown, or a setting is out of
            range.
        DataError: the two sets cannot be compared.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.evaluate(*example_sets(200), features=100)
        >>> list(found.parts)
        ['comparison', 'scores', 'methods']
        >>> found["fd"] == found.scores["fd"]
        True
        >>> page = found.to_html("evaluation.html")
    """
    if (train is None) != (holdout is None):
        raise UsageError("an audit needs both a training set and a holdout: pass both, or neither")
    settings, run = settings_of(settings, options), Run.of(run)
    audited = {} if train is None else {"train": train, "holdout": holdout}
    if (sketch := as_private_sketch(ref)) is not None:
        if metrics is not None:
            raise UsageError(f"metrics are not computed: {ONLY_PRIVATE}: leave metrics out")
        return _evaluate_privately({"gen": gen, **audited}, sketch, settings, extractor, run)
    given = {"gen": gen, "ref": ref, **audited}
    chosen = choose_metrics(METRICS if metrics is None else metrics, given)
    spaces = {metric.extractor for metric in chosen}
    refuse_sketches({"gen": gen, "ref": ref}, settings)
    preferred = spaces.pop() if len(spaces) == 1 else None
    opened = open_sets(given, OF_METRICS, extractor, run, preferred=preferred, checks=needs_of(settings))
    # A sketch is opened again by each part, which takes it or says why not.
    sets = given | opened.embeddings
    x, y = sets["gen"], sets["ref"]
    methods = _methods(x, y)
    run = run.planned(*_stages(settings, len(chosen), len(methods), audits=train is not None))
    missing = {"audit": NO_AUDIT} if train is None else {}
    for label in (label for label, given_set in opened.items() if given_set.form == "statistics"):
        missing = dict.fromkeys(("comparison", "methods", "audit"), ONLY_MOMENTS.format(label)) | missing

    def score() -> Scores:
        scores = compute_scores(opened, chosen, None, settings.index, run.prefixed("metrics"))
        scores.value  # noqa: B018  # raises if no metric could be computed
        return scores

    return Evaluation(
        comparison=None if "comparison" in missing else compare(x, y, settings, run=run.prefixed("comparison")),
        scores=_part("scores", score, missing),
        methods=_part(
            "methods", lambda: compare_methods(x, y, methods, settings, run=run.prefixed("methods")), missing
        ),
        audit=_audit(sets, settings, run, missing),
        encodings=_encodings(x, y),
        missing=missing,
        provenance=Provenance.here(run.device),
    )


def _evaluate_privately(
    given: dict[str, object], sketch: PrivateSketch, settings: Settings, extractor: AnyExtractor, run: Run
) -> Evaluation:
    """Evaluate a generator against a private reference; a holdout shows how far real samples are from it."""
    sets = open_embeddings(given, extractor, run, [sketch.space])
    run = run.planned("private", *([Stage.of_parts("audit", AUDIT_STAGES)] if "train" in sets else []))
    missing = dict.fromkeys(("comparison", "scores", "methods"), ONLY_PRIVATE)
    if "train" not in sets:
        missing["audit"] = NO_AUDIT
    scored: dict[str, object] = {name: given_set for name, given_set in sets.items() if name != "train"}
    of_part = run.prefixed("private")
    distance = (
        sketch.compare(scored, yardstick="holdout", run=of_part)
        if "holdout" in scored
        else sketch.score(sets["gen"], run=of_part)
    )
    return Evaluation(
        comparison=None,
        scores=None,
        methods=None,
        audit=_audit(sets, settings, run, missing),
        encodings="How the private records were encoded is not known.",
        missing=missing,
        private=distance,
        provenance=Provenance.here(run.device),
    )


def _audit(sets: Mapping[str, object], settings: Settings, run: Run, missing: dict[str, str]) -> Audit | None:
    """Audit a generated set against a training set and a holdout."""

    def compute() -> Audit:
        gen, train, holdout = (sets[label] for label in ("gen", "train", "holdout"))
        return audit(gen, train, holdout, seed=settings.seed, index=settings.index, run=run.prefixed("audit"))

    return _part("audit", compute, missing)


def _methods(*sets: object) -> tuple[MethodName, ...]:
    """Return the methods that take these sets; exact KEN, which takes the cube of its samples, up to 2000 of each."""
    small = all(isinstance(given_set, Embeddings) and given_set.n <= 2000 for given_set in sets)
    return (*BASELINES, "ken") if small else BASELINES


def _stages(settings: Settings, metrics: int, methods: int, *, audits: bool) -> list[Stage]:
    """Return the stages of all parts, from the numbers of metrics and of methods."""
    stages = {
        "comparison": stages_of(settings),
        "metrics": (LOOK, *[COMPUTE] * metrics),
        "methods": (LOOK, SKETCH, *(DIRECTIONS, SCORE) * methods),
        **({"audit": AUDIT_STAGES} if audits else {}),
    }
    return [Stage.of_parts(name, parts) for name, parts in stages.items()]


def _part(name: PartName, compute: Callable[[], T], missing: dict[str, str]) -> T | None:
    """Compute a part, or add to `missing` why these sets do not allow it; None if it is missing."""
    if name in missing:
        return None
    try:
        return compute()
    except DataError as error:
        missing[name] = str(error)
        return None


def _encodings(*sets: object) -> str:
    """Return how the files of two sets compare, in a sentence."""
    gen, ref = (
        given_set.cache.seen_profile if isinstance(given_set, CachedEmbeddings) else Profile() for given_set in sets
    )
    if not (gen.n and ref.n):
        return "How the files were encoded is not known of sets that were given as embeddings."
    unlike = unlike_encodings(gen, ref)
    return " ".join(unlike) if unlike else "The files of the two sets were encoded alike, as far as their formats show."
