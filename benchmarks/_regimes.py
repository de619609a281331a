"""Two sets of one law, in many regimes: of rows, of pictures, of prompts, of groups, and as sketches."""

import io
import zipfile
from functools import cache, partial

import _real
import numpy as np
from _designs import Source, clusters, copies, digits, heavy_tails, photographs, real, same_law
from PIL import Image, ImageOps

import finc_eval as fe

FEATURES = 256

TIGHT = partial(clusters, 50, 32, spread=0.1)
NEAR = 0.3
"""Noise of the samples of a group or a prompt; samples of the law itself have noise 1."""


def law_of(draw_rows):
    """Return a law of one kind, from a function of (rng, number of rows)."""

    def opened(rng):
        return Source(np.ones(1), lambda which: draw_rows(rng, len(which)).astype(np.float32), lambda: None)

    return opened


def binary():
    return law_of(lambda rng, n: rng.choice([-1.0, 1.0], (n, 40)))


def sparse():
    return law_of(lambda rng, n: np.maximum(rng.normal(size=(n, 64)) - 1.5, 0))


def narrow():
    return law_of(lambda rng, n: rng.normal(size=(n, 64)) * np.append(30.0, np.ones(63)))


def wide():
    return law_of(lambda rng, n: rng.normal(size=(n, 2048)))


def zipf_points():
    def opened(rng):
        points, shares = rng.normal(size=(300, 16)), 1 / np.arange(1, 301)
        return law_of(lambda rng, n: points[rng.choice(300, n, p=shares / shares.sum())])(rng)

    return opened


def clips():
    return real(cache_of_clips)


@cache
def cache_of_clips():
    return _real.ucf101()


def plain(law, n, m, rng):
    """Return two arrays, and no options."""
    return [part.rows for part in same_law(law()(rng), rng, n, m)], {}


def groups(designs, rng):
    """Return sets of groups; a design is a number of groups and the size of each, or the mean of a geometric size."""
    parts = same_law(clusters(20, 64)(rng), rng, *(count for count, _ in designs))
    sets = []
    for part, (_, size) in zip(parts, designs, strict=True):
        sizes = np.full(len(part.rows), size) if isinstance(size, int) else rng.geometric(1 / size, len(part.rows))
        group = np.repeat(np.arange(len(sizes)), sizes)
        rows = part.rows[group]
        rows = (rows + NEAR * rng.standard_normal(rows.shape)).astype(np.float32)
        sets.append(fe.EmbeddingSet(rows, metadata={"group": [str(one) for one in group]}))
    return sets, {"groups": "group"}


def prompts(count, each, rng):
    """Return sets with some samples of each prompt; the samples of a set and prompt are alike."""
    (part,) = same_law(clusters(20, 64)(rng), rng, count)
    sets = []
    for n in each:
        rows, prompt = copies(part, n, NEAR, rng)
        sets.append(fe.EmbeddingSet(rows, metadata={"prompt": [str(one) for one in prompt]}))
    return sets, {"pairs": "prompt"}


@cache
def pictures():
    """Return the photographs of `photographs`, in its order."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        return [archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".JPEG")]


def picture(index):
    return Image.open(io.BytesIO(pictures()[index])).convert("RGB")


def source_of(index):
    """Return a picture of one of four sources."""
    image = picture(index)
    if index % 4 == 1:
        return ImageOps.grayscale(image).convert("RGB")
    if index % 4 == 2:
        return image.resize((40, 30))
    if index % 4 == 3:
        return Image.fromarray((255 * digits()[0][index].reshape(28, 28)).astype(np.uint8)).convert("RGB")
    return image


def with_pictures(n, m, rng, shown=picture, copied=1, rows=None):
    """Return sets of pictures; `copied` times each, turned and cut in ways of their own, as groups; n and m of both."""
    rows = photographs()[0] if rows is None else rows
    order = rng.permutation(len(pictures()))[: (n + m) // copied]
    sets, options = [], {"groups": "group"} if copied > 1 else {}
    for part in (order[: n // copied], order[n // copied :]):
        own = np.repeat(part, copied)
        images = [shown(index) for index in own]
        if copied > 1:
            corners = rng.integers(0, 9, (len(own), 2)).tolist()
            images = [one.crop((x, y, x + 56, y + 56)) for one, (x, y) in zip(images, corners, strict=True)]
        metadata = {"group": [str(one) for one in own]} if copied > 1 else None
        sets.append(fe.EmbeddingSet(rows[own], images=images, metadata=metadata))
    return sets, options


def skewed_pictures(n, m, rng):
    """Return sets of pictures whose classes are drawn by Zipf's law, the classes in a random order."""
    rows, labels = photographs()
    classes = rng.permutation(np.unique(labels))
    shares = 1 / np.arange(1, len(classes) + 1)
    left = {name: rng.permutation(np.flatnonzero(labels == name)).tolist() for name in classes}
    drawn = rng.choice(classes, n + m, p=shares / shares.sum())
    order = np.array([left[name].pop() for name in drawn.tolist()])
    return [fe.EmbeddingSet(rows[part], images=[*map(picture, part)]) for part in np.split(order, [n])], {}


def prompted_pictures(count, each, rng):
    """Return sets of pictures by prompt: cuts of one photograph of each prompt."""
    order = rng.permutation(len(pictures()))[:count]
    sets = []
    for n in each:
        own = np.repeat(order, n)
        corners = rng.integers(0, 17, (len(own), 2)).tolist()
        images = [picture(i).crop((x, y, x + 48, y + 48)) for i, (x, y) in zip(own, corners, strict=True)]
        metadata = {"prompt": [str(one) for one in own]}
        sets.append(
            fe.EmbeddingSet(rng.normal(size=(len(own), 4)).astype(np.float32), images=images, metadata=metadata)
        )
    return sets, {"pairs": "prompt"}


def sketches(law, n, m, rng):
    (gen, ref), _ = plain(law, n, m, rng)
    reference = fe.Sketch.reference(ref, features=FEATURES)
    return [fe.Sketch.of(rows, reference.feature_map) for rows in (gen, ref)], {}


DIGITS = partial(real, digits)
WHOLE = {
    "photographs-60-60": partial(with_pictures, 60, 60),
    "skewed-60-60": partial(skewed_pictures, 60, 60),
    "skewed-150-150": partial(skewed_pictures, 150, 150),
    "photographs-100-100": partial(with_pictures, 100, 100),
    "photographs-60-300": partial(with_pictures, 60, 300),
    "mixed-100-100": partial(with_pictures, 100, 100, shown=source_of),
    "tight-60-60": partial(plain, TIGHT, 60, 60),
    "tight-400-100": partial(plain, TIGHT, 400, 100),
    "t2-200-200": partial(plain, partial(heavy_tails, 16, 2), 200, 200),
    "digits-200-200": partial(plain, DIGITS, 200, 200),
    "groups-60x4-60x4": partial(groups, ((60, 4), (60, 4))),
    "groups-100x3-40x8": partial(groups, ((100, 3), (40, 8))),
    "prompts-60x4": partial(prompts, 60, (4, 4)),
    "sketches-200-200": partial(sketches, TIGHT, 200, 200),
}
GAUSS = partial(clusters, 20, 64)
SETS = {
    **{f"clusters-{n}-{m}": partial(plain, GAUSS, n, m) for n, m in ((20, 20), (60, 60), (200, 200), (1000, 100))},
    "clusters-300-8000": partial(plain, GAUSS, 300, 8000),
    "wide-200-200": partial(plain, wide, 200, 200),
    "cauchy-200-200": partial(plain, partial(heavy_tails, 16, 1), 200, 200),
    "cauchy-60-600": partial(plain, partial(heavy_tails, 16, 1), 60, 600),
    "zipf-400-400": partial(plain, zipf_points, 400, 400),
    "groups-60x4-60x4": partial(groups, ((60, 4), (60, 4))),
    "groups-100x3-40x8": partial(groups, ((100, 3), (40, 8))),
    "groups-40x3-100x8": partial(groups, ((40, 3), (100, 8))),
    "groups-40x1-300x8": partial(groups, ((40, 1), (300, 8))),
    "groups-40xgeometric-60x3": partial(groups, ((40, 6.0), (60, 3))),
    "prompts-100x1": partial(prompts, 100, (1, 1)),
    "prompts-25x4": partial(prompts, 25, (4, 4)),
    "prompts-60x4-60x1": partial(prompts, 60, (4, 1)),
    "digits-300-300": partial(plain, DIGITS, 300, 300),
    "clips-300-100": partial(plain, clips, 300, 100),
    "binary-100-300": partial(plain, binary, 100, 300),
    "sparse-300-300": partial(plain, sparse, 300, 300),
    "narrow-200-60": partial(plain, narrow, 200, 60),
    "sketches-60-60": partial(sketches, GAUSS, 60, 60),
}
NO_ROWS = np.zeros((7200, 4), np.float32)
PICTURES = partial(with_pictures, rows=NO_ROWS)
LOOKS = {
    **{f"photographs-{n}-{m}": partial(PICTURES, n, m) for n, m in ((30, 30), (60, 300), (100, 100), (300, 60))},
    "photographs-300-300": partial(PICTURES, 300, 300),
    "photographs-600-600": partial(PICTURES, 600, 600),
    "mixed-60-60": partial(PICTURES, 60, 60, shown=source_of),
    "mixed-200-50": partial(PICTURES, 200, 50, shown=source_of),
    "mixed-300-300": partial(PICTURES, 300, 300, shown=source_of),
    "groups-30x4-30x4": partial(PICTURES, 120, 120, copied=4),
    "groups-100x3-30x3": partial(PICTURES, 300, 90, copied=3),
    "prompts-40x4": partial(prompted_pictures, 40, (4, 4)),
    "prompts-100x1": partial(prompted_pictures, 100, (1, 1)),
    "prompts-60x3-60x1": partial(prompted_pictures, 60, (3, 1)),
}
