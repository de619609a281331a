"""A comparison finds the planted kinds, and none where there are none."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison import fits
from finc_eval.comparison.directions import CrossFit, cross_fit
from finc_eval.demo.planted import colored_digits, gray
from finc_eval.demo.run import FOUND_PURITY


def pixels(images):
    return images.reshape(len(images), -1).astype(np.float32) / 255


def recovery(comparison, kinds):
    """Mean purity of the top samples of the modes, and how many digits are found colored."""
    purities, found = [], set()
    for mode in comparison.over:
        names, counts = np.unique([kinds[i] for i in mode.top_gen], return_counts=True)
        purities.append(counts.max() / len(mode.top_gen))
        if purities[-1] > FOUND_PURITY and names[counts.argmax()].startswith("coloured"):
            found.add(names[counts.argmax()])
    return np.mean(purities), len(found)


def in_sample_only(*arguments: object) -> CrossFit:
    """Stand in for a comparison without cross-fitting: score all data by the directions fitted to all data."""
    fit = cross_fit(*arguments)
    return CrossFit(fit.full, (fit.full.vectors, fit.full.vectors), fit.stability)


def share_of_seeds_with_a_false_discovery(x, seeds):
    false = 0
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(x))
        one, other = x[order[: len(x) // 2]], x[order[len(x) // 2 :]]
        found = fe.compare(gen=one, ref=other, features=200, seed=seed)
        false += any(one.p_value <= 0.05 for one in (*found.kinds, *found.directions))
    return false / seeds


@pytest.mark.by_turns(2)
@pytest.mark.long
def test_without_cross_fitting_two_halves_of_one_set_nearly_always_differ(digits, monkeypatch):
    monkeypatch.setattr(fits, "cross_fit", in_sample_only)
    assert share_of_seeds_with_a_false_discovery(digits[0], seeds=3) == 1


@pytest.mark.by_turns(2)
@pytest.mark.long
def test_colored_digits_are_found_at_demo_size(digits):
    x, labels = digits
    images = np.rint(x * 255).astype(np.uint8).reshape(-1, 28, 28)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    gen = colored_digits(images[order[:2000]], labels[order[:2000]], 0.5, rng)
    ref = pixels(gray(images[order[2000:]]))
    purity, found = recovery(fe.compare(gen=pixels(gen.images), ref=ref, features=1000), gen.kinds)
    assert purity >= 0.95
    assert found >= 9


@pytest.mark.by_turns(4)  # colored digits at demo size show the same
@pytest.mark.long
def test_colored_mnist_at_the_papers_size(mnist_test):
    images, labels = mnist_test
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images))
    gen = colored_digits(images[order[:5000]], labels[order[:5000]], 0.5, rng)
    ref = pixels(gray(images[order[5000:]]))
    sketch = fe.Sketch.of(ref, fe.Sketch.reference(ref).feature_map)
    purity, found = recovery(fe.compare(gen=pixels(gen.images), ref=sketch), gen.kinds)
    assert purity >= 0.97
    assert found >= 9
