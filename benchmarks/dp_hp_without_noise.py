"""Table 7 of the DP-HP paper: what does the noise cost? Classifiers of Adult, trained on records with and without it.

Split, classifiers and generator are those of `dp_hp_classification.py`; one run, without the three slowest classifiers.
"""

import numpy as np
import torch
from _downstream import CLASSIFIER_NAMES, downstream, mean_downstream
from _real import asset
from _record import record
from dp_hp_classification import FRESH, TABLES, thinned

from finc_eval.privacy import Guarantee
from finc_eval.privacy.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.privacy.synthesis.mixture import ProductMixture
from finc_eval.privacy.synthesis.released_features import fourier_table_statistics, table_statistics

SLOW = ("gradient boosting", "MLP", "linear SVM")
PAPER = {("DP-HP", 1): ".688 / .632", ("DP-MERF", 1): ".642 / .524"}


def main():
    torch.set_num_threads(1)
    if asset("tabular", "adult.data.gz") is None:
        return
    read, size, kept, _, _, components, _ = TABLES["adult"]
    columns, table = read()
    records, known = table.encoded(columns)
    labels, features = known.numpy(), (records @ table.codes).numpy()
    rng = np.random.default_rng(FRESH)
    order = rng.permutation(len(labels))
    private, rest = torch.from_numpy(order[:size]), order[size:]
    test = rest[thinned(labels[rest], kept, rng)]
    names = [name for name in CLASSIFIER_NAMES if name not in SLOW]
    rows = []
    for method, statistics in (
        ("DP-HP", table_statistics(table)),
        ("DP-MERF", fourier_table_statistics(table, FRESH)),
    ):
        for epsilon in (1, None):
            guarantee = None if epsilon is None else Guarantee.of(epsilon, 1e-5)
            target = release_embedding(records[private], known[private], statistics, guarantee, ledger=None, classes=2)
            generator = ProductMixture(table, components, FRESH)
            course = fit(generator, target, steps=300, rate=0.1, until=float(epsilon is not None))
            classes = draw_labels(target.shares * torch.tensor([kept, 1.0]), int(size * kept), FRESH)
            train = (generator.sample(classes, FRESH) @ table.codes).numpy(), classes.numpy()
            mean = mean_downstream(downstream(train, (features[test], labels[test]), names, seed=FRESH))
            rows.append(
                {
                    "method": method,
                    "ε": epsilon or "∞, not private",
                    "ROC of decisions": f"{mean.roc_hard:.3f}",
                    "PRC of decisions": f"{mean.prc_hard:.3f}",
                    "paper, Table 2": PAPER.get((method, epsilon), ""),
                    "steps": len(course),
                }
            )
            print(rows[-1], flush=True)
    record(
        "dp_hp_without_noise",
        rows,
        f"Adult, {size:,} private records, δ = 1e-5; mean of {len(names)} of the twelve classifiers; one run",
    )


if __name__ == "__main__":
    main()
