"""Runs of a generator that draws scenes: the same scenes with noise, blur or broken pictures."""

import numpy as np
from PIL import Image, ImageFilter
from scipy.ndimage import gaussian_filter

import finc_eval as fe
from finc_eval.comparison.few_pairs import find_by_id
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.settings import Settings
from finc_eval.core.run import Run

N, SIDE = 60, 48


def scenes(n=N, seed=0):
    """Return smooth pictures of many colors with sharp shapes, as photographs have."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        light = gaussian_filter(rng.normal(size=(SIDE, SIDE, 3)), (6, 6, 0))
        light = 0.5 + 0.18 * light / light.std()
        for _ in range(6):
            row, column, size = rng.integers([0, 0, 4], [SIDE, SIDE, 16]).tolist()
            light[row : row + size, column : column + size] = rng.uniform(0.1, 0.9, 3)
        found.append(np.clip(np.rint(255 * light), 0, 255).astype(np.uint8))
    return found


def noise(pictures, deviation=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return [np.clip(np.rint(one + rng.normal(0, deviation, one.shape)), 0, 255).astype(np.uint8) for one in pictures]


def thumbnails(pictures):
    small = [Image.fromarray(one).resize((8, 8), Image.Resampling.BOX) for one in pictures]
    return np.stack([np.asarray(one, np.float32).ravel() / 255 for one in small])


def run_of(pictures, ids=None, **columns):
    names = [f"{number:04d}.png" for number in range(len(pictures))] if ids is None else ids
    images = [Image.fromarray(one) for one in pictures]
    return fe.EmbeddingSet(thumbnails(pictures), names, columns, images)


def judge_pairs(gen, ref, again=(), run=None, extractor=None):
    """Return what a comparison by ids says of pairs, without kinds, directions and what else it computes for them."""
    settings = Settings(features=20, pairs="id", modes=1)
    run = Run.of(run)
    opened = sketch_sets({"gen": gen, "ref": ref}, settings, run, extractor, again)
    return find_by_id(opened, None, (), None, run)


OLD = scenes()


def moved(picture, by=8):
    return np.pad(picture, ((by, 0), (by, 0), (0, 0)), "edge")[:SIDE, :SIDE]


def broken(how, rows=(3, 20, 21, 40, 47, 59)):
    new, others = noise(OLD, 3), scenes(len(rows), seed=9)
    for row, other in zip(rows, others, strict=True):
        new[row] = {
            "another picture": other,
            "black": new[row] * 0,
            "white": np.full_like(new[row], 255),
            "shifted": moved(new[row]),
            "the picture of": new[0],
            "turned gray": np.asarray(Image.fromarray(new[row]).convert("L").convert("RGB")),
        }[how]
    return new, {f"{row:04d}.png" for row in rows}


def blurred(pictures, sigma=0.8):
    return [np.asarray(Image.fromarray(one).filter(ImageFilter.GaussianBlur(sigma))) for one in pictures]
