"""Independent samples of an evaluation: one of each prompt, unless its prompts are those of the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.monitoring.exchange import Counts
from finc_eval.naming.properties import TEXT_COLUMNS


def one_of_each(groups: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark one sample of each group, at random."""
    order = rng.permutation(len(groups))
    chosen = order[np.unique(groups[order], return_index=True)[1]]
    return np.isin(np.arange(len(groups)), chosen)


def numbers_of(names: Sequence[str]) -> Counts:
    """Return the number of each text among all different ones."""
    return np.asarray(np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1], np.int64)


def prompts_of(one: Embeddings, prompts: Sequence[str] | None) -> list[str] | None:
    """Return the prompt of each sample, as given or in a column; None without prompts."""
    if prompts is not None:
        if len(prompts) != one.n:
            raise UsageError(
                f"there are {plural(len(prompts), 'prompt')} for {plural(one.n, 'sample')}: give one a sample"
            )
        return [str(prompt) for prompt in prompts]
    column = next((name for name in TEXT_COLUMNS if name in one.columns), None)
    return None if column is None else one.column(column)
