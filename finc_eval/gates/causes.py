"""Findings of a gate: what is wrong with a release, by name and once; and what differs though no limit is on it.

A release is compared with its baseline as `compare` does it: by looks, repeats and kinds. A limit that regressed has
the name of what its samples have in common with these findings: nested kinds, and a look of them, are one cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.findings import find_slight
from finc_eval.core.run import Run
from finc_eval.core.words import sure_share
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.causes import Held, causes_of
from finc_eval.findings.copies import measure_copies
from finc_eval.findings.finding import OF_TRAITS, Finding
from finc_eval.findings.found import hold_findings
from finc_eval.findings.local import LocalParts
from finc_eval.gates.appearance import PART, WHOLE, Beyond, Clearest
from finc_eval.gates.by_id import BROKEN, SureCount, find_pair_findings
from finc_eval.gates.divisions import ReleaseKinds
from finc_eval.gates.facts.parts import LOCAL, NewPart
from finc_eval.gates.kind_shares import KindEvidence
from finc_eval.gates.limit import NAMED, Limit
from finc_eval.gates.sets import GEN, GateSets
from finc_eval.gates.verdict import ReleaseFinding
from finc_eval.naming.evidence import MOST, is_unnamed
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import MeasuredSets, looked_rows
from finc_eval.naming.traits import Trait
from finc_eval.partitions.answer import Answer
from finc_eval.same_ids.result import ById

NOT_OF_KINDS = {"basics.duplicates": "repeat", "basics.copies": "copy"}
"""Kinds of the findings that other rules on samples are on."""


@dataclass(frozen=True, eq=False)
class Suspect(Held):
    """A finding between a release and its baseline, and the samples that it is about, beside those of a limit."""

    @classmethod
    def of(cls, held: Held, labels: Mapping[str, str]) -> Suspect:
        """Return a finding whose examples are of sets that have other labels here."""
        examples = {labels[key]: tuple(ids) for key, ids in held.examples.items()}
        return cls(**vars(held) | {"examples": examples})

    @classmethod
    def plain(cls, finding: Finding, labels: Iterable[str] = ()) -> Suspect:
        """Return a finding that is on no samples that are looked at."""
        return cls(finding, {}, examples=dict.fromkeys(labels, finding.ids))

    def is_same(self, other: Suspect) -> bool:
        """Return whether most samples of the smaller are samples of the other, and both are gains or both losses."""
        if self.finding.is_more != other.finding.is_more or not (self.members and other.members):
            return False
        kinds = {self.finding.kind, other.finding.kind}
        if len(kinds) == 1 and self.finding.kind in OF_TRAITS:
            return self.finding == other.finding
        if len(kinds) == 2 and "part" in kinds:
            return causes_of((self, other)) != [None, None]
        if self.finding.whole or other.finding.whole or kinds == {"repeat", "copy"}:
            return False  # all samples are in a set that has moved, which does not say why a kind is lost
        label = other.own_set
        mine, others = self.members[label], other.members[label]
        both, sizes = (mine & others).sum(), sorted((mine.sum(), others.sum()))
        # A picture that is repeated is a fault of its own in a larger kind, whatever it looks like.
        is_one_repeated = (self.finding.kind == "repeat") != (other.finding.kind == "repeat")
        return bool(both and both >= MOST * sizes[is_one_repeated])

    def shows(self, traits: Collection[Trait]) -> bool:
        """Return whether it is a look that the release has more of, by one of these traits or with it."""
        if self.trait is None or not self.finding.is_more:
            return False
        brings = (self.trait.leads_to(trait, is_more=True, other_is_more=True) for trait in traits)
        return self.trait in traits or any(brings)

    def is_of(self, shown: NDArray[np.bool_]) -> bool:
        """Return whether most of some samples of the release, marked among those looked at, are samples of this."""
        return not self.finding.whole and self.finding.is_more and bool(self.members[GEN][shown].mean() >= MOST)

    def holds(self, other: Suspect) -> bool:
        """Return whether most samples of another finding, such as what a limit is on, are samples of this one."""
        if not self.is_same(other):
            return False
        label = other.own_set
        both = (self.members[label] & other.members[label]).sum()
        return bool(both >= MOST * other.members[label].sum())


@dataclass
class Said:
    """Something that is said, with the limits that it broke, and the names of what follows from it."""

    suspect: Suspect
    size: float
    limits: list[Limit] = field(default_factory=list)
    follows: list[str] = field(default_factory=list)
    is_beyond: bool = True  # whether a limit was broken, which says what is allowed
    clearest: tuple[int, ...] = ()  # rows of the release that show a look without a suspect

    def finding(self, old: str | None) -> ReleaseFinding:
        """Return it as a finding on a release and its older one, which has this label."""
        finding, examples = self.suspect.finding, dict(self.suspect.examples)
        first = self.limits[0] if self.limits else None
        allowed, excess = self._allow(first) if first is not None and self.is_beyond else (None, "")
        return ReleaseFinding.of(
            finding,
            text=finding.say("before", excess) if self.suspect.members else finding.text,
            ids=tuple(finding.ids or examples.get(GEN if finding.is_more else old or "", ())),
            interval=finding.interval if first is None else first.interval,
            explains=(*finding.explains, *dict.fromkeys(self.follows)),
            limits=tuple(limit.name for limit in self.limits),
            allowed=allowed,
            examples=examples,
        )

    def _allow(self, limit: Limit) -> tuple[float | None, str]:
        """Return the end of what is allowed of the share, and by how much it is beyond, in words."""
        finding, allowed = self.suspect.finding, limit.margin
        now, before = finding.shares or (0.0, 0.0)
        if limit.rule == "kinds.lose":
            allowed, lost = before * (1 - limit.margin), 1 - now / before if before else 0.0
            change = f"{limit.number(lost)} of it lost, "
        elif finding.whole or limit.rule.startswith(WHOLE):  # no share is allowed
            by = f"by {limit.number(limit.value)} of the spread; allowed {limit.margin:g}"
            return None, by if finding.name == limit.note else ""
        elif limit.rule in NOT_OF_KINDS or not finding.shares or finding.kind == "part":
            change = ""
        else:
            allowed = before + limit.margin
            change = f"{limit.number(sure_share(now, finding.share_interval) - before)} more, "
        return allowed, f"{change}allowed {limit.number(limit.margin)}"  # in the unit of the limit


def find_suspects(
    sets: GateSets,
    answer: Answer,
    changes: ReleaseKinds,
    old: str,
    seed: int,
    measured: MeasuredSets,
    parts: LocalParts,
    run: Run,
) -> list[Suspect]:
    """Return the looks, repeats, parts and kinds in which a release differs from an older one, the largest first.

    `measured` has the measurements of both, the older one labelled "ref", and `parts` are their parts of pictures.
    """
    pair = {GEN: sets.gen, "ref": sets.all[old]}
    kinds, headings, kinds_of = changes.kinds, changes.headings, changes.kinds_of
    looks = look_at(pair, seed, known=measured)
    labels = {GEN: GEN, "ref": old}
    found = []
    for finding in hold_findings(pair, looks, kinds, headings, kinds_of, measured, parts.held()):
        found.append(Suspect.of(finding, labels))
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
    return [Suspect(finding, members, examples=shown) for finding in slight]


def copied_suspect(sets: GateSets, old: str, run: Run) -> Suspect:
    """Return the copies of the reference in a release as a finding beside those in an older one."""
    run = run.prefixed("copies")
    labels = {GEN: sets.gen, "ref": sets.all[old]}
    found = {label: measure_copies({"gen": samples, "ref": sets.ref}, run) for label, samples in labels.items()}
    shown = {name: found[label].examples["gen"] for label, name in ((GEN, GEN), ("ref", old))}
    members = {label: copies.members["gen"] for label, copies in found.items()}
    shares = found[GEN].share, found["ref"].share
    return Suspect(Finding(found[GEN].name, "copy", False, *shares, None), members, examples=shown)


def find_findings(
    limits: Sequence[tuple[Limit, KindEvidence]],
    suspects: Sequence[Suspect],
    sets: GateSets,
    prompts: str = "",
    by_id: ById | None = None,
) -> tuple[ReleaseFinding, ...]:
    """Return what is wrong, each cause once and the largest first, and then what differs without a limit on it.

    `prompts` names those whose images surely changed (`name_prompts`). Pairs (`by_id`) say how the whole set looks, if
    they are known.
    """
    old = next(iter(sets.baselines), None)
    looks = [(limit, part.evidence) for limit, part in limits if isinstance(part.evidence, Clearest)]
    said = _looks_beyond([look for look in looks if look[0].verdict == "regressed"], suspects, sets)
    rest: list[Said] = []
    if by_id is not None:
        pairs = _say_pairs([limit for limit, _ in limits], by_id, [GEN, *sets.baselines])
        beyond = [pair for pair in pairs if pair.is_beyond]
        if beyond:
            beyond[0].limits += [limit for cause in said if cause.suspect.finding.whole for limit in cause.limits]
            said = [*(cause for cause in said if not cause.suspect.finding.whole), *beyond]
        rest = [pair for pair in pairs if not pair.is_beyond]
        looks_of_all = [each for each in suspects if each.finding.kind in OF_TRAITS and each.finding.whole]
        suspects = [each for each in suspects if each not in looks_of_all and not by_id.explains(each.finding)]
    others = {limit.name: _suspect_of(limit, part, sets, suspects) for limit, part in limits}
    for limit, part in sorted(limits, key=lambda judged: -judged[0].size):
        if limit.verdict == "regressed" and not isinstance(part.evidence, Clearest | SureCount):
            failed = others[limit.name] or Suspect.plain(limit.finding(part.noun, prompts))
            of_pairs = by_id is not None and by_id.explains(failed.finding)
            broken = [cause for cause in said if of_pairs and cause.limits[0].rule == BROKEN]
            if broken:
                broken[0].limits.append(limit)
            else:
                _say_limit(limit, failed, said, suspects)
    said = sorted(_join_followers(said, suspects, sets), key=lambda cause: -cause.size)
    settled = {limit.name: limit for limit, _ in limits if limit.verdict != "regressed"}
    known = [(settled[name], suspect) for name, suspect in others.items() if name in settled and suspect is not None]
    on_looks = [limit for limit, part in limits if isinstance(part.evidence, Clearest | NewPart)]
    rest += _not_beyond(said, suspects, known, on_looks)
    return tuple(cause.finding(old) for cause in (*said, *rest))


def _say_limit(limit: Limit, own: Suspect, said: list[Said], suspects: Sequence[Suspect]) -> None:
    """Add what a limit failed for: something that is said already, a finding that explains its samples, or its own."""
    if known := next((cause for cause in said if cause.suspect.is_same(own)), None):
        known.limits.append(limit)
        return
    is_users = "=" in limit.about  # a value of the user's own column has its name
    # A kind without a name has the id of the limit, and not that of another division of the same samples.
    named = [suspect for suspect in suspects if not is_unnamed(suspect.finding.name)]
    same = [] if is_users else [suspect for suspect in named if suspect.is_same(own)]
    size = own.finding.size if own.members else limit.size
    best = _cause_among([*same, own])
    said.append(Said(best, best.finding.size if best.members else size, [limit]))


def _cause_among(suspects: Sequence[Suspect]) -> Suspect:
    """Return the finding that others with the same samples follow from: a picture that is repeated, or else by samples.

    Of several kinds, it is the first; of a look and a kind, it is the one without which less of the other is left.
    """
    best = min(suspects, key=lambda suspect: suspect.finding.kind != "repeat")
    for suspect in suspects:
        if (
            best.finding.kind != "repeat"
            and suspect.finding.kind != best.finding.kind
            and causes_of((best, suspect))[0] == 1
        ):
            best = suspect
    return best


def _not_beyond(
    said: Sequence[Said], suspects: Sequence[Suspect], known: Sequence[tuple[Limit, Suspect]], looks: Sequence[Limit]
) -> list[Said]:
    """Return what differs and broke no limit; what follows from something that is said is added to it.

    `known` has the samples of limits that did not regress, and `looks` are the limits on looks.
    """
    held = [other for limit, other in known if limit.verdict != "undecided"]
    rest: list[Said] = []
    for suspect in suspects:
        if cause := next((other for other in said if other.suspect.is_same(suspect)), None):
            is_named = suspect is not cause.suspect and not is_unnamed(suspect.finding.name)
            cause.follows += [suspect.finding.name] if is_named else []
            continue
        is_of_many = suspect.finding.kind in (*OF_TRAITS, "part")  # pictures of many kinds have a look, or a part
        is_held = not is_of_many and any(map(suspect.holds, held))
        is_said = any(suspect.finding.name == other.suspect.finding.name for other in said)  # by pairs
        if is_held or suspect.finding.kind == "copy" or (is_said and suspect.finding.kind != "kind"):
            continue
        if suspect.finding.kind == "sets" and not all(
            other.suspect.finding.kind == "metric" for other in (*said, *rest)
        ):
            continue  # the sets as a whole are said to differ only where nothing names it, as no metric does
        limits = [limit for limit, other in known if limit.verdict == "undecided" and suspect.holds(other)][:1]
        if is_of_many:
            rule = LOCAL if suspect.finding.kind == "part" else WHOLE if suspect.finding.whole else PART
            limits = [limit for limit in looks if limit.name == rule and limit.verdict == "held"]
        rest.append(Said(suspect, suspect.finding.size, limits, is_beyond=False))
    return rest


def _looks_beyond(limits: Sequence[tuple[Limit, Clearest]], suspects: Sequence[Suspect], sets: GateSets) -> list[Said]:
    """Return the looks that are beyond some limits; without a suspect, what the limits themselves say, after all else.

    Samples that have such a look without a suspect are those of another finding, such as a picture that is repeated.
    """
    beyond = {trait for _, evidence in limits for trait in evidence.beyond()}
    found = []
    for suspect in suspects:
        if suspect.shows(beyond):
            rule = WHOLE if suspect.finding.whole else PART
            found.append(
                Said(
                    suspect,
                    suspect.finding.size,
                    sorted((each for each, _ in limits), key=lambda each: each.name != rule),
                )
            )
    return found or [
        Said(Suspect.plain(_look_of(limit, evidence.best, sets), [GEN]), 0.0, [limit], clearest=evidence.best.clearest)
        for limit, evidence in limits
    ]


def _look_of(limit: Limit, look: Beyond, sets: GateSets) -> Finding:
    """Return the look that a limit is on as a finding, with its shares where a part has it."""
    share, before = look.shares or (None, None)
    ids, whole = tuple(sets.gen.ids_at(np.array(look.clearest, np.int64))), look.shares is None
    plain = limit.finding()
    return replace(plain, whole=whole, share_gen=share, share_ref=before, ids=ids)


def _join_followers(said: Sequence[Said], suspects: Sequence[Suspect], sets: GateSets) -> list[Said]:
    """Join what follows from something else that is said to its cause, with its limits.

    A kind follows from a look that nearly all have, unless it is among the `suspects`, which were asked for by labels
    or words. Looks without a suspect follow from the finding that most of the samples with the clearest look are of.
    """
    held = [cause for cause in said if cause.suspect.members]
    of_all = next((cause for cause in said if cause.suspect.finding.is_of_all), None)
    follows = {
        id(cause): held[place]
        for cause, place in zip(held, causes_of([cause.suspect for cause in held], among_kinds=False), strict=True)
        if place is not None
    }
    kinds = [suspect for suspect in suspects if suspect.finding.kind == "kind"]
    for cause in said:
        own = cause.suspect
        is_known = any(own.is_same(kind) for kind in kinds) or any("=" in limit.about for limit in cause.limits)
        if of_all is not None and own.finding.kind == "kind" and not is_known:
            follows[id(cause)] = of_all
        if cause.clearest and held:
            shown = np.isin(looked_rows(sets.gen), cause.clearest)
            follows |= {id(cause): other for other in held if other.suspect.is_of(shown)}
    named: dict[str, Said] = {}
    for cause in said:
        first = named.setdefault(cause.suspect.finding.name, cause)
        is_again = first is not cause and cause.suspect.finding.kind not in ("kind", "metric")
        follows |= {id(cause): first} if is_again else {}
    for cause in said:
        if (root := follows.get(id(cause))) is not None:
            root.limits += cause.limits
            name = cause.suspect.finding.name
            root.follows += [name] * (name != root.suspect.finding.name and not is_unnamed(name))
    return [cause for cause in said if id(cause) not in follows]


def _say_pairs(limits: Sequence[Limit], by_id: ById, labels: Sequence[str]) -> list[Said]:
    """Return what is wrong with pairs, beyond a limit or not."""
    known = {limit.name: limit for limit in limits}
    said = []
    for rule, (share, finding) in find_pair_findings(by_id).items():
        limit = known.get(rule)
        is_beyond = limit is not None and limit.verdict == "regressed"
        allowed = f" (allowed {limit.margin:g})" if limit is not None and is_beyond and limit.margin else ""
        suspect = Suspect.plain(replace(finding, text=finding.text + allowed), labels)
        said.append(Said(suspect, share, [] if limit is None else [limit], is_beyond=is_beyond))
    return said


def _suspect_of(limit: Limit, part: KindEvidence, sets: GateSets, suspects: Sequence[Suspect]) -> Suspect | None:
    """Return what a limit is on as a finding, with its samples; None for a limit on no samples in particular."""
    rule, _, inside = limit.rule.partition("@")
    if kind := NOT_OF_KINDS.get(rule):
        return next((suspect for suspect in suspects if suspect.finding.kind == kind and suspect.finding.is_more), None)
    old = next(iter(sets.baselines), None)
    if isinstance(part.evidence, NewPart) and (own := part.evidence.held) is not None:
        names = (suspect for suspect in suspects if own.key in (suspect.key, *suspect.finding.explains))
        return next(names, Suspect.of(own, {GEN: GEN, "ref": old or ""}))
    if rule not in NAMED or old is None or inside or old not in limit.shares:
        return None
    share, before = limit.shares[GEN], limit.shares[old]
    finding = Finding(part.noun, "kind", False, share, before, None)
    if rule == "kinds.lose" and finding.is_more:  # nothing is lost
        finding = replace(finding, share_gen=before)
    members = part.members({GEN: looked_rows(sets.gen), old: looked_rows(sets.baselines[old])})
    shown = {label: limit.examples.get(label, ()) for label in (GEN, old)}
    return Suspect(finding, {GEN: members[GEN], "ref": members[old]}, examples=shown)
