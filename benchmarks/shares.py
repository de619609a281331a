"""Are shares of parts right? Photographs with a fault in 8 to 60 % of them, and the share that a look says.

A run plants one of ten faults in a part of the generated set; all pictures are saved as JPEG. Regimes of *choosing*
take the classes with even numbers, by which constants were chosen, and regimes of *judging* the others. A look of the
whole set has no share.
"""

import io
import re
import zipfile
from functools import cache
from itertools import product

import _real
import numpy as np
from _record import record
from _runs import run
from looks import FAULTS, QUALITY, SOFT, as_jpeg, blurred
from PIL import Image

import finc_eval as fe
from finc_eval.core.words import UNSURE
from finc_eval.naming.looks import find_looks
from finc_eval.numerics.inference import wilson

SIZES, PARTS = (150, 300, 1000), (0.08, 0.15, 0.25, 0.4, 0.6)
NAMES = ("blurred", "dark", "JPEG 12", "noisy", "logo", "gray", "white frame", "flat", "green")
CHANGES = {name: (FAULTS[name][0], FAULTS[name][2]) for name in NAMES} | {"blurred a little": (blurred(0.8), SOFT)}
PLANTED = [*product(CHANGES, PARTS)]


@cache
def photographs(half):
    """Return the pictures of half of the classes, as files."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        classes = sorted({name.split("/")[-2] for name in names})
        chosen = classes[half::2]
        return [archive.read(name) for name in names if name.split("/")[-2] in chosen]


def one(regime, seed):
    """Return the share that is said of a planted part, with its interval; without a share, only what was planted."""
    half, size = regime.split("-")
    n, (fault, part) = int(size), PLANTED[seed % len(PLANTED)]
    change, words = CHANGES[fault]
    rng = np.random.default_rng([seed, n])
    files = photographs(half == "judging")
    images = [Image.open(io.BytesIO(files[place])).convert("RGB") for place in rng.permutation(len(files))[: 2 * n]]
    count = round(part * n)
    made = [as_jpeg(image, QUALITY) for image in [*(change(image, rng) for image in images[:count]), *images[count:]]]
    sets = {
        label: fe.EmbeddingSet(np.zeros((n, 2), np.float32), images=images)
        for label, images in (("gen", made[:n]), ("ref", made[n:]))
    }
    look = next((look for look in find_looks(sets, seed) if re.search(words, look.name)), None)
    found = {"fault": fault, "part": part, "named": look is not None, "whole": look is not None and look.whole}
    if look is None or look.whole or look.more_in == "ref":
        return found
    return found | {"share": look.share_gen, "interval": look.interval}


def report(found):
    """Record how often planted shares lie in their intervals, how wide these are, and how near the estimates."""
    rows = []
    for regime, runs in found.items():
        said = [run for run in runs if "share" in run]
        parts, shares = (np.array([run[key] for run in said]) for key in ("part", "share"))
        low, high = np.array([run["interval"] for run in said]).T
        inside, narrow = (low <= parts) & (parts <= high), high <= UNSURE * low
        ends = ", ".join(f"{end:.2f}" for end in wilson(float(inside.mean()), len(said)))
        middle = [f"{np.median(some):.2f}" for some in (shares / parts, (shares / parts)[narrow], (high - low) / parts)]
        rows.append(
            {
                "regime": regime,
                "planted": len(runs),
                "on average": sum(run["whole"] for run in runs),
                "with a share": len(said),
                "planted in the interval": f"{inside.sum()}/{len(said)} [{ends}]",
                "said / planted": middle[0],
                "where narrow": middle[1],
                "narrow within 40 %": f"{(abs(shares / parts - 1) <= 0.4)[narrow].sum()}/{narrow.sum()}",
                "“at least” above the truth": f"{(low > parts)[~narrow].sum()}/{(~narrow).sum()}",
                "width / planted": middle[2],
            }
        )
    record("shares", rows, "shares of planted parts of photographs, as looks say them; medians of ratios")


if __name__ == "__main__":
    regimes = [f"{half}-{size}" for size in SIZES for half in ("judging", "choosing")]
    run("shares", regimes, one, report, {name: len(PLANTED) * (1 if name.endswith("1000") else 3) for name in regimes})
