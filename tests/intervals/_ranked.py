"""What boards print of a column of estimates, and the numbers of it that the law of intervals is about."""

from _law import Drawn

from finc_eval.leaderboards.assemble import rank_column


def ranked(column, names):
    """Return how all models are ranked by a column, and the standing of each model."""
    return rank_column(column, dict.fromkeys(names))


def drawn_ranks(number, rank_sets, worth, of=""):
    """Yield each rank set with the true rank: 1, and the number of models that are better."""
    for name, ends in rank_sets.items():
        rank = 1 + sum(other > worth[name] for other in worth.values())
        yield Drawn(number, float(rank), (float(ends[0]), float(ends[1])), float(rank), of=of)


def drawn_p_values(criterion, worth, clear, of=""):
    """Yield the p-value of "the first is not better" of each two: true of some, and of others false by `clear`."""
    for first, row in zip(criterion.names, criterion.p_values, strict=True):
        for second, p_value in zip(criterion.names, row, strict=True):
            gap = worth[first] - worth[second]
            if first != second and (gap <= 0 or gap >= clear):
                yield Drawn("Criterion.p_values", p_value, is_null=gap <= 0, of=of)
