"""Two runs of one generator with the same prompts and seeds, as after a change of number format, with broken pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.demo.prompts import PromptedSet, prompted_sets

NOISE_NEW, NOISE_AGAIN = 2.0, 1.0
"""Standard deviations of noise, of 255: in the new run, and in the old run once more. No eye sees it."""


@dataclass(frozen=True)
class SameSeed:
    """Runs with the same prompts and seeds, and what is broken in the new run."""

    new: PromptedSet
    shifted: PromptedSet  # the new run without broken pictures, each under the name of the picture before it
    old: PromptedSet
    again: PromptedSet
    broken: dict[str, str]  # what is wrong, by the name of the picture


def runs_of_one_seed(prompts: int = 75, each: int = 4, seed: int = 0) -> SameSeed:
    """Return a new run, the old run and the old run once more; one in 25 pictures of the new run is broken.

    In a further run, `shifted`, nothing is broken but the numbering: each name has the next picture.
    """
    old, _ = prompted_sets(prompts, each, seed, faults=False)
    rng = np.random.default_rng(seed + 1)
    images, broken = _noisy(old.images, NOISE_NEW, rng), {}
    shifted = replace(old, images=np.roll(images, -1, 0))
    places = rng.choice(len(images), len(images) // 25, replace=False)
    for number, row in enumerate(places.tolist()):
        what = ("black", "shifted", "another picture")[number % 3]
        if what == "black":
            images[row] = 0
        elif what == "shifted":
            images[row] = np.roll(images[row], 6, 1)
        else:
            images[row] = old.images[row - len(images) // 2]
        broken[f"{row:05d}.png"] = what
    again = _noisy(old.images, NOISE_AGAIN, rng)
    return SameSeed(replace(old, images=images), shifted, old, replace(old, images=again), broken)


def _noisy(images: NDArray[np.uint8], deviation: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    noise = rng.normal(0, deviation, images.shape)
    return np.clip(np.rint(images + noise), 0, 255).astype(np.uint8)
