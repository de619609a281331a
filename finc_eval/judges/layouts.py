"""Result files of public tools as columns of scores, each recognized by its content.

Layouts, read in the tools' own code. VBench 0.1.5 and lmms-eval 0.7.3 wrote files with their own functions, which are
read:

- VBench `*_eval_results.json`: `{dimension: [value, [{video_path, video_results}]]}`.
- GenEval `results.jsonl`: a line an image, with `filename`, `tag`, `prompt` and `correct`.
- GenEval 2: a list of the atoms' scores of each prompt, in the order of its prompts, or `results` with `atom_scores`.
- HPS: `{style: [scores]}`, in the order of the prompts of each style, also by the name of the model.
- ImageReward: a list of `{id, prompt, mean_score, rewards}`, also of its other scores, which the name of the file says.
- lmms-eval `*_samples_*.jsonl`: a line a sample, with `doc_id`, `filtered_resps`, `input` and metrics.

What a layout lacks is named by its place: a cut or joined file of a real tool is one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, isnan, log
from pathlib import PurePosixPath
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.core.files.columns_in import Columns
from finc_eval.core.files.csv_text import gather_columns
from finc_eval.judges.tables import NamedColumns, number_of, shown, text_of
from finc_eval.samples.metadata import SEEDED

EXPECTED = (
    "expected columns: id or prompt (and seed), and a numeric column for each judge; or a result file of VBench, "
    "GenEval, GenEval 2, HPS, ImageReward or lmms-eval"
)
"""Forms that a file of scores may have, for messages."""

LOGGED = ("doc_id", "doc", "target", "resps", "filtered_resps", "doc_hash", "input", "arguments", "token_counts")
"""Keys of lmms-eval's lines that are not metrics."""

IMAGE_REWARD_SCORES = ("clip", "blip", "aesthetic")  # scores that ImageReward's benchmark writes besides its own

MAX_SCORE = 1e50  # size of a score that is read: sums of squares of larger ones would have no end

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scored:
    """Columns id, prompt, seed, labels and judges.

    Attributes:
        columns: columns of equal lengths.
        judges: columns that the layout knows as judges; None for a table that is nobody's layout.
        stated: number that the file states for the whole model, by judge.
        has_names: whether ids are names of samples; False if the layout has none, and ids are made from prompts.
    """

    columns: Columns
    judges: tuple[str, ...] | None = None
    stated: dict[str, float] = field(default_factory=dict)
    has_names: bool = True


def scored(table: NamedColumns) -> Scored:
    """Return the columns of a table of scores.

    Raises:
        DataError: the layout is not known, or a part of it lacks what it needs.
    """
    for is_one, read in LAYOUTS:
        if is_one(table):
            return read(table)
    values = table.value.values() if isinstance(table.value, Mapping) and table.n == 1 else ()
    if not table.n or any(isinstance(value, Mapping | list) for value in values):
        raise DataError(f"{table.name} has a layout that is not known: {EXPECTED}")
    return Scored(table.columns)


def score_in(value: object, where: str, what: str) -> float:
    """Return a value as a score, NaN if it is missing; DataError for a text, and for what no score can be."""
    found = number_of(value)
    if found is None:
        raise DataError(f"{where} has {what} {shown(value):.60}, not a number: correct it")
    if abs(found) > MAX_SCORE:
        raise DataError(
            f"{where} has {what} {shown(value):.40}, beyond {MAX_SCORE:g}: correct it, or leave its cell empty"
        )
    return found


def _needed(value: Any, where: str, key: str) -> Any:
    """Return a value that a layout needs; DataError if it is missing."""
    if value is None or value == "":
        raise DataError(f"{where} lacks {key}: the file is cut or mixed with another; make it again")
    return value


def _is_vbench(table: NamedColumns) -> bool:
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


def _vbench(table: NamedColumns) -> Scored:
    by_video: dict[str, dict[str, Any]] = {}
    stated = {}
    for dimension, (overall, videos) in table.value.items():
        for number, video in enumerate(videos, start=1):
            where = f"video {number} of {dimension} in {table.name}"
            entry = video if isinstance(video, Mapping) else {}
            path = str(_needed(entry.get("video_path"), where, "video_path"))
            given = entry["video_results"] if "video_results" in entry else _needed(None, where, "video_results")
            score = score_in(given, where, "video_results")
            by_video.setdefault(path, {"id": path, **_from_name(path)})[dimension] = score
        if not isnan(mean := score_in(overall, f"{dimension} in {table.name}", "the value")) and videos:
            stated[dimension] = mean
    return Scored(gather_columns(by_video.values(), table.name), tuple(table.value), stated)


def _from_name(path: str) -> dict[str, str]:
    """Return the prompt and the seed in the name of a file."""
    stem = PurePosixPath(path.replace("\\", "/")).stem
    found = SEEDED.fullmatch(stem)
    return {"prompt": found["prompt"], "seed": found["seed"]} if found else {"prompt": stem}


def _is_geneval(table: NamedColumns) -> bool:
    return {"filename", "tag", "prompt", "correct"} <= table.columns.keys()


def _geneval(table: NamedColumns) -> Scored:
    """Return the columns, and the mean over tasks of the share of right images, which GenEval prints."""
    names: dict[str, list[Any]] = {key: [] for key in ("id", "prompt", "tag", "geneval")}
    tasks: dict[str, list[float]] = {}
    columns = [table.columns[key] for key in ("filename", "prompt", "tag", "correct")]
    for row, values in enumerate(zip(*columns, strict=True)):
        where = table.place(row)
        for key, value in zip(("filename", "prompt", "tag", "correct"), values, strict=True):
            _needed(value, where, key)
        score = score_in(values[3], where, "correct")
        for column, value in zip(names.values(), (*map(text_of, values[:3]), score), strict=True):
            column.append(value)
        tasks.setdefault(text_of(values[2]), []).append(score)
    means = [sum(scores) / len(scores) for scores in tasks.values()]
    stated = {"geneval": sum(means) / len(means)} if means else {}
    return Scored({**names}, ("geneval",), stated)


def _atoms(scores: Any) -> bool:
    return isinstance(scores, list) and bool(scores) and all(number_of(score) is not None for score in scores)


def _is_order(scores: list[Any]) -> bool:
    """Return whether numbers are 0, 1, 2, … in any order, as in the rankings that HPS writes."""
    numbers = [number_of(score) for score in scores]
    known = [number for number in numbers if number is not None]
    return len(scores) > 1 and len(known) == len(numbers) and sorted(known) == [*range(len(scores))]


def _is_geneval2(table: NamedColumns) -> bool:
    value = table.value
    if isinstance(value, list):
        return bool(value) and all(isinstance(atoms, list) for atoms in value) and _any_atoms(value)
    results = value.get("results") if isinstance(value, Mapping) else None
    return isinstance(results, list) and any(
        isinstance(result, Mapping) and "atom_scores" in result for result in results
    )


def _any_atoms(value: list[Any]) -> bool:
    """Return whether lists are of numbers, but for few mistakes, and are not all rankings."""
    return 2 * sum(map(_atoms, value)) > len(value) and not all(map(_is_order, value))


def _geneval2(table: NamedColumns) -> Scored:
    """Return the arithmetic and the geometric mean of the atoms of each image (Soft-TIFA)."""
    results = table.value["results"] if isinstance(table.value, Mapping) else table.value
    rows = []
    for number, result in enumerate(results):
        where = f"prompt {number + 1} of {table.name}"
        has = isinstance(result, Mapping)
        given = result.get("atom_scores") if has else result
        if not isinstance(given, list) or not given:
            raise DataError(f"{where} lacks atom_scores: the file is cut or mixed with another; make it again")
        atoms = [score_in(_needed(score, where, "an atom's score"), where, "an atom's score") for score in given]
        geometric = exp(sum(log(max(score, 1e-12)) for score in atoms) / len(atoms))
        named = (
            {"id": result.get("sample_id", number), "prompt": result.get("prompt", number)}
            if has
            else {"prompt": number}
        )
        rows.append({**named, "soft_tifa_am": sum(atoms) / len(atoms), "soft_tifa_gm": geometric})
    return Scored(gather_columns(rows, table.name), ("soft_tifa_am", "soft_tifa_gm"), has_names=False)


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


def _is_hps(table: NamedColumns) -> bool:
    return bool(_styles(table))


def _hps(table: NamedColumns) -> Scored:
    rows = (
        {
            "id": f"{style}/{number:05d}.jpg",
            "prompt": f"{style} {number}",
            "style": style,
            "hps": score_in(score, f"score {number + 1} of {style} in {table.name}", "the value"),
        }
        for style, scores in _styles(table).items()
        for number, score in enumerate(scores)
    )
    return Scored(gather_columns(rows, table.name), ("hps",), has_names=False)


def _is_image_reward(table: NamedColumns) -> bool:
    return {"prompt", "rewards"} <= table.columns.keys()


def _image_reward(table: NamedColumns) -> Scored:
    judge = PurePosixPath(table.name).name.partition("-benchmark-")[0].lower()
    judge = judge if judge in IMAGE_REWARD_SCORES else "image_reward"
    rows = (
        {"id": name, "prompt": prompt, "seed": seed, judge: score}
        for row, record in enumerate(table.rows())
        for name, prompt, seed, score in _rewards(record, table.place(row))
    )
    return Scored(gather_columns(rows, table.name), (judge,), has_names=False)


def _rewards(row: Row, where: str) -> Iterator[tuple[str, str, int, float]]:
    prompt, given = (_needed(row.get(key), where, key) for key in ("prompt", "rewards"))
    for seed, reward in enumerate(given if isinstance(given, list) else [given]):
        score = reward[0] if isinstance(reward, list) and len(reward) == 1 else reward
        name = f"{prompt} {seed}" if row.get("id") is None else f"{text_of(row['id'])}_{seed}.png"
        yield name, text_of(prompt), seed, score_in(score, where, "a reward")


def _is_lmms(table: NamedColumns) -> bool:
    return {"doc_id", "filtered_resps"} <= table.columns.keys()


def _lmms(table: NamedColumns) -> Scored:
    ids = [text_of(_needed(doc, table.place(row), "doc_id")) for row, doc in enumerate(table.columns["doc_id"])]
    prompts = [_prompt_of(row, id) for row, id in zip(table.rows(), ids, strict=True)]
    if len({*prompts}) < len(prompts):  # one question about many pictures does not say which sample it is
        prompts = ids
    rows = [
        {"id": id, "prompt": prompt, **dict(_numbers(row, table.place(place)))}
        for place, (row, id, prompt) in enumerate(zip(table.rows(), ids, prompts, strict=True))
    ]
    columns = gather_columns(rows, table.name)
    return Scored(columns, tuple(column for column in columns if column not in ("id", "prompt")), has_names=False)


def _prompt_of(row: Row, id: str) -> str:
    """Return the prompt of a logged sample, or else the text that the model was given."""
    doc = row.get("doc")
    found = doc.get("prompt") if isinstance(doc, Mapping) else None
    return next((text for text in (found, row.get("input")) if isinstance(text, str) and text), id)


def _numbers(values: Mapping[str, Any], where: str, before: str = "") -> Iterator[tuple[str, float]]:
    """Yield numbers that are not ids, also of tables one level down, by their names."""
    for key, value in values.items():
        if not before and key in LOGGED:
            continue
        if isinstance(value, Mapping) and not before:
            yield from _numbers(value, where, f"{key}.")
        elif isinstance(value, bool | int | float) and key not in ("id", "index") and not key.endswith("_id"):
            yield f"{before}{key}", score_in(value, where, f"{before}{key}")


LAYOUTS: tuple[tuple[Callable[[NamedColumns], bool], Callable[[NamedColumns], Scored]], ...] = (
    (_is_vbench, _vbench),
    (_is_geneval2, _geneval2),
    (_is_hps, _hps),
    (_is_geneval, _geneval),
    (_is_image_reward, _image_reward),
    (_is_lmms, _lmms),
)
