"""Measure golden pictures: years of nights without a fault, and in how many nights faults are named.

    python benchmarks/golden.py [--part false … --jobs 2 --seeds 16]

Of 24 photographs of 64 pixels, 1, 4 or 10 are the golden pictures of a year. An engine makes 100 nights of them, from
an empty history, in eight conditions; a ninth is the last one without the names of its machines. *false*: years with a
red night, and which rule made it. *fault*, *soon*: from night 30, or 10, on, all pairs or one of them have a fault: the
part of the runs that are red within three nights, and the first red night. *gone*: from night 40 on, one of two states
is not seen any more; counted are the nights until the verdict says so. Nights are judged as `Golden.add` does, in
memory. Each year draws its usual nights among 120 of its condition, without any twice; their pictures are measured
once.
"""

import argparse
import io
import time
import zipfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from _real import asset
from _record import record
from PIL import Image
from same_ids import as_pixels, coded, moved, noisy
from scipy.ndimage import gaussian_filter

from finc_eval.golden.floor import Floor, PastNight
from finc_eval.golden.golden import _rows, _verdict
from finc_eval.golden.judging import judge_night
from finc_eval.golden.measured import measure_night
from finc_eval.golden.pictures import Matched, match_pictures
from finc_eval.numerics.inference import share_bounds

NIGHTS, PAIRS, PICTURES = 100, (1, 4, 10), 24
FILTERS = [getattr(Image.Resampling, name) for name in ("NEAREST", "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS")]


@cache
def photographs():
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = [name for name in archive.namelist() if name.lower().endswith((".jpeg", ".jpg", ".png"))]
        chosen = np.random.default_rng(0).choice(len(names), PICTURES, replace=False)
        return [np.asarray(Image.open(io.BytesIO(archive.read(names[one]))).convert("RGB")) for one in chosen]


def filtered(picture, which):
    image = Image.fromarray(picture)
    side = image.size[0]
    return np.asarray(image.resize((side * 3 // 2,) * 2, FILTERS[which]).resize((side, side), FILTERS[which]))


def fixed(picture, state):
    return noisy(picture, np.random.default_rng(state), 1 + state)


# Of a night: its random numbers and its number. Returned: its machine, and the function that makes each picture.
CONDITIONS = {
    "noise 2/255": lambda rng, night: (None, lambda one: noisy(one, rng, 2)),
    "JPEG 95": lambda rng, night: (None, lambda one: coded(one, rng, 95)),
    "shifts ≤ .5 px": lambda rng, night: (None, lambda one: moved(one, rng, 0.5)),
    "light 1 %": lambda rng, night: (None, lambda one: as_pixels(one * (1 + rng.normal(0, 0.01)))),
    "resize filters": lambda rng, night: (None, partial(filtered, which=int(rng.integers(6)))),
    "two fixed states": lambda rng, night: (None, partial(fixed, state=int(rng.integers(2)))),
    "one in ten with noise": lambda rng, night: (
        None,
        (lambda one: noisy(one, rng, 2)) if rng.random() < 0.1 else (lambda one: one),
    ),
    "states of ten nights, machine known": lambda rng, night: (
        "ab"[night // 10 % 2],
        partial(fixed, state=night // 10 % 2),
    ),
    "states of ten nights, machine not known": lambda rng, night: (None, partial(fixed, state=night // 10 % 2)),
}


def with_psnr_lower(picture, golden, decibels, rng):
    """Return a picture with so much noise that its PSNR falls by so many decibels."""
    before = np.square(picture.astype(float) - golden).mean() + 0.09
    return noisy(picture, rng, np.sqrt(before * (10 ** (decibels / 10) - 1)))


FAULTS = {
    "another picture": lambda one, golden, rng: photographs()[rng.integers(PICTURES)],
    "black": lambda one, golden, rng: one * 0,
    "gray": lambda one, golden, rng: np.full_like(one, 128),
    "white noise": lambda one, golden, rng: rng.integers(0, 256, one.shape, dtype=np.uint8),
    "4 dB": lambda one, golden, rng: with_psnr_lower(one, golden, 4, rng),
    "blur .8": lambda one, golden, rng: as_pixels(gaussian_filter(one.astype(float), (0.8, 0.8, 0))),
    "16 levels": lambda one, golden, rng: as_pixels(np.round(one / 17.0) * 17),
    "cast 2 %": lambda one, golden, rng: as_pixels(one * np.array([1.02, 1, 0.98])),
    "cast 1 %": lambda one, golden, rng: as_pixels(one * np.array([1.01, 1, 0.99])),
    "mirrored": lambda one, golden, rng: one[:, ::-1],
}


AFTER = 10  # nights of a run with a fault
VARIANTS = 120  # nights of a condition in which a picture is measured; those of fixed states are fewer


@cache
def variants(condition, number):
    """Return the machine of a night of a condition, and each picture as its engine made it, with its measures."""
    rng = np.random.default_rng([number, [*CONDITIONS].index(condition)])
    machine, make = CONDITIONS[condition](rng, number)
    made = [make(one) for one in photographs()]
    return machine, made, measure_night(match_pictures(made, photographs()))[0]


def usual_night(condition, chosen, order, night):
    """Return the machine, the pictures and the measures of a night without a fault, by the order of a year."""
    machine, made, measured = variants(condition, night if condition.startswith("states") else int(order[night]))
    return machine, [made[one] for one in chosen], [measured[one] for one in chosen]


def add(floor, tonight, machine, night):
    """Judge a night and add it to a floor in memory; return what was judged, and the verdict."""
    found = Matched([], [], [], (), ())
    judged = judge_night(floor, tonight, machine)
    verdict = _verdict(judged, tonight, found)
    kept = PastNight(f"{night:04d}", machine)
    for row in _rows(tonight, judged, kept.name, machine, verdict):
        kept.rows[row.id] = row
    floor.nights.append(kept)
    return judged, verdict


def year(condition, pairs, seed):
    """Return what a year without a fault has: red nights, those of bets, amber nights, states said to be gone."""
    rng = np.random.default_rng([seed, pairs, [*CONDITIONS].index(condition)])
    chosen, order = rng.choice(PICTURES, pairs, replace=False).tolist(), rng.permutation(VARIANTS)
    floor, found = Floor([], {}), {"red": 0, "by bets": 0, "amber": 0, "gone": 0}
    for night in range(NIGHTS):
        machine, _, tonight = usual_night(condition, chosen, order, night)
        judged, verdict = add(floor, tonight, machine, night)
        stood = [one for one in (*judged.pairs, judged.mean) if one is not None]
        found["by bets"] += verdict == "red" and not found["red"] and any(one.by_bets for one in stood)
        found["red"] += verdict == "red"
        found["amber"] += verdict == "amber"
        found["gone"] += bool(judged.gone)
    return found


def broken_run(condition, fault, pairs, first, planted, seed):
    """Return the night, from 1 on, on which a fault is red that begins after some nights; None if never in ten."""
    rng = np.random.default_rng([seed, pairs, [*CONDITIONS].index(condition), [*FAULTS].index(fault), first])
    chosen, order = rng.choice(PICTURES, pairs, replace=False).tolist(), rng.permutation(VARIANTS)
    golden = [photographs()[one] for one in chosen]
    order = order[order < first + AFTER]  # few enough to be measured soon
    floor, seen = Floor([], {}), {"red": None, "amber": None, "before": False}
    for night in range(first + AFTER):
        machine, made, tonight = usual_night(condition, chosen, order, night)
        if night >= first:
            hit = range(pairs) if planted == "all" else [0]
            for place in hit:
                made[place] = FAULTS[fault](made[place], golden[place], rng)
                while fault == "another picture" and made[place] is golden[place]:
                    made[place] = FAULTS[fault](made[place], golden[place], rng)
            names = [str(one) for one in chosen]  # as those of usual nights
            both = (dict(zip(names, one, strict=True)) for one in (made, golden))
            tonight, _ = measure_night(match_pictures(*both))
        _, verdict = add(floor, tonight, machine, night)
        if night < first:
            seen["before"] |= verdict == "red"
        elif seen.get(verdict, 0) is None:
            seen[verdict] = night - first + 1
        if seen["red"] is not None:
            break
    return seen


def gone_run(share, seed):
    """Return the nights until a state is said to be gone that had a share of 40 nights; None if never in 100."""
    rng = np.random.default_rng([seed, int(100 * share)])
    golden = [photographs()[one] for one in rng.choice(PICTURES, 4, replace=False)]
    made = [measure_night(match_pictures([fixed(one, state) for one in golden], golden))[0] for state in (0, 1)]
    floor = Floor([], {})
    for night in range(140):
        state = int(night < 40 and rng.random() < share)
        judged, _ = add(floor, made[state], None, night)
        if night >= 40 and judged.gone:
            return night - 39
    return None


def rate(count, n):
    """Return a share with its 95 % interval."""
    low, high = (float(one[0]) for one in share_bounds(np.array([count]), n, 0.025))
    return f"{count} of {n} ({100 * low:.1f} to {100 * high:.1f} %)"


def call(task):
    function, *arguments = task
    return function(*arguments)


def rows_of_false(pool, seeds):
    every = []
    for condition in CONDITIONS:
        for pairs in PAIRS:
            # 10 pairs take as long as 1 and 4 together.
            tasks = [(year, condition, pairs, seed) for seed in range(seeds if pairs < 10 else seeds // 2)]
            found = list(pool.map(call, tasks))
            red = [one for one in found if one["red"]]
            by_bets = sum(bool(one["by bets"]) for one in red)
            yield {
                "condition": condition,
                "pairs": pairs,
                "years with a red night": rate(len(red), len(found)),
                "by bets": by_bets,
                "by rule 4": len(red) - by_bets,
                "amber nights a year": f"{np.mean([one['amber'] for one in found]):.2f}",
                "a state said to be gone": sum(bool(one["gone"]) for one in found),
            }
            if condition != [*CONDITIONS][-1]:
                every += found
    red = [one for one in every if one["red"]]
    by_bets = sum(bool(one["by bets"]) for one in red)
    yield {
        "condition": "all but the last",
        "pairs": "",
        "years with a red night": rate(len(red), len(every)),
        "by bets": by_bets,
        "by rule 4": len(red) - by_bets,
        "amber nights a year": f"{np.mean([one['amber'] for one in every]):.2f}",
        "a state said to be gone": sum(bool(one["gone"]) for one in every),
    }


def rows_of_faults(pool, seeds, firsts=(30,)):
    for first in firsts:
        for fault in FAULTS:
            for pairs, planted in ((1, "all"), (10, "all"), (10, "one")):
                named = [*CONDITIONS][:-1]
                groups = {"all conditions": named}
                if fault == "4 dB":
                    groups = {"nights alike": [one for one in named if one[:5] not in ("shift", "light")]}
                    groups["shifts, light"] = [one for one in named if one[:5] in ("shift", "light")]
                for group, conditions in groups.items():
                    tasks = [
                        (broken_run, one, fault, pairs, first, planted, seed)
                        for one in conditions
                        for seed in range(seeds)
                    ]
                    found = [one for one in pool.map(call, tasks) if not one["before"]]
                    red = [one["red"] for one in found]
                    soon = sum(one is not None and one <= 3 for one in red)
                    yield {
                        "fault": fault,
                        "nights before": first,
                        "pairs": f"{planted} of {pairs}" if pairs > 1 else "1",
                        "conditions": group,
                        "red on the first night": rate(sum(one == 1 for one in red), len(red)),
                        "red within three": rate(soon, len(red)),
                        "amber or red at once": rate(sum(1 in (one["red"], one["amber"]) for one in found), len(red)),
                        "night of red, median": float(np.median([99 if one is None else one for one in red])),
                    }


def rows_of_gone(pool, seeds):
    for share in (0.5, 0.2, 0.1):
        found = list(pool.map(call, [(gone_run, share, seed) for seed in range(seeds)]))
        nights = sorted(101 if one is None else one for one in found)
        yield {
            "share of the state": share,
            "told within 100 nights": rate(sum(one is not None for one in found), len(found)),
            "night, median": float(np.median(nights)),
            "night, 90 %": float(np.quantile(nights, 0.9)),
        }


PARTS = {
    "false": ("golden", rows_of_false),
    "fault": ("golden_faults", rows_of_faults),
    "soon": ("golden_faults_soon", partial(rows_of_faults, firsts=(10,))),
    "gone": ("golden_gone", rows_of_gone),
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--dry", action="store_true", help="print, and leave the record as it is")
    given = parser.parse_args()
    for part in given.part or PARTS:
        name, rows = PARTS[part]
        seeds, start = given.seeds or {"false": 16, "fault": 3, "soon": 3, "gone": 40}[part], time.process_time()
        with ProcessPoolExecutor(given.jobs) as pool:
            made = []
            for row in rows(pool, seeds):
                made.append(row)
                print(row, flush=True)
        if not given.dry:
            record(name, made, "Golden pictures of Tiny-ImageNet, 64 pixels; see the docstring of golden.py.")
