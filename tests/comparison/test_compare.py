import json

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.serialize import LAYOUT
from finc_eval.demo.planted import gray, shipped_digits
from finc_eval.numerics.inference import significant


DIRECTIONS = fe.Finc(clusters=False)


@pytest.fixture(scope="module")
def thinned(digits):
    """Digits without nearly all of the zeros against digits with them, as 14 x 14 pixels."""
    x, labels = digits[0].reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196), digits[1]
    rng = np.random.default_rng(1)
    gen, ref = x[:1000], x[1000:2000]
    kept = (labels[:1000] != 0) | (rng.random(1000) < 0.02)
    return gen[kept], ref, labels[:1000][kept], labels[1000:2000]


@pytest.fixture(scope="module")
def comparison(thinned):
    """A comparison by directions alone; those of kinds are in test_kinds_of_comparison.py."""
    gen, ref, _, _ = thinned
    return fe.compare(gen=gen, ref=ref, features=150, method=DIRECTIONS)


@pytest.fixture(scope="module")
def few(thinned):
    """300 samples of each set, and a feature map, where it does not matter what is found."""
    gen, ref, _, _ = thinned
    return gen[:300], ref[:300], fe.RandomFourierFeatures(dim=196, features=60, sigma=3.0)


def test_a_missing_digit_is_the_first_under_represented_mode(comparison, thinned):
    _, _, _, ref_labels = thinned
    mode = comparison.under[0]
    assert (ref_labels[mode.top_ref[:25]] == 0).mean() >= 0.96
    assert mode.p_value < 0.01
    assert mode.interval[0] > 0
    assert mode.ratio < 0.6


def test_modes_are_sorted_by_significance_and_difference_and_consistent(comparison):
    for modes in (comparison.over, comparison.under):
        ranks = [(mode.p_value > 0.05, -abs(mode.share_difference)) for mode in modes]
        assert ranks == sorted(ranks)
        # Those that are not significant have at least a share and a held-out excess of their role.
        assert all(
            mode.excess > 0 and mode.share_difference * sign > 0
            for mode in modes
            if mode.p_value > 0.05
            for sign in [1 if mode.role == "over" else -1]
        )
    for mode in comparison.over:
        assert mode.excess == pytest.approx(mode.mass_gen - mode.mass_ref)
        assert mode.interval[0] < mode.excess < mode.interval[1]
        assert np.linalg.norm(mode.direction) == pytest.approx(1, abs=1e-5)
    for mode in comparison.under:
        assert mode.excess == pytest.approx(mode.mass_ref - mode.mass_gen)


def test_masses_of_tight_clusters_are_their_shares():
    rng = np.random.default_rng(0)
    centers = 10 * np.eye(8)
    shares_gen = np.array([0.30, 0.20, 0.02, 0.08, 0.10, 0.10, 0.10, 0.10])
    shares_ref = np.array([0.10, 0.10, 0.20, 0.20, 0.10, 0.10, 0.10, 0.10])

    def draw(shares, n):
        return (centers[rng.choice(8, n, p=shares)] + 0.1 * rng.standard_normal((n, 8))).astype(np.float32)

    sets = {"gen": draw(shares_gen, 1600), "ref": draw(shares_ref, 1800)}
    found = fe.compare(**sets, sigma=3.0, features=100, method=DIRECTIONS)
    # Directions within a cluster differ too, by its share times its small spread.
    large = [mode for mode in significant(found.directions, 0.05) if mode.excess > 0.01]
    assert [mode.role for mode in large] == ["over", "over", "under", "under"]
    for mode, cluster in zip(large, (0, 1, 2, 3), strict=True):
        assert mode.mass_gen == pytest.approx(shares_gen[cluster], abs=0.03)
        assert mode.mass_ref == pytest.approx(shares_ref[cluster], abs=0.03)
        assert mode.interval[0] <= abs(shares_gen - shares_ref)[cluster] <= mode.interval[1]
        assert mode.stability > 0.95


def test_top_samples_are_those_that_score_highest(comparison, thinned):
    gen = thinned[0]
    scores = comparison.score(gen)
    assert scores.shape == (len(gen), len(comparison.directions))
    for column, mode in enumerate(comparison.over):
        best = scores[mode.top_gen, column]
        assert len(best) == 50
        assert (np.diff(best) < 2e-5).all()
        assert best[-1] >= np.sort(scores[:, column])[-50] - 2e-5
        np.testing.assert_allclose(best, mode.tails[0].gen_scores, atol=2e-5)


def test_the_first_side_of_a_mode_is_positive_and_carries_most_of_the_excess(comparison, thinned):
    gen, ref, _, _ = thinned
    for rows, tops in ((gen, lambda tail: tail.gen), (ref, lambda tail: tail.ref)):
        scores = comparison.score(rows, comparison.under)
        for column, mode in enumerate(comparison.under):
            positive, negative = mode.tails
            assert positive.share + negative.share == pytest.approx(1)
            assert positive.share >= negative.share
            assert (scores[tops(positive), column] > 0).all()
            assert (scores[tops(negative), column] < 0).all()
            assert scores[tops(negative), column][0] == scores[:, column].min()


def test_equal_samples_rank_in_the_order_of_the_set(few):
    gen, ref, _ = few
    repeated = np.concatenate([ref, ref])
    mode = fe.compare(gen=repeated, ref=gen, features=100, method=DIRECTIONS).over[0]
    assert (mode.top_gen[::2] + len(ref) == mode.top_gen[1::2]).all()


def test_every_mode_has_a_name_of_its_own(comparison, digits):
    x = digits[0]
    assert len({mode.id for mode in comparison.directions}) == len(comparison.directions) > 5
    # Raw eigenvectors of few samples often share their best one; none may get lost for that.
    raw = fe.compare(gen=x[:100], ref=x[100:200], features=50, modes=40, method=fe.Finc(rotation=None))
    for modes in (raw.over, raw.under):
        assert len({mode.id for mode in modes}) == len(modes) > 5


def test_swapping_the_sets_swaps_the_roles(few):
    gen, ref, phi = few
    # One feature map for both, so that the difference only changes its sign.
    a, b = fe.Sketch.of(gen, phi), fe.Sketch.of(ref, phi)
    forward, backward = fe.compare(gen=a, ref=b, method=DIRECTIONS), fe.compare(gen=b, ref=a, method=DIRECTIONS)
    assert forward.over
    for mine, other in zip(forward.over, backward.under, strict=True):
        assert mine.excess == pytest.approx(other.excess, abs=1e-5)
        assert mine.mass_gen == pytest.approx(other.mass_ref, abs=1e-5)


def test_sketches_alone_give_the_same_modes_with_wider_intervals(comparison, thinned):
    gen, ref, _, _ = thinned
    phi = comparison.feature_map
    from_sketches = fe.compare(gen=fe.Sketch.of(gen, phi), ref=fe.Sketch.of(ref, phi), method=DIRECTIONS)
    found = {mode.id: mode for mode in from_sketches.directions}
    # What embeddings show to be left of a kind is not significant from sketches, and stays in the list.
    others = found.keys() - {mode.id for mode in comparison.directions}
    assert len(found) - len(others) == len(comparison.directions) and all(found[one].p_value > 0.05 for one in others)
    for sharp in comparison.directions:
        mine = found[sharp.id]
        assert abs(float(mine.direction @ sharp.direction)) > 0.999
        assert mine.excess == pytest.approx(sharp.excess, abs=1e-5)
        assert mine.interval[0] < sharp.interval[0] < sharp.interval[1] < mine.interval[1]
    assert "se:conservative" in str(from_sketches.signature)
    assert comparison.signature.differences(from_sketches.signature)


def test_a_set_against_itself_has_no_modes(digits):
    x = digits[0][:200, ::4]
    same = fe.compare(gen=x, ref=x, features=60)
    assert same.over == same.under == same.significant() == same.headings == ()
    assert [kind.share_difference for kind in same.kinds] == [0] * len(same.kinds)
    assert same.score(x[:3]).shape == (3, 0)


@pytest.mark.long
def test_a_high_rho_is_passed_only_by_what_is_really_new(thinned):
    gen, ref, _, _ = thinned
    strict = fe.compare(gen=gen, ref=ref, rho=5.0, features=100)
    assert strict.significant() == significant(strict.directions, 0.05) == ()
    for mode in strict.over:
        assert mode.excess == pytest.approx(mode.mass_gen - 5 * mode.mass_ref)


def test_raw_eigenvectors_come_in_the_order_of_their_eigenvalues(few):
    gen, ref, _ = few
    raw = fe.compare(gen=gen, ref=ref, features=150, method=fe.Finc(rotation=None, clusters=False))
    found = [mode.fitted_excess for mode in raw.over]
    assert found == sorted(found, reverse=True) and len(found) > 3
    # Those without an excess in held-out data are left out.
    gaps = np.abs(np.subtract.outer(found, raw.spectrum.over[:10]))
    assert gaps.min(1).max() < 1e-5 and len(set(gaps.argmin(1))) == len(found)


def test_the_order_of_the_samples_changes_nothing_but_the_indices(few):
    gen, ref, phi = few

    def sketch(rows, prefix, order):
        result = fe.Sketch(phi)
        result.update(rows[order], [f"{prefix}{i}" for i in order])
        return result

    rng = np.random.default_rng(0)
    results = [
        fe.compare(gen=sketch(gen, "g", g), ref=sketch(ref, "r", r), method=DIRECTIONS)
        for g, r in ((np.arange(len(gen)), np.arange(len(ref))), (rng.permutation(len(gen)), rng.permutation(len(ref))))
    ]
    assert [m.id for m in results[0].directions] == [m.id for m in results[1].directions] != []
    for mine, other in zip(results[0].directions, results[1].directions, strict=True):
        assert mine.excess == pytest.approx(other.excess, abs=1e-5)


def test_a_comparison_comes_back_from_its_file_and_has_a_json_twin(comparison, thinned, tmp_path):
    gen = thinned[0]
    comparison.save(tmp_path / "c.h5")
    loaded = fe.load(tmp_path / "c.h5")
    assert loaded.to_dict() == comparison.to_dict()
    # What is loaded computes on the CPU, and a GPU sums in another order.
    np.testing.assert_allclose(loaded.score(gen[:20]), comparison.score(gen[:20]), atol=1e-6)
    twin = json.loads((tmp_path / "c.json").read_text())
    assert twin == json.loads(comparison.to_json())
    assert twin["layout"] == LAYOUT
    assert twin["signature"] == str(comparison.signature)
    assert twin["over"][0]["excess"] == comparison.over[0].excess


def test_arrays_tensors_and_halves_of_precision_agree(thinned):
    (gen, ref), options = (rows[:80] for rows in thinned[:2]), {"features": 20, "method": DIRECTIONS}
    reference = fe.compare(gen=gen, ref=ref, **options)
    for convert in (torch.from_numpy, lambda a: a.astype(np.float64), lambda a: a.tolist()):
        other = fe.compare(gen=convert(gen), ref=convert(ref), **options)
        assert other.over[0].excess == pytest.approx(reference.over[0].excess, abs=1e-6)
        assert other.signature == reference.signature


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gen": np.zeros((0, 4), np.float32)}, r"gen must be embeddings of shape \(n, d\), got shape \(0, 4\)"),
        ({"gen": np.ones((3, 9, 8, 8, 3), np.uint8)}, r"got shape \(3, 9, 8, 8, 3\): embed images or clips first"),
        ({"gen": np.ones((5, 4), np.float32)}, "gen has 5 samples: a comparison needs at least 20"),
        ({"gen": np.ones((30, 5), np.float32)}, "gen has 5 entries per embedding and ref 4"),
        ({"gen": np.ones((30, 4), np.uint8)}, "floating-point"),
        ({"gen": "no/such/file.h5"}, "no/such/file.h5"),
        ({"gen": object()}, "gen must be"),
        ({"rho": 0.0}, "rho must be a positive number, got 0.0"),
        ({"rho": float("nan")}, "rho must be"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"modes": 0}, "modes must be"),
        ({"method": "kmeans"}, "method must be one of finc, clusters, ken, rarity, fld"),
    ],
)
def test_bad_input_is_one_clear_sentence(digits, arguments, message):
    rows = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    with pytest.raises(fe.FincEvalError, match=message):
        fe.compare(**{"gen": rows, "ref": rows[::-1].copy(), "features": 50, **arguments})


@pytest.mark.parametrize(
    ("name", "asked", "stored"),
    [("sigma", 5.0, 6.0), ("kernel", "cosine", "gaussian"), ("features", 40, 50), ("frequencies", "iid", "orthogonal")],
)
def test_a_sketch_refuses_another_feature_map(digits, name, asked, stored):
    phi = fe.RandomFourierFeatures(dim=784, features=50, sigma=6.0)
    sketch = fe.Sketch.of(digits[0][:100], phi)
    with pytest.raises(fe.UsageError, match=f"{name} {asked} was asked for, but the sketch was made with {stored}"):
        fe.compare(gen=sketch, ref=sketch, **{name: asked})


def test_a_sketch_without_frequencies_asks_for_none(digits):
    sketch = fe.Sketch.reference(digits[0][:60, 300:340] + 1, kernel="cosine")
    rows = digits[0][60:120, 300:340] + 1
    assert fe.compare(rows, sketch, features=50, modes=2, method=DIRECTIONS).settings.kernel == "cosine"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cpu_and_gpu_agree(thinned):
    gen, ref, _, _ = thinned
    cpu, gpu = (fe.compare(gen=gen, ref=ref, features=500, run=fe.Run(device=device)) for device in ("cpu", "cuda"))
    assert [m.id for m in cpu.directions] == [m.id for m in gpu.directions]
    for mine, other in zip(cpu.directions, gpu.directions, strict=True):
        assert mine.excess == pytest.approx(other.excess, abs=1e-4)


def test_a_generator_that_repeats_itself_is_noted(tmp_path):
    images = shipped_digits()[0]
    few = images[np.random.default_rng(0).integers(0, 20, 120)]
    gen, ref = (
        fe.extract(gray(part[:, ::2, ::2]), "pixels", tmp_path / f"{name}.h5")
        for name, part in (("few", few), ("ref", images[2000:2120]))
    )
    notes = " ".join(fe.compare(gen, ref, features=20, modes=2, method=DIRECTIONS).warnings)
    assert "gen repeats itself: 20 distinct samples among 120, which count as they come" in notes
    assert "ref has only" not in notes
