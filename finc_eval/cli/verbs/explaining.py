"""`metrics --explain VALUE`: which conventions give a number that somebody printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import finc_eval as fe
from finc_eval.cli.options import Work, check_given
from finc_eval.cli.output import print_json
from finc_eval.core.errors import UsageError
from finc_eval.core.record import plain
from finc_eval.core.terminal import visible
from finc_eval.core.words import join_words
from finc_eval.extractors.settings import Extraction

if TYPE_CHECKING:
    from finc_eval.conventions.explain import Explanation, Explanations


def explain_number(
    value: str,
    gen: str,
    ref: str,
    names: Sequence[str] | None,
    extraction: Extraction,
    work: Work,
    as_json: bool,
    others: Mapping[str, object],
) -> None:
    """Explain a number, and print what was found; `others` are options that do not go with it."""
    given = [name for name, option in others.items() if option is not None]
    if given:
        raise UsageError(f"--explain computes no metrics, so {given[0]} does not go with it: leave one of them out")
    if names is not None and len(names) != 1:
        raise UsageError(f"--explain is of one metric, got {', '.join(names) or 'none'}: name one in --metrics")
    check_given([gen, ref], extraction.extractor)
    with work.running() as run:
        found = fe.explain(value, gen, ref, names[0] if names else "fd", extractor=extraction, run=run)
    if as_json:
        print_json(
            {
                "value": found.quoted,
                "metric": found.metric,
                "as_is": plain(found.as_is),
                "explanations": [plain(explanation) for explanation in found],
                "tried": found.tried,
                "not_tried": list(found.not_tried),
            }
        )
        return
    for line in _lines(found):
        print(visible(line))


def _lines(found: Explanations) -> Iterator[str]:
    """Yield what was found, in sentences."""
    for explanation in found:
        sure = "in all its digits" if explanation.is_exact else "for other samples of the same generator"
        yield f"{found.quoted} is {found.metric} {sure}, with: {join_words(explanation.conventions)}"
        yield f"  {_number(explanation)}; {100 * explanation.by_chance:.2g} % of other numbers would be explained, too"
    if not found:
        yield f"No convention explains {found.quoted}: {found.tried:,} were tried."
    yield f"finc-eval gives {_number(found.as_is)}."
    interval = found.as_is.interval
    if not found and interval is not None and interval[0] <= float(found.quoted) <= interval[1]:
        yield f"So {found.quoted} may be the same number of other samples: chance alone is enough."
    for text in found.not_tried:
        yield f"Not tried: {text}."


def _number(explanation: Explanation) -> str:
    low_high = explanation.interval
    others = "" if low_high is None else " (other samples: {:.5g} to {:.5g})".format(*low_high)
    return f"{explanation.value:.6g}{others}"
