"""Images, as they are and encoded, and how they are read."""

import io

import numpy as np
import torch
from PIL import Image

from finc_eval.samples.opening import open_source

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)


def pixels(source, **how):
    return np.stack([sample.pixels for sample in open_source(source, **how).samples()])


def png(image):
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


ENCODED = [png(image) for image in IMAGES]


class Items(torch.utils.data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, number):
        return self.make(number)


def first(values):
    """Return values of images as tensors have them, channels first."""
    return torch.as_tensor(values).movedim(-1, -3)


def saved(name, save, values):
    save(name, values)
    return name
