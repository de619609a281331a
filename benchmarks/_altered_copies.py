"""Copies that were altered, and how often an audit finds them; a part of `audit.py`."""

import gzip
import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from _real import asset
from _record import record
from PIL import Image

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.audit import CALIBRATION_NEIGHBORS
from finc_eval.memorization.hashes import EVERY_VIEW, TRAIN_VIEWS, hash_pictures, nearest_hashes
from finc_eval.memorization.settings import AUDIT_ALPHA, MEASURES_PART
from finc_eval.memorization.tails import calibrated_distances, tail_p_value
from finc_eval.memorization.views import ALTERATIONS, SUSPECTS, SuspectViews, multi_view_distances
from finc_eval.numerics.inference import wilson


def idx_images(path):
    """Return the pictures of a file of MNIST, (n, 28, 28) uint8."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16).reshape(-1, 28, 28)


def shifted(image, rng):
    """Shift an image by one or two pixels along an axis or both."""
    x, y = 0, 0
    while not (x or y):
        x, y = rng.integers(-2, 3, 2)
    padded = np.pad(np.asarray(image), ((2, 2), (2, 2), (0, 0)), mode="edge")
    return padded[2 + y : 2 + y + image.height, 2 + x : 2 + x + image.width]


KINDS_OF_COPIES = {"exact": lambda image, rng: image, **ALTERATIONS, "shift": shifted}


def altered(repeats=20, size=1000, most=50):
    """Record how often altered copies are found, by the embedding alone and with hashes and views.

    Views are embedded in a few splits.
    """
    rows = []
    sources = (("digits", digit_pictures, "pixels", 4), ("photographs", photo_pictures, "efficientnet-lite0", 4))
    for name, make, extractor, with_views in sources:
        images = make(3 * size + most)
        if images is None:
            continue
        rng = np.random.default_rng(100)
        copies = [
            np.asarray(alter(image, rng), np.uint8) for alter in KINDS_OF_COPIES.values() for image in images[:most]
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "images.npz")
            np.savez(path, images=np.concatenate([np.stack([np.asarray(image) for image in images]), np.stack(copies)]))
            everything = as_embeddings(fe.extract(path, extractor, Path(folder, "images.h5")))
            rows += _altered(name, everything, len(images), rng, repeats, with_views, size, most)
        record(
            "audit_altered",
            rows,
            notes=f"{size} samples in each set, {repeats} random splits, 4 of them with views; splits with a finding, "
            "and Wilson's interval at 95 %; digits of MNIST by their pixels, photographs of Tiny-ImageNet in "
            "EfficientNet-Lite0's features; level .025/7 for the embedding alone and .025/9 for the others, the least "
            "that Holm leaves a test",
        )


def _altered(name, everything, clean, rng, repeats, with_views, size, most):
    """Return the rows of one data set: images, then the altered copies of the first few, all in one cache."""
    run, k = Run(), CALIBRATION_NEIGHBORS
    hashes = np.concatenate([found for _, found in hash_pictures(everything, EVERY_VIEW, name, run)])
    base = np.concatenate(
        [found for _, found in hash_pictures(Subset(everything, np.arange(clean)), TRAIN_VIEWS, name, run)]
    )
    embed = SuspectViews(everything, run)  # views of one picture are the same in every split
    found = {}
    for repeat in range(repeats):
        order = most + rng.permutation(clean - most)
        train_rows = np.concatenate([np.arange(most), order[: size - most]])
        parts = {
            "holdout": order[size : 2 * size],
            "gen": order[2 * size : 3 * size],
            "copies": np.arange(clean, everything.n),
        }
        train, sets = Subset(everything, train_rows), {part: Subset(everything, rows) for part, rows in parts.items()}
        plain = {part: calibrated_distances(nearest(one, train, k).distances) for part, one in sets.items()}
        by_hash = {
            part: calibrated_distances(nearest_hashes(hashes[rows], base[train_rows], k, run).distances)
            for part, rows in parts.items()
        }
        for alteration, kind in enumerate(KINDS_OF_COPIES):
            for share in (0.0, 0.005, 0.01, 0.02, 0.05) if alteration == 0 else (0.005, 0.01, 0.02, 0.05):
                count = round(share * size)
                drawn = alteration * most + rng.choice(most, count, replace=False)
                tried = {
                    "holdout": sets["holdout"],
                    "gen": Subset(everything, parts["gen"][count:]),
                    "copies": Subset(everything, parts["copies"][drawn]),
                }
                tests = {
                    test: [scores["holdout"], scores["gen"][count:], scores["copies"][drawn]]
                    for test, scores in (("embedding", plain), ("hash", by_hash))
                }
                key = ("none" if not count else kind, share)
                if repeat < with_views:
                    moved = multi_view_distances(
                        tried, [*tests.values()], train, base[train_rows], k, SUSPECTS, embed, run, tuple(tried)
                    )
                    tests["views"] = [distances for distances, _ in moved]
                p = {test: tail_p_value(np.concatenate(low[1:]), low[0]) for test, low in tests.items()}
                found.setdefault(key, []).append(p)
        print(name, repeat, flush=True)
    before, after = MEASURES_PART * AUDIT_ALPHA / 7, MEASURES_PART * AUDIT_ALPHA / 9

    def share_of(runs, test, level):
        passed = [one[test] <= level for one in runs if test in one]
        if not passed:
            return "–"
        low, high = wilson(np.mean(passed), len(passed), 0.95)
        return f"{sum(passed)} of {len(passed)} [{low:.2f}, {high:.2f}]"

    return [
        {
            "data": name,
            "copies": kind,
            "share": f"{100 * share:g} %",
            "embedding alone": share_of(runs, "embedding", before),
            "hash": share_of(runs, "hash", after),
            "views": share_of(runs, "views", after),
            "any of the three": share_of([{"any": min(one.values())} for one in runs], "any", after),
            "p ≤ .05: embedding, hash, views": ", ".join(
                str(sum(one[test] <= 0.05 for one in runs if test in one)) for test in ("embedding", "hash", "views")
            ),
        }
        for (kind, share), runs in found.items()
    ]


def digit_pictures(count):
    path = asset("mnist", "t10k-images-idx3-ubyte.gz")
    if path is None:
        return None
    images = idx_images(path)[np.random.default_rng(7).permutation(10_000)[:count]]
    return [Image.fromarray(image).convert("RGB") for image in images]


def photo_pictures(count):
    path = asset("photos", "tiny_imagenet_24x300.zip")
    if path is None:
        return None
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        drawn = np.random.default_rng(7).permutation(len(names))[:count]
        return [Image.open(io.BytesIO(archive.read(names[place]))).convert("RGB") for place in drawn]
