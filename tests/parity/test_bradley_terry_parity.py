"""Strengths by votes are those of choix, and with ties those of statsmodels' log-linear form of Davidson's model."""

import numpy as np
import pytest

from finc_eval.judges.bradley_terry import LEFT, RIGHT, TIE, fit_strengths


def drawn(models, votes, tie, seed):
    rng = np.random.default_rng(seed)
    strengths = rng.normal(size=models)
    left = rng.integers(0, models, votes)
    right = (left + rng.integers(1, models, votes)) % models
    a, b = strengths[left], strengths[right]
    logits = np.stack([a, b, np.full(votes, tie) + (a + b) / 2], 1)
    return left, right, (logits + rng.gumbel(size=logits.shape)).argmax(1)


@pytest.mark.parametrize(("models", "votes"), [(3, 60), (8, 900)])
def test_without_ties_strengths_are_those_of_choix(models, votes):
    choix = pytest.importorskip("choix", reason="choix is missing: pip install .[test]")
    left, right, outcome = drawn(models, votes, -1e9, 1)
    pairs = [(a, b) if won == LEFT else (b, a) for a, b, won in zip(left, right, outcome, strict=True)]
    theirs = choix.ilsr_pairwise(models, pairs, alpha=0, tol=1e-12, max_iter=2000)
    assert np.allclose(fit_strengths(left, right, outcome, models).strengths, theirs, atol=1e-6)


@pytest.mark.parametrize(("models", "votes"), [(3, 90), (6, 800)])
def test_with_ties_strengths_and_errors_are_those_of_statsmodels(models, votes):
    glm = pytest.importorskip("statsmodels.api", reason="statsmodels is missing: pip install .[test]")
    left, right, outcome = drawn(models, votes, -0.3, 2)
    # Counts of the outcomes of a pair are Poisson, with a level of each pair (Fienberg 1979).
    pairs = sorted({(a, b) for a, b in zip(left, right, strict=True)})
    rows, counts = [], []
    for place, (a, b) in enumerate(pairs):
        own = (left == a) & (right == b)
        for result, slope in ((LEFT, (1, 0)), (RIGHT, (0, 1)), (TIE, (0.5, 0.5))):
            row = np.zeros(models + 1 + len(pairs))
            row[a], row[b], row[models], row[models + 1 + place] = *slope, float(result == TIE), 1
            rows.append(row[1:])  # the first model has strength 0
            counts.append((own & (outcome == result)).sum())
    found = glm.GLM(counts, np.array(rows), family=glm.families.Poisson()).fit(tol=1e-12, maxiter=200)
    theirs = np.append(0, found.params[: models - 1])
    ours = fit_strengths(left, right, outcome, models)
    assert np.allclose(ours.strengths, theirs - theirs.mean(), atol=1e-6)
    assert ours.log_tie == pytest.approx(found.params[models - 1], abs=1e-6)
    center = np.eye(models) - 1 / models
    covariance = np.pad(found.cov_params()[: models - 1, : models - 1], ((1, 0), (1, 0)))
    assert np.allclose(ours.basis @ ours.inverse @ ours.basis.T, center @ covariance @ center, atol=1e-6)


@pytest.mark.parametrize("tie", [-1e9, -0.2])
def test_with_covariates_effects_and_errors_are_those_of_statsmodels(tie):
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models", reason="statsmodels is missing")
    models, votes, rng = 4, 250, np.random.default_rng(5)
    left, right, _ = drawn(models, votes, tie, 3)
    shown, strengths, effects = rng.normal(size=(2, votes, 2)), rng.normal(size=models), np.array([0.7, 0.0])
    a, b = (strengths[one] + own @ effects for one, own in zip((left, right), shown, strict=True))
    outcome = (np.stack([a, b, tie + (a + b) / 2], 1) + rng.gumbel(size=(votes, 3))).argmax(1)
    # Each vote is a choice among its outcomes (conditional logit); the first model has strength 0.
    rows = np.zeros((votes, 3, models + 3))
    for place, (model, own) in enumerate(zip((left, right), shown, strict=True)):
        rows[np.arange(votes), place, model] = 1
        rows[:, place, models : models + 2] = own
    rows[:, TIE] = (rows[:, LEFT] + rows[:, RIGHT]) / 2
    rows[:, TIE, -1] = 1
    kept = 3 if tie > -10 else 2
    columns = [*range(1, models + 2)] + [models + 2] * (kept == 3)
    chosen = np.arange(3)[None, :kept] == outcome[:, None]
    found = conditional.ConditionalLogit(
        chosen.ravel().astype(int),
        rows[:, :kept][..., columns].reshape(votes * kept, -1),
        groups=np.repeat(np.arange(votes), kept),
    ).fit(method="newton", tol=1e-12, disp=0)
    ours = fit_strengths(left, right, outcome, models, shown[0] - shown[1])
    theirs = np.append(0, found.params[: models - 1])
    assert np.allclose(ours.strengths, theirs - theirs.mean(), atol=1e-6)
    assert np.allclose(ours.effects, found.params[models - 1 : models + 1], atol=1e-6)
    slopes, center = ours.design.slopes, np.eye(models) - 1 / models
    errors = np.sqrt(np.diag(slopes @ ours.inverse @ slopes.T))
    assert np.allclose(errors, found.bse[models - 1 : models + 1], atol=1e-6)
    covariance = np.pad(found.cov_params()[: models - 1, : models - 1], ((1, 0), (1, 0)))
    assert np.allclose(ours.basis @ ours.inverse @ ours.basis.T, center @ covariance @ center, atol=1e-6)
