"""Table 7 of the DP-HP paper: what does the noise cost? Classifiers of Adult, trained on records with and without it.

Records, classifiers and generator are those of `dp_hp_classification.py`; one run.
"""

import numpy as np
import torch
from _downstream import downstream, mean_downstream
from _real import asset
from _record import record
from dp_hp_classification import FRESH, PUBLISHED, TABLES, split

from finc_eval.privacy import Guarantee
from finc_eval.private.settings import DpHp, DpMerf
from finc_eval.private.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.private.synthesis.generators import ProductMixture
from finc_eval.private.synthesis.released_features import table_statistics


def main():
    torch.set_num_threads(1)
    if asset("tabular", "adult.data.gz") is None:
        return
    read, size, _, kept, _, _, components, _ = TABLES["adult"]
    columns, table = read()
    records, known = table.encoded(columns)
    labels, features = known.numpy(), (records @ table.codes).numpy()
    private, test = split("adult", labels, np.random.default_rng(FRESH))
    private = torch.from_numpy(private)
    rows = []
    for method, asked in (("DP-HP", DpHp()), ("DP-MERF", DpMerf())):
        statistics = table_statistics(asked, table, FRESH)
        for epsilon in (1, None):
            guarantee = None if epsilon is None else Guarantee.of(epsilon, 1e-5)
            target = release_embedding(records[private], known[private], statistics, guarantee, ledger=None, classes=2)
            generator = ProductMixture(table, components, FRESH)
            course = fit(generator, target, steps=300, rate=0.1, until=float(epsilon is not None))
            classes = draw_labels(target.shares * torch.tensor([kept, 1.0]), int(size * kept), FRESH)
            train = (generator.sample(classes, FRESH) @ table.codes).numpy(), classes.numpy()
            mean = mean_downstream(downstream(train, (features[test], labels[test]), seed=FRESH))
            rows.append(
                {
                    "method": method,
                    "ε": epsilon or "∞, not private",
                    "ROC of decisions": f"{mean.roc_hard:.3f}",
                    "PRC of decisions": f"{mean.prc_hard:.3f}",
                    "paper, Table 2": PUBLISHED["adult"][method] if epsilon else "",
                    "steps": len(course),
                }
            )
            print(rows[-1], flush=True)
    record(
        "dp_hp_without_noise",
        rows,
        f"Adult, {size:,} private records, δ = 1e-5; mean of the twelve classifiers; one run",
    )


if __name__ == "__main__":
    main()
