"""The table of a board, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from finc_eval.comparison.pages.looks import STEPS, draw_spread
from finc_eval.core.words import figure, join_words, points
from finc_eval.findings.finding import Finding
from finc_eval.findings.visible import Visible
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.leaderboards.pictures import PICTURED
from finc_eval.leaderboards.result import Leaderboard, Place
from finc_eval.leaderboards.standings import Criterion, Row, Standing
from finc_eval.leaderboards.yardsticks import SPLITS
from finc_eval.measures.frechet import not_fid
from finc_eval.naming.evidence import KIND_ID, UniqueNames
from finc_eval.partitions.answer import LARGEST
from finc_eval.partitions.settings import REFERENCE
from finc_eval.report.cards import CardView, Grid, Seen, anchor
from finc_eval.report.colors import Ink, inks_of
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import bare_percent, p_value, share_interval

IN_THOUSANDTHS = ("kid",)  # metrics that are written × 10³, as papers write them; JSON and CSV have them as they are
REAL_DATA = "real data, same size"  # row of a board with what samples of the reference get instead of a model


def colors_of(board: Leaderboard) -> dict[str, Ink]:
    """Return the color of each model that has its own, in the order in which they were given, and of the reference."""
    names = {row.name for row in board.rows}
    found = inks_of([*(label for label in board.sets if label in names), REFERENCE], REFERENCE)
    return {name: ink for name, ink in found.items() if ink != "gen" or len(board.rows) == 1}


def ranks(rank_set: tuple[int, int] | None) -> str:
    """Write the ranks that a model may have: "2" or "1–3"; "–" where it is not ranked."""
    if rank_set is None:
        return "–"
    low, high = rank_set
    return str(low) if low == high else f"{low}–{high}"


def board_table(board: Leaderboard) -> TextTable:
    """Return the table of a board: its models, and below them what samples of the reference get."""
    sides = () if board.panel is None else board.panel.sides
    prefix, main = f"{sides[0].label}: " if sides else "", board.criterion()
    criteria = sorted(
        board.criteria, key=lambda criterion: criterion.key != board.rank_by
    )  # what orders the rows comes first
    columns = ["Model", f"{prefix}Rank", f"{prefix}Group", *(prefix + heading(criterion) for criterion in criteria)]
    for side in sides[1:]:
        columns += [f"{side.label}: Rank", f"{side.label}: {heading(main)}"]
    rows = [_cells_of(board, row, criteria) for row in board.rows]
    muted = [row.rank_set is None for row in board.rows]
    real = about_real_data(board)
    if real:
        floors = [_floors(criterion, [row.scores[criterion.key].floor for row in board.rows]) for criterion in criteria]
        rows.append([REAL_DATA, "–", "–", *floors, *["–", "–"] * len(sides[1:])])
        muted.append(True)
    legend = [
        f"Ordered by {board.rank_by}. The first number of a cell is without the bias of finite sets, and in brackets "
        "is its 95 % interval.",
        *["All ranks of a space hold together with probability 0.95."] * bool(sides),
        *real,
    ]
    return TextTable("The board", columns, rows, bold=f"{prefix}Rank", muted=muted, legend=" ".join(legend))


def _cells_of(board: Leaderboard, row: Row, criteria: Sequence[Criterion]) -> list[Cell | str]:
    """Return the cells of a model."""
    sides = () if board.panel is None else board.panel.sides
    is_moved = board.panel is not None and row.name in board.panel.moved
    notes = [f"{row.runs} training runs"] * (row.runs > 1) + ["depends on the space"] * is_moved
    mark = colors_of(board).get(row.name, "")
    where, note = anchor(row.name, of="model") if board.has_profiles else "", ", ".join(notes)
    faults = "; ".join(finding.words for finding in row.findings[:LARGEST])  # the headline has the numbers
    name = Cell(row.name, f"({faults})" if faults else "", anchor=where, note=note, mark=mark)
    cells: list[Cell | str] = [name, ranks(row.rank_set), "–" if row.group is None else str(row.group)]
    for criterion in criteria:
        found = row.scores[criterion.key]
        is_ranked = criterion.key != board.rank_by and found.rank_set is not None
        cells.append(_number(criterion, found, f"rank {ranks(found.rank_set)}" if is_ranked else ""))
    for place in (side.places[row.name] for side in sides[1:]):
        cells += [ranks(place.rank_set), _number(board.criterion(), place)]
    return cells


def findings_table(board: Leaderboard) -> list[TextTable]:
    """Return in what each model differs from the reference, and what follows from that; none without findings."""
    rows: list[list[Cell | str]] = []
    ids = {part for row in board.rows for finding in row.findings for part in finding.parts}
    for row in board.rows:
        for finding in row.findings:
            below = join_words([name for name in finding.explains if name not in ids and not KIND_ID.fullmatch(name)])
            adjusted = "–" if finding.p_value is None else p_value(finding.p_value)
            rows.append([row.name, finding.in_tables, *finding.share_cells, adjusted, below or "–"])
    columns = ["Model", "Finding", "Model, %", "Reference, %", "p", "From it follows"]
    legend = (
        "p is adjusted for all that was asked of a model. A finding stands here if it is significant among those of "
        "all models."
    )
    title = "What differs from the reference"
    return [
        TextTable(title, columns, rows, names=["Model", "Finding"], words=["From it follows"], legend=legend)
    ] * bool(rows)


def fault_cards(board: Leaderboard) -> list[Seen]:
    """Return a card for each of the largest findings of each model, the worst model first.

    It has samples of the model next to samples of the reference.
    """
    inks, cards = colors_of(board), []
    for row in sorted(board.rows, key=lambda row: -(row.fault_size or 0)):
        for finding in row.findings[:PICTURED]:
            ids = (finding.ids, finding.ids_other) if finding.is_more else (finding.ids_other, finding.ids)
            sides = zip((row.name, REFERENCE), ids, _shares_in_words(finding), strict=True)
            views = [
                CardView(inks.get(label, "gen"), label, "", (Grid(share, label, shown[:SHOWN_SAMPLES]),))
                for label, shown, share in sides
            ]
            views.sort(key=lambda view: not view.grids[0].ids)
            heading = f"{row.name}: {finding.text.partition(' (')[0] or finding.words}"
            p = "" if finding.p_value is None else f"p = {p_value(finding.p_value)}, adjusted for all models"
            ink, legend = inks.get(row.name, "gen"), f"{STEPS * bool(finding.spread)}{p}"
            drawing = draw_spread(finding, {"gen": row.name, "ref": REFERENCE}, {"gen": ink, "ref": "ref"})
            seen = Seen(heading, tuple(views), ink, legend, f"{row.name}: {finding.name}", drawing)
            cards += [seen] * bool(finding.ids)
    return cards


def pairs_table(board: Leaderboard, names: UniqueNames) -> TextTable | None:
    """Return what the model of each row makes more of than the model of each column: how many kinds, and the first.

    A board of many models has none.
    """
    # 20: models of a board that has a matrix of all pairs at most.
    if len(board.rows) > 20:
        return None

    def cell(first: str, second: str) -> Cell:
        found = () if first == second else board.more_of(first, second)
        return Cell(str(len(found)), names.title(found[0])) if found else Cell("–")

    models = [row.name for row in board.rows]
    rows = [[Cell(model), *(cell(model, other) for other in models)] for model in models]
    return TextTable("Pairs", ["More than", *models], rows)


def _shares_in_words(finding: Finding) -> tuple[str, str]:
    """Return the shares of a model and of the reference; nothing for what has none."""
    return ("", "") if finding.shares is None or finding.kind == "sets" else finding.say_shares(1)


def about_real_data(board: Leaderboard) -> list[str]:
    """Say what the row of real data is; nothing where no number has a floor."""
    if all(score.floor is None for row in board.rows for score in row.scores.values()):
        return []
    half = board.sets[REFERENCE].n // 2
    sizes = sorted({min(board.sets[row.name].n, half) for row in board.rows})
    parts = " to ".join(f"{size:,}" for size in dict.fromkeys([sizes[0], sizes[-1]]))
    return [
        f"The row “{REAL_DATA}” is of a part of the reference instead of a model: {parts} of its samples against its "
        f"others. Shares are means over {SPLITS} such parts, at the model's number of samples. The row is not ranked."
    ]


def _floors(criterion: Criterion, floors: Sequence[float | None]) -> str:
    """Write what real data get by a number, from the lowest to the highest for models of unlike sizes."""
    known = sorted(floor for floor in floors if floor is not None)
    ends = dict.fromkeys(written(criterion, end) for end in (known[:1] + known[-1:]))
    return " to ".join(ends) or "–"


def heading(criterion: Criterion) -> str:
    """Return the heading of a number, with its unit."""
    if criterion.is_share:
        return f"{criterion.key}, %"
    named = f"{criterion.key} (not FID)" if not_fid(criterion.key, criterion.signature.space) else criterion.key
    return f"{named} × 10³" if _scale(criterion) > 1 else named


def _scale(criterion: Criterion) -> float:
    """Return the factor of a number on pages and in tables: papers write KID × 10³."""
    return 1000.0 if criterion.signature.metric in IN_THOUSANDTHS else 1.0


def estimate_text(criterion: Criterion, standing: Standing | Place) -> str:
    """Write a number with its interval."""
    return f"{_value(criterion, standing)} {_interval(criterion, standing)}".strip()


def _number(criterion: Criterion, standing: Standing | Place, rank: str = "") -> Cell:
    """Return a cell of the board: the number and its rank, which a page has further below; small, the interval."""
    small = _interval(criterion, standing)
    text = ", ".join(part for part in (estimate_text(criterion, standing), rank) if part)
    return Cell(text, html=Markup("{} <small>{}</small>").format(_value(criterion, standing), small))


def _value(criterion: Criterion, standing: Standing | Place) -> str:
    return figure(None) if standing.value is None else written(criterion, standing.value)


def written(criterion: Criterion, value: float) -> str:
    """Write a value by a number, in the unit of its column."""
    return bare_percent(value) if criterion.is_share else figure(value * _scale(criterion))


def _interval(criterion: Criterion, standing: Standing | Place) -> str:
    """Return the interval in brackets; "" without one."""
    if standing.interval is None:
        return ""
    if criterion.is_share:
        return share_interval(standing.interval)
    return f"[{', '.join(figure(end * _scale(criterion)) for end in standing.interval)}]"


def gap_text(criterion: Criterion, gap: float) -> str:
    """Write a difference by a number."""
    if criterion.is_share:
        return f"{points(gap).removeprefix('+')} points"
    times = " × 10⁻³" if _scale(criterion) > 1 else ""
    return figure(gap * _scale(criterion), ".3g") + times


def would_be_seen(board: Leaderboard) -> dict[str, str]:
    """Return what would have been found of each model without a fault, in a sentence; none where it is not known."""
    known = [row.visible for row in board.rows if row.visible is not None]
    visible = Visible.of_all(known)
    return {"seen": visible.sentence((0, 0))} if visible.others else {}
