"""The first name that each of the five verbs gives a cause, read from its headline."""

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
from _causes import CAUSES, CHANGE, SIZE, drawn
from _quick import BOARDS, MAPS, quick

import finc_eval as fe

MOST_ALARMS = 2  # alarms of a monitor for one cause

POLICY = {
    "kinds": {"lose": 0.5, "new": 0.05},
    "appearance": {"part": 0.05, "whole": 0.3},
    "basics": {"duplicates": 0.05, "copies": 0.05},
}
"""Limits on all that a cause may break, far beyond what sets of this size differ by chance."""

SINCE = r"^since step \d+(?: \(\d+ to \d+\))?: "  # beginning of the sentence of an alarm

FRAMES = (
    r"^(?:nearly all|all|some|half|none|an? \w+|three quarters|two thirds|(?:only |at least )?[\d.]+ %)"
    r"(?: of the (?:generated )?set)? (?:is|are) ",
    r"^the (?:generated )?set is (?:on average )?",
    r"^the kind (?:like )?(?=[“‘])",
    r"^(?:lacks|too many|too few|samples are on average|more pictures are|fewer pictures are) ",
    r"^(?:nearly all pairs|[\d.]+ % of the pairs|every .* pair from \d+): ",
    r"^[“‘]?prompt with ",
)
"""Words before a name in a sentence."""

REST = (r" is [\d.]+ %.*$", r" (?:is gone|is rarer|has grown|is more frequent)$", r", [\d,]+ times$", r"[.]$")
"""Words after a name, besides brackets and what follows a colon."""


@dataclass(frozen=True)
class Seen:
    """First key of a verb's headline, its sentence, and the name in the sentence; "" without a name."""

    key: str
    text: str
    name: str
    alarms: int = 0  # alarms of a monitor
    early: tuple[str, ...] = ()  # what those of them are on that are dated before the change


def plain(sentence):
    """Return the name that a sentence says, without shares, ids of kinds and quotation marks."""
    found = re.sub(r" \(.*", "", re.sub(SINCE, "", sentence))
    found = re.sub(r": (?:[\d.]+ → .*|[\d.]+ %)$", "", found)
    found = found[0].lower() + found[1:]
    for frame in FRAMES:
        found = re.sub(frame, "", found)
    for rest in REST:
        found = re.sub(rest, "", found)
    return re.sub(r"\bk\d+\b", "k…", re.sub("[“”‘’]", "", found))


def first_name(findings):
    """Return the name of the first finding; "" without any."""
    return plain(findings[0].name) if findings else ""


def of_comparison(planted):
    result = fe.compare(planted.bad, planted.ref, features=100)
    return Seen(*next(iter(result.says.items())), first_name(result.findings))


def of_same_ids(planted):
    result = fe.compare(planted.paired, planted.before, pairs="id", features=100)
    return Seen(*next(iter(result.says.items())), first_name(result.findings))


def of_gate(planted):
    verdict = fe.gate(planted.bad, planted.good, planted.ref, POLICY)
    return Seen(*next(iter(verdict.headline_parts.items())), first_name(verdict.findings))


def of_board(planted):
    with quick(BOARDS):
        board = fe.leaderboard({"bad": planted.bad, "good": planted.good}, planted.ref)
    row = next(one for one in board.rows if one.name == "bad")
    return Seen(*next(iter(board.headline_parts.items())), first_name(row.findings or ()))


def of_monitor(planted):
    monitor = fe.Monitor(planted.real)
    for step, pictures in enumerate(planted.evaluations):
        monitor.update(step, pictures)
    alarms, says = monitor.alarms, monitor.result.says
    early = tuple(one.name for one in alarms if one.since_interval[1] < CHANGE)
    key = next(iter(says))
    return Seen(key, says[key], first_name(monitor.findings), len(alarms), early)


VERBS = {
    "compare": of_comparison,
    "gate": of_gate,
    "leaderboard": of_board,
    "monitor": of_monitor,
    "same ids": of_same_ids,
}


class Planted:
    """The sets of a cause, of which `bad` and the evaluations from `CHANGE` on have it."""

    def __init__(self, name, seed=0, size=SIZE):
        cause, sets, rng = CAUSES[name], drawn(CAUSES[name], seed, size), np.random.default_rng(seed + 1)
        self.bad = cause.plant(sets.before, sets, rng).as_set()
        # The reference of two runs is the run before: copies are of that.
        self.paired = cause.plant(sets.before, replace(sets, ref=sets.before), rng).as_set()
        self.before, self.good, self.ref = (one.as_set() for one in (sets.before, sets.good, sets.ref))
        self.real = (sets.ref + sets.good).as_set()
        changed = [
            cause.plant(one, sets, rng) if step >= CHANGE else one for step, one in enumerate(sets.evaluations())
        ]
        self.evaluations = [one.as_set() for one in changed]


def see(cause, verbs=tuple(VERBS), seed=0, size=SIZE):
    """Return what verbs say of a cause, by verb."""
    planted = Planted(cause, seed, size)
    with warnings.catch_warnings(), quick(MAPS):
        warnings.simplefilter("ignore")
        return {verb: VERBS[verb](planted) for verb in verbs}
