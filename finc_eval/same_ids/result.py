"""`ById`: two runs with the same seed, pair by pair: what changed, what broke, and whether anything is worse."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from finc_eval.core.record import Record
from finc_eval.core.serialize import Shown
from finc_eval.core.words import join_first, join_words, percent, percent_range, plural, predicate
from finc_eval.findings.finding import OF_TRAITS, Finding
from finc_eval.naming.evidence import MOST
from finc_eval.same_ids.measures import psnr
from finc_eval.same_ids.worse import Margin

if TYPE_CHECKING:
    import pandas as pd

PICTURE_OF, ANOTHER = "the picture of ", "another id's picture"
OWN_WAY = re.compile(" by [+-].*")  # end of a reason that each pair has its own of: "shifted by +3, -1 pixels"
SHOWN = 12  # pairs that a page shows
LEAST_SHARE = 20  # pairs from which a part of them is a share: one is at most 5 %
OTHER_PICTURES = "another picture"  # explained by findings that say what broken pairs are
NAMED = 3  # ids, and things that are worse, that a sentence names


@dataclass(frozen=True)
class ById(Record, Shown):
    """Two runs of a generator with the same ids, pair by pair.

    Attributes:
        changed: share of the pairs that are further apart than runs of the baseline are; without such runs, the share
            of pairs that are not equal.
        interval: 95 % interval of it.
        floor: number of further runs of the baseline; 0: none was given.
        broken: ids of pairs that do not belong to this run, the furthest apart first. Where nothing is broken, any is
            listed in at most 5 % of runs; else at most 10 % of the list is false, on average.
        reasons: what each of these looks like, by id.
        worse: what is surely worse by more than its margin.
        not_worse: what is surely not.
        undecided: what may be or not.
        looks: how the whole run looks otherwise, where that is neither better nor worse, such as "darker".
        furthest: ids of the pairs that are furthest apart, at most 12.
        ids: ids of all pairs.
        measured: measures of all pairs, by name: of pictures "mse" of values in [0, 1], "ssim", "ms_ssim", "structure"
            and "coarse", the correlation of thumbnails, and "lpips" where its weights are; "distance" in the space of
            the extractor, 1 for unlike ids. Of clips these are means over frames, and "motion" is how unlike they move,
            in parts of the motion.
        unread: ids of pairs that are left out, as a picture cannot be read again, or has changed since it was embedded.
            Such a run is not clean.
        verdict: "clean" if the pairs show the same, "broken" if any does not, "undecided" if too many cannot be
            recognized or read, or runs of the baseline show other pictures as often.
        run: one name for what is wrong with the whole run, such as "ids are shifted by 1"; "" if there is none.
        unclear: ids of pairs that are neither recognized nor broken.
        is_usual: whether pairs are unclear because runs of the baseline show other pictures as often.
        missing: number of samples of the baseline that the new run lacks, or that cannot be read there. Such a run is
            not clean.
        findings: what differs between the runs, the largest first: looks of all pairs, what the broken pairs are, and
            what is worse.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> old, _ = example_sets()
        >>> by_id = fe.compare(old, old, pairs="id", features=200).by_id
        >>> by_id.verdict, by_id.changed, by_id.broken, by_id.worse
        ('clean', 0.0, [], [])
    """

    changed: float
    interval: tuple[float, float]
    floor: int
    broken: list[str]
    reasons: dict[str, str]
    worse: list[Margin]
    not_worse: list[Margin]
    undecided: list[Margin]
    looks: list[str]
    furthest: tuple[str, ...]
    ids: tuple[str, ...]
    measured: dict[str, tuple[float, ...]]
    unread: tuple[str, ...] = ()
    verdict: Literal["clean", "broken", "undecided"] = "clean"
    run: str = ""
    unclear: tuple[str, ...] = ()
    is_usual: bool = False
    missing: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.ids)

    def shown(self) -> list[str]:
        """Return the ids of the pairs that a page shows: those that are broken, or else those furthest apart."""
        return (self.broken or [*self.unclear, *(id for id in self.furthest if id not in self.unclear)])[:SHOWN]

    @property
    def table(self) -> pd.DataFrame:
        """All pairs as a pandas data frame, the furthest apart last; see `to_frame`."""
        return self.to_frame()

    def _frame_rows(self) -> list[dict[str, Any]]:
        broken = set(self.broken)
        columns = {name: list(values) for name, values in self.measured.items()}
        if "mse" in columns:
            columns = {"psnr": psnr(np.array(columns.pop("mse"))).tolist()} | columns
        return [
            {"id": name, **{key: values[row] for key, values in columns.items()}, "broken": name in broken}
            | {"looks": self.reasons.get(name, "")}
            for row, name in enumerate(self.ids)
        ]

    def _summary(self) -> str:
        counts = f"broken={len(self.broken)}, worse={len(self.worse)}"
        return f"{self.verdict}, pairs={self.n:,}, changed={self.changed:.3g}, {counts}"

    @property
    def sentences(self) -> dict[str, str]:
        """Say the verdict, what is broken, what is worse and what changed, in a sentence each."""
        said = self.clauses
        if self.broken and self._say_causes() in said["verdict"]:
            these = "this pair is" if len(self.broken) == 1 else f"these {len(self.broken):,} pairs are"
            said["broken"] = f"{these} broken: {self._name_broken()}"
        return {key: f"{clause[0].upper()}{clause[1:]}." for key, clause in said.items()}

    def sentences_beside(self, headline: str) -> dict[str, str]:
        """Return the sentences without what a headline says."""
        return {key: self.sentences[key] for key, clause in self.clauses.items() if clause not in headline}

    @property
    def clauses(self) -> dict[str, str]:
        """The same as parts of a sentence."""
        later = {"broken": self._say_broken(), "worse": self._say_worse()}
        of_all = bool(self.findings) and self.findings[0].kind in OF_TRAITS and self.findings[0].is_worse
        judged = {key: later[key] for key in sorted(later, reverse=of_all)}
        return {"verdict": self._say_verdict(), **judged, "changed": self._say_changed()}

    @property
    def of_pairs(self) -> Finding | None:
        """The finding of what the broken pairs are; None where no pair is broken, or all have a look."""
        return next(
            (finding for finding in self.findings if finding.kind == "pair" or OTHER_PICTURES in finding.explains), None
        )

    def explains(self, finding: Finding) -> bool:
        """Return whether a part of pictures is what most broken pairs show: most pictures that show it are theirs."""
        return finding.kind == "part" and np.isin(finding.ids, self.broken).sum() >= MOST * max(len(finding.ids), 1)

    @property
    def doubt(self) -> str:
        """Why the verdict is undecided; "" where it is not."""
        if self.verdict != "undecided":
            return ""
        found = []
        if self.unclear:
            why = "show other pictures, as in runs of the baseline" if self.is_usual else "cannot be recognized"
            found = [f"{len(self.unclear):,} of {plural(self.n, 'pair')} {why}"]
        if self.missing:
            lacks = "lacks a readable partner" if self.missing == 1 else "lack readable partners"
            count = self.n + len(self.unread) + self.missing
            found.append(f"{self.missing:,} of {plural(count, 'sample')} of the baseline {lacks}")
        if self.unread:
            count = self.n + len(self.unread)
            found.append(f"{len(self.unread):,} of {plural(count, 'pair')} cannot be read as embedded")
        return "; ".join(found)

    def _say_verdict(self) -> str:
        thing, count = "pairs" if self.n > 1 else "pair", len(self.unclear)
        first = next(iter(self.findings), None)
        of_all = first.name if first is not None and first.kind in OF_TRAITS else ""
        joined = "and" if self.verdict == "broken" else "but"
        but = f", {joined} the run {predicate(of_all)}" if of_all else ""
        if self.verdict == "broken":
            if self.of_pairs is None and of_all:  # that is what is wrong with the pairs
                return f"broken: the run {predicate(of_all)}"
            told = self.run if self.of_pairs is None else self.of_pairs.text
            counted = f"{len(self.broken):,} of {self.n:,} {thing}"
            return f"broken: {told if told not in ('', counted) else f'{counted} ({self._say_causes()})'}{but}"
        if self.doubt:
            return f"undecided: {self.doubt}"
        if count:
            return f"clean: {self.n - count:,} of {self.n:,} {thing} show the same, and no other is broken{but}"
        return f"clean: {'all ' * (self.n > 1)}{self.n:,} {thing} show{'s' * (self.n == 1)} the same{but}"

    def _say_changed(self) -> str:
        names = [finding.name for finding in self.findings if finding.kind in OF_TRAITS and not finding.is_worse]
        have = [name.removeprefix("with ") for name in names[:NAMED] if name.startswith("with ")]
        are = [name for name in names[:NAMED] if not name.startswith("with ")]
        looks = f"; on average they are {join_words(are)}" if are else ""
        looks += f"; more of them have {join_words(have)}" if have else ""
        if self.unread:
            left_out = f"{_pairs_are(len(self.unread), 'further pair')} left out"
            ids = join_first(self.unread, NAMED)
            looks += f"; {left_out}, with pictures that are not those that were embedded: {ids}"
        which, count = self._share_changed()
        if self.floor:
            return f"{which} {'changed' if count else 'did not change'} beyond runs of the baseline{looks}"
        be = "is" if count == 1 or self.n == 1 else "are"
        equal = "equal" if self.n == 1 and not count else "not equal"
        return f"{which} {be} {equal}{self._say_psnr()}, and no second run of the baseline is known{looks}"

    def _share_changed(self) -> tuple[str, int]:
        """Return which samples changed, in words, and about how many; never 0 for a share of several samples."""
        thing = "picture" if "mse" in self.measured else "sample"
        count = round(self.changed * self.n)
        if self.n == 1:
            return f"the {thing}", count
        if self.n < LEAST_SHARE:
            return f"{count} of the {plural(self.n, thing)}", count or self.n
        share = f"{percent(self.changed)} [{percent_range(self.interval)}]"
        return f"{share} of the {plural(self.n, thing)}", self.n

    def _say_psnr(self) -> str:
        """Return the least PSNR of a few pairs, whose looks are not tested; "" for equal pictures."""
        if self.n >= LEAST_SHARE or not (worst := max(self.measured.get("mse", (0.0,)))):
            return ""
        return f" (PSNR {float(psnr(np.array([worst]))[0]):.1f} dB{' or more' * (self.n > 1)})"

    def _say_broken(self) -> str:
        if not self.broken and self.verdict == "undecided":
            unclear = f"; not recognized: {join_first(self.unclear, NAMED)}" if self.unclear else ""
            return f"no pair is surely broken{unclear}"
        if not self.broken:
            return "no pair is broken"
        return f"{_pairs_are(len(self.broken), 'pair')} broken ({self._say_causes()}): {self._name_broken()}"

    def _say_causes(self) -> str:
        """Return how many of the broken pairs are what: "8 noise and 9 turned gray"."""
        looks = [self.reasons[id] for id in self.broken]
        counts = Counter(ANOTHER if look.startswith(PICTURE_OF) else OWN_WAY.sub("", look) for look in looks)
        return join_words([f"{count:,} {reason}" for reason, count in counts.most_common()])

    def _name_broken(self) -> str:
        """Return the ids of the first broken pairs, and the number of the others."""
        return join_first(self.broken, NAMED)

    def _say_worse(self) -> str:
        if worse := [finding.text for finding in self.findings if finding.is_worse and finding is not self.of_pairs]:
            more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
            return f"worse: {join_words(worse[:NAMED])}{more}"
        if not self.not_worse:
            return "whether anything is worse is undecided" if self.undecided else "what is worse is not judged"
        looks = any(margin.what == "look" for margin in self.not_worse)
        by = " by more than a quarter of a standard deviation" if looks else ""
        return "; ".join([f"nothing is{'' if by else ' surely'} worse{by}", *self._undecided()])

    def _undecided(self) -> list[str]:
        shares = [margin for margin in self.undecided if margin.is_share]
        others = [margin.name for margin in self.undecided if margin not in shares]
        found = []
        if shares:
            limit = 100 * max(margin.interval[1] for margin in shares)
            found = [f"{join_words([margin.name for margin in shares])} may be worse by up to {limit:.2g} points"]
        return [*found, *([f"undecided: {join_words(others[:NAMED])}"] if others else [])]


def _pairs_are(count: int, thing: str) -> str:
    return f"{plural(count, thing)} {'is' if count == 1 else 'are'}"
