"""`Verdict`: whether a release passes, limit by limit; and its outputs for pipelines, JUnit and GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import computed_field, model_validator

from finc_eval.core.record import NOT_IN_JSON, Digest, Record, check_names
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.findings.facts import short
from finc_eval.findings.finding import OF_TRAITS, Finding
from finc_eval.findings.local import PartOfSet
from finc_eval.findings.visible import Visible
from finc_eval.gates.evidence import Distance
from finc_eval.gates.limit import PAIR_RULES, SETTLED, VERBS, Limit
from finc_eval.gates.policy import Policy
from finc_eval.gates.rule import Overall, Verb
from finc_eval.naming.evidence import ADJECTIVE, WORD, is_unnamed
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.placed import ReleaseMap
from finc_eval.same_ids.result import ById

EXIT_CODES: dict[Overall, int] = {"pass": 0, "regression": 1, "undecided": 2, "error": 3}  # exit code of each verdict
FIRST = "first baseline: nothing was compared with a release before"  # words of every output on a first baseline

CALLED: dict[Overall, str] = {"pass": "PASS", "regression": "FAIL", "undecided": "UNDECIDED", "error": "ERROR"}
"""Words that a headline begins with."""

TOLD = 3  # findings that a headline tells in full

CLEAR = level_of_each(ALPHA, 2)
"""Largest p-value of what is said beside PASS: kinds take a half of the level, and looks and the whole sets the rest.

Measured on releases without a change: 3 of 240 of pictures of stripes are said to differ, none of 200 of arrays, and 6
of 80 of photographs (at 0.05 for kinds 3, 2 and 6).
"""


@dataclass(frozen=True)
class ReleaseFinding(Finding):
    """A difference of a release from its baseline, and how it stands to the policy.

    Attributes:
        limits: names of the limits that it broke, or else of the limit on it that held or could not be decided; empty
            without a limit. The first limit measures it: an interval is in the unit of that limit.
        allowed: end of what is allowed for its share; None without a limit on it.
        examples: ids of samples of the release and of the baseline that show it, by label.
    """

    limits: tuple[str, ...] = ()
    allowed: float | None = None
    examples: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, finding: Finding, **more: Any) -> ReleaseFinding:
        """Return a finding with what is known of it in a gate; see the attributes. Its text says its name."""
        found = cls(**vars(finding) | more)
        is_said = {*WORD.findall(found.name)} - {*ADJECTIVE.split()} <= {*WORD.findall(found.text)}
        return found if found.text and is_said else replace(found, text=found.say("before"))

    @property
    def limit(self) -> str | None:
        """The first of its limits; None if no limit is on it."""
        return next(iter(self.limits), None)


@dataclass(frozen=True)
class Cause(Record):
    """A finding by the names that `Verdict.causes` gives it.

    Attributes:
        words: the sentence, with shares: "a quarter is blurred (25 %, before 1.0 %; 24 % more, allowed 2 %)".
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
    examples: dict[str, tuple[str, ...]]


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
        findings: what is wrong with the release, each cause once and the largest first, and then what differs from the
            baseline and breaks no limit. All outputs name what they say by this list.
        tree: kinds of the reference that limits on lost kinds are on; None without such limits.
        map: where the release and its baseline lie on the map of the reference; None without limits on lost kinds.
        by_id: what changed, broke and is worse, pair by pair; None without limits on pairs.
        visible: which shares of faults would have been found, compared with the baseline; None where something was.
        parts: parts of pictures in which it differs from the baseline, significant at .05, the surest first.

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
    findings: tuple[ReleaseFinding, ...] = field(default=(), kw_only=True)
    tree: Annotated[KindTree | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)
    map: ReleaseMap | None = field(default=None, kw_only=True, repr=False)
    by_id: ById | None = field(default=None, kw_only=True)
    visible: Visible | None = field(default=None, kw_only=True)
    parts: tuple[PartOfSet, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        self._store(findings=tuple(map(ReleaseFinding.of, self.findings)))
        named = [limit.name for limit in self.limits if limit.is_named and self.name_of(limit)]  # once, by the finding
        self._store(limits=tuple(replace(limit, note="") if limit.name in named else limit for limit in self.limits))

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for limit in self.limits:
            check_names("set", limit.shares, self.sets)
            check_names("set", limit.examples, limit.shares)
        for finding in self.findings:
            check_names("set", finding.examples, self.sets)
        return self

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The findings by other names."""
        return tuple(
            Cause(
                finding.text,
                finding.change(),
                finding.share_gen,
                finding.share_ref,
                finding.allowed,
                finding.limit,
                finding.examples,
            )
            for finding in self.findings
        )

    def name_of(self, limit: Limit) -> str:
        """Return the name of the finding that a limit failed for, or was not decided for; "" if there is none."""
        found = (
            finding.name for finding in self.findings if limit.name in finding.limits and limit.verdict not in SETTLED
        )
        return next(found, "")

    def sentence_on(self, limit: Limit) -> str:
        """Return what was found in one sentence, with the names of the limit and of the finding behind it."""
        return f"{limit.name} {limit.verdict}: {limit.say(self.name_of(limit))}"

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

        "failed 1", "failed 2" … are all that broke limits, and "more" counts limits that broke for no finding; "likely
        1" … are what is most likely wrong though no broken limit says it; "held", "missing", "pairs", "nothing" and
        "needed" say how the run stands.
        """
        names = [limit.name for limit in self.of("regressed")]
        broken = [finding for finding in self.findings if finding.limit in names]
        likely = [finding for finding in self.findings if finding.limit not in names]
        parts: dict[str, str] = {}
        if self.overall == "regression":
            named = [finding for finding in broken if finding.share_gen is not None or finding.kind in OF_TRAITS]
            parts = self._failed(sorted(broken, key=lambda finding: finding not in named))
            likely = [] if named else likely
        elif self.overall == "pass":
            likely = [finding for finding in likely if finding.p_value is None or finding.p_value <= CLEAR]
            count = len(self.limits)
            parts["held"] = "the limit held" if count == 1 else f"all {count} limits held" if count else "no limits"
        elif self.of("missing"):
            parts["missing"] = self.of("missing")[0].words
        parts |= {f"likely {number}": self._likely(finding) for number, finding in enumerate(likely[:TOLD], 1)}
        return parts | (self._deciding(bool(likely)) if self.overall == "undecided" else {})

    def _failed(self, broken: Sequence[ReleaseFinding]) -> dict[str, str]:
        """Return what broke limits, by key: the first in full, and others by name.

        Kinds without a name are counted, and so are limits that no finding is on.
        """
        named = [finding for finding in broken[TOLD:] if not is_unnamed(finding.name)]
        known = {name for finding in broken for name in finding.limits}
        others = [limit for limit in self.of("regressed") if limit.name not in known]
        alone = others[: max(TOLD - len(broken), 0)]
        texts = [*(finding.text for finding in broken[:TOLD]), *(limit.tell() for limit in alone)]
        texts += [short(finding, "before") for finding in named]
        if unnamed := len(broken[TOLD:]) - len(named):
            texts.append(f"{plural(unnamed, 'more kind')} without a name")
        parts = {f"failed {number}": text for number, text in enumerate(texts, 1)}
        more = len(others) - len(alone)
        return parts | ({"more": f"{plural(more, 'more limit')} failed"} if more else {})

    def _likely(self, finding: ReleaseFinding) -> str:
        """Return what a headline says of a finding that broke no limit."""
        limited = "" if finding.limits else ", not limited"
        change = finding.text if finding.kind == "pair" else finding.change()
        verb, _, rest = change.partition(": ")
        if self.overall == "pass":
            return f"differs{limited}: {change}"
        return f"most likely {verb}{limited}: {rest}" if rest else f"most likely{limited}: {verb}"

    def _deciding(self, is_likely: bool) -> dict[str, str]:
        """Return that nothing was seen to be wrong, and what would decide, by key."""
        waiting = self.of("undecided")
        parts = {}
        if self.by_id is not None and self.by_id.doubt:  # more samples would decide nothing of that
            parts["pairs"] = self.by_id.doubt
            waiting = tuple(limit for limit in waiting if not limit.rule.startswith(PAIR_RULES))
            if not waiting:
                return parts
        if not is_likely:
            parts["nothing"] = "nothing was seen to be wrong"
        rules = join_words([*dict.fromkeys(limit.rule for limit in waiting)][:TOLD])
        needed = [limit.needed for limit in waiting]
        enough = None not in needed and f"{max(count or 0 for count in needed):,} samples of each generated set"
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
            seen = [limit.detectable for limit in every if limit.detectable is not None]
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

    def _lines(self) -> Iterable[str]:
        return (*(finding.text for finding in self.findings), *map(self.sentence_on, self.by_urgency))

    def _summary(self) -> str:
        counts = ((len(self.of(verdict)), verdict) for verdict in VERBS)
        return (
            f"{self.overall}; limits: {', '.join(f'{count} {verdict}' for count, verdict in counts if count) or 'none'}"
        )
