"""Floors of metrics, the parts of a reference that they come from, and notes on them."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.inputs import (
    MIN_INTERVAL_SAMPLES,
    Metric,
    MetricInputs,
    biased_floor,
    scores_of,
    split_reference,
)
from finc_eval.measures.score import Score

LEAST = MIN_INTERVAL_SAMPLES


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)


def drawn(n):
    return ArrayEmbeddings(rows(n), "ref")


@pytest.mark.parametrize("power", [0.3, 1.0, 1.7])
def test_a_floor_follows_the_power_of_the_sizes_that_halves_show_up_to_one(power):
    of_sizes = lambda x, y: (1 / x.n + 1 / y.n) ** power  # noqa: E731
    ref = drawn(64)
    wanted, had = 1 / 20 + 1 / 64, 1 / 20 + 1 / 44
    found = biased_floor(of_sizes, ref, 20, is_inverse=False)
    assert found == pytest.approx(had**power * (wanted / had) ** min(power, 1.0))
    assert biased_floor(of_sizes, ref, 20) == pytest.approx(had**power * wanted / had)
    assert biased_floor(lambda x, y: 0.0, ref, 20, is_inverse=False) == 0
    # A statistic that falls with fewer samples has no power below 0.
    assert biased_floor(lambda x, y: float(x.n), ref, 20, is_inverse=False) == pytest.approx(20)


@pytest.mark.parametrize(("least", "calls"), [(4, [8, 4]), (5, [8])])
def test_halves_of_a_floor_have_the_least_number_of_samples(least, calls):
    seen = []
    biased_floor(lambda x, y: seen.append(x.n) or 1.0, drawn(24), 8, least=least, is_inverse=False)
    assert seen == calls


@pytest.mark.parametrize(
    ("groups", "n_gen", "least", "wanted"), [(3, 4, 3, 3), (4, 4, 4, 6), (4, 4, 1, 3), (4, 6, 3, 6)]
)
def test_parts_of_a_grouped_reference_are_of_whole_groups_and_have_enough_samples(groups, n_gen, least, wanted):
    """Groups of three samples each."""
    group = np.arange(3 * groups) % groups
    part, rest = split_reference(drawn(3 * groups).with_groups(group.astype(np.uint64), "video"), n_gen, least=least)
    own, other = ({*group[one.rows].tolist()} for one in (part, rest))
    assert part.n == wanted and rest.n == 3 * groups - wanted and not own & other


def test_a_floor_of_a_smaller_part_is_noted():
    signature = Signature.of("n", [1], "array-3")
    metric = Metric("n", "", lambda inputs: [Score("n", float(inputs.gen.n), signature)])
    for m, notes in ((2 * LEAST, 0), (2 * LEAST - 1, 1), (5 * LEAST, 0)):
        (found,) = scores_of(metric, MetricInputs("n", drawn(LEAST), drawn(m)))
        assert found.floor == min(LEAST, m // 2) and len(found.notes) == notes
    for n, m in ((LEAST - 1, 300), (300, LEAST - 1)):
        assert scores_of(metric, MetricInputs("n", drawn(n), drawn(m)))[0].floor is None


def test_of_many_classes_without_a_value_five_are_named():
    label = [f"c{one}" for one in range(9) for _ in range(2)]
    gen, ref = (fe.EmbeddingSet(rows(18, seed), metadata={"label": label}) for seed in (0, 1))
    notes = " ".join(note for one in fe.metrics(gen, ref, "mmd", by="label") for note in one.notes)
    assert "c4 (" in notes and "c5 (" not in notes and "4 other classes" in notes
