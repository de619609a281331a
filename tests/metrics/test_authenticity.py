import numpy as np
import pytest

from finc_eval.measures.authenticity import authpct


def draw(n, seed, dim=6):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


TRAIN = draw(300, 0)


def test_it_is_the_share_that_lies_farther_from_training_samples_than_those_do_from_each_other():
    gen = draw(200, 1)
    apart = np.linalg.norm(TRAIN[:, None] - TRAIN, axis=2) + 1e9 * np.eye(300)
    distances = np.linalg.norm(gen[:, None] - TRAIN, axis=2)
    nearest = distances.argmin(1)
    authentic = distances.min(1) > apart.min(1)[nearest]
    found = authpct(gen, TRAIN)
    assert found.authentic.tolist() == authentic.tolist()
    assert found.distances == pytest.approx(distances.min(1), rel=1e-6)
    assert found.spacings == pytest.approx(apart.min(1)[nearest], rel=1e-6)
    assert found.percent == pytest.approx(100 * authentic.mean())
    low, high = found.interval()
    assert low < found.percent < high


def test_copies_are_never_authentic_and_are_counted_also_where_training_samples_are_copies():
    train = np.concatenate([TRAIN, TRAIN[:20]])
    found = authpct(np.concatenate([TRAIN[:50], TRAIN[:50] + 1e-3]), train)
    assert found.copies == 50
    assert not found.authentic[:50].any()
    # Twins have no spacing, so that all but an exact copy of theirs passes.
    assert found.authentic[50:].tolist() == [True] * 20 + [False] * 30


def test_noisy_copies_read_far_lower_than_fresh_samples_and_noise_far_higher():
    fresh, copies, noise = (
        authpct(gen, TRAIN).percent for gen in (draw(300, 2), TRAIN + 0.05 * draw(300, 3), 9 * TRAIN)
    )
    assert copies < 5 < 40 < fresh < 75 < noise
