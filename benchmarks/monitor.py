"""Measure how often a monitor alarms although nothing changes, and how soon it names what drifts.

    python benchmarks/monitor.py [--regime digits … --runs … --jobs …]

A run draws a reference and looks, with replacement, from one pool. *unchanged*: 50 looks of one law. The first 100 runs
have drifts, too. Each begins at the first look: *saturation* grows by 1 % a step, *kind*: a class of a tenth fades over
20 steps, *diversity*: all distances to the mean shrink to one half over 20 steps, *grid*: a faint grid grows. A drift
counts as named if its own thing has an alarm before step 20; if a class fades, the alarm is on a kind that gets rarer
and has mostly samples of that class.
Photographs are embedded as 8 × 8 pixels, in which classes are not kinds; "network" has their features.
*alone*: the median step at which a test of one look, at 5 % for all things of that look, names it for the first time.
*knows*: the likelihood ratio of a test that knows which class fades, when and how fast, on the followed kind that
shows it best, against the level of one of all things.
*the reference among the looks*: the first of 13 looks is the reference, as in `monitor ckpt-* --ref ckpt-0`. Both have
64, 128, 200 or 400 independent samples of six normal entries.
"""

import copy
import io
import warnings
import zipfile
from functools import cache, lru_cache

import numpy as np
from _real import asset, tiny_imagenet
from _real import mnist as read_mnist
from _record import record
from _runs import counted, rate, run
from PIL import Image, ImageEnhance
from scipy.stats import norm

import finc_eval as fe
from finc_eval.monitoring import exchange, measuring

REGIMES = {
    # name: pool, samples of the reference, samples of a look
    "clusters, 1000, 64": ("clusters", 1000, 64),
    "clusters, 200, 64": ("clusters", 200, 64),
    "clusters, 5000, 16": ("clusters", 5000, 16),
    "heavy tails, 1000, 64": ("heavy tails", 1000, 64),
    "digits, 1000, 64": ("digits", 1000, 64),
    "digits, 5000, 64": ("digits", 5000, 64),
    "network, 1000, 64": ("network", 1000, 64),
    "network, 3000, 64": ("network", 3000, 64),
    "photographs, 1000, 64": ("photographs", 1000, 64),
    "photographs, 3000, 64": ("photographs", 3000, 64),
}
AMONG, SIZES, FURTHER = "the reference among the looks", (64, 128, 200, 400), 12
LOOKS, END, DRIFTS = 50, 20, 100
SEEDS = 5  # seeds of monitors; data are drawn anew in each run
CLASSES = 10


def gaussian(name, rng, labels):
    centers = np.random.default_rng(99).normal(size=(CLASSES, 32)) * 1.5
    noise = rng.standard_t(3, (len(labels), 32)) if name == "heavy tails" else rng.normal(size=(len(labels), 32))
    return (centers[labels] + noise).astype(np.float32)


@cache
def photographs():
    """Return photographs (n, 64, 64, 3) and their class, ten of them."""
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.lower().endswith((".jpeg", ".jpg", ".png")))
        classes = sorted({name.split("/")[-2] if "/" in name else name.split("_")[0] for name in names})[:CLASSES]
        owner = [name.split("/")[-2] if "/" in name else name.split("_")[0] for name in names]
        kept = [(name, classes.index(one)) for name, one in zip(names, owner, strict=True) if one in classes]
        pixels = [np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB")) for name, _ in kept]
    return np.stack(pixels), np.array([one for _, one in kept])


def small(pixels):
    images = [Image.fromarray(one).resize((8, 8), Image.Resampling.BOX) for one in pixels]
    return np.stack([np.asarray(one, np.float32).ravel() / 255 for one in images])


def draw(pool, rng, n, fading=0.0):
    """Return rows, labels and pictures of n samples; a part of class 3 is replaced by others."""
    if pool in ("clusters", "heavy tails"):
        known = np.arange(CLASSES)
    else:
        known = {"digits": mnist, "network": features, "photographs": photographs}[pool]()[1]
    places = rng.integers(0, len(known), n)
    gone = (known[places] == 3) & (rng.random(n) < fading)
    places[gone] = rng.choice(np.flatnonzero(known != 3), gone.sum())
    if pool in ("clusters", "heavy tails"):
        return gaussian(pool, rng, places), places, None
    if pool in ("digits", "network"):
        return {"digits": mnist, "network": features}[pool]()[0][places], known[places], None
    pixels = photographs()[0][places]
    return small(pixels), known[places], pixels


mnist = cache(read_mnist)


@cache
def features():
    """Return features of EfficientNet-Lite0 of the photographs of ten classes, and their class."""
    rows, names = tiny_imagenet()
    _, classes = np.unique(names, return_inverse=True)
    return rows[classes < CLASSES], classes[classes < CLASSES]


def a_set(rows, pixels):
    return rows if pixels is None else fe.EmbeddingSet(rows, images=list(pixels))


def colored(pixels, step):
    made = [ImageEnhance.Color(Image.fromarray(one)).enhance(1 + 0.01 * step) for one in pixels]
    return np.stack([np.asarray(one) for one in made])


def gridded(pixels, step):
    wave = np.zeros(pixels.shape[1:])
    wave[::4] = wave[:, ::4] = 1.0 * step
    return np.clip(pixels + wave, 0, 255).astype(np.uint8)


def drifting(kind, pool, rng, size, step, middle):
    rows, _, pixels = draw(pool, rng, size, fading=step / END if kind == "kind" else 0)
    if kind == "diversity":
        rows = middle + (rows - middle) * (1 - 0.5 * step / END)
    if kind in ("saturation", "grid"):
        pixels = (colored if kind == "saturation" else gridded)(pixels, step)
        rows = small(pixels)
    return a_set(rows, pixels if kind != "diversity" else None)


def names_it(monitor, kind, alarm, probe):
    """Return whether an alarm names a drift."""
    if kind != "kind":
        return alarm.name == {"grid": "pattern"}.get(kind, kind)
    if alarm.name not in monitor.basis.names or alarm.after > alarm.before:
        return False
    rows, labels = probe
    leaf, _ = monitor.basis.tree.assign(rows)
    inside = monitor.basis.members[monitor.basis.names.index(alarm.name)][leaf]
    return bool((labels[inside] == 3).mean() > 0.5)


def follow(monitor, kind, pool, rng, size, probe):
    """Return the step at which a drift is named, and the step at which one look alone would, None if not."""
    middle, alone, named = probe[0].mean(0), None, None
    for step in range(1, END):
        new = monitor.update(step, drifting(kind, pool, rng, size, step, middle))
        history = monitor.history
        followed = int(history.is_followed.sum())
        level = norm.isf(0.05 / 2 / followed)
        unusual = [name for name, z in zip(monitor.names, history.scores[-1], strict=True) if abs(z) >= level]
        if alone is None and any(
            one == {"grid": "pattern"}.get(kind, kind) or (kind == "kind" and one.startswith("kind")) for one in unusual
        ):
            alone = step
        if named is None and any(names_it(monitor, kind, one, probe) for one in new):
            named = step
    return named, alone


def knows(monitor, probe, size):
    """Return whether the likelihood ratio of the best followed kind, most of whose samples fade, reaches K/α."""
    rows, labels = probe
    leaf, _ = monitor.basis.tree.assign(rows)
    fading, history = np.arange(1, END) / END, monitor.history
    before = history.reference[0, 1] + size * np.arange(END - 1)
    reached = []
    for place, members in enumerate(monitor.basis.members[:, leaf]):
        share, part = members.mean(), (labels[members] == 3).mean() if members.any() else 0
        if part <= 0.5:
            continue
        rest = (1 - part) * (1 + fading / (CLASSES - 1))  # others stand for samples of the class that fades
        moves = share * (part * (1 - fading) + rest - 1)
        since = np.concatenate([[0], np.cumsum(size * moves)[:-1]]) / before
        shift = (moves - since) / np.sqrt(share * (1 - share) * (1 / size + 1 / before))
        scores = np.nan_to_num(history.scores[:, place])
        reached.append(np.cumsum(shift * scores - shift**2 / 2).max())
    return bool(max(reached, default=-np.inf) >= np.log(history.is_followed.sum() / monitor.alpha))


def once_a_picture(measure):
    """Return a function of pictures that measures each of them once: looks are drawn from few thousand."""
    known = {}

    def measured(images):
        keys = [one.tobytes() for one in images]
        new = {key: one for key, one in zip(keys, images, strict=True) if key not in known}
        if new:
            known.update(zip(new, zip(*measure(list(new.values())), strict=True), strict=True))
        return tuple(np.stack(part) for part in zip(*(known[key] for key in keys), strict=True))

    return measured


measuring.measure_looks = once_a_picture(measuring.measure_looks)
exchange._sums_of_parts = lru_cache(None)(exchange._sums_of_parts.__wrapped__)  # serves all runs of a seed
measuring.thumbnail = lambda *_: None  # no page is made here


def with_reference(seed):
    """Return the alarms of a run whose first look is the reference, and whether this look was left out."""
    rng, n = np.random.default_rng([seed, 3]), SIZES[seed % len(SIZES)]
    reference = rng.normal(size=(n, 6))
    monitor = fe.Monitor(reference, seed=seed % SEEDS, run=fe.Run(device="cpu"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that the look is left out
        monitor.update(0, reference)
    is_left_out = not monitor.steps
    for step in range(1, FURTHER + 1):
        monitor.update(step, rng.normal(size=(n, 6)))
    return {"alarms": [one.name for one in monitor.alarms], "left out": is_left_out}


def one(regime, seed, drifts=DRIFTS):
    """Return the alarms of an unchanged run, and how drifts are named, if its seed is less than `drifts`."""
    if regime == AMONG:
        return with_reference(seed)
    pool, n, size = REGIMES[regime]
    rng = np.random.default_rng(seed)
    rows, _, pixels = draw(pool, rng, n)
    monitor = fe.Monitor(a_set(rows, pixels), seed=seed % SEEDS, run=fe.Run(device="cpu"))
    probe = draw(pool, np.random.default_rng(seed + 1), 1000)[:2]
    kinds = ("kind", "diversity") + (("saturation", "grid") if pixels is not None else ())
    kinds = kinds if seed < drifts else ()
    found = {}
    for place, kind in enumerate(kinds):
        drifted = copy.deepcopy(monitor)
        found[kind] = follow(drifted, kind, pool, np.random.default_rng([seed, place + 1]), size, probe)
        if kind == "kind":
            found["knows"] = knows(drifted, probe, size)
    rng = np.random.default_rng([seed, LOOKS])  # and not [seed, 0], which draws what seed draws
    for step in range(LOOKS):
        rows, _, pixels = draw(pool, rng, size)
        monitor.update(step, a_set(rows, pixels))
    return {"alarms": [one.name for one in monitor.alarms]} | found


def step_of(step):
    return "–" if np.isinf(step) else f"{step:g}"


def report(regimes):
    rows = []
    for regime, runs in regimes.items():
        row = {"pool, reference, look": regime, "an alarm, unchanged": rate(runs, "alarms")}
        for kind in ("kind", "diversity", "saturation", "grid"):
            told = [{"named": one[kind][0] is not None, "step": one[kind]} for one in runs if kind in one]
            row[kind] = rate(told, "named")
            if kind == "kind":
                row["kind: knows"] = rate(runs, "knows")
            steps = np.array([[np.inf if step is None else step for step in one["step"]] for one in told])
            row[f"{kind}: step, alone"] = " / ".join(map(step_of, np.median(steps, 0))) if told else ""
        rows.append(row)
    record(
        "monitor",
        rows,
        "Runs with an alarm, and drifts named before step 20, with 95 % intervals; median steps.",
        total=whole,
    )


def whole(rows):
    """Return the row of all unchanged runs, but for those whose first look is the reference."""
    counts = [row["an alarm, unchanged"].split()[0].split("/") for row in rows if row["pool, reference, look"] != AMONG]
    alarms, runs = np.array(counts, int).sum(0).tolist()
    return {"pool, reference, look": "all", "an alarm, unchanged": counted(alarms, runs)}


if __name__ == "__main__":
    run("monitor", [*REGIMES, AMONG], one, report, dict.fromkeys(REGIMES, 200) | {AMONG: 60})
