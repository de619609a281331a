"""The page, the notebook view and the terminal table of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import counted, figure, listed, points
from finc_eval.embeddings.space import ARRAY_SPACE
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.gallery.gallery import read_gallery
from finc_eval.leaderboards.entry import run_label
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.standings import Criterion, Row, Standing
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.partitions.kind import Kind, shown_of
from finc_eval.report.cards.card import anchor
from finc_eval.report.cards.sets import kinds_on_page
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import NOT_MANY, Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import bare_percent, share_interval
from finc_eval.report.pages import render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

SHOWN_DISAGREEMENTS = 5
"""Pairs of models in opposite orders that a summary names."""

KEYED_MODELS = 12
"""Models of a page that says at its top how many samples each has."""

MATRIX_MODELS = 20
"""Models of a board that has a matrix of all pairs at most."""

PROFILE_KINDS = 5
"""Kinds of samples that the section of a model names at most, of each direction."""


def page(board: Leaderboard, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    gallery = read_gallery(board.sets, shown_of((*board.kinds, *board.headings), board.sets, SHOWN_SAMPLES), samples)
    sizes_of_models = [info.n for label, info in board.sets.items() if label != REFERENCE]
    return render(
        "leaderboard.html",
        board,
        outline(board),
        **kinds_on_page(board.kinds, board.headings, {label: label for label in board.kinds[0].shares}, SHOWN_SAMPLES),
        pictures=gallery.pictures,
        notes=gallery.notes,
        models=several(row.name for row in board.rows),
        keyed=KEYED_MODELS,
        least=min(sizes_of_models),
        most=max(sizes_of_models),
        groups=[*group_sentences(board), *disagreement_sentences(board)],
        unranked=_reasons(board),
        panel=panel_sentences(board),
        rank_sets=[[row.name, *panel_ranks(board, row)] for row in board.rows],
        matrix=_matrix(board),
        profiles=[_profile(board, row) for row in board.rows],
        noise=_noise(board),
        headings=[_heading(one) for one in board.criteria],
        ranks=ranks,
        value=_value,
        ends=_ends,
        standing_text=_standing_text,
        header=header,
        sight=sight(board),
        against_ref=_against_ref,
        anchor=anchor,
        model_anchor=partial(anchor, of="model"),
    )


def outline(board: Leaderboard) -> Outline:
    """Return what the board says in all outputs."""
    by = [f"By {one.key}: {header(one)}." for one in board.criteria if one.key != board.rank_by]
    return Outline(
        kind=f"{len(board.rows)} models ranked against one reference",
        title=f"{several(row.name for row in board.rows)} against {board.sets[REFERENCE].name}",
        headline=summary(board),
        sets=sizes(board.sets),
        signatures=[*dict.fromkeys([board.signature, *(one.signature for one in board.criteria)])],
        call=call("leaderboard", _models(board), source(REFERENCE, board.sets[REFERENCE]), settings=board.settings),
        tables=[Table("The board", _columns(board), _rows(board)), *_panel_table(board)],
        details=[*group_sentences(board), *disagreement_sentences(board), *_noise(board), *panel_sentences(board), *by],
        warnings=board.warnings,
        failures=[*unreadable(board.sets), *(f"{reason}." for reason in _reasons(board))],
    )


def _models(board: Leaderboard) -> str:
    """Return the models as an argument, several training runs of a model as a list."""
    runs = {row.name: [run_label(row.name, number) for number in range(row.runs)] for row in board.rows}
    texts = {name: [source(label, board.sets[label]) for label in labels] for name, labels in runs.items()}
    return f"{{{', '.join(f'{name!r}: {one[0] if len(one) == 1 else _list(one)}' for name, one in texts.items())}}}"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


def fragment(board: Leaderboard) -> str:
    """Return the board as a table, for a notebook."""
    return table_fragment(" ".join([summary(board), *group_sentences(board)]), _columns(board), _rows(board))


def show(board: Leaderboard) -> None:
    """Print the board, then which models cannot be distinguished."""
    print_table(f"Models against {board.sets[REFERENCE].name}", _columns(board), _rows(board), names=["Model"])
    print(summary(board))
    for sentence in (*group_sentences(board), *disagreement_sentences(board), *_noise(board)):
        print(sentence)
    for table in _panel_table(board):
        print_table(table.title, table.columns, table.rows, names=["Model"])
        print(*panel_sentences(board), sep="\n")
    for criterion in board.criteria:
        if criterion.key != board.rank_by:
            print(f"By {criterion.key}: {header(criterion)}.")
    print_notes([*_reasons(board), *board.warnings])
    print(board.signature)


def summary(board: Leaderboard) -> str:
    """Return the findings of the board in a few plain sentences, beginning with who is first."""
    main = board.criterion()
    found = f"{header(main)}. Ranks cover {board.covers}. {sight(board)}"
    if len(main.names) < 2:
        return f"By {main.key}, {found}"
    first, *others = main.groups[0]
    names = listed(others) if len(others) <= NOT_MANY else f"{len(others)} others"
    tied = f", and {names} cannot be distinguished from it" if others and len(main.names) > 2 else ""
    return f"By {main.key}, {first} is first of {len(main.names)} models{tied}: {found}"


def sight(board: Leaderboard) -> str:
    """Return what the numbers of the board can see, in a sentence."""
    extractor = board.extractor
    seen = (
        "these embeddings distinguish"
        if extractor.startswith(ARRAY_SPACE)
        else f"the extractor {extractor} distinguishes"
    )
    moved = () if board.panel is None else board.panel.moved
    names = listed(moved) if len(moved) <= NOT_MANY else several(moved)
    elsewhere = f" Other boards rank {names} otherwise." if moved else ""
    return f"All numbers see only what {seen}.{elsewhere}"


def header(criterion: Criterion) -> str:
    """Return how many models can be distinguished by a number."""
    neighbors = len(criterion.names) - 1
    if neighbors < 1:
        return "fewer than two models are ranked"
    if neighbors == 1:
        return f"the two {'can' if criterion.separable_pairs else 'cannot'} be distinguished (5 %)"
    gap = criterion.smallest_separable_gap
    found = (
        f"{criterion.separable_neighbors} of {counted(neighbors, 'neighbor')} and {criterion.separable_pairs} of all "
        f"{counted(criterion.pairs, 'pair')} can be distinguished (Holm, 5 %)"
    )
    return f"{found}; smallest separable gap {_gap(criterion, gap)}" if gap is not None else found


def group_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per group of models that cannot be distinguished from its first; it names all of them."""
    return [
        f"Group {number}: {listed(others)} cannot be distinguished from {first}."
        for number, (first, *others) in enumerate(board.groups, 1)
        if others
    ]


def disagreement_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per pair of models that numbers rank in opposite orders, the first pairs of the board."""
    pairs = [(one.first, one.second, one.first_better_by, one.second_better_by) for one in board.disagreements()]
    return _opposite(pairs, "by different numbers")


def panel_sentences(board: Leaderboard) -> list[str]:
    """Return where the boards of a panel disagree, one sentence each, or that they do not."""
    if board.panel is None:
        return []
    pairs = [(one.first, one.second, one.first_better, one.second_better) for one in board.panel.reversals]
    found = _opposite(pairs, "on different boards")
    for name in board.panel.moved:
        places = [f"{ranks(side.places[name].rank_set)} by {side.label}" for side in board.panel.sides]
        found.append(f"The rank of {name} depends on the board: {listed(places)}.")
    return found or ["No two boards surely disagree."]


def _opposite(pairs: Sequence[tuple[str, str, Sequence[str], Sequence[str]]], how: str) -> list[str]:
    """Return a sentence for each of the first pairs in opposite orders, and the number of the others."""
    found = [
        f"{first} is surely better than {second} by {listed(better)}, and surely worse by {listed(worse)}."
        for first, second, better, worse in pairs[:SHOWN_DISAGREEMENTS]
    ]
    more = len(pairs) - len(found)
    return [*found, f"{counted(more, 'more pair')} of models in opposite orders {how}."] if more else found


def _panel_table(board: Leaderboard) -> list[Table]:
    """Return the ranks on all boards of a panel as a table, if there is one."""
    if board.panel is None:
        return []
    columns = ["Model", *(side.label for side in board.panel.sides)]
    rows = [[row.name, *panel_ranks(board, row)] for row in board.rows]
    return [Table(f"Ranks by {board.panel.by} on each board", columns, rows)]


def panel_ranks(board: Leaderboard, row: Row) -> list[str]:
    """Return the ranks of a model on the boards of a panel."""
    return [] if board.panel is None else [ranks(side.places[row.name].rank_set) for side in board.panel.sides]


def _noise(board: Leaderboard) -> list[str]:
    """Return the noise of training that was measured, a sentence per number; one for all without any."""
    found = [
        f"By {one.key}, two training runs of one model differ by "
        f"{_gap(one, one.training_error)} (standard deviation, without the noise of sampling)."
        for one in board.criteria
        if one.training_error
    ]
    none = [one.key for one in board.criteria if one.training_error == 0]
    alike = f"By {listed(none)}, training runs of one model differ no more than samples of a single run."
    return [*found, alike] if none else found


def _matrix(board: Leaderboard) -> list[list[tuple[int, str]]]:
    """Return what the model of each row makes more of than the model of each column: how many kinds, and the first.

    A board of many models has none.
    """
    if len(board.rows) > MATRIX_MODELS:
        return []
    names = UniqueNames((*board.headings, *board.kinds))
    return [[_cell(board, one.name, other.name, names) for other in board.rows] for one in board.rows]


def _cell(board: Leaderboard, first: str, second: str, names: UniqueNames) -> tuple[int, str]:
    found = () if first == second else board.more_of(first, second)
    return len(found), names.title(found[0]) if found else ""


def _profile(board: Leaderboard, row: Row) -> dict[str, object]:
    """Return what the section of a model says."""
    main = board.criterion()
    return {
        "row": row,
        "better": [one for one in main.names if main.better(row.name, one, board.alpha)],
        "worse": [one for one in main.names if main.better(one, row.name, board.alpha)],
        "much": board.more_of(row.name, REFERENCE)[:PROFILE_KINDS],
        "little": board.more_of(REFERENCE, row.name)[:PROFILE_KINDS],
        "sets": [board.sets[run_label(row.name, number)] for number in range(row.runs)],
    }


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
        cells += [_estimate(one, standing)]
        cells += [ranks(standing.rank_set)] if one.key != board.rank_by else []
    return cells


def _value(criterion: Criterion, standing: Standing) -> str:
    if criterion.is_share and standing.value is not None:
        return bare_percent(standing.value)
    return figure(standing.value)


def _ends(criterion: Criterion, standing: Standing) -> str:
    if standing.interval is None:
        return ""
    if criterion.is_share:
        return share_interval(standing.interval)
    return f"[{', '.join(map(figure, standing.interval))}]"


def _estimate(criterion: Criterion, standing: Standing) -> str:
    """Write a number with its interval, as far as they are known."""
    return f"{_value(criterion, standing)} {_ends(criterion, standing)}".strip()


def _standing_text(criterion: Criterion, standing: Standing) -> str:
    """Write a number with its interval and the ranks by it."""
    ranked = f", rank {ranks(standing.rank_set)}" if standing.rank_set is not None else ", not ranked"
    return f"{_estimate(criterion, standing)}{ranked}"


def _gap(criterion: Criterion, gap: float) -> str:
    return f"{points(gap).removeprefix('+')} points" if criterion.is_share else figure(gap, ".3g")


def _reasons(board: Leaderboard) -> list[str]:
    """Return why models are not ranked by numbers, models and numbers with one reason in one sentence."""
    keys: dict[tuple[str, str], list[str]] = {}
    for row in board.rows:
        for key, standing in row.scores.items():
            if standing.reason is not None:
                keys.setdefault((row.name, standing.reason), []).append(key)
    names: dict[tuple[str, str], list[str]] = {}
    for (name, reason), unranked in keys.items():
        names.setdefault((listed(unranked), reason), []).append(name)
    return [
        f"{listed(found)} {'is' if len(found) == 1 else 'are'} not ranked by {unranked} ({reason})"
        for (unranked, reason), found in names.items()
    ]


def _against_ref(kind: Kind, label: str) -> str:
    """Return "more" or "less" where the intervals of a set and of the reference do not overlap, else nothing."""
    own, ref = kind.shares[label].interval, kind.shares[REFERENCE].interval
    return "more" if own[0] > ref[1] else "less" if own[1] < ref[0] else ""
