"""Membership scores of distances: their null, their direction, and the attack."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from finc_eval import report
from finc_eval.core.errors import FincEvalError
from finc_eval.private.kahm.membership import MembershipScore, membership_score, nearest_distances
from finc_eval.private.kahm.models import fit_classes
from finc_eval.private.kahm.settings import KahmSettings

X, Y = load_digits(return_X_y=True)
X = X / 16


@pytest.fixture(scope="module")
def digit_models():
    order = np.random.default_rng(0).permutation(len(X))
    train, rest = order[:900], order[900:]
    return {n: (fit_classes(X[train], Y[train], KahmSettings(n)), X[train], X[rest]) for n in (3, 20)}


@pytest.mark.long
def test_members_are_nearer_to_a_model_that_follows_its_samples(digit_models):
    model, train, rest = digit_models[20]
    found = membership_score(nearest_distances(model, train), nearest_distances(model, rest), permutations=99)
    assert found.direction == "members nearer" and found.attack.auc > 0.8
    assert found.difference.p_value == 0.01 and found.difference.standardized > found.difference.threshold()


def test_the_score_grows_with_the_components(digit_models):
    scores = [
        membership_score(nearest_distances(m, a), nearest_distances(m, b), permutations=0).difference.standardized
        for m, a, b in digit_models.values()
    ]
    assert scores[1] > 2 * scores[0]


@pytest.mark.long
def test_fresh_samples_in_the_place_of_members_give_no_direction(digit_models):
    model, _, rest = digit_models[20]
    distances = nearest_distances(model, rest)
    found = membership_score(distances[::2], distances[1::2])
    assert found.direction == "neither" and found.difference.p_value > 0.01
    assert 0.45 < found.attack.auc < 0.55


def test_farther_members_are_called_farther():
    rng = np.random.default_rng(0)
    found = membership_score(rng.normal(3, 1, 300), rng.normal(1, 1, 300), permutations=0)
    assert found.direction == "members farther" and found.attack.auc < 0.2


def test_samples_without_a_distance_are_counted_and_stay_in_the_attack():
    rng = np.random.default_rng(0)
    members, others = rng.normal(size=50), np.append(rng.normal(size=50), [np.inf] * 50)
    found = membership_score(members, others, permutations=9)
    assert (found.undefined_members, found.undefined_non_members) == (0, 50)
    assert found.attack.auc > 0.7


def test_the_result_is_json_and_back_and_never_speaks_of_probability_or_privacy():
    rng = np.random.default_rng(0)
    found = membership_score(rng.normal(size=50), rng.normal(size=40), settings="n=20")
    written = found.to_dict()
    assert written["settings"] == "n=20" and written["threshold_95"] > 0 and written["direction"] == "neither"
    assert MembershipScore.from_dict(written).to_dict() == written
    for text in (str(found), found.to_json()):
        assert "probab" not in text.lower() and "privacy" not in text.lower()


def test_page_notebook_and_terminal_show_the_same_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    found = membership_score(rng.normal(size=50), rng.normal(1, 1, 40), permutations=9, settings="<n=20>")
    page = found.to_html(tmp_path / "score.html").read_text()
    report.show(found)
    for text in (page, found._repr_html_(), capsys.readouterr().out):
        assert f"{found.attack.auc:.3f}" in text and f"{found.difference.standardized:.3g}" in text
    assert "&lt;n=20&gt;" in page and "<n=20>" not in page


def test_too_few_distances_are_refused():
    with pytest.raises(FincEvalError, match="got 1 of members and 2 of non-members"):
        membership_score([1.0, np.inf], [1.0, 2.0])
