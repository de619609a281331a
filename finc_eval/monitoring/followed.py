"""The things that a monitor follows, by name, and the sentence of an alarm."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.words import quote
from finc_eval.monitoring.steps import step_text
from finc_eval.naming.traits import TRAITS, Trait

NEW_KINDS, REPEATS = "new kinds", "repeats"
SHARES = (NEW_KINDS, REPEATS)  # shares besides those of kinds
FIT = "fit"  # name of the fit of samples to their prompts
DISTANCE, DIVERSITY = "distance", "diversity"
SCORES = (DISTANCE, DIVERSITY, "diversity within prompts", FIT)  # scores besides looks
MOVED = (DISTANCE, DIVERSITY)  # scores that causes with a name move, as they change the embeddings
LOOKLESS = ("pixels", "shape")  # traits of the size of pictures
MARK = "mark"  # trait of several pictures together
FLAGS = tuple(trait for trait in TRAITS if trait.least is not None)  # looks that a picture has or has not
LOOKS = tuple(trait for trait in TRAITS if trait.least is None and trait.name not in LOOKLESS)
LIKE = "samples like "  # beginning of the words for a kind that has no name
# Scores that are lengths: they change in percent.
RELATIVE = (*(look.name for look in LOOKS if look.is_length), *SCORES)


@dataclass(frozen=True)
class Alarm(Record):
    """A followed thing has changed: over all evaluations, any alarm is false with probability α at most.

    Attributes:
        step: step at which the alarm was raised.
        name: name of the followed thing.
        text: what has changed, since when, and by how much.
        since: latest step for the change to begin that the scores do not reject at 5 %.
        before: share, or mean, before that step, with the reference.
        after: share, or mean, from that step on.
        likely: the most likely step from which it has changed, of a jump at or before `since`; None in files of earlier
            versions.
        evidence: its e-value when it was raised, adjusted for all followed things; None in files of earlier versions,
            and of what needs no evidence.
        finding: name of what it finds, such as "blurrier"; "" in files of earlier versions.
    """

    step: float
    name: str
    text: str
    since: float
    before: float
    after: float
    likely: float | None = None
    evidence: float | None = None
    finding: str = ""


def is_share(name: str) -> bool:
    """Return whether a followed thing is a share of samples, rather than a score."""
    return name not in SCORES and all(look.name != name for look in LOOKS)


def looks_in_order() -> dict[str, Trait]:
    """Return the followed looks of samples by name, in the order in which they name a cause."""
    followed = {trait.name for trait in (*FLAGS, *LOOKS)}
    return {trait.name: trait for trait in TRAITS if trait.name in followed}


def names_nothing(alarm: Alarm) -> bool:
    """Return whether an alarm names no cause: distances, kinds without words, or a look without one for its change."""
    look, is_more = looks_in_order().get(alarm.name), alarm.after > alarm.before
    if look is None:
        is_unnamed = alarm.finding.startswith(LIKE) or (alarm.name == NEW_KINDS and not is_more)
        return is_unnamed or alarm.name in MOVED
    words = (look.low, look.high) if look.least is not None else (look.less, look.more)
    return words[int(is_more)] is None


@dataclass(frozen=True)
class CopiesAtStep(Record):
    """Samples of a step that are also in the reference, and that no evaluation counts.

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


def say(name: str, since: float, before: float, after: float, spread: float, words: str = "") -> str:
    """Return the sentence of an alarm, from the mean before, the mean since then, and the spread of the reference.

    `words` are for a kind, for new kinds, or for the repeats.
    """
    start = f"since step {step_text(since)} "
    if not is_share(name):
        in_spreads = f"{(after - before) / spread:+.1f} σ".replace("-", "−")
        size = _relative(before, after) if name in RELATIVE and before > 0 else in_spreads
        return start + _of_score(name, after > before, size)
    size = f"{_percent(before)} → {_percent(after)} %"
    start_of_share = start + ("more " if after > before else "fewer ")
    flag = next((look for look in FLAGS if look.name == name), None)
    if flag is not None:
        return f"{start_of_share}pictures are {flag.high}: {size}"
    if name == NEW_KINDS:
        like = f", such as {quote(words)}" if words and after > before else ""
        return f"{start_of_share}samples are far from every kind of the reference{like}: {size}"
    if name == REPEATS:
        like = f" ({words})" if words else ""
        return f"{start_of_share}samples repeat another sample of their step{like}: {size}"
    kind = f"of {words}" if words.startswith("samples ") else quote(words)
    return f"{start}the kind {kind} {_of_share(before, after)} ({size})"


GONE, RISEN = 0.1, 2.0  # a kind with .1 of its share before is called gone, with 2 times of it grown


def _of_share(before: float, after: float) -> str:
    if after < GONE * before:
        return "is gone"
    if after < before:
        return "is rarer"
    return "has grown" if after >= RISEN * before else "is more frequent"


def _of_score(name: str, more: bool, size: str) -> str:
    words = words_of(name, more)
    if name in SCORES:
        return f"{words} ({size})"
    verb = "have" if words.startswith("with ") else "are"
    return f"samples {verb} on average {words.removeprefix('with ')} ({name} {size})"


def words_of(name: str, more: bool) -> str:
    """Return what is said of a score that has changed, or the comparative of a look."""
    match name:
        case "distance":
            return f"samples lie {'farther from' if more else 'closer to'} the reference"
        case "diversity":
            return f"samples are {'more' if more else 'less'} diverse"
        case "diversity within prompts":
            return f"samples of a prompt are {'more' if more else 'less'} diverse"
        case "fit":
            return f"samples fit their prompts {'better' if more else 'less'}"
    trait: Trait = next(look for look in LOOKS if look.name == name)
    if more:
        return trait.more or trait.high or f"changed in {name}"
    if trait.less is None and "more " in (trait.more or ""):
        return (trait.more or "").replace("more ", "less ", 1)
    return trait.less or f"less {(trait.high or name).partition(',')[0]}"


def _relative(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.0f} %".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
