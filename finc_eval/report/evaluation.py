"""The page, the notebook view and the terminal table of an evaluation: a summary on top, then the view of each part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from finc_eval.core.errors import UsageError
from finc_eval.core.words import figure, join_words, one_line
from finc_eval.report import audit as audits
from finc_eval.report import comparison as comparisons
from finc_eval.report import fragment, methods
from finc_eval.report import outline as outline_of
from finc_eval.report.exports.outline import Outline, Table, call, sizes, source
from finc_eval.report.pages import Section, render
from finc_eval.report.terminal import print_notes
from finc_eval.samples import Samples

if TYPE_CHECKING:
    from finc_eval.evaluations import Evaluation  # what computes an evaluation, a page need not load

QUESTIONS = {
    "comparison": "Which kinds differ?",
    "scores": "Fidelity and diversity",
    "methods": "What do other methods find?",
    "audit": "Copies and membership",
}
"""The heading of each part."""

STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)

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
    said = outline(result)
    sections = [Section("summary", "Every question", facts=answers(result))]
    for name, part in result.parts.items():
        given = {label: samples[label] for label in SHOWN.get(name, ()) if label in samples}
        view = Markup(STYLE.sub("", fragment(part, given)))
        sections.append(Section(name, QUESTIONS[name], view=view))
    return render(result, said, sections=sections, styles=["report.css", "fragment.css"])


def outline(result: Evaluation) -> Outline:
    """Return what the evaluation says in all outputs."""
    compared = result.comparison
    sets = {} if compared is None else {"gen": compared.gen, "ref": compared.ref}
    if result.audit is not None:
        sets |= {"train": result.audit.train, "holdout": result.audit.holdout}
    arguments = [f"{'' if one in SHOWN['comparison'] else f'{one}='}{source(one, info)}" for one, info in sets.items()]
    parts = [outline_of(part) for part in result.parts.values()]
    verdict = [] if result.audit is None else [result.audit.verdict]
    return Outline(
        kind="evaluation of a generator",
        title=_title(result),
        headline=" ".join([*([] if compared is None else [compared.headline]), *verdict]),
        sets=sizes(sets),
        signatures=list(dict.fromkeys(str(one) for part in parts for one in part.signatures)),
        call=call("evaluate", *arguments, settings=compared and compared.settings),
        tables=[Table("Summary", COLUMNS, answers(result), words=COLUMNS[1:])],
        warnings=result.warnings,
        failures=[
            *dict.fromkeys(failure for part in parts for failure in part.failures),
            *(f"{QUESTIONS[name].rstrip('?')}: {reason}." for name, reason in result.missing.items()),
        ],
        how=HOW,
    )


def notebook(result: Evaluation) -> Outline:
    """Return the answers for a notebook; each part has a view of its own."""
    return replace(outline(result), headline="", warnings=())


def show(result: Evaluation) -> None:
    """Print the headline, the answer to each question, and what qualifies them."""
    print(one_line(outline(result).headline))
    for question, answer in answers(result):
        print(f"\n{question}\n{one_line(answer)}")
    print()
    print_notes(result.warnings)


def answers(result: Evaluation) -> list[tuple[str, str]]:
    """Return what each part found in a few plain sentences, and why a part is missing."""
    found = {} if result.comparison is None else {"comparison": result.comparison.headline}
    if result.scores is not None:
        texts = [
            f"{one.key} {figure(one.value)}"
            + ("" if one.floor is None else f" (the reference itself: {figure(one.floor)})")
            for one in result.scores
        ]
        found["scores"] = f"{join_words(texts)}."
    if result.methods is not None:
        found["methods"] = methods.summary(result.methods)
    if result.audit is not None:
        found["audit"] = f"{audits.summary(result.audit)} {audits.membership_sentence(result.audit)}"
    answered = [(QUESTIONS[name], found.get(name) or f"Not computed: {result.missing[name]}.") for name in QUESTIONS]
    return [*answered, ("Encodings", result.encodings)]


def _title(result: Evaluation) -> str:
    if result.comparison is not None:
        return " against ".join(comparisons.titles(result.comparison))
    return "evaluation" if result.scores is None else f"{result.scores.gen} against {result.scores.ref}"
