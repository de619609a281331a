"""The synthetic tables that the authors of DP-HP publish, measured by the distance of their paper.

    python benchmarks/dp_hp_authors.py

Their repository (ParkLabML/DP-HP, data/generated/rebuttal_exp) has four tables of Adult by DP-MERF at ε = 1, and none
by DP-HP. Distances are over all choices of columns, beside ours at the same ε, of one run each.
"""

import gzip

import numpy as np
import torch
from _marginals import published_distance
from _real import asset, discretized_adult
from _record import record
from dp_hp_marginals import DELTA, encoded

from finc_eval.privacy import Guarantee
from finc_eval.private.settings import DpHp, DpMerf
from finc_eval.private.synthesis.dp_hp import fit, release_embedding
from finc_eval.private.synthesis.generators import ProductMixture
from finc_eval.private.synthesis.released_features import table_statistics
from finc_eval.private.synthesis.synthesize import MIXTURE_COMPONENTS, MIXTURE_RATE

PUBLISHED = {
    "dp_merf_adult_eps1_gaussian_it_1000_features_10000": "DP-MERF, 10 000 features, 1 000 steps",
    "dp_merf_adult_eps1_gaussian_it_20000_features_10000": "DP-MERF, 10 000 features, 20 000 steps",
    "dp_merf_adult_eps1_gaussian_it_20000_features_2000": "DP-MERF, 2 000 features, 20 000 steps",
    "dp_merf_adult_eps1_linear_it_20000_features_2000": "DP-MERF, linear kernel, 20 000 steps",
}


def distances(real, made):
    return {f"α = {alpha}": round(published_distance(real, made, alpha), 3) for alpha in (3, 4)}


def ours(real, method):
    """Make a table at ε = 1 by a method of this program."""
    lowest, table, records = encoded(real)
    target = release_embedding(records, None, table_statistics(method, table), Guarantee.of(1, DELTA), ledger=None)
    generator = ProductMixture(table, MIXTURE_COMPONENTS)
    fit(generator, target, steps=300, rate=MIXTURE_RATE)
    drawn = generator.sample(torch.zeros(len(real), dtype=torch.long), 0)
    return table.level_indices(drawn).numpy() + lowest


def main():
    torch.set_num_threads(1)
    real, folder = discretized_adult(), asset("tabular")
    if real is None:
        return
    rows = []
    for file, name in PUBLISHED.items():
        with gzip.open(folder / f"{file}.npy.gz") as stream:
            made = np.rint(np.load(stream)).astype(np.int64)
        rows.append({"table": name, "made by": "the authors", "ε": 1, "records": len(made)} | distances(real, made))
        print(rows[-1], flush=True)
    for name, method in {"DP-HP, sum + total degree 2": DpHp(), "DP-MERF, 1 000 frequencies": DpMerf()}.items():
        rows.append(
            {"table": name, "made by": "here", "ε": 1, "records": len(real)} | distances(real, ours(real, method))
        )
        print(rows[-1], flush=True)
    record(
        "dp_hp_authors", rows, f"Adult, 22 561 records, 15 columns, δ = {DELTA:g}; all choices of columns; one run each"
    )


if __name__ == "__main__":
    main()
