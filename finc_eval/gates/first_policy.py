"""`first_policy`: a policy for a baseline, with the noise that was measured at its number of samples as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from scipy.special import gammaincinv

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.parsed import toml_comment, toml_value
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.words import in_percent, plural
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE
from finc_eval.embeddings.repeats import LOOK, share_of_repeats
from finc_eval.estimates.retraining import MIN_REPLICATES, SAMPLING_ONLY
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.findings.copies import measure_copies
from finc_eval.gates.appearance import PART, WHOLE, Clearest, look_evidence, pictures_of
from finc_eval.gates.divisions import OF_REF, OF_SETS, by_tree, by_tree_of_all, fewest, judge_kinds, tree_of_reference
from finc_eval.gates.evidence import Normal, round_up
from finc_eval.gates.facts.of_private import private_part
from finc_eval.gates.facts.parts import LOCAL, why_not_looked_at
from finc_eval.gates.kind_shares import lost_evidence, new_evidence
from finc_eval.gates.policy import NOISE, AppearanceLimits, KindLimits, MetricLimit, Policy
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GEN, REF, GateSets, independent
from finc_eval.gates.shares import GainedShare, LostShare
from finc_eval.local_evidence.find import LEAST_UNITS
from finc_eval.measures.metrics import COMPUTE
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, share_bounds
from finc_eval.same_ids.detect import are_two_runs

LOSE, NEW = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75), 0.02
"""Limits on kinds that are proposed: the first part of a share that is kept, and 2 % of the samples."""

LOOKS = {PART: 0.02, WHOLE: 0.05}
"""Limits on looks that are proposed: 2 % of the samples, and a twentieth of the spread of the whole set."""

PARTS = 0.02  # share of samples that may have an unlike part, in the limit that is proposed

LOOKS_ABOUT = {
    PART: "share of samples that may have a look, such as blurred, beyond the baseline's",
    WHOLE: "part of its spread by which a look of the whole set may move away",
}
"""Words for each proposed limit on looks."""

CHANGED = 0.05  # share of pairs that may change beyond two runs of one engine, of 100 pairs or more

METRICS = ("fd", "kid")  # metrics; the first with an interval is proposed


def first_policy(
    baselines: Sequence[object],
    ref: object,
    *,
    groups: str | None = None,
    extractor: AnyExtractor = None,
    run: Run | None = None,
) -> str:
    """Return a policy as TOML, with the floor of each limit: what an unchanged release keeps with probability 0.95.

    `groups` is the column of samples that are not independent, which the policy then names.
    """
    if (write := private_part(ref, "first_private_policy")) is not None:
        return str(write(baselines, groups, extractor, run))
    run = Run.of(run).planned(
        LOOK,
        OF_REF,
        OF_SETS,
        Stage.of_parts("noise of", (LOOK, COMPUTE)),
        Stage.of_parts("duplicates", (LOOK,)),
        Stage.of_parts("copies", (LOOK,)),
    )
    # The baseline stands for a new release without a change.
    sets = GateSets.open(baselines[0], baselines, ref, groups, run, extractor=extractor)
    is_by_id = _has_same_ids(sets)
    # Pairs show what the whole set looks like, and do so within their noise, which a metric does not know.
    sets, looks = (sets.as_runs(), {PART: LOOKS[PART]}) if is_by_id else (sets, LOOKS)
    rules = {name.partition(".")[2]: margin for name, margin in looks.items()}
    n, m = sets.gen.n, sets.ref.n
    lines: list[str | Proposal] = [
        f"# For {plural(n, 'sample')} of a release and {m:,} of the reference; floors are what an unchanged release "
        "keeps with probability 0.95."
    ]
    if len(baselines) < MIN_REPLICATES:
        lines.append(f"# They cover {SAMPLING_ONLY}.")
    if groups is not None:
        lines.append(Proposal("groups", groups, "column of samples that are not independent"))
    if not sets.space.startswith(ARRAY_SPACE):
        lines.append(Proposal("extractor", sets.space, "that the limits are for"))
    lines += _lose_lines(sets, run)
    new = new_evidence(sets, by_tree_of_all(sets, 0, run), KindLimits(new=NEW), NEW)
    gains = [part.evidence for part in new if isinstance(part.evidence, GainedShare)]
    floor = max((_floor(gain, len(gains)) for gain in gains), default=1.0)
    lines.append(_line("kinds.new", NEW, floor, "share by which no kind may grow that the reference lacks"))
    lines += [*([] if is_by_id else _metric_line(sets, run)), *_look_lines(sets, AppearanceLimits(**rules))]
    lines += _part_lines(sets)
    return policy_text([*lines, *_basic_lines(sets, run), *_pair_lines(is_by_id, n if sets.again else None)])


@dataclass(frozen=True)
class Proposal:
    """A line of a policy: a key, its value, and what it is."""

    key: str
    value: float | str
    about: str

    @property
    def line(self) -> str:
        """The line in TOML."""
        return f"{self.key} = {toml_value(self.value)}  {toml_comment(self.about)}"

    def objection(self, others: Mapping[str, float | str]) -> str | None:
        """Return why the policy's reader refuses it beside others, such as a limit that limits nothing; else None."""
        try:
            Policy.of({"basics.samples": 1, **others, self.key: self.value})
        except (DataError, UsageError) as error:
            return str(error).removeprefix("the policy: ")
        return None


def policy_text(lines: Sequence[str | Proposal]) -> str:
    """Return a policy as TOML, from comments and proposals; a limit that the policy's reader refuses is a comment.

    Raises:
        DataError: the reader makes something else of the text than what the proposals say.
    """
    found: list[str] = []
    meant: dict[str, float | str] = {}
    for line in lines:
        if isinstance(line, str):
            found.append(line)
        elif (objection := line.objection(meant)) is None:
            found.append(line.line)
            meant[line.key] = line.value
        elif isinstance(line.value, str):  # a setting, without which the limits would be others
            raise DataError(f"{line.key}: {objection}")
        else:
            found.append(
                toml_comment(f"No limit {line.key}, which would be {line.value:.3g}: {objection} ({line.about})")
            )
    text = "\n".join(found) + "\n"
    if Policy.parse(text) != Policy.of(meant):
        raise DataError(f"the policy would be read as something else than was meant, {meant}: report this")
    return text


def _basic_lines(sets: GateSets, run: Run) -> list[str | Proposal]:
    """Return the limits on plain facts, from what the baseline has; a share that may be everything is not limited."""
    repeated = share_of_repeats(sets.gen, run.prefixed("duplicates"))
    with run.prefixed("copies").step(LOOK):
        copies = measure_copies({"gen": sets.gen, "ref": sets.ref}, run)
    shares = {
        "duplicates": (repeated, "repeat another"),
        "copies": (copies.share, "equal, or nearly equal, a reference sample"),
    }
    lines: list[str | Proposal] = [
        Proposal(f"basics.{name}", _most(share), f"share of samples that may {what}; the baseline has {share:.3g}")
        for name, (share, what) in shares.items()
    ]
    if isinstance(sets.gen, CachedEmbeddings):
        lines.append(Proposal("basics.unreadable", 0.0, "share of samples that may be unreadable"))
    return lines


def _has_same_ids(sets: GateSets) -> bool:
    """Return whether the baselines, or else baseline and reference, are runs with the same prompts and seeds."""
    others = [*sets.baselines.values()][1:] or [sets.ref]
    return any(are_two_runs({GEN: sets.gen, REF: other}) for other in others)


def _pair_lines(is_by_id: bool, runs: int | None) -> list[str | Proposal]:
    """Return the limits on pairs; as comments, unless there are pairs.

    `runs` is the number of pairs of two runs of the baseline; None without these: what changes is then not known.
    """
    lines = [
        Proposal("by_id.broken", 0, "pairs that may be broken: another picture, mirrored, black, shifted"),
        Proposal("by_id.worse", 0, "looks, kinds and the like that may be worse by more than their margin"),
    ]
    if runs is not None:
        # Beyond the furthest of as many pairs of the baseline lie seldom more than two.
        least = float(share_bounds(2, runs, ALPHA / 4)[1])
        about = "share of pairs that may change beyond runs of the baseline; take it out for a port, which changes all"
        lines.append(_line("by_id.changed", CHANGED, least, about))
    if is_by_id:
        return [*lines]
    about = "# If a release has the prompts and seeds of its baseline, in place of limits on the whole set:"
    return [about, *(f"# {line.line}" for line in lines)]


def _look_lines(sets: GateSets, limits: AppearanceLimits) -> list[str | Proposal]:
    """Return the limits on looks, with the change that is seen; none where the looks are not known."""
    lines: list[str | Proposal] = []
    for evidence in look_evidence(sets, limits, pictures_of(sets), ALPHA):
        if isinstance(evidence, Clearest):
            key, about = evidence.name, LOOKS_ABOUT[evidence.name]
            seen = evidence.seen(ALPHA)
            said = "" if seen is None else f"; seen from {in_percent(seen, 2) if key == PART else f'{seen:.2g}'}"
            lines.append(Proposal(key, evidence.margin, f"{about}{said} at this n"))
    return lines


def _part_lines(sets: GateSets) -> list[str | Proposal]:
    """Return the limit on parts of pictures; none where they are not looked at."""
    if why_not_looked_at(sets) or independent(sets.gen) < LEAST_UNITS:
        return []
    about = "share of samples that may have a part that hardly any picture of baseline and reference has"
    return [Proposal(LOCAL, PARTS, about)]


def _most(share: float) -> float:
    """Return how large a share may be that the baseline has; 0.01 is what an ordinary set may have of repeats.

    The limit is rounded to three digits of what it leaves or allows, the smaller of both: 0.99983 is not 1.
    """
    most = max(0.01, share + min(share, 1 - share) / 2)
    return float(f"{most:.3g}") if most < 0.9 else 1 - float(f"{1 - most:.3g}")


def _lose_lines(sets: GateSets, run: Run) -> list[str | Proposal]:
    """Return the limit on lost kinds: half of a share, or more where so few samples judge large kinds alone."""
    found = by_tree(sets, tree_of_reference(sets, 0, run), run.prefixed(OF_REF))
    for lose in LOSE:
        limits = KindLimits(lose=lose)
        judged = judge_kinds(found, limits, lose, fewest(sets))
        every = [part.evidence for part in lost_evidence(sets, found, judged, lose)]
        losses = [loss for loss in every if isinstance(loss, LostShare)]
        least = max((_floor(loss, len(losses)) for loss in losses), default=1.0)
        if least <= lose and judged.enough is None:
            break
    smallest = in_percent(judged.smallest, 2)
    if not losses or least > lose:
        return [
            f"# {plural(fewest(sets), 'sample')} cannot show that a kind kept its share: kinds.lose may be undecided,",
            "# and says how many samples decide. A column of labels shows more: kinds.column.",
            Proposal("kinds.lose", lose, "part of its share that no kind may lose"),
        ]
    about = f"part of its share that no kind may lose; the smallest of {len(losses)} kinds has {smallest}"
    return [_line("kinds.lose", lose, least, about)]


def _floor(evidence: LostShare | GainedShare, family: int) -> float:
    """Return the margin that an unchanged release keeps, with probability 0.95 for all kinds together."""
    mean, level = max(evidence.counts.old_share * evidence.counts.size, 0.5), level_of_each(ALPHA, family)
    is_gain = isinstance(evidence, GainedShare)
    members = gammaincinv(mean + 1, 1 - level) if is_gain else gammaincinv(mean, level)
    unlucky = evidence.with_members(float(members))
    return replace(unlucky, value=max(unlucky.value, evidence.half(level))).bound("high", ALPHA)


def _metric_line(sets: GateSets, run: Run) -> list[str | Proposal]:
    """Return a limit on the first metric with an interval; where it has no noise, a comment says why there is none."""
    limit = MetricLimit(worse=NOISE, difference=NOISE)
    for metric in METRICS:
        found, _ = score_evidence(sets, {metric: limit}, ALPHA, run.prefixed(f"noise of {metric}"))
        for evidence, rule, what in zip(found, ("worse", "difference"), ("part", "amount"), strict=True):
            if isinstance(evidence, Normal):
                least = 2 * evidence.half(ALPHA)
                return [_line(f"metrics.{metric}.{rule}", 0.0, least, f"{what} by which it may be worse")]
    return []


def _line(key: str, margin: float, least: float, about: str) -> Proposal:
    chosen = max(margin, round_up(least)) if isfinite(least) else least
    share = not key.endswith("difference")
    texts = [in_percent(value, 2) if share else f"{value:.2g}" for value in (least, chosen)]
    return Proposal(key, chosen, f"{about}: floor {texts[0]} at this n; your limit {texts[1]}")
