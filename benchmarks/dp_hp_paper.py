"""The DP-HP paper's method as written, on discretized Adult: its product kernels, its γ, and no noise at all.

Table 8 has products of 2, 5 and 7 columns, Table 5 the weight γ of the products, Table 7 runs without noise. Orders are
those of its Tables 4 and 6. The generator is ours, a mixture; the paper has a network.

    python benchmarks/dp_hp_paper.py
"""

import time

import torch
from _papers import published
from _real import discretized_adult
from _record import record
from dp_hp_marginals import DELTA, SUBSETS, encoded, weighted_by_noise

from finc_eval.privacy import DpHpPaper, Guarantee
from finc_eval.private.synthesis.dp_hp import fit, release_embedding
from finc_eval.private.synthesis.generators import ProductMixture
from finc_eval.private.synthesis.marginals import marginal_distance
from finc_eval.private.synthesis.released_features import table_statistics
from finc_eval.private.synthesis.synthesize import MIXTURE_RATE

COMPONENTS, STEPS, SEED = 100, 100, 0
TABLES = published("dp_hp")
BY_COLUMNS = dict(zip(TABLES["table_8"]["columns"], TABLES["table_8"]["3-way"], strict=True))
BY_EPSILON = {one["ε"]: one["DP-HP"][0] for one in TABLES["table_1"]}
SETTINGS = [
    # ε (None: no noise), columns and order of a product, γ (None: weights follow from the noise), the paper's 3-way.
    *((0.3, columns, 5 if columns == 7 else 10, None, BY_COLUMNS[columns]) for columns in (2, 5, 7)),
    (0.1, 7, 5, None, BY_EPSILON[0.1]),
    *((0.3, 3, 10, gamma, "") for gamma in (None, 0.1, 1, 10)),
    (None, 3, 10, None, ""),
]


def main():
    torch.set_num_threads(1)
    real = discretized_adult()
    if real is None:
        return
    lowest, table, records = encoded(real)
    rows = []
    for epsilon, columns, order, gamma, paper in SETTINGS:
        guarantee = None if epsilon is None else Guarantee.of(epsilon, DELTA)
        begun = time.perf_counter()
        asked = DpHpPaper(product_order=order, product_columns=columns, draws=8, gamma=gamma)
        by_noise = gamma is None  # in place of the γ of a preset
        statistics = (weighted_by_noise if by_noise else table_statistics)(asked, table, SEED)
        target = release_embedding(records, None, statistics, guarantee, ledger=None, bound="paper")
        generator = ProductMixture(table, COMPONENTS, SEED)
        course = fit(generator, target, steps=STEPS, rate=MIXTURE_RATE, until=asked.until)
        drawn = generator.sample(torch.zeros(len(real), dtype=torch.long), SEED)
        seconds = time.perf_counter() - begun
        made = table.level_indices(drawn).numpy() + lowest
        three, four = (marginal_distance(real, made, ways, at_most=SUBSETS) for ways in (3, 4))
        rows.append(
            {
                "ε": epsilon or "∞, not private",
                "columns": columns,
                "order": order,
                "γ": gamma or "by noise",
                "3-way": f"{three:.3f}",
                "4-way": f"{four:.3f}",
                "paper, 3-way": paper,
                "released numbers": f"{sum(mean.numel() for mean in target.means):,}",
                "discrepancy": f"{course[-1]:.2f}",
                "s": f"{seconds:.0f}",
            }
        )
        print(rows[-1], flush=True)
    record(
        "dp_hp_paper",
        rows,
        f"22 561 records, 15 columns, δ = {DELTA:g}, Δ = 2/m, a sum kernel of order 100 and 8 products, 60 : 40; "
        f"{SUBSETS} choices of columns; one run each, {COMPONENTS} components, {STEPS} steps",
    )


if __name__ == "__main__":
    main()
