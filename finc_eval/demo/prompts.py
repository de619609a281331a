"""Two text-to-image models of words and colored digits, with known faults, on the same prompts."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.doors import create_file
from finc_eval.core.files.csv_text import write_rows
from finc_eval.demo.planted import shipped_digits

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

COLORS = {
    "red": (230, 40, 40),
    "orange": (240, 140, 20),
    "yellow": (235, 225, 50),
    "lime": (150, 220, 40),
    "green": (30, 150, 60),
    "cyan": (40, 210, 210),
    "blue": (50, 80, 230),
    "purple": (150, 50, 200),
    "pink": (250, 130, 190),
    "white": (250, 250, 250),
}

GROUNDS = {"black": (0, 0, 0), "grey": (90, 90, 90)}

FAULTS = ("seven", "purple", "pink")
"""Words that the first model fails at: a seven is a one, purple is blue, and a pink prompt has one picture."""


@dataclass(frozen=True)
class PromptedSet:
    """Images of prompts."""

    images: NDArray[np.uint8]  # shape (n, 28, 28, 3), uint8
    prompts: list[str]  # prompt of each image
    seeds: list[int]  # number of the image among the images of its prompt

    @property
    def rows(self) -> NDArray[np.float32]:
        """The pixels, in [0, 1], shape (n, 2352)."""
        return self.images.reshape(len(self.images), -1).astype(np.float32) / np.float32(255)

    def write(self, folder: Path) -> None:
        """Write one PNG per image, and the prompts in a metadata.csv."""
        table = io.StringIO(newline="")
        write_rows(table, [["file_name", "prompt", "seed"]], end="\n")
        folder.mkdir(parents=True, exist_ok=True)
        for number, (image, prompt, seed) in enumerate(zip(self.images, self.prompts, self.seeds, strict=True)):
            name = f"{number:05d}.png"
            write_rows(table, [[name, prompt, seed]], end="\n")
            with create_file(folder / name) as file:
                Image.fromarray(image).save(file, "PNG")
        with create_file(folder / "metadata.csv") as file:
            file.write(table.getvalue().encode())


def prompted_sets(
    prompts: int = 200, each: int = 4, seed: int = 0, *, faults: bool = True
) -> tuple[PromptedSet, PromptedSet]:
    """Return two models' images of the same prompts, "a red seven on grey"; the first one has faults.

    The first model draws a one for every seven, blue for every purple, and one picture several times for every pink
    prompt, unless it has no `faults`. Both draw a three for every eight. There are at most 200 prompts.
    """
    rng = np.random.default_rng(seed)
    every = [(color, digit, ground) for color in COLORS for digit in DIGITS for ground in GROUNDS]
    chosen = [every[index] for index in np.sort(rng.choice(len(every), prompts, replace=False))]
    return _draw_images(chosen, each, rng, faults=faults), _draw_images(chosen, each, rng, faults=False)


def _draw_images(
    chosen: list[tuple[str, str, str]], each: int, rng: np.random.Generator, *, faults: bool
) -> PromptedSet:
    digits, labels = shipped_digits()
    images: list[NDArray[np.uint8]] = []
    texts: list[str] = []
    seeds: list[int] = []
    for color, digit, ground in chosen:
        shown = 3 if digit == "eight" else 1 if faults and digit == "seven" else DIGITS.index(digit)
        paint = np.array(COLORS["blue" if faults and color == "purple" else color], float)
        strokes = digits[rng.choice(np.flatnonzero(labels == shown), each)].astype(float)[..., None] / 255
        if faults and color == "pink":
            strokes[:] = strokes[0]
        drawn = strokes * paint + (1 - strokes) * np.array(GROUNDS[ground], float)
        images.append(np.rint(drawn).astype(np.uint8))
        texts += [f"a {color} {digit} on {ground}"] * each
        seeds += range(each)
    return PromptedSet(np.concatenate(images), texts, seeds)
