"""The page, the notebook view and the terminal table of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.gallery.gallery import read_gallery
from finc_eval.leaderboards.result import Criterion, Leaderboard, Row, Standing
from finc_eval.partitions.modes import Kind
from finc_eval.report.exports.made import call, source, sources
from finc_eval.report.exports.outline import Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import share_interval
from finc_eval.report.pages import LEAD_SAMPLES, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

SHOWN_DISAGREEMENTS = 5
"""Pairs of models in opposite orders that are told."""


def page(board: Leaderboard, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    wanted: dict[str, list[str]] = {label: [] for label in board.sets}
    for kind in board.modes:
        wanted[kind.set_with_most] += kind.shares[kind.set_with_most].top_ids[:LEAD_SAMPLES]
    gallery = read_gallery(board.sets, wanted, samples)
    return render(
        "leaderboard.html",
        board,
        outline(board),
        pictures=gallery.pictures,
        notes=gallery.notes,
        groups=[*group_sentences(board), *disagreement_sentences(board)],
        unranked=_reasons(board),
        headings=[_heading(one) for one in board.criteria],
        ranks=ranks,
        value=_value,
        ends=_ends,
        header=header,
        against_ref=_against_ref,
        reference=REFERENCE,
        lead=LEAD_SAMPLES,
    )


def outline(board: Leaderboard) -> Outline:
    """Return what the board says in all outputs."""
    models = {label: info for label, info in board.sets.items() if label != REFERENCE}
    by = [f"By {one.key}: {header(one)}." for one in board.criteria if one.key != board.rank_by]
    return Outline(
        kind=f"{len(board.rows)} models ranked against one reference",
        title=f"{several(row.name for row in board.rows)} against {board.sets[REFERENCE].name}",
        headline=summary(board),
        sets=sizes(board.sets),
        signatures=[*dict.fromkeys([board.signature, *(one.signature for one in board.criteria)])],
        call=call("leaderboard", sources(models), source(REFERENCE, board.sets[REFERENCE]), settings=board.settings),
        tables=[Table("The board", _columns(board), _rows(board))],
        details=[*group_sentences(board), *disagreement_sentences(board), *by],
        warnings=board.warnings,
        failures=[*unreadable(board.sets), *(f"{reason}." for reason in _reasons(board))],
    )


def fragment(board: Leaderboard) -> str:
    """Return the board as a table, for a notebook."""
    return table_fragment(" ".join([summary(board), *group_sentences(board)]), _columns(board), _rows(board))


def show(board: Leaderboard) -> None:
    """Print the board, then which models cannot be told apart."""
    print_table(f"Models against {board.sets[REFERENCE].name}", _columns(board), _rows(board), names=["Model"])
    print(summary(board))
    for sentence in (*group_sentences(board), *disagreement_sentences(board)):
        print(sentence)
    for criterion in board.criteria:
        if criterion.key != board.rank_by:
            print(f"By {criterion.key}: {header(criterion)}.")
    print_notes([*_reasons(board), *board.warnings])
    print(board.signature)


def summary(board: Leaderboard) -> str:
    """Return what the board can tell in a few plain sentences."""
    main = board.criterion()
    return f"By {main.key} ({main.title}): {header(main)}. Ranks cover {board.covers}."


def header(criterion: Criterion) -> str:
    """Return how many models can be told apart by a number."""
    neighbors = len(criterion.names) - 1
    if neighbors < 1:
        return "fewer than two models are ranked"
    gap = criterion.smallest_separable_gap
    told = (
        f"{criterion.separable_neighbors} of {counted(neighbors, 'neighbor')} and {criterion.separable_pairs} of all "
        f"{counted(criterion.pairs, 'pair')} can be told apart (Holm, with the joint distribution, 5 %)"
    )
    return f"{told}; smallest separable gap {_gap(criterion, gap)}" if gap is not None else told


def group_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per group of models that cannot be told apart from its first; it names all of them."""
    return [
        f"Group {number}: {listed(group)} cannot be told apart from {group[0]}."
        if len(group) > 2
        else f"Group {number}: {listed(group)} cannot be told apart."
        for number, group in enumerate(board.groups, 1)
        if len(group) > 1
    ]


def disagreement_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per pair of models that numbers rank in opposite orders, the first pairs of the board."""
    every = board.disagreements()
    told = [
        f"{one.first} is surely better than {one.second} by {listed(one.first_better_by)}, and surely worse by "
        f"{listed(one.second_better_by)}."
        for one in every[:SHOWN_DISAGREEMENTS]
    ]
    more = len(every) - len(told)
    return [*told, f"{counted(more, 'more pair')} of models in opposite orders by different numbers."] if more else told


def ranks(rank_set: tuple[int, int] | None) -> str:
    """Write the ranks that a model may have: "2" or "1–3"; "–" where it is not ranked."""
    if rank_set is None:
        return "–"
    low, high = rank_set
    return str(low) if low == high else f"{low}–{high}"


def _columns(board: Leaderboard) -> list[str]:
    ranked = (part for one in board.criteria for part in (_heading(one), f"{one.key} rank"))
    return ["Model", "Rank", "Group", *(part for part in ranked if part != f"{board.rank_by} rank")]


def _heading(criterion: Criterion) -> str:
    return f"{criterion.key}, %" if criterion.is_share else criterion.key


def _rows(board: Leaderboard) -> list[list[str]]:
    return [_row(row, board) for row in board.rows]


def _row(row: Row, board: Leaderboard) -> list[str]:
    cells = [row.name, ranks(row.rank_set), "–" if row.group is None else str(row.group)]
    for one in board.criteria:
        standing = row.scores[one.key]
        cells += [f"{_value(one, standing)} {_ends(one, standing)}".strip()]
        cells += [ranks(standing.rank_set)] if one.key != board.rank_by else []
    return cells


def _value(criterion: Criterion, standing: Standing) -> str:
    if standing.value is None:
        return "–"
    return percent(standing.value, 1).removesuffix(" %") if criterion.is_share else f"{standing.value:.4g}"


def _ends(criterion: Criterion, standing: Standing) -> str:
    if standing.interval is None:
        return ""
    if criterion.is_share:
        return share_interval(standing.interval)
    return f"[{', '.join(f'{end:.4g}' for end in standing.interval)}]"


def _gap(criterion: Criterion, gap: float) -> str:
    return f"{points(gap).removeprefix('+')} points" if criterion.is_share else f"{gap:.3g}"


def _reasons(board: Leaderboard) -> list[str]:
    """Return why models are not ranked by a number, models with one reason in one sentence."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in board.rows:
        for key, standing in row.scores.items():
            if standing.reason is not None:
                found.setdefault((key, standing.reason), []).append(row.name)
    return [f"not ranked by {key}: {listed(names)} ({reason})" for (key, reason), names in found.items()]


def _against_ref(kind: Kind, label: str) -> str:
    """Return "more" or "less" where the intervals of a set and of the reference do not overlap, else nothing."""
    own, ref = kind.shares[label].interval, kind.shares[REFERENCE].interval
    return "more" if own[0] > ref[1] else "less" if own[1] < ref[0] else ""
