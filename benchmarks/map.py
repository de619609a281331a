"""Measure how well a map of samples keeps neighbors, how long it takes, and how often anything is in color by chance.

    python benchmarks/map.py [--regime "digits: the map" … --runs … --jobs …]

*Trust*: neighbors on the map are neighbors (trustworthiness), *kept together*: neighbors stay so (continuity), both of
10 neighbors of 2 000 samples, 1 at best. *Moved*: how far samples move on the map with another seed of the kinds, or
with half of the other samples, after the best rotation, in spreads of the map; places at random have 1. PCA, t-SNE of
scikit-learn and of openTSNE, UMAP, and the spectral layout of the neighbor graph lay out the same coordinates; what is
not installed is left out. Seconds are of one core, of the layout alone.

*Placed*: a reference has its map, and other samples are placed on it by its kinds alone, as a gate places releases:
samples of the same source, of a source with a label that the reference lacks, and of this label alone. *Cells* are the
places that a page of a gate draws, at most 256. *Reference moved* is how far any place of the map moves from the map of
one release to that of the next.

*Null*: two samples of one set are compared, 300 against 300; *in color* is whether any kind is.
"""

import time
from functools import cache
from importlib.util import find_spec

import numpy as np
import torch
from _real import mnist, tiny_imagenet, ucf101
from _record import record
from _runs import rate, run
from scipy.spatial import procrustes
from sklearn.manifold import trustworthiness

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.numerics.inference import ALPHA
from finc_eval.numerics.neighbor_embedding import first_two_axes
from finc_eval.partitions.kind_tree import KindTree, directions
from finc_eval.partitions.placed import ReleaseMap, lay_out
from finc_eval.partitions.sample_map import Layout

DATA = {"digits": mnist, "photographs": tiny_imagenet, "clips": ucf101}
SHOWN, NEIGHBORS = 2000, 10


@cache
def rows_of(name):
    return torch.from_numpy(DATA[name]()[0])


def the_map(x, rows, tree, seed):
    return Layout.of(tree)(rows)[0].numpy()


def pca(x, rows, tree, seed):
    return first_two_axes(x).numpy()


def sklearn_tsne(x, rows, tree, seed):
    from sklearn.manifold import TSNE

    return TSNE(random_state=seed).fit_transform(x.numpy())


def open_tsne(x, rows, tree, seed):
    from openTSNE import TSNE

    return np.asarray(TSNE(random_state=seed, n_jobs=1).fit(x.numpy()))


def umap(x, rows, tree, seed):
    from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1).fit_transform(x.numpy())


def spectral(x, rows, tree, seed):
    from sklearn.manifold import SpectralEmbedding

    return SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=15, random_state=seed).fit_transform(x.numpy())


LAYOUTS = {
    "the map": the_map,
    "PCA": pca,
    "spectral": spectral,
    "t-SNE, scikit-learn": sklearn_tsne,
    "t-SNE, openTSNE": open_tsne,
    "UMAP": umap,
}
NEEDS = {"t-SNE, openTSNE": "openTSNE", "UMAP": "umap"}
KEPT = [f"{data}: {layout}" for data in DATA for layout in LAYOUTS if find_spec(NEEDS.get(layout, "numpy"))]
NULLS = [f"null of {data}" for data in DATA]
PLACED = [f"placed {data}" for data in DATA]


def one(regime, seed):
    if regime in NULLS:
        return one_null(regime.removeprefix("null of "), seed)
    if regime in PLACED:
        return one_placed(regime.removeprefix("placed "), seed)
    data, layout = regime.split(": ")
    return one_layout(data, LAYOUTS[layout], seed)


def one_layout(data, layout, seed):
    """Lay out the same samples by two trees of unlike seeds, and by a tree of half of the other samples."""
    rows = rows_of(data)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(rows)))
    shown = rows[order[: min(SHOWN, len(rows) // 2)]]
    pool = rows[order]
    found, seconds = [], []
    trees = [(pool, 0), (pool, 1), (pool[: len(shown) + (len(pool) - len(shown)) // 2], 0)]
    for fitted, other in trees:
        tree = KindTree.fit(fitted[:10_000], seed=other)
        x = tree.axes(directions(shown))
        start = time.process_time()
        found.append(layout(x, shown, tree, other))
        seconds.append(time.process_time() - start)
    return {
        "trust": trustworthiness(x.numpy(), found[2], n_neighbors=NEIGHBORS),
        "together": trustworthiness(found[2], x.numpy(), n_neighbors=NEIGHBORS),
        "seed": moved(found[0], found[1]),
        "release": moved(found[0], found[2]),
        "s": min(seconds),
    }


def one_placed(data, seed):
    """Place samples on the map of a reference that has no samples of one label."""
    rows, labels = rows_of(data), np.asarray(DATA[data]()[1])
    rng = np.random.default_rng(seed)
    lacked = rng.choice(np.unique(labels))
    order = rng.permutation(len(rows))
    half, others = np.array_split(order, 2)
    ref = half[labels[half] != lacked]
    tree = KindTree.fit(rows[torch.from_numpy(ref)][:10_000])
    known, new = others[labels[others] != lacked][:SHOWN], order[labels[order] == lacked][:SHOWN]
    mixed = np.r_[known[: len(known) - min(len(new), len(known) // 10)], new[: len(known) // 10]]
    found = {}
    for name, chosen in {
        "the reference": ref[:SHOWN],
        "same source": known,
        "with a new kind": mixed,
        "new": new,
    }.items():
        some = rows[torch.from_numpy(chosen)]
        xy, x = Layout.of(tree)(some)
        if len(x) > 3 * NEIGHBORS:
            found[name] = both_ways(x, xy) | {"cells": both_ways(x, on_cells(tree, x, rng))["trust"]}
    releases = [
        ReleaseMap.of(
            tree, {"gen": ArrayEmbeddings(rows[torch.from_numpy(one)])}, (), lambda at: [""] * len(at), ("", "")
        )
        for one in (known, mixed)
    ]
    return {"sets": found, "moved": float(np.abs(np.subtract(*(one.xy for one in releases))).max())}


def both_ways(x, xy):
    count = min(NEIGHBORS, len(x) // 3)
    return {
        "trust": float(trustworthiness(x.numpy(), xy, n_neighbors=count)),
        "together": float(trustworthiness(xy, x.numpy(), n_neighbors=count)),
    }


def on_cells(tree, x, rng):
    """Return the cell of each sample on the page of a gate, moved a little at random, so that no two are equal."""
    xy, step = lay_out(tree)
    near = torch.cdist(x, tree.prototypes[::step]).argmin(1).numpy()
    return np.array(xy)[near] + 1e-6 * rng.normal(size=(len(x), 2))


def moved(first, second):
    """Return how far points move from one map to another, after the best rotation, in spreads of the map."""
    one, other, _ = procrustes(first, second)
    return float(np.sqrt(np.square(one - other).sum(1).mean() / np.square(one).sum(1).mean()))


def one_null(data, seed):
    rows = rows_of(data)
    order = np.random.default_rng(seed).permutation(len(rows))
    found = fe.compare(rows[order[:300]], rows[order[300:600]], features=200, modes=1)
    kinds = {kind.id for kind in found.kinds if kind.p_value <= ALPHA}
    return {"color": bool(kinds & set(found.map.kinds)), "kinds": len(kinds)}


def report(regimes):
    kept = {name: runs for name, runs in regimes.items() if name in KEPT}
    mean = lambda runs, key: f"{np.mean([one[key] for one in runs]):.3f}"  # noqa: E731
    placed = {name: runs for name, runs in regimes.items() if name in PLACED}
    if placed:
        rows = [
            {
                "samples": f"{name.removeprefix('placed ')}: {of}",
                **{key: mean(sets, key) for key in ("trust", "together", "cells")},
                "reference moved": f"{max(one['moved'] for one in runs):g}",
            }
            for name, runs in placed.items()
            for of in runs[0]["sets"]
            for sets in [[one["sets"][of] for one in runs if of in one["sets"]]]
        ]
        record("map_placed", rows, "Means over draws, of at most 2 000 samples; trust of 10 neighbors.")
    nulls = {name: runs for name, runs in regimes.items() if name in NULLS}
    if kept:
        rows = [
            {
                "layout": name,
                "trust": mean(runs, "trust"),
                "kept together": mean(runs, "together"),
                "moved, another seed": mean(runs, "seed"),
                # 20 000 digits: both fits are to the same first 10 000.
                "moved, other samples": "–" if name.startswith("digits") else mean(runs, "release"),
                "seconds": f"{np.median([one['s'] for one in runs]):.2f}",
            }
            for name, runs in kept.items()
        ]
        record("map", rows, "Means over draws of 2 000 samples, of clips 1 005.")
    if nulls:
        rows = [{"regime": name, "in color": rate(runs, "color")} for name, runs in nulls.items()]
        record("map_null", rows, "Comparisons of two samples of one set with anything in color, with 95 % intervals.")


if __name__ == "__main__":
    regimes = KEPT + PLACED + NULLS
    run("map", regimes, one, report, {name: 100 if name in NULLS else 5 if name in PLACED else 2 for name in regimes})
