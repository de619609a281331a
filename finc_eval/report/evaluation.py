"""The page, the notebook view and the terminal table of an evaluation: a summary on top, then the view of each part."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup

from finc_eval.core.errors import UsageError
from finc_eval.core.words import figure, listed
from finc_eval.evaluations.result import Evaluation
from finc_eval.measures.score import Scores
from finc_eval.report import audit as audits
from finc_eval.report import comparison as comparisons
from finc_eval.report import methods, outline_fragment, scores
from finc_eval.report import outline as outline_of
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, sizes
from finc_eval.report.pages import render, style_of, table_fragment
from finc_eval.report.terminal import print_notes
from finc_eval.samples import Samples

QUESTIONS = {
    "comparison": "Which kinds differ?",
    "scores": "Fidelity and diversity",
    "methods": "What do other methods find?",
    "audit": "Copies and membership",
}
"""The heading of each part."""

STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)

COLUMNS = ("Question", "Answer")


def page(result: Evaluation, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    return render(
        "evaluation.html",
        result,
        outline(result),
        **style_of("fragment.css"),
        titles=comparisons.titles(result.comparison),
        answers=answers(result),
        parts=_views(result, samples),
        questions=QUESTIONS,
    )


def outline(result: Evaluation) -> Outline:
    """Return what the evaluation says in all outputs."""
    sets = {"gen": result.comparison.gen, "ref": result.comparison.ref}
    if result.audit is not None:
        sets |= {"train": result.audit.train, "holdout": result.audit.holdout}
    parts = [outline_of(part) for part in result.parts.values()]
    verdict = [] if result.audit is None else [result.audit.verdict]
    return Outline(
        kind="evaluation of a generator",
        title=_title(result),
        headline=" ".join([result.comparison.headline, *verdict]),
        sets=sizes(sets),
        signatures=list(dict.fromkeys(str(one) for part in parts for one in part.signatures)),
        call=call("evaluate", *(source(*one) for one in sets.items()), settings=result.comparison.settings),
        tables=[Table("Summary", COLUMNS, answers(result))],
        warnings=result.warnings,
        failures=[
            *dict.fromkeys(failure for part in parts for failure in part.failures),
            *(f"{QUESTIONS[name].rstrip('?')}: {reason}." for name, reason in result.missing.items()),
        ],
    )


def fragment(result: Evaluation) -> str:
    """Return the answers for a notebook; each part has a view of its own."""
    return table_fragment(_title(result), COLUMNS, answers(result))


def show(result: Evaluation) -> None:
    """Print the answers, then what qualifies them."""
    print(_title(result))
    for question, answer in answers(result):
        print(f"\n{question}\n{answer}")
    print()
    print_notes(result.warnings)


def answers(result: Evaluation) -> list[tuple[str, str]]:
    """Return what each part found in a few plain sentences, and why a part is missing."""
    found = {"comparison": result.comparison.headline}
    if result.scores is not None:
        found["scores"] = _scores(result.scores)
    if result.methods is not None:
        found["methods"] = methods.summary(result.methods)
    if result.audit is not None:
        found["audit"] = f"{audits.summary(result.audit)} {audits.membership_sentence(result.audit)}"
    answered = [(QUESTIONS[name], found.get(name) or f"Not computed: {result.missing[name]}.") for name in QUESTIONS]
    return [*answered, ("Encodings", result.encodings)]


def _scores(found: Scores) -> str:
    """Return each score, and the score of the reference itself, in a sentence."""
    floors = ["" if one.floor is None else f" (the reference itself: {figure(one.floor)})" for one in found]
    texts = [f"{one.key} {figure(one.value)}{floor}" for one, floor in zip(found, floors, strict=True)]
    return f"{listed(texts)}."


def _title(result: Evaluation) -> str:
    return " against ".join(comparisons.titles(result.comparison))


def _views(result: Evaluation, samples: Mapping[str, Samples]) -> dict[str, Markup]:
    """Return the notebook view of each part, without the style that the page has once."""
    known = ("gen", "ref", *(["train"] if result.audit is not None else []))
    for label in samples:
        if label not in known:
            raise UsageError(f"the page shows no samples of a set {label!r}: it shows samples of {', '.join(known)}")
    compared = {label: samples[label] for label in ("gen", "ref") if label in samples}
    audited = {label: samples[label] for label in ("gen", "train") if label in samples}
    found = {"comparison": comparisons.fragment(result.comparison, compared)}
    if result.scores is not None:
        found["scores"] = outline_fragment(scores.outline(result.scores))
    if result.methods is not None:
        found["methods"] = methods.fragment(result.methods, compared)
    if result.audit is not None:
        found["audit"] = audits.fragment(result.audit, audited)
    return {name: Markup(STYLE.sub("", text)) for name, text in found.items()}
