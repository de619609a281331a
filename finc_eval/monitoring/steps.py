"""`order_steps`: steps of checkpoints, read from the numbers in which their names differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from finc_eval.core.errors import UsageError, check_finite, did_you_mean
from finc_eval.core.words import join_words, quote
from finc_eval.monitoring.numbered import ENDS, Field, NumberKind, are_grouped, fields_of, number_in, split_dates

COUNTS = (NumberKind.STEP, NumberKind.EPOCH)
SHOWN = 3  # names that a sentence lists
WAY_OUT = "--step NAME=N"
NO_STEP = "no number that could be its step"


def order_steps(names: Iterable[str], given: Collection[str] = ()) -> dict[float, str]:
    """Return names of checkpoints by their step, in ascending order.

    The step is the number that differs between the names and rises with them. A word before or behind a number tells
    more: "step" goes before "epoch", and numbers of a loss, a seed or a size are never steps. If the last parts of the
    paths do not differ in a number, the folders above them are read.

    Args:
        names: names or paths.
        given: steps that are given by hand, as NAME=N: the name of a file or folder, and its step.

    Raises:
        UsageError: a name has no number, two numbers could be the step, or two names have one step.
    """
    every = [*names]
    by_hand = _read_given(every, given)
    rest = [name for name in dict.fromkeys(every) if name not in by_hand]
    steps = by_hand | _read_steps(rest)
    found: dict[float, str] = {}
    for name in every:
        step = steps[name]
        if step in found:
            raise UsageError(
                f"{found[step]} and {name} are both of step {step_text(step)}: give each step once, or the step of a "
                f"name as {WAY_OUT}"
            )
        found[step] = name
    return dict(sorted(found.items()))


def step_text(step: float) -> str:
    """Write a step with all of its digits: 1500000, and not 1.5e+06."""
    return f"{step:.0f}" if float(step).is_integer() else f"{step:g}"


def check_step(step: float, before: Sequence[float]) -> float:
    """Return a step that comes after all before; raise an error for any other."""
    step = check_finite("step", step)
    if before and step <= before[-1]:
        raise UsageError(
            f"step {step_text(step)} comes after step {step_text(before[-1])}: pass steps in ascending order, or load "
            "the monitor that was saved before it"
        )
    return step


def _parts(name: str) -> list[str]:
    """Return the parts of a path, the last first, without the suffixes of files."""
    parts = [part for part in re.split(r"[/\\]", name) if part not in ("", ".")] or [name]
    return [re.sub(r"(\.[A-Za-z][A-Za-z0-9]*)+$", "", parts[-1]) or parts[-1], *reversed(parts[:-1])]


def _read_given(names: Sequence[str], given: Collection[str]) -> dict[str, float]:
    """Return the steps that are given by hand, by name."""
    found: dict[str, float] = {}
    for argument in given:
        wanted, equals, number = argument.rpartition("=")
        step = number_in(number)
        if not equals or not wanted or step is None:
            raise UsageError(f"--step is NAME=N, got {argument}: write for example --step final=20000")
        fitting = [name for name in dict.fromkeys(names) if _is_called(name, wanted)]
        fitting = [wanted] if wanted in fitting else fitting  # "gen", and not "other/gen" with it
        if len(fitting) != 1:
            known = [_short(name, names) for name in dict.fromkeys(names)]
            what = f"{len(fitting)} names" if fitting else f"no name{did_you_mean(wanted, [*known, *names])}"
            raise UsageError(f"--step {argument} fits {what}: name one of {_list(known)}")
        if found.setdefault(fitting[0], step) != step:
            raise UsageError(
                f"--step gives {fitting[0]} the steps {step_text(found[fitting[0]])} and {step_text(step)}: give one"
            )
    return found


def _is_called(name: str, wanted: str) -> bool:
    """Return whether a word names a path: the whole of it, its end, its last part without suffixes, or a folder."""
    path, end = PurePosixPath(name), PurePosixPath(wanted).parts
    return path.parts[-len(end) :] == end or _parts(name)[0] == wanted or wanted in path.parts


def _read_steps(names: Sequence[str]) -> dict[str, float]:
    """Return the step of each name, which are all different."""
    if not names:
        return {}
    parts = [_parts(name) for name in names]
    problems = []
    for level in range(max(map(len, parts))):
        fields = _fields([own[level] if level < len(own) else "" for own in parts])
        if level and len(names) == 1:  # nothing is compared to the folders: a word must say that a number is a step
            fields = [[field for field in fields[0] if field.kind in COUNTS or field.is_checkpoint]]
        steps, problem = _read_level(names, fields)
        if steps:
            return dict(zip(names, steps, strict=True))
        problems.append(problem)
    raise UsageError(
        next((sentence for sentence in problems if sentence), "") or _say_missing(names, [[] for _ in names])
    )


def _fields(texts: Sequence[str]) -> list[list[Field]]:
    """Return the numbers of all texts; what looks like a date is a date if it is one in all of them."""
    thousands = are_grouped(texts)
    dated = [fields_of(text, dates=True, thousands=thousands) for text in texts]
    if len({sum(field.kind is NumberKind.WEAK for field in own) for own in dated}) == 1 and any(
        map(split_dates, texts)
    ):
        return dated
    return [fields_of(text, dates=False, thousands=thousands) for text in texts]


def _read_level(names: Sequence[str], fields: Sequence[Sequence[Field]]) -> tuple[list[float], str]:
    """Return the step of each name from the numbers in one part of each path, or nothing and why not."""
    labels = [{field.label for field in own} for own in fields]
    some = {end for end in ENDS if len(names) == 1 or not all(end in own for own in labels)}
    usable = [
        [field for field in own if field.kind is not NumberKind.NEVER and field.label not in some] for own in fields
    ]
    if not any(usable):
        return [], _say_missing(names, fields) if any(fields) else ""
    if not all(usable):
        return [], _say_missing(names, fields, [not own for own in usable])
    columns = _common(usable)
    differ = {key: column for key, column in columns.items() if _all_differ(column)}
    if differ:
        return _choose(names, differ)
    alone = [_alone(own, columns) for own in usable]
    if all(alone) and len({(field.kind, field.unit) for field in alone if field is not None}) == 1:
        steps = [field.value for field in alone if field is not None]
        return (steps, "") if len(names) == 1 or len(set(steps)) > 1 else ([], _say_equal(names, steps))
    return [], _say_unclear(names, usable, columns)


Columns = Mapping[tuple[str, str, int], Sequence[Field]]


def _common(fields: Sequence[Sequence[Field]]) -> dict[tuple[str, str, int], list[Field]]:
    """Return the numbers that all names have, by the word that goes with them."""
    rows = []
    for own in fields:
        seen: Counter[tuple[str, str]] = Counter()
        row = {}
        for field in own:
            key = field.label, field.unit
            row[(*key, seen[key])] = field
            seen[key] += 1
        rows.append(row)
    return {key: [row[key] for row in rows] for key in rows[0] if all(key in row for row in rows)}


def _all_differ(column: Sequence[Field]) -> bool:
    return len({field.value for field in column}) == len(column)


def _choose(names: Sequence[str], differ: Columns) -> tuple[list[float], str]:
    """Return the steps from the numbers that differ between all names, or nothing and the sentence why not."""
    for kind in (NumberKind.STEP, NumberKind.EPOCH, NumberKind.PLAIN, NumberKind.WEAK):
        among = {key: column for key, column in differ.items() if column[0].kind is kind}
        if kind is NumberKind.STEP and among:
            among |= {key: column for key, column in differ.items() if _contradicts(column, [*among.values()])}
        if kind is NumberKind.PLAIN and (
            saved := {key: column for key, column in among.items() if column[0].is_checkpoint}
        ):
            among = saved
        columns = {tuple(field.value for field in column): column for column in among.values()}
        if len(columns) > 1 and kind is NumberKind.PLAIN:
            columns = _rising(names, columns) or columns
        if len(columns) == 1:
            return [*next(iter(columns))], ""
        if columns:
            return [], _say_several(names, [*columns.values()])
    return [], ""


def _contradicts(column: Sequence[Field], steps: Sequence[Sequence[Field]]) -> bool:
    """Return whether a number has another order than steps, and may be the step instead.

    Steps begin again in each epoch then, or "steps" are those of a sampler.
    """
    may_be = column[0].kind is NumberKind.EPOCH
    may_be |= column[0].kind is NumberKind.PLAIN and all(step[0].label == "steps" for step in steps)
    return may_be and any(_order(column) != _order(step) for step in steps)


def _order(column: Sequence[Field]) -> list[int]:
    return sorted(range(len(column)), key=lambda place: column[place].value)


Valued = dict[tuple[float, ...], Sequence[Field]]


def _rising(names: Sequence[str], columns: Valued) -> Valued:
    """Return the numbers that rise with the names in the order of a list, unless others rise in the order given."""
    listed = sorted(range(len(names)), key=lambda place: _natural(names[place]))
    in_list, as_given = (
        {values: column for values, column in columns.items() if _rises(values, order)}
        for order in (listed, range(len(names)))
    )
    return in_list if as_given.keys() <= in_list.keys() else {}


def _rises(values: Sequence[float], order: Sequence[int]) -> bool:
    return all(values[place] < values[other] for place, other in pairwise(order))


def _natural(name: str) -> list[tuple[str, int]]:
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]{0,18})", name)]


def _alone(own: Sequence[Field], columns: Columns) -> Field | None:
    """Return the one number of a name that may be its step; numbers that all names share are not, if there are others.

    Of several, a step goes before an epoch.
    """
    shared = [
        field for key, column in columns.items() if len(column) > 1 and not _all_differ(column) for field in column
    ]
    left = [field for field in own if not any(field is other for other in shared)] or [*own]
    for kind in (NumberKind.STEP, NumberKind.EPOCH, NumberKind.PLAIN, NumberKind.WEAK):
        among = [field for field in left if field.kind is kind]
        among = [field for field in among if field.is_checkpoint] or among
        if among:
            return among[0] if len(among) == 1 else None
    return None


def _list(names: Iterable[str]) -> str:
    every = [*dict.fromkeys(names)]
    more = len(every) - SHOWN
    return join_words([*every[:SHOWN], *([f"{more} more"] if more > 0 else [])])


def _say_missing(names: Sequence[str], fields: Sequence[Sequence[Field]], missing: Sequence[bool] | None = None) -> str:
    """Return the sentence on names without a number that could be a step."""
    odd = [place for place in range(len(names)) if missing is None or missing[place]]
    first = names[odd[0]]
    others = f", and neither has {_short(names[odd[1]], names)}" if len(odd) == 2 else ""
    others = f", nor have {len(odd) - 1} others" if len(odd) > 2 else others
    why = next((f" ({field.text} goes with {quote(field.label)})" for field in fields[odd[0]] if field.label), "")
    return f"{_short(first, names)} has {NO_STEP}{why}{others}: pass {_way_out(first, names)}"


def _say_several(names: Sequence[str], columns: Sequence[Sequence[Field]]) -> str:
    """Return the sentence on several numbers that could be the step."""
    shown = [_say_column(column) for column in columns[:SHOWN]]
    return (
        f"the steps of {_list(_short(name, names) for name in names)} could be {join_words(shown, 'or')}: pass each "
        f"step as {WAY_OUT}, such as {_way_out(names[0], names, columns[0][0].value)}"
    )


def _say_column(column: Sequence[Field]) -> str:
    values = ", ".join([field.text for field in column[:SHOWN]] + (["…"] if len(column) > SHOWN else []))
    return f"{values} (after {quote(column[0].label)})" if column[0].label else values


def _say_equal(names: Sequence[str], steps: Sequence[float]) -> str:
    return (
        f"{names[0]} and {names[1]} are both of step {step_text(steps[0])}: give each step once, or the step of a name "
        f"as {WAY_OUT}"
    )


def _say_unclear(names: Sequence[str], fields: Sequence[Sequence[Field]], columns: Columns) -> str:
    """Return the sentence on names of which no number is the step of all."""
    for column in sorted(columns.values(), key=lambda candidate: candidate[0].kind is not NumberKind.STEP):
        place = next(
            (at for at in range(len(column)) if column[at].value in [field.value for field in column[:at]]), None
        )
        if place is not None and column[0].kind in COUNTS:
            first = next(at for at in range(place) if column[at].value == column[place].value)
            return _say_equal([names[first], names[place]], [column[place].value])
    several = max(range(len(names)), key=lambda at: len(fields[at]))
    numbers = [field.text for field in fields[several]]
    return (
        f"the names do not say their steps in one way: {_short(names[several], names)} has {join_words(numbers)}; pass "
        f"each step as {WAY_OUT}, such as {_way_out(names[several], names, fields[several][0].value)}"
    )


def _short(name: str, names: Sequence[str]) -> str:
    """Return the end of a path that no other has: its last part, with the folders above it if needed."""
    parts = PurePosixPath(name).parts
    for length in range(1, len(parts)):
        if sum(PurePosixPath(other).parts[-length:] == parts[-length:] for other in names) == 1:
            return str(PurePosixPath(*parts[-length:]))
    return name


def _way_out(name: str, names: Sequence[str], step: float = 500) -> str:
    return f"--step {_short(name, names)}={step_text(step)}"
