"""`shares_figure`: the shares of kinds or directions as a matplotlib figure, for a paper or a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from finc_eval.comparison.direction import significant
from finc_eval.comparison.result import SET_NAMES, Comparison
from finc_eval.core.errors import DataError, UsageError
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.kinds import Kinds
from finc_eval.report.drawings.svg import COLORS
from finc_eval.report.formats import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from finc_eval.comparison.direction import Direction, Interval

WIDTH, ROW, AROUND = 6.5, 0.2, 1.1
"""Inches: of a text column, from one share to the next, and above and below all shares together."""

PLAIN = {"parse_math": False, "usetex": False}
"""Names are text, whatever they hold: where matplotlib is set to start TeX, it would run the commands in them."""

SPREAD = 0.6
"""Part of the height of a kind that its shares take."""

LOOKS: dict[str, dict[str, Any]] = {
    SET_NAMES["gen"]: {"color": COLORS["gen"]},
    SET_NAMES["ref"]: {"fmt": "s", "color": COLORS["ref"]},
}
"""Marks of the two sets of a comparison, as on its page; other sets have the colors of matplotlib."""


def shares_figure(result: Comparison | Kinds, alpha: float = ALPHA) -> Figure:
    """Draw the share of each significant kind in each set, with its interval; without kinds, of each direction.

    Args:
        result: a comparison of two sets, or kinds of several.
        alpha: level up to which a kind or a direction is significant.

    Returns:
        The figure. Its `savefig("shares.pdf")` writes it, and a notebook shows it.

    Raises:
        DataError: nothing is significant.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> figure = fe.shares_figure(fe.compare(*example_sets(1000), features=500))
        >>> figure.axes[0].get_xlabel()
        'Share of the set, %'
    """
    from matplotlib.figure import Figure

    if not isinstance(result, Comparison | Kinds):
        raise UsageError(f"result must be a comparison or kinds, got {type(result).__name__}")
    known, modes = _find(result, alpha)
    rows = [_shares(mode) for mode in modes]
    if not rows:
        raise DataError(f"nothing is significant at {alpha:g}, so there is nothing to draw")
    sets = list(rows[0])
    step = SPREAD / len(sets)
    figure = Figure(figsize=(WIDTH, AROUND + ROW * len(sets) / SPREAD * len(rows)), layout="constrained")
    axes = figure.subplots()
    for number, label in enumerate(sets):
        values, ends = zip(*(shares[label] for shares in rows), strict=True)
        around = [[100 * (value - low) for value, (low, _) in zip(values, ends, strict=True)]]
        around += [[100 * (high - value) for value, (_, high) in zip(values, ends, strict=True)]]
        heights = [row + step * (number - (len(sets) - 1) / 2) for row in range(len(rows))]
        look: dict[str, Any] = {"fmt": "o", "ms": 4, "capsize": 2} | LOOKS.get(label, {})
        axes.errorbar([100 * value for value in values], heights, xerr=around, label=label, **look)
    names = UniqueNames(known)
    axes.set_yticks(range(len(rows)), [str(printable(names.title(mode))) for mode in modes], **PLAIN)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("Share of the set, %")
    axes.spines[["top", "right"]].set_visible(False)
    for text in figure.legend(loc="outside upper right", ncols=len(sets), frameon=False).get_texts():
        text.set(**PLAIN)
    return figure


def _find(result: Comparison | Kinds, alpha: float) -> tuple[Sequence[Any], Sequence[Any]]:
    known: Sequence[Any] = result.kinds or (() if isinstance(result, Kinds) else result.directions)
    return known, significant(known, alpha)


def _shares(mode: Kind | Direction) -> dict[str, tuple[float, Interval]]:
    if isinstance(mode, Kind):
        titles = [*(SET_NAMES.values() if mode.shares.keys() == SET_NAMES.keys() else mode.shares)]
        return {title: (part.share, part.interval) for title, part in zip(titles, mode.shares.values(), strict=True)}
    return {
        SET_NAMES["gen"]: (mode.share_gen, mode.share_gen_interval),
        SET_NAMES["ref"]: (mode.share_ref, mode.share_ref_interval),
    }
