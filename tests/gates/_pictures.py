"""Small pictures of stripes in six colors, and releases of them with planted faults."""

from functools import cache

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

import finc_eval as fe

N, SIDE = 120, 32


@cache
def drawn(seed):
    """Pictures of stripes in one of six colors, which are their labels."""
    rng = np.random.default_rng(seed)
    colors = np.eye(3)[np.arange(6) % 3] * 150 + 40 * (np.arange(6) >= 3)[:, None]
    labels = rng.choice(6, N, p=[0.15, *[0.17] * 5])
    images = []
    for label in labels:
        stripes = rng.integers(0, 90, (SIDE, 1, 1)) * np.ones((1, SIDE, 1)) + rng.normal(0, 12, (SIDE, SIDE, 3))
        images.append(Image.fromarray((stripes + colors[label]).clip(0, 255).astype(np.uint8)))
    return images, labels


def as_set(images, labels):
    rows = np.stack([np.asarray(one.resize((4, 4))).ravel() for one in images]) / 40
    return fe.EmbeddingSet(
        rows.astype(np.float32), images=images, metadata={"label": [f"color-{one}" for one in labels]}
    )


def release(seed, change=lambda images, labels: (images, labels)):
    return as_set(*change(*map(list, drawn(seed))))


def blur(images, labels):
    return [one.filter(ImageFilter.GaussianBlur(2)) if i % 4 == 0 else one for i, one in enumerate(images)], labels


def repeat(images, labels):
    return [images[0] if i % 8 == 0 else one for i, one in enumerate(images)], labels


def lose(images, labels):
    kept = [i for i, one in enumerate(labels) if one != 0]
    return [images[i] for i in kept], [labels[i] for i in kept]


def darken(images, labels):
    return [ImageEnhance.Brightness(one).enhance(0.75) for one in images], labels


def both(images, labels):
    return darken(*lose(images, labels))
