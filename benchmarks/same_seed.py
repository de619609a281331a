"""Measure the verdict of runs with the same seeds: ten engines, eleven faults of a run, and one to 150 pairs.

    python benchmarks/same_seed.py [--regime "photographs, 4 pairs" … --runs … --jobs …]

A run is what one of ten engines makes of photographs of 128 pixels, or of digits of 28. It is judged as it is, which
must be clean, and with each fault planted: a tenth, a quarter, a half or all of other pictures, ids shifted by one, all
mirrored, upside down, with red and blue exchanged, of half the size, every fourth another, a tenth black. *Named*: the
run is broken, and at least 80 % of the planted pairs are listed, or the run has its right name. A red–blue exchange of
digits, which are gray, cannot be seen and is left out. *Hard* engines change what is seen. In *another of the same
kind*, each pair shows another digit of the same class, or another frame of the same clip: what is then called the same?
"""

import gzip
import io
import re
import zipfile
from functools import cache

import numpy as np
from _real import asset
from _record import record
from _runs import counted, run
from PIL import Image
from same_ids import as_pixels, coded, moved, noisy, wavy
from same_ids_clips import videos
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.ndimage import shift as move

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.same_ids.pairs import align, measure
from finc_eval.same_ids.seen import see
from finc_eval.same_ids.verdict import judge_run

PAIRS = (1, 4, 10, 24, 150)
RUNS = {150: 10}


def refiltered(picture, rng):
    size, filters = (
        picture.shape[1::-1],
        [Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS],
    )
    first, second = rng.choice(3, 2)
    large = Image.fromarray(picture).resize((2 * size[0], 2 * size[1]), filters[first])
    return np.asarray(large.resize(size, filters[second]))


def warped(picture, rng, most):
    side = len(picture)
    fields = [gaussian_filter(rng.normal(size=(side, side)), side / 8) for _ in range(2)]
    at = np.mgrid[:side, :side] + np.stack([most * side * one / np.abs(one).max() for one in fields])
    return as_pixels(
        np.stack([map_coordinates(picture[..., c].astype(float), at, order=1, mode="nearest") for c in range(3)], 2)
    )


def painted(picture, rng, part):
    side = len(picture)
    found, edge = picture.copy(), round(side * part**0.5)
    top, left = rng.integers(side - edge + 1, size=2)
    window = slice(top, top + edge), slice(left, left + edge)
    found[window] = POOLS["photographs" if side > 28 else "digits"]()[rng.integers(400)][window]
    return found


ENGINES = {
    "noise 1": lambda one, rng: noisy(one, rng, 1),
    "noise 3": lambda one, rng: noisy(one, rng, 3),
    "noise 3 by e^.7z": lambda one, rng: noisy(one, rng, 3 * np.exp(0.7 * rng.normal())),
    "JPEG 95": lambda one, rng: coded(one, rng, 95),
    "JPEG 75": lambda one, rng: coded(one, rng, 75),
    "shift .3": lambda one, rng: moved(one, rng, 0.3),
    "shift .7": lambda one, rng: moved(one, rng, 0.7),
    "light 2 %": lambda one, rng: as_pixels(one * (1 + 0.02 * rng.normal())),
    "smooth fields": wavy,
    "filters": refiltered,
}
HARD = {
    "JPEG 30": lambda one, rng: coded(one, rng, 30),
    "noise 10": lambda one, rng: noisy(one, rng, 10),
    "20 % darker": lambda one, _: as_pixels(one * 0.8),
    "30 % brighter": lambda one, _: as_pixels(one * 1.3),
    "tint 20": lambda one, _: as_pixels(one + np.array([20.0, 0, -20])),
    "blur 1": lambda one, _: as_pixels(gaussian_filter(one.astype(float), (1, 1, 0))),
    "eight levels": lambda one, _: as_pixels(np.rint(one / 255 * 7) / 7 * 255),
    "warp 1 %": lambda one, rng: warped(one, rng, 0.01),
    "warp 3 %": lambda one, rng: warped(one, rng, 0.03),
    "a tenth repainted": lambda one, rng: painted(one, rng, 0.1),
    "a quarter repainted": lambda one, rng: painted(one, rng, 0.25),
    "shift 4 %": lambda one, _: as_pixels(
        move(one.astype(float), (*[0.04 * len(one)] * 2, 0), order=1, mode="nearest")
    ),
}


def halved(picture):
    return np.asarray(Image.fromarray(picture).resize((picture.shape[1] // 2, picture.shape[0] // 2)))


OF_ALL = {
    "mirrored": (lambda one: one[:, ::-1], "mirrored"),
    "upside down": (lambda one: one[::-1], "upside down"),
    "red–blue": (lambda one: one[..., ::-1], "red and blue exchanged"),
    "half size": (halved, "of another size"),
}
OF_SOME = {"other 10 %": 0.1, "other 25 %": 0.25, "other 50 %": 0.5, "other 100 %": 1.0, "black 10 %": 0.1}


def faulty(new, others, rng, is_gray):
    """Yield each fault: its name, the pictures, the pairs that are at fault, and what the run may be called."""
    n = len(new)
    for name, share in OF_SOME.items():
        rows = rng.permutation(n)[: max(1, round(share * n))]
        yield name, _in_place(new, others, rows, is_black="black" in name), rows, None
    if n > 1:
        yield "ids by one", [*new[1:], new[0]], np.arange(n), r"ids are shifted by 1\b"
    if n >= 4:
        yield "every 4th", _in_place(new, others, np.arange(1, n, 4)), np.arange(1, n, 4), r"every 4th pair from 2\b"
    for name, (change, called) in OF_ALL.items():
        if not (is_gray and name == "red–blue"):
            yield name, [np.ascontiguousarray(change(one)) for one in new], np.arange(n), called


def _in_place(new, others, rows, is_black=False):
    found = [*new]
    for row in rows:
        found[row] = found[row] * 0 if is_black else others[row]
    return found


@cache
def photographs():
    with zipfile.ZipFile(asset("photos", "imagenet_500.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.lower().endswith((".jpeg", ".jpg", ".png")))
        pictures = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names]
    boxes = [[(size - min(one.size)) // 2 for size in one.size] for one in pictures]
    return [
        np.asarray(one.resize((128, 128), Image.Resampling.LANCZOS, (*at, *(min(one.size) + by for by in at))))
        for one, at in zip(pictures, boxes, strict=True)
    ]


@cache
def digits():
    with gzip.open(asset("mnist", "t10k-images-idx3-ubyte.gz")) as file:
        values = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    return [np.repeat(one[..., None], 3, 2) for one in values[:4000]]


@cache
def classes():
    with gzip.open(asset("mnist", "t10k-labels-idx1-ubyte.gz")) as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)[:4000]


POOLS = {"photographs": photographs, "digits": digits}
KINDS = ("digit", "frame")
REGIMES = {
    **{f"{pool}, {n} pair{'s' * (n > 1)}": (pool, ENGINES, n) for pool in POOLS for n in PAIRS},
    **{f"hard engines, {n} pair{'s' * (n > 1)}": ("photographs", HARD, n) for n in PAIRS},
    **{
        f"another {kind} of the same kind, {n} pair{'s' * (n > 1)}": (kind, None, n)
        for kind in KINDS
        for n in PAIRS[:4]
    },
}


def a_set(pictures):
    images = [Image.fromarray(one) for one in pictures]
    rows = np.stack([np.asarray(one.resize((8, 8), Image.Resampling.BOX), np.float32).ravel() / 255 for one in images])
    return fe.EmbeddingSet(rows, [f"{number:04d}.png" for number in range(len(rows))], {}, images)


def table_of(new, old):
    names = np.array([f"{number:04d}.png" for number in range(len(old))])
    return measure(align({"gen": names, "ref": names}, {"gen": a_set(new), "ref": a_set(old)}), Run()), names.tolist()


def verdict_of(new, old, again):
    table, names = table_of(new, old)
    return judge_run(table, None if again is None else table_of(again, old)[0], names)


def alike(kind, n, seed):
    """Return what pairs show that have another picture of the same kind."""
    rng = np.random.default_rng(seed)
    if kind == "digit":
        old = rng.integers(len(digits()), size=n)
        new = [rng.choice(np.flatnonzero((classes() == classes()[one]) & (np.arange(4000) != one))) for one in old]
        pairs = [digits()[one] for one in new], [digits()[one] for one in old]
    else:
        clip = videos()[rng.integers(len(videos()))]
        old = rng.integers(len(clip), size=n)
        far = [np.flatnonzero(np.abs(np.arange(len(clip)) - one) >= len(clip) // 2.5) for one in old]
        pairs = [clip[rng.choice(one)] for one in far], [clip[one] for one in old]
    shown = see(table_of(*pairs)[0]).shown
    return {"pairs": n, "same": int((shown == "same").sum()), "unclear": int((shown == "unclear").sum())}


def one(regime, seed):
    """Return the verdict of a run as it is, and of the run with each fault."""
    pool, engines, n = REGIMES[regime]
    if engines is None:
        return alike(pool, n, seed)
    rng, pictures = np.random.default_rng(seed), POOLS[pool]()
    name, make = [*engines.items()][seed % len(engines)]
    chosen = rng.permutation(len(pictures))[: 2 * n]
    old = [pictures[row] for row in chosen[:n]]
    new, others = ([make(pictures[row], rng) for row in some] for some in (chosen[:n], chosen[n:]))
    again = [make(one, rng) for one in old] if seed // len(engines) % 2 else None
    found = {"engine": name, "equal": verdict_of(new, old, again).verdict, "faults": {}}
    for fault, some, rows, called in faulty(new, others, rng, pool == "digits"):
        judged = verdict_of(some, old, again)
        is_called = called is not None and re.search(called, judged.run) is not None
        is_named = judged.verdict == "broken" and (is_called or float(judged.broken[rows].mean()) >= 0.8)
        found["faults"][fault] = "named" if is_named else judged.verdict
    return found


def row_of(regime, runs):
    """Return the row of a regime."""
    if REGIMES[regime][1] is None:
        pairs = sum(one["pairs"] for one in runs)
        shown = {name: counted(sum(one[name] for one in runs), pairs) for name in ("same", "unclear")}
        return {"regime": regime, "shown as the same": shown["same"], "unclear": shown["unclear"]}
    equal = [one["equal"] for one in runs]
    faults = [verdict for one in runs for name, verdict in one["faults"].items() if name != "red–blue"]
    colors = [one["faults"]["red–blue"] for one in runs if "red–blue" in one["faults"]]
    return {
        "regime": regime,
        "equal: clean": counted(equal.count("clean"), len(equal)),
        "equal: broken": counted(equal.count("broken"), len(equal)),
        "fault: named": counted(faults.count("named"), len(faults)),
        "fault: clean": counted(faults.count("clean"), len(faults)),
        **({"red–blue: named": counted(colors.count("named"), len(colors))} if colors else {}),
    }


def report(regimes):
    rows = [row_of(regime, runs) for regime, runs in regimes.items()]
    record("same_seed", rows, "Runs and pairs, with 95 % intervals.")


if __name__ == "__main__":
    run("same_seed", (*REGIMES,), one, report, {regime: RUNS.get(n, 40) for regime, (*_, n) in REGIMES.items()})
