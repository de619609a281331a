"""Samples of sketches that are added: none may be of both, and unlike samples of one name are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from finc_eval.core.errors import DataError
from finc_eval.core.words import plural
from finc_eval.embeddings.keys import even_row_hashes
from finc_eval.sketches.folds import BottomSample


def check_disjoint(sources: Sequence[Collection[str]], samples: Sequence[BottomSample]) -> None:
    """Raise DataError if two sketches are of the same samples, as far as their sources and their samples show.

    Arrays without ids have the numbers of their rows as ids: equal numbers are not the same sample.
    """
    if common := {*sources[0]} & {*sources[1]}:
        raise DataError(
            f"both sketches are of {plural(len(common), 'set')} with the digest {min(common)[:12]}: add each set once"
        )
    first, second = (
        {pair for pair in zip(sample.ids, even_row_hashes(sample.rows).tolist(), strict=True) if not pair[0].isdigit()}
        for sample in samples
    )
    if both := first & second:
        raise DataError(
            f"the sample {min(both)[0]!r} is in both sketches, with the same embedding: add each sample once"
        )


def tell_apart(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that came before.

    Example:
        >>> tell_apart(["a", "b", "a"])
        ['a', 'b', 'a-1']
    """
    seen, taken, told = Counter[str](), {*names}, []
    for name in names:
        own, number = name, seen[name]
        while number and own in taken:
            own, number = f"{name}-{number}", number + 1
        seen[name] += 1
        taken.add(own)
        told.append(own)
    return told
