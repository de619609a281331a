"""The audit of a generator: copying in its samples, what attacks tell, and a stated guarantee, each by itself.

Everything is judged beside fresh real samples that play the generator. Distances between sets are computed once and
serve all measures; what would need more than samples of a set says how many it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.comparison.baseline_directions import constant_features
from finc_eval.comparison.set_info import SetInfo, set_info
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ARRAY_SPACE, Embeddings, Subset, as_embeddings
from finc_eval.embeddings.neighbors import Neighbors, open_pair
from finc_eval.memorization.attacks import CONTROL, Attack, run, some
from finc_eval.memorization.copying import (
    Closeness,
    Measure,
    authpct,
    c_t,
    calibrated_tail,
    cell_test,
    dcr,
    fld_gap,
    lowest_threshold,
    mifid,
    nndr,
)
from finc_eval.memorization.distances import Halves, Played, play, play_control, spacings
from finc_eval.memorization.power import power_table
from finc_eval.memorization.result import ALPHA, LEVEL, Audit, Copying, Pair
from finc_eval.memorization.stated import check_stated, stated
from finc_eval.memorization.strata import assigned, copying_by_kind, kinds_of
from finc_eval.numerics.inference import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray


STATEMENTS = 4
"""About each attack: the intervals of its AUC and of two rates, and its bound of ε."""

NEIGHBORS = 50
"""Training samples whose mean distance calibrates that of the nearest (Carlini et al.); half of a small set."""

FEWEST = 100
"""Samples of a set, below which an audit is refused: a hundredth of them would be none."""

OVERLAP = 0.01
"""Share of the holdout that may be in the training set, too, as duplicates of a data set are."""

LIKELIHOODS = 5000
"""Samples of each set for FLD's gap, at most: its fit passes over all pairs a dozen times."""

PAIRS = 24
"""Suspicious pairs that are kept."""

ENOUGH_OTHERS = 10_000
"""Non-members from which a rate of 0.1 % false positives says something."""


def audit(
    gen: object,
    train: object,
    holdout: object,
    reference: object | None = None,
    *,
    stated_epsilon: float | None = None,
    stated_delta: float | None = None,
    pairs: int = PAIRS,
    seed: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Ask of a generator's samples which images it was trained on: copies, attacks, and a stated guarantee.

    Nothing of size n × m is held. The sets are embeddings of one extractor, and what it does not see is not audited.

    Args:
        gen: the generated set: array or tensor of embeddings (n, d), `EmbeddingCache` or the path of one.
        train: all samples that the generator was trained on, likewise; a part of them finds a part of the copies.
        holdout: samples of the same distribution that it has not seen: the control. Best as many as in `train`.
        reference: further ones, in neither of the two, for the DOMIAS attack; without it, that is left out.
        stated_epsilon: ε of a guarantee that the trainer states for each training sample.
        stated_delta: its δ, 0 if it is pure.
        pairs: how many suspicious pairs to keep.
        seed: of subsets, planted copies and machines.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: sets of fewer than 100 samples, of unlike extractors or dimensions, not finite; a holdout of
            which more than 1 % is in the training set; or a guarantee that is none.
    """
    check_stated(stated_epsilon, stated_delta)
    if pairs < 1:
        raise FincEvalError(f"pairs must be at least 1, got {pairs}")
    sets = _opened(gen, train, holdout, reference)
    x, members, others = sets["gen"], sets["train"], sets["holdout"]
    halves, k = Halves.of(others), min(NEIGHBORS, members.n // 2)
    _check_halves(halves)
    control, fresh = play_control(halves, members, k, progress)
    overlap = int((fresh.distances[:, 0] == 0).sum())
    _check_overlap(overlap, others)
    played = play(x, members, others, k, "gen", progress)
    progress("train against train", 0, 1)
    spaced = spacings(members)
    progress("train against train", 1, 1)
    known = _Known(sets, halves, played, control, fresh, spaced, seed)

    copying, notes = known.copying(pairs, progress)
    progress("attacks", 0, 1)
    count = 3 + ("reference" in sets)
    attacks = run(
        played,
        control,
        (x, members, others),
        (halves.player, members, halves.others),
        sets.get("reference"),
        delta=stated_delta or 0.0,
        level=1 - (1 - LEVEL) / (STATEMENTS * count),
        seed=seed,
    )
    progress("attacks", 1, 1)
    infos = {label: set_info(label, one, one.n, one.digest) for label, one in sets.items()}
    return Audit(
        copying=copying,
        attacks=attacks,
        stated=None
        if stated_epsilon is None or stated_delta is None
        else stated(stated_epsilon, stated_delta, attacks),
        gen=infos["gen"],
        train=infos["train"],
        holdout=infos["holdout"],
        reference=infos.get("reference"),
        space=_space(sets),
        warnings=(*_of_sets(sets, infos, overlap, played, spaced), *notes, *_of_attacks(attacks, sets)),
        signature=_signature(sets, k, seed),
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """All that the measures of copying are made from.

    Attributes:
        sets: by label.
        halves: of the holdout.
        played, control: distances of the generated set, and of the half that plays it.
        fresh: the k nearest training samples of the whole holdout.
        spacings: of training samples.
        seed: of subsets.
    """

    sets: dict[str, Embeddings]
    halves: Halves
    played: Played
    control: Played
    fresh: Neighbors
    spacings: NDArray[np.float64]
    seed: int

    def copying(self, pairs: int, progress: Progress) -> tuple[Copying, list[str]]:
        """The first block, and what could not be computed."""
        x, train = self.sets["gen"], self.sets["train"]
        gen, fresh = (
            Closeness.of(found.distances, self.spacings[found.indices[:, 0]])
            for found in (self.played.to_train, self.fresh)
        )
        progress("kinds of training samples", 0, 1)
        kinds = kinds_of(train, self.seed)
        cells, fresh_cells = (assigned(kinds, one) for one in (x, self.sets["holdout"]))
        test = cell_test(gen.distances, cells, fresh.distances, fresh_cells)
        ours, theirs = self.halves.player.rows, self.halves.others.rows
        control_test = cell_test(fresh.distances[ours], fresh_cells[ours], fresh.distances[theirs], fresh_cells[theirs])
        progress("kinds of training samples", 1, 1)
        measures = [
            authpct(gen, fresh, LEVEL),
            c_t(test, control_test, LEVEL),
            dcr(self.played, self.control, LEVEL),
            nndr(gen, fresh, LEVEL),
            calibrated_tail(gen, fresh, LEVEL),
        ]
        notes = []
        for name, compute in (("MiFID", self._mifid), ("FLD's gap", self._fld_gap)):
            progress(name, 0, 1)
            try:
                measures.append(compute())
            except FincEvalError as error:
                notes.append(f"{name} is left out: {error}")
            progress(name, 1, 1)
        adjusted = holm(torch.tensor([measure.p_value for measure in measures], dtype=torch.double)).tolist()
        threshold, level = lowest_threshold(fresh), ALPHA / len(measures)
        progress("planted copies", 0, 1)
        power = power_table(
            train,
            self.spacings,
            fresh.calibrated,
            x.n,
            neighbors=self.fresh.distances.shape[1],
            level=level,
            seed=self.seed,
        )
        progress("planted copies", 1, 1)
        return Copying(
            measures=tuple(replace(one, adjusted=p) for one, p in zip(measures, adjusted, strict=True)),
            exact=(int((gen.distances == 0).sum()), int((fresh.distances == 0).sum())),
            pairs=self._pairs(gen, fresh, [kinds.over[cell].id for cell in cells] if kinds.over else None, pairs),
            kinds=copying_by_kind(kinds, cells, fresh_cells, gen.calibrated, fresh.calibrated, threshold, test),
            power=power,
            level=level,
        ), notes

    def _mifid(self) -> Measure:
        return mifid(self.sets["gen"], self.sets["train"], self.sets["holdout"], LEVEL, self.seed)

    def _fld_gap(self) -> Measure:
        rng = np.random.default_rng(self.seed)
        test = some(self.halves.others, LIKELIHOODS, rng)
        varying = np.flatnonzero(~constant_features(test))
        n = min(self.sets["gen"].n, self.halves.player.n, LIKELIHOODS)
        sets = (self.sets["gen"], self.halves.player, self.sets["train"], test)
        gen, fresh, train, test = (
            Subset(some(one, most, rng), np.arange(min(one.n, most)), varying)
            for one, most in zip(sets, (n, n, LIKELIHOODS, LIKELIHOODS), strict=True)
        )
        return fld_gap(gen, fresh, train, test, LEVEL)

    def _pairs(self, gen: Closeness, fresh: Closeness, kinds: list[str] | None, count: int) -> tuple[Pair, ...]:
        # Among equally calibrated ones, all exact copies, the first in the set.
        order = np.argsort(gen.calibrated, kind="stable")[:count]
        ids = self.sets["gen"].ids_at(order)
        originals = self.sets["train"].ids_at(self.played.to_train.indices[order, 0])
        return tuple(
            Pair(
                gen=ids[place],
                train=originals[place],
                distance=float(gen.distances[row]),
                calibrated=float(gen.calibrated[row]),
                fresh_share=float((fresh.calibrated <= gen.calibrated[row]).mean()),
                kind=None if kinds is None else kinds[row],
            )
            for place, row in enumerate(order)
        )


def _opened(gen: object, train: object, holdout: object, reference: object | None) -> dict[str, Embeddings]:
    """The sets by label, of one space, each large enough."""
    given = {"gen": gen, "train": train, "holdout": holdout} | ({} if reference is None else {"reference": reference})
    sets = {label: as_embeddings(source, label) for label, source in given.items()}
    for label, one in sets.items():
        if label != "gen":
            open_pair(sets["gen"], one)
        if one.n < FEWEST:
            raise FincEvalError(
                f"{label} has {one.n} samples: an audit needs at least {FEWEST} of each set, and thousands to see a "
                "few copies"
            )
    if "reference" in sets:
        for label in ("train", "holdout"):
            if sets["reference"].digest == sets[label].digest:
                raise FincEvalError(f"reference and {label} are the same samples: pass further ones, or none")
    return sets


def _check_halves(halves: Halves) -> None:
    least = min(halves.player.n, halves.others.n)
    if least < FEWEST // 4:
        raise FincEvalError(
            f"holdout has {halves.whole.n} samples, of which one half of the videos has {least}: a control needs those "
            "of many videos"
        )


def _check_overlap(overlap: int, holdout: Embeddings) -> None:
    if overlap > OVERLAP * holdout.n:
        raise FincEvalError(
            f"{overlap} of the {holdout.n} samples of holdout have the very embedding of a training sample: pass "
            "samples that the generator was not trained on"
        )


def _of_sets(
    sets: dict[str, Embeddings],
    infos: dict[str, SetInfo],
    overlap: int,
    played: Played,
    spaced: NDArray[np.float64],
) -> Iterator[str]:
    """What to know of the sets."""
    n, m = sets["train"].n, sets["holdout"].n
    if n != m:
        yield (
            f"train has {n:,} samples and holdout {m:,}: all are used, since copies of samples that are left out would "
            "not be seen, and the DCR share is given as for equal sizes"
        )
    if m < ENOUGH_OTHERS:
        yield (
            f"holdout has {m:,} samples: a rate of 0.1 % false positives is known from {ENOUGH_OTHERS:,} on, and what "
            "is said of it here is rough"
        )
    if overlap:
        yield (
            f"{overlap} of the {m:,} samples of holdout have the very embedding of a training sample: they make the "
            "control look like copies, and hide some"
        )
    held = int((played.to_others.distances[:, 0] == 0).sum())
    if held:
        yield (
            f"{held} generated samples have the very embedding of a holdout sample: make sure that the generator was "
            "not trained on the holdout"
        )
    repeated = int((spaced == 0).sum())
    if repeated:
        yield (
            f"{repeated:,} of the {n:,} training samples are duplicates of others: AuthPct and NNDR see no near copies "
            "of them"
        )
    for label, info in infos.items():
        if info.unreadable:
            yield f"{info.unreadable} samples of {label} could not be read and are not in the audit"
        if info.clip and info.clip.windows > 1:
            yield (
                f"samples of {label} are windows of videos, and those of one video are alike: intervals and p-values "
                "take them for independent, and are too sure"
            )


def _of_attacks(attacks: Sequence[Attack], sets: dict[str, Embeddings]) -> Iterator[str]:
    """What to know of the attacks."""
    for attack in attacks:
        if not attack.control_is_sound:
            yield (
                f"the attack {attack.name} tells train from holdout by fresh samples, too (AUC "
                f"{attack.control.auc:.3f}, not within {CONTROL[0]} to {CONTROL[1]}): the two are not of one "
                "distribution, and it measures that"
            )
    if "reference" not in sets:
        yield "no reference was given, so that the DOMIAS attack, often the strongest, is left out"


def _space(sets: dict[str, Embeddings]) -> str:
    """The extractor, of the first set that knows it."""
    return min((one.space for one in sets.values()), key=lambda space: space.startswith(ARRAY_SPACE))


def _signature(sets: dict[str, Embeddings], k: int, seed: int) -> Signature:
    known = [sets[label] for label in ("train", "holdout", "reference") if label in sets]
    return Signature(
        "audit",
        (
            ("n", "/".join(str(one.n) for one in sets.values())),
            ("fx", _space(sets)),
            ("ref", "+".join(one.digest[:12] for one in known)),
            ("neighbors", str(k)),
            ("seed", str(seed)),
            ("v", version("finc-eval")),
        ),
    )
