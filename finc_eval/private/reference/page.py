"""Scores against a private sketch, private sketches and ledgers: their pages and terminal tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import copysign, floor, log10
from typing import Any

from finc_eval.core.words import figure, percent
from finc_eval.numerics.inference import ALPHA
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.dp.ledger import Ledger
from finc_eval.private.reference.result import PrivateComparison, PrivateScore
from finc_eval.private.reference.sketch import PrivateSketch
from finc_eval.report import Page
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, several
from finc_eval.report.formats import p_value
from finc_eval.report.pages import draw_intervals, scale
from finc_eval.report.terminal import print_table, wrap

PrivateResult = PrivateScore | PrivateComparison

MAX_IDENTIFIER = 20
"""Longest name of a data set that is shown whole; digests are longer and are shown by their first 12 characters."""

MAX_DIGESTS_SHOWN = 3  # digests of a data set that a row shows: as many as a set of images has

SCORES = "Distance from the private records"
PAIRS = "Who is nearer: paired differences"
PARTS = "Which moments are wrong"

LEGENDS = {
    PAIRS: "Differences of two scores, in which most of the noise cancels. p-values are adjusted for all pairs; rows "
    f"above {ALPHA} are gray.",
    PARTS: "Degree 0 is about how far samples are from the center, 1 about means, 2 about variances and correlations. "
    "The parts of a generator add to its MMD². Rows whose interval reaches zero are gray.",
}


NEIGHBORS = {"replace": "one record replaced", "zero-out": "one record left out, of a public number"}
"""Words for the adjacencies."""

PROMISES: dict[str, Callable[[Guarantee], str]] = {
    "Guarantee": lambda guarantee: f"({guarantee.epsilon:g}, {guarantee.delta:g})-DP, {NEIGHBORS[guarantee.adjacency]}",
    "AUC": lambda guarantee: f"≤ {guarantee.ceilings.auc:.3f}",
    "Advantage": lambda guarantee: f"≤ {guarantee.ceilings.advantage:.3f}",
    "True positives at 1 %": lambda guarantee: f"≤ {percent(guarantee.ceilings.tpr_at_1_percent, 1)}",
    "at 0.1 %": lambda guarantee: f"≤ {percent(guarantee.ceilings.tpr_at_01_percent, 2)}",
}
"""Columns of a table of guarantees: what an attacker reaches at most."""

PROMISED = (
    "Upper limits of an attacker who knows all other records and must decide whether this record was among them, "
    "whatever is done with the release."
)

HOW = (
    "MMD² is the squared distance between the mean features of a generator and of the private records. It is 0 if the "
    "kernel cannot distinguish them, and grows with their difference. Noise was added to the mean of the records "
    "before it was published. The estimate is unbiased, so it may be below zero. The interval covers noise, private "
    "records and generated samples. Real data: what as many samples of the records' own law get at most, with the same "
    "confidence."
)


def _number(value: float, digits: int) -> str:
    return figure(value, f".{digits}e")


def interval_text(ends: tuple[float, float]) -> str:
    """Return the ends of an interval."""
    return f"[{_number(ends[0], 2)}, {_number(ends[1], 2)}]"


def outline(result: PrivateResult) -> Outline:
    """Return what a score or a comparison says in all outputs."""
    scores = scores_of(result)
    gens = "{" + ", ".join(f"{score.name!r}: …" for score in scores) + "}"
    made = ("score", "gen", f"name={scores[0].name!r}") if isinstance(result, PrivateScore) else ("compare", gens)
    if isinstance(result, PrivateComparison) and result.yardstick is not None:
        made = (*made, f"yardstick={result.yardstick!r}")
    ranked = (result,) if isinstance(result, PrivateScore) else result.generators
    return Outline(
        kind="scores against a private sketch",
        title=f"{several(score.name for score in ranked)} against a private reference",
        says=says(result),
        sets={score.name: score.n for score in scores} | {"private reference": None},
        signatures=[result.signature],
        call=call('privacy.PrivateSketch.load("ref.h5").' + made[0], *made[1:]),
        tables=[*_tables(result), promises(result.guarantees)],
        details=[
            *(f"Guarantee: {guarantee}." for guarantee in result.guarantees),
            "Scoring reads only what was released, so it does not weaken the guarantee. A generator that was trained "
            "on this reference fits its noise and scores too well; no score can detect that.",
        ],
        warnings=tuple(dict.fromkeys(note for score in scores for note in score.notes)),
        how=HOW,
    )


def show_sketch(path: str, sketch: PrivateSketch) -> None:
    """Print the contents and the guarantees of a private sketch on standard output."""
    transform, phi = sketch.transform, sketch.feature_map
    print(f"{path}: private sketch of {sketch.m} records, {sketch.space}, {sketch.size} features")
    print(*wrap(f"transform {transform.digest[:12]}: {transform.origin}"), sep="\n")
    fields = dict(phi.signature())
    print(f"features: {phi.kind} {fields['order']}, length scale {fields['sigma']}, radius {transform.radius:.4g}")
    if sketch.classes is not None:
        print(f"classes: {', '.join(sketch.classes)}")
    print(f"noise {sketch.noise:.4g} on every feature")
    for release in sketch.releases:
        said = f"{release.m} records, sensitivity {release.sensitivity:.4g}: {release.guarantee}"
        print(*wrap(said), sep="\n")
        if (video := release.of_video) is not None:
            print(f"a record is a window, and a video has up to {release.windows} of them. To a whole video: {video}")


def show_ledger(ledger: Ledger) -> None:
    """Print the spent and the remaining budget of each data set on standard output."""
    budget = ledger.budget
    rows = []
    for account in ledger.accounts():
        names = [name for name in account.data if len(name) < MAX_IDENTIFIER]
        digests = [name[:12] for name in account.data if len(name) >= MAX_IDENTIFIER]
        more = len(digests) - MAX_DIGESTS_SHOWN
        named = ", ".join([*names, *digests[:MAX_DIGESTS_SHOWN], *([f"… {more} more"] if more > 0 else [])])
        epsilons = [f"{account.epsilon_spent:.4g}", f"{account.epsilon_left:.4g}"]
        rows.append([named, str(len(account.releases)), *epsilons])
    print_table("", ["data set", "releases", "epsilon spent", "epsilon left"], rows)
    print(f"budget of each data set: epsilon {budget.epsilon:g}, delta {budget.delta:g}, {budget.adjacency} adjacency")


def promises(guarantees: Iterable[Guarantee]) -> TextTable:
    """Return the table of guarantees: what an attacker reaches at most."""
    return TextTable.of("What is promised to each private record", PROMISES, guarantees, legend=PROMISED)


def scores_of(result: PrivateResult) -> tuple[PrivateScore, ...]:
    """Return the scores, the nearest first."""
    return (result,) if isinstance(result, PrivateScore) else result.scores


def _tables(result: PrivateResult) -> Iterator[TextTable]:
    """Yield the tables of estimates that have rows: scores, pairs, parts."""
    real = None if isinstance(result, PrivateScore) else result.yardstick
    distances, *parts = distance_tables(scores_of(result), real)
    yield distances
    if isinstance(result, PrivateComparison) and result.pairs:
        columns = ["Nearer", "Farther", "Difference", "Standard error", "Interval", "Adj. p"]
        names = [[_titled(pair.first, real), _titled(pair.second, real)] for pair in result.pairs]
        pairs = [(both, pair, [p_value(pair.p_value)]) for both, pair in zip(names, result.pairs, strict=True)]
        yield _table(PAIRS, columns, pairs, [pair.p_value > ALPHA for pair in result.pairs])
    yield from parts


def _titled(name: str, real: str | None) -> str:
    return f"{name} (real samples)" if name == real else name


def distance_tables(scores: Sequence[PrivateScore], real: str | None = None) -> Iterator[TextTable]:
    """Yield the table of scores and the table of their parts, if there are any; `real` names the real samples."""
    columns = ["Set", "Samples", "MMD²", "Standard error", "Interval", "Real data, same size"]
    firsts = [([_titled(score.name, real), f"{score.n:,}"], score, [_real_data(score)]) for score in scores]
    yield _table(SCORES, columns, firsts, [score.name == real for score in scores])
    parts = [(_titled(score.name, real), part) for score in scores for part in (*score.degrees, *score.classes)]
    if parts:
        columns = ["Set", "Part", "Features", "MMD²", "Standard error", "Interval"]
        named = [([name, str(part.name), f"{part.features:,}"], part, list[str]()) for name, part in parts]
        yield _table(PARTS, columns, named, [part.interval[0] <= 0 for _, part in parts])


def _real_data(score: PrivateScore) -> str:
    return "–" if score.by_chance is None else f"up to {_number(score.by_chance, 1)}"


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[list[str], Any, list[str]]], muted: Sequence[bool]
) -> TextTable:
    """Return a table of estimates, each between the texts of its row, with their intervals drawn on one scale.

    The scale has 0, and a round number on its longer side.
    """
    on = scale([0.0, *(end for _, score, _ in rows for end in (*score.interval, score.value))])
    far = max(on.low, on.high, key=abs)
    power = 10.0 ** floor(log10(abs(far))) if far else 1.0
    tick = max((step * power for step in (1, 2, 5) if step * power <= abs(far)), default=0.0)
    cells: list[list[Cell | str]] = []
    for before, score, after in rows:
        text = interval_text(score.interval)
        drawn = draw_intervals(text, text, [("", "", score.value, score.interval, text)], on, [0, copysign(tick, far)])
        cells.append([*before, _number(score.value, 3), _number(score.standard_error, 1), drawn, *after])
    return TextTable(title, columns, cells, words=["Farther", "Part"], muted=muted, legend=LEGENDS.get(title, ""))


def says(result: PrivateResult) -> dict[str, str]:
    """Return what the scores say, in a few sentences."""
    scores, sentences = scores_of(result), {}
    first = scores[0]
    if isinstance(result, PrivateScore):
        value, low, high = (figure(value, ".3g") for value in (first.value, *first.interval))
        sentences["distance"] = (
            f"The MMD² between {first.name} and the private records is estimated as {value}, with an "
            f"interval from {low} to {high}."
        )
        if first.by_chance is not None:
            known = figure(first.by_chance, ".2g")
            sentences["chance"] = f"As many samples of the records' own law would get up to {known} by chance."
        if first.interval[0] <= 0:
            sentences["zero"] = "The interval includes zero: the sketch cannot distinguish the two."
    else:
        sentences |= _ranked(result) if len(result.generators) > 1 else {}
        if result.real is not None and result.generators:
            sentences["real"] = _beside_real(result, result.real)
    sentences["noise"] = f"The noise of the reference alone hides differences below {first.smallest_detected:.2g}."
    return sentences | {"confidence": f"Intervals are at {percent(result.confidence)}."}


def _ranked(result: PrivateComparison) -> dict[str, str]:
    """Return which generator is nearest, and which others are surely farther."""
    first, *others = result.generators
    sentences = {
        "nearest": f"Of {1 + len(others)} generators, {first.name} has the smallest MMD² from the private records."
    }
    names = {score.name for score in others}
    against = [pair for pair in result.pairs if pair.first == first.name and pair.second in names]
    if beaten := [pair.second for pair in against if pair.p_value <= ALPHA]:
        sentences["beaten"] = f"It is significantly nearer than {', '.join(beaten)} (adjusted p ≤ {ALPHA:g})."
    if tied := [pair.second for pair in against if pair.p_value > ALPHA]:
        sentences["tied"] = f"It cannot be distinguished by distance from {', '.join(tied)}."
    return sentences


def _beside_real(result: PrivateComparison, real: PrivateScore) -> str:
    """Return how far the nearest generator is from the private records, beside real samples."""
    first = result.generators[0]
    sure = [
        pair for pair in result.pairs if {pair.first, pair.second} == {first.name, real.name} and pair.p_value <= ALPHA
    ]
    how = "farther" if sure and sure[0].second == first.name else "nearer"
    than = f"significantly {how} than" if sure else "and cannot be distinguished by distance from"
    value, low, high, of_real = (figure(value, ".3g") for value in (first.value, *first.interval, real.value))
    return (
        f"{first.name} is at an MMD² of {value} [{low}, {high}] from the private records, {than} real samples, "
        f"{real.name} ({of_real})."
    )


PAGE = Page(says, outline)
