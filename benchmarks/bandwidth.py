"""Which share of the reference's median distance is a good bandwidth? Planted kinds recovered, per factor.

Colored digits (in the package): half of 2 000 digits colored by class, ten planted kinds, pixels. UCF101 and
Tiny-ImageNet (test assets): 15 action classes, 5 held out of the reference, VGG-16 features of clips; 24 classes of
photographs, 6 held out, EfficientNet-Lite0 features. A kind is found when more than 80 % of some mode's best samples,
50 or as many as there are, are of it. Purity and stability are averaged over as many modes as there are planted kinds;
stability is R² over refits to halves of the samples and with halves of the frequencies. "Warned" counts the seeds in
which `compare` calls σ too small or too large. The papers' rule is the one that `finc_eval.sweep` reports.
"""

from collections import Counter

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record

import finc_eval as fe
from finc_eval.comparison.settings import Finc
from finc_eval.demo.planted import colored_digits, gray, shipped_digits
from finc_eval.demo.run import FOUND_PURITY
from finc_eval.gallery.counts import KEPT
from finc_eval.numerics.kernels import median_distance

FACTORS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0)
SEEDS = 4


def digits(seed):
    """Return embeddings and kinds of gen, embeddings of ref, and the planted kinds."""
    images, labels = shipped_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    gen = colored_digits(images[order[:2000]], labels[order[:2000]], 0.5, rng)
    flat = lambda a: a.reshape(len(a), -1).astype(np.float32) / 255  # noqa: E731
    return flat(gen.images), gen.kinds, flat(gray(images[order[2000:]])), {f"colored-{d}" for d in range(10)}


def held_out(embeddings, labels, count, seed):
    """Return the same for real embeddings, with some classes held out of the reference."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    planted = set(rng.choice(np.unique(labels), count, replace=False).tolist())
    gen, ref = order[: len(order) // 2], order[len(order) // 2 :]
    ref = [i for i in ref if labels[i] not in planted]
    return embeddings[gen], labels[gen].tolist(), embeddings[ref], planted


def recovery(comparison, kinds, planted):
    """Return purity and stability of the first len(planted) modes, and the number of planted kinds found."""
    modes = comparison.over[: len(planted)]
    purities, found, sizes = [], set(), Counter(kinds)
    for mode in modes:
        kind, _ = Counter(kinds[i] for i in mode.top_gen).most_common(1)[0]
        best = mode.top_gen[: min(KEPT, sizes[kind])]
        purities.append(sum(kinds[i] == kind for i in best) / len(best))
        if purities[-1] > FOUND_PURITY and kind in planted:
            found.add(kind)
    return np.mean(purities), np.mean([mode.stability for mode in modes]), len(found)


def papers_choice(gen, ref):
    """Return the factor that the papers' rule picks, or None."""
    median = median_distance(torch.from_numpy(ref))
    factors = {factor * median: factor for factor in FACTORS}
    return factors.get(fe.sweep(gen, ref, "sigma", list(factors), features=100).papers_rule)


def main():
    sets = {"colored digits": digits}
    for name, data, count in (("UCF101, VGG-16", ucf101(), 5), ("photographs, EfficientNet", tiny_imagenet(), 6)):
        if data is not None:
            sets[name] = lambda seed, data=data, count=count: held_out(*data, count, seed)
    rows = []
    for name, make in sets.items():
        chosen = [papers_choice(make(seed)[0], make(seed)[2]) for seed in range(SEEDS)]
        print(f"{name}: the papers' rule picks {chosen} x median")
        for factor in FACTORS:
            figures, warned = {"varimax": [], None: []}, 0
            for seed in range(SEEDS):
                gen, kinds, ref, planted = make(seed)
                sigma = factor * median_distance(torch.from_numpy(ref))
                for rotation, into in figures.items():
                    found = fe.compare(gen, ref, method=Finc(rotation), sigma=sigma, features=1000, seed=seed)
                    into.append(recovery(found, kinds, planted))
                warned += any("sigma" in warning for warning in found.warnings)
            purity, stability, found = np.mean(figures["varimax"], axis=0)
            unrotated_purity, unrotated_stability, unrotated_found = np.mean(figures[None], axis=0)
            rows.append(
                {
                    "set": name,
                    "sigma / median": factor,
                    "kinds found": f"{found:.1f} of {len(planted)}",
                    "purity": round(float(purity), 3),
                    "stability": round(float(stability), 2),
                    "found, unrotated": round(float(unrotated_found), 1),
                    "purity, unrotated": round(float(unrotated_purity), 3),
                    "stability, unrotated": round(float(unrotated_stability), 2),
                    "warned": f"{warned} of {SEEDS}",
                    "papers' rule": f"{chosen.count(factor)} of {SEEDS}",
                }
            )
            print(rows[-1], flush=True)
    record("bandwidth", rows, notes=f"mean of {SEEDS} seeds, r = 1000, 10 modes; unrotated: eigenvectors")


if __name__ == "__main__":
    main()
