"""Small multiples of one map: what each of several sets surely has more of, or less of, than a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from finc_eval.core.words import percent, plural
from finc_eval.naming.evidence import UniqueNames
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.sample_map import KindPlaces
from finc_eval.report.cards import anchor
from finc_eval.report.drawings import COLORS, Ink, drawing
from finc_eval.report.formats import printable

SIDE, CELL = 168.0, 4.6  # pixels along a side of a small map, and half the side of a cell


def small_maps(
    places: KindPlaces | None, kinds: Sequence[Kind], labels: Sequence[str], reference: str, names: UniqueNames
) -> dict[str, Markup]:
    """Draw a map for each set, by its label; none without places.

    A kind is in color if the intervals of its share of the set and of the reference are apart, as all intervals hold
    together: orange if the set has more of it, and blue if it has less.
    """
    if places is None or not places.kinds:
        return {}
    spots = SIDE / 2 + (SIDE / 2 - 2 * CELL) * np.array(places.xy) * [1, -1]
    at = {kind.id: spots[[one == kind.id for one in places.kinds]] for kind in kinds}
    return {label: _draw(label, reference, [one for one in kinds if len(at[one.id])], at, names) for label in labels}


def _draw(
    label: str, reference: str, kinds: Sequence[Kind], at: Mapping[str, np.ndarray], names: UniqueNames
) -> Markup:
    groups, colored = [], 0
    for kind in kinds:
        own, ref = kind.shares[label], kind.shares[reference]
        ink: Ink = (
            "gen" if own.interval[0] > ref.interval[1] else "ref" if own.interval[1] < ref.interval[0] else "other"
        )
        colored += ink != "other"
        path = "".join(
            f"M{x - CELL:.0f} {y - CELL:.0f}h{2 * CELL:.0f}v{2 * CELL:.0f}h-{2 * CELL:.0f}z" for x, y in at[kind.id]
        )
        said = f"{names.title(kind)}: {percent(own.share, 1)} of {label}, {percent(ref.share, 1)} of {reference}"
        groups.append(
            Markup('<g class="{}" data-mode="{}" fill="{}" opacity="{}"><title>{}</title><path d="{}"/></g>').format(
                ink, anchor(kind.id), COLORS[ink], ".25" if ink == "other" else "1", printable(said), path
            )
        )
    are = f"{plural(colored, 'kind')} of {len(kinds)} surely differ from {reference}"
    return drawing(f"Map of {label}", are, (SIDE, SIDE), groups, look="map small-map")
