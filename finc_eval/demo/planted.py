"""Sets of real digits that differ in known ways: two small ones for examples, and those of the demo."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from finc_eval.core.doors import create_file, folder_inside

RARE_DIGIT = 6
COPIES = 20
BLURRED = 100  # gray digits that are blurred
REPEATED = 40  # gray digits that are replaced by one of them

DIGIT_COLORS = np.array([colorsys.hsv_to_rgb(digit / 10, 1.0, 1.0) for digit in range(10)])
"""One saturated hue per digit, shape (10, 3)."""


@dataclass(frozen=True)
class LabeledSet:
    """Images with their kinds."""

    images: NDArray[np.uint8]  # shape (n, 28, 28, 3), uint8
    kinds: list[str]  # kind of each image, such as "coloured-3" or "grey-7"

    def write(self, folder: Path) -> None:
        """Write one PNG per image, in a folder per kind."""
        for number, (image, kind) in enumerate(zip(self.images, self.kinds, strict=True)):
            with create_file(folder_inside(folder, kind) / f"{number:04d}.png") as file:
                Image.fromarray(image).save(file, "PNG")


def gray(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return digits (n, 28, 28) as RGB images (n, 28, 28, 3)."""
    return np.repeat(images[..., None], 3, axis=-1)


def color_digits(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return digits (n, 28, 28) as RGB images, each in the color of its class."""
    painted: NDArray[np.uint8] = np.rint(images[..., None] * DIGIT_COLORS[labels][:, None, None, :]).astype(np.uint8)
    return painted


def colored_digits(
    images: NDArray[np.uint8], labels: NDArray[np.uint8], share: float, rng: np.random.Generator
) -> LabeledSet:
    """Color a random share of the digits by class and leave the rest gray, as in an experiment of the FINC paper."""
    painted = rng.random(len(labels)) < share
    mixed = np.where(painted[:, None, None, None], color_digits(images, labels), gray(images))
    # Kinds become folders, and so parts of the sample ids that decide the folds: another spelling gives other numbers.
    kinds = [f"{'coloured' if p else 'grey'}-{label}" for p, label in zip(painted, labels, strict=True)]
    return LabeledSet(mixed, kinds)


def shipped_digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the 4 000 MNIST digits in the package: images (4000, 28, 28) and labels (4000,), both uint8."""
    with (files("finc_eval.demo") / "digits.npz").open("rb") as file, np.load(file) as data:
        return data["images"], data["labels"]


def planted_sets(seed: int = 0) -> tuple[LabeledSet, LabeledSet]:
    """Return the generated and the reference set of the demo, about 2 000 digits each.

    Half of the generated set is colored by class, nine in ten of its gray sixes are left out, and 20 of its gray
    digits are exact copies of reference images. Of its other gray digits, 100 are blurred, and one is there 40 times.
    Otherwise no digit is in both sets.
    """
    rng = np.random.default_rng(seed)
    images, labels = shipped_digits()
    order = rng.permutation(len(labels))
    to_gen, to_ref = np.split(order, 2)
    reference = LabeledSet(gray(images[to_ref]), [f"grey-{label}" for label in labels[to_ref]])
    generated = colored_digits(images[to_gen], labels[to_gen], 0.5, rng)
    rare = np.array([kind == f"grey-{RARE_DIGIT}" for kind in generated.kinds])
    kept = np.flatnonzero(~rare | (rng.random(len(rare)) < 0.1))
    replaced = rng.choice(len(reference.kinds), COPIES, replace=False)
    grays = [i for i in kept if generated.kinds[i].startswith("grey")]
    spared = rng.choice(grays, COPIES, replace=False)
    generated.images[spared] = reference.images[replaced]
    kinds = list(generated.kinds)
    for here, there in zip(spared, replaced, strict=True):
        kinds[here] = reference.kinds[there]
    blurred, repeated = np.split(rng.permutation(np.setdiff1d(grays, spared))[: BLURRED + REPEATED], [BLURRED])
    for number in blurred:
        softer = Image.fromarray(generated.images[number]).filter(ImageFilter.GaussianBlur(1.5))
        generated.images[number] = np.asarray(softer)
    for number in repeated:
        generated.images[number], kinds[number] = generated.images[repeated[0]], kinds[repeated[0]]
    return LabeledSet(generated.images[kept], [kinds[i] for i in kept]), reference


def example_sets(n: int = 500) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a generated and a reference set of digits, as pixels in [0, 1].

    The generated set has no zeros and about four times as many ones; the two sets have no image in common.

    Args:
        n: number of samples of each set, at most 1000.

    Returns:
        Two arrays of shape (n, 784).

    Example:
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> gen.shape
        (300, 784)
    """
    images, labels = shipped_digits()
    rows = images.reshape(len(images), -1)
    rng = np.random.default_rng(0)
    ref, rest = np.split(rng.permutation(len(rows)), [n])
    weights = np.choose(labels[rest].clip(0, 2), [0.0, 4.0, 1.0])
    gen = rng.choice(rest, n, replace=False, p=weights / weights.sum())
    return rows[gen].astype(np.float32) / np.float32(255), rows[ref].astype(np.float32) / np.float32(255)
