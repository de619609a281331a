"""`Verdict`: whether a release passes, limit by limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import figure, in_percent, plural
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gates.evidence import Side
from finc_eval.gates.moved import Distance
from finc_eval.gates.policy import Policy
from finc_eval.gates.rule import Overall, Verb
from finc_eval.partitions.kind_tree import KindTree

EXIT_CODES: dict[Overall, int] = {"pass": 0, "regression": 1, "undecided": 2, "error": 3}
"""Exit code of each verdict."""

FIRST = "first baseline: nothing was compared with a release before"
"""Words of every output on a first baseline."""

VERBS: tuple[Verb, ...] = ("regressed", "missing", "undecided", "improved", "held")
"""The verdicts of limits; verdicts that need a person come first."""


@dataclass(frozen=True)
class Limit(Record):
    """A limit of the policy, and what was found.

    Attributes:
        name: name, such as "kinds.lose k203" or "metrics.fd worse".
        verdict: held, or improved if the interval is also all better than no change; or regressed, undecided, missing.
        value: the estimate; None if it is missing.
        interval: bounds of the true value. The one towards the margin's other side holds for all limits of the run
            together, the one towards the margin for this limit alone, as a pass needs all of them; `Verdict.family`
            says their levels.
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
        return self.name.startswith(("kinds.", "copying.near", "basics.unreadable", "basics.duplicates")) or (
            self.name.endswith(" worse")
        )

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        if self.value is None:
            return f"{self.name} is missing: {self.note}"
        allowed = "at most" if self.harm == "high" else "at least"
        interval = (
            "" if self.interval is None else f" [{self.number(self.interval[0])}, {self.number(self.interval[1])}]"
        )
        text = f"{self.name} {self.verdict}: {self.number(self.value)}{interval}, {allowed} {self.number(self.margin)}"
        return text + (f"; {self.needed:,} samples would decide it" if self.needed else "")

    def number(self, value: float | None) -> str:
        """Write a value of this limit."""
        if self.is_share and value is not None:
            return in_percent(value)
        return figure(value)


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
        tree: kinds of the reference that limits on lost kinds are on; None without such limits.

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

    overall: Overall
    limits: tuple[Limit, ...]
    family: str
    noise: str
    first: bool
    distances: tuple[Distance, ...]
    scores: dict[str, dict[str, float]]
    baseline: str | None
    policy: Policy
    sets: dict[str, SetInfo]
    signature: SignatureText
    warnings: tuple[str, ...]
    tree: Annotated[KindTree | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

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
    def summary(self) -> str:
        """The verdict in a few plain sentences."""
        found = [f"{len(self.of(verb))} {verb}" for verb in VERBS if self.of(verb)]
        counts = f"of {plural(len(self.limits), 'limit')}, {', '.join(found)}" if found else "no limits"
        parts = [f"{self.overall.capitalize()}: {counts}."]
        if self.first:
            parts.append(f"{FIRST[0].upper()}{FIRST[1:]}.")
        parts += [one.sentence for one in self.distances]
        return " ".join([*parts, f"Covers {self.noise}."])

    def _frame_rows(self) -> tuple[Limit, ...]:
        return self.limits

    def _lines(self) -> Iterator[str]:
        return (limit.sentence for limit in self.by_urgency)

    def _summary(self) -> str:
        return self.summary
