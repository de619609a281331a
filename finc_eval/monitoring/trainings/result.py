"""`Trainings`: the result of two trainings side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from finc_eval.core.record import Record
from finc_eval.core.serialize import Document
from finc_eval.core.words import plural
from finc_eval.findings.finding import Finding


@dataclass(frozen=True)
class FollowedByBoth(Record):
    """A followed thing: its course in both trainings.

    Attributes:
        name: name, such as "saturation".
        first: its share or mean in the first training at each step; None without samples of it.
        second: the same in the second training.
        p_value: p-value of "both have one law at each step", adjusted over all steps and followed things.
        spread: standard deviation of a score in the reference; None of a share.
    """

    name: str
    first: tuple[float | None, ...]
    second: tuple[float | None, ...]
    p_value: float
    spread: float | None = None


@dataclass(frozen=True)
class TrainingDifference(Record):
    """A followed thing in which two trainings differ.

    Attributes:
        name: name of the followed thing.
        text: what the first training has more or less of now, and since when.
        since: step from which they differ.
        since_interval: first and last step from which they may differ, at 95 %.
        first: share, or mean, of the first training at the last step.
        second: share, or mean, of the second training at the last step.
        interval: interval of the first less the second at the last step, at 95 %.
        p_value: p-value, adjusted over all steps and followed things.
        finding: name of what it is, such as "blurrier".
    """

    name: str
    text: str
    since: float
    since_interval: tuple[float, float]
    first: float
    second: float
    interval: tuple[float, float]
    p_value: float
    finding: str = ""

    @property
    def difference(self) -> float:
        """The first training less the second, at the last step."""
        return self.first - self.second


@dataclass(frozen=True, eq=False)
class Trainings(Document):
    """Two trainings side by side, at the steps that both have.

    Attributes:
        names: names of both trainings.
        steps: steps that both have.
        samples: number of samples at each step, of the first training and of the second.
        followed: all followed things that have samples.
        differences: things in which the trainings differ, causes and what follows from them; the probability that any
            is false is `alpha` at most.
        findings: what differs, each cause once; all outputs say these.
        apart: squared distance of both trainings at each step, between the means of φ, without bias.
        alpha: probability of any false difference.
        warnings: what to know before trusting the differences.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> a, b = ({step: rng.normal(size=(64, 4)) for step in range(3)} for _ in "ab")
        >>> found = fe.compare_trainings({"a": a, "b": b}, rng.normal(size=(200, 4)))
        >>> found.names, found.steps
        (('a', 'b'), (0.0, 1.0, 2.0))
    """

    type_name: ClassVar[str] = "trainings"
    page: ClassVar[str] = "finc_eval.monitoring.pages.trainings"

    names: tuple[str, str]
    steps: tuple[float, ...]
    samples: tuple[tuple[int, ...], tuple[int, ...]]
    followed: tuple[FollowedByBoth, ...]
    differences: tuple[TrainingDifference, ...]
    findings: tuple[Finding, ...]
    apart: tuple[float, ...]
    alpha: float
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def _frame_rows(self) -> list[dict[str, Any]]:
        return [
            {"training": name, "name": thing.name, "step": step, "samples": n, "value": value, "p_value": thing.p_value}
            for thing in self.followed
            for name, counts, values in zip(self.names, self.samples, (thing.first, thing.second), strict=True)
            for step, n, value in zip(self.steps, counts, values, strict=True)
        ]

    def _summary(self) -> str:
        names = ", ".join(finding.name for finding in self.findings)
        return f"{' and '.join(self.names)}, {plural(len(self.steps), 'step')}: {names or 'no difference'}"
