"""False rates of the test of local evidence, and what it finds of planted faults.

Both sets are of one law in `nulls`: cells, likeness to themselves and embeddings of photographs of 64 pixels, digits,
and arrays. *p ≤ .05* counts draws, and *said* counts draws with a part that is said. *up to* is the upper end of an
interval of 90 %, and *p of more* that of "no more than 5 %" by the binomial distribution.

In `power`, faults are drawn into a share of the generated pictures before these are embedded. *right* is the share of
the planted pictures among the first twelve that are shown.

    python benchmarks/local_evidence.py nulls --runs 600
    python benchmarks/local_evidence.py power
"""

import argparse
import io
import time
import zipfile
from functools import cache, partial
from pathlib import Path

import _real
import numpy as np
import torch
from _record import record
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps
from scipy.stats import binomtest

from finc_eval.local_evidence.find import find_local
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.likeness import measure_likeness

KEPT = _real.CACHE / "local-evidence-64.npz"
BATCH = 50


class Photographs:
    """The network of the default extractor, with the cells of its card."""

    def __init__(self):
        from finc_eval.extractors.catalog import load_card
        from finc_eval.extractors.cells import CLIP, STEPS, cell_table
        from finc_eval.extractors.networks.cell_maps import window_statistics

        self.table, self.steps, self.maps = cell_table(load_card("efficientnet-lite0")), STEPS, {}
        self.center, self.factor = (
            torch.from_numpy(self.table.center),
            STEPS / CLIP / torch.from_numpy(self.table.scale),
        )
        self.model = _real.efficientnet(_real.efficientnet_weights())
        for layer, statistics in self.table.layers.items():
            self.model.get_submodule(layer).register_forward_hook(
                partial(self._pool, layer, statistics, window_statistics)
            )

    def _pool(self, layer, statistics, pool, _module, _inputs, maps):
        self.maps[layer] = pool(maps, statistics)

    @torch.inference_mode()
    def look(self, images):
        """Return the cells, likeness and embeddings of images."""
        looked = []
        for start in range(0, len(images), BATCH):
            part = images[start : start + BATCH]
            pixels = torch.from_numpy(np.stack([_real.prepared(as_file(image)) for image in part])).permute(0, 3, 1, 2)
            embeddings = self.model((pixels.float() - 127) / 128).numpy()
            values = torch.cat([self.maps[layer] for layer in self.table.layers], 2)
            cells = ((values - self.center) * self.factor).clamp(-self.steps, self.steps).round().to(torch.int8).numpy()
            looked.append((cells, np.stack([measure_likeness(image) for image in part]), embeddings))
        return [np.concatenate(arrays) for arrays in zip(*looked, strict=True)]


def as_file(image):
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=0)
    return file.getvalue()


@cache
def images():
    """Return the photographs and their classes."""
    with zipfile.ZipFile(_real.asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".JPEG"))
        opened = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names]
    return opened, np.array([Path(name).parent.name for name in names])


@cache
def photographs():
    """Return cells, likeness, embeddings and class numbers of the photographs, computed once and kept."""
    if not KEPT.exists():
        cells, likeness, embeddings = Photographs().look(images()[0])
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        np.savez(KEPT, cells=cells, likeness=likeness, embeddings=embeddings, classes=images()[1])
    with np.load(KEPT) as kept:
        return kept["cells"], kept["likeness"], kept["embeddings"], np.unique(kept["classes"], return_inverse=True)[1]


def taken(source, rows, **given):
    cells, likeness, embeddings = (array[rows] for array in source[:3])
    return LocalInput(cells=cells, likeness=likeness, embeddings=embeddings, **given)


def split(source, rng, n, m):
    rows = rng.permutation(len(source[0]))[: n + m]
    return taken(source, rows[:n]), taken(source, rows[n:])


def photo_split(rng, n, m):
    return split(photographs(), rng, n, m)


def repeated(rng, n, m, times):
    """Return groups of equal pictures, of `times[0]` and `times[1]` samples by turns in the first set."""
    source = photographs()
    rows, sets, start = rng.permutation(len(source[0])), [], 0
    for count, sizes in ((n, times[0]), (m, times[1])):
        units = np.repeat(np.arange(count), np.resize(sizes, count))
        of_set = rows[start : start + count][units]
        sets.append(taken(source, of_set, units=units, digests=of_set.astype(np.uint64)))
        start += count
    return sets


def skewed(rng, n, m):
    """Return sets whose classes have shares by Zipf's law."""
    source = photographs()
    weights = (1 / (1 + rng.permutation(24)))[source[3]]
    rows = rng.choice(len(weights), n + m, replace=False, p=weights / weights.sum())
    return taken(source, rows[:n]), taken(source, rows[n:])


def prompted(rng, blocks, most):
    """Return sets paired by prompts: parts of a class, with one to `most` samples in each set."""
    source, rows, numbers = photographs(), [[], []], [[], []]
    left = {kind: rng.permutation(np.flatnonzero(source[3] == kind)).tolist() for kind in range(24)}
    for block in range(blocks):
        for of_set, of_numbers in zip(rows, numbers, strict=True):
            count = int(rng.integers(1, most + 1))
            of_set += [left[block % 24].pop() for _ in range(count)]
            of_numbers += [block] * count
    return [taken(source, np.array(of), blocks=np.array(at)) for of, at in zip(rows, numbers, strict=True)]


@cache
def digits():
    """Return digits on a grid of 7 × 7 windows of 4 × 4 pixels."""
    pixels, names = _real.mnist()
    cells = pixels.reshape(-1, 7, 4, 7, 4).transpose(0, 1, 3, 2, 4).reshape(-1, 49, 16)
    shown = (pixels.reshape(-1, 28, 28)[:4000] * 255).astype(np.uint8)
    likeness = np.stack([measure_likeness(Image.fromarray(image)) for image in shown])
    return (cells[:4000] * 100).astype(np.int8), likeness, pixels[:4000], names[:4000]


def heavy_tails(rng, n, m):
    """Return independent arrays with three degrees of freedom, and pictures that differ in their spread."""
    sets = []
    for size in (n, m):
        spread = rng.lognormal(0, 1, (size, 1, 1))
        cells = (10 * spread * rng.standard_t(3, (size, 49, 40))).clip(-127, 127).astype(np.int8)
        likeness = rng.standard_t(3, (size, 5)).astype(np.float32)
        sets.append(
            LocalInput(cells=cells, likeness=likeness, embeddings=rng.standard_t(3, (size, 32)).astype(np.float32))
        )
    return sets


NULLS = {
    "photographs, 150 v 150": partial(photo_split, n=150, m=150),
    "photographs, 300 v 300": partial(photo_split, n=300, m=300),
    "photographs, 100 v 400": partial(photo_split, n=100, m=400),
    "photographs, 60 v 60": partial(photo_split, n=60, m=60),
    "every picture three times, 50 v 50 groups": partial(repeated, n=50, m=50, times=((3,), (3,))),
    "groups of 1 to 6 v single pictures, 60 v 150": partial(repeated, n=60, m=150, times=((1, 2, 3, 6), (1,))),
    "prompts of 1 to 3 and 1 to 3 pictures, 72 prompts": partial(prompted, blocks=72, most=3),
    "classes by Zipf's law, 150 v 150": partial(skewed, n=150, m=150),
    "digits, 150 v 150": lambda rng: split(digits(), rng, 150, 150),
    "heavy tails, 100 v 100": partial(heavy_tails, n=100, m=100),
}


def false_rate(name, runs, permutations, seed):
    """Return the row of a regime."""
    p_values, said, started = [], 0, time.process_time()
    for run in range(runs):
        rng = np.random.default_rng([seed, [*NULLS].index(name), run])
        evidence = find_local(*NULLS[name](rng), seed=run, permutations=permutations)
        p_values.append(evidence.p_value)
        said += bool(evidence.parts)
    found = sum(p <= 0.05 for p in p_values)
    return {
        "regime": name,
        "draws": runs,
        "p ≤ .05": found,
        "rate": f"{found / runs:.3f}",
        "up to": f"{binomtest(found, runs).proportion_ci(0.9).high:.3f}",
        "p of more": f"{binomtest(found, runs, 0.05, 'greater').pvalue:.2f}",
        "p ≤ .02": sum(p <= 0.02 for p in p_values),
        "said": said,
        "CPU s each": f"{(time.process_time() - started) / runs:.2f}",
    }


def some_letters(image, rng):
    text = "".join(chr(65 + letter) for letter in rng.integers(0, 26, 9))
    ImageDraw.Draw(image).text((int(rng.integers(0, 12)), int(rng.integers(8, 48))), text, fill="white")
    return image


def patch(image, rng):
    x, y = rng.integers(0, 44, 2).tolist()
    image.paste((200, 40, 160), (x, y, x + 18, y + 18))
    return image


def stamp(image, _rng):
    ImageDraw.Draw(image).ellipse((44, 44, 60, 60), outline="white", width=3)
    return image


def border(image, _rng):
    ImageDraw.Draw(image).rectangle((0, 0, 63, 63), outline="black", width=5)
    return image


def soft_background(image, _rng):
    mask = Image.new("L", image.size, 255)
    ImageDraw.Draw(mask).ellipse((12, 12, 52, 52), fill=0)
    return Image.composite(image.filter(ImageFilter.GaussianBlur(2)), image, mask.filter(ImageFilter.GaussianBlur(3)))


def halo(image, _rng):
    return image.filter(ImageFilter.UnsharpMask(radius=3, percent=250, threshold=0))


def mirrored(image, _rng):
    image.paste(ImageOps.mirror(image.crop((0, 0, 32, 64))), (32, 0))
    return image


def tiles(image, _rng):
    small = image.resize((32, 32))
    for place in ((0, 0), (32, 0), (0, 32), (32, 32)):
        image.paste(small, place)
    return image


def zoom(image, _rng):
    return image.crop((14, 14, 50, 50)).resize((64, 64), Image.Resampling.BICUBIC)


def tilt(image, _rng):
    return image.rotate(12, Image.Resampling.BICUBIC)


def fringes(image, _rng):
    red, green, blue = image.split()
    return Image.merge("RGB", (ImageChops.offset(red, 2, 0), green, ImageChops.offset(blue, -2, 0)))


def compressed(image, _rng):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=12)
    return Image.open(file).convert("RGB")


FAULTS = {
    "writing across": (some_letters, 0.15),
    "patch of one color": (patch, 0.15),
    "stamp at a corner": (stamp, 0.25),
    "border": (border, 0.2),
    "soft background": (soft_background, 0.3),
    "halos": (halo, 0.25),
    "mirrored halves": (mirrored, 0.2),
    "tiles": (tiles, 0.15),
    "zoom": (zoom, 0.3),
    "tilted": (tilt, 0.3),
    "color fringes": (fringes, 0.2),
    "strong compression": (compressed, 0.25),
}


def power(name, size, network, seed):
    """Return the row of a fault that is planted into the first of the generated pictures."""
    change, share = FAULTS[name]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(photographs()[0]))[: 2 * size]
    planted = round(share * size)
    changed = network.look([change(images()[0][row].copy(), rng) for row in rows[:planted]])
    kept = taken(photographs(), rows[:size])
    arrays = [np.concatenate([new, old[planted:]]) for new, old in zip(changed, kept.arrays.values(), strict=True)]
    evidence = find_local(LocalInput(*arrays), taken(photographs(), rows[size:]), seed=seed)
    parts = [part for part in evidence.parts if part.side == "more" and part.share is not None]
    best = max(parts, key=lambda part: np.isin(part.samples, np.arange(planted)).sum(), default=None)
    return {
        "fault": name,
        "samples": size,
        "p": f"{evidence.p_value:.3f}",
        "planted": f"{share:.0%}",
        "said": "" if best is None else f"{best.share:.0%}",
        "at least": "" if best is None else f"{best.at_least:.1%}",
        "kind": ", ".join(f"{part.kind} {part.side}{'' if part.share else ', of all'}" for part in evidence.parts),
        "right": "" if best is None else f"{sum(sample < planted for sample in best.samples[:12])} of 12",
    }


def all_of(rows):
    found, runs = sum(row["p ≤ .05"] for row in rows), sum(row["draws"] for row in rows)
    return {
        "regime": "all",
        "draws": runs,
        "p ≤ .05": found,
        "rate": f"{found / runs:.3f}",
        "up to": f"{binomtest(found, runs).proportion_ci(0.9).high:.3f}",
        "p of more": f"{binomtest(found, runs, 0.05, 'greater').pvalue:.2f}",
        "p ≤ .02": sum(row["p ≤ .02"] for row in rows),
        "said": sum(row["said"] for row in rows),
        "CPU s each": "",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["nulls", "power"])
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--seed", type=int, default=76, help="seed of the draws of sets of one law")
    parser.add_argument("--regime", action="append", choices=[*NULLS], help="one regime; default: all")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "power":
        network = Photographs()
        rows = [power(name, size, network, seed=1) for size in (150, 300) for name in FAULTS]
        record("local_evidence_power", rows, "Photographs of 64 pixels.")
        return
    rows = []
    for name in given.regime or NULLS:
        rows.append(false_rate(name, given.runs, given.permutations, given.seed))
        print(rows[-1], flush=True)
    if not given.regime:
        record("local_evidence", rows, "Sets of one law.", total=all_of)


if __name__ == "__main__":
    main()
