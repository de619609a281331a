"""Designs of gates, of pairs with the same ids, and of golden nights: bounds of limits and margins, ranks of nights."""

from functools import partial
from types import SimpleNamespace

import numpy as np
from _law import Design, Drawn, Holds, NoClaim, PValue
from scipy.stats import norm

from finc_eval.gates.appearance import _part, _whole
from finc_eval.gates.evidence import Moved, Normal
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.rule import judge
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts
from finc_eval.golden.nights import coordinates, p_value
from finc_eval.naming.traits import Trait
from finc_eval.partitions.difference import total_variation
from finc_eval.partitions.tests import EffectiveCounts
from finc_eval.same_ids.compare_ids import _changed
from finc_eval.same_ids.pairs import PairTable
from finc_eval.same_ids.worse import error_of, judge_diversity, judge_fit, judge_kinds, judge_repeats

SETTING = "a setting of the policy"

PROMISES = {
    "ReleaseFinding.p_value": NoClaim("that of the finding; see Finding.p_value"),
    "ReleaseFinding.first_frame_interval": NoClaim("that of the finding; see Finding.first_frame_interval"),
    "ReleaseFinding.share_interval": NoClaim("of the look that it is; see Look.interval"),
    "ReleaseFinding.interval": NoClaim("that of the limit or the finding; see Limit.interval and Finding.interval"),
    "Limit.interval": Holds(0.9, width=(0.8, 1.8), why="exact bounds of rare kinds are wider; each end holds at 95 %"),
    "Limit.detectable": Holds(0.8, width=None, why="a change of this size is called a regression, a small one rarely"),
    "Limit.margin": NoClaim(SETTING),
    "Distance.interval": Holds(width=(0.8, 2.5), why="the upper end holds whatever the law of the differences is"),
    "MetricLimit.worse": NoClaim(SETTING),
    "Policy.alpha": NoClaim("a setting; tests/gates/test_gate_rule.py draws releases without a change"),
    "ReleaseMap.xy": NoClaim("places on a map; nothing is estimated"),
    "ById.interval": Holds(width=(0.8, 1.9), why="exact bounds of two shares, each at half of the error"),
    "Margin.interval": Holds(width=(0.8, 2.0), why="exact bounds of two shares, each at half of the error"),
    "Margin.difference": NoClaim("the number that Margin.interval is about"),
    "Margin.shares": NoClaim("the two shares whose difference Margin.interval is about"),
    "Margin.margin": NoClaim("a stated size, up to which a difference counts as none"),
    "GoldenPair.p": PValue(exact=True),
    "Power.probability": NoClaim("a simulated share of repetitions, known to 0.016; tests/memorization draws it"),
}

BOUND, SEEN = "Limit.interval", "Limit.detectable"


GRAY = Trait("gray", "in color", "gray", least=0.5)


class Expected:
    """Draws the mean of a law, in place of a random number."""

    def binomial(self, n, share):
        return n * share


def lost_share(rng, share, old_share, n, m, margin=0.5):
    counts = TwoCounts(float(rng.binomial(n, share)), n, float(rng.binomial(m, old_share)), m)
    value = LostShare.value_of(counts.share, counts.old_share, 0.002)
    return LostShare(name="kinds.lose", value=value, margin=margin, n=n, least=0.002, counts=counts)


def gained_share(rng, share, old_share, n, m, margin=0.02):
    counts = TwoCounts(float(rng.binomial(n, share)), n, float(rng.binomial(m, old_share)), m)
    value = counts.share - counts.old_share
    return GainedShare(name="kinds.new", value=value, margin=margin, n=n, counts=counts)


def bounds_of(evidence, truth, of):
    (one,) = judge([evidence])
    return Drawn(BOUND, evidence.value, one.interval, truth, of=of)


def two_shares(rng, share, old_share, n, m):
    """A kind of a release and of its baseline, which are drawn by themselves."""
    yield bounds_of(lost_share(rng, share, old_share, n, m), (old_share - share) / old_share, "lost")
    yield bounds_of(gained_share(rng, share, old_share, n, m), share - old_share, "gained")


def paired_shares(rng, cells, n):
    """A kind in pairs; `cells` has the shares of pairs that kept, lost and gained it."""
    kept, lost, gained, _ = rng.multinomial(n, (*cells, 1 - sum(cells))).astype(float)
    counts, old = PairCounts(kept, lost, gained, n), cells[0] + cells[1]
    gain = counts.share - counts.old_share
    named = {"name": "kinds", "margin": 0.02, "n": n, "counts": counts}
    least = PairedLoss(value=-gain / max(counts.old_share, 0.01), least=0.01, **named)
    yield bounds_of(least, (cells[1] - cells[2]) / old, "lost in pairs")
    yield bounds_of(PairedGain(value=gain, **named), cells[2] - cells[1], "gained in pairs")


def grouped_pairs(rng, groups, size, lost, gained):
    """Groups of pairs; the pairs of a group lose or gain a kind together."""
    old = rng.random(groups).repeat(size) < 0.3
    new = np.where(old, rng.random(groups).repeat(size) >= lost, rng.random(groups).repeat(size) < gained)
    counts = PairCounts.of(new, old, np.arange(groups, dtype=np.uint64).repeat(size))
    gain = PairedGain(name="k", value=counts.share - counts.old_share, margin=0.02, n=len(new), counts=counts)
    yield bounds_of(gain, 0.7 * gained - 0.3 * lost, "gained in groups of pairs")


def shifted_look(rng, shift, old_sizes=(1,) * 100):
    """A look of 8 groups of 2 and 8 of 12 pictures that share it, against a baseline and a large reference."""
    sizes = {"gen": np.repeat([2, 12], 8), "baseline": np.array(old_sizes), "ref": np.ones(500, int)}
    units = {label: np.arange(len(one)).repeat(one) for label, one in sizes.items()}
    values = {label: rng.normal(shift * (label == "gen"), 1, len(one))[units[label]] for label, one in sizes.items()}
    sets, trait = SimpleNamespace(baselines={"baseline": None}, replicates=()), SimpleNamespace(name="brightness")
    found = _whole(sets, trait, "brighter", values, 1, units, "appearance.whole", 0.05)
    yield bounds_of(found.old, shift, "shifted from the baseline")
    yield bounds_of(found.ref, shift, "shifted from the reference")


def part_with_a_look(rng, sizes, old_sizes, alike, gain):
    """A look that a fifth of the baseline has, and more of the release; pictures of a group are more or less alike."""
    groups = {"gen": (sizes, 0.2 + gain), "baseline": (old_sizes, 0.2), "ref": (np.ones(500, int), 0.05)}
    units = {label: np.arange(len(of_set)).repeat(of_set) for label, (of_set, _) in groups.items()}
    values = {}
    for label, (of_set, share) in groups.items():
        of_group, own = rng.normal(size=len(of_set))[units[label]], rng.normal(size=of_set.sum())
        values[label] = (np.sqrt(alike) * of_group + np.sqrt(1 - alike) * own > norm.isf(share)).astype(float)
    sets = SimpleNamespace(baselines={"baseline": None}, replicates=("baseline",), gen=SimpleNamespace(n=sizes.sum()))
    found = _part(sets, GRAY, GRAY.high, values, units, "appearance.part")
    yield bounds_of(found.old, gain, "a part")


def called(one, of):
    (found,) = judge([one])
    return Drawn(SEEN, one.value, (1.0, 1.0), float(found.verdict == "regressed"), of=of)


def not_called(one, of):
    (found,) = judge([one])
    return Drawn(SEEN, one.value, (0.0, 0.0), float(found.verdict == "regressed"), of=of)


def detectable_changes(rng, n, m):
    """Changes of the size that other data of the law call detectable, and changes that are far smaller."""
    lost = judge([lost_share(Expected(), 0.1, 0.1, n, m)])[0].detectable
    yield called(lost_share(rng, 0.1 * (1 - lost), 0.1, n, m), "lost")
    yield not_called(lost_share(rng, 0.1 * (1 - 0.5 - 0.2 * (lost - 0.5)), 0.1, n, m), "hardly lost")
    gained = judge([gained_share(Expected(), 0.01, 0.01, n, m)])[0].detectable
    yield called(gained_share(rng, 0.01 + gained, 0.01, n, m), "gained")
    yield not_called(gained_share(rng, 0.03 + 0.15 * (gained - 0.02), 0.01, n, m), "hardly gained")

    def score(true):
        return Normal(name="fd", value=float(rng.normal(true, 0.1)), margin=0.5, error=0.1, n=n)

    worse = judge([score(0.0)])[0].detectable
    yield called(score(worse), "worse")
    yield not_called(score(0.5 + 0.2 * (worse - 0.5)), "hardly worse")


def moved_kinds(rng, n, m, moved, kinds=10, size=1):
    """Shares of kinds that have moved; samples of a group of `size` are of one kind, and count as one."""
    law = np.full(kinds, 1 / kinds)
    other = law + np.where(np.arange(kinds) % 2, moved, -moved) / kinds * 2
    new, old = (EffectiveCounts.of(rng.multinomial(one // size, p).astype(float)) for one, p in ((n, other), (m, law)))
    found = total_variation(new, old)
    yield Drawn("Distance.interval", found.value, found.interval, moved)
    moves = Moved(name="kinds.moved", value=found.value, margin=0.1, n=n, new=new, old=old, unchanged=0.0)
    (one,) = judge([moves])
    low, high = one.interval
    yield Drawn("Distance.interval", found.value, (low, high), moved, of="as a limit")


def changed_pairs(rng, n, share, floor=0):
    """Pairs of runs; a part of the pairs changed. The baseline has further runs, which vary a little, or none."""

    def table(count, part):
        apart = np.where(rng.random(count) < part, 2.0, bool(floor)) * (1 + rng.random(count))
        return PairTable({"distance": apart}, np.zeros(count), None)

    value, ends = _changed(table(n, share), table(floor, 0.0) if floor else None, 0.05)
    yield Drawn("ById.interval", value, ends, share)


def worse_things(rng, prompts, images, gap, lost, gained):
    """Pairs of images of prompts: fits, diversity within prompts, kinds and repeats; each judged by itself."""
    n, error = prompts * images, error_of(1)
    units = np.arange(prompts).repeat(images)
    before = rng.normal(0, 1, n)
    own = before - gap + rng.normal(0, 0.6, prompts).repeat(images) + rng.normal(0, 0.3, n)
    (fit,) = judge_fit((own, before), units, error)
    yield Drawn("Margin.interval", fit.difference, fit.interval, of="fit")
    wide = rng.gamma(5.0, 1.0, prompts)
    (diverse,) = judge_diversity((wide * rng.normal(0.9, 0.1, prompts), wide), error)
    yield Drawn("Margin.interval", diverse.difference, diverse.interval, of="diversity")
    is_kind = rng.random(n) < 0.3
    moves = np.where(is_kind, rng.random(n) >= lost / 0.3, rng.random(n) < gained / 0.7)
    (kind,) = judge_kinds(
        (moves.astype(int) + 2 * ~moves, is_kind.astype(int) + 2 * ~is_kind), ("", "k", "rest"), error
    )
    truth = abs(lost - gained)
    if kind.what == "kinds" or kind.name == ("k" if lost > gained else "rest"):
        yield Drawn("Margin.interval", kind.difference, kind.interval, truth, of="kinds")
    (repeats,) = judge_repeats((moves, is_kind), "repeats", error)
    yield Drawn("Margin.interval", repeats.difference, repeats.interval, gained - lost, of="repeats")


def nights_of(rng, nights, states, change):
    """Nights of an engine with a few states; the last night has changed by so many steps."""
    middle = np.array([40.0, 0.98, 0.98, 0.99, 0.0, 0.0, 0.0])
    state = rng.normal(0, 1, (states, 7))[rng.integers(0, states, nights)]
    values = middle + (state + 0.3 * rng.normal(0, 1, (nights, 7))) * np.array([1, 2e-3, 2e-3, 1e-3, 0.5, 0.5, 0.02])
    values[-1] += change * np.array([-1, -2e-3, -2e-3, -1e-3, 0.5, 0.5, 0.02])
    yield Drawn("GoldenPair.p", p_value(coordinates(values), float(rng.random())), is_null=change == 0)


UNEVEN = np.repeat([2, 20], 12)
LIMIT, PAIRS, NIGHT = (BOUND,), ("ById.interval",), ("GoldenPair.p",)
SMALLER = partial(two_shares, share=0.06, old_share=0.1, n=300, m=500)

DESIGNS = (
    Design("a kind of 6 and 10 in 100", "small", LIMIT, SMALLER, 1000, 120),
    Design(
        "a kind of 1 and 2 in 100",
        "rare",
        LIMIT,
        partial(two_shares, share=0.01, old_share=0.02, n=500, m=3000),
        1000,
        120,
    ),
    Design(
        "a kind of 4 in 10", "large", LIMIT, partial(two_shares, share=0.4, old_share=0.5, n=4000, m=4000), 1000, 120
    ),
    Design("a kind in pairs", "paired", LIMIT, partial(paired_shares, cells=(0.2, 0.06, 0.03), n=600), 1000, 120),
    Design(
        "a kind that half of the pairs change",
        "paired",
        LIMIT,
        partial(paired_shares, cells=(0.1, 0.3, 0.25), n=600),
        1000,
        250,
    ),
    Design(
        "a kind in groups of three pairs",
        "clustered",
        LIMIT,
        partial(grouped_pairs, groups=200, size=3, lost=0.2, gained=0.05),
        300,
        60,
    ),
    Design("a look of 16 uneven groups", "clustered", LIMIT, partial(shifted_look, shift=0.3), 1000, 120),
    Design(
        "a look of 16 uneven groups, and of 16",
        "clustered",
        LIMIT,
        partial(shifted_look, shift=0.0, old_sizes=np.repeat([2, 12], 8)),
        1000,
        0,
    ),
    Design(
        "a part of 24 uneven groups that are not alike",
        "clustered",
        LIMIT,
        partial(part_with_a_look, sizes=UNEVEN, old_sizes=UNEVEN, alike=0.0, gain=0.1),
        1000,
        120,
    ),
    Design(
        "a part of 24 uneven groups that are half alike",
        "clustered",
        LIMIT,
        partial(part_with_a_look, sizes=UNEVEN, old_sizes=np.ones(200, int), alike=0.5, gain=0.1),
        1000,
        120,
    ),
    Design(
        "a part of 60 groups of four that are all alike",
        "clustered",
        LIMIT,
        partial(part_with_a_look, sizes=np.full(60, 4), old_sizes=np.full(60, 4), alike=1.0, gain=0.0),
        1000,
        0,
    ),
    Design("changes that are detectable", "large", (SEEN,), partial(detectable_changes, n=2000, m=4000), 200, 12),
    Design(
        "kinds that moved", "small", ("Distance.interval",), partial(moved_kinds, n=800, m=1200, moved=0.15), 100, 8
    ),
    Design(
        "kinds that moved in groups",
        "clustered",
        ("Distance.interval",),
        partial(moved_kinds, n=1600, m=1600, moved=0.2, size=4),
        100,
        0,
    ),
    Design("pairs that changed", "rare", PAIRS, partial(changed_pairs, n=300, share=0.05), 500, 60),
    Design(
        "pairs that changed beyond runs of the baseline",
        "paired",
        PAIRS,
        partial(changed_pairs, n=300, share=0.3, floor=2000),
        300,
        30,
    ),
    Design("thirty pairs that changed", "small", PAIRS, partial(changed_pairs, n=30, share=0.4), 500, 60),
    Design(
        "fits of three images of 40 prompts",
        "clustered",
        ("Margin.interval",),
        partial(worse_things, prompts=40, images=3, gap=0.2, lost=0.06, gained=0.1),
        400,
        60,
    ),
    Design(
        "margins of 600 pairs",
        "paired",
        ("Margin.interval",),
        partial(worse_things, prompts=300, images=2, gap=0.2, lost=0.05, gained=0.02),
        400,
        60,
    ),
    Design(
        "forty nights of two states", "small", NIGHT, partial(nights_of, nights=40, states=2, change=0.0), 1000, 100
    ),
    Design(
        "forty nights, the last one changed",
        "small",
        NIGHT,
        partial(nights_of, nights=40, states=2, change=12.0),
        100,
        20,
    ),
)
