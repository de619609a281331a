"""Pictures that are redder, and columns that a user registers of them."""

import numpy as np

import finc_eval as fe


def pictures(n, seed, red=0, part=1.0):
    """Pictures of 32 x 32 pixels, in 4 x 4 squares of random colors; a part of the pictures is redder."""
    rng = np.random.default_rng(seed)
    pixels = np.kron(rng.integers(0, 200, (n, 4, 4, 3)), np.ones((1, 8, 8, 1), int))
    pixels[: round(part * n), ..., 0] += red
    return np.clip(pixels + rng.integers(-8, 8, pixels.shape), 0, 255).astype(np.uint8)


def held(pixels, metadata=None, ids=None):
    """Pictures as a set: their embeddings are some of their pixels."""
    rows = pixels.reshape(len(pixels), 32, 32, -1)[:, 4::8, 4::8].reshape(len(pixels), -1) / np.float32(255)
    return fe.EmbeddingSet(rows, ids, metadata, pixels)


def redness(image):
    red, green, blue = np.asarray(image, float).mean((0, 1))
    return red - (green + blue) / 2


def is_red(image):
    return redness(image) > 40


def red_pixels(image):
    pixels = np.asarray(image, int)
    return int((pixels[..., 0] > pixels[..., 1:].max(-1) + 40).sum())


class Redness:
    """A measurement with a state, whose code no digest holds."""

    def __init__(self):
        self.calls = 0

    def __call__(self, image):
        self.calls += 1
        return redness(image)


COLUMNS = {
    "number": (redness, {"less": "less red", "more": "redder"}),
    "whole number": (red_pixels, {"less": "less red", "more": "redder"}),
    "membership": (is_red, {"low": "without red", "high": "tinted red"}),
    "lambda": (lambda image: redness(image), {"less": "less red", "more": "redder"}),
    "object with a state": (Redness(), {"less": "less red", "more": "redder"}),
    "number of NumPy": (lambda image: np.float32(redness(image)), {"less": "less red", "more": "redder"}),
}
"""Functions that see red, and the words that a user gives them."""
