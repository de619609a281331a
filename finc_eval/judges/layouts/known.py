"""Result files of public tools as columns of scores, each recognized by its content.

Layouts, read in the tools' own code. VBench 0.1.5 and lmms-eval 0.7.3 wrote files with their own functions, which are
read:

- VBench `*_eval_results.json`: `{dimension: [value, [{video_path, video_results}]]}`.
- GenEval `results.jsonl`: a line an image, with `filename`, `tag`, `prompt` and `correct`.
- GenEval 2: a list of the atoms' scores of each prompt, in the order of its prompts, or `results` with `atom_scores`.
- T2I-CompBench `vqa_result.json`: a list of `{question_id, answer}`; the folder of the file names the judge.
- HPS: `{style: [scores]}`, in the order of the prompts of each style, also by the name of the model.
- ImageReward: a list of `{id, prompt, mean_score, rewards}`, also of its other scores, which the name of the file says.
- lmms-eval `*_samples_*.jsonl`: a line a sample, with `doc_id`, `filtered_resps`, `input` and metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from finc_eval.core.errors import DataError
from finc_eval.judges.layouts.compositional import (
    is_comp_bench,
    is_geneval,
    is_geneval2,
    read_comp_bench,
    read_geneval,
    read_geneval2,
)
from finc_eval.judges.layouts.lmms_eval import is_lmms, read_lmms
from finc_eval.judges.layouts.rewards import is_hps, is_image_reward, read_hps, read_image_reward
from finc_eval.judges.layouts.scored import Scored
from finc_eval.judges.layouts.vbench import is_vbench, read_vbench
from finc_eval.judges.tables import NamedColumns

EXPECTED = (
    "expected columns: id or prompt (and seed), and a numeric column for each judge; or a result file of VBench, "
    "GenEval, GenEval 2, T2I-CompBench, HPS, ImageReward or lmms-eval"
)
"""Forms that a file of scores may have, for messages."""


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


LAYOUTS: tuple[tuple[Callable[[NamedColumns], bool], Callable[[NamedColumns], Scored]], ...] = (
    (is_vbench, read_vbench),
    (is_geneval2, read_geneval2),
    (is_hps, read_hps),
    (is_geneval, read_geneval),
    (is_comp_bench, read_comp_bench),
    (is_image_reward, read_image_reward),
    (is_lmms, read_lmms),
)
