"""The page, the notebook view and the terminal table of a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from finc_eval.comparison.pages.looks import STEPS, WHERE, draw_spread, heat_maps
from finc_eval.core.words import join_words, percent
from finc_eval.gallery.counts import LEAD_SAMPLES, SHOWN_SAMPLES
from finc_eval.gallery.members import KEPT_OF_IT, Fold, Members, fold_members, pictured_ids
from finc_eval.gallery.pictured import Gallery, read_gallery
from finc_eval.gallery.thumbnails import side_by_side
from finc_eval.gates.limit import FAILED, SETTLED, UNJUDGED, VERBS, Limit
from finc_eval.gates.rule import Verb
from finc_eval.gates.sets import BASELINE, GEN
from finc_eval.gates.verdict import FIRST, ReleaseFinding, Verdict
from finc_eval.partitions.pages.small_maps import maps_of_releases
from finc_eval.report import Page
from finc_eval.report.cards import Cards, CardView, Grid, PageCard, Seen, anchor
from finc_eval.report.colors import PAIR, Ink
from finc_eval.report.drawings import Axis, Drawn, forest, forest_scale
from finc_eval.report.exports.markdown import escape, paragraph
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, sizes, source, unreadable
from finc_eval.report.pages import Section, render
from finc_eval.same_ids.page import id_tables
from finc_eval.samples.source import Samples

COLUMNS = ["Limit", "Verdict", "Value", "Interval", "Allowed", "Seen from", "Samples to decide"]
"""Columns of a table of limits."""

PICTURES = "Pictures: the set with most of a kind."

OF_LIMITS = (
    "A value is what the limit measures, and not the share of the cause: appearance.part counts the samples that look "
    "more so than 95 % of the reference, and kinds.lose the part of a kind of the reference that was lost."
)
"""Legend of the limits that failed, beside causes with their shares."""

SAME = "More limits that failed for the same"  # title of the limits that a page folds under their causes

SORTS = {"": "urgency", "name": "name"}  # values to sort limits by

MARKER = "<!-- finc-eval gate -->"  # line of a comment by which a pipeline finds the comment of its last run
PICTURED = 8  # findings that a comment and a page show, with pictures
MAX_COMMENT = 60_000  # bytes of a comment: GitHub takes 65,536 characters

HOW = (
    "A limit held if all of its interval is within what is allowed, improved if all of it is also better than no "
    "change, and regressed if all of it is beyond. A node of a tree, or a look, also regressed if it surely changed "
    "and its estimate is beyond what is allowed. Everything else is undecided, with the number of samples of each "
    'generated set that would decide it. "Seen from" is the true value that this run would have called a regression '
    "with probability 0.8. Limits on kinds say which part of its share a kind has lost since the baseline, or which "
    "share of samples a kind has gained that the reference lacks."
)


def page(result: Verdict, samples: Mapping[str, Samples]) -> str:
    """Return the page: limits that did not hold come first, with their samples."""
    said, sections = outline(result), list[Section]()
    for table in said.tables:
        if table.title == SAME:  # folded under their causes
            part = Section("", f"{table.title}: {len(table.rows)}", table=table)
            sections[-1] = replace(sections[-1], parts=[part])
        else:
            sections.append(Section(table.title.split()[-1], table.title, table=table))
    for table in _tables(result, {"What held": SETTLED}):
        sections.append(
            Section("held", table.title, texts=[result.held], parts=[Section("", "Each of them", table=table)])
        )
    sections += [*_map(result), *_cards(result)]
    shared = f", shared by {result.policy.interim} runs" if result.policy.interim > 1 else ""
    facts = [*result.sets.items(), ("Noise covered", result.noise), ("α", f"{result.policy.alpha:g}{shared}")]
    sections.append(Section("settings", "Settings and data", facts=facts))
    colors = {label: PAIR.get(label, "other") for label in said.sets}
    pictures, seen = gallery(result, samples), _seen(result)
    return render(result, said, pictures, sections=sections, colors=colors, seen=seen, folds=_folds(result))


def _cards(result: Verdict) -> list[Section]:
    """Return a section with the limits on kinds; those that held, or whose cause is said above, are folded."""
    pictured, seen = _choose_pictured(result), {finding.name for finding in result.findings[:PICTURED]}
    scale = forest_scale(share for limit in result.limits for share in limit.shares.values())
    shown: list[PageCard] = []
    folded: list[PageCard] = []
    for limit in result.by_urgency:
        if limit.shares:
            is_said = limit.verdict in SETTLED or result.name_of(limit) in seen
            (folded if is_said else shown).append(_card(result, limit, scale, limit in pictured))
    if not shown and not folded:
        return []
    cards = Cards(
        shown,
        folded,
        "All others held, or are said above by their cause.",
        {verb: verb for verb in VERBS if verb not in SETTLED},
        SORTS,
        "limits",
        "on kinds that did not hold",
        "said above by their cause, or held",
    )
    return [Section("modes", "", cards=cards)]


def _map(result: Verdict) -> list[Section]:
    """Return the map of the reference with the release and its baseline, as a section; none without a map."""
    found = result.map
    if found is None:
        return []
    legend = (
        "Places are those of the kinds of the reference, and stay where they are: the pages of all releases that are "
        f"judged by these kinds (digest {found.digest[:12]}) can be laid side by side. A cell is the larger, the more "
        "of the set lies there. What surely changed since the baseline is in color: filled if it is more, and empty if "
        "it is less."
    )
    rows: list[list[Cell | str]] = [
        [change.title, percent(change.before, 1), percent(change.share, 1)] for change in found.changes
    ]
    table = TextTable("What surely changed", ["Kind", "Before", "Now"], rows, names=["Kind"])
    parts = [Section("", "As a table", table=table)] if rows else []
    return [Section("map", "On the map of the reference", legend, maps=maps_of_releases(found), parts=parts)]


def _seen(result: Verdict) -> list[Seen]:
    """Return the findings that have samples, each with those of the release next to those of its baseline."""
    old = _baselines(result)[:1]
    parts = {part.words: part for part in result.parts}
    found = []
    for finding in result.findings[:PICTURED]:
        part = parts.get(finding.name)
        views = []
        for label, when in zip((GEN, *old), _times(finding), strict=False):
            maps = heat_maps(part) if part is not None and (part.side == "more") == (label == GEN) else {}
            grid = Grid(when, label, finding.examples.get(label, ())[:SHOWN_SAMPLES], maps=maps)
            views.append(CardView(PAIR.get(label, "other"), label, "", (grid,)))
        heading = f"{_standing(result, finding)}{finding.text.partition(' (')[0]}"  # the headline has the numbers
        ink: Ink = "other" if _standing(result, finding) else "gen"
        legend = f"{WHERE * bool(part and part.heat)}{STEPS * bool(finding.spread)}".strip()
        drawing = draw_spread(finding, {"gen": GEN, "ref": old[0]}) if old else ""
        seen = Seen(heading, tuple(views), ink, legend, finding.name, drawing)
        found += [seen] * bool(finding.examples)
    return found


def _standing(result: Verdict, finding: ReleaseFinding) -> str:
    """Return how a finding stands that broke no limit, before its words; "" for a finding that did."""
    if finding.limit is None:
        return "Not limited: "
    limit = next((each for each in result.limits if each.name == finding.limit), None)
    if limit is None or limit.verdict not in (*FAILED, *SETTLED):
        return "Undecided: "
    if limit.verdict in FAILED:
        return ""
    is_beyond = limit.value is not None and limit.value > limit.margin and limit.harm == "high"
    return "Not surely beyond its limit: " if is_beyond else "Within its limit: "


def _times(finding: ReleaseFinding) -> tuple[str, str]:
    """Return what is said of the samples of a release, and of its baseline: their shares, and when."""
    if finding.share_gen is None or finding.share_ref is None:
        return "now", "before"
    if finding.shares is None:
        return f"{percent(finding.share_gen, 1)} now", f"{percent(finding.share_ref, 1)} before"
    own, before = finding.say_shares(1)
    return f"{own} now", f"{before} before"


def gallery(result: Verdict, samples: Mapping[str, Samples]) -> Gallery:
    """Return pictures of the samples of the limits on kinds."""
    shown = {
        label: [id for limit in _choose_pictured(result) for id in limit.examples.get(label, ())[:SHOWN_SAMPLES]]
        for label in result.sets
    }
    for finding in result.findings[:PICTURED]:
        for label, ids in finding.examples.items():
            shown.setdefault(label, []).extend(ids[:SHOWN_SAMPLES])
    if result.by_id is not None:
        for label in (GEN, _baselines(result)[0]):
            shown[label] += result.by_id.shown()
    return read_gallery(result.sets, shown, samples, small=pictured_ids(_folds(result)))


def _folds(result: Verdict) -> dict[str, Fold]:
    """Return what cards have folded: samples that findings keep, and those of limits on kinds."""
    lists = []
    for finding in result.findings[:PICTURED]:
        labels = finding.sets_with_it([label for label in result.sets if label in finding.examples])
        kept = {label: finding.examples[label] for label in labels}
        lists.append(Members(finding.name, finding.text, KEPT_OF_IT, kept))
    lists += [Members(limit.name, limit.name, KEPT_OF_IT, limit.examples) for limit in _choose_pictured(result)]
    return fold_members(lists, {label: label for label in result.sets})


def _choose_pictured(result: Verdict) -> list[Limit]:
    # 30: largest number of limits, by urgency, that a page shows with samples.
    return [limit for limit in result.by_urgency if limit.examples][:30]


def _card(result: Verdict, limit: Limit, scale: Axis, with_samples: bool) -> PageCard:
    ink: dict[str, Ink] = {label: PAIR.get(label, "other") for label in limit.shares}
    views = [
        CardView(ink[label], label, "", (Grid("Nearest to the center of the kind", label, ids[:SHOWN_SAMPLES]),))
        for label, ids in limit.examples.items()
    ]
    return PageCard(
        id=limit.name,
        title=limit.name,
        ink="gen",
        tag=limit.verdict,
        is_muted=limit.verdict in SETTLED,
        says=f"{result.sentence_on(limit)}. The kind is "
        + join_words([f"{percent(share, 1)} of {label}" for label, share in limit.shares.items()])
        + ".",
        drawing=forest(limit.name, [Drawn(ink[label], label, share) for label, share in limit.shares.items()], scale),
        views=tuple(views) if with_samples else (),
        facts={name: str(text) for name, text in zip(COLUMNS[1:], _cells(result, limit, False)[1:], strict=False)},
        notes=(limit.note,) if limit.note else (),
        keys={"role": limit.verdict},
    )


def outline(result: Verdict) -> Outline:
    """Return what the verdict says in all outputs: limits that need a person come first."""
    baselines = _baselines(result)
    baseline = ", ".join(source(label, result.sets[label]) for label in baselines)
    gen, ref = (source(label, result.sets[label]) if label in result.sets else label for label in ("gen", "ref"))
    return Outline(
        kind="gate",
        title=f"Release gate: {result.overall}",
        says=says(result),
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("gate", gen, f"[{baseline}]" if len(baselines) > 1 else baseline or "baseline", ref, "policy"),
        tables=[
            *_failed(result),
            *_tables(result, {"What could not be judged": UNJUDGED}),
            *_differences(result),
            *id_tables(result.by_id, ["gen", *baselines[:1]]),
        ],
        details=[sentence for sentence in (result.held, result.family) if sentence],
        warnings=result.warnings,
        failures=unreadable(result.sets),
        how=f"{HOW} {result.family}",
    )


def _baselines(result: Verdict) -> list[str]:
    return [label for label in result.sets if label.startswith(BASELINE)]


def says(result: Verdict) -> dict[str, str]:
    """Return the verdict in one line, and what its numbers cover, in a few plain sentences."""
    first = {"first": f"{FIRST[0].upper()}{FIRST[1:]}."} if result.first else {}
    limited = {limit.rule for limit in result.limits}
    distances = {f"moved from {distance.to}": distance.say(limited) for distance in result.distances}
    pairs = {} if result.by_id is None else result.by_id.sentences_beside(result.headline)
    return (
        {"verdict": result.headline}
        | _would_be_seen(result)
        | first
        | pairs
        | distances
        | {"noise": f"Covers {result.noise}."}
    )


def _would_be_seen(result: Verdict) -> dict[str, str]:
    """Return what a release that passes without a finding would have shown, in a sentence."""
    if result.overall != "pass" or result.visible is None or not result.visible.others:
        return {}
    said = result.visible.sentence((result.sets[GEN].n, result.sets[_baselines(result)[0]].n))
    return {"seen": said} if said else {}


def _tables(result: Verdict, groups: Mapping[str, tuple[Verb, ...]]) -> list[TextTable]:
    """Return the table of each group of limits that has any; notes on limits that held are on pages alone."""
    pictured = _choose_pictured(result)
    tables = []
    for title, verbs in groups.items():
        limits = [limit for limit in result.by_urgency if limit.verdict in verbs]
        rows = [_cells(result, limit, limit in pictured) for limit in limits]
        has_notes = any(limit.note or result.name_of(limit) for limit in limits)
        table = TextTable(
            title,
            [*COLUMNS, "Note"] if has_notes else COLUMNS,
            rows if has_notes else [row[:-1] for row in rows],
            words=["Verdict", "Note"],
            muted=[verbs == SETTLED for _ in limits],
            legend=PICTURES if any(limit in pictured for limit in limits) else "",
        )
        tables += [table] if rows else []
    return tables


def _failed(result: Verdict) -> list[TextTable]:
    """Return the table of what failed, a row for each cause, and the table of further limits that broke for these."""
    pictured = _choose_pictured(result)
    broken = {limit.name: limit for limit in result.by_urgency if limit.verdict in FAILED}
    causes = {finding.text: [name for name in finding.limits if name in broken] for finding in result.findings}
    known = {name for names in causes.values() for name in names}
    causes |= {limit.tell(): [name] for name, limit in broken.items() if name not in known}
    first, more, left = [], [], dict(broken)
    for words, names in causes.items():
        if not names:
            continue
        cells = [*_cells(result, broken[names[0]], broken[names[0]] in pictured)[:-1], broken[names[0]].note]
        what = words.partition(" (")[0]  # the headline has the numbers
        if left.pop(names[0], None) is None:  # it measures the cause in an earlier row
            cells[2:], what = [*["–"] * len(cells[2:-1]), ""], words
        others = [left.pop(name) for name in names if name in left]
        limit = cells[0] if isinstance(cells[0], Cell) else Cell(cells[0])
        limit = limit._replace(small=f"and {len(others)} more" * bool(others))
        first.append([what, limit, *cells[1:]])
        more += [[*_cells(result, other, other in pictured)[:-1], what] for other in others]
    has_notes = any(row[-1] for row in first)
    columns = ["What", *COLUMNS, *["Note"] * has_notes]
    rows = first if has_notes else [row[:-1] for row in first]
    legend = f"{OF_LIMITS}{f' {PICTURES}' * any(limit in pictured for limit in broken.values())}"
    failed = TextTable("What failed", columns, rows, names=columns[:2], words=["Verdict", "Note"], legend=legend)
    same = TextTable(SAME, [*COLUMNS, "What"], more, words=["Verdict", "What"])
    return [*[failed] * bool(first), *[same] * bool(more)]


def _differences(result: Verdict) -> list[TextTable]:
    """Return the table of the findings that broke no limit; none without any."""
    broken = {limit.name for limit in result.limits if limit.verdict in FAILED}
    rows: list[list[Cell | str]] = []
    for finding in result.findings:
        if broken & {*finding.limits}:
            continue
        standing = _standing(result, finding).removesuffix(": ")
        rows.append(
            [finding.text, f"{standing}: {finding.limit}" if standing and finding.limit else finding.limit or standing]
        )
    return [TextTable("What differs", ["Finding", "Limit"], rows, words=["Limit"])] if rows else []


def _cells(result: Verdict, limit: Limit, is_pictured: bool) -> list[Cell | str]:
    ends = "–" if limit.interval is None else " to ".join(map(limit.number, limit.interval))
    allowed = f"{'≤' if limit.harm == 'high' else '≥'} {limit.number(limit.margin)}"
    needed, seen = f"{limit.needed:,}" if limit.needed else "–", limit.number(limit.detectable)
    name: Cell | str = limit.name
    if limit.shares:
        most = max(limit.shares, key=lambda label: limit.shares[label])
        samples = [(most, limit.examples.get(most, ())[:LEAD_SAMPLES])] if is_pictured else []
        name = Cell(limit.name, samples=samples, anchor=anchor(limit.name))
    said = "; ".join(text for text in (result.name_of(limit), limit.note) if text)
    note = said if limit.verdict not in SETTLED else Cell("", note=said)
    return [name, limit.verdict, limit.number(limit.value), ends, allowed, seen, needed, note]


def comment(result: Verdict, samples: Mapping[str, Samples], stem: str) -> tuple[str, dict[str, bytes]]:
    """Return a comment on a change, in Markdown, and the pictures that it shows, by the names of files beside it.

    Each finding has a row, with pictures of the samples before and now.
    """
    told = result.findings[:PICTURED]
    old = next(iter(_baselines(result)), None)
    shown = {
        label: [id for finding in told for id in finding.examples.get(label, ())[:LEAD_SAMPLES]]
        for label in result.sets
    }
    found = read_gallery(result.sets, shown, samples)
    pictures: dict[str, bytes] = {}
    lines = [f"<!-- finc-eval: {result.mark} -->", MARKER, f"### {escape(result.headline)}", ""]
    if told:
        lines += ["| What | Before | Now |", "|---|---|---|"]
    for number, finding in enumerate(told, 1):
        cells = []
        for when, label in (("before", old), ("now", "gen")):
            known, ids = found.pictures.get(label or "", {}), finding.examples.get(label or "", ())
            strip = side_by_side([known[id] for id in ids[:LEAD_SAMPLES] if id in known])
            name = f"{stem}-{number}-{when}.png"
            pictures |= {} if strip is None else {name: strip}
            cells.append("" if strip is None else f"![{when}]({name})")
        limited = "" if finding.limits else " (no limit is on it)"
        lines.append(f"| {escape(finding.text)}{limited} | {' | '.join(cells)} |")
    notes = [result.held, *result.warnings, f"Covers {result.noise}."]
    lines += ["", *(f"- {paragraph(note)}" for note in notes if note)]
    sizes_so_far = np.cumsum([len(line.encode()) + 1 for line in lines])
    return "\n".join(
        line for line, size in zip(lines, sizes_so_far, strict=True) if size < MAX_COMMENT
    ) + "\n", pictures


PAGE = Page(says, outline, draw=page, gallery=gallery)
