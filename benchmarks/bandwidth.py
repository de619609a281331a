"""Which share of the reference's median distance is a good bandwidth? Planted kinds recovered, per factor.

Coloured digits (in the package): half of 2 000 digits coloured by class, ten planted kinds, pixels. UCF101 (test
assets): 15 action classes, 5 held out of the reference, VGG-16 features of clips. A kind is found when more than
80 % of some mode's 50 best samples are of it; purity is averaged over as many modes as there are planted kinds.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from _record import record

import finc_eval as fe
from finc_eval.demo.planted import coloured_digits, grey, shipped_digits
from finc_eval.demo.run import FOUND_PURITY

FACTORS = (0.25, 0.35, 0.5, 0.75, 1.0, 1.5)
SEEDS = 4


def digits(seed):
    """Embeddings and kinds of gen, embeddings of ref, the planted kinds, samples per kind to look at."""
    images, labels = shipped_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    gen = coloured_digits(images[order[:2000]], labels[order[:2000]], 0.5, rng)
    flat = lambda a: a.reshape(len(a), -1).astype(np.float32) / 255  # noqa: E731
    return flat(gen.images), gen.kinds, flat(grey(images[order[2000:]])), {f"coloured-{d}" for d in range(10)}


def ucf101(seed):
    """The same, with five classes held out of the reference."""
    with np.load(Path(os.environ["FINC_EVAL_ASSETS"]) / "ucf101" / "vgg16_relu6_mean.npz") as data:
        features, labels = data["features"].astype(np.float32), data["label"]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    held_out = set(rng.choice(np.unique(labels), 5, replace=False).tolist())
    gen, ref = order[: len(order) // 2], order[len(order) // 2 :]
    ref = [i for i in ref if labels[i] not in held_out]
    return features[gen], labels[gen].tolist(), features[ref], held_out


def recovery(comparison, kinds, planted):
    """Purity of the first len(planted) modes, and how many planted kinds are found."""
    purities, found = [], set()
    for mode in comparison.modes[: len(planted)]:
        kind, count = Counter(kinds[i] for i in mode.top_gen).most_common(1)[0]
        purities.append(count / len(mode.top_gen))
        if purities[-1] > FOUND_PURITY and kind in planted:
            found.add(kind)
    return np.mean(purities), len(found)


def main():
    rows = []
    sets = {"coloured digits": digits}
    if os.environ.get("FINC_EVAL_ASSETS"):
        sets["UCF101, VGG-16"] = ucf101
    else:
        print("FINC_EVAL_ASSETS is not set: UCF101 is left out")
    for name, make in sets.items():
        for factor in FACTORS:
            figures = {"varimax": [], None: []}
            for seed in range(SEEDS):
                gen, kinds, ref, planted = make(seed)
                sigma = factor * float(torch.pdist(torch.from_numpy(ref[:1500])).median())
                for rotation, into in figures.items():
                    found = fe.compare(gen=gen, ref=ref, sigma=sigma, features=1000, seed=seed, rotation=rotation)
                    into.append(recovery(found, kinds, planted))
            purity, found = np.mean(figures["varimax"], axis=0)
            raw_purity, raw_found = np.mean(figures[None], axis=0)
            rows.append(
                {
                    "set": name,
                    "sigma / median": factor,
                    "kinds found": f"{found:.1f} of {len(planted)}",
                    "purity": round(float(purity), 3),
                    "found, raw eigenvectors": round(float(raw_found), 1),
                    "purity, raw eigenvectors": round(float(raw_purity), 3),
                }
            )
            print(rows[-1], flush=True)
    record("bandwidth", rows, notes=f"mean of {SEEDS} seeds, r = 1000, 10 modes")


if __name__ == "__main__":
    main()
