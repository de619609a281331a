"""Small multiples of one map, each in the color of its set: filled where it has more of a kind, empty where less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from finc_eval.core.words import percent, plural
from finc_eval.naming.evidence import UniqueNames
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.placed import KindPlaces, ReleaseMap
from finc_eval.partitions.settings import REFERENCE
from finc_eval.report.cards import anchor
from finc_eval.report.colors import COLORS, Ink, inks_of
from finc_eval.report.drawings import drawing
from finc_eval.report.formats import printable

SMALL_MAP_SIDE, CELL = 168.0, 4.6  # pixels along a side of a small map, and half the side of a cell

Array = NDArray[np.float64]


class _Group(NamedTuple):
    """Cells of a kind on a small map."""

    said: str
    cells: Array  # centers in pixels, shape (c, 2)
    sizes: Array  # halves of their sides, shape (c,)
    more: bool | None = None  # whether the set has more of it, or less; None if that is not sure
    card: str = ""  # anchor of its card; "" without one


def maps_of_models(
    places: KindPlaces | None, kinds: Sequence[Kind], models: Sequence[str], names: UniqueNames
) -> dict[str, Markup]:
    """Draw a map for each model, by its name; none without places.

    A kind is in the color of the model if the intervals of its share of the model and of the reference are apart, as
    all intervals hold together: filled if the model has more of it, and empty if it has less.
    """
    if places is None or not places.kinds:
        return {}
    spots, inks, owner = _spots(places.xy), inks_of([*kinds[0].shares], REFERENCE), np.array(places.kinds)

    def group(model: str, kind: Kind) -> _Group:
        of_model, ref = kind.shares[model], kind.shares[REFERENCE]
        said = f"{names.title(kind)}: {percent(of_model.share, 1)} of {model}, {percent(ref.share, 1)} of {REFERENCE}"
        more = (
            True
            if of_model.interval[0] > ref.interval[1]
            else False
            if of_model.interval[1] < ref.interval[0]
            else None
        )
        cells = spots[owner == kind.id]
        return _Group(said, cells, np.full(len(cells), CELL), more, anchor(kind.id))

    maps = {}
    for model in models:
        groups = [group(model, kind) for kind in kinds if (owner == kind.id).any()]
        sure = sum(group.more is not None for group in groups)
        said = f"{plural(sure, 'kind')} of {len(groups)} surely {'differs' if sure == 1 else 'differ'} from {REFERENCE}"
        maps[model] = _draw(f"Map of {model}", said, groups, inks[model])
    return maps


def maps_of_releases(release_map: ReleaseMap) -> dict[str, Markup]:
    """Draw a map for each set of a gate, by its label: cells are the larger, the more of the set lies there.

    What surely changed is in color on every map: filled if the release has more of it, empty if it has less.
    """
    spots, owner = _spots(release_map.xy), np.array(release_map.kinds)
    most = max((share for shares in release_map.shares.values() for share in shares), default=1.0)
    drawn = {}
    for label, shares in release_map.shares.items():
        # 0.3: size of the smallest cell that is drawn, in sizes of the largest.
        sizes = np.where(np.array(shares) > 0, CELL * np.sqrt(np.array(shares) / most).clip(0.3), 0.0)
        named = {change.id: change for change in release_map.changes}
        groups = [_Group("the same as before", spots[owner == ""], sizes[owner == ""])]
        for name, change in named.items():
            said = f"{change.title}: {percent(change.before, 1)} before, {percent(change.share, 1)} now"
            groups.append(_Group(said, spots[owner == name], sizes[owner == name], change.share > change.before))
        said = f"{plural(len(named), 'kind')} surely {'differs' if len(named) == 1 else 'differ'} between the releases"
        drawn[label] = _draw(f"Map of {label}", said, groups, "gen")
    return drawn


def _spots(xy: Sequence[tuple[float, float]]) -> Array:
    """Return places in pixels of a small map."""
    return np.asarray(SMALL_MAP_SIDE / 2 + (SMALL_MAP_SIDE / 2 - 2 * CELL) * np.array(xy) * [1, -1])


def _draw(title: str, said: str, groups: Sequence[_Group], ink: Ink) -> Markup:
    """Draw the cells of all kinds, those that differ on top."""
    parts = []
    for group in sorted(groups, key=lambda group: group.more is not None):
        path = "".join(
            f"M{x - half:.1f} {y - half:.1f}h{2 * half:.1f}v{2 * half:.1f}h-{2 * half:.1f}z"
            for (x, y), half in zip(group.cells, group.sizes.tolist(), strict=True)
            if half
        )
        color: Ink = "other" if group.more is None else ink
        paint = {None: 'fill="{0}" opacity=".25"', True: 'fill="{0}"', False: 'fill="none" stroke="{0}"'}[group.more]
        card = Markup(' data-mode="{}"').format(group.card) if group.card else ""
        parts.append(
            Markup('<g class="{}{}"{} {}><title>{}</title><path d="{}"/></g>').format(
                color,
                " less" if group.more is False else "",
                card,
                Markup(paint).format(COLORS[color]),
                printable(group.said),
                path,
            )
        )
    return drawing(title, said, (SMALL_MAP_SIDE, SMALL_MAP_SIDE), parts, css_class="map small-map")
