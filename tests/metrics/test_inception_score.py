import numpy as np
import pytest
import torch

from finc_eval.measures.inception_score import inception_score


def certain(n, classes, sharpness=60.0):
    """Images each surely of one of the classes, in turn."""
    return sharpness * torch.eye(classes)[torch.arange(n) % classes]


def test_it_counts_classes_seen_equally_often_and_surely():
    found = inception_score(certain(1000, 5), splits=1)
    assert found.mean == found.whole == pytest.approx(5, rel=1e-9)
    assert found.std == 0


def test_it_is_one_where_all_images_say_the_same():
    assert inception_score(torch.randn(1, 8).expand(40, 8), splits=4).mean == pytest.approx(1, abs=1e-12)


def test_it_is_exp_of_the_mean_divergence_of_each_split():
    logits = torch.randn(103, 20, generator=torch.Generator().manual_seed(0)) * 3
    order = np.random.RandomState(4).permutation(103)
    p = logits.double().softmax(1)[torch.from_numpy(order)]
    scores = []
    for part in (p[:34], p[34:68], p[68:]):
        divergence = (p_ := part) * (p_.log() - part.mean(0).log())
        scores.append(float(divergence.sum(1).mean().exp()))
    found = inception_score(logits, splits=3, seed=4)
    assert (found.mean, found.std) == pytest.approx((np.mean(scores), np.std(scores)), rel=1e-12)
    whole = float((p * (p.log() - p.mean(0).log())).sum(1).mean().exp())
    assert found.whole == pytest.approx(whole, rel=1e-12)


def test_smaller_splits_read_lower():
    logits = torch.randn(2000, 100, generator=torch.Generator().manual_seed(0)) * 3
    found = inception_score(logits)
    assert inception_score(logits, splits=100).mean < found.mean < found.whole


def test_the_seed_shuffles():
    logits = torch.randn(60, 10, generator=torch.Generator().manual_seed(0))
    assert inception_score(logits, seed=1).mean != inception_score(logits, seed=2).mean


def test_a_class_without_any_mass_is_no_nan():
    logits = torch.full((30, 4), -2000.0)
    logits[:, :2] = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    assert 1 <= inception_score(logits, splits=2).mean <= 2


def test_the_interval_of_the_splits_holds_the_mean_score_of_as_many_samples():
    def logits(seed):
        return torch.randn(500, 20, generator=torch.Generator().manual_seed(seed)) * 3

    found = [inception_score(logits(seed)) for seed in range(25)]
    mean = sum(one.mean for one in found) / len(found)
    assert sum(low <= mean <= high for low, high in (one.interval() for one in found)) >= 21
    assert found[0].mean == pytest.approx(np.mean(found[0].scores))
