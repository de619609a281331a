"""The page, the notebook view and the terminal table of sets divided into kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from finc_eval.core.words import figure, join_words, percent, percent_of, predicate, say_whole
from finc_eval.naming.evidence import SLIGHT, UniqueNames
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import ALPHA, BESIDE_ALPHA
from finc_eval.partitions.kind import Kind, top_level
from finc_eval.partitions.kinds import Kinds
from finc_eval.partitions.pages.cards import kinds_on_page
from finc_eval.partitions.pages.map import map_on_page
from finc_eval.partitions.pages.members import write_gallery
from finc_eval.partitions.pages.tables import UNDER, kind_tables, kinds_in_words, mix_tables, value_tables
from finc_eval.report import Page
from finc_eval.report.cards import CardView, Grid, Seen
from finc_eval.report.colors import Ink, inks_of
from finc_eval.report.drawings import spread
from finc_eval.report.exports.outline import NOT_MANY, Outline, call, several, sizes, sources, unreadable
from finc_eval.report.formats import p_value
from finc_eval.report.pages import Section, render
from finc_eval.samples.source import Samples

TITLE = f"Share of each kind in each set ({UNDER.strip()} under a heading)"

HOW = (
    "All samples together were divided into kinds, without regard to which set a sample is from: every sample belongs "
    "to exactly one kind, so the shares of a set add up to 100 %. A kind counts with p ≤ "
    f"{ALPHA}, adjusted for all kinds of the tree and all sets. Kinds that differ in the same way and lie together "
    "stand below a heading. The most typical samples are nearest to the middle of a kind; the members drawn at random "
    "show what most of them look like. Looks, such as blurred or gray, are of each set beside all others "
    "together; repeats are asked by compare."
)


def page(result: Kinds, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    titles = {label: label for label in result.sets}
    table, cards = kinds_on_page(result.kinds, result.headings, titles, result.shown)
    facts: list[tuple[str, object]] = [
        (
            label,
            f"{info.n:,} samples, {info.place}, differs from the others by {percent(difference.value, 1)} "
            f"({_range(difference.interval)}, p {_p(difference.p_value)}; "
            f"p of the means of φ {_p(result.sets_p_values.get(label))})",
        )
        for (label, info), difference in zip(result.sets.items(), result.differences.values(), strict=True)
    ]
    facts.append(("Groups", result.settings.groups or "windows of a video, if there are any"))
    mixes = [Section("mix", table.title, table.legend, table=table) for table in mix_tables(result.kinds, titles)]
    sections = [
        *(Section("values", table.title, table.legend, table=table) for table in value_tables(result.by, titles)),
        Section("modes", "", cards=cards),
        *mixes,
        Section("settings", "Settings and data", facts=facts),
    ]
    gallery, colors = result.gallery_of(samples), inks_of(titles)
    seen = _seen(result, colors)
    drawn = map_on_page(result.map, result.kinds, titles, colors, gallery.pictures)
    return render(
        result, outline(result), gallery, forest=table, map=drawn, sections=sections, colors=colors, seen=seen
    )


def _seen(result: Kinds, colors: Mapping[str, Ink]) -> list[Seen]:
    """Return a card for each look of each set, with its clearest samples and how its trait is spread."""
    cards = []
    for label, look in _looks(result):
        own, other = _shares(look)
        drawing: Markup | str = ""
        if look.spread is not None:
            shares: dict[Ink, tuple[str, Sequence[float]]] = {
                colors[label]: (label, look.spread.shares["gen"]),
                "other": (OTHERS, look.spread.shares["ref"]),
            }
            drawing = spread(f"How {look.trait} is spread in {label} and in all others", shares, look.trait)
        words = "" if look.whole else f"{own}, {OTHERS} {other}, "
        grid = Grid(f"{words}clearest", label, look.examples["gen"][: result.shown])
        name = f"on average {look.name}" if look.whole else look.name
        legend = f"p = {p_value(look.p_value)}, adjusted for all looks and sets"
        view = CardView(colors[label], label, "", (grid,))
        cards.append(Seen(f"{label}: {name}", (view,), colors[label], legend, f"{label}: {look.name}", drawing))
    return cards


def _looks(result: Kinds) -> list[tuple[str, Look]]:
    """Return all looks, each with the label of its set, those of most samples first."""
    found = [(label, look) for label, looks in result.looks.items() for look in looks]
    return sorted(found, key=lambda named: (not named[1].whole, named[1].share_ref - named[1].share_gen))


def _shares(look: Look) -> tuple[str, str]:
    """Return the shares of the set that has a look, and of all others, in words."""
    return percent_of(look.share_gen, look.interval, beyond=look.share_ref), percent_of(look.share_ref, None)


def _say_looks(result: Kinds) -> dict[str, str]:
    """Return the largest looks in a sentence; none without any."""
    said = []
    for label, look in _looks(result)[:NOT_MANY]:
        own, other = _shares(look)
        if look.whole:
            said.append(say_whole(look.name, look.interval, label))
        else:
            said.append(f"{own} of {label} {predicate(look.name)} ({OTHERS} {other})")
    return {"looks": f"{'; '.join(said)}."} if said else {}


def outline(result: Kinds) -> Outline:
    """Return what the kinds say in all outputs."""
    titles = {label: label for label in result.sets}
    return Outline(
        kind=f"{len(result.sets)} sets of samples, divided into kinds",
        title=several(result.sets),
        says=says(result),
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("kinds", sources(result.sets), settings=result.settings),
        tables=[*kind_tables(TITLE, result.kinds, result.headings, titles), *value_tables(result.by, titles)],
        warnings=result.warnings,
        failures=unreadable(result.sets),
        how=HOW,
    )


UNTESTED = "Whether this is more than chance was not tested: a set has too few independent samples."


NO_LOOKS = (
    "Repeats are not looked for here, and looks only in pictures of unpaired sets: compare two sets to find them."
)

NO_REPEATS = "No set looks unlike the others, such as blurred or gray; repeats are not looked for here."

OTHERS = "others"  # all sets but one together


def says(result: Kinds) -> dict[str, str]:
    """Return what was found in a few plain sentences."""
    significant, first = result.significant(ALPHA), top_level(result.kinds, result.headings)
    sides = [
        (word, label, f"{side} in {label}")
        for word, side in (("more", "most"), ("less", "least"))
        for label in result.sets
    ]
    groups = [
        (word, label, count, [kind for kind in first if kind.side == side])
        for word, label, side in sides
        if (count := sum(kind.side == side for kind in significant))
    ]
    examples = _such_as((*result.headings, *result.kinds), [(label, kinds) for _, label, _, kinds in groups])
    sentences = [
        f"{label} has significantly {word} of {kinds_in_words(count)}{few}"
        for (word, label, count, _), few in zip(groups, examples, strict=True)
    ]
    nothing = "No kind is significantly more or less frequent in one set"
    found = {"kinds": f"{'; '.join(sentences) or nothing}."} | _overall(result) | say_missed(result.detectable)
    if said := _say_looks(result):
        return said | found
    return found if sentences else found | {"looks": NO_REPEATS if result.looks else NO_LOOKS}


def _such_as(kinds: Sequence[Kind], groups: Sequence[tuple[str, Sequence[Kind]]]) -> list[str]:
    """Return the clearest named kinds of each group as the end of a sentence; no two read the same."""
    names = UniqueNames(kinds)
    examples = names.examples([[kind for kind in kinds if kind.name] for _, kinds in groups], 2)
    texts = [
        [f"{names.kind(kind)} ({percent(kind.shares[label].share)} of {label})" for kind in few]
        for (label, _), few in zip(groups, examples, strict=True)
    ]
    return [
        f"{':' if len(texts) == len(kinds) else ', such as'} {join_words(texts)}" if texts else ""
        for texts, (_, kinds) in zip(texts, groups, strict=True)
    ]


def _overall(result: Kinds) -> dict[str, str]:
    """Return how different the sets are over all kinds, and whether that is more than chance."""
    value = f"{percent(result.difference, 1)} (95 % interval {_range(result.difference_interval)})"
    p = result.difference_p_value
    if p is not None and p > ALPHA:
        chance = f"Over all kinds together, the difference is within chance (p = {p:.2g}): an estimated {value}."
        return {"overall": chance} | _slight(result)
    most = max(result.differences, key=lambda label: result.differences[label].value)
    text = (
        f"{' and '.join(result.sets)} differ in {value} of their samples"
        if len(result.sets) == 2
        else f"{most} is the most different set: {value} of its samples set it apart from all others"
    )
    tested = {} if p is not None else {"untested": UNTESTED}
    return {"overall": f"{text}{f' (p {p_value(p)})' if p is not None else ''}."} | tested


def _slight(result: Kinds) -> dict[str, str]:
    """Return that the sets differ though no kind does, in a sentence; none if they do not."""
    p = result.sets_p_value
    if p is None or p > BESIDE_ALPHA:
        return {}
    known = {label: p for label, p in result.sets_p_values.items() if p is not None}
    who = "The sets differ" if len(result.sets) == 2 else f"{min(known, key=known.__getitem__)} differs from the others"
    return {"sets": f"{who} all the same (p = {p:.2g}): {SLIGHT}."}


def _p(value: float | None) -> str:
    return "–" if value is None else p_value(value)


def _range(ends: tuple[float, float]) -> str:
    low, high = (figure(100 * end, "z.1f") for end in ends)
    return f"{low} to {high} %"


def say_missed(detectable: float | None) -> dict[str, str]:
    """Return how rare a kind may have been missed, in a sentence; none if that is not known."""
    if detectable is None:
        return {}
    if detectable >= 1:
        few = "The independent samples are too few to show a separate kind of one set alone, whatever its share."
        return {"missed": few}
    share = percent(detectable, 1)
    return {"missed": f"A separate kind that makes up less than {share} of one set alone may have been missed."}


PAGE = Page(says, outline, draw=page, write_gallery=write_gallery)
