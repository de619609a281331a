"""Modes by the baselines: what they propose becomes directions, and all else is as for FINC."""

import numpy as np
import pytest
import torch
from _stored import made_once

import finc_eval as fe
from finc_eval.baselines.ken import ken
from finc_eval.comparison import fits as expansions
from finc_eval.comparison.fits import KernelExpansion, constant_features, fld_expansion, ken_expansion, unit_vectors
from finc_eval.comparison.settings import Finc, Fld, Rarity, methods_of
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.feature_maps.base import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.inference import holm, significant

BASELINES = ("ken", "rarity", "fld")


def clusters(counts, seed, dim=12):
    """Samples of as many tight kinds as there are counts, and the kind of each, in a random order."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return (6 * np.eye(len(counts), dim)[kinds] + rng.standard_normal((len(kinds), dim))).astype(np.float32), kinds


@pytest.fixture(scope="module")
def planted():
    """Kinds 0 and 1 are in gen alone, kind 5 in ref alone."""
    return *clusters((60, 60, 130, 130, 130, 0), 1), *clusters((0, 0, 130, 130, 130, 120), 2)


@pytest.fixture(scope="module")
def found(planted, tmp_path_factory):
    gen, _, ref, _ = planted

    def make(_):
        return {name: fe.compare(gen, ref, method=name, features=100, modes=4) for name in BASELINES}

    return made_once(tmp_path_factory, "digits by baselines", make)


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", ("rarity", "fld"))
def test_clusters_of_novel_samples_are_the_planted_kinds(found, planted, name):
    _, gen_kinds, _, ref_kinds = planted
    over = found[name].over[:2]
    assert {tuple(np.unique(gen_kinds[mode.top_gen[:40]])) for mode in over} == {(0,), (1,)}
    assert all(mode.p_value < 1e-6 and mode.interval[0] > 0 and mode.stability > 0.8 for mode in over)
    assert (ref_kinds[found[name].under[0].top_ref] == 5).all()


def test_kens_modes_are_the_planted_kinds_or_mixtures_of_them(found, planted):
    _, gen_kinds, _, ref_kinds = planted
    for mode in found["ken"].over[:2]:
        for tail in mode.tails:
            assert set(gen_kinds[tail.gen[:20]]) <= {0, 1} or tail.share < 0.2
        assert mode.p_value < 1e-6
    assert (ref_kinds[found["ken"].under[0].top_ref] == 5).all()


@pytest.mark.parametrize("name", BASELINES)
def test_a_mode_of_a_baseline_is_consistent_in_itself(found, planted, name):
    gen, _, ref, _ = planted
    result = found[name]
    for mode in result.over:
        assert mode.excess == pytest.approx(mode.mass_gen - mode.mass_ref)
        assert np.linalg.norm(mode.direction) == pytest.approx(1, abs=1e-5)
        scores = [result.score(one, [mode]).astype(np.float64) for one in (gen, ref)]
        assert mode.fitted_excess == pytest.approx(np.mean(scores[0] ** 2) - np.mean(scores[1] ** 2), abs=1e-5)
        assert 0 <= mode.stability <= 1
    assert result.signature.metric == name


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", BASELINES)
def test_halves_of_one_set_have_no_direction_of_a_baseline_once_all_are_adjusted_for(digits, name, monkeypatch):
    sets, families = (digits[0][:200, ::4], digits[0][200:400, ::4]), []
    monkeypatch.setattr("finc_eval.comparison.assemble.holm", lambda *one: families.append(one) or holm(*one))
    found = fe.compare(*sets, method=name, features=50, modes=3)
    assert found.directions and significant(found.directions, 0.05) == ()
    ((p_values, part),) = families
    assert len(p_values) >= len(found.directions)
    adjusted = holm(p_values, part).tolist()
    assert all(one.p_value in adjusted for one in found.directions)


@pytest.mark.long
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_rarely_finds_anything_in_two_halves_of_one_set(digits, name):
    rows, false = digits[0][:, ::4], 0
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(rows))[:400]
        one, other = rows[order[:200]], rows[order[200:]]
        found = fe.compare(one, other, method=name, features=50, modes=3, seed=seed)
        false += bool(significant(found.directions, 0.05))
    assert false <= 1


def test_each_half_of_the_samples_is_scored_by_what_the_other_half_proposes(planted, monkeypatch):
    gen, _, ref, _ = planted
    seen = []

    def spy(x, y, **options):
        seen.append((set(x.ids_between(0, x.n)), set(y.ids_between(0, y.n))))
        return rarity_expansion(x, y, **options)

    rarity_expansion = expansions.rarity_expansion
    monkeypatch.setattr(expansions, "rarity_expansion", spy)
    fe.compare(gen, ref, method="rarity", features=50, modes=3)
    whole, even, odd = seen[:3]  # of the first role
    for k, n in enumerate((len(gen), len(ref))):
        assert len(whole[k]) == n
        assert even[k] | odd[k] == whole[k] and not even[k] & odd[k]
    assert len(seen) == 6


# --- projections ----------------------------------------------------------------------------------------------


def test_projected_eigenfunctions_score_as_the_exact_ones(digits):
    x, y = digits[0][:200] * 0.7, digits[0][200:400]
    phi = RandomFourierFeatures(784, 2000, sigma=8.0)
    exact = ken_expansion(as_embeddings(x), as_embeddings(y), phi=phi, rho=1.0, count=5)
    samples = torch.from_numpy(np.concatenate([x, y]))
    of_kernel = phi.exact(samples.double(), exact.samples) @ exact.coefficients
    of_features = phi(samples) @ unit_vectors(exact.directions(phi), None)
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(of_kernel.T, of_features.T, strict=True)]
    assert min(correlations) > 0.95
    assert correlations[0] > 0.99


def test_with_an_exact_feature_map_the_projection_is_exact():
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((80, 10)).astype(np.float32)) for _ in range(2))
    phi = CosineFeatures(10)
    found = ken(x, y, phi.exact, count=3)
    expansion = ken_expansion(as_embeddings(x), as_embeddings(y), phi=phi, rho=1.0, count=3)
    vectors = unit_vectors(expansion.directions(phi), None)
    torch.testing.assert_close(phi(x) @ vectors, found.scores_x.float(), rtol=0, atol=1e-3)
    difference = (phi(x).T @ phi(x) - phi(y).T @ phi(y)) / 80
    torch.testing.assert_close(difference @ vectors, vectors * found.eigenvalues.float(), rtol=0, atol=1e-4)


def test_a_kernel_mean_is_the_mean_of_the_features_at_right_angles_to_the_other_sets_mean():
    samples = torch.randn(5000, 3, generator=torch.Generator().manual_seed(0))
    phi = RandomFourierFeatures(3, 20, sigma=1.0)
    coefficients = torch.zeros(5000, 2, dtype=torch.double)
    coefficients[:10, 0] = 1
    coefficients[4990:, 1] = 1
    sums = KernelExpansion(samples, coefficients).directions(phi)
    torch.testing.assert_close(sums[:, 0].float(), phi(samples[:10]).sum(0))
    torch.testing.assert_close(sums[:, 1].float(), phi(samples[4990:]).sum(0))
    mean = phi(samples).double().mean(0)
    vectors = unit_vectors(sums, mean)
    torch.testing.assert_close(mean.float() @ vectors, torch.zeros(2), rtol=0, atol=1e-6)
    torch.testing.assert_close(vectors.norm(dim=0), torch.ones(2))
    assert torch.equal(unit_vectors(torch.zeros(4, 1, dtype=torch.double), None), torch.zeros(4, 1))


def test_fld_leaves_constant_features_out_and_says_so(planted):
    gen, _, ref, _ = planted
    padded = [
        np.concatenate([one, np.full((len(one), 3), value, np.float32)], 1) for one, value in ((gen, 1), (ref, 0))
    ]
    np.testing.assert_array_equal(np.flatnonzero(constant_features(as_embeddings(padded[1]))), [12, 13, 14])
    with_, without = (
        fld_expansion(as_embeddings(x), as_embeddings(y), method=Fld(), clusters=3) for x, y in (padded, (gen, ref))
    )
    torch.testing.assert_close(with_.coefficients, without.coefficients)
    result = fe.compare(*padded, method="fld", features=20, modes=2)
    assert "3 of the 15 features are constant in one of the sets, and FLD leaves them out there" in result.warnings


def test_a_subset_has_the_rows_and_the_entries_asked_for():
    rows = np.arange(24, dtype=np.float32).reshape(6, 4)
    part = Subset(as_embeddings(rows), np.array([4, 1, 3]), np.array([2, 0]), "half")
    assert (part.n, part.dim, part.name) == (3, 2, "half")
    whole = torch.cat([batch.rows for batch in part.batches(2)])
    np.testing.assert_array_equal(whole, rows[[4, 1, 3]][:, [2, 0]])
    assert part.ids_at(np.array([2, 0])) == ("3", "4") and part.ids_between(1, 3) == ["1", "3"]


# --- results --------------------------------------------------------------------------------------------------


def test_the_signature_names_the_method_and_what_it_was_asked_for(found, planted):
    gen, _, ref, _ = planted
    assert dict(found["rarity"].signature.fields)["novel"] == "0.3"
    assert dict(found["rarity"].signature.fields)["neighbors"] == "3"
    assert "rotation" not in dict(found["ken"].signature.fields)
    other = fe.compare(gen, ref, method=Rarity(novel=0.2, neighbors=5), features=100, modes=2)
    assert other.signature.differences(found["rarity"].signature) == ["novel: 0.2 and 0.3", "neighbors: 5 and 3"]
    for name in ("ken", "fld"):
        with pytest.raises(FincEvalError, match="do not compare"):
            found[name].signature.check_comparable(found["rarity"].signature)


@pytest.mark.parametrize("name", BASELINES)
def test_a_comparison_by_a_baseline_is_saved_and_shown(found, tmp_path, name):
    found[name].save(tmp_path / "c.h5")
    again = fe.Comparison.load(tmp_path / "c.h5")
    assert again.settings == found[name].settings and again.to_dict() == found[name].to_dict()
    page = found[name].to_html(tmp_path / "c.html").read_text()
    assert ("Leading eigenvalues" in page) == (name == "ken")
    assert "<dt>Rotation</dt>" not in page and {"ken": "KEN", "rarity": "Rarity", "fld": "FLD"}[name] in page


def test_swapped_sets_swap_the_roles(planted):
    gen, _, ref, _ = planted
    # The cosine kernel depends on no reference.
    how = {"method": "rarity", "kernel": "cosine", "modes": 2}
    forward, backward = fe.compare(gen, ref, **how), fe.compare(ref, gen, **how)
    for one, other in ((forward.over, backward.under), (forward.under, backward.over)):
        assert [mode.excess for mode in one] == pytest.approx([mode.excess for mode in other], abs=1e-6)


# --- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "rarty"}, r'one of finc, clusters, ken, rarity, fld, got \'rarty\' \(did you mean "rarity"\?\)'),
        ({"novel": 0.2}, r"novel is an option of Rarity and Fld: pass method=fe.Rarity\(novel=0.2\)"),
        ({"method": "fld", "neighbors": 4}, r"neighbors is an option of Rarity: pass method=fe.Rarity\(neighbors=4\)"),
        ({"method": Rarity(neighbors=300)}, "half of ref has .* samples, too few for 300 neighbors"),
        (
            {"method": "rarity", "modes": 1},
            "rarity makes a direction of each cluster and needs at least 2 of them, got 1",
        ),
        ({"method": Fld(novel=0.01)}, "fld finds [123] of the .* too few for 10 clusters"),
    ],
)
def test_what_a_method_cannot_do_is_one_clear_sentence(planted, arguments, message):
    gen, _, ref, _ = planted
    with pytest.raises(FincEvalError, match=message):
        fe.compare(gen, ref, features=30, **arguments)


@pytest.mark.parametrize("name", BASELINES)
def test_sketches_are_refused_where_embeddings_are_needed(planted, name):
    gen, _, ref, _ = planted
    phi = fe.Sketch.reference(ref, features=30).feature_map
    with pytest.raises(FincEvalError, match="ken, rarity and fld need embeddings, and gen is a sketch"):
        fe.compare(fe.Sketch.of(gen, phi), ref, method=name)
    with pytest.raises(FincEvalError, match="need embeddings, and ref is a sketch"):
        fe.compare(gen, fe.Sketch.of(ref, phi), method=name)


@pytest.mark.parametrize("name", BASELINES)
def test_a_row_that_is_not_finite_is_named(planted, name):
    gen, _, ref, _ = planted
    broken = gen.copy()
    broken[7, 3] = np.nan
    with pytest.raises(FincEvalError, match="row 7 is not finite"):
        fe.compare(broken, ref, method=name, features=30)


def test_ken_says_how_many_samples_it_can_bear(planted, monkeypatch):
    gen, _, ref, _ = planted
    monkeypatch.setattr("finc_eval.baselines.ken.MAX_EXACT_KEN_SAMPLES", 1000)
    with pytest.raises(FincEvalError, match=r"kernel matrix of all 1,020 samples.*subsets of at most 1,000"):
        fe.compare(gen, ref, method="ken", features=30)


def test_fld_needs_samples_to_split_and_features_that_vary():
    rows, same = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32), np.ones((200, 4), np.float32)
    with pytest.raises(FincEvalError, match="all samples of embeddings are the same, which FLD cannot standardize"):
        fld_expansion(as_embeddings(rows), as_embeddings(same), method=Fld(), clusters=3)
    for n, told in ((1, "1 sample"), (2, "2 samples")):
        with pytest.raises(FincEvalError, match=f"ref has {told}, too few for FLD"):
            fld_expansion(as_embeddings(rows), as_embeddings(same[:n], "ref"), method=Fld(), clusters=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rarity(novel=0.0), "novel must lie between 0 and 1, got 0"),
        (lambda: Fld(novel=1.5), "novel must lie between 0 and 1, got 1.5"),
        (lambda: Rarity(novel=float("nan")), "novel must lie between 0 and 1, got nan"),
        (lambda: Rarity(neighbors=0), "neighbors must be a whole number of at least 1, got 0"),
    ],
)
def test_parameters_of_a_method_out_of_range_are_refused(make, message):
    with pytest.raises(fe.UsageError, match=message):
        make()


def test_methods_are_named_once_each():
    assert methods_of(["finc", Rarity(novel=0.2), "fld"]) == (Finc(clusters=False), Rarity(0.2, 3), Fld(0.3))
    assert methods_of(Finc(rotation=None)) == (Finc(rotation=None, clusters=False),)
    with pytest.raises(fe.UsageError, match="'ken' is named twice"):
        methods_of(["ken", "finc", "ken"])
