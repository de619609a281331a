"""The map of samples as a page shows it: cells in the color of the set that has more of their kind, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from finc_eval.core.words import join_words, percent, plural
from finc_eval.gallery.pictured import Pictures
from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.pages.groups import set_apart
from finc_eval.partitions.pages.map_labels import COVERED, LINES, Box, Label, Placed, place_labels, shorten_names
from finc_eval.partitions.sample_map import MAP_SAMPLES, SampleMap, labeled
from finc_eval.report.cards import anchor
from finc_eval.report.colors import COLOR_NAMES, COLORS, Ink
from finc_eval.report.drawings import drawing
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import printable

MAP_WIDTH = 400.0  # pixels of the drawing, which is as high as the samples reach
MAP_AROUND = 26.0  # pixels around the samples, where labels find room
CELL_RADII = (4.8, 8.0)  # radius of a cell in pixels: the smaller for 4 000 samples, the larger for few

_SIZES = np.array([0.5, 0.65, 0.8, 0.95])  # sizes of cells, by their density, in units of the largest there is room for
MAP_PICTURE_EDGE = 38  # pixels of the longer edge of a picture, and of the pictures that are encoded for it
TEXT, LINE = 11.5, 13.5  # pixels of letters, and from one line to the next

MOST_BYTES = 100_000  # bytes of the pictures of a map; the map without pictures takes 40 kB


@dataclass(frozen=True, eq=False)
class MapOnPage:
    """A map, the words below it, and the same as a table."""

    figure: Markup
    legend: str
    table: TextTable


def map_on_page(
    drawn_map: SampleMap | None,
    kinds: Sequence[Kind],
    titles: Mapping[str, str],
    inks: Mapping[str, Ink],
    pictures: Pictures,
    *,
    has_cards: bool = True,
) -> MapOnPage | None:
    """Return a map for a page; None without a map of these kinds.

    Args:
        drawn_map: the map.
        kinds: the listed kinds.
        titles: titles of the sets, by label.
        inks: their colors; a set without one has the color of others.
        pictures: pictures of samples, by label and id.
        has_cards: whether the page has a card of each kind, which the map leads to.
    """
    if drawn_map is None or not {kind.id for kind in kinds} & set(drawn_map.kinds):
        return None
    places, height = _in_pixels(np.asarray(drawn_map.xy, float))
    regions = _regions(drawn_map, kinds, places)
    drawn = _MapParts(titles, inks, UniqueNames(kinds), pictures, regions, height, has_cards)
    colored = [region for region in regions if region.differs]
    said = _says(colored, drawn)
    return MapOnPage(
        drawing("Map of samples of all sets", said, (MAP_WIDTH, height), drawn.parts(), css_class="map"),
        said,
        _table(regions, drawn),
    )


@dataclass(frozen=True, eq=False)
class _Region:
    """A kind on the map."""

    kind: Kind
    cells: NDArray[np.float64]  # centers of its cells in pixels, shape (c, 2)
    radii: NDArray[np.float64]  # their radii, by their density, shape (c,)
    center: tuple[float, float]  # a point amid its samples
    is_labeled: bool

    @property
    def differs(self) -> bool:
        return self.kind.p_value <= ALPHA


def _in_pixels(xy: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return places (n, 2) in pixels of a drawing that they fill, and the height of the drawing."""
    low, spread = xy.min(0), np.ptp(xy, axis=0)
    room = np.array([MAP_WIDTH, 1.1 * MAP_WIDTH]) - 2 * MAP_AROUND  # 1.1: height of a drawing at most, in widths
    scale = float((room / np.maximum(spread, np.finfo(float).eps)).min()) if spread.any() else 1.0
    # 320: pixels of a flat drawing, so that labels find room above and below its samples.
    height = max(scale * spread[1] + 2 * MAP_AROUND, 320.0)
    left, under = (MAP_WIDTH - scale * spread[0]) / 2, (height - scale * spread[1]) / 2
    return np.stack([left + scale * (xy[:, 0] - low[0]), height - under - scale * (xy[:, 1] - low[1])], 1), height


def _regions(drawn_map: SampleMap, kinds: Sequence[Kind], places: NDArray[np.float64]) -> list[_Region]:
    """Return the kinds that have samples on the map, those that differ last, so that they are drawn on top."""
    known, chosen = {kind.id: kind for kind in kinds}, {kind.id for kind in labeled(kinds)}
    radius = float(np.clip(CELL_RADII[0] * np.sqrt(MAP_SAMPLES / len(drawn_map)), *CELL_RADII))
    centers, cell = _hexagons(places, radius)
    names = np.array([kind if kind in known else "" for kind in drawn_map.kinds])
    listed = [name for name in dict.fromkeys(names.tolist()) if name]
    weights = np.stack([np.bincount(cell, drawn_map.weights * (names == name), len(centers)) for name in listed])
    owner, density = weights.argmax(0), weights.sum(0)
    for number, name in enumerate(listed):  # a rare kind that differs has a cell in any case
        if known[name].p_value <= ALPHA and not (owner == number).any():
            owner[weights[number].argmax()] = number
    step = np.minimum(np.sqrt(density / np.quantile(density[density > 0], 0.9)) * len(_SIZES), len(_SIZES) - 1).astype(
        int
    )
    regions = []
    for number, name in enumerate(listed):
        mine = np.flatnonzero((owner == number) & (density > 0))
        middle = np.median(places[names == name], axis=0)
        at = centers[mine] if len(mine) else middle[None]
        center = at[np.square(at - middle).sum(1).argmin()]
        regions.append(
            _Region(known[name], centers[mine], radius * _SIZES[step[mine]], (center[0], center[1]), name in chosen)
        )
    return sorted(regions, key=lambda region: (region.differs, abs(region.kind.difference)))


def _hexagons(places: NDArray[np.float64], radius: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the centers of the hexagons that hold places, shape (c, 2), and the hexagon of each place, shape (n,)."""
    across, down = radius * np.sqrt(3), radius * 3
    grids = [np.round(places / [across, down] - shift) + shift for shift in (0.0, 0.5)]
    first, second = (np.square(grid * [across, down] - places).sum(1) for grid in grids)
    nearest = np.where((first <= second)[:, None], *grids)
    unique, cell = np.unique(np.round(2 * nearest).astype(int), axis=0, return_inverse=True)
    return unique / 2 * [across, down], cell.ravel()


@dataclass(frozen=True, eq=False)
class _MapParts:
    """The parts of the drawing of a map: its paper, its cells, its labels."""

    titles: Mapping[str, str]
    inks: Mapping[str, Ink]
    names: UniqueNames
    pictures: Pictures
    regions: Sequence[_Region]
    height: float
    has_cards: bool

    def parts(self) -> list[Markup]:
        """Return the elements of the drawing: paper, cells, then labels with pictures."""
        return [
            _paper(Box(0, 0, MAP_WIDTH, self.height), 1),
            *(self._cells(region) for region in self.regions if len(region.cells)),
            *self._labels(),
        ]

    def ink(self, kind: Kind) -> Ink:
        """Return the color of the set that has more of a kind; of kinds that do not differ, that of others."""
        return self.inks.get(kind.set_with_most, "other") if kind.p_value <= ALPHA else "other"

    def anchor(self, kind: Kind) -> str:
        """Return the name by which links find the card of a kind; "" without cards."""
        return anchor(kind.id) if self.has_cards else ""

    def card_attribute(self, kind: Kind) -> Markup:
        """Return the attribute by which the page's script finds a kind in the list and its card."""
        return Markup(' data-mode="{}"').format(self.anchor(kind)) if self.has_cards else Markup("")

    def words(self, kind: Kind) -> str:
        """Return the name of a kind, with its id where others are called the same."""
        return f"{self.names.words(kind)}{f', {kind.id}' if self.names.is_shared(kind) else ''}"

    def shares(self, kind: Kind) -> list[tuple[str, str]]:
        """Return labels of sets with their shares: of two sets both, of more the set that is set apart."""
        labels = [*self.titles] if len(self.titles) == 2 else [set_apart(kind)]
        return [(label, percent(kind.shares[label].share, 1)) for label in labels]

    def said(self, kind: Kind) -> str:
        """Return a kind with its shares in words."""
        shares = join_words([f"{share} of {self.titles[label]}" for label, share in self.shares(kind)])
        return f"{self.words(kind)}: {shares}{'' if kind.p_value <= ALPHA else ', not significant'}"

    def _cells(self, region: _Region) -> Markup:
        ink, opacity = self.ink(region.kind), _strength(region.kind) if region.differs else 0.28
        edge = Markup(' stroke="{}"').format(COLORS[ink]) if region.differs else ""
        path = "".join(
            f"M{x:.0f} {y - radius:.0f}{_hexagon(radius)}"
            for (x, y), radius in zip(region.cells, region.radii.tolist(), strict=True)
        )
        return Markup('<g class="{}"{} fill="{}" opacity="{:.2f}"{}><title>{}</title><path d="{}"/></g>').format(
            ink, self.card_attribute(region.kind), COLORS[ink], opacity, edge, printable(self.said(region.kind)), path
        )

    def _labels(self) -> list[Markup]:
        chosen = [region for region in self.regions if region.is_labeled]
        chosen.sort(key=lambda region: (not region.differs, -abs(region.kind.difference)))
        room, made = MOST_BYTES, list[tuple[_Region, Thumbnail | None, list[str]]]()
        names = shorten_names([self.words(region.kind) for region in chosen])
        for region, name in zip(chosen, names, strict=True):
            small = self._picture(region.kind)
            small = small if small is not None and len(small.uri) <= room else None
            room -= len(small.uri) if small else 0
            lines = name if region.kind.name or region.differs else []
            if lines or small:
                made.append((region, small, lines))
        sizes = [_size(small, [*lines, *self._shares_line(region, lines)]) for region, small, lines in made]
        cells = np.concatenate([region.cells for region in self.regions])
        weights = np.concatenate([np.full(len(region.cells), _weight(region)) for region in self.regions])
        bare = [
            _size(None, [*lines, *self._shares_line(region, lines)])[1] if lines else None for region, _, lines in made
        ]
        labels = [
            # A kind that does not differ has no label where it would hide one that does.
            Label(*size, _amid(region), low, np.inf if region.differs else COVERED)
            for size, low, (region, *_) in zip(sizes, bare, made, strict=True)
        ]
        placed = place_labels(labels, (MAP_WIDTH, self.height), cells, weights)
        return [
            self._label(region, small if placed_label.box.height == size[1] else None, lines, placed_label)
            for (region, small, lines), size, placed_label in zip(made, sizes, placed, strict=True)
            if placed_label is not None
        ]

    def _picture(self, kind: Kind) -> Thumbnail | None:
        """Return a small picture of the most typical sample of the set with most of a kind, if one is at hand."""
        known = self.pictures.get(kind.set_with_most, {})
        names = [name for name in kind.shares[kind.set_with_most].top_ids if name in known]
        return known[names[0]].small(2 * MAP_PICTURE_EDGE) if names else None

    def _label(self, region: _Region, small: Thumbnail | None, lines: Sequence[str], placed: Placed) -> Markup:
        ink, box = self.ink(region.kind), placed.box
        middle, y = box.left + box.width / 2, box.top
        drawn = [
            Markup('<path d="M{:.0f} {:.0f}L{:.0f} {:.0f}" stroke="{}" fill="none"/>').format(
                *placed.point, *placed.end, COLORS[ink]
            )
        ]
        if small is not None:
            scale = MAP_PICTURE_EDGE / max(small.width, small.height)
            width, height = scale * small.width, scale * small.height
            drawn.append(
                Markup(
                    '<image href="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"{}/>'
                    '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="none" stroke="{}"/>'
                ).format(
                    small.uri,
                    *(middle - width / 2, y + 1, width, height),
                    Markup(' class="small"') if small.is_small else "",
                    *(middle - width / 2, y + 1, width, height),
                    COLORS[ink],
                )
            )
            y += height + 2
        if lines:
            drawn.append(_paper(box._replace(top=y, height=box.top + box.height - y), 0.82))
            # The same elements whatever a name is.
            spans = [
                Markup('<tspan x="{:.0f}" y="{:.0f}">{}</tspan>').format(middle, y + LINE * row - 3, printable(words))
                for row, words in enumerate([*lines, ""][:LINES], 1)
            ]
            drawn.append(_text(middle, y + LINE - 3, Markup("").join(spans), "bold"))
            y += LINE * len(lines)
        if self._shares_line(region, lines):
            drawn.append(self._shares(region.kind, middle, y + LINE - 3))
        return Markup('<g class="label {}"{} fill="{}">{}</g>').format(
            ink, self.card_attribute(region.kind), COLORS[ink], Markup("").join(drawn)
        )

    def _shares_line(self, region: _Region, lines: Sequence[str]) -> list[str]:
        """Return the line of shares below the name of a kind that differs; none below no name."""
        if not (lines and region.differs):
            return []
        shares = [share for _, share in self.shares(region.kind)]
        return [
            " · ".join(
                shares if len(shares) > 1 else [*shares, shorten_names([self.titles[set_apart(region.kind)]])[0][0]]
            )
        ]

    def _shares(self, kind: Kind, x: float, y: float) -> Markup:
        spans = [
            Markup('<tspan class="{}" fill="{}">{}</tspan>').format(
                self.inks.get(label, "other"), COLORS[self.inks.get(label, "other")], share
            )
            for label, share in self.shares(kind)
        ]
        if len(spans) == 1:
            spans.append(Markup("{}").format(shorten_names([self.titles[set_apart(kind)]])[0][0]))
        return _text(x, y, Markup(" · ").join(spans))


def _amid(region: _Region) -> NDArray[np.float64]:
    """Return the half of the cells of a region that is nearest to its middle, shape (c, 2)."""
    if not len(region.cells):
        return np.array([region.center])
    away = np.square(region.cells - region.center).sum(1)
    return np.asarray(region.cells[away.argsort(kind="stable")[: (len(away) + 1) // 2]])


def _weight(region: _Region) -> float:
    """Return how many pixels a label rather stands away than to hide a cell: more in color, most of a rare kind."""
    return 1.0 + max(3.0, COVERED / len(region.cells)) if region.differs and len(region.cells) else 1.0


def _strength(kind: Kind) -> float:
    """Return how strong the color of a kind is: the part of it that one set has more of for sure, from .4 to 1."""
    surely = min(abs(end) for end in kind.interval)
    return 0.4 + 0.6 * min(1.0, surely / max(sum(part.share for part in kind.shares.values()), ALPHA**9))


def _size(small: Thumbnail | None, lines: Sequence[str]) -> tuple[float, float]:
    """Return width and height of a label in pixels."""
    letters = max(map(len, lines), default=0)
    # 0.6: width of a letter in sizes of letters, on average of bold sans-serif fonts.
    width = max(MAP_PICTURE_EDGE + 2 if small else 0, letters * TEXT * 0.6)
    scale = MAP_PICTURE_EDGE / max(small.width, small.height) if small else 0
    picture = small.height * scale + 3 if small else 0
    return width, picture + LINE * len(lines)


def _paper(box: Box, opacity: float) -> Markup:
    """Draw paper on which letters can be read."""
    return Markup(
        '<rect class="paper" x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" fill="#fff" opacity="{:g}"/>'
    ).format(*box, opacity)


def _text(x: float, y: float, words: str | Markup, weight: str = "normal") -> Markup:
    return Markup(
        '<text x="{:.0f}" y="{:.0f}" text-anchor="middle" font-size="{:g}" font-weight="{}">{}</text>'
    ).format(x, y, TEXT, weight, printable(words))


def _hexagon(radius: float) -> str:
    """Return the path of a hexagon from its upper corner."""
    x, y = radius * np.sqrt(3) / 2, radius / 2
    return f"l{x:.1f} {y:.1f}v{radius:.1f}l-{x:.1f} {y:.1f}-{x:.1f}-{y:.1f}v-{radius:.1f}z"


def _says(colored: Sequence[_Region], drawn: _MapParts) -> str:
    """Return what a map shows, in words."""
    sets = [
        f"{name}: more in {' or '.join(drawn.titles[label] for label, used in drawn.inks.items() if used == ink)}"
        for ink, name in COLOR_NAMES.items()
        if any(drawn.ink(region.kind) == ink for region in colored)
    ]
    if not colored:
        return "Near samples are alike. Everything is grey: no kind differs."
    return (
        f"Near samples are alike. {len(colored)} of {plural(len(drawn.regions), 'kind')} "
        f"{'differs' if len(colored) == 1 else 'differ'}; {'; '.join([*sets, 'grey: chance'])}."
    )


def _table(regions: Sequence[_Region], drawn: _MapParts) -> TextTable:
    """Return the labeled kinds as a table, with what lies next to each."""
    shown = [region for region in regions[::-1] if region.is_labeled]
    rows: list[list[Cell | str]] = []
    for region in shown:
        near = sorted(regions, key=lambda other: np.hypot(*np.subtract(region.center, other.center)))
        beside = [drawn.words(other.kind) for other in near if other is not region][:2]
        more = drawn.titles[region.kind.set_with_most] if region.differs else "–"
        shares = [part.share for part in region.kind.shares.values()]
        rows.append(
            [
                Cell(drawn.words(region.kind), anchor=drawn.anchor(region.kind)),
                more,
                *(percent(share, 1) for share in shares),
                join_words(beside),
            ]
        )
    return TextTable(
        "As a table",
        ["Kind", "More in", *drawn.titles.values(), "Lies next to"],
        rows,
        words=["More in", "Lies next to"],
    )
