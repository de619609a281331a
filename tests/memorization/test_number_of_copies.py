"""The verdict: the number of copies in a sentence, and a lower bound that holds."""

import numpy as np
import pytest

from finc_eval.memorization.tails import counts_below, least_copies, survival, tail_p_value, threshold_parts
from finc_eval.memorization.verdict import CopiesFound, verdict
from finc_eval.numerics.attack_statistics import threshold_ranks


@pytest.mark.parametrize(
    ("copies", "nearer_to", "sentence"),
    [
        (
            CopiesFound(100, 0, 100, 0, 95, "hash"),
            "training",
            "100 of 1,000 samples are training images, pixel by pixel.",
        ),
        (
            CopiesFound(1, 0, 1, 2, 0, None),
            None,
            "1 of 1,000 samples is a training image, pixel by pixel (so are 2 of 900 fresh samples).",
        ),
        (
            CopiesFound(10, 0, 10, 0, 60, "hash", (4.0, 88.0)),
            "training",
            "10 of 1,000 samples are training images, pixel by pixel; with altered copies it is at least 60: 4 of 256 "
            "bits of their perceptual hashes differ, in fresh samples 88 (medians).",
        ),
        (
            CopiesFound(0, 0, 0, 0, 42, "views"),
            "training",
            "At least 42 of 1,000 samples are training images, altered: mirrored, widened or shifted, they are nearer "
            "to the training set than fresh samples.",
        ),
        (
            CopiesFound(0, 0, 0, 0, 0, None),
            "training",
            "Samples are nearer to the training set than fresh samples are, but no single sample is shown to be a "
            "copy.",
        ),
        (
            CopiesFound(0, 0, 0, 0, 0, None),
            "real",
            "Samples are nearer to real images than fresh samples are, but nothing shows them nearer to the "
            "training set than to the holdout: 52.5 % of them are (DCR share; 50 % without copies). No copies were "
            "found.",
        ),
        (CopiesFound(0, 0, 0, 0, 0, None), None, "No copies of training images were found among 1,000 samples."),
    ],
)
def test_the_verdict_says_how_many_samples_are_copies_and_what_shows_it(copies, nearer_to, sentence):
    assert verdict(copies, 1000, 900, nearer_to=nearer_to, share=0.525, images=True) == sentence


def test_without_pictures_samples_are_samples_and_equality_is_that_of_embeddings():
    copies = CopiesFound(20, 1, None, None, 15, "calibrated")
    assert verdict(copies, 200, 300, nearer_to="training", share=0.6, images=False) == (
        "20 of 200 samples are training samples, with equal embeddings (so is 1 of 300 fresh samples)."
    )


def test_the_bound_is_above_zero_where_the_test_finds_copies_and_holds_in_almost_all_draws():
    rng, alpha, copies = np.random.default_rng(0), 0.05, 30
    bounds = []
    for _ in range(150):
        fresh, scores = rng.random(200), rng.random(250)
        scores[:copies] = 0.01 * rng.random(copies)
        bounds.append(least_copies(scores, fresh, alpha))
        assert (bounds[-1] > 0) == (tail_p_value(scores, fresh) <= alpha)
    bounds = np.array(bounds)
    assert (bounds > copies).mean() <= alpha
    assert np.median(bounds) >= copies / 2
    nothing = [least_copies(rng.random(250), rng.random(200), alpha) for _ in range(150)]
    assert np.mean(np.array(nothing) > 0) <= alpha


def test_the_bound_is_one_more_than_the_largest_number_that_is_too_improbable():
    rng, n, m, alpha = np.random.default_rng(2), 60, 40, 0.05
    for copies in (8, 20, 35):
        fresh, scores = rng.random(m), rng.random(n)
        scores[:copies] *= 0.05
        bounds = []
        counts = zip(threshold_ranks(m), counts_below(scores, fresh), threshold_parts(m), strict=True)
        for k, count, part in counts:
            refused = [s for s in range(count) if survival(n - s, m, k)[count - s] <= alpha * part]
            bounds.append(max(refused, default=-1) + 1)
        assert least_copies(scores, fresh, alpha) == max(bounds) > 0


def test_ten_exact_copies_among_a_thousand_samples_are_found_at_the_level_that_nine_measures_leave():
    fresh = 1 + np.random.default_rng(0).random(1000)
    for count, found in ((9, False), (10, True)):
        scores = 1 + np.random.default_rng(1).random(1000)
        scores[:count] = 0
        scores[count:] += 1  # no other sample helps
        assert (tail_p_value(scores, fresh) <= 0.025 / 9) == found
    assert threshold_parts(1000).sum() == pytest.approx(1)
