"""The folders that the rows of the README name: digits with planted faults, videos, votes, scores and patients."""

import csv
import os
import shutil
from pathlib import Path

import numpy as np
from _videos import encode, scene
from _workshop import TABLE
from PIL import Image

from finc_eval.demo.planted import color_digits, gray, shipped_digits

SAMPLES = 100
"""Samples of a set: an audit needs a hundred."""

COLORED = 30  # digits of a faulty set that are colored, which is the planted fault
COPIED = 20  # digits of a faulty set that are copies of training images

CLEAN = ("real", "old", "other", "train", "holdout")
"""Contents without a fault, by name: each is a hundred other digits."""

FOLDERS = {
    "faulty": ("generated", "new", "a", "model-one", "ckpt-3000"),
    "real": ("real", "wards"),
    "old": ("old", "b", "ckpt-1000", "scans"),
    "other": ("c", "model-two", "ckpt-2000"),
    "train": ("train",),
    "holdout": ("holdout", "model-three"),
}
"""The folders of the README, by their content: the same pictures are embedded once."""


def build():
    """Fill the working folder."""
    contents = _contents()
    for name, (first, *others) in FOLDERS.items():
        _write(Path(first), *contents[name])
        for folder in others:
            shutil.copytree(first, folder, copy_function=os.link)
    images, digits = contents["real"]
    _write(Path("golden"), images[:4], digits[:4])
    _write(Path("tonight"), np.rot90(images[:4], 2, axes=(1, 2)), digits[:4])
    _videos(Path("videos"))
    _judged(digits)
    rng = np.random.default_rng(0)
    np.savez(
        "labeled.npz", embeddings=images.reshape(SAMPLES, -1)[:, ::48] / np.float32(255), labels=digits.astype(str)
    )
    _table("patients.csv", ["age", "ill"], [[age, "yes" if age > 60 else "no"] for age in rng.integers(20, 90, 200)])
    Path("table.toml").write_text(TABLE)


def _contents():
    """The digits of each content, and what they are."""
    images, digits = shipped_digits()
    order = np.random.default_rng(0).permutation(len(images))
    parts = order[: SAMPLES * (len(CLEAN) + 1)].reshape(-1, SAMPLES)
    contents = {name: (gray(images[part]), digits[part]) for name, part in zip(CLEAN, parts, strict=False)}
    faulty, labels = gray(images[parts[-1]]), digits[parts[-1]].copy()
    colored = np.random.default_rng(1).choice(SAMPLES - COPIED, COLORED, replace=False)
    faulty[colored] = color_digits(images[parts[-1][colored]], labels[colored])
    faulty[-COPIED:], labels[-COPIED:] = (part[:COPIED] for part in contents["train"])
    return {**contents, "faulty": (faulty, labels)}


def _write(folder, images, digits):
    """Write pictures with names that all sets share, and their labels and prompts."""
    folder.mkdir()
    rows = []
    for number, (image, digit, prompt) in enumerate(zip(images, digits, _prompts(digits), strict=True)):
        Image.fromarray(np.ascontiguousarray(image)).save(folder / f"{number:03}.png")
        rows.append([f"{number:03}.png", digit, prompt])
    _table(folder / "metadata.csv", ["file_name", "label", "prompt"], rows)


def _prompts(digits):
    """A prompt for every two pictures of a digit."""
    return [f"the digit {digit} by hand {list(digits[:n]).count(digit) // 2}" for n, digit in enumerate(digits)]


def _videos(folder):
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.mp4").write_bytes(encode("mp4", scene(seed=number)))


def _judged(digits):
    """Write the scores of a judge of each model, and votes on the prompts of the digits."""
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        rows = [[f"{number:03}.png", round(score, 3)] for number, score in enumerate(rng.uniform(size=SAMPLES))]
        _table(f"{name}.csv", ["file_name", "quality"], rows)
    votes = [
        [prompt, "one", "two", rng.choice(["one", "two", "tie"]), f"voter {number % 7}"]
        for number, prompt in enumerate(_prompts(digits))
    ]
    _table("votes.csv", ["prompt", "left", "right", "winner", "voter"], votes)


def _table(path, columns, rows):
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
