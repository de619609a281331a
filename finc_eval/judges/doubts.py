"""Doubts about scores: numbers of failed calls, two scales of one judge, and judges that count the wrong way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isclose

import numpy as np

from finc_eval.core.words import figure, join_words, plural
from finc_eval.judges.choosing import WORDS
from finc_eval.judges.paired import Array, Means
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.tables import words
from finc_eval.judges.weighting import Weighting

USUAL = re.compile(r"0|[12]|9+|10+")  # digits of numbers that programs write for a failed call: -1, -100, 999
FAR = 3.0  # ranges of the rest from which a number stands outside of it; from 1 if it is usual for a failed call
LEAST_REST = 5  # scores that the rest of a model must have to say where it lies

APART, FAR_APART = 3.0, 10.0
"""Ratios of typical scores of two models from which they may have two scales, if their ranges do not meet: the first if
one of them has parts of 1, as .85 stands beside 4.2 of 5 or 83 of 100."""

CENTRAL = (0.05, 0.95)  # quantiles between which typical scores lie

SAME = {"rel_tol": 1e-6, "abs_tol": 1e-9}  # distance of numbers that are equal but for rounding to seven digits
ROUNDED = {"rel_tol": 5e-3, "abs_tol": 5e-4}  # distance of numbers that are equal but for rounding to three digits

LOWER = words(
    "niqe brisque piqe ilniqe pi lpips dists loss losses error err errors mse rmse mae nll ppl perplexity fid kid"
    " fvd distance dist wer cer toxicity nsfw artifacts artifact distortion noise blur ciede divergence kl regret"
)
"""Words in names of judges whose lower scores are usually better."""


def say_doubts(scores: Mapping[str, SampleScores]) -> list[str]:
    """Return sentences on scores of failed calls, and on judges of two scales."""
    found: list[str] = []
    for judge in dict.fromkeys(judge for table in scores.values() for judge in table.judges):
        columns = {name: table.judges[judge] for name, table in scores.items() if judge in table.judges}
        known = {name: column[np.isfinite(column)] for name, column in columns.items()}
        found += _say_failed(judge, known)
        found += _say_scales(judge, {name: _without_failed(column) for name, column in known.items()})
    return found


def say_direction(judges: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return which scores count as better where nobody said so."""
    higher = [judge for judge in judges if judge not in lower]
    doubtful = [judge for judge in higher if not LOWER.isdisjoint(word.lower() for word in WORDS.findall(judge))]
    rest = [judge for judge in higher if judge not in doubtful]
    found = []
    if doubtful:
        found.append(
            f"higher {join_words(doubtful)} {_count(doubtful)} as better, and by the name, lower is usually better: "
            "name a score in lower (--lower) if it is"
        )
    if rest:
        found.append(
            f"higher {join_words(rest)} {_count(rest)} as better: name a score in lower (--lower) if it does not"
        )
    return found


def _count(names: Sequence[str]) -> str:
    return "counts" if len(names) == 1 else "count"


def say_stated(
    judge: str, ours: Mapping[str, float], stated: Mapping[str, float], rules: Mapping[str, Weighting]
) -> list[str]:
    """Return where a file states another number for a model than the board has, and why."""
    near = SAME if rules else ROUNDED
    unlike = [name for name in ours if name in stated and not isclose(ours[name], stated[name], **near)]
    if not unlike:
        return []
    here = "the board has" if rules else "the mean over prompts is"
    pairs = [f"{figure(stated[name])} for {name}, where {here} {figure(ours[name])}" for name in unlike]
    both = [name for name in ours if name in stated]
    turned = any((ours[a] - ours[b]) * (stated[a] - stated[b]) < 0 for a, b in combinations(both, 2))
    order = ", and orders models otherwise" if turned else ""
    reasons = dict.fromkeys(rules[name].lacks for name in unlike if name in rules and rules[name].lacks)
    why = "; ".join(reasons) or "the scores in the file do not give it: it may have been changed"
    if not rules:
        why = (
            "benchmarks weigh samples or tasks in ways of their own, that of another model's scores is not known, and "
            "ranks are of the means over prompts"
        )
    return [f"{judge}: the file's own number is {join_words(pairs)}{order}: {why}"]


def say_rules(judge: str, rules: Mapping[str, Weighting]) -> list[str]:
    """Return that models have numbers by unlike rules of a benchmark."""
    by_rule: dict[str, list[str]] = {}
    for name, rule in rules.items():
        by_rule.setdefault(rule.rule, []).append(name)
    if len(by_rule) < 2:
        return []
    who = join_words([f"{join_words(names)} has {rule}" for rule, names in by_rule.items()])
    return [
        f"{judge}: {who}, as the numbers in their files are made: VBench sums otherwise when it runs in several "
        "processes; evaluate all models in one way"
    ]


def say_prompts(judge: str, means: Means, prompts: Mapping[str, Sequence[str]], has_rule: bool) -> Iterator[str]:
    """Yield what to know of prompts that not all models have."""
    known = {name: {*texts} for name, texts in prompts.items()}
    every = set().union(*known.values())
    lacking = {name: len(every - texts) for name, texts in known.items() if every - texts}
    if not lacking or len(known) < 2:
        return
    who = join_words([f"{name} lacks {count:,}" for name, count in lacking.items()])
    if has_rule:
        yield f"{judge}: of {len(every):,} prompts, {who}; each has the number of its own, as its benchmark prints it"
    elif means.is_paired:
        yield f"{judge}: of {len(every):,} prompts, {who}; means are over the {means.prompts[0]:,} that all models have"
    else:
        shared = len(set.intersection(*known.values()))
        yield (
            f"{judge}: models share {shared:,} of {len(every):,} prompts, so that each has the mean of its own, and "
            "easier prompts count for a model"
        )


def failed(values: Array) -> list[float]:
    """Return numbers far outside of the rest, as programs write them for a failed call, the lowest and the highest.

    `values` are the scores of a model by one judge, shape (n,), without NaN.
    """
    found: list[float] = []
    for _ in range(2):  # a table may have both: -1 and 999
        for end in (float(values.min()), float(values.max())) if len(values) else ():
            rest = values[values != end]
            if len(rest) >= max(LEAST_REST, len(values) / 1.5) and _stands_out(end, values, rest):
                found.append(end)
                values = rest
    return found


def _stands_out(end: float, values: Array, rest: Array) -> bool:
    low, high = float(rest.min()), float(rest.max())
    if low >= 0 and high < end <= 1:  # probabilities are near 0 for most samples, and near 1 for some
        return False
    gap = low - end if end < low else end - high
    is_whole = end.is_integer()
    is_usual = is_whole and bool(USUAL.fullmatch(str(abs(int(end)))))
    if is_usual and (end < 0 <= low or (gap > high - low and _is_mark(end, values, rest))):
        return True
    return (is_whole or (values == end).sum() > 2) and high > low and gap > FAR * (high - low)


def _is_mark(end: float, values: Array, rest: Array) -> bool:
    """Return whether a usual number is a mark wherever it lies: a negative one, a large one, or many zeros."""
    if end < 0:
        return True
    return float(np.ptp(rest)) > 0 and (end > 10 or (end == 0 and len(values) > len(rest) + 1))


def _without_failed(values: Array) -> Array:
    return values[~np.isin(values, failed(values))]


def _say_failed(judge: str, columns: Mapping[str, Array]) -> Iterator[str]:
    by_value: dict[float, list[str]] = {}
    for name, column in columns.items():
        for value in failed(column):
            by_value.setdefault(value, []).append(f"{plural(int((column == value).sum()), 'sample')} of {name}")
    rest = np.concatenate([_without_failed(column) for column in columns.values()])
    for value, places in by_value.items():
        yield (
            f"{join_words(places)} have {judge} {figure(value)}, and all others lie from {figure(float(rest.min()))} "
            f"to {figure(float(rest.max()))}: if it stands for a failed call, leave the cell empty"
        )


def _say_scales(judge: str, columns: Mapping[str, Array]) -> Iterator[str]:
    """Yield that two models, or samples of one, have scores of unlike size."""
    ranges = {}
    for name, column in columns.items():
        sizes = np.abs(column[column != 0])
        same_sign = len(column) and max((column >= 0).mean(), (column <= 0).mean()) >= CENTRAL[1]
        if len(sizes) > 1 and same_sign:
            ranges[name] = (*np.quantile(sizes, CENTRAL).tolist(), float(np.median(sizes)))
            yield from _say_mixed(judge, name, sizes)
    if len(ranges) < 2:
        return
    least, most = (end(ranges, key=lambda model: ranges[model][2]) for end in (min, max))
    (low, high, middle), (start, end, typical) = ranges[least], ranges[most]
    # Within parts of 1, a model may well err ten times as often as another.
    if start > high and typical > 1 and typical > (APART if high <= 1 else FAR_APART) * middle:
        yield (
            f"{judge} may have two scales: {least} has {figure(low, '.3g')} to {figure(high, '.3g')} and {most} "
            f"{figure(start, '.3g')} to {figure(end, '.3g')}, {typical / middle:,.0f} times as much: bring them to one"
        )


def _say_mixed(judge: str, name: str, sizes: Array) -> Iterator[str]:
    """Yield that scores of one model fall into two groups whose sizes differ by a factor of 10 and more.

    `sizes` are the absolute values of its scores that are not 0, shape (n,).
    """
    ordered = np.sort(sizes)
    ratios = ordered[1:] / ordered[:-1]
    place = int(ratios.argmax())
    part = (place + 1) / len(ordered)
    # Probabilities may lie near 0 and near 1: two scales have a part beyond 1.
    if ratios[place] >= 10 and 0.1 <= part <= 0.9 and len(ordered) >= 2 * LEAST_REST and ordered[place + 1] > 1:
        ends = [figure(size, ".3g") for size in (ordered[0], ordered[place], ordered[place + 1], ordered[-1])]
        yield (
            f"{judge} of {name} may have two scales: {ends[0]} to {ends[1]} in {plural(place + 1, 'sample')}, and "
            f"{ends[2]} to {ends[3]} in {len(ordered) - place - 1:,}: bring them to one"
        )
