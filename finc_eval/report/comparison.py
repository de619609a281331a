"""The page, the notebook view and the terminal table of a comparison.

Every number comes from the comparison; only the few samples that are shown are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from finc_eval.comparison.headline import findings
from finc_eval.comparison.models import SharedMode
from finc_eval.comparison.modes import SETS_OF, Mode, Role, significant
from finc_eval.comparison.result import SET_NAMES, SHOWN_COPIES, Comparison
from finc_eval.core.words import counted, listed, percent, points
from finc_eval.gallery.gallery import Gallery
from finc_eval.naming.unique_names import UniqueNames, with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.card import Card, anchor
from finc_eval.report.cards.modes import (
    SHORT,
    difference,
    drawn_shares,
    mode_card,
    remark,
    scale_of,
    sorts_of,
)
from finc_eval.report.drawings.forest import forest, forest_axis
from finc_eval.report.drawings.plots import spectrum_svg
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, unreadable
from finc_eval.report.formats import (
    bare_percent,
    p_value,
    points_interval,
)
from finc_eval.report.pages import METHOD_NAMES, NO_SAMPLES, notebook_view, render
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.verdict import TOO, WHY_OPEN, is_share_open, lead, verdict
from finc_eval.samples import Samples

TOP_SAMPLES = 6
"""Samples of each of the largest modes on the first screen."""

SHOWN_IN_FRAGMENT = 6
"""Samples of each set and mode in the notebook view."""

ROLES: tuple[tuple[Role, str, str], ...] = (
    ("over", "Over-represented", "more in the generated set"),
    ("under", "Under-represented", "less in the generated set"),
)
"""The roles of modes, each with a heading and its meaning."""

COLUMNS: dict[str, Callable[[Mode], str]] = {
    "Share, gen": lambda mode: percent(mode.share_gen, 1),
    "Share, ref": lambda mode: percent(mode.share_ref, 1),
    "Difference": lambda mode: points(mode.share_difference),
    "Interval": lambda mode: points_interval(mode.share_difference_interval),
    "Found by": lambda mode: mode.found_by,
}
"""The columns of a table of modes in a notebook."""

FOUND_BY = "By: found by directions of feature space (dir), by label-blind clusters of samples (clu), or by both"

TERMINAL_COLUMNS: dict[str, Callable[[Mode], str]] = {
    "Mode": with_id,
    "Gen, %": lambda mode: bare_percent(mode.share_gen),
    "Ref, %": lambda mode: bare_percent(mode.share_ref),
    "Difference, points": lambda mode: difference(mode),
    "Adj. p": lambda mode: p_value(mode.p_value),
    "By": lambda mode: SHORT[mode.found_by],
}
"""The columns of a table of modes on the terminal, after the rank."""


def page(comparison: Comparison, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    spectrum, names = comparison.spectrum, titles(comparison)
    found = sorted(comparison.significant(ALPHA), key=lambda mode: (not mode.firm, -abs(mode.share_difference)))
    unlike = {mode.id: mode for group in findings(comparison.modes) if len(group) > 1 for mode in group}
    unique = UniqueNames(comparison.modes)
    scale = scale_of(comparison.modes)

    def card(mode: Mode) -> Card:
        other = unlike.get(mode.looks_different or "") if mode.id in unlike else None
        instead = None if other is None else (anchor(other.id), unique.title(other))
        return mode_card(mode, names, scale, comparison.shown, instead=instead, nearest=comparison.nearest(mode))

    return render(
        "comparison.html",
        comparison,
        outline(comparison),
        **_shared(comparison, comparison.gallery_of(samples)),
        verdict=verdict(comparison, names),
        lead=lead(comparison),
        roles_by_words=TOO,
        sorts=sorts_of(names),
        significant=found,
        tops={role: [mode for mode in found if mode.role == role and mode.firm] for role in TOO},
        lead_samples=TOP_SAMPLES,
        axis=forest_axis(scale),
        forest=lambda mode: forest(mode.title, drawn_shares(mode, names), scale),
        anchor=anchor,
        cards_shown=[card(mode) for mode in found],
        cards_folded=[card(mode) for mode in comparison.modes if mode.p_value > ALPHA],
        unlike=unlike,
        tests=tests_in_words(comparison),
        method_names=METHOD_NAMES,
        spectrum=spectrum_svg(spectrum.over, spectrum.under) if spectrum.over or spectrum.under else None,
        eigenvalues=list(zip_longest(spectrum.over, spectrum.under)),
        shown_copies=SHOWN_COPIES,
        set_names=SET_NAMES,
        sets_of=SETS_OF,
    )


def outline(comparison: Comparison) -> Outline:
    """Return what the comparison says in all outputs."""
    gen, ref = titles(comparison)
    sets = {"gen": comparison.gen, "ref": comparison.ref}
    found = ((f"{heading}: {meaning}", _rows(modes)) for _, heading, meaning, modes in _significant(comparison))
    others = _others(comparison)
    return Outline(
        kind="comparison of two sets of samples",
        title=f"{gen} against {ref}",
        headline=verdict(comparison, (gen, ref)),
        sets={gen: comparison.gen.n, ref: comparison.ref.n},
        signatures=[comparison.signature],
        call=call("compare", *(source(*one) for one in sets.items()), settings=comparison.settings),
        tables=[Table(title, ["", *TERMINAL_COLUMNS], rows) for title, rows in found if rows],
        details=[lead(comparison), *([f"{not_significant(others)}."] if others else [])],
        warnings=comparison.warnings,
        failures=unreadable(sets),
    )


def fragment(comparison: Comparison, samples: Mapping[str, Samples] = NO_SAMPLES) -> str:
    """Return a table of the modes with a few samples of each set, for a notebook; it takes on the notebook's colors."""
    return notebook_view(
        "comparison_fragment.html",
        comparison,
        **_shared(comparison, comparison.gallery_of(samples)),
        columns=COLUMNS,
        roles=_significant(comparison),
        others=_others(comparison),
        open_shares=list(open_shares(comparison)),
        shown=SHOWN_IN_FRAGMENT,
    )


def show(comparison: Comparison) -> None:
    """Print the headline, the significant modes of both roles, and what qualifies them."""
    print(comparison.headline)
    for _, heading, meaning, modes in _significant(comparison):
        if rows := _rows(modes):
            print_table(f"{heading}: {meaning}", ["", *TERMINAL_COLUMNS], rows, names=["Mode"])
        else:
            print(f"{heading}, {meaning}: nothing significant")
    if comparison.significant(ALPHA):
        print(FOUND_BY)
    print_unstable(comparison.significant(ALPHA))
    for told in open_shares(comparison):
        print(told)
    if others := _others(comparison):
        print(not_significant(others))
    error, settings = comparison.kernel_error, comparison.settings
    tests = tests_in_words(comparison)
    family = f"{tests} tested at family-wise α = {ALPHA:g}" if tests else "nothing was tested"
    print(f"{family}; shares of modes overlap: do not add them")
    if settings.sigma is None:
        print(f"{settings.kernel} kernel: exact, without a bandwidth")
    else:
        print(f"sigma {settings.sigma:.4g} ({comparison.sigma_rule}), {settings.features} frequencies")
        if error is not None:
            print(f"kernel error: rms {error.rms:.4f}, largest {error.max:.4f} of {error.pairs} pairs")
    print_notes(comparison.warnings)
    print(comparison.signature)


def titles(comparison: Comparison) -> tuple[str, str]:
    """Return the titles of the two sets: the ends of their paths, as long as needed to tell them apart."""
    gen, ref = (PurePath(info.source or info.name) for info in (comparison.gen, comparison.ref))
    for length in range(1, max(len(gen.parts), len(ref.parts)) + 1):
        ends = [str(PurePath(*path.parts[-length:])) for path in (gen, ref)]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return comparison.gen.name, comparison.ref.name


def modes_of(comparison: Comparison, role: Role) -> tuple[Mode, ...]:
    """Return the modes of a role."""
    return comparison.over if role == "over" else comparison.under


def own_ids(mode: Mode) -> Sequence[str]:
    """Return the ids of the samples that are most of a mode, from the set that has more of it."""
    return mode.typical(SETS_OF[mode.role][0])


def tests_in_words(comparison: Comparison) -> str:
    """Return "26 directions and 371 clusters", "" where nothing was tested."""
    tested = ((comparison.tested, "direction"), (comparison.clusters_tested, "cluster"))
    return listed([counted(count, thing) for count, thing in tested if count])


def not_significant(count: int) -> str:
    """Return "1 mode is not significant: see the page or the JSON file"."""
    return f"{counted(count, 'mode')} {'is' if count == 1 else 'are'} not significant: see the page or the JSON file"


def print_unstable(modes: Sequence[Mode | SharedMode]) -> None:
    """Print what the mark of a significant mode that does not count means, where there is one."""
    if any(remark(mode) for mode in modes):
        print("– refits find less than half of the mode again: not counted")


def open_shares(comparison: Comparison) -> Iterator[str]:
    """Yield why intervals of significant modes hold 0, in a sentence for each way of finding modes."""
    held = [mode for mode in comparison.modes if is_share_open(mode)]
    for why in dict.fromkeys(WHY_OPEN[mode.found_by] for mode in held):
        ids = listed([mode.id for mode in held if WHY_OPEN[mode.found_by] == why])
        yield f"The interval of {ids} holds 0, though p is at most {ALPHA:g}: {why}."


def _significant(comparison: Comparison) -> list[tuple[Role, str, str, tuple[Mode, ...]]]:
    """Return the roles, each with its significant modes."""
    return [(*one, significant(modes_of(comparison, one[0]), ALPHA)) for one in ROLES]


def _rows(modes: Sequence[Mode]) -> list[list[str]]:
    return [
        [str(rank) if mode.firm else "–", *(text(mode) for text in TERMINAL_COLUMNS.values())]
        for rank, mode in enumerate(modes, start=1)
    ]


def _others(comparison: Comparison) -> int:
    return len(comparison.modes) - len(comparison.significant(ALPHA))


def _shared(comparison: Comparison, gallery: Gallery) -> dict[str, Any]:
    """Return what page and notebook view need."""
    return {
        "titles": titles(comparison),
        "pictures": gallery.pictures,
        "captions": comparison.captions,
        "notes": gallery.notes,
        "remark": remark,
        "names": UniqueNames(comparison.modes),
    }
