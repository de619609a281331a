"""Boards as other places read them: `.eval_results` and model-index of Hugging Face, and Every Eval Ever.

The first two do not have a field for an interval, so that it goes into the notes, with rank set and signature.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from finc_eval.core.provenance import package_version
from finc_eval.core.storage import PROGRAM
from finc_eval.leaderboards.columns import SHARES
from finc_eval.leaderboards.measures import bounds_of
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.standings import Criterion, Row, Standing
from finc_eval.partitions.settings import REFERENCE

SCHEMA_VERSION = "0.3.0"  # version of the schema of Every Eval Ever that is written
TASK = "unconditional-image-generation"  # name of the task of the numbers in model-index


@dataclass(frozen=True)
class Origin:
    """Facts that a board does not know of itself."""

    dataset: str  # id of the dataset that the reference is of, such as "my-lab/faces"
    url: str | None = None  # address where the board or its samples are; None if it is not published
    organization: str = "unknown"
    when: int | None = None  # seconds since 1970 at which the record is made; default: now


def eval_results(board: Leaderboard, row: Row, origin: Origin) -> str:
    """Return the `.eval_results/*.yaml` of a model: one entry per number, whose task has the name of the number.

    The dataset must be a benchmark whose `eval.yaml` has these tasks.
    """
    source: dict[str, object] = {} if origin.url is None else {"source": {"url": origin.url, "name": PROGRAM}}
    entries = [
        {"dataset": {"id": origin.dataset, "task_id": one.key}, "value": standing.value, **source}
        | {"notes": notes(one, standing)}
        for one, standing in _known_numbers(board, row)
    ]
    return _yaml(entries) + "\n"


def model_index(board: Leaderboard, row: Row, origin: Origin) -> str:
    """Return the metadata of a model card, `model-index`, as the front of a README."""
    metrics = [
        {
            "type": one.key,
            "name": one.title,
            "value": standing.value,
            "args": {"notes": notes(one, standing), "signature": str(one.signature)},
        }
        for one, standing in _known_numbers(board, row)
    ]
    result: dict[str, object] = {
        "task": {"type": TASK},
        "dataset": {"type": origin.dataset, "name": board.sets[REFERENCE].name},
        "metrics": metrics,
    }
    if origin.url is not None:
        result["source"] = {"name": PROGRAM, "url": origin.url}
    return "---\n" + _yaml({"model-index": [{"name": row.name, "results": [result]}]}) + "\n---\n"


def every_eval_ever(board: Leaderboard, row: Row, origin: Origin) -> str:
    """Return the record of a model in JSON after the schema of Every Eval Ever, with standard errors and intervals.

    It has the numbers that the model is ranked by: the schema asks of each whether lower is better.
    """
    when = str(int(time.time()) if origin.when is None else origin.when)
    info = board.sets[row.name]
    ranked = [(one, standing) for one, standing in _known_numbers(board, row) if standing.rank_set is not None]
    results = [_result(board, one, standing, info.n, origin) for one, standing in ranked]
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{PROGRAM}/{row.name}/{when}",
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": f"{PROGRAM} leaderboard",
            "source_type": "evaluation_run",
            "source_organization_name": origin.organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": PROGRAM,
            "version": package_version(),
            "additional_details": {"signature": str(board.signature)},
        },
        "model_info": {
            "name": row.name,
            "id": row.name,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "digest": info.digest,
                "training_runs": str(row.runs),
            },
        },
        "evaluation_results": results,
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


FORMATS: Mapping[str, tuple[str, Callable[[Leaderboard, Row, Origin], str]]] = {
    "eval-results": (".yaml", eval_results),
    "model-index": (".md", model_index),
    "every-eval-ever": (".json", every_eval_ever),
}
"""Suffix of the files of each format, and the function that writes one."""


def notes(criterion: Criterion, standing: Standing) -> str:
    """Return interval, rank set and signature of a number in words."""
    parts = []
    if standing.interval is not None:
        parts.append("95 % interval [{:.6g}, {:.6g}]".format(*standing.interval))
    if standing.rank_set is not None:
        low, high = standing.rank_set
        parts.append(f"rank {low if low == high else f'{low}-{high}'} of {len(criterion.names)}")
    if standing.reason is not None:
        parts.append(f"not ranked: {standing.reason}")
    return "; ".join([*parts, f"signature {criterion.signature}"])


def _known_numbers(board: Leaderboard, row: Row) -> list[tuple[Criterion, Standing]]:
    """Return the numbers that the model has: nothing is written for what is missing."""
    standings = [(one, row.scores[one.key]) for one in board.criteria]
    return [(one, standing) for one, standing in standings if standing.value is not None]


def _result(board: Leaderboard, one: Criterion, standing: Standing, n: int, origin: Origin) -> dict[str, object]:
    low, high = (0.0, 1.0) if one.key in SHARES else bounds_of(one.key)
    uncertainty: dict[str, object] = {"num_samples": n}
    method = "influence of samples" if standing.training_error is None else "influence of samples and training runs"
    if standing.sampling_error is not None:
        error = (standing.sampling_error**2 + (standing.training_error or 0.0) ** 2) ** 0.5
        uncertainty["standard_error"] = {"value": error, "method": method}
    if standing.interval is not None:
        lower, upper = standing.interval
        interval = {"lower": lower, "upper": upper, "confidence_level": 0.95, "method": method}
        uncertainty["confidence_interval"] = interval
    data = {"dataset_name": board.sets[REFERENCE].name, "source_type": "hf_dataset", "hf_repo": origin.dataset}
    return {
        "evaluation_name": one.key,
        "source_data": data | {"additional_details": {"digest": board.sets[REFERENCE].digest}},
        "metric_config": {
            "evaluation_description": one.title,
            "metric_id": f"{PROGRAM}.{one.key}",
            "metric_name": one.key,
            "lower_is_better": not one.higher_is_better,
            "score_type": "continuous",
            "min_score": low if isfinite(low) else "-Infinity",
            "max_score": high if isfinite(high) else "Infinity",
            "additional_details": {"signature": str(one.signature)},
        },
        "score_details": {
            "score": standing.value,
            "uncertainty": uncertainty,
            "details": {"notes": notes(one, standing), "covers": board.covers},
        },
    }


def _yaml(value: object, depth: int = 0) -> str:
    """Write plain types as YAML in blocks; texts are quoted as in JSON, which YAML reads alike."""
    space = "  " * depth
    if isinstance(value, Mapping):
        return "\n".join(f"{space}{key}:{_below(one, depth)}" for key, one in value.items())
    if isinstance(value, list):
        return "\n".join(f"{space}- {_yaml(one, depth + 1).lstrip()}" for one in value)
    return space + _scalar(value)


def _below(value: object, depth: int) -> str:
    return f"\n{_yaml(value, depth + 1)}" if isinstance(value, Mapping | list) else f" {_scalar(value)}"


def _scalar(value: object) -> str:
    text = json.dumps(value, allow_nan=False)
    # Without a point, YAML 1.1 reads 1e-05 as a text.
    return text.replace("e", ".0e", 1) if isinstance(value, float) and "e" in text and "." not in text else text
