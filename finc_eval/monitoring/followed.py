"""The things that a monitor follows, by name, and the sentence of an alarm."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.words import percent, quote
from finc_eval.findings.local import UNLIKE
from finc_eval.monitoring.steps import step_text
from finc_eval.naming.traits import TRAITS, Trait

NEW_KINDS, COPIED, REPEATS, PARTS = "new kinds", "copies", "repeats", "parts"
SHARES = (NEW_KINDS, COPIED, REPEATS, PARTS)  # shares besides those of kinds
FIT = "fit"  # name of the fit of samples to their prompts
DISTANCE, DIVERSITY, WITHIN_PROMPTS = "distance", "diversity", "diversity within prompts"
SCORES = (DISTANCE, DIVERSITY, WITHIN_PROMPTS, FIT)  # scores besides looks
MOVED = (DISTANCE, DIVERSITY)  # scores that causes with a name move, as they change the embeddings
LOOKLESS = ("pixels", "shape")  # traits of the size of pictures
MARK = "mark"  # trait of several pictures together
FLAGS = tuple(trait for trait in TRAITS if trait.least is not None)  # looks that a picture has or has not
LOOKS = tuple(trait for trait in TRAITS if trait.least is None and trait.name not in LOOKLESS)
LIKE = "samples like "  # beginning of the words for a kind that has no name
BEFORE = "before"  # name of the time before a change, which a clause has beside the value of then
# Scores that are lengths: they change in percent.
RELATIVE = (*(look.name for look in LOOKS if look.is_length), *SCORES)


@dataclass(frozen=True)
class Alarm(Record):
    """A followed thing has changed: over all evaluations, any alarm is false with probability α at most.

    Attributes:
        step: step at which the alarm was raised.
        name: name of the followed thing.
        text: what it is now, since when, and what it was before.
        since: step from which it has changed, estimated from all evaluations.
        before: share, or mean, of the reference and the steps before it may have changed.
        after: share, or mean, at the last evaluation.
        since_interval: first and last step from which it may have changed, at 95 %; None of a result of an earlier
            version.
        after_interval: interval of `after`, at 95 %; None of what needs no evidence.
        evidence: its e-value when it was raised, adjusted for all followed things; None of what needs no evidence.
        finding: name of what it finds, such as "blurrier".
    """

    step: float
    name: str
    text: str
    since: float
    before: float
    after: float
    since_interval: tuple[float, float] | None = None
    after_interval: tuple[float, float] | None = None
    evidence: float | None = None
    finding: str = ""

    @property
    def began(self) -> tuple[float, float]:
        """The interval of its start; of an earlier version's result, the start itself."""
        return self.since_interval or (self.since, self.since)


LABELS = {
    NEW_KINDS: "kinds that the reference lacks",
    COPIED: "exact and near copies",
    REPEATS: "samples that repeat another sample",
    PARTS: f"samples with {UNLIKE['more']}",
    FIT: "fit to the prompts",
    DISTANCE: "distance to the reference",
    "pattern": "periodic pattern",
    "specks": "noise with specks",
    "mosaic": "pixelation",
    "resizing": "resampling",
    "blocks": "JPEG artifacts",
    "edges": "brightness of the edges",
    MARK: "watermark",
    "shades": "posterization",
    "warmth": "warmth of the tint",
    "green": "green tint",
    "top": "brightness of the top",
}
"""Words for followed things whose names are short keys."""


def label_of(name: str) -> str:
    """Return what pages call a followed thing.

    Example:
        >>> label_of("blocks"), label_of("saturation"), label_of("kind tabby cat")
        ('JPEG artifacts', 'saturation', 'tabby cat')
    """
    flag = next((look.high for look in FLAGS if look.name == name), None)
    return LABELS.get(name) or flag or name.removeprefix("kind ")


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
        is_unnamed = alarm.finding.startswith(LIKE) or alarm.name == PARTS or (alarm.name == NEW_KINDS and not is_more)
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


def start_text(since: float, interval: tuple[float, float]) -> str:
    """Write the start of a change with its interval: "5000 (4500 to 5000)"."""
    first, last = map(step_text, interval)
    return step_text(since) + (f" ({first} to {last})" if first != last else "")


def say(name: str, before: float, after: float, spread: float, words: str = "", other: str = BEFORE) -> str:
    """Return what has changed, from the value before, the value now, and the spread of the reference.

    `words` are for a kind, for new kinds, for the copies, or for the repeats. `other` is what has the value before:
    another training, or the time before.
    """
    if not is_share(name):
        in_spreads = f"{(after - before) / spread:+.1f} σ".replace("-", "−")
        size = _relative(before, after) if name in RELATIVE and before > 0 else in_spreads
        return _of_score(name, after > before, size)
    if name == COPIED:
        return say_share(f"are {words}, exactly or nearly", before, after, other)
    what = next((look.high or name for look in FLAGS if look.name == name), "")
    if name == NEW_KINDS:
        what = "far from every kind of the reference"
        if words and after > before:
            what += f": {words}" if words.startswith("samples ") else f", such as {quote(words)}"
    if name == PARTS:
        return say_share(f"have {UNLIKE['more']}", before, after, other)
    if what:
        return say_share(f"are {what}", before, after, other)
    if name == REPEATS:
        what = f"are {words}" if words and after > before else "repeat another sample of their step"
        return say_share(what, before, after, other)
    kind = f"of {words}" if words.startswith("samples ") else quote(words)
    verb = _of_share(before, after) if other == BEFORE else f"is {'more frequent' if after > before else 'rarer'}"
    return f"the kind {kind} {verb}: {_percent(after)} ({other}: {_before(before)})"


def say_share(what: str, before: float, after: float, other: str = BEFORE) -> str:
    """Return the clause of a share: "38 % are one picture (before: none)"."""
    return f"{_percent(after)} {what} ({other}: {_before(before)})"


def _before(share: float) -> str:
    return _percent(share) if share > 0 else "none"


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
    return f"samples {verb} on average {words.removeprefix('with ')} ({label_of(name)} {size})"


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
    """Write a share in percent, one below a tenth with a decimal."""
    return percent(share, int(share < 0.1))
