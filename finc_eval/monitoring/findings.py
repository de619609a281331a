"""Findings of a monitor: what each alarm is on, in the words of all verbs, and copies of the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from finc_eval.core.words import plural
from finc_eval.findings.finding import Finding, What
from finc_eval.monitoring.followed import (
    MOVED,
    NEW_KINDS,
    REPEATS,
    SCORES,
    Alarm,
    CopiesAtStep,
    is_share,
    looks_in_order,
    words_of,
)
from finc_eval.monitoring.shown import BROKEN
from finc_eval.monitoring.steps import step_text

COPIES = "copies of the reference"

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
    return words or {NEW_KINDS: "kinds that the reference lacks"}.get(name, name)


def kind_of(name: str) -> What:
    """Return what the finding of a followed thing is of."""
    if name in looks_in_order():
        return "look"
    if name in (*MOVED, "diversity within prompts"):
        return "sets"
    if name == REPEATS:
        return "repeat"
    return "metric" if name in (BROKEN, *SCORES) else "kind"


def findings_of(
    alarms: Sequence[Alarm],
    copies: Sequence[CopiesAtStep],
    follows: Follows,
    ids: Callable[[str, bool, bool], tuple[str, ...]],
    parts: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Return what a monitor has found: copies, then each cause once, in the order of the alarms.

    Args:
        alarms: the alarms.
        copies: samples that are also in the reference, by step.
        follows: what follows from the alarms.
        ids: function that returns ids of samples by the name of a thing, and whether there are more of it, and a share.
        parts: id of each followed kind, by its name.
    """
    found = [_of_copies(copies, ids("copies", True, True))] if copies else []
    for alarm in alarms:
        if alarm.name in follows:
            continue
        is_more, is_part = alarm.after > alarm.before, is_share(alarm.name)
        found.append(
            Finding(
                alarm.finding or alarm.name,
                kind_of(alarm.name),
                not is_part,
                alarm.after if is_part else None,
                alarm.before if is_part else None,
                None,
                (parts[alarm.name],) if alarm.name in parts else (),
                text=alarm.text,
                ids=ids(alarm.name, is_more, is_part),
                e_value=alarm.evidence,
                explains=tuple(said for cause, said in follows.values() if cause == alarm.name),
            )
        )
    return tuple(found)


def _of_copies(copies: Sequence[CopiesAtStep], ids: tuple[str, ...]) -> Finding:
    most = max(copies, key=lambda one: one.count / one.of)
    share = f"{most.count:,} of {plural(most.of, 'sample')}"
    if len(copies) == 1:
        which = f"{share} of step {step_text(most.step)} {'is' if most.count == 1 else 'are'}"
    else:
        which = f"samples of {len(copies)} steps, such as {share} of step {step_text(most.step)}, are"
    text = f"{which} also in the reference: no alarm judges these {COPIES}"
    return Finding(COPIES, "copy", False, most.count / most.of, None, None, text=text, ids=ids)
