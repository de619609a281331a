"""The contents of the files that these tests damage."""

import io

import numpy as np
from PIL import Image

N = 60


def numbers(n=N, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def sets():
    gen = numbers()
    gen[:20] += 4
    return gen, numbers(seed=1)


def pictures(n=8, edge=12):
    return np.random.default_rng(0).integers(0, 256, (n, edge, edge, 3), dtype=np.uint8)


def png(pixels, form="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


IDS = [f"{row}.png" for row in range(N)]
