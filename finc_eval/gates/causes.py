"""`Cause`: what is wrong with a release, by name and once; and what most likely is, though no limit is on it.

A release is compared with its baseline as `compare` does it: by looks, repeats and kinds. Limits that regressed are
told by what they have in common with these findings: nested kinds, and a look that covers them, are one cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.findings import find_slight
from finc_eval.core.run import Run
from finc_eval.core.words import in_percent, join_words, quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import hold_findings
from finc_eval.gates.appearance import PART, WHOLE, Clearest
from finc_eval.gates.by_id import SureCount, find_pair_causes
from finc_eval.gates.divisions import OF_ALL
from finc_eval.gates.kinds import KindEvidence
from finc_eval.gates.sets import GEN, GateSets
from finc_eval.gates.verdict import Cause, Limit
from finc_eval.naming.evidence import MOST, unnamed
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import PictureLooks, looked_rows, measure_sets
from finc_eval.naming.traits import Trait
from finc_eval.partitions.answer import Answer
from finc_eval.partitions.kind import Kind, kinds_of_rows
from finc_eval.prompts.table import clear_prompts
from finc_eval.same_ids.result import ById

Members = Mapping[str, NDArray[np.bool_]]  # which of the samples of `looked_rows` are meant, of the release and its old
NAMED = ("kinds.lose", "kinds.new")  # rules whose limits are on kinds that have a name
REPEATS, MOVES = "basics.duplicates", "kinds.moved"
NAMED_PROMPTS = 3  # prompts that a cause names at most


@dataclass(frozen=True)
class Suspect:
    """A finding between a release and its baseline, and the samples that it is about."""

    finding: Finding
    members: Members
    examples: dict[str, tuple[str, ...]]  # ids of samples, by label
    trait: Trait | None = None  # what was measured, of a look

    def is_same(self, other: Suspect) -> bool:
        """Return whether most samples of the smaller are samples of the other, and both are gains or both losses."""
        if self.finding.is_more != other.finding.is_more:
            return False
        if self.finding.kind == other.finding.kind == "look":
            return self.finding == other.finding
        if self.finding.whole or other.finding.whole:
            return False  # all samples are in a set that has moved, which does not say why a kind is lost
        label = GEN if other.finding.is_more else "ref"
        mine, others = self.members[label], other.members[label]
        both, sizes = (mine & others).sum(), sorted((mine.sum(), others.sum()))
        # A picture that is repeated is a fault of its own in a larger kind, whatever it looks like.
        is_one_repeated = (self.finding.kind == "repeat") != (other.finding.kind == "repeat")
        return bool(both and both >= MOST * sizes[is_one_repeated])

    def shows(self, traits: Collection[str]) -> bool:
        """Return whether it is a look that the release has more of, by one of these traits or with it."""
        if self.trait is None or not self.finding.is_more:
            return False
        return self.trait.name in traits or any(one in traits for one in self.trait.brings)

    def holds(self, other: Suspect) -> bool:
        """Return whether most samples of another finding, such as what a limit is on, are samples of this one."""
        label = GEN if other.finding.is_more else "ref"
        both = (self.members[label] & other.members[label]).sum()
        return self.is_same(other) and bool(both >= MOST * other.members[label].sum())


@dataclass(frozen=True)
class ReleaseKinds:
    """The kinds of a release and an older one, tested, and which of them rows are of."""

    kinds: tuple[Kind, ...]
    headings: tuple[Kind, ...]
    kinds_of: Callable[[torch.Tensor], list[str]]

    @classmethod
    def of(cls, sets: GateSets, answer: Answer, old: str, run: Run) -> ReleaseKinds:
        """Describe the kinds of an answer on a release and an older one, labelled "ref"."""
        kinds, headings, divided = answer.described({GEN: sets.gen, "ref": sets.all[old]})
        return cls(kinds, headings, kinds_of_rows(kinds, divided, run))


def find_suspects(
    sets: GateSets,
    answer: Answer,
    changes: ReleaseKinds,
    old: str,
    seed: int,
    pictures: Mapping[str, PictureLooks | None],
    run: Run,
) -> list[Suspect]:
    """Return the looks, repeats and kinds in which a release differs from an older one, the largest first.

    `pictures` has what was measured of the pictures of sets, by label, as far as it was.
    """
    pair = {GEN: sets.gen, "ref": sets.all[old]}
    kinds, headings, kinds_of = changes.kinds, changes.headings, changes.kinds_of
    known = {label: pictures[name] for label, name in ((GEN, GEN), ("ref", old)) if name in pictures}
    traits, measured = measure_sets(pair, known)
    looks = look_at(pair, seed, known=(traits, measured))
    labels = {GEN: GEN, "ref": old}
    found = []
    for one in hold_findings(pair, looks, kinds, headings, kinds_of, traits):
        shown = {labels[key]: tuple(ids) for key, ids in one.examples.items()}
        found.append(Suspect(one.finding, one.members, shown, one.trait))
    return found or _slight(pair, labels, answer, seed, run)


def _slight(
    pair: Mapping[str, Embeddings], labels: Mapping[str, str], answer: Answer, seed: int, run: Run
) -> list[Suspect]:
    """Return that a release differs from an older one as a whole, if it does, where nothing else names it."""
    blocked = None if answer.pairing is None else answer.pairing.blocked
    sets = pair if answer.pairing is None else answer.pairing.sets
    slight, surest = find_slight(sets, seed, run, blocked=blocked)
    shown = {labels[key]: ids for key, ids in surest.items()}
    members = {key: np.ones(len(looked_rows(each)), bool) for key, each in pair.items()}
    return [Suspect(one, members, shown) for one in slight]


def name_prompts(sets: GateSets, answer: Answer, seed: int, run: Run) -> str:
    """Name the prompts whose images surely changed since the baseline; "" for sets that no prompt pairs, or none."""
    pairing = None if sets.blocks[0] is None or sets.pairs else sets.pairing(None)  # a pair alone shows nothing
    if pairing is None or len(pairing.sets) != 2:
        return ""
    found = clear_prompts(pairing, answer.kinds, seed, run)
    more = len(found) - NAMED_PROMPTS
    named = [quote(one) for one in found[:NAMED_PROMPTS]] + [f"{more:,} more"] * (more > 0)
    return f"samples of the {pairing.info.column}{'s' * (len(found) > 1)} {join_words(named)}" if found else ""


def find_causes(
    limits: Sequence[tuple[Limit, KindEvidence]],
    suspects: Sequence[Suspect],
    sets: GateSets,
    prompts: str = "",
    by_id: ById | None = None,
) -> tuple[Cause, ...]:
    """Return what is wrong, each cause once and the largest first, and then what differs without a limit on it.

    `prompts` names those whose images surely changed (`name_prompts`). Pairs (`by_id`) say how the whole set looks, if
    they are known.
    """
    looks = [(limit, part.evidence) for limit, part in limits if isinstance(part.evidence, Clearest)]
    told = _look_causes([one for one in looks if one[0].verdict == "regressed"], suspects)
    if of_pairs := find_pair_causes([one for one, _ in limits], by_id, [*sets.baselines]):
        told = [one for one in told if one[2] is None or not one[2].finding.whole]
        told += [(size, one, None) for size, one in of_pairs]
    if by_id is not None:
        suspects = [one for one in suspects if not (one.finding.kind == "look" and one.finding.whole)]
    waiting: list[tuple[str, Suspect]] = []
    held: list[Suspect] = []
    for limit, part in sorted(limits, key=lambda one: -_size(one[0])):
        own = _suspect_of(limit, part, sets, suspects)
        if own is None:
            if limit.verdict == "regressed" and not isinstance(part.evidence, Clearest | SureCount):
                told.append((_size(limit), _plain_cause(limit, prompts), None))
            continue
        if limit.verdict == "undecided":
            waiting.append((limit.name, own))
        elif limit.verdict != "regressed":
            held.append(own)
        if limit.verdict != "regressed" or any(one is not None and one.is_same(own) for *_, one in told):
            continue
        is_users = "=" in limit.about  # a value of the user's own column has its name
        same = [] if is_users else [one for one in suspects if one.is_same(own)]
        best = min([*same, own], key=lambda one: one.finding.kind != "repeat")  # a repeat, or else the first
        told.append((best.finding.size, _named_cause(best, limit), best))
    found = [cause for _, cause, _ in sorted(told, key=lambda one: -one[0])]
    for one in suspects:
        if any(other is not None and other.is_same(one) for *_, other in told) or any(map(one.holds, held)):
            continue
        if one.finding.kind == "sets" and not all(map(_is_of_metric, found)):
            continue  # the sets as a whole are said to differ only where nothing names it, as no metric does
        finding, limit_on = one.finding, next((name for name, other in waiting if one.holds(other)), None)
        if finding.kind == "look":
            rule = WHOLE if finding.whole else PART
            limit_on = next((one.name for one, _ in looks if one.name == rule and one.verdict == "held"), None)
        found.append(_cause(one, finding.say("before"), None, limit_on))
    return tuple(found)


def _is_of_metric(cause: Cause) -> bool:
    """Return whether a cause is that a metric is worse, which names nothing."""
    return cause.limit is not None and cause.limit.startswith("metrics.")


def _look_causes(
    limits: Sequence[tuple[Limit, Clearest]], suspects: Sequence[Suspect]
) -> list[tuple[float, Cause, Suspect | None]]:
    """Return the looks that are beyond some limits; without a suspect, what the limits themselves say."""
    beyond = {trait for _, evidence in limits for trait in evidence.beyond()}
    found: list[tuple[float, Cause, Suspect | None]] = []
    for one in suspects:
        if one.shows(beyond):
            own = [limit for limit, _ in limits if limit.rule.startswith(WHOLE if one.finding.whole else PART)]
            found.append((one.finding.size, _named_cause(one, (*own, limits[0][0])[0]), one))
    return found or [(_size(limit), _plain_cause(limit), None) for limit, _ in limits]


def _suspect_of(limit: Limit, part: KindEvidence, sets: GateSets, suspects: Sequence[Suspect]) -> Suspect | None:
    """Return what a limit is on as a finding, with its samples; None for a limit on no samples in particular."""
    rule, _, inside = limit.rule.partition("@")
    if rule == REPEATS:
        return next((one for one in suspects if one.finding.kind == "repeat" and one.finding.is_more), None)
    old = next(iter(sets.baselines), None)
    if rule not in NAMED or old is None or inside or old not in limit.shares:
        return None
    name = part.noun or limit.about.partition("=")[2] or unnamed(limit.about.removeprefix(OF_ALL))
    share, before = limit.shares[GEN], limit.shares[old]
    finding = Finding(name, "kind", False, share, before, 0.0)
    if rule == "kinds.lose" and finding.is_more:  # nothing is lost
        finding = replace(finding, share_gen=before)
    members = part.members({GEN: looked_rows(sets.gen), old: looked_rows(sets.baselines[old])})
    shown = {label: limit.examples.get(label, ()) for label in (GEN, old)}
    return Suspect(finding, {GEN: members[GEN], "ref": members[old]}, shown)


def _named_cause(suspect: Suspect, limit: Limit) -> Cause:
    """Return a finding that broke a limit, with what is allowed of it."""
    finding, allowed = suspect.finding, limit.margin
    own, before = finding.shares or (0.0, 0.0)
    if limit.rule == "kinds.lose":
        allowed = before * (1 - limit.margin)
        lost = 1 - own / before if before else 0.0
        change = f"{in_percent(lost)} of it lost, "
    elif finding.whole or limit.rule.startswith(WHOLE):  # no share is allowed
        by = f"by {limit.number(limit.value)} of the spread; allowed {limit.margin:g}"
        shift = by if finding.name == limit.note else ""
        return _cause(suspect, finding.say("before", shift), None, limit.name)
    elif limit.rule == REPEATS:
        change = ""
    else:
        allowed = before + limit.margin
        change = f"{in_percent(own - before)} more, "
    words = finding.say("before", f"{change}allowed {limit.number(limit.margin)}")  # in the unit of the limit
    return _cause(suspect, words, allowed, limit.name)


def _cause(one: Suspect, words: str, allowed: float | None, limit: str | None) -> Cause:
    finding = one.finding
    return Cause(words, finding.change(), finding.share_gen, finding.share_ref, allowed, limit, one.examples)


def _plain_cause(limit: Limit, prompts: str = "") -> Cause:
    """Return a limit that is not on a kind or a look as a cause; of samples that moved, with the prompts of most."""
    told = f"{limit.told}: {prompts} surely changed" if prompts and limit.rule == MOVES else limit.told
    return Cause(
        f"{told} (allowed {limit.number(limit.margin)})",
        told,
        limit.value if limit.is_share else None,
        None,
        limit.margin,
        limit.name,
    )


def _size(limit: Limit) -> float:
    """Return the share of samples that a limit is about; 0 for a number over all samples, which names nothing."""
    if limit.rule in NAMED and limit.shares:
        shares = [share for label, share in limit.shares.items() if label.startswith("baseline")]
        return abs(limit.shares[GEN] - float(np.mean(shares))) if shares else limit.shares[GEN]
    is_named = limit.rule.startswith(("basics", "copying", "appearance"))
    return float(limit.value) if is_named and limit.is_share and limit.value is not None else 0.0
