"""From paired sets to `ById`: measure the pairs and runs of the baseline, find what changed, broke and is worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.same_names import ID, names_of
from finc_eval.naming.columns import is_look
from finc_eval.naming.measured import Measured
from finc_eval.naming.properties import TEXT_COLUMNS, common_word
from finc_eval.naming.repeated import Repeats, pixels_of
from finc_eval.naming.traits import Trait
from finc_eval.numerics.exchanges import unit_numbers
from finc_eval.numerics.inference import ALPHA, share_bounds
from finc_eval.partitions.blocks import Pairing
from finc_eval.same_ids.broken import RATE, find_broken
from finc_eval.same_ids.detect import few_of_run, least_of_run
from finc_eval.same_ids.findings import NOTHING, VAGUE, KnownOfPairs, find_findings
from finc_eval.same_ids.pairs import OTHERS, SIZES, SIZES_BEFORE, Aligned, PairTable, align, measure
from finc_eval.same_ids.reasons import reasons_of
from finc_eval.same_ids.result import SHOWN, ById
from finc_eval.same_ids.run_names import FEW
from finc_eval.same_ids.seen import TURNED_GRAY, SeenPairs, see
from finc_eval.same_ids.verdict import LEAST_TAIL, RunVerdict, judge_run
from finc_eval.same_ids.worse import (
    Margin,
    MovedLook,
    causes_among,
    error_of,
    find_moved,
    judge_diversity,
    judge_fit,
    judge_kinds,
    judge_looks,
    judge_repeats,
)

Array = NDArray[np.float64]

REPEATS = 10_000  # pairs among which repeats are looked for, in 15 CPU seconds: the time grows as the square
UNSHOWN = ("detail", "grain", "blank", *SIZES, *SIZES_BEFORE)  # measures of a pair that are not its distance


@dataclass(frozen=True, eq=False)
class MeasuredRuns:
    """Two runs that were measured pair by pair, so that each question can be answered at any level."""

    pairs: Aligned
    nearest: PairTable  # each new sample with the nearest of all runs of the baseline
    floor: PairTable | None  # pairs of runs of the baseline; None without a further run
    runs: int  # number of further runs
    questions: Sequence[Harm]  # what may be worse
    looks: Callable[[float], list[MovedLook]]  # how all pictures look otherwise, by the error of all bounds together
    seen: SeenPairs  # what each pair shows
    unread: tuple[str, ...] = ()  # ids of pairs that are left out, as their pictures are not those that were embedded
    missing: int = 0  # samples of the reference that the new run lacks
    known: KnownOfPairs = NOTHING  # what all pairs are

    @classmethod
    def of(
        cls,
        pairing: Pairing,
        again: Mapping[str, Embeddings],
        kinds: tuple[NDArray[np.int64], Sequence[str]] | None = None,
        run: Run | None = None,
        fits: Mapping[str, Array] | None = None,
        measured: Mapping[str, Measured] = MappingProxyType({}),
    ) -> MeasuredRuns:
        """Measure two sets, "gen" and "ref", that are paired by their ids, pair by pair.

        Args:
            pairing: the paired sets.
            again: further runs of the baseline, by label.
            kinds: the kind of each sample, of one set after the other, and the names of the kinds; None without kinds.
            run: progress of the pictures that are read, and the device of LPIPS.
            fits: fit of each image to its prompt, by label; none if it is not known.
            measured: what is measured of the sets already, by label: those pictures are not measured again.
        """
        pairs = align({label: pairing.names[block] for label, block in pairing.block.items()}, pairing.sets)
        run = Run.of(run)
        table = measure(pairs, run, with_traits=True, measured=measured)
        unread = tuple(pairs.ids[table.lost].tolist())
        pairs, table = pairs.part(np.flatnonzero(~table.lost)), table.part(~table.lost)
        runs = _baselines(pairing, pairs, again)
        floor = _like(table, _floor(runs, run))
        nearest = table
        for other in list(runs.values())[1:]:
            nearest = _nearest(nearest, pairs, other, run)
        seen = see(nearest)
        judged = judge_run(nearest, floor, pairs.ids.tolist(), seen=seen)
        kept, known = np.flatnonzero(~judged.broken), _known(pairs, kinds, pairing)
        questions, looks = _questions(pairs, table, judged, known) if len(table) >= LEAST_TAIL else _none()
        if fits and len(kept) > 1:
            questions.append(_fit_question(pairs.part(kept), fits))
        missing = len(pairing.apart["ref"][1]) if "ref" in pairing.apart else 0
        return cls(pairs, nearest, floor, len(again), questions, looks, seen, unread, missing, known)

    def judge(self, rate: float = RATE) -> RunVerdict:
        """Return the verdict of the run, with the pairs that are broken; see `judge_run`."""
        return judge_run(self.nearest, self.floor, self.pairs.ids.tolist(), rate, self.seen)

    @property
    def absent(self) -> int:
        """Number of samples of the reference without a pair that was measured: missing ones, and unread ones."""
        return self.missing + len(self.unread)

    @property
    def is_sure_of_rest(self) -> bool:
        """True if few pairs are broken, unclear or absent, so that the others stand for the run."""
        is_few = self.absent <= FEW * (len(self.nearest) + self.absent)
        return is_few and self.judge().is_sure_of_rest

    def changed(self, alpha: float = ALPHA) -> tuple[float, tuple[float, float]]:
        """Return the share of pairs beyond the floor, without the floor's own part, and its 1 − `alpha` interval."""
        return _changed(self.nearest, self.floor, alpha)

    def margins(self, alpha: float = ALPHA) -> list[Margin]:
        """Return what was shown of each thing that may be worse; all bounds hold together at 1 − `alpha`.

        Nothing is shown to be as good where more than a few pairs are broken, unclear or absent, or all are of another
        size.
        """
        found = [margin for question in self.questions for margin in question.judge(self._error(question.count, alpha))]
        verdict = self.judge()
        if self.is_sure_of_rest:
            return found
        doubtful = "size" if verdict.is_resized else "not worse"
        return [
            replace(margin, verdict="undecided") if margin.verdict == "not worse" or doubtful == "size" else margin
            for margin in found
        ]

    def count_worse(self, alpha: float) -> int:
        """Return the number of things that are surely worse by more than their margin."""
        return sum(margin.verdict == "worse" for margin in self.margins(alpha))

    def _error(self, bounds: int, alpha: float = ALPHA) -> float:
        """Return the error of each bound of a question: all questions have the same part of the whole error."""
        return error_of(bounds * sum(question.count > 0 for question in self.questions), alpha)

    def answer(self) -> ById:
        """Answer all questions at 95 %."""
        judged, margins = self.judge(), self.margins()
        changed, interval = self.changed()
        looks = [] if judged.is_resized else self.looks(self._error(1))
        worse = [margin for margin in margins if margin.verdict == "worse"]
        order, ids = np.argsort(-_distance(self.nearest), kind="stable"), self.pairs.ids
        return ById(
            changed,
            interval,
            self.runs,
            [str(ids[place]) for place in order if judged.broken[place]],
            reasons_of(self.pairs, self.nearest, judged),
            worse,
            [margin for margin in margins if margin.verdict == "not worse"],
            [margin for margin in margins if margin.verdict == "undecided"],
            _neutral(looks),
            tuple(ids[order[:SHOWN]].tolist()),
            tuple(ids.tolist()),
            {name: _short(values) for name, values in self.nearest.values.items() if name not in UNSHOWN},
            self.unread,
            "undecided" if judged.verdict == "clean" and self.absent else judged.verdict,
            judged.run,
            tuple(ids[judged.unclear].tolist()),
            judged.is_usual,
            self.missing,
            find_findings(self.pairs, judged, self.known, looks, worse, tuple(ids[order[:SHOWN]].tolist())),
        )


def _short(values: Array) -> tuple[float, ...]:
    """Return numbers with six digits."""
    return tuple(float(f"{value:.6g}") for value in values.tolist())


def _baselines(pairing: Pairing, pairs: Aligned, again: Mapping[str, Embeddings]) -> dict[str, Aligned]:
    """Return each further run of the baseline, paired with the reference; the first of all is the reference."""
    found = {"ref": pairs}
    for label, samples in again.items():
        names, _ = names_of({"ref": pairing.sets["ref"], label: samples}, ID)
        run = align({label: names[label], "ref": names["ref"]}, {label: samples, "ref": pairing.sets["ref"]})
        if len(run.ids) < (least := least_of_run(len(pairs.ids))):
            raise few_of_run(label, len(run.ids), least)
        found[label] = run
    return found


def _floor(runs: Mapping[str, Aligned], run: Run) -> PairTable | None:
    """Return the pairs of runs of the baseline: each sample with the nearest of the other runs; None without any.

    The ids are those that all runs have. The first run is the reference; each other run knows the rows of the
    reference with its ids.
    """
    (_, ref), *again = runs.items()
    if not again:
        return None
    ids = reduce(np.intersect1d, [pairs.ids for _, pairs in again])
    found = [pairs.part(np.searchsorted(pairs.ids, ids)) for _, pairs in again]
    sets = [(ref.ref, found[0].rows[1]), *((pairs.gen, pairs.rows[0]) for pairs in found)]
    measured = {
        (first, second): measure(Aligned(ids, sets[second][0], sets[first][0], (sets[second][1], sets[first][1])), run)
        for first, second in combinations(range(len(sets)), 2)
    }
    if len(measured) == 1:
        return measured[0, 1]
    tables = [
        reduce(PairTable.nearest, [measures for pair, measures in measured.items() if number in pair])
        for number in range(len(sets))
    ]
    return PairTable(
        {name: np.concatenate([table.values[name] for table in tables]) for name in tables[0].values},
        np.concatenate([table.others for table in tables]),
        None,
        owner=np.repeat(np.arange(len(tables)), len(ids)),
    )


def _like(table: PairTable, floor: PairTable | None) -> PairTable | None:
    """Return the pairs of the floor whose pictures were read, with the measures that a table has, too."""
    if floor is None:
        return None
    if "mse" in table.values and "mse" not in floor.values:
        raise DataError(
            "the pictures of a run in again are not at hand, while those of gen and ref are: give it with its pictures"
        )
    known = floor.part(~floor.lost)
    return replace(known, values={name: own for name, own in known.values.items() if name in table.values})


def _nearest(table: PairTable, pairs: Aligned, again: Aligned, run: Run) -> PairTable:
    """Return the table with each sample's nearer pair: that of the table, or that of a further run of the baseline."""
    ids, mine, theirs = np.intersect1d(pairs.ids, again.ids, return_indices=True)
    other = measure(Aligned(ids, pairs.gen, again.gen, (pairs.rows[0][mine], again.rows[0][theirs])), run)
    values = {}
    for name, own in table.values.items():
        whole = np.full(len(own), np.inf)
        whole[mine] = other.values.get(name, np.inf)
        values[name] = whole
    others = np.ones(len(table))
    others[mine] = other.others
    return table.nearest(PairTable(values, others, None))


def _distance(table: PairTable) -> Array:
    return table.values.get("mse", table.values["distance"])


def _changed(table: PairTable, floor: PairTable | None, alpha: float) -> tuple[float, tuple[float, float]]:
    own, n = _distance(table), len(table)
    if floor is None:
        count = int((own > 0).sum())
        low, high = share_bounds(count, n, alpha / 2)
        return count / n, (float(low), float(high))
    known = _distance(floor)
    bulk = known[~find_broken(floor)]
    limit = bulk.max() if len(bulk) else known.max()
    beyond, apart = int((own > limit).sum()), int((known > limit).sum())
    (low, high), (least, most) = (share_bounds(k, m, alpha / 4) for k, m in ((beyond, n), (apart, len(known))))

    def without(share: float, part: float) -> float:
        return float(np.clip((share - part) / max(1 - part, 1e-9), 0, 1))

    ends = without(float(low), float(most)), without(float(high), float(least))
    return without(beyond / n, apart / len(known)), ends


@dataclass(frozen=True, eq=False)
class Harm:
    """Something that may be worse: how many bounds it takes, and its answer by the error of each."""

    count: int
    judge: Callable[[float], list[Margin]]


def _known(pairs: Aligned, kinds: tuple[NDArray[np.int64], Sequence[str]] | None, pairing: Pairing) -> KnownOfPairs:
    """Return which kinds and repeats all pairs are."""
    cells = None
    if kinds is not None:
        numbers, names = kinds
        n = pairing.sets["gen"].n
        cells = numbers[:n][pairs.rows[0]], numbers[n:][pairs.rows[1]], names
    return KnownOfPairs(cells, _repeats(pairs) if len(pairs.ids) <= REPEATS else None)


def _neutral(looks: Sequence[MovedLook]) -> list[str]:
    """Return the looks that are neither better nor worse and follow from no other look, those that moved most first."""
    causes = [cause for cause, _ in causes_among(list(looks)) if not cause.trait.bad]
    return [look.margin.name for look in sorted(causes, key=lambda cause: -cause.margin.difference)]


def _questions(
    pairs: Aligned, table: PairTable, judged: RunVerdict, known: KnownOfPairs
) -> tuple[list[Harm], Callable[[float], list[MovedLook]]]:
    """Return what may be worse, and what else may have moved.

    Looks are of the drawn pairs that are not broken, and of those that a look breaks. Kinds are of these and of broken
    pairs that show another picture. Repeats and diversity are of all, as many pairs that became one picture are broken,
    each by itself.
    """
    kept = np.flatnonzero(~judged.broken | (judged.causes == TURNED_GRAY))
    if len(kept) < 2:  # all are broken: the whole run is judged
        kept = np.arange(len(pairs.ids))
    looked = kept if table.traits is None else kept[~np.isnan(table.traits[0][kept]).any(1)]
    traits = None if table.traits is None else (table.traits[0][looked], table.traits[1][looked])
    looks = PairTable({}, table.others[looked], traits, looks=table.looks)
    units = unit_numbers(pairs.gen.unit_keys()[pairs.rows[0][looked]])
    bad, others = (0 if traits is None else sum(map(judges, looks.looks)) for judges in (_is_bad, _is_added))
    found = [Harm(bad, partial(judge_looks, looks, units))]
    if known.cells is not None:
        own, before, names = known.cells
        of_kinds = np.union1d(kept, np.flatnonzero(np.isin(judged.causes, VAGUE)))
        found.append(Harm(len(names), partial(judge_kinds, (own[of_kinds], before[of_kinds]), names)))
    asked = np.random.default_rng(0).permutation(len(pairs.ids))[:REPEATS]
    first, second, name = known.repeated or _repeats(pairs.part(np.sort(asked)))
    found.append(Harm(1, partial(judge_repeats, (first, second), name)))
    found += [Harm(1, partial(judge_diversity, spreads)) for spreads in _diversity(pairs)]
    bounds = max(1, bad + others)
    return found, lambda error: find_moved(looks, units, error / bounds)


def _is_bad(trait: Trait) -> bool:
    return trait.bad != 0


def _is_added(trait: Trait) -> bool:
    return trait.bad == 0 and not is_look(trait.name)


def _none() -> tuple[list[Harm], Callable[[float], list[MovedLook]]]:
    """Return no question: so few pairs do not show what is worse."""
    return [], lambda _: []


def _fit_question(part: Aligned, fits: Mapping[str, Array]) -> Harm:
    own, before = (fits[label][rows] for label, rows in zip(("gen", "ref"), part.rows, strict=True))
    return Harm(1, partial(judge_fit, (own, before), unit_numbers(part.gen.unit_keys()[part.rows[0]])))


def _repeats(part: Aligned) -> tuple[NDArray[np.bool_], NDArray[np.bool_], str]:
    """Return which samples of both sets are repeats of others in their set, and what the repeats are called."""
    sets = {"gen": part.gen, "ref": part.ref}
    repeats = Repeats.among(sets, dict(zip(sets, part.rows, strict=True)))
    # More often than once in its set: a sample and its own pair do not count.
    own, before = (repeats.is_again(label) for label in sets)
    chosen = repeats.added("gen", "ref")
    if not len(chosen):
        return own, before, "repeats"
    has = repeats.has(chosen)["gen"]
    name = repeats.say(chosen, int(has.sum()), are_pictures=pixels_of(part.gen) is not None)
    if len(part.ids) == REPEATS:
        name += f" among {REPEATS:,}"
    column = next((candidate for candidate in TEXT_COLUMNS if candidate in part.gen.columns), None)
    if column is not None:
        texts = np.array(part.gen.column(column))[part.rows[0]]
        if word := common_word(texts[has].tolist(), texts.tolist()):
            name += f", of {column}s with “{word}”"
    return own, before, name


def _diversity(part: Aligned) -> Iterator[tuple[Array, Array]]:
    """Yield the mean squared distances of the images of each prompt in both sets, if prompts have several."""
    column = next((candidate for candidate in TEXT_COLUMNS if candidate in part.gen.columns), None)
    if column is None:
        return
    texts = np.array(part.gen.column(column))[part.rows[0]]
    _, prompt, count = np.unique(texts, return_inverse=True, return_counts=True)
    several = count > 1
    if not several.any():
        return
    order, ends = np.argsort(prompt, kind="stable"), np.cumsum(count)
    together = max(1, OTHERS // int(count.max()))  # prompts whose samples are in memory
    spreads = np.zeros((2, len(count)))
    for start in range(0, len(count), together):
        some = slice(start, start + together)
        first = ends[some] - count[some] - (ends[start] - count[start])
        chosen = order[ends[start] - count[start] : ends[some][-1]]
        for spread, samples, rows in zip(spreads, (part.gen, part.ref), part.rows, strict=True):
            vectors = samples.rows_at(rows[chosen]).cpu().double().numpy()
            inner = np.add.reduceat((vectors**2).sum(1), first)
            inner -= (np.add.reduceat(vectors, first) ** 2).sum(1) / count[some]
            spread[some] = 2 * inner / np.maximum(count[some] - 1, 1)
    yield spreads[0][several], spreads[1][several]
