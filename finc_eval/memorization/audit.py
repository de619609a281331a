"""`audit`: copying in a generator's samples, attacks on membership, and a stated guarantee, each by itself.

Every figure stands next to the figure of real samples that cannot be copies. Distances serve all measures. A measure
that cannot take a whole set says how many samples it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.progress import silent
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import settings_from, show_options
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import known_space
from finc_eval.embeddings.search.neighbors import Neighbors, index_signature, least_recall, nearest, recall_notes
from finc_eval.embeddings.set_info import SetInfo, notes_on, set_info, unlike_files
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.memorization.attacks import Attack, AttackedSets, MembershipDifference, attack_names, run_attacks
from finc_eval.memorization.copying import (
    CellTest,
    Closeness,
    CopyingMeasure,
    authpct,
    c_t,
    cell_test,
    dcr,
    fld_gap,
    mifid,
    nndr,
    suspicious_threshold,
    tail,
)
from finc_eval.memorization.distances import SetDistances, cut_in_two, measure_all
from finc_eval.memorization.holdout import against_holdout, find_sides, holdout_p_value
from finc_eval.memorization.kept_steps import KeptSteps
from finc_eval.memorization.nearness import Near, find_nearness, same_pixels
from finc_eval.memorization.opening import MIN_AUDIT_SAMPLES, check_overlap, open_audit
from finc_eval.memorization.result import Audit, Copying, training_found_by
from finc_eval.memorization.settings import AUDIT_ALPHA, AUDIT_CONFIDENCE, MEASURES_PART, AuditOptions, AuditSettings
from finc_eval.memorization.stages import ATTACKS, FITTED, KINDS, PLANTED, SAME_LAW, planned
from finc_eval.memorization.strata import TrainingKinds, copying_by_stratum
from finc_eval.memorization.tails import power_table
from finc_eval.memorization.verdict import attack_warnings, judge_guarantee, set_warnings
from finc_eval.memorization.views import SuspectViews, suspect_views
from finc_eval.numerics.families import holm, level_of_each
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.answer import kind_id

CALIBRATION_NEIGHBORS = 50  # training samples whose mean distance calibrates that of the nearest (Carlini et al.)


@show_options(AuditSettings)
@arithmetic()
def audit(
    gen: object,
    train: object,
    holdout: object,
    reference: object | None = None,
    settings: AuditSettings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[AuditOptions],
) -> Audit:
    """Audit a generator's samples: are they copies of training samples, do attacks find members, does a guarantee hold?

    The sets are embeddings of one extractor, and what it does not see is not audited. Nothing of size n × m is held.

    Args:
        gen: the generated set: array or tensor of embeddings (n, d), `EmbeddingCache`, the path of a file of
            embeddings, or the path of samples, which are embedded first.
        train: all samples that the generator was trained on, in the same forms; a part of them finds a part of the
            copies.
        holdout: samples of the same distribution that the generator has not seen, ideally as many as in `train`.
        reference: further samples, in neither of the two, for the DOMIAS attack; default: DOMIAS is left out.
        settings: settings of the audit.
        extractor: how to embed sets of samples; see `compare`.
        run: device, portions, threads and progress; default: CUDA if available, silent.
        options: fields of `AuditSettings`, which override `settings`.

    Returns:
        An `Audit`: measures of copying, attacks, and the stated guarantee if there is one.

    Raises:
        DataError: a set has fewer than 100 samples or a row that is not finite, or more than 1 % of the holdout is in
            the training set.
        IncompatibleError: the sets have different extractors or dimensions, or are the same samples.
        UsageError: an option is out of range, or a guarantee is stated by half.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> train, holdout, gen = rng.normal(size=(3, 200, 8)).astype("float32")
        >>> gen[:20] = train[:20]
        >>> result = fe.audit(gen, train, holdout, pairs=5)
        >>> result.copying.copies.same_embedding, [pair.distance for pair in result.copying.pairs]
        (20, [0.0, 0.0, 0.0, 0.0, 0.0])
        >>> print(result.verdict)
        20 of 200 samples are training samples, with equal embeddings.
    """
    settings, run = settings_from(AuditSettings, settings, options), Run.of(run)
    sets, joined = open_audit(gen, train, holdout, reference, extractor, run)
    embed = suspect_views(sets["train"], run)
    run = planned(sets, CALIBRATION_NEIGHBORS, embed, run)
    keep = KeptSteps(max(samples.n for samples in sets.values()), *_key(sets, settings, run))
    distances = _Distances.of(sets, settings, run, keep)
    with run.step(SAME_LAW):
        same_law = holdout_p_value(sets["train"], sets["holdout"], settings.seed, run)
    copying, notes = _copying(distances, settings, run, keep, embed)
    with run.step(ATTACKS):
        attacks, membership = _attack(distances, settings, run)
    stated = None
    if settings.stated_epsilon is not None:
        finds_training = copying.finds_training and same_law > AUDIT_ALPHA
        stated = judge_guarantee(settings.stated_epsilon, settings.stated_delta or 0.0, attacks, finds_training)
    infos = {label: set_info(label, embeddings, embeddings.n, embeddings.digest) for label, embeddings in sets.items()}
    keep.remove()
    return Audit(
        copying=copying,
        attacks=attacks,
        membership=membership,
        stated=stated,
        holdout_p_value=same_law,
        gen=infos["gen"],
        train=infos["train"],
        holdout=infos["holdout"],
        reference=infos.get("reference"),
        space=known_space(embeddings.space for embeddings in sets.values()),
        settings=settings,
        warnings=(*distances.warnings(infos), *notes, *joined, *attack_warnings(attacks, same_law)),
        signature=distances.signature(settings),
        provenance=Provenance.here(run.device),
    )


@dataclass(frozen=True, eq=False)
class _Distances:
    """The sets of an audit, and the distances of their samples.

    Attributes:
        halves: both halves of the training set, and of the holdout.
        gen: distances of the generated set.
        control: distances of the first half of the training set, which stands in for the generated set.
        fresh: nearest training samples of the holdout.
        spacings: distance of each training sample to its neighbors in the training set.
        recall: smallest recall of the searches; None if all are exact.
    """

    sets: dict[str, Embeddings]
    halves: dict[str, tuple[Subset, Subset]]
    gen: SetDistances
    control: SetDistances
    fresh: Neighbors
    spacings: NDArray[np.float64]
    recall: float | None

    @classmethod
    def of(cls, sets: dict[str, Embeddings], settings: AuditSettings, run: Run, keep: KeptSteps) -> _Distances:
        """Measure all distances, once it is known that training set and holdout are apart and can be cut in two."""
        halves = {label: cut_in_two(sets[label]) for label in ("train", "holdout")}
        for label, both in halves.items():
            least = min(embeddings.n for embeddings in both)
            if least < MIN_AUDIT_SAMPLES // 4:
                raise DataError(
                    f"{label} has {sets[label].n} samples, but one half of its videos has {least}: pass samples of "
                    "many videos"
                )
        k = min(CALIBRATION_NEIGHBORS, sets["train"].n // 2)
        gen, control, fresh, spaced = measure_all(sets, *halves["train"], k, run, settings.index, keep)
        recall = least_recall(*(neighbors.recall for neighbors in (fresh, gen.to_train, gen.to_non_members, spaced)))
        made = cls(sets, halves, gen, control, fresh, np.sqrt(spaced.squared), recall)
        check_overlap(int((made.equal & (made.spacings[fresh.indices[:, 0]] > 0)).sum()), sets["holdout"])
        return made

    @property
    def equal(self) -> NDArray[np.bool_]:
        """Marks of the holdout samples that have the embedding of a training sample."""
        return np.equal(self.fresh.distances[:, 0], 0)

    @property
    def neighbors(self) -> int:
        """Number of training samples that calibrate a distance."""
        return int(self.fresh.distances.shape[1])

    def closeness(self) -> tuple[Closeness, Closeness]:
        """Return how near the generated samples are to the training set, and how near the holdout is."""
        gen, fresh = (
            Closeness.of(neighbors.distances, self.spacings[neighbors.indices[:, 0]])
            for neighbors in (self.gen.to_train, self.fresh)
        )
        return gen, fresh

    def warnings(self, infos: Mapping[str, SetInfo]) -> list[str]:
        """Return what to know of the searches and of the sets."""
        about = [
            note
            for label, embeddings in self.sets.items()
            for note in notes_on(label, embeddings)
            if note not in infos[label].unread(label)
        ]
        overlap = int(self.equal.sum())
        unlike = [sentence for sentences in unlike_files(self.sets).values() for sentence in sentences]
        return [*recall_notes(self.recall), *set_warnings(infos, overlap, self.gen, self.spacings), *about, *unlike]

    def signature(self, settings: AuditSettings) -> Signature:
        """Return the signature of the audit."""
        return Signature.of(
            "audit",
            [embeddings.n for embeddings in self.sets.values()],
            known_space(embeddings.space for embeddings in self.sets.values()),
            ("ref", "+".join(embeddings.digest[:12] for label, embeddings in self.sets.items() if label != "gen")),
            ("neighbors", str(self.neighbors)),
            *index_signature(self.recall),
            ("seed", str(settings.seed)),
        )


def _attack(
    distances: _Distances, settings: AuditSettings, run: Run
) -> tuple[tuple[Attack, ...], MembershipDifference | None]:
    """Run the attacks on membership, of which all statements hold together."""
    sets = distances.sets
    half, rest = distances.halves["train"]
    attack_count = len(attack_names(with_reference="reference" in sets))
    return run_attacks(
        (distances.gen, AttackedSets(sets["gen"], sets["train"], sets["holdout"])),
        (distances.control, AttackedSets(half, rest, sets["holdout"])),
        sets.get("reference"),
        delta=settings.stated_delta or 0.0,
        # 4: statements about each attack: the intervals of its AUC and of two rates, and its bound of ε.
        confidence=1 - level_of_each(1 - AUDIT_CONFIDENCE, 4 * attack_count),
        seed=settings.seed,
        device=run.device,
    )


@dataclass(frozen=True)
class NearTraining:
    """Samples near to the training set, which is the part of an audit that a limit can be put on."""

    near: CopyingMeasure  # share of the samples, and of fresh samples, that are suspiciously near
    exact: int  # number of training samples among them, by pixels if known
    fresh: int  # number of fresh samples
    same_law: float  # p-value of the training set against fresh samples; at most 0.05, `near` shows no copying

    @classmethod
    def of(
        cls, gen: object, train: object, holdout: object, *, extractor: AnyExtractor = None, run: Run | None = None
    ) -> NearTraining:
        """Measure a generated set; arguments and errors as in `audit`."""
        run = Run.of(run)
        x, members, others = open_audit(gen, train, holdout, None, extractor, run)[0].values()
        k = min(CALIBRATION_NEIGHBORS, members.n // 2)
        of_gen, fresh = (nearest(embeddings, members, k, device=run.torch_device) for embeddings in (x, others))
        check_overlap(int((fresh.distances[:, 0] == 0).sum()), others)
        near = Near.of(of_gen, fresh)
        pixels = same_pixels(x, members)
        return cls(
            near=tail("calibrated", near.gen, near.fresh, AUDIT_CONFIDENCE),
            exact=int((of_gen.distances[:, 0] == 0).sum()) if pixels is None else pixels,
            fresh=others.n,
            same_law=holdout_p_value(members, others, AuditSettings().seed, run),
        )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The kinds of the training set, and of which kind the samples of two sets are."""

    kinds: TrainingKinds
    gen: NDArray[np.int64]
    fresh: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Mapping[str, Embeddings], seed: int, run: Run) -> _Cells:
        """Divide the training set."""
        silently = replace(run, progress=silent)
        kinds = TrainingKinds.of(sets["train"], seed, silently)
        gen, fresh = (kinds.assign(sets[label], silently) for label in ("gen", "holdout"))
        return cls(kinds, gen, fresh)

    def tests(self, gen: Closeness, fresh: Closeness, halves: tuple[Subset, Subset]) -> tuple[CellTest, CellTest]:
        """Test the generated set against the holdout, and one half of the holdout against the other."""
        near, of_fresh = gen.authenticity.distances, fresh.authenticity.distances
        ours, theirs = (half.rows for half in halves)
        control = cell_test(of_fresh[ours], self.fresh[ours], of_fresh[theirs], self.fresh[theirs])
        return cell_test(near, self.gen, of_fresh, self.fresh), control


def _copying(
    distances: _Distances, settings: AuditSettings, run: Run, keep: KeptSteps, embed: SuspectViews | None
) -> tuple[Copying, list[str]]:
    """Compute the first block, and a sentence about each measure that could not be computed."""
    sets, seed = distances.sets, settings.seed
    x, train, holdout = sets["gen"], sets["train"], sets["holdout"]
    gen, fresh = distances.closeness()
    with run.step(KINDS):
        cells = _Cells.of(sets, seed, run)
        test, control_test = cells.tests(gen, fresh, distances.halves["holdout"])
    by_embedding = (distances.gen.to_train, distances.fresh)
    nearness = find_nearness({"gen": x, "holdout": holdout}, train, by_embedding, settings, run, keep, embed)
    fitted, unfitted = _fitted_measures(distances, seed, run)
    measures = [
        authpct(gen, fresh, AUDIT_CONFIDENCE),
        c_t(test, control_test, AUDIT_CONFIDENCE),
        dcr(distances.gen, distances.control, AUDIT_CONFIDENCE),
        nndr(gen, fresh, AUDIT_CONFIDENCE),
        *(tail(name, way.gen, way.fresh, AUDIT_CONFIDENCE) for name, way in nearness.ways.items()),
        *fitted,
    ]
    adjusted = holm([measure.p_value for measure in measures], MEASURES_PART).tolist()
    alpha = level_of_each(MEASURES_PART * AUDIT_ALPHA, len(measures))
    k, device = distances.neighbors, run.torch_device
    with run.step(PLANTED):
        power = power_table(
            train, distances.spacings, fresh.calibrated, x.n, neighbors=k, alpha=alpha, seed=seed, device=device
        )
    names, threshold = [kind_id(cell) for cell in cells.gen], suspicious_threshold(fresh.calibrated)
    checked, strata = against_holdout(
        [replace(measure, adjusted=p) for measure, p in zip(measures, adjusted, strict=True)],
        copying_by_stratum(cells.kinds, cells.gen, cells.fresh, gen.calibrated, fresh.calibrated, threshold, test),
        np.array(names, object),
        lambda: find_sides(sets, nearness, k, settings, run.prefixed("training set and holdout exchanged")),
    )
    equal = gen.authenticity.copies, fresh.authenticity.copies
    return Copying(
        measures=checked,
        copies=nearness.copies((x, holdout), train, equal, alpha, training_found_by(checked)),
        pairs=nearness.pairs(x, train, names, settings.pairs),
        strata=strata,
        power=power + nearness.power(x.n, alpha, seed),
        power_alpha=alpha,
    ), [*nearness.notes, *unfitted]


def _fitted_measures(distances: _Distances, seed: int, run: Run) -> tuple[list[CopyingMeasure], list[str]]:
    """Return the measures that fit a distribution, and a sentence about each that these sets do not allow."""
    x, train, holdout = (distances.sets[label] for label in ("gen", "train", "holdout"))
    fitted: tuple[Callable[[], CopyingMeasure], ...] = (
        lambda: mifid(x, train, holdout, AUDIT_CONFIDENCE, seed, run),
        lambda: fld_gap(x, distances.halves["train"], holdout, AUDIT_CONFIDENCE, seed, run),
    )
    measures, notes = [], []
    for name, compute in zip(FITTED, fitted, strict=True):
        try:
            with run.step(name):
                measures.append(compute())
        except DataError as error:
            notes.append(f"{name} is left out: {error}")
    return measures, notes


def _key(sets: Mapping[str, Embeddings], settings: AuditSettings, run: Run) -> list[str]:
    """Return what decides the steps of an audit."""
    of_sets = [f"{label} {samples.digest} {samples.id_keys().tobytes().hex()}" for label, samples in sets.items()]
    return [*of_sets, repr(settings), run.torch_device.type]
