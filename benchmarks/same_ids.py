"""Measure how often two runs with the same seed are called broken or worse, and which broken pairs are listed.

    python benchmarks/same_ids.py [--regime "JPEG 85" … --runs … --jobs …]

Photographs of 64 pixels are the baseline. A run is what an engine makes of them: noise as number formats leave it, of
one size or of many, codecs, moves by parts of a pixel, smooth fields, and changes of all light and color. *equals*:
nothing is broken. *other*, *shift*, *black*: 5 % of the new pictures are other ones, shifted by 8 pixels, or black.
Every other draw has a floor, a further run of the same engine, as the second run of the baseline. *prompts*: each
picture has the prompt of its class, one of ten, so that the diversity within prompts and the words of repeats are
judged, too; the fault is that half of the pictures of one prompt have become one picture, which must be called worse
by name.
"""

import io
import zipfile
from functools import cache

import numpy as np
from _real import asset
from _record import record
from _runs import counted, rate, run
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.ndimage import shift as move

import finc_eval as fe


def as_pixels(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def noisy(picture, rng, deviation):
    return as_pixels(picture + rng.normal(0, deviation, picture.shape))


def coded(picture, _, quality):
    stored = io.BytesIO()
    Image.fromarray(picture).save(stored, "JPEG", quality=quality)
    return np.asarray(Image.open(stored))


def moved(picture, rng, most=0.7):
    return as_pixels(move(picture.astype(float), (*rng.uniform(-most, most, 2), 0), order=1, mode="nearest"))


def wavy(picture, rng):
    field = gaussian_filter(rng.normal(size=picture.shape), (4, 4, 0))
    return as_pixels(picture + 8 * np.exp(0.5 * rng.normal()) * field / field.std())


ENGINES = {
    "noise of 1/255": lambda one, rng: noisy(one, rng, 1),
    "noise of 3/255": lambda one, rng: noisy(one, rng, 3),
    "noise of 3/255 by e^.7z": lambda one, rng: noisy(one, rng, 3 * np.exp(0.7 * rng.normal())),
    "noise of 2/255 in one of ten": lambda one, rng: noisy(one, rng, 2) if rng.random() < 0.1 else one,
    "JPEG 85": lambda one, rng: coded(one, rng, 85),
    "JPEG 50": lambda one, rng: coded(one, rng, 50),
    "moves up to .7 pixels": moved,
    "smooth fields": wavy,
    "20 % darker": lambda one, _: as_pixels(one * 0.8),
    "30 % brighter": lambda one, _: as_pixels(one * 1.3),
    "tinted": lambda one, _: as_pixels(one + np.array([20.0, 0, -20])),
}
PROMPTS = {f"prompts, {name}": ENGINES[name] for name in ("noise of 3/255", "JPEG 85")}
FAULTS = ("other", "shift", "black")
RUNS = 20
PAIRS, WORDS = 300, 10


@cache
def photographs():
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = [name for name in archive.namelist() if name.lower().endswith((".jpeg", ".jpg", ".png"))]
        return [np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB")) for name in names]


@cache
def classes():
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = [name for name in archive.namelist() if name.lower().endswith((".jpeg", ".jpg", ".png"))]
        return [name.split("/")[-2] for name in names]


def a_set(pictures, columns=None):
    images = [Image.fromarray(one) for one in pictures]
    rows = np.stack([np.asarray(one.resize((8, 8), Image.Resampling.BOX), np.float32).ravel() / 255 for one in images])
    return fe.EmbeddingSet(rows, [f"{number:04d}.png" for number in range(len(rows))], columns or {}, images)


def draw_of_prompts(engine, seed):
    """Return a generator, the pictures of both runs, their prompts, and the class of each."""
    rng, pool = np.random.default_rng(seed), photographs()
    drawn = set(rng.choice(sorted(set(classes())), WORDS, replace=False))
    chosen = rng.choice([row for row, word in enumerate(classes()) if word in drawn], PAIRS, replace=False)
    words = [classes()[row] for row in chosen]
    columns = {"prompt": [f"a photo of {word}" for word in words]}
    old = [pool[row] for row in chosen]
    new = [PROMPTS[engine](one, rng) for one in old]
    return rng, old, new, columns, words


def draw(engine, seed):
    """Return a generator, the pictures of both runs, and further runs of the baseline: one in every other draw."""
    rng, pool = np.random.default_rng(seed), photographs()
    old = [pool[row] for row in rng.choice(len(pool), PAIRS, replace=False)]
    new = [ENGINES[engine](one, rng) for one in old]
    again = [a_set([ENGINES[engine](one, rng) for one in old])] if seed % 2 else []
    return rng, old, new, again


def of_equals(engine, seed):
    """Return what a run of equals says, without a fault."""
    if engine in PROMPTS:
        _, old, new, columns, _ = draw_of_prompts(engine, seed)
        said = fe.compare(a_set(new, columns), a_set(old, columns), pairs="id", features=200).by_id
    else:
        _, old, new, again = draw(engine, seed)
        said = fe.compare(a_set(new), a_set(old), pairs="id", again=again, features=200).by_id
    return {"listed": bool(said.broken), "worse": [one.name for one in said.worse]}


def one_of_prompts(engine, seed):
    """Return what a run of equals says, and whether the word of a prompt is named whose pictures became one."""
    rng, old, new, columns, words = draw_of_prompts(engine, seed)
    equals = fe.compare(a_set(new, columns), a_set(old, columns), pairs="id", features=200).by_id
    word = words[rng.integers(PAIRS)]
    mine = [row for row, other in enumerate(words) if other == word]
    for row in mine[: len(mine) // 2]:
        new[row] = new[mine[0]]
    found = fe.compare(a_set(new, columns), a_set(old, columns), pairs="id", features=200).by_id
    return {
        "listed": bool(equals.broken),
        "worse": [one.name for one in equals.worse],
        "collapsed": any(
            one.what == "repeats" and any(part in one.name for part in word.lower().split("_")) for one in found.worse
        ),
    }


def one(engine, seed):
    """Return what a run of equals says, and what is listed where one of the faults is planted."""
    if engine in PROMPTS:
        return one_of_prompts(engine, seed)
    rng, old, new, again = draw(engine, seed)
    pool = photographs()
    equals = fe.compare(a_set(new), a_set(old), pairs="id", again=again, features=200).by_id
    fault, rows = FAULTS[seed % 3], rng.choice(PAIRS, PAIRS // 20, replace=False)
    for row in rows:
        side = len(new[row])
        new[row] = {
            "other": pool[rng.integers(len(pool))],
            "shift": np.pad(new[row], ((8, 0), (8, 0), (0, 0)), "edge")[:side, :side],
            "black": new[row] * 0,
        }[fault]
    broken = fe.compare(a_set(new), a_set(old), pairs="id", again=again, features=200).by_id.broken
    planted = {f"{row:04d}.png" for row in rows}
    return {
        "listed": bool(equals.broken),
        "worse": [one.name for one in equals.worse],
        "fault": fault,
        "found": len(planted & set(broken)),
        "of": len(planted),
        "false": len(set(broken) - planted),
    }


def row_of(engine, runs, faults):
    """Return the row of an engine: how often equals are called broken or worse, and which planted faults are found."""
    row = {"engine": engine, "a list of equals": rate(runs, "listed"), "equals worse": rate(runs, "worse")}
    if engine in PROMPTS:
        return row | {"collapsed": rate(runs, "collapsed")}
    for fault in faults:
        mine = [one for one in runs if one["fault"] == fault]
        row[fault] = counted(sum(one["found"] for one in mine), sum(one["of"] for one in mine))
    false = sum(one["false"] for one in runs)
    return row | {"false of the lists": f"{false}/{false + sum(one['found'] for one in runs)}"}


def report(regimes):
    rows = [row_of(engine, runs, FAULTS) for engine, runs in regimes.items()]
    record("same_ids", rows, "Runs, and broken pairs found of those planted, with 95 % intervals.")


if __name__ == "__main__":
    run("same_ids", (*ENGINES, *PROMPTS), one, report, RUNS)
