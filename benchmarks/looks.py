"""Do looks name planted faults, with the right share? Sets have 200, 500 and 1 000 pictures.

Thirty faults are planted in a part of photographs of 64 × 64 pixels, or in all of them; all are saved as JPEG. A fault
is *named* if a look has one of its words and, of a part, its share within 3 points or 40 %. *false* are looks besides:
other traits of the same pictures count as such, too. "none" plants nothing.
"""

import io
import re
import zipfile
from functools import cache

import _real
import numpy as np
from _record import record
from _runs import run
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

import finc_eval as fe
from finc_eval.naming.looks import find_looks

SIZES, RUNS, SIDE, QUALITY = (200, 500, 1000), 3, 64, 92


def pixels(change):
    """Return a change of images from one of pixels, (h, w, 3), given random numbers."""

    def changed(image, rng):
        return Image.fromarray(np.clip(change(np.asarray(image, float), rng), 0, 255).astype("u1"))

    return changed


def enhanced(how, factor):
    return lambda image, rng: how(image).enhance(factor)


def blurred(radius):
    return lambda image, rng: image.filter(ImageFilter.GaussianBlur(radius))


def resized(factor, how):
    side = round(SIDE * factor)
    return lambda image, rng: image.resize((side, side), Image.Resampling.BOX).resize((SIDE, SIDE), how)


def as_jpeg(image, quality):
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(stream).convert("RGB")


def smeared(x, rng):
    return np.mean([np.roll(x, step, 1) for step in range(-3, 4)], 0)


def specks(x, rng):
    x, chance = x.copy(), rng.random(x.shape[:2])
    x[chance < 0.02], x[chance > 0.98] = 0, 255
    return x


def lines(step, part, *, both=False):
    def changed(x, rng):
        x = x.copy()
        x[::step] *= 1 - part
        if both:
            x[:, ::step] *= 1 - part
        return x

    return pixels(changed)


def drawn(draw, part=1.0):
    """Return a change that draws on an image, and keeps a part of what was there."""

    def changed(image, rng):
        over = image.copy()
        draw(ImageDraw.Draw(over))
        return Image.blend(image, over, part)

    return changed


def logo(draw):
    draw.rectangle((38, 48, 60, 58), outline="white")
    draw.line((38, 48, 60, 58), fill="white")


def bars(draw):
    draw.rectangle((0, 0, SIDE, 7), fill="black")
    draw.rectangle((0, SIDE - 8, SIDE, SIDE), fill="black")


def vignette(x, rng):
    away = np.hypot(*np.mgrid[-1 : 1 : x.shape[0] * 1j, -1 : 1 : x.shape[1] * 1j])
    return x * (1 - 0.7 * np.clip(away**2 / 2, 0, 1))[..., None]


def framed(width, color):
    return lambda image, rng: ImageOps.expand(image.crop((width, width, SIDE - width, SIDE - width)), width, color)


NOISY, SOFT, DARK, LIGHT = "nois|speck", "blur|pixelated|smear|streak", "dark", "bright"
PERIODIC, TINT = "pattern|line|grid", "tint|purpl|green"

FAULTS = {  # change, part of the generated set, words
    "gray": (lambda image, rng: ImageOps.grayscale(image).convert("RGB"), 0.05, "gray"),
    "gray, in part": (enhanced(ImageEnhance.Color, 0.3), 1, "pale|color"),
    "blurred": (blurred(1.2), 0.15, SOFT),
    "blurred a little": (blurred(0.7), 1, SOFT),
    "upscaled 2 ×": (resized(0.5, Image.Resampling.BICUBIC), 0.25, SOFT),
    "upscaled 4 ×": (resized(0.25, Image.Resampling.BILINEAR), 0.1, SOFT),
    "squares of 4": (resized(0.25, Image.Resampling.NEAREST), 0.1, "pixelated|block"),
    "smeared": (pixels(smeared), 0.25, SOFT),
    "noisy": (pixels(lambda x, rng: x + 20 * rng.normal(size=x.shape)), 0.15, NOISY),
    "noisy a little": (pixels(lambda x, rng: x + 8 * rng.normal(size=x.shape)), 1, NOISY),
    "specks": (pixels(specks), 0.15, NOISY),
    "dark": (enhanced(ImageEnhance.Brightness, 0.45), 0.25, DARK),
    "darker": (enhanced(ImageEnhance.Brightness, 0.85), 1, DARK),
    "brighter": (enhanced(ImageEnhance.Brightness, 1.25), 1, LIGHT),
    "flat": (enhanced(ImageEnhance.Contrast, 0.35), 0.2, "flat"),
    "flatter": (enhanced(ImageEnhance.Contrast, 0.7), 1, "flat"),
    "harsher": (enhanced(ImageEnhance.Contrast, 1.5), 1, "harsh|contrast"),
    "vivid": (enhanced(ImageEnhance.Color, 2), 1, "vivid"),
    "warm": (pixels(lambda x, rng: x * (1.12, 1, 0.85)), 1, TINT),
    "cold": (pixels(lambda x, rng: x * (0.75, 1, 1.25)), 0.25, TINT),
    "green": (pixels(lambda x, rng: x * (0.8, 1.2, 0.8)), 0.25, TINT),
    "white frame": (framed(3, "white"), 0.1, "framed"),
    "black bars": (drawn(bars), 0.1, "bars"),
    "JPEG 12": (lambda image, rng: as_jpeg(image, 12), 0.15, "JPEG"),
    "JPEG 30": (lambda image, rng: as_jpeg(image, 30), 1, "JPEG"),
    "grid of 4": (lines(4, 0.2, both=True), 0.25, PERIODIC),
    "lines": (lines(6, 0.25), 0.25, PERIODIC),
    "logo": (drawn(logo, 0.5), 0.1, "mark"),
    "posterized": (lambda image, rng: ImageOps.posterize(image, 2), 0.15, "posterized"),
    "dark corners": (pixels(vignette), 1, "edges"),
    "none": (lambda image, rng: image, 0, None),
}


@cache
def photographs():
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        return [archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".JPEG")]


def one(regime, seed):
    """Return whether a fault was named with its share, and how many looks do not name it."""
    fault, size = regime.rsplit("-", 1)
    n, (change, part, words) = int(size), FAULTS[fault]
    rng = np.random.default_rng([seed, n])
    order = rng.permutation(len(photographs()))[: 2 * n]
    images = [Image.open(io.BytesIO(photographs()[place])).convert("RGB") for place in order]
    made = [change(image, rng) for image in images[: round(part * n)]] + images[round(part * n) :]
    made = [as_jpeg(image, QUALITY) for image in made]
    found = find_looks(
        {
            label: fe.EmbeddingSet(np.zeros((n, 2), np.float32), images=images)
            for label, images in (("gen", made[:n]), ("ref", made[n:]))
        },
        seed,
    )
    said = [one for one in found if words and re.search(words, one.name)]
    near = [one for one in said if part == 1 or abs(one.share_gen - part) <= max(0.03, 0.4 * part)]
    return {"named": bool(near), "false": len(found) - len(said), "looks": [each.sentence for each in found]}


def report(found):
    """Record how many runs name each fault."""
    rows = []
    for fault, (_, part, _) in FAULTS.items():
        row = {"fault": fault, "part": f"{part:.0%}"}
        for n in SIZES:
            taken = found.get(f"{fault}-{n}", [])
            row[f"named, {n}"] = f"{sum(run['named'] for run in taken)}/{len(taken)}" if taken else ""
            row[f"false, {n}"] = f"{sum(run['false'] for run in taken)}" if taken else ""
        rows.append(row)
    record("looks", rows, "runs that name the fault with its share, and other looks")


if __name__ == "__main__":
    run("looks", [f"{fault}-{n}" for n in (500, 200, 1000) for fault in FAULTS], one, report, RUNS)
