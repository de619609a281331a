"""Measure how often the policy that `--init` writes fails an unchanged release, and a release with a fault.

    python benchmarks/gate_faults.py [--regime digits-1000 … --runs … --jobs …]

Release, baseline and reference are disjoint draws: of real digits by their pixels (32 axes; 1 000 or 3 000 of a
release, 4 000 of the reference), and of photographs in features of EfficientNet-Lite0 (500 or 1 000 of each set), whose
last layer is at hand. All have their pictures. The policy is that of `first_policy` for baseline and reference.

*unchanged*: nothing. *lost*: a class of 10 % is gone. *part-lost*: seven tenths of a class of 10 %. *new*: 5 % are of a
class that baseline and reference lack. *blur*: a quarter is blurred. *repeats*: 8 % are one picture. *copies*: 30 % are
pictures of the reference. *collapse*: all samples are of a tenth of the pictures, a little noisy each. *darker*:
everything is 10 % darker.

The limit on new kinds is drawn by itself, too: alone it takes a tenth of the time.

Three designs have an unchanged and a darker release each: 250 digits of a release against 3 000 of the baseline; 1 000
digits in groups of four of one class and of like brightness, with `groups` in the policy; and 500 photographs of which
the baseline is darker, so that the release came to look like the reference.
"""

import io
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gate_real
import numpy as np
import torch
from _real import asset, efficientnet, efficientnet_weights, mnist, prepared, tiny_imagenet
from _record import record
from _runs import rate, run
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval.embeddings.recipe import space_of
from finc_eval.extractors.catalog import load_card
from finc_eval.gates.first_policy import first_policy

RUNS = 40
SIZES = {
    "digits-1000": (1000, 4000),
    "digits-3000": (3000, 4000),
    "photographs-500": (500, 500),
    "photographs-1000": (1000, 1000),
}
ALONE = " by kinds.new alone"
"""End of the regimes in which the policy limits new kinds alone, with the limit that `first_policy` writes."""
NEW_KINDS = ("photographs-500", "digits-1000", "digits-3000")  # regimes that are also drawn so

SMALL, GROUPS, RETURNED = "digits-250 against 3000", "digits-1000 in fours", "photographs-500 like the reference"
DESIGNS = {SMALL: (250, 3000, 4000), GROUPS: (1000, 1000, 4000), RETURNED: (500, 500, 500)}
"""Designs, with the sizes of release, baseline and reference."""

SPACE = space_of(load_card("efficientnet-lite0"))

FAULTS = ("unchanged", "lost", "part-lost", "new", "blur", "repeats", "copies", "collapse", "darker")
CLASS = 0.1  # share of the class that is lost, wholly or in part
PLANTED = {"blur": "blur", "repeats": "times", "copies": "are copies of reference samples", "darker": "darker"}
"""Words of the headline that name a fault, of faults that have no name of their own data."""


@dataclass(frozen=True)
class Source:
    """Pictures with their rows and classes."""

    images: list
    rows: np.ndarray
    labels: np.ndarray
    embed: Callable  # function from pictures to rows
    space: str | None = None  # extractor whose last layer sees classes in the rows


@cache
def source(what):
    if what == "digits":
        pixels, labels = mnist()
        images = [Image.fromarray(one) for one in (255 * pixels.reshape(-1, 28, 28)).round().astype(np.uint8)]
        return Source(images, gate_real.embedded(pixels), labels.astype(str), pixels_of)
    rows, labels = tiny_imagenet()
    with zipfile.ZipFile(asset("photos", "tiny_imagenet_24x300.zip")) as archive:
        names = sorted(one for one in archive.namelist() if one.endswith(".JPEG"))
        images = [Image.open(io.BytesIO(archive.read(one))).convert("RGB") for one in names]
    return Source(images, rows, labels.astype(str), features_of, SPACE)


def pixels_of(images):
    return gate_real.embedded(np.stack([np.asarray(one, np.float32).ravel() / 255 for one in images]))


def features_of(images):
    files = []
    for one in images:
        file = io.BytesIO()
        one.save(file, "PNG")
        files.append(prepared(file.getvalue()))
    model = efficientnet(efficientnet_weights())
    with torch.inference_mode():
        batches = (torch.from_numpy(np.stack(files[at : at + 50])) for at in range(0, len(files), 50))
        found = [model((one.permute(0, 3, 1, 2).float() - 127) / 128).numpy() for one in batches]
    return np.concatenate(found)


def blurred(image, rng):
    return image.filter(ImageFilter.GaussianBlur(1.2))


def darker(image, rng):
    return image.point(lambda value: int(value * 0.9 + 0.5))


def noisy(image, rng):
    values = np.asarray(image, float)
    return Image.fromarray((values + rng.normal(0, 4, values.shape)).clip(0, 255).astype(np.uint8))


def as_set(data, index, change=None, changed=(), rng=None):
    """Return samples by index, some of them changed and embedded again."""
    images, rows = [data.images[one] for one in index], data.rows[index].copy()
    if len(changed):
        for place in changed:
            images[place] = change(images[place], rng)
        rows[changed] = data.embed([images[place] for place in changed])
    made = fe.EmbeddingSet(rows, images=images)
    if data.space:
        made.space = data.space
    return made


def draw(data, n, m, rng):
    """Return indices of release, baseline and reference, the rest, and a class that is `CLASS` of the first three."""
    names = np.unique(data.labels)
    which, extra = rng.choice(names, 2, replace=False)
    of_class, others = (
        rng.permutation(np.flatnonzero(one))
        for one in (data.labels == which, (data.labels != which) & (data.labels != extra))
    )
    parts = []
    for size in (n, n, m):
        own = min(round(CLASS * size), len(of_class) // (3 - len(parts)))
        parts.append(rng.permutation(np.concatenate([of_class[:own], others[: size - own]])))
        of_class, others = of_class[own:], others[size - own :]
    return parts, others, which, np.flatnonzero(data.labels == extra)


def release(data, fault, parts, rest, which, extra, rng):
    """Return a release with a fault."""
    new, _, ref = parts
    n, everyone = len(new), np.arange(len(new))
    places = rng.permutation(n)
    if fault in ("lost", "part-lost"):
        own = np.flatnonzero(data.labels[new] == which)
        gone = own if fault == "lost" else own[: round(0.7 * len(own))]
        new = new.copy()
        new[gone] = rest[: len(gone)] if len(rest) >= len(gone) else rng.choice(np.delete(new, own), len(gone), False)
    elif fault in ("new", "repeats", "copies"):
        share = {"new": 0.05, "repeats": 0.08, "copies": 0.3}[fault]
        some, new = places[: round(share * n)], new.copy()
        new[some] = {"new": extra[: len(some)], "repeats": new[some[0]], "copies": ref[: len(some)]}[fault]
    elif fault == "collapse":
        return as_set(data, rng.choice(new, n // 10, False)[everyone % (n // 10)], noisy, everyone, rng)
    elif fault == "blur":
        return as_set(data, new, blurred, places[: n // 4], rng)
    elif fault == "darker":
        return as_set(data, new, darker, everyone, rng)
    return as_set(data, new)


def one(regime, seed):
    if regime in DESIGNS:
        return one_design(regime, seed)
    size, alone, _ = regime.partition(ALONE)
    n, m = SIZES[size]
    data, rng = source(regime.partition("-")[0]), np.random.default_rng(seed)
    parts, rest, which, extra = draw(data, n, m, rng)
    old, ref = (as_set(data, one) for one in parts[1:])
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gate.toml"
        policy = first_policy([old], ref).splitlines()
        path.write_text("\n".join(line for line in policy if not alone or line.startswith("kinds.new")))
        for fault in ("unchanged", "new") if alone else FAULTS:
            verdict = fe.gate(release(data, fault, parts, rest, which, extra, rng), old, ref, path)
            found[fault] = verdict.overall
            found[f"{fault} headline"] = verdict.headline
            found[f"{fault} causes"] = len(verdict.causes)
    return found


def draw_groups(data, sizes):
    """Return a function that draws indices by a generator: groups of four of one class and of like brightness."""
    brightness = [np.asarray(one, np.float32).mean() for one in data.images]
    order = np.lexsort((brightness, data.labels))
    groups = order[: len(order) // 4 * 4].reshape(-1, 4)
    ends = np.cumsum(sizes) // 4

    def of(rng):
        drawn = rng.permutation(groups)
        return [one.ravel() for one in np.split(drawn, ends)[: len(sizes)]]

    return of


def one_design(regime, seed):
    data, rng, sizes = source(regime.partition("-")[0]), np.random.default_rng(seed), DESIGNS[regime]
    if regime == GROUPS:
        parts = draw_groups(data, sizes)(rng)
    else:
        parts = np.split(rng.permutation(len(data.images)), np.cumsum(sizes))[:3]
    changes = [darker if regime == RETURNED and place == 1 else None for place in range(3)]
    sets = [design_set(data, index, change, regime) for index, change in zip(parts, changes, strict=True)]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gate.toml"
        path.write_text(first_policy([sets[1]], sets[2], groups="group" if regime == GROUPS else None))
        for fault, change in {"unchanged": None, "darker": darker}.items():
            verdict = fe.gate(design_set(data, parts[0], change, regime), *sets[1:], path)
            found |= {fault: verdict.overall, f"{fault} headline": verdict.headline}
            found[f"{fault} causes"] = len(verdict.causes)
    return found


def design_set(data, index, change, regime):
    """Return samples by index, all of them changed if there is a change, in groups of four that follow each other."""
    images, rows = [data.images[one] for one in index], data.rows[index]
    if change:
        images = [change(one, None) for one in images]
        rows = data.embed(images)
    groups = {"group": [f"group {place // 4}" for place in range(len(index))]} if regime == GROUPS else None
    return fe.EmbeddingSet(rows, images=images, metadata=groups)


def report(found):
    for name, are_designs in (("gate_faults", False), ("gate_designs", True)):
        own = {regime: runs for regime, runs in found.items() if (regime in DESIGNS) == are_designs}
        if own:
            record(name, rows_of(own), "95 % intervals of Clopper and Pearson")


def rows_of(found):
    rows = []
    for regime, runs in found.items():
        for fault in [fault for fault in FAULTS if fault in runs[0]]:
            verdicts = [{"fails": run[fault] == "regression", "passes": run[fault] == "pass"} for run in runs]
            named = [{"named": PLANTED[fault] in run[f"{fault} headline"]} for run in runs] if fault in PLANTED else []
            something = [{"any": run[f"{fault} causes"] > 0} for run in runs]
            row = {"release": f"{regime}, {fault}"}
            row |= {"fails": rate(verdicts, "fails"), "passes": rate(verdicts, "passes")}
            rows.append(row | {"named first": rate(named, "named"), "any cause": rate(something, "any")})
    return rows


if __name__ == "__main__":
    run("gate_faults", [*SIZES, *DESIGNS, *(name + ALONE for name in NEW_KINDS)], one, report, RUNS)
