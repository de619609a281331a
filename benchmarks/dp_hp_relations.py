"""Measure how often the page of a release claims relations between columns: of tables without any, and with some.

    python benchmarks/dp_hp_relations.py

Columns have three values; with relations, 3 in 10 records have the value of their class in each column.
"""

from functools import partial

import numpy as np
import torch
from _record import record
from scipy.stats import beta

from finc_eval.privacy import Category, Guarantee, Table
from finc_eval.private.settings import SYNTHESIS_METHODS
from finc_eval.private.synthesis.dp_hp import release_embedding
from finc_eval.private.synthesis.learned import learned_from
from finc_eval.private.synthesis.released_features import table_statistics

SETTINGS = (
    # Method, columns, records, ε, classes
    ("dp-hp", 2, 500, 1, 2),
    ("dp-hp", 5, 2000, 1, 2),
    ("dp-hp", 5, 2000, 5, 1),
    ("dp-merf", 4, 1000, 5, 2),
    ("dp-hp-few", 3, 400, 1, 2),
)
RUNS, RELATED_RUNS = 60, 15


def shows(method, columns, n, epsilon, classes, related, rng):
    """Draw a table, release it, and return what is said of its relations."""
    table = Table(
        tuple(Category(f"column {place}", ("a", "b", "c")) for place in range(columns)),
        Category("class", ("no", "yes")) if classes == 2 else None,
    )
    hidden = rng.random(n) < 0.3
    levels = [
        np.where(rng.random(n) < related, 2 * hidden, rng.choice(3, n, p=(0.6, 0.3, 0.1))) for _ in range(columns)
    ]
    chosen = SYNTHESIS_METHODS[method]()
    target = release_embedding(
        table.one_hot(torch.from_numpy(np.stack(levels, 1))),
        torch.from_numpy(hidden.astype(np.int64)) if classes == 2 else None,
        table_statistics(chosen, table),
        Guarantee.of(epsilon, 1e-5),
        ledger=None,
        classes=classes,
        bound=chosen.bound,
    )
    return learned_from(table, target).shows_relations


def interval(count, runs):
    """Return the exact 95 % interval of a rate, in percent."""
    low = 0.0 if count == 0 else beta.ppf(0.025, count, runs - count + 1)
    high = 1.0 if count == runs else beta.ppf(0.975, count + 1, runs - count)
    return f"{count}/{runs} [{100 * low:.1f}, {100 * high:.1f}] %"


def main():
    torch.set_num_threads(1)
    rows, rng, total = [], np.random.default_rng(0), 0
    for setting in SETTINGS:
        draw = partial(shows, *setting, rng=rng)
        none = sum(draw(related=0) for _ in range(RUNS))
        some = sum(draw(related=0.3) for _ in range(RELATED_RUNS))
        total += none
        method, columns, n, epsilon, classes = setting
        shown = {"without relations": interval(none, RUNS), "with relations": interval(some, RELATED_RUNS)}
        rows.append({"method": method, "columns": columns, "records": n, "ε": epsilon, "classes": classes} | shown)
        print(rows[-1], flush=True)
    runs = RUNS * len(SETTINGS)
    record("dp_hp_relations", rows, f"all without relations: {interval(total, runs)}; exact intervals at 95 %")


if __name__ == "__main__":
    main()
