"""One classifier from the distances of several parties."""

from __future__ import annotations

import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from finc_eval.core.errors import FincEvalError
from finc_eval.private.kahm.classifier import KahmClassifier
from finc_eval.private.kahm.federated import answer, ask, combine, gather, local_distances, ship
from finc_eval.private.kahm.files import save_models
from finc_eval.private.kahm.models import WideKahm, fit_classes
from finc_eval.private.kahm.settings import KahmSettings

X, Y = load_digits(return_X_y=True)
X = X / 16
TRAIN, TEST = slice(0, 1200), slice(1200, None)


def party(mine):
    return fit_classes(X[TRAIN][mine], Y[TRAIN][mine], KahmSettings(10))


@pytest.fixture(scope="module")
def central():
    return fit_classes(X[TRAIN], Y[TRAIN], KahmSettings(10))


@pytest.fixture(scope="module")
def by_class():
    return [party(Y[TRAIN] % 3 == one) for one in range(3)]


@pytest.fixture(scope="module")
def by_chance():
    owner = np.random.default_rng(0).permutation(1200) % 3
    return [party(owner == one) for one in range(3)]


def test_parties_with_classes_of_their_own_equal_one_party_with_all(central, by_class):
    found = combine([local_distances(models, X[TEST]) for models in by_class])
    assert found.classes == central.classes
    np.testing.assert_array_equal(found.values, central.distances(X[TEST]).values)
    assert found.labels == tuple(central.predict(X[TEST]))


def test_parts_of_classes_are_branches_of_their_union(by_chance):
    found = combine([local_distances(models, X[TEST]) for models in by_chance])
    union = WideKahm.union([models.models[4] for models in by_chance])
    np.testing.assert_array_equal(found.values[:, 4], union.distances(X[TEST]).values)
    assert (np.array(found.labels) == Y[TEST]).mean() > 0.93
    assert (found.scores.argmax(1) == found.values.argmin(1)).all()


def test_a_class_that_nobody_else_has_counts_as_far():
    near, far = np.array([1.0, 2.0]), np.array([3.0, 1.0])
    found = combine([{"a": near}, {"b": far}, {"a": far}])
    assert found.classes == ("a", "b") and found.labels == ("a", "a")
    np.testing.assert_array_equal(found.values, [[1, 3], [1, 1]])


def test_shipped_models_classify_alike_and_hand_over_the_samples(by_chance):
    found = ship(by_chance)
    expected = combine([local_distances(models, X[TEST]) for models in by_chance])
    np.testing.assert_array_equal(found.distances(X[TEST]).values, expected.values)
    leaked = by_chance[0].models[7].branches[0][0].samples()
    mine = X[TRAIN][(np.random.default_rng(0).permutation(1200) % 3 == 0) & (Y[TRAIN] == 7)]
    torch.testing.assert_close(leaked, torch.from_numpy(mine), atol=1e-12, rtol=0)


@pytest.mark.long
def test_parties_are_processes_that_exchange_files_of_distances(tmp_path, by_class, central):
    code = (
        "import sys; from finc_eval.private.kahm.federated import answer; from finc_eval.private.kahm.files import "
        "load_models; folder, name, path = sys.argv[1:]; answer(folder, name, load_models(path))"
    )
    folder = tmp_path / "exchange"
    ask(folder, X[TEST])
    parties = []
    for place, models in enumerate(by_class):
        save_models(tmp_path / f"{place}.h5", models)  # stays with its party
        command = [sys.executable, "-c", code, str(folder), f"party-{place}", str(tmp_path / f"{place}.h5")]
        parties.append(subprocess.Popen(command))
    assert [process.wait() for process in parties] == [0, 0, 0]
    found = gather(folder, ["party-0", "party-1", "party-2"])
    # Processes may sum in another order.
    np.testing.assert_allclose(found.values, central.distances(X[TEST]).values, rtol=1e-12)
    with h5py.File(folder / "party-0.distances.h5") as file:
        assert list(file) == ["distances", "checksums"] and file["distances"].shape == (len(X[TEST]), 4)


def test_who_has_not_answered_is_named_and_old_answers_are_not_taken(tmp_path, by_class):
    ask(tmp_path, X[:3])
    answer(tmp_path, "a", by_class[0])
    with pytest.raises(FincEvalError, match="b did not answer"):
        gather(tmp_path, ["a", "b"])
    with pytest.raises(FincEvalError, match="a is named twice"):
        gather(tmp_path, ["a", "a"])
    ask(tmp_path, X[3:6])
    with pytest.raises(FincEvalError, match="answers other queries"):
        gather(tmp_path, ["a"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda folder: combine([{}, {}]), "no party has any class"),
        (lambda folder: combine([{0: np.ones(2)}, {0: np.ones(3)}]), "got 2 and 3 distances"),
        (lambda folder: combine([{0: np.ones(2)}, {"a": np.ones(2)}]), "words alone, or by numbers alone"),
        (lambda folder: ship([]), "no models were shipped"),
        (lambda folder: ship([fit_classes(X[:4], one) for one in ([0, 1] * 2, ["a", "b"] * 2)]), "words alone"),
        (lambda folder: ask(folder, [[np.nan]]), "queries must be finite"),
        (lambda folder: answer(folder, "../else", None), "not '../else'"),
        (lambda folder: answer(folder, "a", KahmClassifier()), "got KahmClassifier"),
        (lambda folder: local_distances(KahmClassifier(), X), "got KahmClassifier"),
        (lambda folder: ship([KahmClassifier()]), "got KahmClassifier"),
        (lambda folder: gather(folder, ["a"]), "does not exist"),
    ],
)
def test_what_cannot_be_combined_is_refused_in_a_sentence(tmp_path, call, words):
    with pytest.raises(FincEvalError, match=words):
        call(tmp_path)
