"""Kernel affine hull machines: λ*, images, and models of classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from finc_eval.core.errors import FincEvalError
from finc_eval.private.kahm.element_noise import ElementNoise
from finc_eval.private.kahm.fabrication import fit_private_classes
from finc_eval.private.kahm.machine import fit_deep, fit_machine, kernel_matrix
from finc_eval.private.kahm.models import WideKahm, branch_members, fit_classes, fit_wide, matching_scores, precise_rows
from finc_eval.private.kahm.settings import KahmSettings

RAW, LABELS = load_digits(return_X_y=True)
DIGITS = torch.from_numpy(RAW / 16)


def of_class(label):
    return DIGITS[torch.from_numpy(label == LABELS)]


@pytest.mark.parametrize(("label", "golden"), [(0, 0.4501077794), (1, 0.5113462728), (2, 0.4791303451)])
def test_the_fixed_point_has_the_known_values(label, golden):
    assert fit_machine(of_class(label), KahmSettings(20)).lam == pytest.approx(golden, abs=1e-10)


def test_the_eigenvectors_solve_what_the_definition_says():
    rows, machine = of_class(3), fit_machine(of_class(3), KahmSettings(20))
    kernel, mean_square = kernel_matrix(machine.encoded), float(rows.square().mean())
    error, eye = machine.lam - 2 * mean_square, torch.eye(len(rows), dtype=torch.double)
    shrunk = torch.linalg.solve(eye + kernel / machine.lam, rows)
    assert float(shrunk.square().mean()) == pytest.approx(error, rel=1e-10)
    direct = torch.linalg.solve(kernel + machine.lam * eye, rows)
    torch.testing.assert_close(machine.solved, direct, atol=1e-10, rtol=0)


def test_images_are_the_weighted_samples_of_the_definition():
    rows, machine, x = of_class(0), fit_machine(of_class(0), KahmSettings(10)), of_class(1)[:7]
    z, eye = (x - rows.mean(0)) @ machine.encoder, torch.eye(len(rows), dtype=torch.double)
    torch.testing.assert_close(machine.encoded.T.cov(), torch.eye(10, dtype=torch.double), atol=1e-9, rtol=0)
    kernel = torch.exp(-torch.cdist(z, machine.encoded).square() / 20)
    h = torch.linalg.solve(kernel_matrix(machine.encoded) + machine.lam * eye, kernel.T).T
    torch.testing.assert_close(machine.images(x).points, h @ rows / h.sum(1, keepdims=True), atol=1e-9, rtol=0)


def test_a_machine_holds_its_samples_exactly():
    torch.testing.assert_close(fit_machine(of_class(4), KahmSettings(20)).samples(), of_class(4), atol=1e-12, rtol=0)


def test_images_turn_and_move_with_the_samples():
    rows, x = of_class(0), of_class(1)[:20]
    turn, _ = torch.linalg.qr(torch.randn(64, 64, dtype=torch.double, generator=torch.Generator().manual_seed(0)))
    given = KahmSettings(8, lam=0.3)
    here = fit_machine(rows, given).images(x).points
    there = fit_machine(rows @ turn + 5, given).images(x @ turn + 5).points
    torch.testing.assert_close(there, here @ turn + 5, atol=1e-8, rtol=0)


def test_the_scale_counts_through_lambda_alone():
    rows, x = of_class(0), of_class(1)[:20]
    scaled = fit_machine(0.01 * rows, KahmSettings(10))
    declared = fit_machine(rows, KahmSettings(10, lam=scaled.lam))
    torch.testing.assert_close(scaled.images(0.01 * x).points, 0.01 * declared.images(x).points, atol=1e-9, rtol=0)
    unit = fit_machine(rows / rows.square().mean().sqrt(), KahmSettings(10))
    assert 2 < unit.lam < 3
    assert fit_machine(rows, KahmSettings(10, lam=("relative", 2.0))).lam == pytest.approx(
        2 * float(rows.square().mean())
    )


def test_far_queries_have_images_where_the_kernel_itself_is_zero():
    machine = fit_machine(of_class(0), KahmSettings(20))
    images, _, poles = machine.images(machine.mean + 1000 * (machine.samples()[:50] - machine.mean))
    assert images.isfinite().all() and not poles.any()


def test_distances_do_not_depend_on_batches(monkeypatch):
    from finc_eval.private.kahm import models as kahm_models

    model = fit_wide(of_class(0), KahmSettings(10, depth=2))
    whole = model.distances(DIGITS[:100]).values
    monkeypatch.setattr(kahm_models, "MAX_BATCH_ENTRIES", 3 * (64 + model.n))
    np.testing.assert_allclose(model.distances(DIGITS[:100]).values, whole, rtol=1e-12)


def test_float32_samples_give_nearly_the_same_distances():
    precise, coarse = (fit_wide(rows, KahmSettings(10)) for rows in (of_class(0), of_class(0).float()))
    np.testing.assert_allclose(
        coarse.distances(DIGITS[:50].float()).values, precise.distances(DIGITS[:50]).values, rtol=1e-5
    )


def test_more_entries_than_samples_give_the_same_machine():
    rows = of_class(0)[:40]  # 64 entries: the Gram matrix is the smaller one
    padded = torch.cat([rows, torch.zeros(40, 1)], 1)
    wide, narrow = fit_machine(rows, KahmSettings(10)), fit_machine(torch.cat([rows, rows]), KahmSettings(10))
    assert wide.components == narrow.components == 10
    torch.testing.assert_close(
        fit_machine(padded, KahmSettings(10, lam=0.4)).images(padded).points[:, :64],
        fit_machine(rows, KahmSettings(10, lam=0.4)).images(rows).points,
        atol=1e-8,
        rtol=0,
    )


@pytest.mark.parametrize(
    ("rows", "components"),
    [(of_class(0)[:1], 0), (of_class(0)[:1].repeat(7, 1) * 0.1, 0), (of_class(0)[:5], 4), (torch.zeros(3, 4), 0)],
    ids=["one sample", "copies of one", "fewer samples than components", "zeros"],
)
def test_few_or_equal_samples_have_as_many_components_as_directions(rows, components):
    machine = fit_machine(rows, KahmSettings(20))
    assert machine.components == components
    assert machine.images(rows).points.isfinite().all()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (DIGITS[:50, 18:22], "components is 5, but 25 samples of 4 entries have at most 4: a model of them has these"),
        (DIGITS[:6], "components is 5, but 3 samples of 64 entries have at most 2: a model of them has these"),
    ],
    ids=["few entries", "few samples"],
)
def test_components_that_samples_do_not_have_are_told(rows, told):
    labels = np.arange(len(rows)) % 2
    with pytest.warns(UserWarning, match=told) as found:
        models = fit_classes(rows, labels, KahmSettings(5))
    assert len(found) == 1
    assert {branch[0].components for model in models.models.values() for branch in model.branches} == {
        int(told.split("at most ")[1][0])
    }
    with pytest.warns(UserWarning, match=told):
        fit_private_classes(rows, labels, ElementNoise(8), KahmSettings(5))


def test_the_image_of_one_sample_is_that_sample():
    machine = fit_machine(of_class(0)[:1], KahmSettings(20))
    torch.testing.assert_close(machine.images(DIGITS[:5]).points, of_class(0)[:1].expand(5, -1), atol=1e-12, rtol=0)


def test_duplicates_and_constant_columns_change_nothing_but_their_weight():
    rows = of_class(0)
    constant = torch.cat([rows, torch.full((len(rows), 3), 7.0)], 1)
    machine = fit_machine(constant, KahmSettings(10, lam=0.4))
    plain = fit_machine(rows, KahmSettings(10, lam=0.4))
    images = machine.images(constant).points
    torch.testing.assert_close(images[:, :64], plain.images(rows).points, atol=1e-8, rtol=0)
    torch.testing.assert_close(images[:, 64:], constant[:, 64:], atol=1e-8, rtol=0)
    assert fit_machine(torch.cat([rows, rows]), KahmSettings(10)).images(rows).points.isfinite().all()


def test_deep_models_take_the_nearest_of_the_images_of_images():
    layers = fit_deep(of_class(0), KahmSettings(10, depth=3))
    assert [machine.components for machine in layers] == [10, 9, 8]
    x, image, distances = DIGITS[:30], DIGITS[:30], []
    for machine in layers:
        image = machine.images(image).points
        distances.append((x - image).norm(dim=1))
    expected = torch.stack(distances).amin(0).numpy()
    np.testing.assert_allclose(WideKahm((layers,)).distances(x).values, expected, rtol=1e-12)


def test_wide_models_have_a_branch_for_every_thousand_samples(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2300, 3)) + np.repeat([[0, 0, 0], [20, 0, 0], [0, 20, 0]], [800, 800, 700], axis=0)
    model = fit_wide(rows, KahmSettings(3))
    assert sorted(layers[0].n for layers in model.branches) == [700, 800, 800]
    from finc_eval.private.kahm import models as kahm_models

    monkeypatch.setattr(kahm_models, "MAX_CLUSTERED", 500)
    assert sorted(layers[0].n for layers in fit_wide(rows, KahmSettings(3)).branches) == [700, 800, 800]


def test_small_clusters_join_the_nearest():
    rows = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), [[9.0, 9.0]], [[9.1, 9.0]], [[-30.0, 0.0]]])
    parts = branch_members(precise_rows(rows, "rows"), KahmSettings(4, branches=4))
    assert min(map(len, parts)) >= 5 and sorted(np.concatenate(parts)) == list(range(63))


def test_a_small_cluster_joins_the_nearest_of_several():
    """Three rows stand beside the third of three large clusters."""
    rng, centers = np.random.default_rng(0), np.array([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0]])
    large = rng.normal(size=(90, 2)) + centers.repeat(30, axis=0)
    parts = branch_members(
        precise_rows(np.r_[large, np.full((3, 2), 48.0) * [0, 1]], "rows"), KahmSettings(4, branches=4)
    )
    assert sorted(map(sorted, parts)) == [[*range(30)], [*range(30, 60)], [*range(60, 93)]]


def test_more_branches_than_distinct_samples_are_no_error():
    rows = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    assert fit_wide(rows, KahmSettings(1, branches=8)).n == 10


@pytest.mark.one_of_each
@pytest.mark.parametrize(("components", "accuracy"), [(10, 0.985), (20, 0.985)])
def test_digits_are_told_apart(components, accuracy):
    right = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(RAW, LABELS):
        models = fit_classes(DIGITS[train], LABELS[train], KahmSettings(components))
        right.append((models.predict(DIGITS[test]) == LABELS[test]).mean())
    assert np.mean(right) >= accuracy


def test_a_class_of_one_member_is_a_class():
    rows = torch.cat([of_class(0), of_class(1)[:1]])
    models = fit_classes(rows, [0] * len(of_class(0)) + [1], KahmSettings(10))
    assert models.predict(of_class(1)[:1]).tolist() == [1] and models.classes == (0, 1)


def test_matching_scores_rank_as_distances_do_and_are_defined_at_the_ends():
    distances = np.array([[1.0, 2.0, 2.0], [0, 0, 0], [1, np.inf, np.inf], [np.inf] * 3, [1e300, 2e300, 2e300]])
    scores = matching_scores(distances)
    np.testing.assert_allclose(scores[0], np.exp([-1 / 9, -4 / 9, -4 / 9]))
    np.testing.assert_allclose(scores[1], np.exp(-1 / 3))
    np.testing.assert_allclose(scores[2], [1, np.exp(-1 / 2), np.exp(-1 / 2)])
    np.testing.assert_allclose(scores[3], np.exp(-1 / 3))
    np.testing.assert_allclose(scores[4], scores[0])


@pytest.mark.gpu
def test_a_gpu_computes_the_same():
    here, there = (fit_classes(DIGITS, LABELS, KahmSettings(10), device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(
        there.distances(DIGITS[:300]).values, here.distances(DIGITS[:300]).values, rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: KahmSettings(0), "components must be a whole number of at least 1, got 0"),
        (lambda: KahmSettings(2, depth=3), "depth must be at most the 2 components"),
        (lambda: KahmSettings(branches=0), "branches must be a whole number of at least 1, got 0"),
        (lambda: KahmSettings(lam="fixed_pont"), r'got \'fixed_pont\' \(did you mean "fixed_point"'),
        (lambda: KahmSettings(lam=("relative", -1.0)), "positive number"),
        (lambda: KahmSettings(lam=0.0), "positive number"),
        (lambda: KahmSettings(lam=float("nan")), r"positive number\), got nan"),
        (lambda: fit_wide(np.full((3, 2), np.nan), KahmSettings()), "samples: row 0 is not finite"),
        (lambda: fit_wide(np.zeros((0, 2)), KahmSettings()), r"shape \(n, d\), got shape \(0, 2\)"),
        (
            lambda: fit_classes(np.ones((3, 2)), [0, 1], KahmSettings()),
            "3 samples came with 2 labels: pass one label per sample",
        ),
        (lambda: fit_wide(np.ones((3, 2)), KahmSettings()).distances(np.ones((1, 3))), "these samples have 3 entries"),
        (lambda: fit_wide(np.eye(3), KahmSettings()).distances([[1.0, 2.0, np.inf]]), "queries: row 0 is not finite"),
        (lambda: WideKahm.union([]), "must be at least one, got none"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, words):
    with pytest.raises(FincEvalError, match=words):
        call()
