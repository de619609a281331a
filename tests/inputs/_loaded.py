"""Images that loaders and data sets give, and how they are read."""

import numpy as np
import torch
from torch.utils.data import Dataset

from finc_eval.samples.opening import open_source

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
TENSOR = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).contiguous()


def read(source, **options):
    samples = list(open_source(source, **options).samples())
    assert not [sample.error for sample in samples if sample.error]
    return np.stack([sample.pixels for sample in samples])


class Items(Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 40

    def __getitem__(self, number):
        if number >= 40:
            raise IndexError
        return self.make(number)
