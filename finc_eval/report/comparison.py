"""From a comparison to HTML: `render_report` writes the self-contained page, `render_fragment` the notebook view.

Every number comes from the comparison; only the few samples that are shown are read again.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

from markupsafe import Markup

from finc_eval.comparison.modes import Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.report.formats import number
from finc_eval.report.pages import ALPHA, LEAD, METHOD_NAMES, SHOWN, environment, interval_scale, kinds
from finc_eval.report.plots import spectrum_svg
from finc_eval.report.thumbnails import Thumbnail, read_thumbnails
from finc_eval.samples import Samples

SetLabel = Literal["gen", "ref"]

SHOWN_OPPOSITE = 8
"""Samples of each set on the opposite side of a mode."""

SHOWN_IN_FRAGMENT = 6
"""Samples of each set and mode in the notebook view."""

SHOWN_COPIES = 6
"""Pairs of exact copies."""

OPPOSITE_SHARE = 0.1
"""The opposite side of a mode is shown when it carries more than this share of the excess."""

SET_NAMES: dict[SetLabel, str] = {"gen": "generated set", "ref": "reference set"}

WORDS: dict[SetLabel, str] = {"gen": "generated", "ref": "reference"}

Pictures = dict[SetLabel, dict[str, Thumbnail]]


def render_report(
    comparison: Comparison, *, gen_samples: Samples | None = None, ref_samples: Samples | None = None
) -> str:
    """The report as the text of one HTML file that loads nothing.

    Args:
        comparison: what to report.
        gen_samples: where the generated samples are, if not at the comparison's own source: anything that
            `open_source` takes. Samples that cannot be read are shown by their ids, and the report says why.
        ref_samples: where the reference samples are, likewise.
    """
    shown: dict[SetLabel, list[str]] = {"gen": [], "ref": []}
    for mode in comparison.all_modes:
        for tail, count in zip(mode.tails, (SHOWN, SHOWN_OPPOSITE if has_opposite(mode) else 0), strict=True):
            shown["gen"] += tail.gen_ids[:count]
            shown["ref"] += tail.ref_ids[:count]
    if comparison.copies is not None:
        shown["gen"] += [copied for copied, _ in comparison.copies.examples[:SHOWN_COPIES]]
    pictures, notes = read_pictures(comparison, shown, gen_samples, ref_samples)
    return (
        environment()
        .get_template("report.html")
        .render(
            _shared(comparison, pictures, notes),
            summary=summary(comparison),
            interval=interval_scale((mode.excess, mode.interval) for mode in comparison.all_modes),
            words=WORDS,
            method_names=METHOD_NAMES,
            warnings=comparison.warnings,
            version=comparison.version,
            spectrum=Markup(spectrum_svg(*comparison.spectrum)) if any(comparison.spectrum) else None,
            shown=SHOWN,
            lead=LEAD,
            shown_opposite=SHOWN_OPPOSITE,
            shown_copies=SHOWN_COPIES,
        )
    )


def render_fragment(comparison: Comparison) -> str:
    """A table of the modes with a few samples of each set, for a notebook; it takes on the notebook's colors."""
    shown: dict[SetLabel, list[str]] = {
        "gen": [name for mode in comparison.all_modes for name in mode.tails[0].gen_ids[:SHOWN_IN_FRAGMENT]],
        "ref": [name for mode in comparison.all_modes for name in mode.tails[0].ref_ids[:SHOWN_IN_FRAGMENT]],
    }
    pictures, notes = read_pictures(comparison, shown, None, None)
    return (
        environment()
        .get_template("fragment.html")
        .render(_shared(comparison, pictures, notes), shown=SHOWN_IN_FRAGMENT)
    )


def summary(comparison: Comparison) -> str:
    """What was found, in a few plain sentences."""
    significant = comparison.significant(ALPHA)
    over = [mode for mode in significant if mode.role == "over"]
    under = [mode for mode in significant if mode.role == "under"]
    passed = f"(adjusted p ≤ {ALPHA:g})"
    more, less = f"more of {kinds(len(over))} than the reference set", f"less of {kinds(len(under))}"
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
    """What to call the two sets in a heading: the ends of their paths, as long as needed to tell them apart."""
    gen, ref = (PurePath(info.source or info.name) for info in (comparison.gen, comparison.ref))
    for length in range(1, max(len(gen.parts), len(ref.parts)) + 1):
        ends = [str(PurePath(*path.parts[-length:])) for path in (gen, ref)]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return comparison.gen.name, comparison.ref.name


def has_opposite(mode: Mode) -> bool:
    """Whether the opposite side of the mode carries enough of its excess to be shown."""
    return mode.tails[1].share > OPPOSITE_SHARE


def sides_of(role: Role) -> tuple[SetLabel, SetLabel]:
    """The set that has more of a mode of this role, then the other one."""
    return ("gen", "ref") if role == "over" else ("ref", "gen")


def _shared(comparison: Comparison, pictures: Pictures, notes: list[str]) -> dict[str, Any]:
    """What both templates speak of."""
    return {
        "comparison": comparison,
        "titles": titles(comparison),
        "pictures": pictures,
        "notes": notes,
        "alpha": ALPHA,
        "groups": (
            ("over", "Over-represented", "more in the generated set", comparison.modes),
            ("under", "Under-represented", "less in the generated set", comparison.under_represented),
        ),
        "set_names": SET_NAMES,
        "sides_of": sides_of,
        "has_opposite": has_opposite,
    }


def read_pictures(
    comparison: Comparison, shown: dict[SetLabel, list[str]], gen_samples: object, ref_samples: object
) -> tuple[Pictures, list[str]]:
    """Thumbnails of both sets, and a sentence for each set that lacks some."""
    gen = comparison.gen.source if gen_samples is None else gen_samples
    ref = comparison.ref.source if ref_samples is None else ref_samples
    gen_pictures, gen_note = read_thumbnails("the generated set", gen, shown["gen"], "gen_samples", comparison.gen.clip)
    ref_pictures, ref_note = read_thumbnails("the reference set", ref, shown["ref"], "ref_samples", comparison.ref.clip)
    return {"gen": gen_pictures, "ref": ref_pictures}, [note for note in (gen_note, ref_note) if note]
