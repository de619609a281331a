"""Which faults of videos does an extractor see? We plant faults in clips of moving scenes.

Clips have 33 frames of 64 x 64 pixels, 25 a second. Three of four are made of a photograph of ImageNet by a camera move
(mostly a pan to the right, with unlike speeds, and for half of them a zoom in); one is a crop of a real clip, mirrored
or not. Each draw divides 420 scenes by chance: n are ref, and n others are gen. All clips of gen or a quarter of them,
of the first scenes, have the fault. A fault is found if the overall test of `compare` says that the sets differ,
p <= 0.05, and named if a kind has its trait. The row without a fault says how often that is an error. Draws share
scenes, so they vary somewhat less than draws of fresh scenes would.

    python benchmarks/video_faults.py [FOLDER]      embeddings and rows are kept in FOLDER
"""

import io
import itertools
import json
import sys
import tempfile
import warnings
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from _real import asset
from _record import record
from PIL import Image, ImageFilter
from scipy import stats

import finc_eval as fe
from finc_eval.core.storage import write_text
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.extractors.card import BY_FRAMES, CARDS, TWO_SECONDS
from finc_eval.extractors.networks.motion import measurements
from finc_eval.samples.clips import plan_windows
from finc_eval.samples.video import open_container

POOL = 420
"""Scenes that sets are drawn from."""

FRAMES, LENGTH, SIDE = 33, 66, 64
START = 16
"""Frames of a clip, those that are made of each scene, and the first that a clip without a fault has."""


def scenes(count=POOL, seed=0, real=4):
    """Make scenes, (count, 66, 64, 64, 3) uint8, one of `real` of a real clip; or return None without the assets."""
    photos, clips = asset("photos", "imagenet_500.zip"), asset("clips")
    if photos is None or clips is None:
        return None
    rng = np.random.default_rng(seed)
    videos = [frames_of(path) for path in sorted(clips.iterdir()) if "distorted" not in path.name]
    with zipfile.ZipFile(photos) as archive:
        # In the order of their classes, gen and ref would differ in content.
        names = rng.permutation(sorted(name for name in archive.namelist() if not name.endswith("/")))
        made = []
        for number in range(count):
            if number % real:
                picture = Image.open(io.BytesIO(archive.read(names[number % len(names)]))).convert("RGB")
                made.append(camera_move(picture, rng))
            else:
                made.append(crop_of(videos[rng.integers(len(videos))], rng))
    return np.stack(made)


def frames_of(path):
    """Read a video with a short side of 160 pixels."""
    with path.open("rb") as file, open_container(file) as container:
        pictures = [frame.to_image() for frame in container.decode(video=0)]
    size = [round(side * 160 / min(pictures[0].size)) for side in pictures[0].size]
    return np.stack([np.asarray(picture.resize(size, Image.Resampling.BILINEAR)) for picture in pictures])


def crop_of(video, rng):
    """Cut a scene out of a video; one that is too short runs back."""
    start = rng.integers(0, max(1, len(video) - LENGTH))
    part = video[start : start + LENGTH]
    side = rng.integers(100, 161)
    top, left = (rng.integers(0, length - side + 1) for length in part.shape[1:3])
    part = part[:, top : top + side, left : left + side]
    if rng.random() < 0.5:
        part = part[:, :, ::-1]
    small = [np.asarray(Image.fromarray(frame).resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for frame in part]
    return np.concatenate([small, small[::-1]])[:LENGTH]


def camera_move(picture, rng):
    """Move a camera over a photograph, which it does not leave."""
    width, height = picture.size
    first = rng.uniform(0.45, 0.65) * min(width, height)
    zoom = rng.choice([0, 1]) * rng.uniform(0.0, 0.006)
    speed, angle = np.exp(rng.normal(-1.6, 0.7)) / 25 * first, rng.normal(0, 0.7)
    x, y = width * rng.uniform(0.35, 0.5), height * rng.uniform(0.4, 0.6)
    sway, frames = 3 * rng.normal(0, 0.15, 2), []
    for k in range(LENGTH):
        side = first * (1 - zoom) ** k
        left = x + np.cos(angle) * speed * k + sway[0] * np.sin(k / 9) - side / 2
        top = y + np.sin(angle) * speed * k + sway[1] * np.cos(k / 11) - side / 2
        left, top = min(max(left, 0), width - side), min(max(top, 0), height - side)
        box = (left, top, left + side, top + side)
        frames.append(np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)))
    return np.stack(frames)


def clip_of(scene):
    """Return the clip without a fault."""
    return scene[START : START + FRAMES]


def between(scene, places):
    """Read frames at places between frames, as a linear blend."""
    low = np.floor(places).astype(int)
    weight = (places - low)[:, None, None, None]
    return np.rint(scene[low] * (1 - weight) + scene[low + 1] * weight).astype(np.uint8)


def still_second_half(scene):
    """Stop in the middle."""
    return clip_of(scene)[np.minimum(np.arange(FRAMES), 17)]


def repeats(scene, rng):
    """Show the frame before in place of a quarter of the frames."""
    places = np.arange(FRAMES)
    places[rng.random(FRAMES) < 0.25] -= 1
    return clip_of(scene)[np.maximum(places, 0)]


def flickers(scene, period):
    """Darken one of so many frames by 15 %."""
    return (clip_of(scene) * np.where(np.arange(FRAMES) % period, 1.0, 0.85)[:, None, None, None]).astype(np.uint8)


def jitters(scene, rng):
    """Move every frame by up to 2 pixels, 3 % of the side, at random."""
    return np.stack([np.roll(frame, tuple(rng.integers(-2, 3, 2)), (0, 1)) for frame in clip_of(scene)])


def cuts(scene, other):
    """Go on with another scene from the middle on."""
    return np.concatenate([clip_of(scene)[:17], clip_of(other)[: FRAMES - 17]])


def fades(scene):
    """Darken to 40 %."""
    return (clip_of(scene) * np.linspace(1, 0.4, FRAMES)[:, None, None, None]).astype(np.uint8)


def blurs(scene):
    """Blur more and more, up to a Gaussian of 2 pixels."""
    blurred = [ImageFilter.GaussianBlur(2 * k / (FRAMES - 1)) for k in range(FRAMES)]
    frames = [Image.fromarray(frame).filter(how) for frame, how in zip(clip_of(scene), blurred, strict=True)]
    return np.stack([np.asarray(frame) for frame in frames])


FAULTS = {
    "none": lambda scene, rng, other: clip_of(scene),
    "frozen": lambda scene, rng, other: clip_of(scene)[np.zeros(FRAMES, int)],
    "half frozen": lambda scene, rng, other: still_second_half(scene),
    "slowed by 2": lambda scene, rng, other: between(scene, START + np.arange(FRAMES) / 2),
    "slowed by 1.5": lambda scene, rng, other: between(scene, START + np.arange(FRAMES) / 1.5),
    "sped by 1.5": lambda scene, rng, other: scene[np.rint(8 + np.arange(FRAMES) * 1.5).astype(int)],
    "sped by 2": lambda scene, rng, other: scene[np.arange(FRAMES) * 2],
    "reversed": lambda scene, rng, other: clip_of(scene)[::-1],
    "shuffled": lambda scene, rng, other: clip_of(scene)[rng.permutation(FRAMES)],
    "a fifth of the frames dropped": lambda scene, rng, other: scene[np.flatnonzero(rng.random(LENGTH) > 0.2)[:FRAMES]],
    "a quarter of the frames repeated": lambda scene, rng, other: repeats(scene, rng),
    "every second frame repeated": lambda scene, rng, other: clip_of(scene)[np.arange(FRAMES) // 2 * 2],
    "flicker": lambda scene, rng, other: flickers(scene, 2),
    "flicker at every third frame": lambda scene, rng, other: flickers(scene, 3),
    "jitter": lambda scene, rng, other: jitters(scene, rng),
    "a cut": lambda scene, rng, other: cuts(scene, other),
    "looping": lambda scene, rng, other: clip_of(scene)[np.arange(FRAMES) % 11],
    "fading": lambda scene, rng, other: fades(scene),
    "blurring": lambda scene, rng, other: blurs(scene),
}
"""Functions of a scene, a random generator, and another scene."""

TRAITS = {
    "none": "",
    "frozen": "with less motion",
    "half frozen": "slowing down",
    "slowed by 2": "with alternating sharpness",
    "slowed by 1.5": "with alternating sharpness",
    "sped by 1.5": "with dropped frames",
    "sped by 2": "with more motion",
    "reversed": "moving to the right",
    "shuffled": "with jumps between frames",
    "a fifth of the frames dropped": "with dropped frames",
    "a quarter of the frames repeated": "with repeated frames",
    "every second frame repeated": "with repeated frames",
    "flicker": "flickering at every second frame",
    "flicker at every third frame": "flickering at every third frame",
    "jitter": "shaking",
    "a cut": "with a cut",
    "looping": "looping",
    "fading": "getting darker",
    "blurring": "blurring over time",
}
"""The trait that each fault is: most cameras move to the right, so that pictures move to the left, unless reversed.
Slower clips have every second or third frame sharp, and blends between."""


def embedded(name, clips, extractor, folder):
    """Embed clips, a row each, or read them again from the folder."""
    path = folder / f"{name}, {extractor.replace(':', ' ')}.npy"
    if not path.exists():
        if extractor.endswith(BY_FRAMES):
            rows = embed_frames(clips, extractor.removesuffix(BY_FRAMES))
        elif extractor == "transnetv2":
            card = folder / "transnetv2.toml"  # with the middle window of eight
            text = (resources.files(CARDS) / card.name).read_text(encoding="utf-8")
            write_text(card, text.replace("windows = 8", "windows = 1"))
            rows = fe.extract(np.stack(clips), str(card))[:]
        else:
            rows = fe.extract(np.stack(clips), extractor)[:]
        np.save(path, rows)
    return np.load(path)


def embed_frames(clips, extractor):
    """Embed clips of 25 frames a second as `extractor:frames` does, but equal frames once."""
    frames = plan_windows(FRAMES, 25.0, TWO_SECONDS).indices[0]
    keys = [[clip[frame].tobytes() for frame in frames] for clip in clips]
    new = [key for key in dict.fromkeys(itertools.chain(*keys)) if (extractor, key) not in EMBEDDED]
    if new:
        images = np.stack([np.frombuffer(key, np.uint8).reshape(SIDE, SIDE, 3) for key in new])
        EMBEDDED.update(zip([(extractor, key) for key in new], fe.extract(images, extractor)[:], strict=True))
    return np.stack([np.mean([EMBEDDED[extractor, key] for key in row], axis=0) for row in keys])


EMBEDDED = {}
"""Embeddings of frames, by the extractor and the pixels."""


def as_isometric(*sets):
    """Return points with the same distances in as many dimensions as there are points, where those are fewer."""
    points = np.concatenate(sets).astype(np.float64)
    if points.shape[1] > len(points):
        points = np.linalg.qr((points - points.mean(0)).T, mode="r").T
    return np.split(points.astype(np.float32), [len(sets[0])])


def as_set(rows, extractor):
    """Return embeddings that say whose they are, so that motion names kinds."""
    made = ArrayEmbeddings(rows)
    made.space = f"{extractor}@00000000"
    return made


def drawn(clean, faulty, n, share, seed):
    """Return gen, where a share of the rows is faulty, and ref, of other scenes."""
    order, bad = np.random.default_rng([seed, n]).permutation(len(clean)), round(share * n)
    chosen = order[order < len(faulty)][:bad]
    others = order[~np.isin(order, chosen)]
    return np.concatenate([faulty[chosen], clean[others[n : 2 * n - bad]]]), clean[others[:n]]


def draw(fault, extractor, clean, faulty, n, share, seed):
    """Return whether a draw of the sets differs, and whether a kind has the trait of the fault then."""
    sets = (as_set(rows, extractor) for rows in drawn(clean, faulty, n, share, seed))
    result = fe.compare(*sets, method="clusters", seed=seed)
    if result.difference_p_value is None or result.difference_p_value > 0.05:
        return False, False
    return True, any(part.value == TRAITS[fault] for kind in result.kinds for part in kind.evidence)


def differs_in_speed(clean, faulty, n, share, seed):
    """Return whether Welch's test of speed alone finds the fault."""
    speeds = (measurements(torch.from_numpy(rows))[:, 0] for rows in drawn(clean, faulty, n, share, seed))
    return stats.ttest_ind(*speeds, equal_var=False).pvalue <= 0.05


SMALL, LARGE, WHOLE = (30, 1.0), (200, 0.25), (200, 1.0)
"""Clips in a set, and share of gen with the fault."""

AIMS = {"none", "frozen", "sped by 2", "reversed", "shuffled", "flicker"}
"""Faults that `motion` is to find in 95 of 100 draws, and in a quarter of the clips in 80."""

MEASURED = (
    ("motion", AIMS, POOL, 200, {LARGE: 100, WHOLE: 20}),
    ("motion", FAULTS, POOL, 60, {LARGE: 20, SMALL: 20}),  # those with an aim have LARGE already
    ("pixels:frames", FAULTS, POOL, 50, {LARGE: 10, SMALL: 10}),
    ("efficientnet-lite0:frames", FAULTS, POOL, 50, {LARGE: 10, SMALL: 10}),
    ("transnetv2", FAULTS, 120, 30, {SMALL: 10}),
)
"""Extractors, their faults, scenes, those of them with each fault, and draws of each setting."""


def main(folder):
    """Embed, compare and record."""
    if (made := scenes()) is None:
        return
    kept = folder / "rows.json"
    rows = json.loads(kept.read_text()) if kept.exists() else {name: {"fault": name} for name in FAULTS}
    for extractor, faults, pool, faulty, settings in MEASURED:
        clean = embedded("all", [clip_of(scene) for scene in made[:pool]], extractor, folder)
        for name in (one for one in FAULTS if one in faults):
            rng, row = np.random.default_rng(5), rows[name]
            clips = [FAULTS[name](scene, rng, made[place - 1]) for place, scene in enumerate(made[:faulty])]
            good, bad = as_isometric(clean, embedded(f"{name} {faulty}", clips, extractor, folder))
            for (n, share), draws in settings.items():
                column = f"{extractor}, {n} clips, {share:.0%}"
                if column not in row:
                    hits = [draw(name, extractor, good, bad, n, share, seed) for seed in range(draws)]
                    found, named = map(sum, zip(*hits, strict=True))
                    row[column] = f"{found} of {draws}"
                    if extractor == "motion" and share < 1 and name != "none":
                        row[f"{column}: named"] = f"{named} of {draws}"
                    if extractor == "motion" and (n, share) == LARGE and name in ("none", "sped by 2"):
                        told = sum(differs_in_speed(clean, bad, n, share, seed) for seed in range(draws))
                        row[f"{column}: by a test of speed alone"] = f"{told} of {draws}"
                    write_text(kept, json.dumps(rows))
                    print(name, column, row[column], named, flush=True)
    record("video_faults", list(rows.values()), "Draws in which the overall test of `compare` finds the fault.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else scratch))
