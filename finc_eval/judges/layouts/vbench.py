"""Layout of VBench: `{dimension: [value, [{video_path, video_results, …}]]}`.

By one process, VBench weighs the videos of some dimensions by their frames, and by several processes it takes the mean
of videos, or of their last frames. The rule that gives the value in the file is the one that made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isclose, isnan
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from finc_eval.core.files.csv_text import gather_columns
from finc_eval.judges.layouts.scored import Row, Scored, needed, score_in
from finc_eval.judges.tables import NamedColumns, number_of
from finc_eval.judges.weighting import Weighting
from finc_eval.samples.metadata import SEEDED

PERCENT = ("imaging_quality",)  # dimensions whose value is a hundredth of the scores of videos
UNCOUNTED = ("subject_consistency", "i2v_subject", "i2v_background")  # weighed by frames, which the file does not count
PARTS_OF_ONE = (
    *("object_class", "multiple_objects", "human_action", "color", "scene", "spatial_relationship"),
    "dynamic_degree",
)
"""Dimensions whose scores are shares of frames, or truth values of videos."""

SAME = 1e-6  # relative difference of numbers that are the same but for rounding to seven digits


def is_vbench(table: NamedColumns) -> bool:
    """Return whether a table is a result file of VBench."""
    value = table.value
    if not isinstance(value, Mapping) or not value:
        return False
    dimensions = [
        scores
        for scores in value.values()
        if isinstance(scores, list) and len(scores) == 2 and isinstance(scores[1], list)
    ]
    return len(dimensions) == len(value) and any(
        isinstance(each, Mapping) and "video_results" in each for _, videos in dimensions for each in videos
    )


def read_vbench(table: NamedColumns) -> Scored:
    """Return the scores of videos in the scale of the values of dimensions, and the rule that gives these values."""
    by_video: dict[str, dict[str, Any]] = {}
    stated, rules = dict[str, float](), dict[str, tuple[str, str]]()
    weights: dict[str, dict[str, float]] = {}
    for dimension, (overall, videos) in table.value.items():
        entries = [*_videos(dimension, videos, table.name)]
        value = score_in(overall, f"{dimension} in {table.name}", "the value")
        rule, lacks, scores, counts = _made_by(dimension, value, entries)
        rules[dimension] = rule, lacks
        weights[dimension] = dict(zip((path for path, *_ in entries), counts, strict=True))
        for (path, _, _), score in zip(entries, scores, strict=True):
            by_video.setdefault(path, {"id": path, **_from_name(path)})[dimension] = score
        if not isnan(value) and videos:
            stated[dimension] = value
    weighted = {
        dimension: Weighting(
            rule,
            np.array([weights[dimension].get(path, 1.0) for path in by_video]),
            bounds=(0.0, 1.0) if dimension in PARTS_OF_ONE else (-inf, inf),
            lacks=lacks,
        )
        for dimension, (rule, lacks) in rules.items()
    }
    return Scored(gather_columns(by_video.values(), table.name), tuple(table.value), stated, weighted=weighted)


def _videos(dimension: str, videos: Sequence[object], name: str) -> Iterator[tuple[str, float, Row]]:
    """Yield path, score and entry of each video of a dimension."""
    for number, video in enumerate(videos, start=1):
        where = f"video {number} of {dimension} in {name}"
        entry = video if isinstance(video, Mapping) else {}
        path = str(needed(entry.get("video_path"), where, "video_path"))
        given = entry["video_results"] if "video_results" in entry else needed(None, where, "video_results")
        score = score_in(given, where, "video_results")
        yield path, score / 100 if dimension in PERCENT else score, entry


def _made_by(
    dimension: str, value: float, entries: Sequence[tuple[str, float, Row]]
) -> tuple[str, str, list[float], list[float]]:
    """Return the rule that gives the value of a dimension, what it lacks, and the scores and weights of videos."""
    scores, ones = [score for _, score, _ in entries], [1.0] * len(entries)
    candidates = [("VBench by videos", scores, ones)]
    if frames := [count for _, _, entry in entries if (count := _frames(entry)) is not None and count > 0]:
        candidates[:0] = [("VBench by frames", scores, frames)] * (len(frames) == len(entries))
    last = [last for _, _, entry in entries if (last := number_of(entry.get("cur_sim"))) is not None]
    if last and len(last) == len(entries):
        candidates.append(("VBench by last frames", last, ones))
    for rule, numbers, weights in candidates:
        given = Weighting(rule, np.array(weights)).number(np.array(numbers)) if entries else value
        if isnan(value) or isclose(given, value, rel_tol=SAME, abs_tol=SAME):
            return rule, "", numbers, weights
    lacks = (
        "VBench weighs videos by their frames, which the file does not count"
        if dimension in UNCOUNTED
        else "the videos in the file do not give it: some may be missing, or the file was changed"
    )
    rule, numbers, weights = candidates[0]
    return rule, lacks, numbers, weights


def _frames(entry: Row) -> float | None:
    """Return the frames behind the score of a video, as far as its entry counts them."""
    frames = entry.get("frame_results")
    if isinstance(frames, list):
        return float(len(frames))
    return next((number_of(entry[key]) for key in ("frame_count", "cnt_per_video") if key in entry), None)


def _from_name(path: str) -> dict[str, str]:
    """Return the prompt and the seed in the name of a file."""
    stem = PurePosixPath(path.replace("\\", "/")).stem
    found = SEEDED.fullmatch(stem)
    return {"prompt": found["prompt"], "seed": found["seed"]} if found else {"prompt": stem}
