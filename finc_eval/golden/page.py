"""The outputs of a night: its pairs with their pictures, a curve of each pair over the nights, and a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from finc_eval.core.words import figure
from finc_eval.gallery.thumbnails import Thumbnail, side_by_side
from finc_eval.golden.result import GoldenPair, Light, Night, SeenNight
from finc_eval.report import Page
from finc_eval.report.colors import Ink
from finc_eval.report.drawings import Axis, drawing, line, mark, text
from finc_eval.report.exports.markdown import escape, paragraph
from finc_eval.report.exports.outline import Cell, Outline, TextTable
from finc_eval.report.formats import printable
from finc_eval.report.pages import Section, render

MARKER = "<!-- finc-eval golden -->"  # line of a comment by which a pipeline finds the comment of its last night
MAX_COMMENT = 60_000  # bytes of a comment: GitHub takes 65,536 characters
PICTURED = 40  # pairs that a page and a comment show with pictures and curves, the most urgent first
CURVE_WIDTH, CURVE_HEIGHT, CURVE_LEFT, CURVE_EDGE = 520, 110, 60, 22  # pixels of a curve, and around it

URGENCY: tuple[Light, ...] = ("red", "amber", "green")
MEASURED = {
    "psnr": ("PSNR, dB", ".1f"),
    "ssim": ("SSIM", ".4f"),
    "structure": ("Structure", ".4f"),
    "thumb": ("Thumbnails", ".4f"),
    "light": ("Light", "+.1f"),
    "red_blue": ("Red − blue", "+.1f"),
    "detail": ("Detail", "+.3f"),
}
"""Heading of each measure, and how it is written."""

HOW = (
    "What a picture shows is judged by itself, from the first night on. From 8 nights on, a pair is amber that lies "
    "beyond all known nights by several times what the farthest of these is from its nearest; the same again is red, "
    "from 20 nights on on the second night and before on the third. Ranks among the nearest nights are uniform while "
    "nothing changes, whatever states an engine has; bets against them are red in at most about 5 % of years of 100 "
    "nights. Light and red − blue are changes in steps of 1/255; detail is the logarithm of how much finer the picture "
    "is; thumbnails are compared at 16 × 16 pixels."
)


def says(result: Night) -> Mapping[str, str]:
    """Return what was found, in a sentence or two by key."""
    return result.told


def outline(result: Night) -> Outline:
    """Return what the night says in all outputs."""
    where = "" if result.machine is None else f" on {result.machine}"
    columns = ["Pair", "Verdict", "What it shows", *(heading for heading, _ in MEASURED.values()), "Rank", "Nights"]
    return Outline(
        kind="golden pictures",
        title=f"Golden pictures{where}, {result.night}",
        says=result.told,
        sets={"gen": len(result.pairs), "ref": len(result.pairs)},
        signatures=[],
        call='fe.Golden("floor.jsonl").add(gen, ref)',
        tables=[
            TextTable(
                "Pairs",
                columns,
                [[pair.id, pair.verdict, pair.sentence, *_numbers(pair)] for pair in by_urgency(result)],
                words=["Verdict", "What it shows"],
                legend="Rank: p-value of tonight among the nights before. Nights: those that are known.",
            ),
            TextTable("Nights", ["Night", "Machine", "Verdict"], _nights(result.history), words=["Machine", "Verdict"]),
        ],
        how=HOW,
    )


def by_urgency(result: Night) -> list[GoldenPair]:
    """Return the pairs, red pairs first."""
    return sorted(result.pairs, key=lambda pair: URGENCY.index(pair.verdict))


def _numbers(pair: GoldenPair) -> list[str]:
    measured = [
        figure(pair.numbers[name], form) if name in pair.numbers else "–" for name, (_, form) in MEASURED.items()
    ]
    return [*measured, figure(pair.p, ".3f"), f"{pair.known:,}"]


def _nights(history: Sequence[SeenNight]) -> list[list[Cell | str]]:
    # 30: nights that a table has.
    return [[night.night, night.machine or "–", night.verdict] for night in history[: -30 - 1 : -1]]


def page(result: Night, _: Mapping[str, Any]) -> str:
    """Return the page: the pairs with their pictures, and the curve of each over the nights."""
    said = outline(result)
    pairs, nights = said.tables
    shown = by_urgency(result)[:PICTURED]
    curves = Markup("").join(_curve(result, pair) for pair in shown)
    sections = [
        Section("pairs", pairs.title, table=pairs, legend=pairs.legend),
        *_pictures(result, shown),
        Section("curves", "PSNR of each pair by night", figure=curves),
        Section("nights", nights.title, table=nights),
    ]
    return render(result, said, sections=sections)


def _pictures(result: Night, shown: Sequence[GoldenPair]) -> list[Section]:
    """Return the pictures of the pairs, the golden picture first."""
    cell = Markup('<td><img src="{}" width="{}" height="{}" alt="{}"></td>')
    rows = [
        Markup("<tr><th>{}</th>{}</tr>").format(
            printable(pair.id),
            Markup("").join(
                cell.format(small.uri, small.width, small.height, printable(f"{pair.id}, {when}"))
                for when, small in zip(("golden", "tonight"), thumbnails, strict=False)
            ),
        )
        for pair in shown
        if (thumbnails := result.pictures.get(pair.id))
    ]
    if not rows:
        return []
    head = Markup("<tr><th></th><th>golden</th><th>tonight</th></tr>")
    return [Section("pictures", "Pictures", view=Markup("<table>{}{}</table>").format(head, Markup("").join(rows)))]


def _curve(result: Night, pair: GoldenPair) -> Markup:
    """Draw the PSNR of a pair over the nights, with a mark on each night that was not green."""
    known = [(number, night.psnr[pair.id]) for number, night in enumerate(result.history) if pair.id in night.psnr]
    if not known:
        return Markup("")
    ends = sorted({value for _, value in known})
    across = Axis(0, max(len(result.history) - 1, 1), CURVE_LEFT, CURVE_WIDTH - CURVE_EDGE)
    up = Axis(ends[0], ends[-1], CURVE_HEIGHT - CURVE_EDGE, CURVE_EDGE)
    parts = [line([(across.at(number), up.at(value)) for number, value in known], "ref", width=1.5)]
    for number, value in known:
        night = result.history[number]
        if night.verdict != "green" or len(known) == 1:
            ink: Ink = "gen" if night.verdict == "red" else "other"
            parts.append(
                mark(ink, (across.at(number), up.at(value)), f"{night.night}: {night.verdict}, {value:.1f} dB")
            )
    parts += [text((CURVE_LEFT - 4, up.at(value) + 4), f"{value:.1f}", anchor="end") for value in {ends[0], ends[-1]}]
    first, last = (result.history[number].night[:10] for number in (0, -1))
    parts += [
        text((CURVE_LEFT, CURVE_HEIGHT - 6), first, anchor="start"),
        text((CURVE_WIDTH - CURVE_EDGE, CURVE_HEIGHT - 6), last, anchor="end"),
    ]
    parts.append(text((CURVE_LEFT, 14), pair.id, anchor="start"))
    said = f"From {known[0][1]:.1f} to {known[-1][1]:.1f} dB in {len(known)} nights"
    return drawing(f"PSNR of {pair.id}", said, (CURVE_WIDTH, CURVE_HEIGHT), parts)


def comment(result: Night, stem: str) -> tuple[str, dict[str, bytes]]:
    """Return a comment in Markdown, and the pictures that it shows, by the names of files beside it.

    Each pair has a line, with its golden picture and that of tonight side by side.
    """
    pictures: dict[str, bytes] = {}
    lines = [f"<!-- finc-eval: {result.mark} -->", MARKER, f"### {escape(result.sentence)}", ""]
    lines += ["| Pair | Golden, tonight | What it shows | PSNR, dB |", "|---|---|---|---|"]
    for number, pair in enumerate(by_urgency(result), 1):
        thumbnails: tuple[Thumbnail, ...] = result.pictures.get(pair.id, ()) if number <= PICTURED else ()
        strip, name = side_by_side(thumbnails), f"{stem}-{number}.png"
        pictures |= {} if strip is None else {name: strip}
        shown = "" if strip is None else f"![golden, tonight]({name})"
        psnr = figure(pair.numbers.get("psnr"), ".1f")
        lines.append(f"| {escape(pair.id)} | {shown} | {pair.verdict}: {escape(pair.sentence)} | {psnr} |")
    where = "" if result.machine is None else f" on {result.machine}"
    lines += ["", paragraph(f"Night {result.night}{where}, {len(result.history)} nights in the history.")]
    size, kept = 0, []
    for one_line in lines:
        size += len(one_line.encode()) + 1
        kept += [one_line] if size < MAX_COMMENT else []
    return "\n".join(kept) + "\n", pictures


PAGE = Page(says, outline, draw=page)
