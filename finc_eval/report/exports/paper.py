"""`shares_figure`: the shares of kinds or modes as a matplotlib figure, for a paper or a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from finc_eval.comparison.models import ModelComparison, SharedMode
from finc_eval.comparison.modes import significant
from finc_eval.comparison.result import SET_NAMES, Comparison
from finc_eval.core.errors import DataError, UsageError
from finc_eval.naming.unique_names import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.modes import Kind
from finc_eval.report.drawings.svg import COLORS
from finc_eval.report.formats import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from finc_eval.comparison.modes import Interval, Mode

WIDTH, ROW, AROUND = 6.5, 0.2, 1.1
"""Inches: of a text column, from one share to the next, and above and below all shares together."""

PLAIN = {"parse_math": False, "usetex": False}
"""Names are text, whatever they hold: where matplotlib is set to start TeX, it would run the commands in them."""

SPREAD = 0.6
"""Part of the height of a mode that its shares take."""

LOOKS: dict[str, dict[str, Any]] = {
    SET_NAMES["gen"]: {"color": COLORS["gen"]},
    SET_NAMES["ref"]: {"fmt": "s", "color": COLORS["ref"]},
}
"""Marks of the two sets of a comparison, as on its page; models have the colors of matplotlib."""


def shares_figure(result: Comparison | ModelComparison, alpha: float = ALPHA) -> Figure:
    """Draw the share of each significant kind in each set, with its interval; without kinds, those of directions.

    Args:
        result: a comparison of two sets or of several models.
        alpha: level up to which a kind, a direction or a mode is significant.

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

    if not isinstance(result, Comparison | ModelComparison):
        raise UsageError(f"result must be a comparison of two sets or of models, got {type(result).__name__}")
    known, modes = _found(result, alpha)
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


def _found(result: Comparison | ModelComparison, alpha: float) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return all kinds, directions or modes of a result, and those that are significant."""
    if isinstance(result, ModelComparison):
        return result.modes, result.significant(alpha)
    known = result.kinds or result.directions
    return known, significant(known, alpha)


def _shares(mode: Kind | Mode | SharedMode) -> dict[str, tuple[float, Interval]]:
    """Return share and interval of a mode in each set."""
    if isinstance(mode, SharedMode):
        return {label: (part.share, part.interval) for label, part in mode.shares.items()}
    if isinstance(mode, Kind):
        return {name: (mode.shares[label].share, mode.shares[label].interval) for label, name in SET_NAMES.items()}
    return {
        SET_NAMES["gen"]: (mode.share_gen, mode.share_gen_interval),
        SET_NAMES["ref"]: (mode.share_ref, mode.share_ref_interval),
    }
