"""Pools of embedded pictures, from which whole comparisons draw sets; and sets of one law that are drawn from them.

A set that is drawn from a pool has the embeddings, the cells and the pictures that `fe.extract` of a folder gives; a
pool is embedded once and kept.
"""

import io
import zipfile
from functools import cache, partial
from unittest.mock import patch
from zlib import crc32

import _real
import numpy as np
import torch
from PIL import Image, ImageOps

import finc_eval as fe
from finc_eval.embeddings import cells
from finc_eval.embeddings.base import CachedEmbeddings

POOLS = _real.CACHE / "pools"
CROPS, SIDE = 4, 56  # crops of a photograph of 64 pixels, and the side of each


@cache
def files_64():
    """Return the bytes of 7 200 photographs of 64 pixels, and the class of each."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        return [archive.read(name) for name in names], np.array([name.split("/")[0] for name in names])


def opened(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def photographs():
    return map(opened, files_64()[0])


def photographs_128():
    with zipfile.ZipFile(_real.asset("photos", "imagenet_500.zip")) as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith("jpg")):
            yield ImageOps.fit(opened(archive.read(name)), (128, 128))


def crops():
    """Yield four crops of each fifth photograph: crop k of photograph i is number 4 i + k."""
    rng = np.random.default_rng(76)
    for data in files_64()[0][::5]:
        for x, y in rng.integers(0, 64 - SIDE + 1, (CROPS, 2)).tolist():
            yield opened(data).crop((x, y, x + SIDE, y + SIDE))


def digits():
    pixels, _ = _real.mnist()
    for row in pixels[::5]:
        yield Image.fromarray((255 * row.reshape(28, 28)).astype(np.uint8)).convert("RGB")


def mixed():
    """Yield every fourth photograph, a half of these gray or small."""
    for number, data in enumerate(files_64()[0][1::4]):
        image = opened(data)
        gray = ImageOps.grayscale(image).convert("RGB")
        yield (image, image, gray, image.resize((40, 30)))[number % 4]


POOLS_OF = {
    "photographs": photographs,
    "photographs of 128 px": photographs_128,
    "crops": crops,
    "digits": digits,
    "mixed": mixed,
}


@cache
def pool(name):
    """Return the embeddings of a pool, with their cells and pictures."""
    return embedded(name, POOLS_OF[name])


def embedded(name, images):
    """Return the embeddings of the images that a function returns; they are made once, and kept under a name."""
    folder, file = POOLS / name, POOLS / f"{name}.h5"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(images()):
            image.save(folder / f"{number:04d}.png")
    with patch.object(cells, "MAX_CELLS", 10_000):  # of all samples, since each may be drawn
        return CachedEmbeddings(fe.extract(str(folder), out=file))


@cache
def picture(source, row):
    return source.images_at(np.array([row]))[0]


class Drawn(fe.EmbeddingSet):
    """Samples of pools as a set of their own: a list of (embeddings of a pool, rows), with columns of metadata."""

    are_images = True

    def __init__(self, parts, metadata=None):
        parts = [(source, np.asarray(rows, np.int64)) for source, rows in parts]
        images = [picture(source, row) for source, rows in parts for row in rows.tolist()]
        embeddings = torch.cat([source.rows_at(rows) for source, rows in parts])
        ids = [f"{crc32(source.name.encode())}-{row}.png" for source, rows in parts for row in rows.tolist()]
        super().__init__(embeddings, ids, metadata, images)
        values = np.concatenate([source.cells.values[rows] for source, rows in parts])
        self._cells = cells.Cells(values, np.arange(len(values)), parts[0][0].cells.space)
        self.space = parts[0][0].space

    cells, cells_absent = property(lambda self: self._cells), ""


# --- two sets of one law, and the options of their comparison


def split(name, n, m, rng):
    rows = rng.permutation(pool(name).n)[: n + m]
    return [Drawn([(pool(name), part)]) for part in np.split(rows, [n])], {}


def skewed(n, m, rng):
    """Return sets of photographs whose classes are drawn by Zipf's law, the classes in a random order."""
    classes = np.unique(files_64()[1], return_inverse=True)[1]
    weights = (1 / (1 + rng.permutation(classes.max() + 1)))[classes]
    rows = rng.choice(len(weights), n + m, replace=False, p=weights / weights.sum())
    return [Drawn([(pool("photographs"), part)]) for part in np.split(rows, [n])], {}


def groups(counts, least, most, rng):
    """Return sets of groups: `least` to `most` crops of a photograph each."""
    photograph, sets = iter(rng.permutation(pool("crops").n // CROPS).tolist()), []
    for count in counts:
        own = [(next(photograph), size) for size in rng.integers(least, most + 1, count).tolist()]
        rows = [CROPS * number + crop for number, size in own for crop in range(size)]
        sets.append(Drawn([(pool("crops"), rows)], {"group": [str(row // CROPS) for row in rows]}))
    return sets, {"groups": "group"}


def prompts(count, most, rng):
    """Return sets of prompts: each is a part of a class, with 1 to `most` photographs in each set."""
    classes = np.unique(files_64()[1], return_inverse=True)[1]
    left = [rng.permutation(np.flatnonzero(classes == kind)).tolist() for kind in range(classes.max() + 1)]
    sets = []
    for _ in range(2):
        drawn = np.repeat(np.arange(count), rng.integers(1, most + 1, count)).tolist()
        rows = [left[prompt % len(left)].pop() for prompt in drawn]
        sets.append(Drawn([(pool("photographs"), rows)], {"prompt": [f"prompt {prompt}" for prompt in drawn]}))
    return sets, {"pairs": "prompt"}


LOCAL = {
    "photographs-60-60": partial(split, "photographs", 60, 60),
    "photographs-150-150": partial(split, "photographs", 150, 150),
    "photographs-300-300": partial(split, "photographs", 300, 300),
    "photographs-100-400": partial(split, "photographs", 100, 400),
    "skewed-150-150": partial(skewed, 150, 150),
    "mixed-100-100": partial(split, "mixed", 100, 100),
    "digits-150-150": partial(split, "digits", 150, 150),
    "groups-50x3-50x3": partial(groups, (50, 50), 3, 3),
    "groups-60x1to4-100x1to4": partial(groups, (60, 100), 1, 4),
    "prompts-72x1to3": partial(prompts, 72, 3),
    "photographs of 128 px-150-150": partial(split, "photographs of 128 px", 150, 150),
}
