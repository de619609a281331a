"""Near pairs: the rates of their tests for sets of one law, and the copies and repeats that they find."""

import numpy as np
import pytest
import torch
from scipy.stats import binom

import finc_eval as fe
from finc_eval.findings.copies import hold_copies
from finc_eval.naming.looks import REPEAT, find_looks, look_at
from finc_eval.naming.near_pairs import count_near_pairs, find_neighbors
from finc_eval.naming.repeated import pair_rows

AXES, EXCHANGES = 16, 99
VALUES = np.random.default_rng(7).normal(size=(40, AXES))


def clusters(rng, n):
    return VALUES[rng.integers(0, len(VALUES), n)] + 0.1 * rng.standard_t(3, (n, AXES))


def skewed(rng, n):
    weights = 1 / np.arange(1, len(VALUES) + 1)
    return VALUES[rng.choice(len(VALUES), n, p=weights / weights.sum())] + 0.1 * rng.normal(size=(n, AXES))


LAWS = {
    "Gaussian in two dimensions": lambda rng, n: rng.normal(size=(n, 2)),
    "Gaussian": lambda rng, n: rng.normal(size=(n, AXES)),
    "clusters with heavy tails": clusters,
    "clusters of unlike sizes": skewed,
    "few values": lambda rng, n: VALUES[rng.integers(0, len(VALUES), n)],
}
SIZES = [(60, 60), (40, 160)]


def pairs_of(gen, ref, seed=0, exchanges=EXCHANGES, is_paired=False):
    """Near pairs of two arrays, each row a unit; or of paired arrays, row by row."""
    rows, is_gen = np.concatenate([gen, ref]).astype(np.float32), np.arange(len(gen) + len(ref)) < len(gen)
    units = np.r_[np.arange(len(gen)), np.arange(len(ref)) + (0 if is_paired else len(gen))]
    keys = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    near = find_neighbors(torch.from_numpy(rows), units, keys)
    return count_near_pairs(near, is_gen, units, is_paired=is_paired, seed=seed, exchanges=exchanges)


def rates_are_kept(draws, seeds, levels):
    """Whether the p-values of some draws of two sets are small as rarely as they say."""
    found = np.array([[each.copies_p, *each.repeats_p] for each in map(draws, range(seeds)) if each is not None])
    return all(((found <= level).sum(0) <= binom.ppf(0.9999, seeds, level)).all() for level in levels)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(150, 150), (300, 300), (100, 400)], ids=str)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_sets_of_one_law_rarely_have_near_pairs(law, sizes):
    def drawn(seed):
        rng = np.random.default_rng([seed, *sizes])
        return pairs_of(law(rng, sizes[0]), law(rng, sizes[1]), seed)

    assert rates_are_kept(drawn, 300, (0.01, 0.05, 0.2))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_few_draws_of_one_law_rarely_have_near_pairs(law, sizes):
    def drawn(seed):
        rng = np.random.default_rng([seed, *sizes])
        return pairs_of(law(rng, sizes[0]), law(rng, sizes[1]), seed)

    assert rates_are_kept(drawn, 6, (0.05, 0.2))


def looked(gen, ref, prompts=(), groups=()):
    """Near pairs of two sets with prompts or groups, which all samples are looked at for."""
    sets = {}
    for label, rows in (("gen", gen), ("ref", ref)):
        metadata = {
            name: [*map(str, values)] for name, values in (("prompt", prompts), ("group", groups)) if len(values)
        }
        one = fe.EmbeddingSet(np.asarray(rows, np.float32), metadata=metadata or None)
        sets[label] = one.grouped("group") if len(groups) else one
    return pair_rows(sets, {label: np.arange(one.n) for label, one in sets.items()}, exchanges=EXCHANGES)


@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.long)])
def test_groups_of_near_samples_and_images_of_one_prompt_are_no_evidence(runs):
    """Three frames each of a video; or two models that draw each prompt alike."""

    def of_groups(seed):
        rng = np.random.default_rng(seed)
        gen, ref = (np.repeat(rng.normal(size=(20, AXES)), 3, 0) + 0.02 * rng.normal(size=(60, AXES)) for _ in "ab")
        return looked(gen, ref, groups=np.repeat(np.arange(20), 3)).pairs

    def of_prompts(seed):
        rng = np.random.default_rng(seed)
        asked = rng.normal(size=(60, AXES))
        gen, ref = (asked + 0.02 * rng.normal(size=asked.shape) for _ in "ab")
        return looked(gen, ref, prompts=range(60)).pairs

    assert rates_are_kept(of_groups, runs, (0.05, 0.2))
    assert rates_are_kept(of_prompts, runs, (0.05, 0.2))


def moved(rows, rng, by=0.1):
    return rows + by * rng.normal(size=rows.shape)


@pytest.mark.parametrize(("n", "m", "count"), [(120, 120, 36), (120, 120, 100), (60, 200, 24)])
def test_near_copies_are_found_with_a_share_that_is_at_least_theirs(n, m, count):
    rng = np.random.default_rng(n)
    ref, gen = rng.normal(size=(m, AXES)), rng.normal(size=(n, AXES))
    gen[:count] = moved(ref[:count], rng)
    found = pairs_of(gen, ref)
    assert found.copies_p == 1 / (1 + EXCHANGES) < min(found.repeats_p)
    assert found.copied[:count].all() and not found.copied[count:n].any()
    assert count / n - 0.12 < found.least < count / n
    assert found.statistics.shape == (1 + EXCHANGES, 2, 3)


@pytest.mark.long
@pytest.mark.parametrize("count", [15, 45])
@pytest.mark.parametrize("law", ["Gaussian", "clusters with heavy tails", "clusters of unlike sizes"])
def test_the_least_share_of_near_copies_is_rarely_above_theirs(law, count):
    """The largest of three lower bounds holds as one bound of 95 %."""
    above = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, count])
        ref, gen = LAWS[law](rng, 150), LAWS[law](rng, 150)
        gen[:count] = moved(ref[:count], rng, 0.02)
        above += pairs_of(gen, ref, seed, exchanges=19).least > count / 150
    assert above <= binom.ppf(0.999, 200, 0.05)


def test_p_values_of_near_pairs_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    ref, gen = rng.normal(size=(120, AXES)), rng.normal(size=(120, AXES))
    gen[:5] = moved(ref[:5], rng)
    found = {
        (pairs.copies_p, pairs.repeats_p, pairs.least)
        for pairs in (looked(rng.permutation(gen), rng.permutation(ref)).pairs for _ in range(3))
    }
    assert len(found) == 1


def test_paired_samples_are_not_pairs_but_copies_of_other_prompts_are():
    rng = np.random.default_rng(0)
    ref = rng.normal(size=(80, AXES))
    assert pairs_of(moved(ref, rng), ref, is_paired=True).copies_p == 1
    assert pairs_of(np.roll(moved(ref, rng), 1, 0), ref, is_paired=True).copies_p == 1 / (1 + EXCHANGES)


@pytest.mark.parametrize(("axes", "spread"), [(AXES, 0.2), (AXES, 0.5), (2, 0.2)])
def test_a_set_that_lies_closer_together_is_not_said_to_repeat_itself(axes, spread):
    rng = np.random.default_rng(0)
    rows = {"gen": spread * rng.normal(size=(100, axes)), "ref": rng.normal(size=(100, axes))}
    sets = {label: fe.EmbeddingSet(each.astype(np.float32)) for label, each in rows.items()}
    assert not [look for look in find_looks(sets, 0) if look.trait == REPEAT]


def test_near_repeats_of_three_samples_are_said_for_the_set_that_has_them():
    rng = np.random.default_rng(3)
    gen, ref = rng.normal(size=(150, AXES)), rng.normal(size=(150, AXES))
    gen[:24] = moved(np.repeat(gen[:3], 8, 0), rng)
    for first, other, label in ((gen, ref, "gen"), (ref, gen, "ref")):
        sets = {"gen": fe.EmbeddingSet(first.astype(np.float32)), "ref": fe.EmbeddingSet(other.astype(np.float32))}
        (look,) = [look for look in find_looks(sets, 0) if look.trait == REPEAT]
        assert (look.name, look.more_in) == ("3 samples, nearly repeated 24 times in all", label)


@pytest.mark.parametrize(("gen", "ref"), [([0.5, 0.5], [0.5, 0.25, *[0.05] * 5]), ([0.98, 0.02], [0.04, *[0.32] * 3])])
def test_compact_kinds_that_a_set_lacks_are_no_repeats(gen, ref):
    centers, rng = 3 * np.random.default_rng(9).normal(size=(7, 32)), np.random.default_rng(4)
    rows = [
        centers[rng.choice(len(part), 200, p=part)] + 0.2 * rng.normal(size=(200, 32))
        for part in map(np.array, (gen, ref))
    ]
    sets = {label: fe.EmbeddingSet(each.astype(np.float32)) for label, each in zip(("gen", "ref"), rows, strict=True)}
    assert look_at(sets, 0) == []


@pytest.mark.parametrize("prompts", [[""], ["a photo"], ["", "a dog"]], ids=str)
def test_missing_and_constant_prompts_hide_no_copies(prompts):
    rng = np.random.default_rng(3)
    ref = rng.normal(size=(120, AXES))
    gen = np.concatenate([moved(ref[:36], rng), rng.normal(size=(84, AXES))])
    found = looked(gen, ref, prompts=(prompts * 120)[:120])
    assert found.pairs.copies_p <= 0.02 and found.pairs.least > 0.15


@pytest.mark.parametrize("part", [0.2, 0.9])
def test_a_dense_kind_that_is_larger_or_smaller_is_not_copied(part):
    """Half of the samples of a kind are near each other, as digits 1 are in their pixels."""
    rng = np.random.default_rng(5)

    def drawn(share):
        rows = rng.normal(size=(200, AXES))
        rows[: round(200 * share)] = 4 + 0.25 * rng.normal(size=(round(200 * share), AXES)) * (np.arange(AXES) < 4)
        return fe.EmbeddingSet(rows.astype(np.float32))

    sets = {"gen": drawn(0.45), "ref": drawn(part)}
    assert not hold_copies(sets)


def test_copies_of_a_part_of_the_reference_that_was_not_looked_at_are_found():
    rng = np.random.default_rng(0)
    ref, gen = rng.normal(size=(400, AXES)), rng.normal(size=(60, AXES))
    gen[:20] = moved(ref[300:320], rng)
    sets = {"gen": fe.EmbeddingSet(gen.astype(np.float32)), "ref": fe.EmbeddingSet(ref.astype(np.float32))}
    found = pair_rows(sets, {"gen": np.arange(60), "ref": np.arange(60)}, exchanges=EXCHANGES)
    assert found.pairs.copies_p == 1 / (1 + EXCHANGES)
    assert np.flatnonzero(found.mark("gen", found.pairs.copied)).tolist() == [*range(20)]


@pytest.mark.parametrize(("gen", "ref"), [(4, 100), (100, 4)])
def test_too_few_samples_have_no_near_pairs(gen, ref):
    rng = np.random.default_rng(0)
    assert pairs_of(rng.normal(size=(gen, 4)), rng.normal(size=(ref, 4))) is None


class Clips(fe.EmbeddingSet):
    """Clips by how they move, with a digest of the frames of each."""

    def __init__(self, rows, frames):
        super().__init__(np.asarray(rows, np.float32))
        self.space, self.frames = "motion@00000000", np.asarray(frames, np.uint64)

    def content(self):
        return self.frames


@pytest.mark.parametrize(
    ("frames", "said"),
    [(np.where(np.arange(60) < 12, 7, np.arange(60)), ["one sample, 12 times"]), (np.arange(60), [])],
    ids=["one clip twelve times", "still clips of other scenes"],
)
def test_clips_repeat_by_their_frames_and_not_by_how_they_move(frames, said):
    still = np.zeros((60, 8))
    sets = {"gen": Clips(still, frames), "ref": Clips(still, 1000 + np.arange(60))}
    found = look_at(sets, 0, known=((), {}))
    assert [look.name for look, _ in found] == said
