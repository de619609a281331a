"""Measure how often a drift within clips is claimed of equal sets, and how often a planted one is named and dated.

    python benchmarks/clip_drift.py [--regime … --runs … --jobs …]

Clips have 100 frames of 64 pixels: a camera moves over a photograph, and one clip of four is cut out of a real one.
*equal*: two sets of one law, n against n. *real*: of real clips alone. *groups*: groups of three clips of one scene.
*lengths*: half of the frames a second, and 80 frames against 100. *looped*: all clips of both sets loop. *headline*:
whole comparisons of equal clips; "any finding" counts whatever is said.
All others are planted, in all clips of a set, or in a share of them: saturation or brightness that grows by 1 % a frame
from frame 0 or 40 on, a loop of the first 16 frames, a clip that is frozen from frame 60 on. "Others" counts further
drifts that are said; "dated" counts intervals that hold the first frame, and "share" those that hold the share.
"""

import io
import zipfile
from functools import cache

import numpy as np
from _real import asset
from _record import record
from _runs import counted, rate, run
from PIL import Image
from video_faults import frames_of

import finc_eval as fe
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.over_time import find_drifts
from finc_eval.naming.measured import Measured, PictureLooks
from finc_eval.naming.traits import SIDE, measure_course
from finc_eval.samples.whole.course import shrink_all

POOL, FRAMES, SIZE, REAL = 320, 100, 64, 4
"""Clips that sets are drawn of, their frames, their side in pixels, and one of how many is real."""

LIGHT = np.array([0.299, 0.587, 0.114], np.float32)


def grown(start):
    """Return the factor of each frame from which on something grows by 1 % a frame."""
    return (1.01 ** np.maximum(0, np.arange(FRAMES) - start))[:, None, None, None]


def saturated(clip, start):
    gray = (clip.astype(np.float32) @ LIGHT)[..., None]
    return np.clip(gray + (clip - gray) * grown(start), 0, 255).astype(np.uint8)


FAULTS = {
    "none": (None, 0, lambda clip: clip),
    "saturation-0": ("with rising saturation", 0, lambda clip: saturated(clip, 0)),
    "saturation-40": ("with rising saturation", 40, lambda clip: saturated(clip, 40)),
    "brightness-0": ("with rising brightness", 0, lambda clip: np.clip(clip * grown(0), 0, 255).astype(np.uint8)),
    "brightness-40": ("with rising brightness", 40, lambda clip: np.clip(clip * grown(40), 0, 255).astype(np.uint8)),
    "loop-16": ("looping", 16, lambda clip: clip[np.arange(FRAMES) % 16]),
    "freeze-60": ("frozen", 60, lambda clip: clip[np.minimum(np.arange(FRAMES), 60)]),
}
"""Name of each fault as it is said, its first frame, and how it is made."""

NULLS = {
    "equal-20": ("mixed", 20, {}), "equal-60": ("mixed", 60, {}), "equal-150": ("mixed", 150, {}),
    "real-40": ("real", 40, {}), "groups-20": ("groups", 60, {}), "lengths-60": ("mixed", 60, {"every": 2}),
    "looped-60": ("mixed", 60, {"fault": "loop-16"}), "headline-60": ("mixed", 60, {"whole": True}),
}  # fmt: skip
"""Regimes of one law: what clips are drawn of, clips of a set, and what is unlike."""

PLANTED = {
    f"{fault}, {share:.0%} of {n}": (fault, n, share)
    for n, share in ((60, 1.0), (150, 0.3))
    for fault in FAULTS
    if fault != "none"
}


def camera(picture, rng):
    """Move a camera over a photograph, back where it reaches an end."""
    width, height = picture.size
    side = rng.uniform(0.4, 0.6) * min(width, height)
    speed, angle = np.exp(rng.normal(-2.3, 0.6)) / 25 * side, rng.uniform(0, 2 * np.pi)
    sway, phase, period = side * rng.uniform(0.03, 0.12, 2), rng.uniform(0, 6, 2), rng.uniform(6, 20, 2)
    frames, k = [], np.arange(FRAMES)
    path = [
        start + speed * part * k + sway[axis] * np.sin(k / period[axis] + phase[axis])
        for axis, (start, part) in enumerate(
            ((rng.uniform(0, width - side), np.cos(angle)), (rng.uniform(0, height - side), np.sin(angle)))
        )
    ]
    for left, top in zip(*path, strict=True):
        ends = (width - side, height - side)
        left, top = (end - abs(place % (2 * end) - end) for place, end in zip((left, top), ends, strict=True))
        box = (left, top, left + side, top + side)
        frames.append(np.asarray(picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)))
    return np.stack(frames)


def cut_out(video, rng):
    """Cut a clip out of a real one; one that is too short runs back."""
    start = rng.integers(0, max(1, len(video) - FRAMES))
    part, side = video[start : start + FRAMES], rng.integers(100, 161)
    top, left = (rng.integers(0, length - side + 1) for length in part.shape[1:3])
    part = part[:, top : top + side, left : left + side, :][:, :, :: rng.choice([-1, 1])]
    small = np.stack([np.asarray(Image.fromarray(frame).resize((SIZE, SIZE))) for frame in part])
    return np.concatenate([small, small[::-1], small])[:FRAMES]


@cache
def pool(kind):
    """Make the clips that sets of a kind are drawn of."""
    rng = np.random.default_rng(7)
    videos = [frames_of(path) for path in sorted(asset("clips").iterdir()) if "distorted" not in path.name]
    if kind == "real":
        return [cut_out(videos[number % len(videos)], rng) for number in range(POOL)]
    with zipfile.ZipFile(asset("photos", "imagenet_500.zip")) as archive:
        names = rng.permutation(sorted(name for name in archive.namelist() if not name.endswith("/")))
        photos = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names[:POOL]]
    if kind == "groups":  # of each scene three clips, one after the other
        return [camera(photo, rng) for photo in photos[: POOL // 3] for _ in range(3)]
    return [
        camera(photo, rng) if number % REAL else cut_out(videos[rng.integers(len(videos))], rng)
        for number, photo in enumerate(photos)
    ]


@cache
def course(kind, fault, number, every=1):
    """Measure a clip with a fault; every second frame counts as twice as long."""
    clip = FAULTS[fault][2](pool(kind)[number])
    return measure_course(shrink_all(clip[::every][: 80 // every if every > 1 else FRAMES], 25 / every))


def drawn(kind, n, rng):
    """Draw two sets of clips, as their numbers in the pool; whole groups of three of each scene."""
    if kind == "groups":
        scenes = rng.permutation(POOL // 3)[: 2 * n // 3]
        return np.split(np.concatenate([3 * scene + np.arange(3) for scene in scenes]), 2)
    return np.split(rng.permutation(POOL)[: 2 * n], 2)


def as_set(label, kind, numbers):
    """Return a set of as many clips; clips of one scene are a group."""
    groups = [str(number // 3) if kind == "groups" else str(number) for number in numbers]
    rows = np.zeros((len(numbers), 2), np.float32)
    found: Embeddings = fe.EmbeddingSet(rows, [f"{label} {number}" for number in numbers], {"group": groups})
    return found.grouped("group")


def found_in(kind, gen, ref, courses, seed):
    """Return the drifts of two sets of measured clips."""
    sets = {"gen": as_set("gen", kind, gen), "ref": as_set("ref", kind, ref)}
    empty = np.empty((0, 0)), np.empty((0, SIDE**2), np.int8), np.empty((0, 5), np.float32)
    of_sets = {
        label: Measured(np.arange(len(each)), empty[0], PictureLooks(*empty, {}, courses=tuple(each)))
        for label, each in courses.items()
    }
    return [held.finding for held in find_drifts(sets, ((), of_sets), seed)]


def one(regime, seed):
    """Draw two sets, and return what is said of them."""
    rng = np.random.default_rng(seed)
    return null(regime, seed, rng) if regime in NULLS else planted(regime, seed, rng)


def null(regime, seed, rng):
    kind, n, options = NULLS[regime]
    gen, ref = drawn(kind, n, rng)
    if options.get("whole"):
        return whole(kind, gen, ref, seed)
    fault = options.get("fault", "none")
    courses = {
        "gen": [course(kind, fault, number, options.get("every", 1)) for number in gen],
        "ref": [course(kind, fault, number) for number in ref],
    }
    found = found_in(kind, gen, ref, courses, seed)
    return {"drift": len(found), "said": [finding.name for finding in found]}


def whole(kind, gen, ref, seed):
    """Compare two sets with their clips, and say whether anything is said."""
    clips = pool(kind)
    sets = []
    for label, numbers in (("gen", gen), ("ref", ref)):
        rows = np.stack([clips[number][50, ::8, ::8].reshape(-1) for number in numbers]).astype(np.float32) / 255
        sets.append(fe.EmbeddingSet(rows, images=[clips[number] for number in numbers], name=label))
    said = fe.compare(*sets, seed=seed, features=500).findings
    return {
        "drift": sum(finding.kind == "drift" for finding in said),
        "any": len(said),
        "said": [f"{finding.kind}: {finding.name}" for finding in said],
    }


def planted(regime, seed, rng):
    fault, n, share = PLANTED[regime]
    name, start, _ = FAULTS[fault]
    gen, ref = drawn("mixed", n, rng)
    bad = round(share * n)
    courses = {
        "gen": [course("mixed", fault if place < bad else "none", number) for place, number in enumerate(gen)],
        "ref": [course("mixed", "none", number) for number in ref],
    }
    found = found_in("mixed", gen, ref, courses, seed)
    named = next((finding for finding in found if finding.name == name), None)
    if named is None:
        return {"named": False, "others": len(found), "said": [finding.name for finding in found]}
    low, high = named.first_frame_interval
    least, most = named.share_interval
    return {
        "named": True,
        "others": len(found) - 1,
        "said": [finding.name for finding in found],
        "first": named.first_frame,
        "dated": low <= start <= high,
        "width": high - low,
        "share": named.share_gen,
        "holds": least <= share <= most,
        "period": named.period,
    }


def report(runs):
    """Record a row of each regime."""
    rows = []
    for regime, taken in runs.items():
        row = {"regime": regime, "runs": len(taken)}
        if regime in NULLS:
            row |= {"a drift is said": rate(taken, "drift")}
            row |= {"any finding": rate(taken, "any")} if any("any" in each for each in taken) else {}
        else:
            named = [each for each in taken if each["named"]]
            row |= {
                "named": rate(taken, "named"),
                "others": counted(sum(map(bool, (each["others"] for each in taken))), len(taken)),
            }
            row |= {
                "first frame, median": float(np.median([each["first"] for each in named])) if named else "",
                "dated": rate(named, "dated"),
                "frames of the interval": float(np.median([each["width"] for each in named])) if named else "",
                "share": rate(named, "holds"),
            }
        rows.append(row)
    record("clip_drift", rows, "Clips of 100 frames; counts with 95 % intervals (Clopper and Pearson).", resumed=True)


if __name__ == "__main__":
    run("clip_drift", [*NULLS, *PLANTED], one, report, {**dict.fromkeys(NULLS, 200), **dict.fromkeys(PLANTED, 100)})
