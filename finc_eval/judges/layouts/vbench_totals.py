"""Quality, semantic and total score of VBench, as its script "cal_final_score" makes them of its 16 dimensions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finc_eval.judges.paired import Integers, Means, Ruled, by_rule
from finc_eval.judges.sample_scores import SampleScores

QUALITY = {
    "subject_consistency": (0.1462, 1.0, 1.0),
    "background_consistency": (0.2615, 1.0, 1.0),
    "temporal_flickering": (0.6293, 1.0, 1.0),
    "motion_smoothness": (0.706, 0.9975, 1.0),
    "aesthetic_quality": (0.0, 1.0, 1.0),
    "imaging_quality": (0.0, 1.0, 1.0),
    "dynamic_degree": (0.0, 1.0, 0.5),
}
SEMANTIC = {
    "object_class": (0.0, 1.0, 1.0),
    "multiple_objects": (0.0, 1.0, 1.0),
    "human_action": (0.0, 1.0, 1.0),
    "color": (0.0, 1.0, 1.0),
    "spatial_relationship": (0.0, 1.0, 1.0),
    "scene": (0.0, 0.8222, 1.0),
    "appearance_style": (0.0009, 0.2855, 1.0),
    "temporal_style": (0.0, 0.364, 1.0),
    "overall_consistency": (0.0, 0.364, 1.0),
}
"""Least value, largest value and weight of each dimension (its "constant.py", read in 2026)."""

QUALITY_WEIGHT, SEMANTIC_WEIGHT = 4.0, 1.0  # parts of the total score (its "constant.py", read in 2026)


def _slopes(dimensions: Mapping[str, tuple[float, float, float]]) -> dict[str, float]:
    """Return how much a score rises with each dimension."""
    weights = sum(weight for *_, weight in dimensions.values())
    return {name: weight / (high - low) / weights for name, (low, high, weight) in dimensions.items()}


def _total() -> dict[str, float]:
    whole = QUALITY_WEIGHT + SEMANTIC_WEIGHT
    quality = {name: slope * QUALITY_WEIGHT / whole for name, slope in _slopes(QUALITY).items()}
    return quality | {name: slope * SEMANTIC_WEIGHT / whole for name, slope in _slopes(SEMANTIC).items()}


TOTALS = {"vbench_quality": _slopes(QUALITY), "vbench_semantic": _slopes(SEMANTIC), "vbench_total": _total()}
"""Dimensions of each score with their slopes."""


def totals_of(scores: Mapping[str, SampleScores]) -> tuple[str, ...]:
    """Return the scores of VBench that all models have all dimensions of, each of two prompts or more."""
    has = [
        {name for name in (*QUALITY, *SEMANTIC) if _is_known(name, table)}
        for table in scores.values()
        if table.weighted
    ]
    return tuple(key for key, slopes in TOTALS.items() if has and all(slopes.keys() <= known for known in has))


def _is_known(dimension: str, table: SampleScores) -> bool:
    rule = table.weighted.get(dimension)
    if rule is None or dimension not in table.judges or not rule.rule.startswith("VBench"):
        return False
    rows = np.flatnonzero(np.isfinite(table.judges[dimension]))
    return len({table.prompts[row] for row in rows}) > 1


def reported_total(key: str, table: SampleScores) -> float | None:
    """Return the score that VBench prints for the dimensions that a file states; None if it lacks some."""
    stated = {name: table.reported(name) for name in TOTALS[key]}
    known = {name: value for name, value in stated.items() if value is not None}
    return _summed(key, known) if len(known) == len(stated) else None


def _summed(key: str, values: Mapping[str, float]) -> float:
    lows = {name: low for name, (low, *_) in (QUALITY | SEMANTIC).items()}
    return sum(slope * (values[name] - lows[name]) for name, slope in TOTALS[key].items())


def mean_totals(key: str, scores: Mapping[str, SampleScores]) -> Means:
    """Return a score of VBench of each model, with the joint error over prompts, which dimensions may share.

    Args:
        key: name of the score.
        scores: scores by model, with all dimensions of it.
    """
    texts = sorted({prompt for table in scores.values() for prompt in table.prompts})
    number = {text: place for place, text in enumerate(texts)}
    values, influences, degrees, prompts, floors = [], [], [], [], []
    for table in scores.values():
        block = np.array([number[text] for text in table.prompts], np.int64)
        parts = {name: _dimension(table, name, block, len(texts)) for name in TOTALS[key]}
        slopes = TOTALS[key]
        values.append(_summed(key, {name: part.value for name, part in parts.items()}))
        influences.append(np.sum([slopes[name] * part.influences for name, part in parts.items()], 0))
        degrees.append(min(part.degrees for part in parts.values()))  # dimensions may share all of their prompts
        prompts.append(len({*table.prompts}))
        floors.append(sum(slopes[name] ** 2 * part.floor for name, part in parts.items()))
    joint = np.stack(influences)
    return Means(
        models=tuple(scores),
        values=np.array(values),
        influences=joint,
        degrees=min(degrees),
        prompts=tuple(prompts),
        is_paired=False,
        table=np.full(joint.shape, np.nan),
        within=float("nan"),
        seeds=float("nan"),
        fixed=np.zeros((len(scores), len(scores))),
        floors=np.array(floors),
    )


def _dimension(table: SampleScores, name: str, block: Integers, b: int) -> Ruled:
    rows = np.flatnonzero(np.isfinite(table.judges[name]))
    return by_rule(table.judges[name][rows], block[rows], table.weighted[name].at(rows), b)
