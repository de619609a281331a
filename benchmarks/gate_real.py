"""The gate on real digits, photographs and real generators: planted regressions, and one model after the other.

Needs the test assets (FINC_EVAL_ASSETS). Digits are 32 principal axes of their pixels, photographs those of their
features by EfficientNet-Lite0. Runs differ in which samples are the release, the baseline and the reference.

*unchanged*: 1 000 new digits, 1 000 old ones, 4 000 of the reference, at the policy that `--init` writes for them.
*lost-by-init*: the same policy, and a digit that is gone; *lost-250*: with 250 digits. *photos-unchanged*,
*photos-lost*: 1 500 photographs of 24 classes, one of which is gone.

*lost*, *halved*: a labelled digit loses what is detectable at limits of 80 % and of 20 %. *artefact*: a white square
in so many digits as are detectable. *blur*, *codec*, *shade*: all digits are blurred, halved in size and compressed as
JPEG, or darkened, so much that the Fréchet distance rises by what is detectable. *copied*: so many training digits
among the new ones as are detectable, at a limit of 1 %. Sizes are those that the gate prints of the release without the
change.

*files-unchanged*: from image files to the verdict, 500 digits against 500 and 1 000 of the reference, as thumbnails of
192 entries, at limits that allow next to nothing on lost and new kinds and on the Fréchet distance.

*local-unchanged*: 300 photographs of 64 pixels, with cells, against 300 and 300 of the reference, at a limit of 2 % on
parts of pictures alone; *local-returned*: a baseline without the patch of one color that 15 % of release and reference
have; *local-retrained*: three baselines of 300 photographs; *local-groups*: groups of three equal photographs. A fault
of `local_evidence.py` behind *local-* is drawn into a share of the release.

*generators*: 2 000 digits of one model, after 2 000 of a better one by its Fréchet distance; *same-generator*: of the
same one.
"""

import io
import tempfile
from functools import cache
from pathlib import Path

import local_evidence
import numpy as np
from _real import asset, mnist, tiny_imagenet
from _record import record
from _runs import rate, run
from PIL import Image, ImageFilter
from scipy.optimize import brentq

import finc_eval as fe
from finc_eval.embeddings.cells import Cells
from finc_eval.gates.first_policy import first_policy

N, M, AXES = 1000, 4000, 32
RUNS = 20
FILES = 500
LOCAL = 300  # photographs of each set of a gate on parts of pictures
DESIGNS = ("unchanged", "returned", "retrained", "groups")
PLANTED = ("writing across", "patch of one color", "stamp at a corner", "border", "soft background", "halos", "zoom",
           "color fringes")  # fmt: skip
THUMBNAILS = """name = "thumbnails"
description = "The pixels of thumbnails: RGB, 8x8, flattened to 192 numbers."
citation = "None."
traps = []

[loader]
kind = "pixels"

[preprocessing]
size = [8, 8]
geometry = "squash"
method = "pil"
interpolation = "bicubic"
antialias = true
rounding = "uint8"
range = [0.0, 1.0]
mean = [0.0, 0.0, 0.0]
std = [1.0, 1.0, 1.0]

[output]
layer = "input"
pooling = "flatten"
dimension = 192
"""
"""A card of few pixels, so that 500 files are more samples than entries, and have a Fréchet distance."""
BETTER = (("ddpm", "half_trained_gan"), ("gmgan_a", "fgan"), ("ddpm", "wgan_collapsed"), ("gan_baseline", "fgan"))


@cache
def axes():
    """Mean and principal axes of half of the real digits, which no run draws from."""
    rows = mnist()[0][10_000:]
    mean = rows.mean(0)
    return mean, np.linalg.svd(rows - mean, full_matrices=False)[2][:AXES]


def embedded(pixels):
    mean, directions = axes()
    return ((pixels - mean) @ directions.T).astype(np.float32)


@cache
def digits():
    pixels, labels = mnist()
    return pixels[:10_000], labels[:10_000].astype(str)


@cache
def photos():
    rows, labels = tiny_imagenet()
    centered = rows - rows.mean(0)
    return (centered @ np.linalg.svd(centered, full_matrices=False)[2][:AXES].T).astype(np.float32), labels


def told(rows, labels):
    return fe.EmbeddingSet(rows, metadata={"label": labels.tolist()})


def detectable(verdict):
    """Return the largest size that the limits print; of a release without a change, which must print one."""
    return max(one.detectable for one in verdict.limits if one.detectable is not None)


def judged(verdict, size=None):
    found = {"regression": verdict.overall == "regression", "pass": verdict.overall == "pass"}
    return found if size is None else found | {"size": size}


def cut(rng, n, m, total):
    order = rng.permutation(total)
    return order[: 2 * n], order[2 * n : 3 * n], order[3 * n : 3 * n + m]


def by_init(rows, labels, n, m, lose, seed):
    rng = np.random.default_rng(seed)
    new, old, ref = cut(rng, n, m, len(rows))
    if lose:
        new = new[labels[new] != rng.choice(np.unique(labels))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gate.toml"
        path.write_text(first_policy([rows[old]], rows[ref]))
        verdict = fe.gate(rows[new[:n]], rows[old], rows[ref], path)
    return judged(verdict)


def by_label(margin, seed):
    pixels, labels = digits()
    rng, rows = np.random.default_rng(seed), embedded(pixels)
    new, old, ref = cut(rng, N, M, len(rows))
    policy, digit = {"kinds": {"lose": margin, "column": "label"}}, str(rng.integers(10))
    sets = [told(rows[one], labels[one]) for one in (old, ref)]
    limits = fe.gate(told(rows[new[:N]], labels[new[:N]]), *sets, policy).limits
    size = next(one.detectable for one in limits if one.name == f"kinds.lose label={digit}")
    if size is None:
        return {"size": np.nan}
    # The shares of all others grow as a digit loses: what is left of it is a part of that.
    share = (labels == digit).mean()
    left = (1 - size) * (1 - share) / (1 - (1 - size) * share)
    kept = new[(labels[new] != digit) | (rng.random(len(new)) < left)][:N]
    verdict = fe.gate(told(rows[kept], labels[kept]), *sets, policy)
    found = f"kinds.lose label={digit}" in [one.name for one in verdict.of("regressed")]
    return {"regression": found, "pass": verdict.overall == "pass", "size": size}


def artefact(seed):
    pixels, _ = digits()
    rng = np.random.default_rng(seed)
    new, old, ref = cut(rng, N, M, len(pixels))
    policy, sets = {"kinds": {"new": 0.02}}, [embedded(pixels[one]) for one in (old, ref)]
    size = detectable(fe.gate(embedded(pixels[new[:N]]), *sets, policy))
    broken = pixels[new[:N]].reshape(-1, 28, 28).copy()
    broken[rng.random(N) < size, 8:20, 8:20] = 1
    verdict = fe.gate(embedded(broken.reshape(-1, 784)), *sets, policy)
    return judged(verdict, size)


def images(pixels):
    return [Image.fromarray(one) for one in (255 * pixels.reshape(-1, 28, 28)).round().astype(np.uint8)]


def blurred(one):
    return one.filter(ImageFilter.GaussianBlur(2))


def coded(one):
    file = io.BytesIO()
    one.resize((14, 14)).save(file, "JPEG", quality=1)
    return Image.open(file).resize((28, 28))


def shaded(one):
    return one.point(lambda value: value * 0.6)


def changed(how, seed):
    pixels, _ = digits()
    rng = np.random.default_rng(seed)
    new, old, ref = cut(rng, N, M, len(pixels))
    policy, sets = {"metrics": {"fd": {"difference": "noise"}}}, [embedded(pixels[one]) for one in (old, ref)]
    clean = embedded(pixels[new])
    worst = embedded(np.stack([np.asarray(how(one), np.float32).ravel() / 255 for one in images(pixels[new])]))
    size = detectable(fe.gate(clean[:N], *sets, policy))

    def rise(part):
        score = [fe.metrics(one, sets[1], ["fd"])["fd"].unbiased for one in (clean + part * (worst - clean), clean)]
        return score[0] - score[1] - size

    if rise(1.0) < 0:
        return {"size": size}
    part = brentq(rise, 0, 1, xtol=0.01)
    return judged(fe.gate((clean + part * (worst - clean))[:N], *sets, policy), size)


def copied(seed):
    rng, rows = np.random.default_rng(seed), embedded(digits()[0])
    new, old, ref = cut(rng, N, M, len(rows))
    train, policy = embedded(mnist()[0][10_000:13_000]), {"copying": {"near": 0.01}}
    gen = rows[new[:N]].copy()
    size = detectable(fe.gate(gen, rows[old], rows[ref], policy, train=train))
    which = rng.random(N) < size
    gen[which] = train[rng.choice(len(train), which.sum(), replace=False)]
    return judged(fe.gate(gen, rows[old], rows[ref], policy, train=train), size)


def from_files(seed):
    """Judge a release without a change, from image files to the verdict."""
    pixels, _ = digits()
    new, old, ref = cut(np.random.default_rng(seed), FILES, 2 * FILES, len(pixels))
    policy = {"kinds": {"lose": 0.01, "new": 0.001}, "metrics": {"fd": {"difference": 0.001}}}
    with tempfile.TemporaryDirectory() as folder:
        sets = [Path(folder) / name for name in ("new", "old", "ref")]
        for place, rows in zip(sets, (new[:FILES], old, ref), strict=True):
            place.mkdir()
            for row, image in zip(rows, images(pixels[rows]), strict=True):
                image.save(place / f"{row}.png")
        card = Path(folder) / "thumbnails.toml"
        card.write_text(THUMBNAILS)
        verdict = fe.gate(*sets, policy, extractor=card)
    return judged(verdict)


@cache
def generated(name):
    with np.load(asset("mnist_generated", f"{name}.npz")) as data:
        return embedded(data["images"].reshape(len(data["images"]), -1).astype(np.float32) / 255)


def generators(same, seed):
    rng = np.random.default_rng(seed)
    better, worse = BETTER[seed % len(BETTER)]
    old, new = generated(better), generated(better if same else worse)
    first = rng.permutation(len(old))
    second = first[2000:] if same else rng.permutation(len(new))
    ref = embedded(digits()[0])[rng.permutation(10_000)[:M]]
    policy = {"kinds": {"lose": 0.5, "new": 0.03}, "metrics": {"fd": {"difference": "noise"}}}
    verdict = fe.gate(new[second[:2000]], old[first[:2000]], ref, policy)
    return judged(verdict)


class Celled(fe.EmbeddingSet):
    """Embeddings of photographs with their cells."""

    cells_absent = ""

    def __init__(self, cells, rows, group=1):
        super().__init__(rows, metadata={"group": (np.arange(len(rows)) // group).astype(str)})
        self.values = cells

    @property
    def cells(self):
        return Cells(self.values, np.arange(self.n), "efficientnet-lite0")


@cache
def network():
    return local_evidence.Photographs()


@cache
def patched():
    """Return cells and embeddings of 900 photographs with a patch of one color, computed once."""
    rng, images = np.random.default_rng(0), local_evidence.images()[0]
    cells, _, embeddings = network().look([local_evidence.patch(images[row].copy(), rng) for row in range(0, 7200, 8)])
    return cells, embeddings


def local(design, seed):
    """Judge a release by its parts of pictures."""
    cells, _, embeddings, _ = local_evidence.photographs()
    rng, group = np.random.default_rng([seed, 76]), 3 if design == "groups" else 1
    parts = np.split(rng.permutation(len(cells))[: 5 * LOCAL // group], 5)
    sets = [[array[np.repeat(part, group)] for array in (cells, embeddings)] for part in parts]
    if design == "returned":
        for place, number in ((0, 0), (2, 1)):
            some = np.array_split(rng.permutation(len(patched()[0])), 2)[number][: round(0.15 * LOCAL)]
            for array, changed in zip(sets[place], patched(), strict=True):
                array[: len(some)] = changed[some]
    elif design in local_evidence.FAULTS:
        change, share = local_evidence.FAULTS[design]
        images = [local_evidence.images()[0][row].copy() for row in parts[0][: round(share * LOCAL)]]
        changed = network().look([change(image, rng) for image in images])
        sets[0][0][: len(images)], sets[0][1][: len(images)] = changed[0], changed[2]
    gen, old, ref, *again = (Celled(*each, group) for each in sets)
    policy = {"appearance": {"local": 0.02}} | ({"groups": "group"} if group > 1 else {})
    return judged(fe.gate(gen, [old, *again] if design == "retrained" else old, ref, policy))


def one(regime, seed):
    if regime.startswith("local-"):
        return local(regime.removeprefix("local-"), seed)
    return {
        "unchanged": lambda: by_init(embedded(digits()[0]), digits()[1], N, M, False, seed),
        "lost-by-init": lambda: by_init(embedded(digits()[0]), digits()[1], N, M, True, seed),
        "lost-250": lambda: by_init(embedded(digits()[0]), digits()[1], 250, M, True, seed),
        "photos-unchanged": lambda: by_init(*photos(), 1500, 2500, False, seed),
        "photos-lost": lambda: by_init(*photos(), 1500, 2500, True, seed),
        "lost": lambda: by_label(0.8, seed),
        "halved": lambda: by_label(0.2, seed),
        "artefact": lambda: artefact(seed),
        "blur": lambda: changed(blurred, seed),
        "codec": lambda: changed(coded, seed),
        "shade": lambda: changed(shaded, seed),
        "copied": lambda: copied(seed),
        "files-unchanged": lambda: from_files(seed),
        "generators": lambda: generators(False, seed),
        "same-generator": lambda: generators(True, seed),
    }[regime]()


REGIMES = (
    "unchanged",
    "lost-by-init",
    "lost-250",
    "lost",
    "halved",
    "artefact",
    "blur",
    "codec",
    "shade",
    "copied",
    "files-unchanged",
    "generators",
    "same-generator",
    "photos-unchanged",
    "photos-lost",
    *(f"local-{design}" for design in (*DESIGNS, *PLANTED)),
)


def report(found):
    rows = [
        {
            "regime": regime,
            "runs": len(runs),
            "regression": rate(runs, "regression"),
            "pass": rate(runs, "pass"),
            "detectable, median": f"{np.nanmedian(sizes):.3g}"
            if (sizes := [r["size"] for r in runs if "size" in r])
            else "",
        }
        for regime, runs in found.items()
    ]
    record("gate_real", rows, "α = 0.05; 95 % intervals of Clopper and Pearson")


if __name__ == "__main__":
    run("gate_real", REGIMES, one, report, RUNS)
