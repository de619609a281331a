"""`Finding`: one thing that is said of a set beside another set, the same in every output of every verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import model_validator

from finc_eval.core.record import Record
from finc_eval.core.words import percent, percent_of, predicate, rounded_down, say_whole, sure_share
from finc_eval.local_evidence.result import UPSIDE_DOWN
from finc_eval.naming.evidence import ADJECTIVE, UNNAMED, WORD
from finc_eval.naming.explained import TAIL
from finc_eval.naming.measured import TraitSpread
from finc_eval.naming.repeated import AT_LEAST

What = Literal[
    "look", "kind", "direction", "repeat", "copy", "part", "words", "pair", "metric", "column", "sets", "drift"
]
"""Kinds of findings; "part" is of pictures, "drift" is of clips over time, "column" is a column of the user, and "sets"
are the sets as a whole."""

OF_ONE_SET: tuple[What, ...] = ("look", "part", "column", "drift")
"""Kinds of findings of the samples of one set, beside which samples of the other set are shown that have none of it."""

OF_TRAITS: tuple[What, ...] = ("look", "column")  # kinds of findings that something measured of each sample names

FROZEN = "frozen"  # name of the drift of clips that stand still
CUT = "cut to black"  # name of clips that stand still because these frames are black
FREEZES = (FROZEN, CUT, f"{FROZEN} or {CUT}")  # all, or a tenth and more of the clips, are cut to black

LACKING = 0.2  # part of its share in the other set up to which a set is said to lack a kind

PARTS = {1: "all", 3 / 4: "three quarters", 2 / 3: "two thirds", 1 / 2: "half", 1 / 3: "a third", 1 / 4: "a quarter",
         1 / 5: "a fifth", 1 / 10: "a tenth"}  # fmt: skip
"""Names of simple parts of a set."""


@dataclass(frozen=True)
class Finding(Record):
    """A difference of a set from another set, such as the reference or the release before.

    Attributes:
        name: what it is, such as "blurrier", "one picture, 40 times" or "jellyfish".
        kind: what it is of; see `What`.
        whole: whether the whole set has moved, rather than a part of it.
        share_gen: share of the set that has it; of a whole set, beyond the middle of both sets, if nearly all are; of
            the sets, the accuracy of a simple classifier, where it is surely above chance; None for what has no shares,
            such as a look that has moved on average.
        share_ref: share of the other set; of the sets, chance; None for what has no shares.
        p_value: its p-value, adjusted for all that was asked of the two sets; None where an e-value or an interval
            decides.
        parts: ids of the kinds that it consists of; empty for looks and repeats.
        text: the whole sentence, with its sizes.
        ids: ids of samples that show it, the clearest first, of the set that has more of it.
        ids_other: ids of samples of the other set beside them, such as typical ones; empty where a verb keeps none.
        interval: interval of the difference of both shares, or of the size of what has no shares; None for looks.
        e_value: its e-value; None where a p-value decides.
        explains: names of other findings, and ids of kinds, that follow from it and are not said beside it.
        is_worse: True for what a verb judges to be worse than is allowed; False also where nothing is judged.
        share_interval: interval of the share of the set that has more of a look; None for shares that are counted, for
            what has no shares, and for findings of earlier versions.
        first_frame: of a drift, the frame from which clips of the set that has more of it do so, counted from 0.
        first_frame_interval: interval of the first frame, of 95 %.
        period: of clips that loop, the number of frames after which a frame comes again.
        course: of a drift, for each twelfth of the compared time: its middle in seconds, and the mean of the set and of
            the other set; of a freeze or loop, the share of clips in which it goes on.
        trait: of a look, what is measured of each sample, such as "sharpness".
        spread: of a look, how that is spread in both sets; None for repeats, and for findings of earlier versions.
    """

    name: str
    kind: What
    whole: bool
    share_gen: float | None
    share_ref: float | None
    p_value: float | None
    parts: tuple[str, ...] = ()
    text: str = ""
    ids: tuple[str, ...] = ()
    ids_other: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None
    e_value: float | None = None
    explains: tuple[str, ...] = ()
    is_worse: bool = False
    share_interval: tuple[float, float] | None = None
    first_frame: int | None = None
    first_frame_interval: tuple[int, int] | None = None
    period: int | None = None
    course: tuple[tuple[float, float, float], ...] = ()
    trait: str = ""
    spread: TraitSpread | None = field(default=None, hash=False)  # findings are keys, and it has a dict

    @property
    def size(self) -> float:
        """Difference of both shares as they are said, which orders findings; 1 for looks of all, or of nearly all."""
        if self.share_gen is None or self.share_ref is None or (self.whole and self.kind in OF_TRAITS):
            return 1.0
        more, less = sorted([self.share_gen, self.share_ref], reverse=True)
        return 1.0 if self.is_of_all else max(sure_share(more, self.share_interval) - less, 0.0)

    @property
    def is_of_all(self) -> bool:
        """True for a look of the whole set, or that nearly all of it has come to have."""
        if self.kind not in OF_TRAITS:
            return False
        return self.whole or (self.shares is not None and self.shares[0] - self.shares[1] >= 1 - 2 * TAIL)

    @property
    def is_more(self) -> bool:
        """True if the set has more of it than the other set, or has moved as a whole."""
        return self.share_gen is None or self.share_ref is None or self.share_gen >= self.share_ref

    @property
    def shares(self) -> tuple[float, float] | None:
        """Shares of the set and of the other set, of what a part of a set has; else None."""
        if self.share_gen is None or self.share_ref is None or self.whole:
            return None
        return self.share_gen, self.share_ref

    def sets_with_it(self, sets: Sequence[str]) -> tuple[str, ...]:
        """Return those of some sets whose kept samples have it; the first is the set, the second the other set."""
        if self.kind not in OF_ONE_SET:
            return tuple(sets)
        return tuple(sets[:1] if self.is_more else sets[1:2])

    @property
    def is_lost(self) -> bool:
        """True if the set has so little of it that it is said to lack it."""
        return self.shares is not None and not self.is_more and self.shares[0] <= LACKING * self.shares[1]

    @model_validator(mode="before")
    @classmethod
    def _read_earlier(cls, data: Any) -> Any:
        """Read a finding that a board of an earlier version kept."""
        if not (isinstance(data, Mapping) and "what" in data):
            return data
        names = {"what": "kind", "share": "share_gen", "before": "share_ref"}
        return {names.get(key, key): value for key, value in data.items()}

    def told(self, other: str) -> str:
        """Return the text, if it says the name or is of prompts; else the words with both shares."""
        name = self.name.removeprefix("with ")  # a set "has JPEG artifacts"
        is_said = {*WORD.findall(name)} - {*ADJECTIVE.split()} <= {*WORD.findall(self.text)}
        return self.text if self.text and (is_said or self.kind == "words") else self.say(other)

    @property
    def sentence(self) -> str:
        """The text, or what stands for it, as a sentence."""
        said = self.told("reference")
        if said.endswith("."):
            return said
        return f"{said}." if said.startswith(self.name) else f"{said[:1].upper()}{said[1:]}."

    @property
    def words(self) -> str:
        """The difference in a few words without numbers."""
        if self.kind in OF_TRAITS:
            return self._say_look()
        if self.kind == "drift":
            return f"{self._say_look()}{self.since}"
        if self.kind == "repeat":
            return self.name if self.is_more else f"fewer repeats: {self.name}"
        if self.kind == "part":
            return f"{'pictures' if self.is_more else 'fewer pictures'} {with_part(self.name)}"
        if self.kind != "kind":
            return self.name
        is_bare = self.name.startswith((UNNAMED, "prompt with"))
        noun = f"samples of the {self.name}" if is_bare else self.name
        return f"{'too many' if self.is_more else 'lacks' if self.is_lost else 'too few'} {noun}"

    @property
    def in_tables(self) -> str:
        """The words; the name alone where the words say it in another way; of a drift, with its first frame."""
        return self.words if self.kind == "drift" or self.name in self.words else self.name

    @property
    def since(self) -> str:
        """Words for the first frame of a drift, and the period of a loop: " every 16 frames from frame 16 on".

        Of a freeze that half of its clips have left by the end, " for a while from frame 0 on".
        """
        if self.first_frame is None or self.first_frame_interval is None:
            return ""
        low, high = self.first_frame_interval
        ends = f" ({low} to {high})" if low < high else ""
        period = "" if self.period is None else f" every {self.period} frames"
        own = [row[1 if self.is_more else 2] for row in self.course]
        is_over = self.name in FREEZES and bool(own) and own[-1] < max(own) / 2
        return f"{period}{' for a while' if is_over else ''} from frame {self.first_frame}{ends} on"

    def _say_look(self) -> str:
        """Say a look of the part of the set that has it, or of the whole set."""
        if self.shares is None:
            return say_whole(self.name, self.share_interval, "the set")
        own, _ = self.shares
        if self.is_more:
            return f"{part_in_words(own, self.say_shares()[0])} {predicate(self.name)}"
        part = f"only {self.say_shares()[0]}" if own else "none"
        return f"{part} {predicate(self.name)}"

    def say_shares(self, decimals: int | None = None) -> tuple[str, str]:
        """Return the shares of the set and of the other set in words, as far as the interval allows.

        Args:
            decimals: decimals of percentages; default: one where a share is small or both would read alike.

        Raises:
            ValueError: it has no shares of a part; see `shares`.
        """
        if self.shares is None:
            raise ValueError(f"{self.name} has no shares of a part: ask for `shares` first")
        digits = _decimals(*self.shares) if decimals is None else decimals
        intervals = (self.share_interval, None) if self.is_more else (None, self.share_interval)
        own, other = map(percent_of, self.shares, intervals, (digits, digits), self.shares[::-1])
        least = [f"at least {rounded_down(share, digits)}" for share in self.shares]
        if self.kind == "part":
            return (least[0], other) if self.is_more else (own, least[1])
        return (least[0] if self.kind == "copy" and self.name in AT_LEAST else own), other

    @property
    def share_cells(self) -> tuple[str, str]:
        """Both shares in percent for the cells of a table, without the sign: "≥ 12.6", "1.0"; "–" without shares."""
        if self.shares is None:
            return "–", "–"
        own, other = (said.replace("at least", "≥").removesuffix(" %") for said in self.say_shares(1))
        if self.kind == "part":  # a lower bound of the set that has more; nothing is known of the other
            return (own, "–") if self.is_more else ("–", other)
        return own, other

    def say(self, other: str, allowed: str = "") -> str:
        """Say it with both shares: "a quarter is blurred (25 %, reference 1.0 %)"; `allowed` follows them."""
        inside = "; ".join(part for part in (self._numbers(other), allowed) if part)
        return f"{self.words} ({inside})" if inside else self.words

    def _numbers(self, other: str) -> str:
        """Return both shares, without a share that the words say; of the sets, how well they can be told apart."""
        if self.kind == "sets" and self.share_gen is not None and self.p_value is not None:
            held_out = f"a classifier assigns {percent(self.share_gen)} of held-out samples to their set"
            return "; ".join([f"p = {self.p_value:.2g}", *[held_out] * (self.size > 0)])
        if self.shares is None:
            return ""
        own, before = self.say_shares()
        if self.kind == "part":
            return own if self.is_more else f"{other} {before}"
        is_said = self.words.startswith((own, f"only {own}", "none is", "none has"))
        return f"{other} {before}" if is_said else f"{own}, {other} {before}"

    def change(self) -> str:
        """Say it as a change of the other set: "lost: jellyfish 4.4 → 0.2 %"."""
        if self.shares is None or self.kind == "sets":
            return self.words
        own, before = self.say_shares()
        if self.kind == "part":
            return f"{'more' if self.is_more else 'less'}: {self.name}, {own if self.is_more else before}"
        verb = "more" if self.is_more else "lost" if self.is_lost else "less"
        return f"{verb}: {self.name} {before.removesuffix(' %') if own.endswith('%') else before} → {own}"


def with_part(name: str) -> str:
    """Return what pictures of a part are, by its name: "with two halves that mirror each other", "upside down"."""
    return name if name == UPSIDE_DOWN else f"with {name}"


def have_part(name: str) -> str:
    """Return what is said of pictures of a part: "have two halves that mirror each other", "are upside down"."""
    return f"are {name}" if name == UPSIDE_DOWN else f"have {name}"


def two_shares(own: float, other: float) -> tuple[str, str]:
    """Write both shares, with a decimal where one of them is small or they would read alike."""
    decimals = _decimals(own, other)
    return percent(own, decimals), percent(other, decimals)


def _decimals(own: float, other: float) -> int:
    return int(min(own, other) < 0.1 or percent(own) == percent(other))


def part_in_words(share: float, said: str) -> str:
    """Return the name of a simple part of a set that a share is near to, or what is `said` of it."""
    if not said[0].isdigit():
        return said
    part, name = min(PARTS.items(), key=lambda named: abs(share / named[0] - 1))
    # 0.1: relative error up to which a share is called by the name of a simple part; "all" is not a round number.
    is_near = share == 1 if part == 1 else abs(share / part - 1) <= 0.1
    return name if is_near else said
