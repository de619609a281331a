"""A loader that gives fewer or more samples than its data set has is told: a part is not taken for the whole."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

import finc_eval as fe

DATA = TensorDataset(torch.from_numpy(np.random.default_rng(0).integers(0, 256, (80, 3, 8, 8)).astype(np.uint8)))

PARTS = {
    "a rank of four": ({"sampler": DistributedSampler(DATA, num_replicas=4, rank=0)}, 20),
    "a rank of three, padded": ({"sampler": DistributedSampler(DATA, num_replicas=3, rank=2)}, 27),
    "a subset": ({"sampler": SubsetRandomSampler(range(20))}, 20),
    "a weighted draw": ({"sampler": WeightedRandomSampler([1.0] * 80, 30)}, 30),
    "repeats": ({"sampler": RandomSampler(DATA, replacement=True, num_samples=100)}, 100),
    "a last batch that is dropped": ({"batch_size": 30, "drop_last": True}, 60),
}
WHOLE = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "batches that divide": {"batch_size": 20, "drop_last": True},
    "batches of a sampler": {"batch_sampler": BatchSampler(SequentialSampler(DATA), 16, False), "batch_size": 1},
}


@pytest.mark.parametrize(("options", "count"), PARTS.values(), ids=PARTS)
def test_a_part_is_told(options, count):
    with pytest.warns(UserWarning, match=rf"gives {count} samples of a data set of 80 \("):
        found = fe.extract(DataLoader(DATA, **options), "pixels")
    assert len(found) == count


@pytest.mark.parametrize("options", WHOLE.values(), ids=WHOLE)
def test_the_whole_is_taken_without_a_word(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fe.extract(DataLoader(DATA, **options), "pixels")) == 80
