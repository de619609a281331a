"""Designs of leaderboards: numbers of models against one reference, their errors, ranks and p-values."""

from functools import partial

import numpy as np
from _draws_of_scores import gaussian
from _law import Design, Drawn, Holds, NoClaim, PValue, StandardError
from _ranked import drawn_p_values, drawn_ranks, ranked

from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.leaderboards.columns import RULES, Column, metric_column
from finc_eval.leaderboards.measures import Measuring
from finc_eval.leaderboards.ranks import model_estimate
from finc_eval.leaderboards.shares import share_estimates
from finc_eval.measures.registry import METRICS

RANKS = Holds(together=True, width=None, why="Criterion.p_values says how much is found")

PROMISES = {
    "Standing.interval": Holds(width=(0.8, 1.5), why="few training runs say little about the noise of training"),
    "Standing.rank_set": RANKS,
    "Standing.sampling_error": StandardError((0.85, 1.3), why="few units know their own variance poorly"),
    "Standing.training_error": StandardError(),
    "Criterion.p_values": PValue(together=True),
    "Criterion.training_error": StandardError(),
    "Row.rank_set": RANKS,
    "Place.interval": Holds(width=(0.8, 1.5), why="it is Standing.interval on one board of a panel"),
    "Place.rank_set": RANKS,
    "Leaderboard.alpha": NoClaim("the level that Standing.rank_set is held against"),
}

ALONE = ("Standing.interval", "Place.interval")
RANKED = ("Standing.rank_set", "Row.rank_set", "Place.rank_set")
OF_BOARD = (*ALONE, *RANKED, "Criterion.p_values", "Standing.sampling_error")


def drawn_board(column, worth, clear, truths, of, is_trained=False):
    """Yield what a board prints of a column; `truths` has the true number of each model that is known."""
    criterion, standings = ranked(column, worth)
    for name, one in standings.items():
        truth, key = truths.get(name), f"{of}, {name}"
        if truths and truth is None:  # a model that lacks nothing has a share with an error far larger than it needs
            continue
        for number in ALONE:
            yield Drawn(number, one.value, one.interval, truth, of=key)
        if not is_trained:
            yield Drawn("Standing.sampling_error", one.value, truth=truth, error=one.sampling_error, of=key)
        else:
            yield Drawn("Standing.training_error", one.value, truth=truth, error=one.training_error, of=of)
            first = column.runs[name][0].value
            yield Drawn("Criterion.training_error", first, truth=truth, error=criterion.training_error, of=of)
    for number in RANKED:
        yield from drawn_ranks(number, {name: one.rank_set for name, one in standings.items()}, worth, of)
    yield from drawn_p_values(criterion, worth, clear, of)


def metric_board(rng, metric, shifts, n, m, per_unit=1, clear=9.0):
    """Models of normal laws against one sample of a reference; a metric is larger for larger shifts."""
    measuring = Measuring(METRICS[metric], gaussian(rng, m, per_unit=per_unit, name="ref"), Run())
    names = [f"m{place}" for place in range(len(shifts))]
    models = {
        name: [measuring.measure(name, gaussian(rng, n, shift=shift, per_unit=per_unit))]
        for name, shift in zip(names, shifts, strict=True)
    }
    worth = {name: -shift for name, shift in zip(names, shifts, strict=True)}
    truths = {name: 4 * shift**2 for name, shift in zip(names, shifts, strict=True)} if metric == "fd" else {}
    column = metric_column(metric, models, Signature(metric, ()))
    yield from drawn_board(column, worth, clear, truths, metric)


def share_board(rng, n, m):
    """Models that lack some kinds of a reference; kinds are counted."""
    kinds, ref_law = 12, np.full(12, 1 / 12)
    laws = []
    for lacking in (3, 3, 0):
        law = np.where(np.arange(kinds) < lacking, 0.0, 1.0)
        laws.append(law / law.sum())
    counts = [rng.multinomial(n, law).astype(float) for law in laws]
    estimates = share_estimates(RULES["missing"], counts, rng.multinomial(m, ref_law).astype(float))
    names = [f"m{place}" for place in range(3)]
    worth = dict(zip(names, (-0.25, -0.25, 0.0), strict=True))
    runs = {name: [one] for name, one in zip(names, estimates, strict=True)}
    column = Column("missing", "missing", False, Signature("missing", ()), (-1.0, 1.0), runs)
    yield from drawn_board(column, worth, 0.2, {"m0": 0.25, "m1": 0.25}, "missing")


def trained_board(rng, runs, spread, error):
    """Models that were trained several times, whose numbers differ between runs more than by sampling."""
    truths = {"m0": 1.0, "m1": 1.0, "m2": 8.0}
    of_runs = {
        name: [model_estimate(float(rng.normal(true, np.hypot(spread, error))), error**2) for _ in range(runs)]
        for name, true in truths.items()
    }
    column = Column("fd", "distance", False, Signature("fd", ()), runs=of_runs)
    worth = {name: -true for name, true in truths.items()}
    yield from drawn_board(column, worth, 6.0, truths, "trained", is_trained=True)


TRAINED = (*ALONE, *RANKED, "Criterion.p_values", "Standing.training_error", "Criterion.training_error")
THREE = (0.5, 0.5, 1.1)

DESIGNS = (
    Design(
        "boards by a distance",
        "paired",
        OF_BOARD,
        partial(metric_board, metric="fd", shifts=THREE, n=240, m=240, clear=0.4),
        150,
        6,
    ),
    Design(
        "boards by a distance, 60 units",
        "clustered",
        OF_BOARD,
        partial(metric_board, metric="fd", shifts=THREE, n=240, m=240, per_unit=4),
        100,
        0,
    ),
    Design(
        "boards by a kernel",
        "paired",
        OF_BOARD,
        partial(metric_board, metric="mmd", shifts=THREE, n=240, m=400, clear=0.4),
        100,
        5,
    ),
    Design(
        "boards by a kernel, 60 units",
        "clustered",
        OF_BOARD,
        partial(metric_board, metric="mmd", shifts=THREE, n=240, m=240, per_unit=4),
        100,
        0,
    ),
    Design("boards by the share of missing kinds", "rare", OF_BOARD, partial(share_board, n=400, m=600), 200, 20),
    Design(
        "boards of models that were trained five times",
        "small",
        TRAINED,
        partial(trained_board, runs=5, spread=1.0, error=0.1),
        200,
        25,
    ),
)
