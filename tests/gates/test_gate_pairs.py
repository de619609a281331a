"""Paired samples: the same prompts and seeds in both releases show smaller differences, and keep both errors."""

import numpy as np
import pytest
from _releases import CENTERS, release
from scipy import stats

import finc_eval as fe
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.rule import judge
from finc_eval.gates.shares import LostShare, TwoCounts

N = 2000


def drawn(rng, shares, kept):
    """Kinds of the samples of two releases, of which a part of the prompts gives the same kind as before."""
    old = rng.choice(len(shares), N, p=shares)
    new = np.where(rng.random(N) < kept, old, rng.choice(len(shares), N, p=shares))
    return new, old


def losses(new, old, margin, kinds=10):
    pairs = [PairCounts.of(new == kind, old == kind, None) for kind in range(kinds)]
    return [
        PairedLoss(
            name=str(kind), value=(one.lost - one.gained) / max(one.old, 1), margin=margin, least=0.01, counts=one
        )
        for kind, one in enumerate(pairs)
    ]


@pytest.mark.parametrize("kept", [0.8, *(pytest.param(kept, marks=pytest.mark.long) for kept in (0.0, 0.99))])
def test_pairs_without_a_change_keep_alpha_on_both_sides(kept):
    rng, runs, shares = np.random.default_rng(0), 200, np.full(10, 0.1)
    false = low = high = 0
    for _ in range(runs):
        new, old = drawn(rng, shares, kept)
        found = losses(new, old, 1e-9)
        false += any(one.verdict == "regressed" for one in judge(found))
        low += found[0].bound("low", 0.05) > 0
        high += found[0].bound("high", 0.05) < 0
    most = stats.binom.ppf(0.995, runs, 0.05)
    assert max(false, low, high) <= most


@pytest.mark.parametrize("gain", [True, False])
def test_pairs_at_the_margin_keep_alpha(gain):
    """A quarter of a kind's pairs lose it, or a twentieth of all others gain it, and the margin is just that."""
    rng, runs, beyond = np.random.default_rng(1), 300, 0
    for _ in range(runs):
        old = rng.random(N) < 0.2
        lost, came = rng.random(N) < 0.25, rng.random(N) < 0.05
        new = np.where(old, ~lost | gain, came & gain)
        counts = PairCounts.of(new, old, None)
        one = (
            PairedGain(name="", value=0.0, margin=0.04, counts=counts)
            if gain
            else PairedLoss(name="", value=0.0, margin=0.25, least=0.01, counts=counts)
        )
        beyond += one.bound("low", 0.05) > one.margin
    assert beyond <= stats.binom.ppf(0.995, runs, 0.05)


def test_pairs_show_more_than_the_same_samples_alone():
    new, old = drawn(np.random.default_rng(2), np.full(10, 0.1), 0.9)
    paired = losses(new, old, 0.5)[0]
    k, o = float((new == 0).sum()), float((old == 0).sum())
    alone = LostShare(name="", value=0.0, margin=0.5, least=0.01, counts=TwoCounts(k, N, o, N))
    widths = [one.bound("high", 0.05) - one.bound("low", 0.05) for one in (paired, alone)]
    assert widths[0] < 0.6 * widths[1]
    assert paired.detectable(0.005) < alone.detectable(0.005)


@pytest.mark.parametrize("gain", [True, False])
def test_a_change_of_the_detectable_size_is_seen_in_four_of_five_runs_of_pairs(gain):
    """A fifth of all prompts gives another kind by chance, so that pairs go both ways."""
    rng, level, p, moved, runs, seen = np.random.default_rng(5), 0.005, 0.1, 0.2, 400, 0
    went = p * moved * (1 - p)
    typical = PairCounts(kept=N * (p - went), lost=N * went, gained=N * went, size=N)
    kind = PairedGain if gain else PairedLoss
    given = {"name": "", "value": 0.0, "margin": 0.02 if gain else 0.2} | ({} if gain else {"least": 0.01})
    change = kind(counts=typical, **given).detectable(level) * (1 if gain else -p)
    law = [p - went + min(change, 0), went - min(change, 0), went + max(change, 0)]
    for _ in range(runs):
        kept, lost, gained, _ = rng.multinomial(N, [*law, 1 - sum(law)]).astype(float)
        seen += kind(counts=PairCounts(kept, lost, gained, N), **given).bound("low", level) > given["margin"]
    assert 0.78 < seen / runs < 0.93


def test_a_kind_that_the_baseline_lacks_can_lose_nothing():
    nothing = PairedLoss(name="", value=0.0, margin=0.5, least=0.01, counts=PairCounts(0.0, 0.0, 30.0, 2000.0))
    assert nothing.bound("low", 0.05) < 0 < nothing.bound("high", 0.05) < 0.5
    assert nothing.detectable(0.05) is None


def test_groups_of_pairs_are_the_unit():
    new, old = (np.repeat(one, 4) for one in drawn(np.random.default_rng(3), np.full(10, 0.1), 0.5))
    groups = np.repeat(np.arange(N, dtype=np.uint64), 4)
    counts = PairCounts.of(new == 0, old == 0, groups)
    assert counts.size == pytest.approx(N, rel=0.05)


def paired_releases(lost=0.0, n=1000):
    """Two releases of the same prompts: samples differ a little, and of a kind some have become another."""
    rng = np.random.default_rng(4)
    kinds = rng.integers(20, size=n)
    now = np.where((kinds == 0) & (rng.random(n) < lost), 1, kinds)
    prompts = [f"prompt {i}" for i in range(n)]
    start = 0.5 * rng.normal(size=(n, 16))
    old, new = ((CENTERS[one] + start + 0.05 * rng.normal(size=(n, 16))).astype(np.float32) for one in (kinds, now))
    turned = rng.permutation(n)
    return (
        fe.EmbeddingSet(new[turned], metadata={"prompt": [prompts[i] for i in turned]}),
        fe.EmbeddingSet(old, metadata={"prompt": prompts}),
    )


POLICY = {"kinds": {"lose": 0.5, "min_share": 0.04}, "metrics": {"fd": {"difference": 0.3}}}


def widths(limits, rule):
    return np.mean([one.interval[1] - one.interval[0] for one in limits if one.rule == rule])


@pytest.mark.long
def test_the_gate_pairs_samples_by_a_column_whatever_their_order():
    new, old = paired_releases()
    ref = release(1000, 3)
    alone = fe.gate(new, old, ref, POLICY)
    paired = fe.gate(new, old, ref, POLICY | {"pairs": "prompt"})
    assert paired.overall == "pass"
    for rule in ("kinds.lose", "metrics.fd"):
        assert widths(paired.limits, rule) < 0.5 * widths(alone.limits, rule)
    gone = fe.gate(paired_releases(1.0)[0], old, ref, POLICY | {"pairs": "prompt"})
    assert gone.overall == "regression"


def test_samples_without_a_partner_are_refused():
    new, old = paired_releases()
    ref, by_id = release(1000, 3), POLICY | {"pairs": "id"}
    with pytest.raises(fe.DataError, match="1 sample of gen have no partner"):
        fe.gate(fe.EmbeddingSet(release(1000, 1), [*range(1, 1001)]), release(1000, 2), ref, by_id)
    with pytest.raises(fe.DataError, match="of baseline have no partner in gen"):
        fe.gate(release(995, 1), release(1000, 2), ref, by_id)
    with pytest.raises(fe.DataError, match="several samples with the prompt"):
        same = fe.EmbeddingSet(release(1000, 1), metadata={"prompt": ["x"] * 1000})
        fe.gate(same, old, ref, POLICY | {"pairs": "prompt"})
    with pytest.raises(fe.UsageError, match="paired with one baseline"):
        fe.gate(new, [old, old, old], ref, POLICY | {"pairs": "prompt"})
    with pytest.raises(fe.UsageError, match="no column 'seed'"):
        fe.gate(new, old, ref, POLICY | {"pairs": "seed"})


@pytest.mark.long
def test_an_anchor_of_other_prompts_is_compared_without_pairs():
    new, old = paired_releases()
    verdict = fe.gate(new, old, release(1000, 3), POLICY | {"pairs": "prompt"}, anchor=old)
    assert not any("without pairs" in one for one in verdict.warnings)
    other = fe.EmbeddingSet(release(1000, 5), metadata={"prompt": [f"other {i}" for i in range(1000)]})
    verdict = fe.gate(new, old, release(1000, 3), POLICY | {"pairs": "prompt"}, anchor=other)
    assert any("the anchor is compared without pairs" in one for one in verdict.warnings)


def of_prompts(seed, broken=(), images=8):
    """Images of 40 prompts, each of its own place; those of broken prompts are of another."""
    places = np.random.default_rng(9)
    own = CENTERS[places.integers(0, 20, 40)] + 0.5 * places.normal(size=(40, 16))
    own[list(broken)] = CENTERS[21]
    rows = own.repeat(images, 0) + 0.3 * np.random.default_rng(seed).normal(size=(40 * images, 16))
    prompts = [f"a drawing of thing {one}" for one in range(40) for _ in range(images)]
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": prompts})


@pytest.mark.parametrize(
    ("broken", "said"), [((3,), "prompt “a drawing of thing 3”"), ((3, 5, 7, 9, 11), " and 2 more")]
)
def test_the_prompts_whose_images_changed_are_named(broken, said):
    policy = {"kinds": {"moved": 0.001}, "pairs": "prompt"}
    verdict = fe.gate(of_prompts(1, broken), of_prompts(2), of_prompts(3), policy)
    assert f"{said} surely changed" in verdict.headline
    named = [one for one in range(40) if f"“a drawing of thing {one}”" in verdict.headline]
    assert len(named) == min(len(broken), 3) and set(named) <= set(broken)
