"""`compare_trainings`: two trainings side by side, at the steps that both have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.run import Run
from finc_eval.core.words import join_first, plural
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.findings.finding import Finding
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.causes import Causes
from finc_eval.monitoring.columns import by_name, overlap_with, spreads_of
from finc_eval.monitoring.evaluations import EvaluationPart, Evaluations
from finc_eval.monitoring.exchange import Array
from finc_eval.monitoring.findings import Followings
from finc_eval.monitoring.followed import COPIED, Alarm, start_text
from finc_eval.monitoring.left_out import say_same_seeds
from finc_eval.monitoring.monitor import Monitor
from finc_eval.monitoring.steps import step_text
from finc_eval.monitoring.trainings.result import FollowedByBoth, TrainingDifference, Trainings
from finc_eval.monitoring.trainings.scan import scan_p_values
from finc_eval.monitoring.trainings.shared_steps import SharedSteps
from finc_eval.monitoring.trainings.steps_of_folders import steps_of
from finc_eval.numerics.inference import ALPHA

Training = str | Path | Mapping[float, object]


def compare_trainings(
    trainings: Mapping[str, Training],
    reference: object = None,
    *,
    train: object = None,
    extractor: AnyExtractor = None,
    text: str | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    run: Run | None = None,
) -> Trainings:
    """Compare two trainings at the steps that both have: seeds, rewards, learning rates.

    At each step, the samples of both are compared to each other, in all that a monitor follows. What both trainings
    have in common, such as a drift of both, is not a difference. Draw new seeds at each step.

    Args:
        trainings: two trainings by name: a folder with a folder or file of samples for each step, or samples by step,
            in any form that `Monitor.update` takes.
        reference: samples that kinds are found in; default: the first step of the first training, which is then not
            compared.
        train: training set of the generators: samples near it are copies; default: those near the reference are.
        extractor: how to embed samples that are not embedded; see `compare`.
        text: how to embed prompts; see `Monitor`.
        alpha: probability of any false difference, over all steps and followed things.
        seed: random seed of the kinds, and of ties.
        run: device, portions, threads and progress.

    Raises:
        UsageError: there are not two trainings, or they have no step in common.
        DataError: samples cannot be read, or the reference has fewer than 40.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> a = {step: rng.normal(size=(64, 4)) for step in range(8)}
        >>> b = {step: rng.normal(size=(64, 4)) * (1 if step < 4 else 0.5) for step in range(8)}
        >>> found = fe.compare_trainings({"a": a, "b": b}, rng.normal(size=(200, 4)))
        >>> found.differences[0].since in (3, 4, 5)
        True
    """
    names, run = _check_two(trainings), Run.of(run)
    first, second = (steps_of(training) for training in trainings.values())
    start = min(first, default=None) if reference is None else None  # step of the reference, which is not compared
    if start is not None:
        reference = first.pop(start)
        second.pop(start, None)
    steps = sorted({*first} & {*second})
    if not steps:
        raise UsageError(
            f"{names[0]} has {_list_steps(first)}, and {names[1]} has {_list_steps(second)}: give two trainings with "
            "samples of the same steps"
        )
    monitor = Monitor(reference, train=train, extractor=extractor, text=text, alpha=alpha, seed=seed, run=run)
    both = Both(names, monitor)
    for step in steps:
        both.add(step, first[step], second[step])
    if start is not None:
        both.warnings.append(f"step {step_text(start)} of {names[0]} is the reference: nothing is compared there")
    both.warnings += _say_alone(names, first, second)
    for sentence in dict.fromkeys(both.warnings):
        warnings.warn(sentence, stacklevel=2)
    return both.result


class Both:
    """Two trainings so far: their measurements, by what one monitor holds fixed."""

    def __init__(self, names: tuple[str, str], monitor: Monitor) -> None:
        self.names, self.monitor, self.warnings = names, monitor, [*monitor.warnings]
        shares = len(monitor.names) - len(monitor.history.spread)
        self.shared = SharedSteps(monitor.basis, monitor.columns, shares)
        self.steps: list[float] = []
        self.last: tuple[EvaluationPart, EvaluationPart] | None = None

    def add(self, step: float, first: object, second: object) -> None:
        """Measure the samples of both trainings at a step, and compare them; a part without samples is left out."""
        parts = [self.monitor.measure(samples) for samples in (first, second)]
        is_complete, before = all(part.n > 1 for part in parts), self.last
        for number, (name, part) in enumerate(zip(self.names, parts, strict=True)):
            where = f"{name}, step {step_text(step)}"
            notes = [f"{where}: {note}" for note in part.notes]
            for count, what in ((part.known, "also in the reference"), (part.broken, "not finite (NaN or Inf)")):
                if count:
                    be = "is" if count == 1 else "are"
                    total = plural(part.brought, "sample")
                    notes.append(f"{where}: {count:,} of {total} {be} {what}, and {be} left out")
            earlier = np.empty((0, 0)) if before is None else before[number].traces
            reference = self.monitor.seen.reference[: len(part.traces)]
            same = say_same_seeds(step, part.traces, earlier, reference, self.monitor.basis)
            self.warnings += [*notes, *([f"{name}: {same}"] if same else [])]
        if is_complete and self.shared.have_same_seeds(parts[0], parts[1]):
            own, other = self.names
            self.warnings.append(
                f"samples of {own} show those of {other}, as of the same seeds: at these steps repeats are not "
                "compared, and other p-values are too large; draw new seeds for each training"
            )
        if is_complete:
            self.last = self.shared.add(parts[0], parts[1], self.monitor.seed)
            self.steps.append(float(step))
        else:
            self.warnings.append(f"step {step_text(step)} has too few samples, and is left out")

    @property
    def result(self) -> Trainings:
        """The result of all steps so far.

        Raises:
            UsageError: no step was compared.
        """
        if self.last is None:
            raise UsageError(f"no step is left: {join_first(self.warnings, 2)}")
        names, history = self.monitor.names, self._history()
        followed = np.flatnonzero(self.shared.is_followed)
        scores = np.array(self.shared.scores)[:, followed]
        p_values, seen = scan_p_values(scores)
        order = [place for place in np.argsort(-weigh(scores), kind="stable") if p_values[place] <= self.monitor.alpha]
        words = Followings(history, names, self._words(self.last), by_name(self.monitor.columns))
        alarms: list[Alarm] = []
        found: dict[str, TrainingDifference] = {}
        for place in order:
            thing = int(followed[place])
            difference = self._describe(thing, seen[place], float(p_values[place]), words, alarms)
            if names[thing] == COPIED and not difference.first and not difference.second:
                continue
            found[names[thing]] = difference
            alarms.append(_alarm_of(difference))
        things = {names[thing]: float(p) for thing, p in zip(followed.tolist(), p_values, strict=True)}
        return self._write(found, self._findings(found, alarms, words), things)

    def _describe(
        self, thing: int, seen: int, p_value: float, words: Followings, said: Sequence[Alarm]
    ) -> TrainingDifference:
        """Return a difference with its start, its size at the last step and its words."""
        change, (first, second, interval) = self.shared.change_of(thing, seen), self.shared.now(thing)
        name, (own, other), values = self.monitor.names[thing], self.names, (first, second)
        if thing < self.shared.shares and first < second:  # it is said of the training that has it
            own, other, values = other, own, (second, first)
        called, clause = words.words_of_change(name, values[1], values[0], said, other)
        since, earliest, latest = (self.steps[place] for place in (change.start, change.first, change.last))
        who = own if thing < self.shared.shares else f"{own} against {other}"
        text = f"since step {start_text(since, (earliest, latest))}, {who}: {clause}"
        return TrainingDifference(
            name, text, since, (earliest, latest), first, second, interval, p_value, finding=called
        )

    def _history(self) -> Evaluations:
        """The evaluations that causes are found by: the second training stands before all, and the first after."""
        shared = np.array(self.shared.shared).sum(0)[::-1]
        return replace(self.monitor.history, steps=np.array(self.steps), shared=shared)

    def _words(self, last: tuple[EvaluationPart, EvaluationPart]) -> dict[str, str]:
        """Return words for followed things, by name."""
        basis = self.monitor.basis
        words = last[1].shown.words | last[0].shown.words
        return words | dict(zip(basis.names, basis.words, strict=True)) | {COPIED: basis.originals.words}

    def _findings(
        self, found: Mapping[str, TrainingDifference], alarms: Sequence[Alarm], words: Followings
    ) -> tuple[Finding, ...]:
        """Return what differs, each cause once, the largest first."""
        monitor = self.monitor
        scored = [column.name for column in monitor.columns if not column.is_flag]
        overlap = overlap_with(monitor.columns, monitor.basis.overlap)
        chosen = Causes(words.history, monitor.names, overlap, scored).choose(alarms, [], {})[0]
        follows = {alarm.name: (cause.name, alarm.finding) for alarm, cause in chosen if alarm is not cause}
        findings = words.findings(alarms, [], follows, self._ids_of, monitor.basis.kind_ids)
        by_text = {difference.text: difference for difference in found.values()}
        return tuple(
            replace(
                finding, p_value=by_text[finding.text].p_value, e_value=None, interval=by_text[finding.text].interval
            )
            for finding in findings
        )

    def _ids_of(self, name: str, is_more: bool, is_share: bool) -> tuple[str, ...]:
        """Return ids of samples of the last step that show a difference: of the training that has more of a share."""
        if self.last is None:
            return ()
        first, second = (part.shown.ids.get(name, ((), ())) for part in self.last)
        return (first if is_more else second)[1] if is_share else first[int(is_more)]

    def _write(
        self, found: Mapping[str, TrainingDifference], findings: tuple[Finding, ...], p_values: Mapping[str, float]
    ) -> Trainings:
        counts = self.shared.samples
        courses, names = np.array(self.shared.shown), self.monitor.names
        spreads = spreads_of(names, self.monitor.history, self.monitor.columns)
        kept = [name for name in p_values if name not in self.monitor.basis.unions or name in found]
        return Trainings(
            self.names,
            tuple(self.steps),
            (tuple(first for first, _ in counts), tuple(second for _, second in counts)),
            tuple(
                FollowedByBoth(
                    name,
                    _course(courses[:, 0, names.index(name)]),
                    _course(courses[:, 1, names.index(name)]),
                    p_values[name],
                    spreads[name],
                )
                for name in kept
            ),
            tuple(found.values()),
            findings,
            tuple(self.shared.apart),
            self.monitor.alpha,
            warnings=tuple(dict.fromkeys(self.warnings)),
            provenance=Provenance.here("cpu"),
        )


def _course(values: Array) -> tuple[float | None, ...]:
    """Return the course of a thing in a training, None where it has no samples."""
    return tuple(float(value) if np.isfinite(value) else None for value in values)


def _alarm_of(difference: TrainingDifference) -> Alarm:
    """Return a difference as an alarm: the second training is what was before, and the first what is now."""
    return Alarm(
        difference.since_interval[1],
        difference.name,
        difference.text,
        difference.since,
        difference.second,
        difference.first,
        difference.since_interval,
        finding=difference.finding,
    )


def _check_two(trainings: object) -> tuple[str, str]:
    if not isinstance(trainings, Mapping) or len(trainings) != 2:
        what = plural(len(trainings), "training") if isinstance(trainings, Mapping) else type(trainings).__name__
        raise UsageError(f'two trainings are compared, got {what}: give {{"a": …, "b": …}}')
    first, second = map(str, trainings)
    return first, second


def _list_steps(training: Iterable[float]) -> str:
    steps = sorted(training)
    more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
    words = "step" if len(steps) == 1 else "steps"
    return f"the {words} {', '.join(map(step_text, steps[:3]))}{more}" if steps else "no further step"


def _say_alone(names: tuple[str, str], first: Iterable[float], second: Iterable[float]) -> list[str]:
    """Say which steps only one of two trainings has."""
    alone = {names[0]: {*first} - {*second}, names[1]: {*second} - {*first}}
    return [
        f"only {name} has {_list_steps(steps)}: nothing is compared there" for name, steps in alone.items() if steps
    ]
