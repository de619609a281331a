"""Real photographs and real clips: is every class that is held out of the reference found?

Needs the test assets (FINC_EVAL_ASSETS). Photographs: 24 classes of Tiny-ImageNet, half of each class in either set,
six classes held out of the reference, embedded by EfficientNet-Lite0. Clips: 15 actions of UCF101, divided in the same
way, five held out, given by their VGG-16 features averaged over 25 frames. A class is found if a kind that differs
consists of it (`demo.run.FOUND_PURITY`). Writes a page with the photographs to reports/held_out/, which is not kept.
"""

import zipfile
from collections import defaultdict
from pathlib import Path, PurePosixPath

import numpy as np
from _real import asset
from _record import record

import finc_eval as fe
from finc_eval.demo.run import find_planted, shares_of

PHOTOGRAPHS_HELD_OUT, CLIPS_HELD_OUT = 6, 5
REPORTS = Path(__file__).parents[1] / "reports" / "held_out"


def photographs(archive, out, seed=0):
    """Return the comparison, and each held-out class with what was found."""
    folders = divided(archive, out / "samples", np.random.default_rng(seed))
    gen, ref = (fe.extract(folder, "efficientnet-lite0", out / f"{folder.name}.h5") for folder in folders)
    kinds = ([PurePosixPath(name).parent.name for name in cache.ids] for cache in (gen, ref))
    comparison, found = held_out(gen, ref, *kinds)
    comparison.to_html(out / "report.html")
    return comparison, found


def clips(features, seed=0):
    """Return the comparison, and each held-out action with what was found."""
    rng = np.random.default_rng(seed)
    with np.load(features) as data:
        # Labels count from one; a class is called "3  Archery".
        actions = np.array([name.split()[-1] for name in data["classes"]])
        rows, names = data["features"].astype(np.float32), actions[data["label"] - 1]
    chosen = rng.choice(np.unique(names), CLIPS_HELD_OUT, replace=False)
    in_gen = np.zeros(len(names), bool)
    for name in np.unique(names):
        of_class = rng.permutation(np.flatnonzero(names == name))
        in_gen[of_class[: len(of_class) // 2]] = True
    in_ref = ~in_gen & ~np.isin(names, chosen)
    return held_out(rows[in_gen], rows[in_ref], names[in_gen].tolist(), names[in_ref].tolist())


def held_out(gen, ref, gen_kinds, ref_kinds):
    """Compare two sets, and look for the kinds that the reference lacks."""
    shares = shares_of(gen_kinds, ref_kinds)
    comparison = fe.compare(gen, ref)
    differing, places = comparison.significant(), comparison.assign(gen)  # the significant kinds come first
    return comparison, [
        find_planted(kind, kind, differing, places, gen_kinds, shares)
        for kind in sorted(set(shares[0]) - set(shares[1]))
    ]


def divided(archive, out, rng):
    """Write half of every class to gen/ and the other half to ref/, unless the class is held out of it."""
    with zipfile.ZipFile(archive) as photos:
        classes = defaultdict(list)
        for name in sorted(photos.namelist()):
            if not name.endswith("/"):
                classes[PurePosixPath(name).parent.name].append(name)
        chosen = set(rng.choice(sorted(classes), PHOTOGRAPHS_HELD_OUT, replace=False).tolist())
        for kind, names in classes.items():
            order = rng.permutation(names).tolist()
            half = len(order) // 2
            copy(photos, order[:half], out / "gen" / kind)
            if kind not in chosen:
                copy(photos, order[half:], out / "ref" / kind)
    return out / "gen", out / "ref"


def copy(archive, names, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / PurePosixPath(name).name).write_bytes(archive.read(name))


def row(name, planted):
    kind = planted.kind
    return {
        "set": name,
        "held out": planted.what,
        "share in gen": f"{planted.share_gen:.3f}",
        "kind": "not found" if kind is None else kind.id,
        "its shares": "" if kind is None else f"{kind.share_gen:.3f}, {kind.share_ref:.3f}",
        "p": "" if kind is None else f"{kind.p_value:.0e}",
        "purity": f"{planted.purity:.2f}",
        "recall": f"{planted.recall:.2f}",
    }


def main():
    sets = {
        "UCF101": (clips, asset("ucf101", "vgg16_relu6_mean.npz")),
        "Tiny-ImageNet": (
            lambda path: photographs(path, REPORTS / "photographs"),
            asset("photos", "tiny_imagenet_24x300.zip"),
        ),
    }
    rows = []
    for name, (look, path) in sets.items():
        if path is not None:
            _, found = look(path)
            rows += [row(name, planted) for planted in found]
    if rows:
        record("held_out", rows, notes="one seed; purity and recall of the samples of the kind")


if __name__ == "__main__":
    main()
