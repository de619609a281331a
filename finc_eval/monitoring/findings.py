"""Alarms and findings of a monitor: what has changed, in the words of all verbs, and copies of the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from finc_eval.core.words import plural
from finc_eval.findings.finding import Finding, What
from finc_eval.findings.local import UNLIKE
from finc_eval.monitoring.columns import FollowedColumn
from finc_eval.monitoring.evaluations import Evaluations
from finc_eval.monitoring.followed import (
    BEFORE,
    COPIED,
    MOVED,
    NEW_KINDS,
    PARTS,
    REPEATS,
    SCORES,
    WITHIN_PROMPTS,
    Alarm,
    CopiesAtStep,
    is_share,
    looks_in_order,
    names_nothing,
    say,
    start_text,
    words_of,
)
from finc_eval.monitoring.shown import BROKEN
from finc_eval.monitoring.steps import step_text
from finc_eval.naming.repeated import COPIES
from finc_eval.numerics.families import closed_e_values

WAIT = 2
"""Evaluations that a look without a word for its change waits for an alarm of its cause. Of 40 courses with one of ten
causes, seven had an alarm of such a look before its cause, and none if it waits for two evaluations."""


Follows = dict[str, tuple[str, str]]
"""Name of the cause of each followed thing that follows from a cause, and what is said of the thing itself."""


def name_of(name: str, is_more: bool, words: str) -> str:
    """Return what all verbs call the change of a followed thing; `words` are for kinds and repeats."""
    flag = looks_in_order().get(name)
    if flag is not None and flag.least is not None:
        return flag.high or name
    if not is_share(name):
        return words_of(name, is_more)
    if name == NEW_KINDS and not is_more:
        return "fewer samples that are far from the reference"
    return words or {NEW_KINDS: "kinds that the reference lacks", PARTS: UNLIKE["more"]}.get(name, name)


def kind_of(name: str) -> What:
    """Return what the finding of a followed thing is of."""
    if name in looks_in_order():
        return "look"
    if name in (*MOVED, WITHIN_PROMPTS):
        return "sets"
    if name in (REPEATS, COPIED):
        return "repeat" if name == REPEATS else "copy"
    if name == PARTS:
        return "part"
    return "metric" if name in (BROKEN, *SCORES) else "kind"


@dataclass(frozen=True, eq=False)
class Followings:
    """Everything that alarms are written from: all evaluations, and the names and words of followed things.

    Attributes:
        history: all evaluations.
        names: names of all followed things.
        words: words for kinds, new kinds and repeats, by name.
        columns: columns of the user, by name.
    """

    history: Evaluations
    names: Sequence[str]
    words: Mapping[str, str]
    columns: Mapping[str, FollowedColumn]

    def reached(self, step: float, said: Sequence[Alarm], alpha: float) -> list[Alarm]:
        """Return an alarm for each thing whose evidence reaches 1/α, the largest evidence first.

        A look without a word for its change, and parts of pictures, wait `WAIT` evaluations for their cause, which may
        have less evidence.

        Args:
            step: step of the last evaluation.
            said: the alarms so far.
            alpha: probability of any false alarm.
        """
        followed = np.flatnonzero(self.history.is_followed)
        evidence = self.history.evidence()[followed]
        adjusted = closed_e_values(evidence)
        waited = closed_e_values(self.history.evidence(max(self.history.count - WAIT, 0))[followed])
        order, looks = np.argsort(-evidence, kind="stable"), looks_in_order()
        found = []
        for place in order[adjusted[order] >= -np.log(alpha)].tolist():
            name, e_value = self.names[int(followed[place])], float(np.exp(adjusted[place]))
            alarm = self.describe(Alarm(step, name, "", step, 0.0, 0.0, (step, step), evidence=e_value), said)
            is_ripe = waited[place] >= -np.log(alpha) or not ((name in looks or name == PARTS) and names_nothing(alarm))
            if is_ripe and (name != COPIED or alarm.after > alarm.before):  # fewer are not a fault
                found.append(alarm)
        return found

    def describe(self, alarm: Alarm, said: Sequence[Alarm]) -> Alarm:
        """Return an alarm with its start, its size now and its words, by all evaluations so far.

        Args:
            alarm: the alarm, of which step, name and evidence are known.
            said: other alarms, whose names it does not have.
        """
        if alarm.name not in self.names:  # samples that are not finite
            return alarm
        thing, steps = self.names.index(alarm.name), self.history.steps
        change = self.history.change_of(thing, int(np.searchsorted(steps, alarm.step)))
        called, clause = self.words_of_change(alarm.name, change.before, change.now, said)
        since, first, last = steps[[change.start, change.first, change.last]].tolist()
        return replace(
            alarm,
            text=f"since step {start_text(since, (first, last))}: {clause}",
            since=since,
            before=change.before,
            after=change.now,
            since_interval=(first, last),
            after_interval=(change.low, change.high),
            finding=called,
        )

    def words_of_change(
        self, name: str, before: float, after: float, said: Sequence[Alarm], other: str = BEFORE
    ) -> tuple[str, str]:
        """Return what a change of a followed thing is called, and its clause.

        Args:
            name: name of the thing.
            before: its share or mean before, or of another training.
            after: its share or mean now.
            said: other alarms, whose names it does not have.
            other: what has the value before.
        """
        words, column, is_more = self.words.get(name, ""), self.columns.get(name), after > before
        called = name_of(name, is_more, words) if column is None else column.called(is_more=is_more)
        if any(alarm.finding == called and alarm.name != name for alarm in said):
            called = name.removeprefix("kind ")  # with its id
        spread = self.history.spread_of(self.names.index(name))
        if column is not None:
            return called, column.say(before, after, spread, other)
        return called, say(name, before, after, spread, words, other)

    def described(self, alarms: Sequence[Alarm]) -> list[Alarm]:
        """Return all alarms by what is known now."""
        found: list[Alarm] = []
        for alarm in alarms:
            found.append(self.describe(alarm, found))
        return found

    def findings(
        self,
        alarms: Sequence[Alarm],
        copies: Sequence[CopiesAtStep],
        follows: Follows,
        ids: Callable[[str, bool, bool], tuple[str, ...]],
        parts: Mapping[str, str],
    ) -> tuple[Finding, ...]:
        """Return what a monitor has found: copies, then each cause once, the largest now first.

        Distances and diversity, which any cause moves, stand last.

        Args:
            alarms: the alarms.
            copies: samples that are also in the reference, by step.
            follows: what follows from the alarms.
            ids: function that returns ids of samples by the name of a thing, and whether there are more of it, and a
                share.
            parts: id of each followed kind, by its name.
        """
        is_said = any(alarm.name == COPIED for alarm in alarms)
        found = [_of_copies(copies, ids("copies", True, True))] if copies and not is_said else []
        causes = [alarm for alarm in alarms if alarm.name not in follows]
        order = sorted(causes, key=lambda alarm: (alarm.name != COPIED, alarm.name in MOVED, -self._size(alarm)))
        for alarm in order:
            column, is_more = self.columns.get(alarm.name), alarm.after > alarm.before
            is_part = self._is_part(alarm)
            found.append(
                Finding(
                    alarm.finding or alarm.name,
                    kind_of(alarm.name) if column is None else "column",
                    not is_part,
                    alarm.after if is_part else None,
                    alarm.before if is_part else None,
                    None,
                    (parts[alarm.name],) if alarm.name in parts else (),
                    text=alarm.text,
                    ids=ids(alarm.name, is_more, is_part),
                    e_value=alarm.evidence,
                    explains=tuple(said for thing, (_, said) in follows.items() if _root(thing, follows) == alarm.name),
                )
            )
        return tuple(found)

    def _is_part(self, alarm: Alarm) -> bool:
        """Return whether an alarm is on a share of samples."""
        column = self.columns.get(alarm.name)
        return is_share(alarm.name) if column is None else column.is_flag

    def _size(self, alarm: Alarm) -> float:
        """Return how large a change is now: the part of all samples by which both laws differ, 0 to 1.

        Of a score, the laws are normal with the spread of the reference: 2·Φ(|Δ|/2σ) − 1.
        """
        apart = abs(alarm.after - alarm.before)
        if self._is_part(alarm) or alarm.name not in self.names:
            return apart
        return float(2 * ndtr(apart / (2 * self.history.spread_of(self.names.index(alarm.name)))) - 1)


def _root(thing: str, follows: Follows) -> str:
    """Return the first cause of a thing: what has followed from a cause may have been one before."""
    for _ in follows:
        if thing not in follows:
            break
        thing = follows[thing][0]
    return thing


def _of_copies(copies: Sequence[CopiesAtStep], ids: tuple[str, ...]) -> Finding:
    most = max(copies, key=lambda counted: counted.count / counted.of)
    share = f"{most.count:,} of {plural(most.of, 'sample')}"
    if len(copies) == 1:
        which = f"{share} of step {step_text(most.step)} {'is' if most.count == 1 else 'are'}"
    else:
        which = f"samples of {len(copies)} steps, such as {share} of step {step_text(most.step)}, are"
    text = f"{which} also in the reference: no alarm judges these {COPIES}"
    return Finding(COPIES, "copy", False, most.count / most.of, 0.0, None, text=text, ids=ids)
