"""Pairs by id on the page of a comparison: the pairs furthest apart, how all pairs are spread, and what is worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from finc_eval.core.words import figure
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import number
from finc_eval.same_ids.measures import psnr
from finc_eval.same_ids.result import ById
from finc_eval.same_ids.worse import Margin

QUANTILES = {"Least alike": 0.0, "1 in 20 is less": 0.05, "Half are less": 0.5, "19 in 20 are less": 0.95}
"""Parts of the pairs that are further apart, by the heading of their column."""

TITLES = {"psnr": "PSNR, dB", "ssim": "SSIM", "ms_ssim": "MS-SSIM", "structure": "Structure", "coarse": "Thumbnails"}

APART = {
    "lpips": "LPIPS",
    "motion": "Motion",
    "distance": "Distance",
}  # measures that are larger for pairs further apart

LEGEND = (
    "PSNR is of all values; SSIM and MS-SSIM are of the light. Structure is SSIM's third factor alone. Thumbnails: "
    "correlation of both pictures at 16 × 16 pixels. Distance: in the space of the extractor, 1 for two unlike ids."
)
LEGEND_OF_LPIPS = " LPIPS: by AlexNet, version 0.1."
LEGEND_OF_CLIPS = " Of clips: means over frames. Motion: difference of both flows, in parts of the second's."


def id_tables(by_id: ById | None, labels: Iterable[str]) -> list[TextTable]:
    """Return the pairs that are shown, of the sets with these labels, their spread, and what is worse."""
    if by_id is None:
        return []
    sets = tuple(labels)
    values = {name: np.array(column) for name, column in by_id.measured.items()}
    alike = {"psnr": psnr(values["mse"])} if "mse" in values else {}
    alike |= {name: column for name, column in values.items() if name in TITLES}
    apart = {name: title for name, title in APART.items() if name in by_id.measured}
    place = {name: row for row, name in enumerate(by_id.ids)}
    pairs: list[list[Cell | str]] = [
        [
            Cell(name, samples=[(label, (name,)) for label in sets], is_stacked=True),
            by_id.reasons.get(name, "not recognized" if name in by_id.unclear else "not broken"),
            *(number(float(column[place[name]])) for column in alike.values()),
            *(number(by_id.measured[measure][place[name]]) for measure in apart),
        ]
        for name in by_id.shown()
    ]
    headings = [TITLES[name] for name in alike]
    spread = [
        [TITLES[name], *(number(float(np.quantile(column, part, method="lower"))) for part in QUANTILES.values())]
        for name, column in alike.items()
    ]
    tables = [
        TextTable(
            "Broken pairs" if by_id.broken else "Pairs not recognized" if by_id.unclear else "Pairs furthest apart",
            ["Id", "What it is", *headings, *apart.values()],
            pairs,
            words=["What it is"],
            legend=LEGEND + LEGEND_OF_LPIPS * ("lpips" in apart) + LEGEND_OF_CLIPS * ("motion" in apart),
        )
    ]
    if spread:
        tables.append(TextTable("All pairs", ["Measure", *QUANTILES], spread))
    margins = [*by_id.worse, *by_id.undecided, *by_id.not_worse]
    if not margins:
        return tables
    rows = [[margin.name, margin.verdict, *_numbers(margin)] for margin in margins]
    columns = ["Thing", "Verdict", "Worse by", "Interval", "Margin"]
    legend = legend_of(by_id.undecided)
    return [*tables, TextTable("Is anything worse?", columns, rows, words=["Verdict"], legend=legend)]


def legend_of(undecided: Sequence[Margin]) -> str:
    """Return the unit of what may be worse, and why something within its margin is undecided."""
    unit = "Of kinds and repeats in percent of the samples, else in standard deviations of the reference."
    return unit + NO_STAND * any(margin.interval[1] <= margin.margin for margin in undecided)


NO_STAND = (
    " An interval within the margin is undecided where too many pairs are broken, not recognized, missing or of "
    "another size: it is of the measured pairs, which do not stand for the run."
)
"""End of the legend where `RunPairs.margins` does not say of the run what is shown of the pairs."""


def _numbers(shown: Margin) -> list[str]:
    def write(value: float) -> str:
        return f"{figure(100 * value, 'z.1f')} %" if shown.is_share else figure(value, "z.2f")

    return [write(shown.difference), f"{write(shown.interval[0])}, {write(shown.interval[1])}", write(shown.margin)]
