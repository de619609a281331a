"""False rates of the test of local evidence, and what it finds of planted faults.

Both sets are of one law in `nulls`: cells, likeness to themselves and embeddings of photographs of 64 pixels, digits,
and arrays. *p ≤ .05* counts draws, and *said* counts draws with a part that is said. *up to* is the upper end of an
interval of 90 %, and *p of more* that of "no more than 5 %" by the binomial distribution.

In `power`, faults are drawn into a share of the generated pictures before these are embedded. *right* is the share of
the planted pictures among the first twelve that are shown.

    python benchmarks/local_evidence.py nulls --runs 600
    python benchmarks/local_evidence.py power
    python benchmarks/local_evidence.py sizes
    python benchmarks/local_evidence.py orientation --runs 300
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
from _local_faults import FAULTS
from _record import record
from PIL import Image, ImageOps
from scipy.stats import binomtest

from finc_eval.local_evidence.find import find_local
from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.naming.likeness import measure_likeness
from finc_eval.numerics.inference import BESIDE_ALPHA

KEPT = _real.CACHE / "local-evidence-64.npz"
TURNED = _real.CACHE / "local-evidence-64-turned.npz"
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


def power(name, size, network, seed, pictures=None, source=None):
    """Return the row of a fault that is planted into the first of the generated pictures; default: photographs."""
    pictures, source = pictures or images()[0], source or photographs()
    change, share = FAULTS[name]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(source[0]))[: 2 * size]
    planted = round(share * size)
    changed = network.look([change(pictures[row].copy(), rng) for row in rows[:planted]])
    kept = taken(source, rows[:size])
    arrays = [np.concatenate([new, old[planted:]]) for new, old in zip(changed, kept.arrays.values(), strict=True)]
    evidence = find_local(LocalInput(*arrays), taken(source, rows[size:]), seed=seed)
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


def large_photographs(side):
    """Return 500 photographs, their middle square at this size, of at most 256 pixels."""
    with zipfile.ZipFile(_real.asset("photos", "imagenet_500.zip")) as archive:
        files = [archive.read(name) for name in sorted(archive.namelist())]
    opened = (Image.open(io.BytesIO(file)).convert("RGB") for file in files)
    return [ImageOps.fit(image, (side, side), Image.Resampling.LANCZOS) for image in opened]


def mosaics(side, count=600):
    """Return mosaics of photographs of 256 pixels, each drawn at random and turned to its mirror image by chance."""
    tiles, rng, each = large_photographs(256), np.random.default_rng(side), side // 256
    made = []
    for _ in range(count):
        mosaic = Image.new("RGB", (side, side))
        for place, number in enumerate(rng.choice(len(tiles), each * each, replace=False).tolist()):
            tile = ImageOps.mirror(tiles[number]) if rng.random() < 0.5 else tiles[number]
            mosaic.paste(tile, (256 * (place % each), 256 * (place // each)))
        made.append(mosaic)
    return made


def drawn_digits(count=600):
    """Return digits of 28 pixels in RGB."""
    pixels = (_real.mnist()[0][:count].reshape(-1, 28, 28) * 255).astype(np.uint8)
    return [Image.fromarray(image).convert("RGB") for image in pixels]


SIZES = {
    "digits, 28 pixels": (drawn_digits, 300, 1),
    "photographs, 64 pixels": (lambda: images()[0], 300, 1),
    "photographs, 128 pixels": (partial(large_photographs, 128), 250, 1),
    "photographs, 256 pixels": (partial(large_photographs, 256), 250, 1),
    "mosaics, 512 pixels": (partial(mosaics, 512), 300, 1),
    "mosaics, 1024 pixels": (partial(mosaics, 1024, 300), 150, 1),
}
"""Function that makes the pictures, samples of each set, and draws of each fault, by the name of the pictures."""


def by_size(name, network):
    """Yield a row for each fault in pictures of a kind."""
    make, size, draws = SIZES[name]
    pictures = make()
    source = photographs() if name == "photographs, 64 pixels" else network.look(pictures)
    for fault in FAULTS:
        for seed in range(1, draws + 1):
            row = power(fault, size, network, seed, pictures, source)
            yield {"pictures": name, "draw": seed, **row}


def found_by_size(rows):
    """Return a row of each kind of pictures: in how many draws a fault is found and said, and how well."""
    summary = []
    for name in dict.fromkeys(row["pictures"] for row in rows):
        own = [row for row in rows if row["pictures"] == name]
        said = [row for row in own if row["at least"]]
        silent = dict.fromkeys(row["fault"] for row in own if float(row["p"]) > BESIDE_ALPHA)
        shown = [int(row["right"].split()[0]) for row in said]
        above = sum(float(row["at least"][:-1]) > float(row["planted"][:-1]) for row in said)
        summary.append(
            {
                "pictures": name,
                "samples": own[0]["samples"],
                "draws": len(own),
                "p ≤ .05": sum(float(row["p"]) <= 0.05 for row in own),
                "p ≤ .0125": sum(float(row["p"]) <= BESIDE_ALPHA for row in own),
                "above the truth": f"{above} of {len(said)}",
                "right of 12": f"{np.mean(shown):.1f}",
                "silent": ", ".join(silent),
            }
        )
    return summary


TUNED = 2000  # photographs, in a random order, on which constants of orientation were tuned; the next are measured
MEASURED = 800


@cache
def turned():
    """Return photographs that nothing was tuned on: as they are, and upside down, with what is known of each."""
    rows = np.random.default_rng(7606).permutation(len(images()[0]))[TUNED : TUNED + MEASURED]
    if not TURNED.exists():
        pictures = [images()[0][row].transpose(Image.Transpose.ROTATE_180) for row in rows]
        cells, likeness, embeddings = Photographs().look(pictures)
        np.savez(TURNED, cells=cells, likeness=likeness, embeddings=embeddings)
    with np.load(TURNED) as kept:
        return [array[rows] for array in photographs()[:3]], [
            kept[name] for name in ("cells", "likeness", "embeddings")
        ]


def with_turned(rows, planted, most):
    """Return a set whose first pictures are upside down. At most `most` of all are also embedded turned."""
    upright, flipped = turned()
    upside_down = np.arange(len(rows)) < planted
    both = [[one[rows], other[rows]] for one, other in zip(upright, flipped, strict=True)]
    cells, likeness, embeddings = (
        np.where(upside_down.reshape(-1, *[1] * (one.ndim - 1)), other, one) for one, other in both
    )
    second = np.where(upside_down[:, None], both[2][0], both[2][1])
    second[np.random.default_rng(len(rows)).permutation(len(rows))[most:]] = np.nan
    return LocalInput(cells=cells, likeness=likeness, embeddings=embeddings, flipped=second)


def upside_down(n, m, share, runs, permutations):
    """Return the row of draws in which a share of the generated pictures is upside down."""
    planted, p_values, parts, right = round(share * n), [], [], []
    for run in range(runs):
        rows = np.random.default_rng([76, n, m, planted, run]).permutation(MEASURED)[: n + m]
        gen, ref = with_turned(rows[:n], planted, m), with_turned(rows[n:], 0, m)
        evidence = find_local(gen, ref, seed=run, permutations=permutations)
        p_values.append(evidence.p_value)
        named = [part for part in evidence.parts if part.kind == "orientation" and part.side == "more"]
        parts += named
        right += [np.mean(np.array(part.samples[:12]) < planted) for part in named]
    found = sum(p <= 0.05 for p in p_values)
    return {
        "sets": f"{n} v {m}",
        "upside down": f"{share:.0%}",
        "draws": runs,
        "p ≤ .05": found,
        "interval": "[{:.3f}, {:.3f}]".format(*binomtest(found, runs).proportion_ci(0.95)),
        "p ≤ .0125": sum(p <= BESIDE_ALPHA for p in p_values),
        "named": len(parts),
        "share said": f"{np.mean([part.share for part in parts]):.1%}" if parts else "",
        "above the truth": sum(part.at_least > share for part in parts),
        "right of 12": f"{12 * np.mean(right):.1f}" if right else "",
    }


ORIENTATION = (
    *((n, m, 0) for n, m in ((100, 100), (150, 150), (300, 100))),
    *((n, n, share) for n in (150, 300) for share in (0.1, 0.2)),
)


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


def measure_nulls(given):
    rows = []
    for name in given.regime or NULLS:
        rows.append(false_rate(name, given.runs, given.permutations, given.seed))
        print(rows[-1], flush=True)
    if not given.regime:
        record("local_evidence", rows, "Sets of one law.", total=all_of)


def measure_power(given):
    network = Photographs()
    rows = [power(name, size, network, seed=1) for size in (150, 300) for name in FAULTS]
    record("local_evidence_power", rows, "Photographs of 64 pixels.")


def measure_sizes(given):
    network, rows = Photographs(), []
    for name in SIZES:
        rows += by_size(name, network)
        print(found_by_size(rows)[-1], flush=True)
    note = "A draw of each of twelve faults; p ≤ .0125 is what a headline says."
    record("local_evidence_sizes", found_by_size(rows), note)


def measure_orientation(given):
    rows = []
    for n, m, share in ORIENTATION:
        rows.append(upside_down(n, m, share, given.runs if not share else 20, given.permutations))
        print(rows[-1], flush=True)
    record("local_evidence_orientation", rows, "With cells, likeness and near pairs in the same family.")


PARTS = {"nulls": measure_nulls, "power": measure_power, "sizes": measure_sizes, "orientation": measure_orientation}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*PARTS, []], help="parts to measure; default: all")
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--seed", type=int, default=76, help="seed of the draws of sets of one law")
    parser.add_argument("--regime", action="append", choices=[*NULLS], help="one regime; default: all")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for what in given.what or PARTS:
        PARTS[what](given)


if __name__ == "__main__":
    main()
