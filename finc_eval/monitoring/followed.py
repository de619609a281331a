"""The things that a monitor follows, by name, and the sentence of an alarm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.monitoring.steps import step_text
from finc_eval.naming.traits import TRAITS, Trait

SHARES = ("new kinds", "repeats")  # shares besides those of kinds
FIT = "fit"  # name of the fit of samples to their prompts
SCORES = ("distance", "diversity", "diversity within prompts", FIT)  # scores besides looks
MOVED = ("distance", "diversity")  # scores that causes with a name move, as they change the embeddings
LOOKLESS = ("mark", "pixels", "shape")  # traits of many pictures together, and of their size
FLAGS = tuple(one for one in TRAITS if one.least is not None)  # looks that a picture has or has not
LOOKS = tuple(one for one in TRAITS if one.least is None and one.name not in LOOKLESS)
RELATIVE = (*(one.name for one in LOOKS if one.is_length), *SCORES)  # scores that are lengths: they change in percent


@dataclass(frozen=True)
class Alarm(Record):
    """A followed thing has changed: over all looks, any alarm is false with probability α at most.

    Attributes:
        step: step at which the alarm was raised.
        name: name of the followed thing.
        text: what has changed, since when, and by how much.
        since: latest step for the change to begin that the scores do not reject at 5 %.
        before: share, or mean, before that step, with the reference.
        after: share, or mean, from that step on.
        likely: the most likely step from which it has changed, of a jump at or before `since`; None in files of earlier
            versions.
    """

    step: float
    name: str
    text: str
    since: float
    before: float
    after: float
    likely: float | None = None


def not_told(
    new: Sequence[Alarm], told: Sequence[Alarm], steps: Sequence[float], overlap: Callable[[str, str], bool]
) -> list[Alarm]:
    """Return the new alarms of what has none yet, those that name a cause first.

    Left out is what has an alarm, a kind that overlaps a kind with an alarm, and what a look with an alarm brings.

    Args:
        new: alarms whose evidence suffices, the largest first.
        told: alarms that were raised.
        steps: steps of all looks.
        overlap: whether two things are kinds with samples in common, by their names.
    """
    found: list[Alarm] = []
    for alarm in sorted(new, key=names_nothing):
        if not any(
            one.name == alarm.name or overlap(alarm.name, one.name) or is_brought(alarm, one, steps)
            for one in (*told, *found)
        ):
            found.append(alarm)
    return found


def names_nothing(alarm: Alarm) -> bool:
    """Return whether an alarm names no cause: of distance or diversity, or of a look without a word for its change."""
    look = next((one for one in LOOKS if one.name == alarm.name), None)
    if look is None:
        return alarm.name in MOVED
    return (look.more if alarm.after > alarm.before else look.less) is None


def is_brought(new: Alarm, told: Alarm, steps: Sequence[float]) -> bool:
    """Return whether an alarm follows from a look that has an alarm and changed at the same look, or at the next to it.

    A look brings others (`Trait.brings`), and moves samples to the reference or away from it. A look that comes before
    it in the order of names, with a word for its change, is a cause of its own. So is diversity: a generator that
    collapses changes its looks, too.
    """
    looks = [one.name for one in TRAITS]
    if told.name not in looks or abs(steps.index(new.since) - steps.index(told.since)) > 1:
        return False
    place = looks.index(told.name)
    follows = new.name in TRAITS[place].brings and (names_nothing(new) or looks.index(new.name) > place)
    return follows or new.name == "distance"


@dataclass(frozen=True)
class CopiesAtStep(Record):
    """Samples of a step that are also in the reference, and that no look counts.

    Attributes:
        step: the step.
        count: number of these samples.
        of: number of all samples of the step.
    """

    step: float
    count: int
    of: int

    def __post_init__(self) -> None:
        if not 0 < self.count <= self.of:
            raise DataError(f"it has {self.count:,} copies among {self.of:,} samples")


def say(name: str, since: float, before: float, after: float, spread: float) -> str:
    """Return the sentence of an alarm, from the mean before, the mean since then, and the spread of the reference."""
    start = f"since step {step_text(since)} "
    if name in SCORES or any(one.name == name for one in LOOKS):
        in_spreads = f"{(after - before) / spread:+.1f} σ".replace("-", "−")
        size = _relative(before, after) if name in RELATIVE and before > 0 else in_spreads
        return start + _of_score(name, after > before, size)
    size = f"{_percent(before)} → {_percent(after)} %"
    start_of_share = start + ("more " if after > before else "fewer ")
    if name == "new kinds":
        return f"{start_of_share}samples are far from every kind of the reference: {size}"
    if name == "repeats":
        return f"{start_of_share}samples repeat another sample of their step: {size}"
    flag = next((one for one in FLAGS if one.name == name), None)
    if flag is not None:
        return f"{start_of_share}pictures are {flag.high}: {size}"
    return f"{start}the {name.replace('kind ', 'kind ‘', 1)}’ {_of_share(before, after)} ({size})"


GONE, RISEN = 0.1, 2.0  # a kind with .1 of its share before is called gone, with 2 times of it grown


def _of_share(before: float, after: float) -> str:
    if after < GONE * before:
        return "is gone"
    if after < before:
        return "is rarer"
    return "has grown" if after >= RISEN * before else "is more frequent"


def _of_score(name: str, more: bool, size: str) -> str:
    match name:
        case "distance":
            return f"samples lie {'farther from' if more else 'closer to'} the reference ({size})"
        case "diversity":
            return f"samples are {'more' if more else 'less'} diverse ({size})"
        case "diversity within prompts":
            return f"samples of a prompt are {'more' if more else 'less'} diverse ({size})"
        case "fit":
            return f"samples fit their prompts {'better' if more else 'less'} ({size})"
    return f"samples are on average {words_of(name, more)} ({name} {size})"


COLORFUL = {True: "more vivid and colorful", False: "paler and less colorful"}


def words_of(name: str, more: bool) -> str:
    """Return the comparative of a look."""
    if name == "saturation":
        return COLORFUL[more]
    trait: Trait = next(one for one in LOOKS if one.name == name)
    if more:
        return trait.more or trait.high or f"changed in {name}"
    return trait.less or f"less {trait.high}"


def _relative(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.0f} %".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
