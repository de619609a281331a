"""`Limit`: a limit of a policy, what was found, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.record import Record
from finc_eval.core.words import figure, in_percent
from finc_eval.findings.finding import Finding, What
from finc_eval.gates.evidence import Side
from finc_eval.gates.rule import Verb
from finc_eval.naming.evidence import is_unnamed
from finc_eval.naming.repeated import AT_LEAST, COPIES

VERBS: tuple[Verb, ...] = ("regressed", "missing", "undecided", "improved", "held")
"""The verdicts of limits; verdicts that need a person come first."""

FAILED: tuple[Verb, ...] = ("regressed",)
UNJUDGED: tuple[Verb, ...] = ("missing", "undecided")
SETTLED: tuple[Verb, ...] = ("improved", "held")
"""The three groups of limits: what failed, what could not be judged, and what held."""

WORDS = {
    "kinds.lose": "{kind} has lost {value} of its share{since}",
    "kinds.new": "{kind}, which the reference lacks, has grown by {value} of the samples{since}",
    "kinds.moved": "{value} of the samples have moved to other kinds{since}",
    "copying.near": "{value} more of the samples are near to training samples than of fresh samples",
    "copying.exact": "{value} samples are training samples",
    "appearance.part": "{value} more of the samples are {look}",
    "appearance.local": "{value} more of the samples have {part}",
    "appearance.whole": "the release is on average {look}, by {value} of the spread",
    "basics.samples": "the number of samples of the release is {value}",
    "basics.unreadable": "{value} of the samples cannot be read",
    "basics.duplicates": "{value} of samples repeat others",
    "basics.copies": "{value} of the samples are {copies}",
    "basics.membership": "the membership-inference score (KAHM, eq. 69) of training samples is {value} in 1/distance",
    "private.distance": "the release is at an MMD² of {value} from the private records",
    "private.farther": "the release is farther from the private records than the {older}, by an MMD² of {value}",
    "by_id.broken": "{note}",
    "by_id.worse": "{note}",
    "by_id.changed": "{value} of the pairs with the same id have changed",
    "basics.encodings": "{value} properties of the files differ from those of the baseline",
    "most": "{metric} is {value}",
    "least": "{metric} is {value}",
    "worse": "{metric} is {value} worse{than}",
    "difference": "{metric} is worse by {value}{than}",
}
"""Words for what was found, by the rule of a limit, or by what a limit on a metric is on."""

PLAIN: dict[str, tuple[What, str]] = {
    "kinds.moved": ("sets", "moved to other kinds"),
    "copying.near": ("copy", "near to training samples"),
    "copying.exact": ("copy", "training samples"),
    "basics.samples": ("sets", "number of samples"),
    "basics.unreadable": ("sets", "cannot be read"),
    "basics.duplicates": ("repeat", "repeat others"),
    "basics.copies": ("copy", COPIES),
    "basics.encodings": ("sets", "properties of the files"),
    "basics.membership": ("copy", "training samples"),
    "private.distance": ("sets", "from the private records"),
    "private.farther": ("sets", "farther from the private records"),
    "by_id.changed": ("pair", "have changed"),
}
"""Kind and name of the finding that a limit is by itself, by its rule; the words of the limit hold the name."""

UNNAMED_LOOK = "of another look"  # words for a look that no finding names
NO_PART = "no part of pictures was found that hardly any accepted picture has"
"""Sentence of a limit on parts of pictures of a release without any."""

NAMED = ("kinds.lose", "kinds.new")  # rules whose limits are on kinds that have a name
MOVES = "kinds.moved"
PAIR_RULES = ("by_id.broken", "by_id.worse")  # limits on pairs, which say why they are undecided

SHARES = (
    "kinds.",
    "copying.near",
    "appearance.part",
    "appearance.local",
    "basics.unreadable",
    "basics.duplicates",
    "basics.copies",
    "by_id.changed",
)
"""First words of the names of limits on shares."""


@dataclass(frozen=True)
class Limit(Record):
    """A limit of the policy, and what was found.

    Attributes:
        name: name, such as "kinds.lose k203" or "metrics.fd worse".
        verdict: held, or improved if the interval is also all better than no change; or regressed, undecided, missing.
        value: the estimate; None if it is missing.
        interval: bounds of the true value, both at one level. That of a limit that held is its own; others hold for
            all limits of the run together. `Verdict.family` says the levels.
        margin: end of what is allowed.
        harm: whether values above or below the margin are a regression.
        detectable: true value that would have been called a regression with probability 0.8; None if none would.
        needed: number of samples of each generated set that would decide an undecided limit; None if it is decided, or
            more samples alone would not help.
        note: what to know about this limit; where no finding is on it, what its kind or its look is called.
        shares: share of the kind in each set, by label; empty for limits that are not about a kind.
        examples: ids of samples of the kind, by label.
    """

    name: str
    verdict: Verb
    value: float | None
    interval: tuple[float, float] | None
    margin: float
    harm: Side
    detectable: float | None
    needed: int | None
    note: str
    shares: dict[str, float]
    examples: dict[str, tuple[str, ...]]

    @property
    def rule(self) -> str:
        """Rule of the policy that it comes from, such as "kinds.lose"."""
        return self.name.split(" ")[0]

    @property
    def is_share(self) -> bool:
        """True for a share or a part, which is written in percent."""
        return self.name.endswith(" worse") or self.name.startswith(SHARES)

    @property
    def about(self) -> str:
        """Kind of the limit, or what it bounds of a metric; empty for a limit on all samples."""
        return self.name.partition(" ")[2]

    def tell(self, name: str = "") -> str:
        """Return what was found in plain words, without its interval; `name` is that of the finding behind it."""
        rule, _, part = self.rule.partition("@")
        older = "anchor" if rule.endswith("-anchor") else "baseline"
        rule, called = rule.removesuffix("-anchor"), name or self.note * self.is_named
        if rule == "appearance.local" and not self.value:
            return NO_PART
        copies = called if COPIES in called else COPIES
        told = WORDS.get(rule, WORDS.get(self.about, "{name} is {value}")).format(
            name=self.name,
            note=self.note,
            look=called or UNNAMED_LOOK,
            part=(called or UNNAMED_LOOK).removeprefix("with "),
            kind=self._kind(called),
            metric=rule.removeprefix("metrics."),
            copies=copies,
            value="at least " * (copies in AT_LEAST) + self.number(self.value),
            since=f" since the {older}",
            than=f" than that of the {older}",
            older=older,
        )
        return told + (f" in the slice {part}" if part else "")

    def _kind(self, called: str) -> str:
        """Return the kind that it is on by its id, or its value of a column, with the name where that says more."""
        value, last = self.about.partition("=")[2], self.about.rpartition("-")[2]
        is_said = called in ("", value) or is_unnamed(called) or called.split()[-1] == last  # "cat" of seen-cat
        return self.about if is_said else f"{self.about} (“{called}”)"

    def say(self, name: str = "") -> str:
        """Return what was found in plain words, how sure it is, and what is allowed; see `tell`."""
        if self.value is None or (not self.about and self.rule.startswith(("kinds.lose", "kinds.new"))):
            return f"{self.name} could not be judged: {self.note}" if self.verdict in UNJUDGED else self.note
        told = self.tell(name)
        if self.verdict == "undecided" and self.rule.startswith(PAIR_RULES):
            return told
        if told == NO_PART and self.verdict == "held":
            return told
        if self.interval is not None and self.interval[0] < self.interval[1]:
            told += f" (between {self.number(self.interval[0])} and {self.number(self.interval[1])})"
        limit = f"at {'most' if self.harm == 'high' else 'least'} {self.number(self.margin)}"
        if self.verdict == "undecided":
            text = f"{told}: too few samples to decide whether it is {limit}"
            return text + (f"; {self.needed:,} samples of each generated set would decide" if self.needed else "")
        if self.verdict == "held" and self.interval is not None and self.interval[1] > self.margin:  # a search
            return f"{told}; not surely more than the {self.number(self.margin)} that are allowed"
        return f"{told}; {limit} is allowed"

    @property
    def words(self) -> str:
        """The result in plain words: what was found, how sure it is, and what is allowed."""
        return self.say()

    @property
    def sentence(self) -> str:
        """The result in one sentence, with the name of the limit."""
        return f"{self.name} {self.verdict}: {self.words}"

    def finding(self, noun: str = "", prompts: str = "") -> Finding:
        """Return the finding that it is where nothing names its samples; of samples that moved, with most prompts."""
        kind, name = self.plain
        told, name = self.tell(noun), noun or name
        if prompts and self.rule == MOVES:
            kind, name, told = "words", prompts, f"{told}: {prompts} surely changed"
        of_samples = self.rule.startswith(("basics.", "by_id.changed", MOVES)) and self.is_share
        text, share = f"{told} (allowed {self.number(self.margin)})", self.value if of_samples else None
        return Finding(name, kind, False, share, None, None, text=text, interval=self.interval)

    @property
    def size(self) -> float:
        """Share of samples that it is about; 0 for a number over all samples, which names nothing."""
        if self.rule in NAMED and self.shares:
            before = [share for label, share in self.shares.items() if label.startswith("baseline")]
            return abs(self.shares["gen"] - sum(before) / len(before)) if before else self.shares["gen"]
        is_named = self.rule.startswith(("basics", "copying", "appearance"))
        return float(self.value) if is_named and self.is_share and self.value is not None else 0.0

    @property
    def is_named(self) -> bool:
        """True for a limit on a kind or a look, with its name as the note."""
        return self.value is not None and self.rule.startswith(("kinds.lose", "appearance."))

    @property
    def plain(self) -> tuple[What, str]:
        """Kind and name of the finding that the limit is by itself, where nothing else names it."""
        rule = self.rule.partition("@")[0].removesuffix("-anchor")
        if rule.startswith("metrics."):
            return "metric", rule.removeprefix("metrics.")
        if rule.startswith("appearance."):
            return "part" if rule == "appearance.local" else "look", self.note or UNNAMED_LOOK
        return PLAIN.get(rule, ("kind", self.about or self.name))

    def number(self, value: float | None) -> str:
        """Write a value of this limit, with as many digits as tell it apart from what is allowed."""

        def write(number: float, digits: int) -> str:
            return in_percent(number, digits) if self.is_share else figure(number, f".{digits}g")

        if value is None:
            return figure(value)
        least = 3 if self.is_share else 4
        apart = (digits for digits in range(least, 9) if write(value, digits) != write(self.margin, digits))
        return write(value, least if value == self.margin else next(apart, least))
