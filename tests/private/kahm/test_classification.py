"""Classifications by hand: accuracy, AUCs, confusions, samples in doubt, yardsticks, and samples of the models."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.report import outline

FAR = np.inf


def test_a_sample_without_a_distance_is_of_no_class():
    distances = [[1.0, 2.0], [FAR, FAR], [3.0, 1.0], [FAR, 4.0]]
    found = fe.kahm.classification(distances, ("a", "b"), ["a", "a", "b", "b"])
    assert (found.accuracy, found.labeled, found.undefined) == (0.75, 4, 1)
    assert [(row.label, row.nearest, row.samples) for row in found.confusions] == [("a", "", 1)]
    assert [row.nearest for row in found.classes] == [1, 2]


def test_there_is_a_label_for_each_sample_and_both_sides_of_a_curve():
    with pytest.raises(fe.DataError, match="2 samples came with 1 label"):
        fe.kahm.classification(np.ones((2, 2)), ("a", "b"), ["a"])
    found = fe.kahm.classification([[1.0, 2.0], [1.0, 3.0]], ("a", "b"), ["a", "a"])
    assert [(row.auc, row.recognized) for row in found.classes] == [(None, 1.0), (None, None)]
    for wrong in (np.ones((2, 3)), np.full((2, 2), np.nan), np.ones((0, 2)), np.ones(2)):
        with pytest.raises(fe.DataError, match="distances must be"):
            fe.kahm.classification(wrong, ("a", "b"))


def test_doubtful_samples_come_by_their_margin_and_mistaken_ones_against_it():
    distances = [[1.0, 1.1], [1.0, 4.0], [3.0, 1.0], [2.0, FAR], [0.0, 0.0]]
    found = fe.kahm.classification(distances, ("a", "b"), ["a", "b", "a", "b", "a"], ids=list("vwxyz"))
    assert [row.id for row in found.doubtful] == ["z", "v", "x", "w", "y"]
    assert [row.margin for row in found.doubtful] == pytest.approx([0, 1 - 1 / 1.1, 2 / 3, 0.75, 1])
    assert [(row.id, row.label, row.nearest, row.second) for row in found.mistaken] == [
        ("y", "b", "a", ""),
        ("w", "b", "a", "b"),
        ("x", "a", "b", "a"),
    ]


@pytest.mark.parametrize(
    ("labels", "judged", "strange"),
    [(None, 0, ()), (["a", "", "b"], 2, ()), (["a", "c", "b"], 0, ("c",)), (["", "", ""], 0, ())],
)
def test_what_is_not_labeled_is_not_judged(labels, judged, strange):
    found = fe.kahm.classification([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]], ("a", "b"), labels)
    assert (found.labeled, found.strange) == (judged, strange)
    assert found.accuracy == (1.0 if judged else None) and (found.accuracy_interval is None) is (judged == 0)
    assert len(found.to_csv().splitlines()) == (1 + 1 + 2 if judged else 1 + 2)


@pytest.fixture(scope="module")
def models(digits):
    return fe.kahm.fit_classes(digits[0][:150], digits[1][:150], fe.kahm.KahmSettings(5))


def test_yardsticks_classify_by_the_samples_of_the_models(models, digits):
    (train, labels), (test, known) = ((digits[0][rows], digits[1][rows]) for rows in (slice(150), slice(200, 300)))
    found = fe.kahm.classify(models, test, known)
    means = np.stack([train[labels == label].mean(0) for label in models.classes])
    by_mean = np.array(models.classes)[cdist(test, means).argmin(1)] == known
    by_sample = labels[cdist(test, train).argmin(1)] == known
    own = np.array(models.classes)[models.predict(test)] == known
    assert [row.accuracy for row in found.yardsticks] == pytest.approx([by_mean.mean(), by_sample.mean()])
    assert [row.difference for row in found.yardsticks] == pytest.approx(
        [own.mean() - by_mean.mean(), own.mean() - by_sample.mean()]
    )
    assert found.repeated == 0 and not found.are_own


def test_samples_of_the_models_are_counted_and_named(models, digits):
    rows, labels = digits[0][100:200], digits[1][100:200]
    found = fe.kahm.classify(models, rows, labels)
    assert found.repeated == 50 and len(outline(found).warnings) == 1
    own = fe.kahm.classify(models, digits[0][:150], digits[1][:150])
    assert own.are_own and own.repeated == 150
    assert own.accuracy_interval is None and own.yardsticks == () and not any(row.interval for row in own.classes)


def test_parties_are_one_classifier_and_samples_of_a_group_say_less(digits):
    settings = fe.kahm.KahmSettings(5)
    parties = {
        name: fe.kahm.fit_classes(digits[0][rows], digits[1][rows], settings)
        for name, rows in (("north", slice(0, 80)), ("south", slice(80, 160)))
    }
    rows, labels = np.repeat(digits[0][200:260], 3, 0), np.repeat(digits[1][200:260], 3)
    found = fe.kahm.classify(parties, rows, labels)
    answers = [fe.kahm.federated.local_distances(party, rows) for party in parties.values()]
    np.testing.assert_array_equal(found.distances, fe.kahm.federated.combine(answers).values)
    assert found.parties == ("north", "south") and found.yardsticks
    grouped = ArrayEmbeddings(rows).with_groups(np.repeat(np.arange(60, dtype=np.uint64), 3), "digit")
    wide = fe.kahm.classify(parties, grouped, labels)
    assert wide.accuracy == pytest.approx(found.accuracy)
    assert np.ptp(wide.accuracy_interval) > 1.3 * np.ptp(found.accuracy_interval)


@pytest.mark.parametrize("classes", [3, 13])
def test_all_pairs_of_few_classes_are_a_matrix_and_of_many_the_most_frequent_are_listed(classes):
    names = [f"c{number:02}" for number in range(classes)]
    distances, labels = 1 - np.eye(classes)[[0, 0, 1, 2, 2]], ["c00", "c01", "c01", "c02", "c01"]
    found = fe.kahm.classification(distances, names, labels)
    table = next(table for table in outline(found).tables if table.title == "Confusions")
    if classes == 3:
        assert table.texts(small=True) == [["c00", "1", "0", "0"], ["c01", "1", "1", "1"], ["c02", "0", "0", "1"]]
    else:
        assert table.texts(small=True) == [["c01", "c00", "1"], ["c01", "c02", "1"]]


def test_a_page_shows_the_samples_in_doubt(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8, 3), np.uint8)
    images[:30] //= 2
    cache, labels = fe.extract(images, "pixels", tmp_path / "x.h5"), ["dark"] * 30 + ["bright"] * 30
    models = fe.kahm.fit_classes(cache, labels, fe.kahm.KahmSettings(3))
    found = fe.kahm.classify(models, fe.extract(images[20:40], "pixels", tmp_path / "y.h5"), labels[20:40])
    page = found.to_html(tmp_path / "page.html").read_text()
    assert page.count("data:image/png") >= len(found.doubtful[:8])
    found.save(tmp_path / "c.h5")
    back = fe.load(tmp_path / "c.h5")
    assert back.to_dict() == found.to_dict() and "data:image/png" in back.to_html(tmp_path / "back.html").read_text()
