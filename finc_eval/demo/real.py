"""Differences planted between sets of real photographs and real video clips, where the test assets are at hand."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import Run
from finc_eval.demo.found import Experiment, held_out_experiment
from finc_eval.embeddings.extract import extract

PHOTOGRAPHS = PurePosixPath("photos/tiny_imagenet_24x300.zip")
CLIPS = PurePosixPath("ucf101/vgg16_relu6_mean.npz")
PHOTOGRAPHS_HELD_OUT, CLIPS_HELD_OUT = 6, 5


def photographs(assets: Path, out: Path, seed: int = 0, progress: Progress = silent) -> Experiment:
    """24 classes of Tiny-ImageNet, half of each in either set, six of them held out of the reference.

    Embedded by EfficientNet-Lite0, whose weights come with the installation.
    """
    rng = np.random.default_rng(seed)
    folders = _divided(assets / PHOTOGRAPHS, out / "samples", rng)
    gen, ref = (
        extract(folder, "efficientnet-lite0", out / f"{folder.name}.h5", run=Run(progress=progress))
        for folder in folders
    )
    kinds = tuple([PurePosixPath(name).parent.name for name in cache.ids] for cache in (gen, ref))
    title = f"{PHOTOGRAPHS_HELD_OUT} of 24 classes of photographs, held out of the reference (efficientnet-lite0)"
    return held_out_experiment(title, gen, ref, (kinds[0], kinds[1]), out / "report.html", progress)


def clips(assets: Path, seed: int = 0, progress: Progress = silent) -> Experiment:
    """15 actions of UCF101, half of the clips of each in either set, five of them held out of the reference.

    The clips are given by their VGG-16 features, averaged over 25 frames.
    """
    rng = np.random.default_rng(seed)
    with np.load(assets / CLIPS) as data:
        # Labels count from one; a class is called "3  Archery".
        actions = np.array([name.split()[-1] for name in data["classes"]])
        rows, names = data["features"].astype(np.float32), actions[data["label"] - 1]
    held_out = rng.choice(np.unique(names), CLIPS_HELD_OUT, replace=False)
    in_gen = np.zeros(len(names), bool)
    for name in np.unique(names):
        of_class = rng.permutation(np.flatnonzero(names == name))
        in_gen[of_class[: len(of_class) // 2]] = True
    in_ref = ~in_gen & ~np.isin(names, held_out)
    kinds = (names[in_gen].tolist(), names[in_ref].tolist())
    title = f"{CLIPS_HELD_OUT} of 15 actions of UCF101, held out of the reference (VGG-16 features of clips)"
    return held_out_experiment(title, rows[in_gen], rows[in_ref], kinds, None, progress)


def _divided(archive: Path, out: Path, rng: np.random.Generator) -> tuple[Path, Path]:
    """Write half of every class to gen/, the other half to ref/ unless the class is held out of it."""
    with zipfile.ZipFile(archive) as photos:
        classes: dict[str, list[str]] = defaultdict(list)
        for name in sorted(photos.namelist()):
            if not name.endswith("/"):
                classes[PurePosixPath(name).parent.name].append(name)
        held_out = set(rng.choice(sorted(classes), PHOTOGRAPHS_HELD_OUT, replace=False).tolist())
        for kind, names in classes.items():
            order = rng.permutation(names).tolist()
            half = len(order) // 2
            _copy(photos, order[:half], out / "gen" / kind)
            if kind not in held_out:
                _copy(photos, order[half:], out / "ref" / kind)
    return out / "gen", out / "ref"


def _copy(archive: zipfile.ZipFile, names: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / PurePosixPath(name).name).write_bytes(archive.read(name))
