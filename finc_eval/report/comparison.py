"""The page, the notebook view and the terminal table of a comparison.

Every number comes from the comparison; only the few samples that are shown are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal

from markupsafe import Markup

from finc_eval.comparison.modes import Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.report.formats import frequency, interval, number, p_value, percent, ratio
from finc_eval.report.pages import (
    ALPHA,
    LEAD_SAMPLES,
    METHOD_NAMES,
    SHOWN_SAMPLES,
    interval_scale,
    kinds_in_words,
    render,
)
from finc_eval.report.plots import spectrum_svg
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.thumbnails import read_pictures
from finc_eval.samples import Samples

SetLabel = Literal["gen", "ref"]

SHOWN_OPPOSITE = 8
"""Samples of each set in the opposite tail of a mode."""

SHOWN_IN_FRAGMENT = 6
"""Samples of each set and mode in the notebook view."""

SHOWN_COPIES = 6
"""Pairs of exact copies."""

OPPOSITE_SHARE = 0.1
"""The opposite tail of a mode is shown when it carries more than this share of the excess."""

SET_NAMES: dict[SetLabel, str] = {"gen": "generated set", "ref": "reference set"}

IN_SENTENCES: dict[str, str] = {label: f"the {name}" for label, name in SET_NAMES.items()}

WORDS: dict[SetLabel, str] = {"gen": "generated", "ref": "reference"}

ROLES: tuple[tuple[Role, str, str], ...] = (
    ("over", "Over-represented", "more in the generated set"),
    ("under", "Under-represented", "less in the generated set"),
)
"""The roles of modes, each with a heading and its meaning."""

COLUMNS: dict[str, Callable[[Mode], str]] = {
    "Mass, gen": lambda mode: number(mode.mass_gen),
    "Mass, ref": lambda mode: number(mode.mass_ref),
    "Ratio": lambda mode: f"× {ratio(mode.ratio)}",
    "Excess": lambda mode: number(mode.excess),
    "Interval": lambda mode: interval(mode.interval),
    "≈ Share": lambda mode: frequency(mode.excess_frequency),
    "Adj. p": lambda mode: p_value(mode.p_value),
    "Stability": lambda mode: percent(mode.stability),
}
"""The columns of a table of modes, on the page and on the terminal."""


def page(comparison: Comparison, samples: Mapping[str, Samples]) -> str:
    """Return the page: one HTML file that loads nothing.

    Samples that cannot be read are shown by their ids, and the page says why.
    """
    shown: dict[str, list[str]] = {"gen": [], "ref": []}
    for mode in comparison.modes:
        for tail, count in zip(mode.tails, (SHOWN_SAMPLES, SHOWN_OPPOSITE if has_opposite(mode) else 0), strict=True):
            shown["gen"] += tail.gen_ids[:count]
            shown["ref"] += tail.ref_ids[:count]
    if comparison.copies is not None:
        shown["gen"] += [copied for copied, _ in comparison.copies.examples[:SHOWN_COPIES]]
    spectrum = comparison.spectrum
    return render(
        "comparison.html",
        comparison,
        **_shared(comparison, shown, samples),
        summary=summary(comparison),
        interval=interval_scale((mode.excess, mode.interval) for mode in comparison.modes),
        words=WORDS,
        method_names=METHOD_NAMES,
        warnings=comparison.warnings,
        spectrum=Markup(spectrum_svg(spectrum.over, spectrum.under)) if spectrum.over or spectrum.under else None,
        shown=SHOWN_SAMPLES,
        lead=LEAD_SAMPLES,
        shown_opposite=SHOWN_OPPOSITE,
        shown_copies=SHOWN_COPIES,
    )


def fragment(comparison: Comparison) -> str:
    """Return a table of the modes with a few samples of each set, for a notebook; it takes on the notebook's colors."""
    shown = {
        "gen": [name for mode in comparison.modes for name in mode.tails[0].gen_ids[:SHOWN_IN_FRAGMENT]],
        "ref": [name for mode in comparison.modes for name in mode.tails[0].ref_ids[:SHOWN_IN_FRAGMENT]],
    }
    return render("comparison_fragment.html", comparison, **_shared(comparison, shown, {}), shown=SHOWN_IN_FRAGMENT)


def show(comparison: Comparison) -> None:
    """Print the modes of both roles, and what qualifies them."""
    for role, heading, meaning in ROLES:
        modes = modes_of(comparison, role)
        rows = [
            [str(rank), mode.id, *(text(mode) for text in COLUMNS.values()), next(iter(own_ids(mode)), "")]
            for rank, mode in enumerate(modes, start=1)
        ]
        if rows:
            print_table(f"{heading}: {meaning}", ["", "Mode", *COLUMNS, "Most typical sample"], rows)
        else:
            print(f"{heading}, {meaning}: none")
    error, settings = comparison.kernel_error, comparison.settings
    differ = len(comparison.significant(ALPHA))
    print(f"{modes_in_words(differ)} at family-wise α = {ALPHA:g} ({comparison.tested} directions tested)")
    if settings.sigma is None:
        print(f"{settings.kernel} kernel: exact, without a bandwidth")
    else:
        print(f"sigma {settings.sigma:.4g} ({comparison.sigma_rule}), {settings.features} frequencies")
        if error is not None:
            print(f"kernel error: rms {error.rms:.4f}, largest {error.max:.4f} of {error.pairs} pairs")
    print_notes(comparison.warnings)
    print(comparison.signature)


def summary(comparison: Comparison) -> str:
    """Return what was found in a few plain sentences."""
    significant = comparison.significant(ALPHA)
    over = [mode for mode in significant if mode.role == "over"]
    under = [mode for mode in significant if mode.role == "under"]
    passed = f"(adjusted p ≤ {ALPHA:g})"
    more, less = f"more of {kinds_in_words(len(over))} than the reference set", f"less of {kinds_in_words(len(under))}"
    if over and under:
        less = f"less of {len(under)}"
        sentences = [f"The generated set has {more}, and {less} {passed}."]
    elif over:
        sentences = [f"The generated set has {more}, and significantly less of none {passed}."]
    elif under:
        sentences = [f"The generated set has {less} than the reference set, and significantly more of none {passed}."]
    else:
        sentences = [
            "No kind of samples is significantly more or less frequent in the generated set than in the "
            f"reference set {passed}.",
            "That is what two sets from one source look like; it can also mean that the sets are too small "
            "to show how they differ.",
        ]
    if comparison.settings.rho != 1:
        sentences.append(
            f"A kind counts where one set has more than {comparison.settings.rho:g} times the mass of the other."
        )
    for found, excess_of in ((over, "generated"), (under, "reference")):
        if found:
            largest = max(found, key=lambda mode: mode.excess)
            sentences.append(
                f"The largest excess of the {excess_of} set is {largest.id}, with mass "
                f"{number(largest.mass_gen)} in the generated and {number(largest.mass_ref)} in the reference set."
            )
    sentences.append(
        f"{comparison.gen.n:,} generated and {comparison.ref.n:,} reference samples were compared, and "
        f"{comparison.tested:,} directions were tested."
    )
    return " ".join(sentences)


def titles(comparison: Comparison) -> tuple[str, str]:
    """Return the titles of the two sets: the ends of their paths, as long as needed to tell them apart."""
    gen, ref = (PurePath(info.source or info.name) for info in (comparison.gen, comparison.ref))
    for length in range(1, max(len(gen.parts), len(ref.parts)) + 1):
        ends = [str(PurePath(*path.parts[-length:])) for path in (gen, ref)]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return comparison.gen.name, comparison.ref.name


def has_opposite(mode: Mode) -> bool:
    """Return True when the opposite tail of the mode carries enough of its excess to be shown."""
    return mode.tails[1].share > OPPOSITE_SHARE


def sets_of(role: Role) -> tuple[SetLabel, SetLabel]:
    """Return the label of the set that has more of a mode of this role, then the other one."""
    return ("gen", "ref") if role == "over" else ("ref", "gen")


def modes_of(comparison: Comparison, role: Role) -> tuple[Mode, ...]:
    """Return the modes of a role."""
    return comparison.over if role == "over" else comparison.under


def own_ids(mode: Mode) -> Sequence[str]:
    """Return the ids of the samples that are most of a mode, from the set that has more of it."""
    return mode.tails[0].gen_ids if mode.role == "over" else mode.tails[0].ref_ids


def modes_in_words(count: int) -> str:
    """Return "1 mode differs" or "2 modes differ"."""
    return "1 mode differs" if count == 1 else f"{count} modes differ"


def _shared(
    comparison: Comparison, shown: Mapping[str, Sequence[str]], samples: Mapping[str, Samples]
) -> dict[str, Any]:
    """Return what page and notebook view need."""
    pictures, notes = read_pictures({"gen": comparison.gen, "ref": comparison.ref}, shown, samples, IN_SENTENCES)
    return {
        "titles": titles(comparison),
        "pictures": pictures,
        "notes": notes,
        "columns": COLUMNS,
        "roles": [(*one, modes_of(comparison, one[0])) for one in ROLES],
        "set_names": SET_NAMES,
        "sets_of": sets_of,
        "own_ids": own_ids,
        "has_opposite": has_opposite,
    }
