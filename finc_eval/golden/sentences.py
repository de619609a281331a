"""Sentences on a night: the verdict with its causes, and what else a person must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from finc_eval.core.words import figure, join_first, join_words, plural
from finc_eval.golden.floor import Floor
from finc_eval.golden.judging import AgainstPast, JudgedNight
from finc_eval.golden.measured import MeasuredPair
from finc_eval.golden.nights import LEAST_PAST
from finc_eval.golden.pictures import Matched

NAMED = 5  # ids that a sentence names

CALLED = {
    "psnr": "PSNR",
    "ssim": "SSIM",
    "structure": "structure",
    "thumb": "thumbnails",
    "light": "light",
    "red_blue": "red less blue",
    "detail": "detail",
}
"""Measures in words."""

ROWS = {2: "two", 3: "three"}


def tell_night(
    floor: Floor, matched: Matched, tonight: Sequence[MeasuredPair], judged: JudgedNight, verdict: str, name: str
) -> dict[str, str]:
    """Return what is said of a night, by key, the verdict first; `name` is one for what is wrong with most pairs."""
    is_broken = any(pair.is_broken for pair in tonight)
    causes = _broken(tonight, name) if is_broken else _causes(tonight, judged, verdict, matched.missing)
    told = {"verdict": f"{verdict.capitalize()}: {'; '.join(causes)}."}
    if matched.missing and verdict != "amber":
        told["missing"] = f"{_pictures(matched.missing, 'golden picture')} without a picture of tonight."
    if matched.additional:
        told["additional"] = f"{_pictures(matched.additional, 'picture')} without a golden picture, and not judged."
    if judged.renewed:
        these = "its history begins" if len(judged.renewed) == 1 else "their histories begin"
        told["renewed"] = f"{_pictures(judged.renewed, 'golden picture')} not that of the nights before: {these} anew."
    for number, gone in enumerate(judged.gone):
        psnr = [float(np.mean([row.values[0] for row in floor.nights[number].rows.values() if row.values is not None]))
                for number in gone.nights.tolist()]  # fmt: skip
        told[f"gone {number}"] = (
            f"A state of {plural(len(psnr), 'night')} (PSNR {_range(min(psnr), max(psnr))}) has not been seen for "
            f"{plural(gone.since, 'night')}."
        )
    for name, since in judged.machines.items():
        told[f"machine {name}"] = f"Machine {name} has not been seen for {plural(since, 'night')}."
    return told | {f"line {number}": note for number, note in enumerate(floor.notes)}


def _pictures(ids: Sequence[str], thing: str) -> str:
    return f"{plural(len(ids), thing)} ({join_first(ids, NAMED)}) {'is' if len(ids) == 1 else 'are'}"


def _causes(
    tonight: Sequence[MeasuredPair], judged: JudgedNight, verdict: str, missing: Sequence[str]
) -> Iterator[str]:
    """Yield the causes of a verdict on a night whose pairs show what they should."""
    stood = {pair.id: against for pair, against in zip(tonight, judged.pairs, strict=True) if against is not None}
    if judged.mean is not None:
        stood = {f"all {len(tonight)} pairs": judged.mean} | stood
    if verdict == "green":
        yield _as_before(tonight, judged)
        return
    for light in ("red", "amber"):
        shown = [name for name, stands in stood.items() if stands.verdict == light]
        if not shown:
            continue
        is_all = judged.mean is not None and judged.mean.verdict == light
        first = stood[shown[0]]
        yield _beyond(shown[0] if is_all else join_first(shown, NAMED), len(shown) == 1 or is_all, first)
        break
    else:
        if unclear := [pair.id for pair in tonight if pair.shows == "unclear"]:
            yield f"{_pictures(unclear, 'pair')} not recognized, and too few nights are known to tell"
    if missing and verdict == "amber":
        yield f"{_pictures(missing, 'golden picture')} without a picture of tonight"


def _beyond(who: str, is_one: bool, standing: AgainstPast) -> str:
    """Return how pairs stand against the nights before."""
    be = "lies" if is_one and not who.startswith("all ") else "lie"
    nights = plural(standing.known, "night")
    usual = "" if standing.usual is None else f"; nights so far {_range(*standing.usual)}"
    numbers = f"PSNR {standing.psnr:.1f} dB{usual}"
    names = [] if "psnr" in standing.beyond else [CALLED[name] for name in standing.beyond]
    where = f", by {join_words(names)}" if names else ""
    if standing.verdict == "amber":
        return (
            f"a new state or a change: {who} {be} beyond the {nights} so far{where} ({numbers}): accept it, or wait "
            "for another night"
        )
    if standing.beyond and standing.row > 1:
        row = f", {ROWS.get(standing.row, str(standing.row))} nights in a row"
        return f"{who} {be} beyond the {nights} so far{where} ({numbers}){row}"
    change = "have" if not is_one or who.startswith("all ") else "has"
    p = figure(standing.p, ".2g")
    return f"{who} {change} changed, by ranks among the {nights} so far (p = {p} tonight; {numbers})"


def _as_before(tonight: Sequence[MeasuredPair], judged: JudgedNight) -> str:
    """Return what is said of a green night."""
    known = min(standing.known for standing in judged.pairs if standing is not None)
    pairs = plural(len(tonight), "pair")
    if known < LEAST_PAST:
        shows = "shows" if len(tonight) == 1 else "show"
        nights = f"{plural(known, 'night')} so far, and small changes are seen from {LEAST_PAST} on"
        return f"{pairs} {shows} the same; {nights}"
    standing = judged.mean or next(against for against in judged.pairs if against is not None)
    usual = "" if standing.usual is None else f"; nights so far {_range(*standing.usual)}"
    return f"{pairs} as in the {plural(known, 'night')} so far (PSNR {standing.psnr:.1f} dB{usual})"


def _range(low: float, high: float) -> str:
    return f"{low:.1f} to {high:.1f}"


def _broken(tonight: Sequence[MeasuredPair], name: str) -> Iterator[str]:
    """Yield what broken pairs show, by one name if there is one, or each cause once, the most frequent first."""
    bad = [pair for pair in tonight if pair.is_broken]
    if name and len(tonight) > 1:
        yield name if len(bad) == len(tonight) else f"{name} ({join_first([pair.id for pair in bad], NAMED)})"
        return
    for phrase, count in Counter(pair.phrase for pair in bad).most_common():
        ids = [pair.id for pair in bad if pair.phrase == phrase]
        yield f"{join_first(ids, NAMED) if count == 1 else f'each of {join_first(ids, NAMED)}'} {phrase}"
