"""The DP-HP paper's Table 2 on what can be had of it: data sets of scikit-learn, and generated data of the six shapes.

OpenML and UCI are out of reach, so that six data sets of the table are generated: clusters of Gaussians with as many
columns of numbers and of categories, and as many classes. Their scores say how the methods compare on tables of this
shape, and nothing of the paper's figures.
"""

import time

import numpy as np
import torch
from _downstream import downstream, mean_downstream
from _record import record
from dp_hp_classification import FRESH, released, statistics_by_method
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification

from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.dp_hp import draw_labels, fit
from finc_eval.private.synthesis.generators import ProductMixture
from finc_eval.private.synthesis.tabular import Table

RUNS = 2

RECORDS = 1500
"""Private records of a generated table; a third as many more are for tests."""

SHAPES = {
    # Name: columns of numbers and of categories, shares of the classes.
    "covtype": (10, 44, (0.3, 0.3, 0.1, 0.05, 0.05, 0.1, 0.1)),
    "census": (7, 33, (0.77, 0.23)),
    "credit": (29, 0, (0.54, 0.46)),
    "epileptic": (178, 0, (0.8, 0.2)),
    "intrusion": (26, 14, (0.35, 0.4, 0.15, 0.08, 0.02)),
    "isolet": (617, 0, (0.5, 0.5)),
}

SHIPPED = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def generated(numbers, categories, shares, seed):
    """Return values (n, columns) with the given numbers of columns, and labels."""
    width = numbers + categories
    found, labels = make_classification(
        RECORDS * 4 // 3,
        width,
        n_informative=min(width, 12),
        n_redundant=width // 3,
        n_classes=len(shares),
        n_clusters_per_class=2,
        weights=list(shares),
        random_state=seed,
    )
    for column in range(numbers, width):  # four levels, as unequal as of a bell curve
        found[:, column] = np.digitize(found[:, column], (-1.0, 0.5, 1.5))
    return found, labels


def described(values, labels, categories):
    """Return the columns as text or numbers, and their description, whose ranges are public."""
    names = [f"x{place}" for place in range(values.shape[1])]
    columns = dict(zip(names, values.T, strict=True)) | {"class": labels.astype(str)}
    kinds = []
    for place, name in enumerate(names):
        if place >= len(names) - categories:
            columns[name] = columns[name].astype(int).astype(str)
            kinds.append(Category(name, ("0", "1", "2", "3")))
        else:
            low, high = float(values[:, place].min()), float(values[:, place].max())
            kinds.append(Number.between(name, low, max(high, low + 1), 10))
    return columns, Table(tuple(kinds), Category("class", tuple(map(str, np.unique(labels)))))


def main():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # products of many columns are next to nothing, and slow
    readers = {name: lambda seed, read=read: (*read(return_X_y=True), 0) for name, read in SHIPPED.items()} | {
        f"{name}, generated": lambda seed, shape=shape: (*generated(*shape, seed), shape[1])
        for name, shape in SHAPES.items()
    }
    rows = []
    for name, read in readers.items():
        found = {}
        for seed in range(FRESH, FRESH + RUNS):
            values, labels, categories = read(seed)
            columns, table = described(values, labels, categories)
            records, known = table.encoded(columns)
            features = (records @ table.codes).numpy()
            order = np.random.default_rng(seed).permutation(len(labels))
            private, test = np.split(order, [len(order) * 3 // 4])
            degree = 2 if len(table.columns) <= 60 else 1  # products of two of 617 columns are too many
            for method, statistics in statistics_by_method(table, degree, seed).items():
                begun = time.process_time()
                if statistics is None:
                    train = features[private], known.numpy()[private]
                else:
                    chosen, classes = torch.from_numpy(private), len(np.unique(labels))
                    target = released(records[chosen], known[chosen], statistics(), method, classes)
                    generator = ProductMixture(table, 20, seed)
                    fit(generator, target, steps=300, rate=0.1)
                    drawn = draw_labels(target.shares, len(private), seed)
                    train = (generator.sample(drawn, seed) @ table.codes).numpy(), drawn.numpy()
                took = time.process_time() - begun
                mean = mean_downstream(downstream(train, (features[test], known.numpy()[test]), seed=seed))
                score = mean.roc_hard if len(np.unique(labels)) == 2 else mean.f1
                found.setdefault(method, []).append((score, took))
                print(name, seed, method, f"{score:.3f} {took:.1f} s", flush=True)
        shape = f"{len(private):,} × {len(table.columns)}, {len(np.unique(labels))} classes"
        means = {method: f"{np.mean(scores, 0)[0]:.3f}" for method, scores in found.items()}
        rows.append({"table": name, "private records": shape, **means})
    record(
        "dp_hp_shapes",
        rows,
        f"(1, 1e-5)-DP, replacement; mean of twelve classifiers over {RUNS} runs: ROC of decisions for two classes, F1 "
        "weighted by the sizes of classes for more",
    )


if __name__ == "__main__":
    main()
