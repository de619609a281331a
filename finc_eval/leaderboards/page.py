"""The page, the notebook view and the terminal table of a leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from finc_eval.core.words import join_words, percent, plural
from finc_eval.embeddings.recipe import ARRAY_SPACE
from finc_eval.gallery.counts import LEAD_SAMPLES, SHOWN_SAMPLES
from finc_eval.gallery.members import pictured_ids
from finc_eval.gallery.pictured import Gallery, read_gallery
from finc_eval.leaderboards.board_table import (
    about_real_data,
    board_table,
    colors_of,
    estimate_text,
    fault_cards,
    findings_table,
    gap_text,
    heading,
    pairs_table,
    ranks,
    would_be_seen,
    written,
)
from finc_eval.leaderboards.columns import SHARES
from finc_eval.leaderboards.judged_page import first_by_judges, judge_details, judge_tables, plan_sentences
from finc_eval.leaderboards.pictures import add_findings, as_shown, fold_board
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.standings import Criterion, Row, run_label
from finc_eval.measures.frechet import not_fid
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind, shown_of
from finc_eval.partitions.pages.cards import NO_KIND, kinds_on_page
from finc_eval.partitions.pages.small_maps import maps_of_models
from finc_eval.partitions.pages.tables import value_tables
from finc_eval.partitions.settings import REFERENCE
from finc_eval.report import Page
from finc_eval.report.cards import anchor
from finc_eval.report.exports.outline import (
    NOT_MANY,
    Cell,
    Outline,
    TextTable,
    call,
    several,
    sizes,
    source,
    unreadable,
)
from finc_eval.report.formats import share_interval
from finc_eval.report.pages import render
from finc_eval.samples.source import Samples


def page(board: Leaderboard, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    pictures = gallery(board, samples)
    board = _as_shown(board, samples)
    names = UniqueNames((*board.headings, *board.kinds))
    titles = {label: label for label in board.kinds[0].shares}
    _, cards = kinds_on_page(board.kinds, board.headings, titles, SHOWN_SAMPLES)
    return render(
        board,
        outline(board),
        pictures,
        "leaderboards/page.html",
        kinds=_kinds_table(board, names),
        cards_of_kinds=cards,
        pairs=pairs_table(board, names),
        profiles=[_profile(board, row) for row in board.rows],
        names=names,
        maps=maps_of_models(board.places, board.kinds, [row.name for row in board.rows][:12], names),  # 12: most maps
        groups=[how_sure(board), *group_sentences(board), *disagreement_sentences(board)],
        unranked=_reasons(board),
        values=_value_tables(board),
        findings=findings_table(board),
        seen=fault_cards(board),
        folds=fold_board(board.rows, (*board.headings, *board.kinds), board.sets),
        judged=list(judge_tables(board)),
        judgments=[*judge_details(board), *plan_sentences(board)],
        colors=colors_of(board),
        panel=panel_sentences(board),
        criteria=[(criterion.key, _about(criterion)) for criterion in board.criteria],
        noise=training_sentences(board),
        sight=sight(board),
        reference=REFERENCE,
        settings=[
            *board.sets.items(),
            ("Ranks cover", board.covers),
            ("Groups of samples", board.settings.groups or "windows of a video, if there are any"),
        ],
    )


def gallery(board: Leaderboard, samples: Mapping[str, Samples]) -> Gallery:
    """Return pictures of the samples of all kinds."""
    shown = _as_shown(board, samples)
    wanted = shown_of((*shown.kinds, *shown.headings), board.sets, SHOWN_SAMPLES)
    wanted = add_findings(wanted, board.rows, board.kept, samples)
    return read_gallery(
        board.sets,
        wanted,
        samples,
        kept=board.kept,
        small=pictured_ids(fold_board(board.rows, (*board.headings, *board.kinds), board.sets)),
    )


def _as_shown(board: Leaderboard, samples: Mapping[str, Samples]) -> Leaderboard:
    """Return the board with the samples that can be shown of sets whose pictures were kept, and are not given."""
    kept = {label: thumbnails for label, thumbnails in (board.kept or {}).items() if label not in samples}
    kinds, headings = (tuple(as_shown(kind, kept) for kind in some) for some in (board.kinds, board.headings))
    return replace(board, kinds=kinds, headings=headings)


def outline(board: Leaderboard) -> Outline:
    """Return what the board says in all outputs."""
    by = [
        f"By {criterion.key}: {header(criterion)}. {_not_fid(criterion)}".strip()
        for criterion in board.criteria
        if criterion.key != board.rank_by
    ]
    given = [models_in_call(board), source(REFERENCE, board.sets[REFERENCE])]
    given += [f"{name}=…" for name in ("scores", "votes") if getattr(board, name)]
    return Outline(
        kind="leaderboard",
        title=f"{models_in_title(board)} against {board.sets[REFERENCE].name}",
        says=says(board),
        sets=sizes(board.sets),
        signatures=[*dict.fromkeys([board.signature, *(criterion.signature for criterion in board.criteria)])],
        call=call("leaderboard", *given, settings=board.settings),
        tables=[
            board_table(board),
            *findings_table(board),
            *judge_tables(board),
            *_shares_of_kinds(board),
            *_value_tables(board),
        ],
        details=[
            *plan_sentences(board),
            how_sure(board),
            *group_sentences(board),
            *disagreement_sentences(board),
            *judge_details(board),
            *training_sentences(board),
            *about_real_data(board),
            *panel_sentences(board),
            *by,
        ],
        warnings=board.warnings,
        failures=[*unreadable(board.sets), *(f"{reason}." for reason in _reasons(board))],
    )


def models_in_call(board: Leaderboard) -> str:
    """Return the models as the first argument of the call that makes the board."""
    models = []
    for row in board.rows:
        labels = [run_label(row.name, number) for number in range(row.runs)]
        runs = ", ".join(source(label, board.sets[label]) for label in labels)
        models.append(f"{row.name!r}: {runs if row.runs == 1 else f'[{runs}]'}")
    return f"{{{', '.join(models)}}}"


def _shares_of_kinds(board: Leaderboard) -> list[TextTable]:
    """Return the table of the kinds that differ, by name with the share of each set; nothing where none does."""
    found = _kinds_table(board, UniqueNames((*board.headings, *board.kinds)))
    return [found] if found.rows else []


def _value_tables(board: Leaderboard) -> list[TextTable]:
    return value_tables(board.by, {label: label for label in board.kinds[0].shares})


def notebook(board: Leaderboard) -> Outline:
    """Return what a notebook shows: the board, and which models cannot be distinguished."""
    said = outline(board)
    groups = {f"group {number}": text for number, text in enumerate(group_sentences(board), start=1)}
    return replace(said, says={**said.says, **groups, "sight": sight(board)}, tables=said.tables[:1], warnings=())


def says(board: Leaderboard) -> dict[str, str]:
    """Return the findings of the board in a few plain sentences: the fault of each model, and who is first."""
    judges = first_by_judges(board)
    return (
        {"faults": board.headline}
        | would_be_seen(board)
        | {"order": order_sentence(board)}
        | ({"judges": judges} if judges else {})
    )


def models_in_title(board: Leaderboard) -> str:
    """Return the names of the models; their number, if a title does not name so many."""
    names = [row.name for row in board.rows]
    return several(names) if len(names) <= NOT_MANY else plural(len(names), "model")


def order_sentence(board: Leaderboard) -> str:
    """Return who is first, in a sentence."""
    main = board.criterion()
    if len(main.names) < 2:
        return f"By {main.key}, {header(main)}."
    first, *others = main.groups[0]
    others = others if len(others) <= NOT_MANY else [f"{len(others)} others"]
    what = f", the {SHARES[main.key]}" if main.key in SHARES else ""
    by = f"by {main.key} alone{what}"
    if first not in [row.name for row in board.faulty[:1]]:
        tied = f"; {join_words(others)} cannot be distinguished from it" if others else ""
        return f"{first} is first of {len(main.names)} models {by}{tied}."
    if others:
        return f"{join_words([first, *others])} cannot be distinguished {by}."
    return f"{first} is first of {len(main.names)} models {by}, which does not weigh that fault."


def how_sure(board: Leaderboard) -> str:
    """Return how many models can be distinguished, which noise ranks cover, and what numbers see, in sentences."""
    main = board.criterion()
    told = f"By {main.key}, {header(main)}. " if len(main.names) > 1 else ""
    return f"{told}Ranks cover {board.covers}. {sight(board)}"


def sight(board: Leaderboard) -> str:
    """Return what the numbers of the board can see, in a sentence."""
    extractor = board.extractor
    seen = (
        "these embeddings distinguish"
        if extractor.startswith(ARRAY_SPACE)
        else f"the extractor {extractor} distinguishes"
    )
    moved = () if board.panel is None else board.panel.moved
    names = join_words(moved) if len(moved) <= NOT_MANY else several(moved)
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
        f"{criterion.separable_neighbors} of {plural(neighbors, 'neighbor')} and {criterion.separable_pairs} of all "
        f"{plural(criterion.pairs, 'pair')} can be distinguished (Holm, 5 %)"
    )
    return f"{found}; smallest separable gap {gap_text(criterion, gap)}" if gap is not None else found


def group_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per group of models that cannot be distinguished from its first; it names all of them."""
    return [
        f"Group {number}: {join_words([board[name].titled for name in others])} cannot be distinguished from "
        f"{board[first].titled}."
        for number, (first, *others) in enumerate(board.groups, 1)
        if others
    ]


def disagreement_sentences(board: Leaderboard) -> list[str]:
    """Return one sentence per pair of models that numbers rank in opposite orders, the first pairs of the board."""
    pairs = [
        (disagreement.first, disagreement.second, disagreement.first_better_by, disagreement.second_better_by)
        for disagreement in board.disagreements()
    ]
    return _opposite(pairs, "by different numbers")


def panel_sentences(board: Leaderboard) -> list[str]:
    """Return where the boards of a panel disagree, one sentence each, or that they do not."""
    if board.panel is None:
        return []
    pairs = [
        (reversal.first, reversal.second, reversal.first_better, reversal.second_better)
        for reversal in board.panel.reversals
    ]
    found = _opposite(pairs, "on different boards")
    for name in board.panel.moved:
        places = [f"{ranks(side.places[name].rank_set)} by {side.label}" for side in board.panel.sides]
        found.append(f"The rank of {name} depends on the space: {join_words(places)}.")
    return found or ["No two boards surely disagree."]


def _opposite(pairs: Sequence[tuple[str, str, Sequence[str], Sequence[str]]], how: str) -> list[str]:
    """Return a sentence for each of the first pairs in opposite orders, and the number of the others."""
    # 5: pairs of models in opposite orders that a summary names.
    found = [
        f"{first} is surely better than {second} by {join_words(better)}, and surely worse by {join_words(worse)}."
        for first, second, better, worse in pairs[:5]
    ]
    more = len(pairs) - len(found)
    return [*found, f"{plural(more, 'more pair')} of models in opposite orders {how}."] if more else found


def training_sentences(board: Leaderboard) -> list[str]:
    """Return the noise of training that was measured, a sentence per number; one for all without any."""
    found = [
        f"By {criterion.key}, two training runs of one model differ by "
        f"{gap_text(criterion, criterion.training_error)} (standard deviation, without the noise of sampling)."
        for criterion in board.criteria
        if criterion.training_error
    ]
    none = [criterion.key for criterion in board.criteria if criterion.training_error == 0]
    alike = f"By {join_words(none)}, training runs of one model differ no more than samples of a single run."
    return [*found, alike] if none else found


def _kinds_table(board: Leaderboard, names: UniqueNames) -> TextTable:
    """Return the share of each set that are of each kind that differs, and where it is surely beyond the reference."""
    colors = colors_of(board)

    def share(label: str, kind: Kind) -> Cell:
        model, ref = kind.shares[label], kind.shares[REFERENCE].interval
        side = "more" if model.interval[0] > ref[1] else "less" if model.interval[1] < ref[0] else ""
        mark = f"{side} {colors.get(label, '')}".strip() if side else ""
        return Cell(percent(model.share, 1), f"{share_interval(model.interval)} {side}".strip(), mark=mark)

    def name(kind: Kind) -> Cell:
        samples = [(kind.set_with_most, kind.shares[kind.set_with_most].top_ids[:LEAD_SAMPLES])]
        return Cell(names.words(kind), kind.id if kind.name else "", samples=samples, anchor=anchor(kind.id))

    labels = [REFERENCE, *(row.name for row in board.rows)]
    columns: dict[str, Callable[[Kind], Cell]] = {"Kind": name, **{label: partial(share, label) for label in labels}}
    differ = [kind for kind in board.kinds if kind.p_value <= ALPHA]
    return TextTable.of("Kinds", columns, differ, nothing=NO_KIND, marks=colors)


def _profile(board: Leaderboard, row: Row) -> dict[str, object]:
    main, facts = board.criterion(), []
    for criterion in board.criteria:
        found = row.scores[criterion.key]
        ranked = "not ranked" if found.rank_set is None else f"rank {ranks(found.rank_set)}"
        text = f"{estimate_text(criterion, found)}, {ranked}"
        if found.value is not None and found.floor is not None:
            text += f"; real data of the same size {written(criterion, found.floor)}"
        facts.append((heading(criterion), text))
    return {
        "row": row,
        "color": colors_of(board).get(row.name, ""),
        "better": [
            ("Surely better than", [name for name in main.names if main.better(row.name, name, board.alpha)]),
            ("Surely worse than", [name for name in main.names if main.better(name, row.name, board.alpha)]),
        ],
        "faults": row.fault or "none was found" if row.is_searched else "not looked for",
        "makes": [
            (words, kinds[:5])  # 5: kinds that the section of a model names at most, of each direction
            for words, kinds in (
                ("Makes more of", board.more_of(row.name, REFERENCE)),
                ("Makes less of", board.more_of(REFERENCE, row.name)),
            )
            if kinds
        ],
        "facts": facts,
        "sets": [
            ("Samples" if row.runs == 1 else f"Training run {number + 1}", board.sets[run_label(row.name, number)])
            for number in range(row.runs)
        ],
    }


def _about(criterion: Criterion) -> str:
    better = f"; {'higher' if criterion.higher_is_better else 'lower'} is better" if criterion.names else ""
    return f"{criterion.title}{better}; {header(criterion)}. {_not_fid(criterion)}".strip()


def _not_fid(criterion: Criterion) -> str:
    return " ".join(f"It is {reason}." for reason in not_fid(criterion.key, criterion.signature.space))


def _reasons(board: Leaderboard) -> list[str]:
    """Return why models are not ranked by numbers, models and numbers with one reason in one sentence."""
    keys: dict[tuple[str, str], list[str]] = {}
    for row in board.rows:
        for key, standing in row.scores.items():
            if standing.reason is not None:
                keys.setdefault((row.name, standing.reason), []).append(key)
    names: dict[tuple[str, str], list[str]] = {}
    for (name, reason), unranked in keys.items():
        names.setdefault((join_words(unranked), reason), []).append(name)
    return [
        f"{join_words(found)} {'is' if len(found) == 1 else 'are'} not ranked by {unranked} ({reason})"
        for (unranked, reason), found in names.items()
    ]


PAGE = Page(says, outline, draw=page, notebook=notebook, gallery=gallery)
