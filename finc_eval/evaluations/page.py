"""The page, the notebook view and the terminal table of an evaluation: a summary on top, then the view of each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from finc_eval.comparison.pages import comparison as comparisons
from finc_eval.comparison.result import Comparison
from finc_eval.core.errors import UsageError
from finc_eval.core.serialize import Document
from finc_eval.core.words import figure, one_line
from finc_eval.gallery.pictured import Gallery, Pictures
from finc_eval.memorization import page as audits
from finc_eval.memorization.membership import SCORE, score_cells
from finc_eval.private.reference import page as privacy
from finc_eval.private.reference.result import DISTANCE, PrivateComparison, PrivateScore
from finc_eval.report import Page, page_of
from finc_eval.report import outline as outline_of
from finc_eval.report.exports.outline import Outline, TextTable, call, sizes, source
from finc_eval.report.pages import Section, render
from finc_eval.report.terminal import print_notes, print_one
from finc_eval.samples.source import Samples

if TYPE_CHECKING:
    from finc_eval.evaluations.evaluation import Evaluation  # what computes an evaluation, a page need not load

QUESTIONS = {
    "comparison": "Which kinds differ?",
    "scores": "Fidelity and diversity",
    "methods": "What do other methods find?",
    "private": "How far from the private records?",
    "audit": "Copies and membership",
}
"""The heading of each part."""

SIDE_BY_SIDE = "Privacy: what each score means"

PRIVACY_COLUMNS = ("Score", "Value", "What it means", "Yardstick")

PRIVACY_LEGEND = (
    "The guarantee is about the private reference: whatever is done with it, this page included. It is not about the "
    "generator, and does not cover the membership score, which is computed from the training set and the holdout "
    "themselves: whoever shows this page shows that score."
)

COLUMNS = ("Question", "Answer")

SHOWN = {"comparison": ("gen", "ref"), "methods": ("gen", "ref"), "audit": ("gen", "train")}
"""Sets whose samples each part shows."""

HOW = (
    "Each part is a result of its own, with its own error: 5 % for each, not for all together. No number joins them, "
    "as a set can be close to its reference and copied, or far from it and honest. All parts saw the same embeddings. "
    "The JSON file next to this page has every number of every part."
)


def page(result: Evaluation, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    known = ("gen", "ref", *(["train"] if result.audit is not None else []))
    for label in samples:
        if label not in known:
            raise UsageError(f"the page shows no samples of a set {label!r}: it shows samples of {', '.join(known)}")
    said, gallery, first = outline(result), _gallery(result, samples), dict[str, Any]()
    if result.comparison is not None:
        first = _first_screen(result.comparison, gallery)
    sections = [Section("summary", "Every question", facts=answers(result))]
    if cards := first.pop("cards", None):
        sections.insert(0, Section("modes", "", cards=cards))
    if result.private is not None:
        table = side_by_side(result, result.private)
        sections.append(Section("privacy", table.title, table.legend, table=table))
    for name, part in result.parts.items():
        sections += _of_part(name, part)
    folds = {} if result.comparison is None else result.comparison.folds
    return render(result, said, gallery, sections=sections, folds=folds, **first)


def _first_screen(comparison: Comparison, gallery: Gallery) -> dict[str, Any]:
    """Return what a comparison shows first, as the frame of a page takes it; pairs by id have their tables alone."""
    comparison = comparisons.as_said(comparison)
    found = comparisons.first_screen(comparison, gallery)
    seen = [*found["seen"].above, *found["seen"].first, *found["seen"].later]
    if comparison.by_id:
        return {"seen": seen}
    return {"cards": found["cards_of_kinds"], "forest": found["table"], "map": found["map"], "seen": seen}


def _of_part(name: str, part: Document) -> list[Section]:
    """Return the section of a part with its first table, under which others are folded.

    The kinds of a comparison, its looks and its headline stand above, and only what else it has follows. All other
    parts have the pictures that a notebook shows, such as pairs of copies.
    """
    shown = page_of(part)
    said = (shown.notebook or shown.outline)(part) if name != "comparison" else shown.outline(part)
    tables = [table for table in said.tables if table.title != comparisons.KINDS_TITLE]
    folded = [Section("", table.title, table=table) for table in tables[1:]]
    title = "What differs" if name == "comparison" else QUESTIONS[name]
    return [Section(name, title, table=tables[0], parts=folded)] if tables else []


def _gallery(result: Evaluation, samples: Mapping[str, Samples]) -> Gallery:
    """Return the pictures of the samples of all parts."""
    pictures: Pictures = {}
    notes: list[str] = []
    for name, part in result.parts.items():
        given = {label: samples[label] for label in SHOWN.get(name, ()) if label in samples}
        found = page_of(part).gallery_of(part, given)
        notes += found.notes
        for label, shown in found.pictures.items():
            pictures[label] = pictures.get(label, {}) | shown
    return Gallery(pictures, tuple(dict.fromkeys(notes)))


def outline(result: Evaluation) -> Outline:
    """Return what the evaluation says in all outputs."""
    compared = result.comparison
    sets = {} if compared is None else {"gen": compared.gen, "ref": compared.ref}
    if result.audit is not None:
        sets |= {"train": result.audit.train, "holdout": result.audit.holdout}
    arguments = [
        f"{'' if name in SHOWN['comparison'] else f'{name}='}{source(name, info)}" for name, info in sets.items()
    ]
    parts = [outline_of(part) for part in result.parts.values()]
    if result.private is not None:
        arguments = ["gen", '"private.h5"', *([] if result.audit is None else ["train=train", "holdout=holdout"])]
    tables = [TextTable("Summary", COLUMNS, answers(result), words=COLUMNS[1:])]
    tables += [] if result.scores is None else outline_of(result.scores).tables
    return Outline(
        kind="evaluation of a generator",
        title=_title(result),
        says=says(result),
        sets=sizes(sets) | ({} if result.private is None else {"private reference": None}),
        signatures=list(dict.fromkeys(str(signature) for part in parts for signature in part.signatures)),
        call=call("evaluate", *arguments, settings=compared and compared.settings),
        tables=tables if result.private is None else [*tables, side_by_side(result, result.private)],
        warnings=result.warnings,
        failures=[
            *dict.fromkeys(failure for part in parts for failure in part.failures),
            *(f"{QUESTIONS[name].rstrip('?')}: {reason}." for name, reason in result.missing.items()),
        ],
        how=HOW,
    )


def says(result: Evaluation) -> dict[str, str]:
    """Return what the comparison and the private reference say, and the verdict of the audit."""
    parts = {"comparison": result.comparison, "private": result.private}
    said = {name: part.headline for name, part in parts.items() if part is not None}
    return said | ({} if result.audit is None else {"audit": result.audit.verdict})


def notebook(result: Evaluation) -> Outline:
    """Return the headline and the answers for a notebook; each part has a view of its own."""
    return replace(outline(result), warnings=())


def show(result: Evaluation) -> None:
    """Print the headline, the scores, the answer to each other question, and what qualifies them."""
    print(one_line(result.headline))
    for table in () if result.scores is None else outline_of(result.scores).tables:
        print_one(table)
    for question, answer in answers(result):
        print(f"\n{question}\n{one_line(answer)}")
    if result.private is not None:
        table = side_by_side(result, result.private)
        for row in table.rows:
            print(f"\n{row[0]}: {row[1]}\n{row[2]} {row[3]}")
        print(f"\n{table.legend}")
    print()
    print_notes(result.warnings)


def answers(result: Evaluation) -> list[tuple[str, str]]:
    """Return what each part found in a few plain sentences, and why a part is missing.

    The headline says what the comparison found, and scores have a table.
    """
    sentences: dict[str, str] = {}
    if result.methods is not None:
        sentences["methods"] = result.methods.headline
    if result.private is not None:
        sentences["private"] = result.private.headline
    if result.audit is not None:
        sentences["audit"] = f"{result.audit.headline} {audits.membership_sentence(result.audit)}"
    asked = [name for name in QUESTIONS if name in sentences or name in result.missing]
    answered = [(QUESTIONS[name], sentences.get(name) or f"Not computed: {result.missing[name]}.") for name in asked]
    return [*answered, ("Encodings", result.encodings)]


def side_by_side(result: Evaluation, compared: PrivateScore | PrivateComparison) -> TextTable:
    """Return DP-HP's distance and its guarantee beside KAHM's membership score, each with meaning and yardstick."""
    scores = {score.name: score for score in privacy.scores_of(compared)}
    of_gen, real = scores["gen"], scores.get("holdout")
    yardstick = f"The noise hides values below {figure(of_gen.smallest_detected, '.2g')}."
    if real is not None:
        yardstick += f" Real samples, the holdout: {figure(real.value)} {privacy.interval_text(real.interval)}."
    rows = [
        (
            DISTANCE,
            f"{figure(of_gen.value)} {privacy.interval_text(of_gen.interval)}",
            "0 if the kernel cannot distinguish generated from private samples. It says nothing of copies.",
            yardstick,
        )
    ]
    for guarantee in compared.guarantees:
        stated, *ceilings = (cell(guarantee) for cell in privacy.PROMISES.values())
        rows.append(
            (
                "Guarantee of the private reference",
                stated,
                "Whoever knows all other records and the release can hardly tell whether a record was in it.",
                f"AUC {ceilings[0]}, where guessing has 0.5; true positives at 1 % {ceilings[2]}.",
            )
        )
    return TextTable(
        SIDE_BY_SIDE, PRIVACY_COLUMNS, [*rows, _membership(result)], words=PRIVACY_COLUMNS[1:], legend=PRIVACY_LEGEND
    )


def _membership(result: Evaluation) -> tuple[str, str, str, str]:
    """Return KAHM's membership score as a row."""
    name = SCORE
    meaning = (
        "How unlike training samples and the holdout are in their distances from the generated ones. Large values show "
        "members; without a finding, other attacks may still find some."
    )
    if result.audit is None:
        return name, "–", meaning, f"Not computed: {result.missing['audit']}."
    if result.audit.membership is None:
        return name, "–", meaning, "The distances have no density to compare."
    value, p, below, standardized = score_cells(result.audit.membership.generated)
    fresh, *_ = score_cells(result.audit.membership.control)
    return (
        name,
        f"{value} in 1/distance, p = {p}",
        meaning,
        f"95 % of equal densities stay below {below}. One half of the training set in place of the generated samples: "
        f"{fresh}. Standardized, without a unit, the score is {standardized}.",
    )


def _title(result: Evaluation) -> str:
    if result.comparison is not None:
        return " against ".join(comparisons.titles(result.comparison))
    if result.private is not None:
        return "gen against a private reference"
    return "evaluation" if result.scores is None else f"{result.scores.gen} against {result.scores.ref}"


PAGE = Page(says, outline, draw=page, notebook=notebook, print=show)
