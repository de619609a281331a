"""Ten causes, each planted in real pictures: digits of the package, and photographs of the assets."""

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits
from finc_eval.demo.prompts import COLORS, DIGITS

SIZE = 120  # pictures of a set
STEPS, CHANGE, SAMPLES = 9, 3, 60  # evaluations of a training, the first with the cause, and pictures of each
CLASSES = (0, 1, 3, 7)  # digits that are drawn
PART = 0.2  # part of a set that is new, repeated or copied


@dataclass(frozen=True)
class Pictures:
    """Pictures with their labels, and their prompts where they have any."""

    images: list[Image.Image]
    labels: list[str]
    prompts: list[str] | None = None

    def at(self, rows):
        own = np.asarray(rows).tolist()
        labels, prompts = ([each[row] for row in own] if each else each for each in (self.labels, self.prompts))
        return Pictures([self.images[row] for row in own], labels, prompts)

    def has(self, label):
        return np.array([one == label for one in self.labels])

    def __add__(self, other):
        prompts = None if self.prompts is None else self.prompts + other.prompts
        return Pictures(self.images + other.images, self.labels + other.labels, prompts)

    def put(self, rows, others):
        """Return the same with other pictures in some rows; ids and prompts stay."""
        images, labels = list(self.images), list(self.labels)
        for row, image, label in zip(rows, others.images, others.labels, strict=False):
            images[row], labels[row] = image, label
        return replace(self, images=images, labels=labels)

    def as_set(self):
        """Embeddings that know digits, or of 8 × 8 pixels of photographs, with pictures, labels and prompts."""
        columns = {"label": self.labels} if self.prompts is None else {"prompt": self.prompts}
        return fe.EmbeddingSet(embed(self.images), metadata=columns, images=self.images)


@dataclass(frozen=True)
class Cause:
    """A cause: where it is planted, how, and its right name."""

    ground: str
    name: str
    plant: Callable[[Pictures, "Sets", np.random.Generator], Pictures]
    lacks: str = ""  # label that all sets but the changed one lack


@dataclass(frozen=True, eq=False)
class Sets:
    """Pictures of one law: a set to change, another model's, the reference, those of a training, and others."""

    before: Pictures
    good: Pictures
    ref: Pictures
    stream: Pictures
    others: Pictures

    def evaluations(self):
        """Yield the pictures of each evaluation of a training."""
        each = len(self.stream.images) // STEPS
        return (self.stream.at(range(step * each, (step + 1) * each)) for step in range(STEPS))


def embed(images):
    """Embed pictures in 8 × 8 pixels; digits by what a linear classifier and a look at their color say."""
    if images[0].size == (28, 28):
        pixels = np.stack([np.asarray(one.convert("RGB"), np.float32) for one in images])
        color = pixels.mean((1, 2)) / 100
        return np.column_stack([pixels.max(-1).reshape(-1, 784) @ _classifier(), color - color.mean(1, keepdims=True)])
    small = [np.asarray(one.convert("RGB").resize((8, 8), Image.Resampling.BOX)).ravel() for one in images]
    return np.stack(small).astype(np.float32) / 255


@cache
def _classifier():
    """Return the weights of a linear classifier of digits, (784, 10), by ridge regression on all of the package."""
    images, labels = shipped_digits()
    rows = images.reshape(-1, 784).astype(np.float32)
    return np.linalg.solve(rows.T @ rows + 1e7 * np.eye(784), rows.T @ np.eye(10)[labels]).astype(np.float32)


def each(change):
    """Plant a change of each picture."""
    return lambda pictures, sets, rng: replace(pictures, images=[change(one, rng) for one in pictures.images])


def noisy(image, rng):
    return Image.fromarray((np.asarray(image, float) + rng.normal(0, 14, np.shape(image))).clip(0, 255).astype("u1"))


def as_jpeg(image, rng):
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=15)
    return Image.open(stream).convert("RGB")


def some(pictures, rng):
    return np.sort(rng.choice(len(pictures.images), round(PART * len(pictures.images)), replace=False))


def lost(label):
    def plant(pictures, sets, rng):
        rows, others = np.flatnonzero(pictures.has(label)), np.flatnonzero(~sets.others.has(label))
        return pictures.put(rows, sets.others.at(rng.choice(others, len(rows), replace=False)))

    return plant


def added(label):
    def plant(pictures, sets, rng):
        rows, new = some(pictures, rng), np.flatnonzero(sets.others.has(label))
        return pictures.put(rows, sets.others.at(rng.choice(new, len(rows), replace=False)))

    return plant


def repeated(pictures, sets, rng):
    rows = some(pictures, rng)
    return pictures.put(rows, sets.others.at([0] * len(rows)))


def copied(pictures, sets, rng):
    rows = some(pictures, rng)
    return pictures.put(rows, sets.ref.at(rng.choice(len(sets.ref.images), len(rows), replace=False)))


def misdrawn(asked, shown):
    """Plant another digit wherever the prompt asks for one."""

    def plant(pictures, sets, rng):
        rows = [row for row, prompt in enumerate(pictures.prompts) if asked in prompt.split()]
        asks = [pictures.prompts[row].replace(asked, shown) for row in rows]
        return pictures.put(rows, painted(asks, rng))

    return plant


def painted(prompts, rng):
    """Draw a digit for each prompt, such as "a red seven"."""
    images, labels = shipped_digits()
    found = []
    for prompt in prompts:
        _, color, digit = prompt.split()
        strokes = images[rng.choice(np.flatnonzero(labels == DIGITS.index(digit)))][..., None] / 255
        found.append(Image.fromarray(np.rint(strokes * COLORS[color]).astype("u1")))
    return Pictures(found, [prompt.split()[-1] for prompt in prompts], prompts)


CAUSES = {
    "blur": Cause("photographs", "blurrier", each(lambda one, rng: one.filter(ImageFilter.GaussianBlur(0.9)))),
    "JPEG": Cause("photographs", "with more JPEG artifacts", each(as_jpeg)),
    "noise": Cause("digits", "noisier", each(noisy)),
    "dark": Cause("photographs", "darker", each(lambda one, rng: ImageEnhance.Brightness(one).enhance(0.8))),
    "gray": Cause("photographs", "gray, without color", each(lambda one, rng: one.convert("L").convert("RGB"))),
    "lost kind": Cause("digits", "1", lost("1")),
    "new kind": Cause("digits", "0", added("0"), lacks="0"),
    "repeats": Cause("digits", "one picture", repeated),
    "copies": Cause("digits", "copies of the reference", copied),
    "misdrawn word": Cause("prompted digits", "seven", misdrawn("seven", "one")),
}


@cache
def _digits():
    images, labels = shipped_digits()
    kept = np.isin(labels, CLASSES)
    return [Image.fromarray(one) for one in images[kept]], [str(one) for one in labels[kept]]


@cache
def _photographs():
    archive = zipfile.ZipFile(Path(os.environ["FINC_EVAL_ASSETS"]) / "photos/tiny_imagenet_24x300.zip")
    names = sorted(name for name in archive.namelist() if name.endswith("JPEG"))
    chosen = np.random.default_rng(1).choice(len(names), 4 * SIZE + STEPS * SAMPLES, replace=False)
    names = [names[row] for row in chosen]
    images = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names]
    return images, [Path(name).name.partition("_")[0] for name in names]


PROMPTS = [f"a {color} {DIGITS[digit]}" for color in COLORS for digit in CLASSES]


def _prompted(seed, size):
    """Return sets that have each prompt equally often, and evaluations that have each once."""
    rng = np.random.default_rng(seed)
    three = [painted(PROMPTS * (size // len(PROMPTS)), rng) for _ in range(3)]
    return Sets(*three, painted(PROMPTS * STEPS, rng), three[0])


GROUNDS = {"digits": _digits, "photographs": _photographs}


def drawn(cause, seed=0, size=SIZE):
    """Return the sets of a cause, without it; each set has so many pictures."""
    if cause.ground not in GROUNDS:
        return _prompted(seed, size)
    rng = np.random.default_rng(seed)
    every = Pictures(*GROUNDS[cause.ground]())
    order = rng.permutation(len(every.images))
    spare = order[every.has(cause.lacks)[order]] if cause.lacks else order[:0]
    order = order[~every.has(cause.lacks)[order]] if cause.lacks else order
    order = order[: 4 * size + STEPS * SAMPLES]
    *three, others, stream = np.split(order, [size, 2 * size, 3 * size, 4 * size])
    return Sets(*map(every.at, [*three, stream, [*others, *spare]]))
