"""Layouts of reward models: HPS (scores by style) and ImageReward (rewards by prompt)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from finc_eval.core.files.csv_text import gather_columns
from finc_eval.judges.layouts.scored import Row, Scored, needed, score_in
from finc_eval.judges.tables import NamedColumns, number_of, text_of
from finc_eval.judges.weighting import Weighting

IMAGE_REWARD_SCORES = ("clip", "blip", "aesthetic")  # scores that ImageReward's benchmark writes besides its own


def _styles(table: NamedColumns) -> Mapping[str, Any]:
    """Return the scores by style of HPS; empty for another layout."""
    value = table.value
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(next(iter(value.values())), Mapping):
        value = next(iter(value.values()))
    if not isinstance(value, Mapping) or not all(
        isinstance(scores, list) and len(scores) > 2 for scores in value.values()
    ):
        return {}
    mostly = (2 * sum(number_of(each) is not None for each in scores) > len(scores) for scores in value.values())
    return value if value and all(mostly) else {}


def is_hps(table: NamedColumns) -> bool:
    """Return whether a table has the lists of scores by style that HPS v2 prints means of."""
    return bool(_styles(table))


def read_hps(table: NamedColumns) -> Scored:
    """Return the scores of images; the last line that HPS v2 prints, "Average", is their mean over all styles."""
    rows = [
        {
            "id": f"{style}/{number:05d}.jpg",
            "prompt": f"{style} {number}",
            "style": style,
            "hps": score_in(score, f"score {number + 1} of {style} in {table.name}", "the value"),
        }
        for style, scores in _styles(table).items()
        for number, score in enumerate(scores)
    ]
    rule = Weighting.plain("HPS by images", len(rows))
    return Scored(gather_columns(rows, table.name), ("hps",), has_names=False, weighted={"hps": rule})


def is_image_reward(table: NamedColumns) -> bool:
    """Return whether a table is a result file of the benchmark of ImageReward."""
    return {"prompt", "rewards"} <= table.columns.keys()


def read_image_reward(table: NamedColumns) -> Scored:
    """Return the rewards of images; the benchmark prints the mean over the rows, which are prompts, of their means."""
    named = PurePosixPath(table.name).name.partition("-benchmark-")[0].lower()
    judge = named if named in IMAGE_REWARD_SCORES else "image_reward"
    version = named.partition("imagereward-")[2]
    rows, weights = list[dict[str, object]](), list[float]()
    for number, record in enumerate(table.rows()):
        images = [*_rewards(record, table.place(number))]
        rows += [{"id": name, "prompt": prompt, "seed": seed, judge: score} for name, prompt, seed, score in images]
        weights += [1 / len(images)] * len(images)
    means = [number_of(record.get("mean_score")) for record in table.rows()]
    known = [mean for mean in means if mean is not None and np.isfinite(mean)]
    rule = Weighting("ImageReward by prompts", np.array(weights))
    return Scored(
        gather_columns(rows, table.name),
        (judge,),
        {judge: float(np.mean(known))} if known and len(known) == len(means) else {},
        has_names=False,
        versions={judge: version} if version else {},
        weighted={judge: rule},
    )


def _rewards(row: Row, where: str) -> Iterator[tuple[str, str, int, float]]:
    prompt, given = (needed(row.get(key), where, key) for key in ("prompt", "rewards"))
    for seed, reward in enumerate(given if isinstance(given, list) else [given]):
        score = reward[0] if isinstance(reward, list) and len(reward) == 1 else reward
        name = f"{prompt} {seed}" if row.get("id") is None else f"{text_of(row['id'])}_{seed}.png"
        yield name, text_of(prompt), seed, score_in(score, where, "a reward")
