"""Looks of whole sets as a page shows them first: pictures with the look next to pictures of the other set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.comparison.direction import Direction
from finc_eval.comparison.result import Comparison
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import look_finding
from finc_eval.findings.local import PartOfSet
from finc_eval.naming.evidence import SLIGHT
from finc_eval.naming.looks import Look
from finc_eval.naming.traits import measured_words
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.partitions.kind import Kind
from finc_eval.prompts.result import Word
from finc_eval.report.cards import CardView, Grid, Seen
from finc_eval.report.colors import PAIR, Ink
from finc_eval.report.drawings import heat_map, spread
from finc_eval.report.formats import p_value

WHERE = "A frame marks the window of the middle square, which the network sees, that shows it most."
"""Legend of pictures with heat maps."""

STEPS = "The small drawing: each step has as many samples of both sets together; a set that is higher has more there. "
"""Legend of the drawing of how the trait of a look is spread."""

LOOKS = ("look", "repeat", "column", "part", "sets", "drift")  # findings whose pictures stand first


class SeenFirst(NamedTuple):
    """Pictures of a page: above the list of kinds in the whole width, before it, and after it."""

    above: Sequence[Seen] = ()
    first: Sequence[Seen] = ()
    later: Sequence[Seen] = ()


def seen_first(comparison: Comparison, titles: tuple[str, str]) -> SeenFirst:
    """Return looks and words of prompts with their pictures, or both sets side by side where nothing was found.

    They stand in the order of the headline: before the list of kinds what is larger than the largest of them.
    """
    if comparison.by_id:  # looks of two runs are judged by their margins
        return SeenFirst()
    known = dict(zip(PAIR, titles, strict=True))
    differ: list[Kind | Direction] = [*significant(comparison.kinds, ALPHA), *significant(comparison.directions, ALPHA)]
    words = [] if comparison.prompts is None else comparison.prompts.clear
    drifts = [finding for finding in comparison.findings if finding.kind == "drift"]
    if not (comparison.looks or comparison.parts or words or differ or drifts):
        return SeenFirst(above=_both(comparison, known))
    largest = max((abs(look.share_gen - look.share_ref) for look in differ), default=0.0)
    seen = {SLIGHT if part.at_least is None else part.words: _part(part, known) for part in comparison.parts}
    seen |= {look.name: _look(look, known, comparison.shown) for look in comparison.looks}
    seen |= {finding.name: _drift(finding, known, comparison.shown) for finding in drifts}
    said = [finding for finding in comparison.findings if finding.kind in LOOKS and finding.name in seen]
    shown = [(finding.size, seen[finding.name]) for finding in said]
    return SeenFirst(
        first=[*(_word(word, known) for word in words), *(seen for size, seen in shown if size >= largest)],
        later=[seen for size, seen in shown if size < largest],
    )


def _word(word: Word, titles: Mapping[str, str]) -> Seen:
    views = tuple(
        CardView(PAIR[label], title, "", (Grid("", label, word.sets[label].ids),)) for label, title in titles.items()
    )
    return Seen(f"{word.title}: like {word.became}" if word.became else f"{word.title}: {word.what}", views)


def _look(look: Look, titles: Mapping[str, str], shown: int) -> Seen:
    other = "ref" if look.more_in == "gen" else "gen"
    shares = ("", "") if look.whole else look_finding(look).say_shares()
    which = {look.more_in: "clearest", other: "typical"}
    why = f"Why this name: {measured}. " if (measured := measured_words(look.trait)) else ""
    headings = {
        label: f"{share} {which.get(label, '')}".strip() for label, share in zip(("gen", "ref"), shares, strict=True)
    }
    return Seen(
        f"on average {look.name}" if look.whole else look.name,
        tuple(
            CardView(PAIR[label], titles[label], "", (Grid(headings[label], label, look.examples[label][:shown]),))
            for label in (look.more_in, other)
            if look.examples.get(label)
        ),
        PAIR.get(look.more_in, "other"),
        f"{why}{STEPS * bool(look.spread)}p = {p_value(look.p_value)}, adjusted for all looks",
        look.name,
        draw_spread(look, titles),
    )


def draw_spread(look: Look | Finding, titles: Mapping[str, str], inks: Mapping[str, Ink] = PAIR) -> Markup | str:
    """Draw how the trait of a look is spread in both sets, "gen" and "ref"; "" where that is not known."""
    if look.spread is None:
        return ""
    shares = {inks[label]: (titles[label], look.spread.shares[label]) for label in ("gen", "ref")}
    return spread(f"How {look.trait} is spread in both sets", shares, look.trait)


def _drift(finding: Finding, titles: Mapping[str, str], shown: int) -> Seen:
    """Return the clips that drift most, of the set that has more of them."""
    label = "gen" if finding.is_more else "ref"
    share = finding.say_shares()[not finding.is_more]
    view = CardView(PAIR[label], titles[label], "", (Grid(f"{share} clearest", label, finding.ids[:shown]),))
    assert finding.p_value is not None
    legend = f"p = {p_value(finding.p_value)}, adjusted for all that clips do over time"
    return Seen(f"{finding.name}{finding.since}", (view,), PAIR[label], legend, finding.name)


def heat_maps(part: PartOfSet) -> dict[str, Markup]:
    """Return the heat maps of the surest pictures that have a part, by id."""
    ink = PAIR[part.owner]
    return {name: heat_map(f"Where in {name}", rows, ink) for name, rows in zip(part.samples, part.heat, strict=False)}


def _part(part: PartOfSet, titles: Mapping[str, str]) -> Seen:
    """Return the surest pictures that have a part, each with its heat map, and pictures of the other set like them."""
    ink, maps = PAIR[part.owner], heat_maps(part)
    other = next(label for label in titles if label != part.owner)
    share = "" if part.at_least is None else f"{part.finding.say_shares(0)[part.side == 'less']}, "
    grids = {
        part.owner: Grid(f"{share}surest", part.owner, part.examples(part.owner), maps=maps),
        other: Grid("most like them", other, part.examples(other)),
    }  # fmt: skip
    where = f"{WHERE} " if maps else ""
    return Seen(
        "pictures that differ most" if part.at_least is None else part.finding.words,
        tuple(CardView(PAIR[label], titles[label], "", (grid,)) for label, grid in grids.items() if grid.ids),
        ink,
        f"{where}p = {p_value(part.p_value)}, adjusted for all that was looked at in parts of pictures",
        part.words,
    )


def _both(comparison: Comparison, titles: Mapping[str, str]) -> list[Seen]:
    """Return samples of both sets drawn at random; none without kinds."""
    ids = {
        label: comparison.drawn_ids(label) or some_of_each(comparison, label)[: 12 * bool(comparison.shown)]
        for label in titles
    }
    if not all(ids.values()):
        return []
    views = (
        CardView(PAIR[label], title, "", (Grid("Drawn at random", label, ids[label]),))
        for label, title in titles.items()
    )
    return [Seen("", tuple(views))]


def some_of_each(comparison: Comparison, label: str) -> Sequence[str]:
    """Return ids of drawn samples of all kinds in turn, the kinds with most samples of a set first."""
    drawn = sorted((kind.shares[label] for kind in comparison.kinds), key=lambda share: -share.share)
    turns = max((len(share.drawn_ids) for share in drawn), default=0)
    return [share.drawn_ids[turn] for turn in range(turns) for share in drawn if turn < len(share.drawn_ids)]
