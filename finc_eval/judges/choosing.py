"""Choice of the columns that are scores of a judge: ids, counters, settings and constants are left out, and named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.words import join_words, plural
from finc_eval.judges.paired import Array, Integers
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.tables import words

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")  # words of a name: "promptIdx" has two

IDS = words("id ids idx uid uuid guid pid md5 hash unnamed seed seeds")
"""Last words of names of whole numbers that only tell samples apart."""

SETTINGS = words(
    "guidance cfg lora sampler scheduler timestamp timestamps time datetime date duration latency runtime elapsed"
    " denoise denoising temperature lr created updated epoch epochs gpu vram memory fps cost usd"
)
"""Words in names of settings, times and costs of a sample."""

COUNTS = words(
    "index no num number row line order count width height size bytes kb mb pixels resolution area steps step"
    " iter iters iteration iterations batch shard fold frames frame length len words tokens chars characters"
    " version year month day hour second seconds sec secs ms w h x y dpi channels worker node device status code"
    " attempt attempts retries skip sample samples trial repeat run"
)
"""Last words of names of whole numbers that count or measure a sample."""

RATED = words(
    "score scores quality consistency fidelity realism smoothness accuracy similarity alignment rating preference"
    " correct correctness plausibility reward coherence naturalness stability"
)
"""Last words of names of judgments, whatever they judge: "duration_consistency" is not a duration."""

TIMES = (1e9, 2e9), (1e12, 2e12)  # seconds and milliseconds since 1970, of the years 2001 to 2033
LEAST_ROWS = 5  # rows from which consecutive numbers are a counter: 1 of 120 orders of 5 rows
MAX_JUDGES = 100  # columns of numbers that are taken as judges unless they are named: a table of features has more

BY_NAME, TIME, COUNTER = "by name", "times", "row numbers"
CONSTANT, EQUAL = "constant", "the same for all models"

Scores = Mapping[str, SampleScores]


def choose_judges(scores: Scores, wanted: Sequence[str]) -> tuple[dict[str, SampleScores], list[str]]:
    """Return scores with the columns that are judgments, and sentences on what was left out.

    Args:
        scores: scores by model, of all columns of numbers.
        wanted: names of the judges, which are taken whatever they look like; empty: see `not_judged`.

    Raises:
        UsageError: a name is not a column.
        DataError: nothing is left, or too many columns are.
    """
    every = dict.fromkeys(judge for table in scores.values() for judge in table.judges)
    if strange := [name for name in wanted if name not in every]:
        raise UsageError(
            f"judges names {strange[0]!r}, which no scores have{did_you_mean(strange[0], [*every])}: the columns of "
            f"numbers are {_listed([*every])}"
        )
    if wanted:
        named = {name: replace(table, known=frozenset(wanted)) for name, table in scores.items()}
        return _without(named, {*every} - {*wanted}), []
    reasons = not_judged(scores)
    kept, notes = _kept_anyway(scores, [*every], reasons)
    gone = {judge: reason for judge, reason in reasons.items() if judge not in kept}
    left = [judge for judge in every if judge not in gone]
    names = join_words([table.name for table in scores.values()])
    if not left and every:
        raise DataError(
            f"no column of {names:.200} is a score: {_because(gone)}; name a column that is one in judges (--judges)"
        )
    if len(left) > MAX_JUDGES:
        raise DataError(
            f"{names:.200} has {plural(len(left), 'column')} of numbers ({_listed(left)}), above the {MAX_JUDGES} that "
            "are taken as judges: name the judges (--judges)"
        )
    if gone:
        notes.append(f"left out of the scores: {_because(gone)}; name a column that is a score in judges (--judges)")
    return _without(scores, {*gone}), [*notes, *(note for table in scores.values() for note in table.notes)]


def _listed(names: Sequence[str]) -> str:
    return join_words([*names[:8], plural(len(names) - 8, "more column")] if len(names) > 9 else list(names)) or "none"


def _because(reasons: Mapping[str, str]) -> str:
    """Return columns with the reasons for which they are left out."""
    groups: dict[str, list[str]] = {}
    for judge, reason in reasons.items():
        groups.setdefault(reason, []).append(judge)
    return ", ".join(f"{_listed(judges)} ({reason})" for reason, judges in groups.items())


def _without(scores: Scores, gone: set[str]) -> dict[str, SampleScores]:
    return {
        name: replace(table, judges={judge: values for judge, values in table.judges.items() if judge not in gone})
        for name, table in scores.items()
    }


def _kept_anyway(scores: Scores, every: Sequence[str], reasons: Mapping[str, str]) -> tuple[set[str], list[str]]:
    """Return columns that stay because no others are left, and sentences on them."""
    for reason, said in (
        (EQUAL, "has the same values for the samples of {}: pass each model's own scores"),
        (CONSTANT, "has one value for all samples of {}, and intervals without width"),
    ):
        found = [judge for judge in every if reasons.get(judge) == reason]
        if found and all(judge in reasons for judge in every):
            who = join_words([name for name, table in scores.items() if {*found} & table.judges.keys()])
            return {*found}, [f"{_listed(found)} {said.format(who)}"]
    return set(), []


def not_judged(scores: Scores) -> dict[str, str]:
    """Return the columns that are not scores of a judge, with the reason; judges that a layout knows are none of them.

    By name: ids, seeds, settings and times; sizes and counts of whole numbers. By values: row numbers, times,
    constants, and columns that are the same for all models, as a property of prompts is.
    """
    pairs = _aligned(scores)
    known = {judge for table in scores.values() for judge in table.known}
    found = {}
    for judge in dict.fromkeys(judge for table in scores.values() for judge in table.judges):
        columns = {name: table.judges[judge] for name, table in scores.items() if judge in table.judges}
        reason = None if judge in known else _reason(judge, columns, pairs)
        if reason is not None:
            found[judge] = reason
    return found


def _reason(judge: str, columns: Mapping[str, Array], pairs: Mapping[str, tuple[Integers, Integers]]) -> str | None:
    """Return why a column is not a judgment; None if it may be.

    `columns` has the values of each model, shape (n,), NaN for an empty cell. `pairs` has the rows of the first model
    and the rows of each other model that are of the same samples, shape (m,) each.
    """
    values = np.concatenate([*columns.values()])
    values = values[np.isfinite(values)]
    named = [word.lower() for word in WORDS.findall(judge)]
    is_whole = bool((values == np.round(values)).all())
    is_answer = bool(np.isin(values, (0.0, 1.0)).all())
    if named and named[-1] not in RATED:
        is_number = is_whole and (named[-1] in IDS or named[0] == "unnamed" or (named[-1] in COUNTS and not is_answer))
        if is_number or not SETTINGS.isdisjoint(named):
            return BY_NAME
    if _are_times(values):
        return TIME
    if is_whole and all(map(_is_counter, columns.values())):
        return COUNTER
    if all(len(column) > 1 and np.nanmin(column) == np.nanmax(column) for column in columns.values()):
        return CONSTANT
    return EQUAL if len(columns) > 1 and _are_equal(columns, pairs) else None


def _is_counter(values: Array) -> bool:
    """Return whether values number the rows: whole numbers that rise from row to row, or are consecutive."""
    if len(values) < LEAST_ROWS or not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    if (steps > 0).all() or (steps == -1).all():
        return True
    return bool((np.diff(np.sort(values)) == 1).all())


def _are_times(values: Array) -> bool:
    return any(bool(((values >= low) & (values <= high)).all()) for low, high in TIMES)


def _aligned(scores: Scores) -> dict[str, tuple[Integers, Integers]]:
    """Return rows of the first model and rows of each other model that are of the same sample, by its name."""
    first, *others = scores.items()
    places: dict[object, int] = {}
    keys = first[1].keys
    for row, key in enumerate(keys):
        places.setdefault(key, row)
    found = {}
    for name, other in others:
        other_keys = other.keys
        rows = [row for row, key in enumerate(other_keys) if key in places]
        if other_keys == keys or not rows:
            n = len(other_keys) if len(other_keys) == len(keys) else 0
            found[name] = np.arange(n), np.arange(n)
        else:
            found[name] = np.array([places[other_keys[row]] for row in rows]), np.array(rows)
    return found


def _are_equal(columns: Mapping[str, Array], pairs: Mapping[str, tuple[Integers, Integers]]) -> bool:
    """Return whether all models have the same values for the same samples."""
    names = [*columns]
    if names[0] in pairs:  # the first model lacks the column
        return False
    for name in names[1:]:
        first_rows, other = pairs[name]
        if len(first_rows) < 2 or not np.array_equal(
            columns[names[0]][first_rows], columns[name][other], equal_nan=True
        ):
            return False
    return True
