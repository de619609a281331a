import numpy as np
import pytest
from scipy.stats import fisher_exact

from finc_eval.naming.causes import difference_parts, frequency_or_appearance, stratified_p


def sets(counts, rates, seed=0):
    """Labels of both sets in these numbers, and members drawn at these rates."""
    rng = np.random.default_rng(seed)
    labels = {name: np.repeat(["a", "b", "c"], counts[name]).tolist() for name in counts}
    members = {
        name: np.flatnonzero(rng.random(len(mine)) < np.repeat(rates[name], counts[name]))
        for name, mine in labels.items()
    }
    return labels, members


EQUAL = {"gen": [400, 400, 400], "ref": [400, 400, 400]}
MORE_A = {"gen": [600, 300, 300], "ref": [300, 450, 450]}
ALIKE = {"gen": [0.5, 0.02, 0.02], "ref": [0.5, 0.02, 0.02]}
UNLIKE = {"gen": [0.5, 0.02, 0.02], "ref": [0.1, 0.02, 0.02]}


@pytest.mark.parametrize(
    ("counts", "rates", "kind"),
    [(MORE_A, ALIKE, "frequency"), (EQUAL, UNLIKE, "appearance"), (MORE_A, UNLIKE, "both"), (EQUAL, ALIKE, None)],
)
def test_a_mode_is_of_frequency_or_of_appearance(counts, rates, kind):
    cause = frequency_or_appearance(*sets(counts, rates))
    assert cause.kind == kind and cause.labels == ("a",)


def test_a_label_that_one_set_lacks_is_a_matter_of_frequency():
    labels, members = sets({"gen": [300, 400, 400], "ref": [0, 500, 500]}, ALIKE)
    cause = frequency_or_appearance(labels, members)
    assert cause.kind == "frequency" and cause.appearance_p > 0.05


def test_missing_labels_say_nothing():
    cause = frequency_or_appearance({"gen": [""] * 50, "ref": [""] * 50}, {"gen": np.arange(9), "ref": np.arange(0)})
    assert cause.kind is None


def test_the_parts_add_to_the_difference_of_shares():
    members, samples = np.array([[300, 6, 6], [30, 9, 9]]), np.array([[600, 300, 300], [300, 450, 450]])
    assert sum(difference_parts(members, samples)) == pytest.approx(312 / 1200 - 48 / 1200)


def test_one_stratum_is_fishers_test():
    members, samples = np.array([[30], [18]]), np.array([[100], [120]])
    expected = fisher_exact([[30, 70], [18, 102]], alternative="greater").pvalue
    assert stratified_p(members, samples) == pytest.approx(expected)


def test_the_stratified_test_is_calibrated():
    rng = np.random.default_rng(0)
    samples = np.array([[60, 200, 20], [300, 50, 80]])
    rates = np.array([0.3, 0.02, 0.6])
    p_values = np.array([stratified_p(rng.binomial(samples, rates), samples) for _ in range(400)])
    # 5 % of 400 is 20, with a standard error of 4.4; the test is discrete and conservative.
    assert 5 <= (p_values <= 0.05).sum() <= 31
