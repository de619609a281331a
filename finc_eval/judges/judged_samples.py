"""Samples of a set that scores are of: by id, by prompt, or by number; names are checked before the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.places import is_url
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import training_runs
from finc_eval.judges.paired import Integers
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.scores import match_ids, match_numbers
from finc_eval.samples.files import FolderFiles, ZipFiles
from finc_eval.samples.metadata import PROMPT_KEYS


def check_names(scores: Mapping[str, SampleScores], models: Mapping[str, object]) -> None:
    """Raise DataError if no id of a model's scores is one of its samples, as far as that is known before the work."""
    for name, table in scores.items():
        if not (table.has_ids and table.has_names) or name not in models:
            continue
        first = next(iter(training_runs(models[name])), None)
        names = _names_in(first)
        if names and not (match_ids(table.ids, names) >= 0).any() and not _has_prompt(table, names):
            raise _no_sample(name, table, names[0])


def _names_in(source: object) -> list[str]:
    """Return the names that a set has without being opened, such as of files and their folders; [] if unknown."""
    if isinstance(source, Embeddings):
        return source.ids_between(0, source.n)
    if isinstance(source, np.ndarray):
        return [*map(str, range(len(source)))]
    if not isinstance(source, str | Path) or is_url(source):
        return []
    path = Path(source)
    files = FolderFiles(path) if path.is_dir() else ZipFiles(path) if path.suffix.lower() == ".zip" else None
    names = [] if files is None else [*files.names()]
    return [*dict.fromkeys([*names, *(str(folder) for name in names for folder in PurePosixPath(name).parents)])]


def _has_prompt(scores: SampleScores, names: Sequence[str]) -> bool:
    """Return whether samples may be found by their prompts: a set with files of metadata has some."""
    kinds = {PurePosixPath(name).suffix.lower() for name in names}
    return scores.has_prompts and not kinds.isdisjoint((".csv", ".jsonl", ".json", ".txt", ".tsv"))


def rows_in(name: str, scores: SampleScores, samples: Embeddings) -> Integers:
    """Return the row of the set of each scored sample, −1 for none: by id, by prompt, or by its number.

    Raises:
        DataError: the table has ids, and none of them is a sample, nor is a prompt.
    """
    if not scores.has_ids and not scores.has_prompts:
        numbers = np.arange(scores.n)
        return np.where(numbers < samples.n, numbers, -1)
    if scores.has_ids:
        names = samples.ids_between(0, samples.n)
        found = match_numbers(scores.ids, names) if scores.is_numbered else match_ids(scores.ids, names)
        if (found >= 0).any():
            return found
    if scores.has_prompts and PROMPT_KEYS[0] in samples.columns:
        prompts = samples.column(PROMPT_KEYS[0])
        found = np.arange(scores.n) if list(scores.prompts) == prompts else match_ids(scores.prompts, prompts)
        if (found >= 0).any():
            return found
    if scores.has_ids and scores.has_names:
        raise _no_sample(name, scores, samples.ids_between(0, 1)[0])
    return np.full(scores.n, -1)


def with_prompts(scores: SampleScores, samples: Embeddings, rows: Integers) -> SampleScores:
    """Return scores with the prompts of the set, where their table has none and the set has a column of prompts."""
    if scores.has_prompts or PROMPT_KEYS[0] not in samples.columns:
        return scores
    prompts = samples.column(PROMPT_KEYS[0])
    known = tuple(prompts[row] or id if row >= 0 else id for row, id in zip(rows, scores.ids, strict=True))
    return replace(scores, prompts=known, has_prompts=True)


def _no_sample(name: str, scores: SampleScores, first: str) -> DataError:
    scored = f"{scores.ids[0]!r:.60}"
    return DataError(
        f"no id of {scores.name} is a sample of {name} ({scored} is not {first!r:.60}): write the names as the samples "
        "have them, or pass the scores of these samples"
    )


def say_missing(name: str, scores: SampleScores, rows: Integers, samples: Embeddings) -> Iterator[str]:
    """Yield how many scores have no sample, and how many samples of a set have no score, by judge."""
    if not (rows >= 0).any():
        if scores.has_ids:
            yield f"{scores.name} names no sample of {name}: scores are ranked, and nothing is said by kind"
        return
    if scores.is_numbered and not scores.has_prompts:
        yield (
            f"neither {scores.name} nor {name} has prompts, so that each image counts as a prompt: if a prompt has "
            "several images, intervals are too narrow; give the set a column prompt"
        )
    by_count: dict[int, list[str]] = {}
    for judge, values in scores.judges.items():
        scored = len(np.unique(rows[(rows >= 0) & np.isfinite(values)]))
        if scored < samples.n:
            by_count.setdefault(samples.n - scored, []).append(judge)
    if unnamed := by_count.pop(samples.n, []):
        yield (
            f"scores of {name} by {join_words(unnamed)} name no sample of it: they are ranked, and nothing is said of "
            "them by kind"
        )
    for count, judges in by_count.items():
        yield f"{plural(count, 'sample')} of {samples.n:,} of {name} {_have(count)} no score by {join_words(judges)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
