"""The tables that `finc-eval demo` prints: the comparison, and what was planted against what was found."""

from __future__ import annotations

from finc_eval import report
from finc_eval.demo.found import Experiment, Planted
from finc_eval.report.tables import print_table


def print_demo(experiment: Experiment) -> None:
    """Print the comparison of the digits, then the planted differences and the planted copies."""
    report.show(experiment.comparison)
    copies = experiment.comparison.copies
    found = copies.count if copies else 0
    copied = ["exact copies of reference images", f"{experiment.copies} images", f"{found} images", "", ""]
    print_planted(experiment, copied)
    print("Coloring half of the generated digits also halves its gray ones: the other gray modes are real, too.")


def print_planted(experiment: Experiment, *more: list[str]) -> None:
    """Print what an experiment planted against what was found.

    Args:
        experiment: the experiment.
        more: further rows of the table.
    """
    found = sum(planted.mode is not None for planted in experiment.planted)
    title = f"{experiment.title}: planted against found"
    columns = ["planted", "share gen / ref", "found", "purity of top 50", "recall"]
    print()
    print_table(title, columns, [*map(_row, experiment.planted), *more])
    print(f"{found} of {len(experiment.planted)} planted kinds are found")


def _row(planted: Planted) -> list[str]:
    mode = planted.mode
    return [
        planted.what,
        f"{planted.share_gen:.3f} / {planted.share_ref:.3f}",
        "not found" if mode is None else f"{mode.id}, ratio {mode.ratio:.2f}, p {mode.p_value:.0e}",
        f"{planted.purity:.2f}",
        f"{planted.recall:.2f}",
    ]
