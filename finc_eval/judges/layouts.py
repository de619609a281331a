"""Result files of public tools as rows of scores, each recognized by its content.

Layouts, read in the tools' own code. VBench 0.1.5 and lmms-eval 0.7.3 wrote files with their own functions, which are
read:

- VBench `*_eval_results.json`: `{dimension: [mean, [{video_path, video_results}]]}`.
- GenEval `results.jsonl`: a line an image, with `filename`, `tag`, `prompt` and `correct`.
- GenEval 2: a list of the atoms' scores of each prompt, in the order of its prompts, or `results` with `atom_scores`.
- HPS: `{style: [scores]}`, in the order of the prompts of each style, also by the name of the model.
- ImageReward: a list of `{id, prompt, mean_score, rewards}`, also of its other scores, which the name of the file says.
- lmms-eval `*_samples_*.jsonl`: a line a sample, with `doc_id`, `filtered_resps`, `input` and metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import exp, log
from pathlib import PurePosixPath
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.judges.rows import Row, RowTable, number_of
from finc_eval.samples.metadata import SEEDED

EXPECTED = (
    "expected columns: id or prompt (and seed), and a numeric column for each judge; or a result file of VBench, "
    "GenEval, GenEval 2, HPS, ImageReward or lmms-eval"
)
"""Forms that a file of scores may have, for messages."""

LOGGED = ("doc_id", "doc", "target", "resps", "filtered_resps", "doc_hash", "input", "arguments", "token_counts")
"""Keys of lmms-eval's lines that are not metrics."""

IMAGE_REWARD_SCORES = ("clip", "blip", "aesthetic")  # scores that ImageReward's benchmark writes besides its own


def rows_of(table: RowTable) -> list[Row]:
    """Return rows of scores with columns id, prompt, seed, labels and judges.

    Raises:
        DataError: the layout is not known.
    """
    for is_one, read in LAYOUTS:
        if is_one(table):
            found = list(read(table))
            if found:
                return found
    if table.is_whole or not table.rows:
        raise DataError(f"{table.name} has a layout that is not known: {EXPECTED}")
    return table.rows


def _is_vbench(table: RowTable) -> bool:
    value = table.value
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(
            isinstance(one, list)
            and len(one) == 2
            and isinstance(one[1], list)
            and all(isinstance(each, Mapping) and {"video_path", "video_results"} <= each.keys() for each in one[1])
            for one in value.values()
        )
    )


def _vbench(table: RowTable) -> Iterator[Row]:
    by_video: dict[str, dict[str, Any]] = {}
    for dimension, (_, videos) in table.value.items():
        for one in videos:
            path = str(one["video_path"])
            stem = PurePosixPath(path.replace("\\", "/")).stem
            found = SEEDED.fullmatch(stem)
            parts = {"prompt": found["prompt"], "seed": found["seed"]} if found else {"prompt": stem}
            by_video.setdefault(path, {"id": path, **parts})[dimension] = one["video_results"]
    yield from by_video.values()


def _is_geneval(table: RowTable) -> bool:
    return bool(table.rows) and {"filename", "tag", "prompt", "correct"} <= table.rows[0].keys()


def _geneval(table: RowTable) -> Iterator[Row]:
    for row in table.rows:
        yield {"id": row["filename"], "prompt": row["prompt"], "tag": row["tag"], "geneval": row["correct"]}


def _atoms(scores: Any) -> bool:
    return isinstance(scores, list) and bool(scores) and all(number_of(one) is not None for one in scores)


def _is_order(scores: Any) -> bool:
    """Return whether numbers are 0, 1, 2, … in any order, as in the rankings that HPS writes."""
    return len(scores) > 1 and sorted(scores) == [*range(len(scores))]


def _is_geneval2(table: RowTable) -> bool:
    value = table.value
    if isinstance(value, list):
        return bool(value) and all(_atoms(one) for one in value) and not all(map(_is_order, value))
    results = value.get("results") if isinstance(value, Mapping) else None
    return (
        isinstance(results, list)
        and bool(results)
        and all(isinstance(one, Mapping) and _atoms(one.get("atom_scores")) for one in results)
    )


def _geneval2(table: RowTable) -> Iterator[Row]:
    """Yield the arithmetic and the geometric mean of the atoms of each image (Soft-TIFA)."""
    results = table.value["results"] if isinstance(table.value, Mapping) else table.value
    for number, one in enumerate(results):
        has = isinstance(one, Mapping)
        atoms = [float(number_of(score) or 0) for score in (one["atom_scores"] if has else one)]
        geometric = exp(sum(log(max(score, 1e-12)) for score in atoms) / len(atoms))
        named = {"id": one.get("sample_id", number), "prompt": one.get("prompt", number)} if has else {"prompt": number}
        yield {**named, "soft_tifa_am": sum(atoms) / len(atoms), "soft_tifa_gm": geometric}


def _is_hps(table: RowTable) -> bool:
    value = table.value
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(next(iter(value.values())), Mapping):
        value = next(iter(value.values()))
    return isinstance(value, Mapping) and bool(value) and all(_atoms(one) and len(one) > 2 for one in value.values())


def _hps(table: RowTable) -> Iterator[Row]:
    value = table.value
    if isinstance(next(iter(value.values())), Mapping):
        value = next(iter(value.values()))
    for style, scores in value.items():
        for number, score in enumerate(scores):
            yield {"id": f"{style}/{number:05d}.jpg", "prompt": f"{style} {number}", "style": style, "hps": score}


def _is_image_reward(table: RowTable) -> bool:
    return bool(table.rows) and {"prompt", "rewards"} <= table.rows[0].keys()


def _image_reward(table: RowTable) -> Iterator[Row]:
    judge = PurePosixPath(table.name).name.partition("-benchmark-")[0].lower()
    judge = judge if judge in IMAGE_REWARD_SCORES else "image_reward"
    for row in table.rows:
        rewards = row["rewards"] if isinstance(row["rewards"], list) else [row["rewards"]]
        for seed, reward in enumerate(rewards):
            score = reward[0] if isinstance(reward, list) and len(reward) == 1 else reward
            name = f"{row['id']}_{seed}.png" if "id" in row else f"{row['prompt']} {seed}"
            yield {"id": name, "prompt": row["prompt"], "seed": seed, judge: score}


def _is_lmms(table: RowTable) -> bool:
    return bool(table.rows) and {"doc_id", "filtered_resps"} <= table.rows[0].keys()


def _lmms(table: RowTable) -> Iterator[Row]:
    prompts = [_prompt_of(row) for row in table.rows]
    if len({*prompts}) < len(prompts):  # one question about many pictures does not say which sample it is
        prompts = [str(row["doc_id"]) for row in table.rows]
    for row, prompt in zip(table.rows, prompts, strict=True):
        scores = dict(_numbers({key: value for key, value in row.items() if key not in LOGGED}))
        yield {"id": row["doc_id"], "prompt": prompt, **scores}


def _prompt_of(row: Row) -> str:
    """Return the prompt of a logged sample, or else the text that the model was given."""
    doc = row.get("doc")
    found = doc.get("prompt") if isinstance(doc, Mapping) else None
    return next((one for one in (found, row.get("input")) if isinstance(one, str) and one), str(row["doc_id"]))


def _numbers(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Yield numbers that are not ids, also of tables one level down, by their names."""
    for key, value in values.items():
        if isinstance(value, Mapping) and not before:
            yield from _numbers(value, f"{key}.")
        elif isinstance(value, bool | int | float) and key not in ("id", "index") and not key.endswith("_id"):
            yield f"{before}{key}", float(value)


LAYOUTS: tuple[tuple[Callable[[RowTable], bool], Callable[[RowTable], Iterator[Row]]], ...] = (
    (_is_vbench, _vbench),
    (_is_geneval2, _geneval2),
    (_is_hps, _hps),
    (_is_geneval, _geneval),
    (_is_image_reward, _image_reward),
    (_is_lmms, _lmms),
)
