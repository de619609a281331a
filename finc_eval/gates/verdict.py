"""`Verdict`: whether a release passes, limit by limit; and its outputs for pipelines, JUnit and GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from pydantic import computed_field, model_validator

from finc_eval.core.record import NOT_IN_JSON, Digest, Record, check_names
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import figure, in_percent, join_words, plural
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gates.evidence import Distance, Side
from finc_eval.gates.policy import Policy
from finc_eval.gates.rule import Overall, Verb
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.placed import ReleaseMap
from finc_eval.same_ids.result import ById

EXIT_CODES: dict[Overall, int] = {"pass": 0, "regression": 1, "undecided": 2, "error": 3}  # exit code of each verdict
FIRST = "first baseline: nothing was compared with a release before"  # words of every output on a first baseline

CALLED: dict[Overall, str] = {"pass": "PASS", "regression": "FAIL", "undecided": "UNDECIDED", "error": "ERROR"}
"""Words that a headline begins with."""

TOLD = 3  # causes that a headline tells

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
    "appearance.part": "{value} more of the samples are {note}",
    "appearance.whole": "the release is on average {note}, by {value} of the spread",
    "basics.samples": "the release has {value} samples",
    "basics.unreadable": "{value} of the samples cannot be read",
    "basics.duplicates": "{value} of samples repeat others",
    "basics.copies": "{value} of samples copy reference samples",
    "by_id.broken": "{note}",
    "by_id.worse": "{note}",
    "by_id.changed": "{value} of the pairs with the same id have changed",
    "basics.encodings": "{value} properties of the files differ from those of the baseline",
    "most": "{metric} is {value}",
    "least": "{metric} is {value}",
    "worse": "{metric} is {value} worse{than}",
    "difference": "{metric} is worse by {value}{than}",
}
"""Words for a finding, by its rule, or by what a limit on a metric is on."""


PAIR_RULES = ("by_id.broken", "by_id.worse")  # limits on pairs, which say why they are undecided

SHARES = (
    "kinds.",
    "copying.near",
    "appearance.part",
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
        note: what to know about this limit.
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

    @property
    def told(self) -> str:
        """The finding in plain words, without its interval."""
        rule, _, part = self.rule.partition("@")
        older = "anchor" if rule.endswith("-anchor") else "baseline"
        rule = rule.removesuffix("-anchor")
        told = WORDS.get(rule, WORDS.get(self.about, "{name} is {value}")).format(
            name=self.name,
            note=self.note,
            kind=f"{self.about} (“{self.note}”)" if self.note and rule == "kinds.lose" else self.about,
            metric=rule.removeprefix("metrics."),
            value=self.number(self.value),
            since=f" since the {older}",
            than=f" than that of the {older}",
        )
        told += f" in the slice {part}" if part else ""
        return told

    @property
    def words(self) -> str:
        """The finding in plain words: what was found, how sure it is, and what is allowed."""
        if self.value is None or (not self.about and self.rule.startswith(("kinds.lose", "kinds.new"))):
            return f"{self.name} could not be judged: {self.note}" if self.verdict in UNJUDGED else self.note
        told = self.told
        if self.verdict == "undecided" and self.rule.startswith(PAIR_RULES):
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
    def sentence(self) -> str:
        """The finding in one sentence, with the name of the limit."""
        return f"{self.name} {self.verdict}: {self.words}"

    def number(self, value: float | None) -> str:
        """Write a value of this limit."""
        if self.is_share and value is not None:
            return in_percent(value)
        return figure(value)


@dataclass(frozen=True)
class Cause(Record):
    """Something that is wrong with a release.

    Attributes:
        words: it in a few words, with shares: "a quarter is blurred (25 %, before 1.0 %; 24 % more, allowed 2 %)".
        change: the same as a change since the baseline, such as "lost: jellyfish 4.4 → 0.2 %".
        share: share of the release; None for what is not a share.
        before: share of the baseline.
        allowed: end of what is allowed for `share`; None without a limit on it.
        limit: name of the limit that it broke, or that could not be decided; None if no limit is on it.
        examples: ids of samples of the release and of the baseline that show it, by label.
    """

    words: str
    change: str
    share: float | None
    before: float | None
    allowed: float | None
    limit: str | None
    examples: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Verdict(Document):
    """The verdict on a release: may it replace the release before it?

    Attributes:
        overall: pass, regression, undecided or error.
        limits: the limits, in the order of the policy.
        family: which error the run keeps, over which limits, and the level of either end of their intervals.
        noise: which noise the intervals cover.
        first: whether this is the first baseline, which nothing was compared with.
        distances: how far the release is from the baseline, and from the anchor; empty without limits on kinds.
        scores: scores of the sets that the policy limits, by label and name.
        baseline: checksum of the baseline's bundle; None for sets that are not from a history.
        policy: the policy.
        sets: descriptions of the sets, by label.
        signature: everything that changes the numbers.
        warnings: what to know before trusting the numbers.
        causes: what is wrong with the release, each cause once and the largest first, and then what differs from the
            baseline without a limit on it.
        tree: kinds of the reference that limits on lost kinds are on; None without such limits.
        map: where the release and its baseline lie on the map of the reference; None without limits on lost kinds.
        by_id: what changed, broke and is worse, pair by pair; None without limits on pairs.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()  # gen has no zeros
        >>> verdict = fe.gate(gen[:250], gen[250:], ref, {"kinds": {"lose": 0.9, "min_share": 0.4}})
        >>> verdict.overall, verdict.limits[0].verdict
        ('pass', 'held')
        >>> fe.gate(1 - gen, ref[:250], ref[250:], {"kinds": {"lose": 0.5}}).overall
        'regression'
    """

    type_name: ClassVar[str] = "verdict"
    page: ClassVar[str] = "finc_eval.gates.page"

    overall: Overall
    limits: tuple[Limit, ...]
    family: str
    noise: str
    first: bool
    distances: tuple[Distance, ...]
    scores: dict[str, dict[str, float]]
    baseline: Digest | None
    policy: Policy
    sets: dict[str, SetInfo]
    signature: SignatureText
    warnings: tuple[str, ...]
    causes: tuple[Cause, ...] = field(default=(), kw_only=True)
    tree: Annotated[KindTree | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)
    map: ReleaseMap | None = field(default=None, kw_only=True, repr=False)
    by_id: ById | None = field(default=None, kw_only=True)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for limit in self.limits:
            check_names("set", limit.shares, self.sets)
            check_names("set", limit.examples, limit.shares)
        for cause in self.causes:
            check_names("set", cause.examples, self.sets)
        return self

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        return EXIT_CODES[self.overall]

    def of(self, verdict: Verb) -> tuple[Limit, ...]:
        """Return the limits with this verdict."""
        return tuple(limit for limit in self.limits if limit.verdict == verdict)

    @property
    def by_urgency(self) -> tuple[Limit, ...]:
        """The limits; limits that need a person come first."""
        return tuple(limit for verb in VERBS for limit in self.of(verb))

    @property
    def settled(self) -> tuple[Limit, ...]:
        """The limits that held or improved."""
        return tuple(limit for limit in self.limits if limit.verdict in SETTLED)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def headline(self) -> str:
        """The verdict in one line: what is wrong, by name and once, the worst first; see `CALLED`."""
        return f"{CALLED[self.overall]}: {'; '.join(self.headline_parts.values())}."

    @property
    def headline_parts(self) -> dict[str, str]:
        """Parts of the headline, by key.

        "failed 1", "failed 2" … are what broke limits, "more" counts others; "likely 1" … are what is most likely wrong
        though no broken limit says it; "held", "missing", "pairs", "nothing" and "needed" say how the run stands.
        """
        names = [one.name for one in self.of("regressed")]
        broken = [one for one in self.causes if one.limit in names]
        likely = [one for one in self.causes if one.limit not in names][:TOLD]
        parts: dict[str, str] = {}
        if self.overall == "regression":
            named = [one for one in broken if one.share is not None] or broken
            parts = {f"failed {number}": one.words for number, one in enumerate(named[:TOLD], 1)}
            if more := len(broken) - len(named[:TOLD]):
                parts["more"] = plural(more, "more limit") + " failed"
            likely = [] if named and named[0].share is not None else likely
        elif self.overall == "pass":
            count = len(self.limits)
            parts["held"] = "the limit held" if count == 1 else f"all {count} limits held" if count else "no limits"
        elif self.of("missing"):
            parts["missing"] = self.of("missing")[0].words
        parts |= {f"likely {number}": self._likely(one) for number, one in enumerate(likely, 1)}
        return parts | (self._deciding(bool(likely)) if self.overall == "undecided" else {})

    def _likely(self, cause: Cause) -> str:
        """Return what a headline says of a cause that no broken limit names."""
        limited = ", not limited" if cause.limit is None else ""
        verb, _, rest = cause.change.partition(": ")
        if self.overall == "pass":
            return f"differs{limited}: {cause.change}"
        return f"most likely {verb}{limited}: {rest}" if rest else f"most likely{limited}: {verb}"

    def _deciding(self, is_likely: bool) -> dict[str, str]:
        """Return that nothing was seen to be wrong, and what would decide, by key."""
        waiting = self.of("undecided")
        parts = {}
        if self.by_id is not None and self.by_id.doubt:  # more samples would decide nothing of that
            parts["pairs"] = self.by_id.doubt
            waiting = tuple(one for one in waiting if not one.rule.startswith(PAIR_RULES))
            if not waiting:
                return parts
        if not is_likely:
            parts["nothing"] = "nothing was seen to be wrong"
        rules = join_words([*dict.fromkeys(one.rule for one in waiting)][:TOLD])
        needed = [one.needed for one in waiting]
        enough = None not in needed and f"{max(one or 0 for one in needed):,} samples of each generated set"
        would = f"{enough} would decide" if enough else "too few samples to decide"
        return parts | {"needed": f"{would} {rules}"}

    @property
    def held(self) -> str:
        """The limits that held in one line, with what they could have seen; "" if none did."""
        found: dict[str, list[Limit]] = {}
        for limit in self.settled:
            found.setdefault(limit.rule, []).append(limit)
        named = []
        for rule, every in found.items():
            seen = [one.detectable for one in every if one.detectable is not None]
            worst = every[0].number(max(seen, key=abs)) if seen else ""
            count = f"{len(every)} × {rule}" if len(every) > 1 else rule
            named.append(f"{count}, seen from {worst}" if seen else count)
        improved = len(self.of("improved"))
        more = f", {improved} of them improved" if improved else ""
        return f"Held: {plural(len(self.settled), 'limit')}{more} ({'; '.join(named)})." if found else ""

    @property
    def summary(self) -> str:
        """The verdict in a few plain sentences, the headline first."""
        return " ".join(self.says.values())

    def _frame_rows(self) -> tuple[Limit, ...]:
        return self.limits

    def _lines(self) -> Iterator[str]:
        return (limit.sentence for limit in self.by_urgency)

    def _summary(self) -> str:
        counts = ((len(self.of(verdict)), verdict) for verdict in VERBS)
        return (
            f"{self.overall}; limits: {', '.join(f'{count} {verdict}' for count, verdict in counts if count) or 'none'}"
        )
