"""The sample that a sketch keeps, as a set: with its columns, and in groups if they are known."""

from __future__ import annotations

from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.repeats import REPEATS, row_hashes
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.sketches.folds import BottomSample


def sample_as_set(
    sample: BottomSample, name: str, space: str, groups: str | None, repeats: HashCounts | None
) -> EmbeddingSet | None:
    """Return the sample of a sketch as a set; None if it is empty, or its groups are unknown.

    Args:
        sample: bottom-k sample, whose ids or columns tell the groups.
        name: name of the set in messages.
        space: extractor of the embeddings, as name@digest.
        groups: what groups the samples: a column, "video", or exact repeats; None if ungrouped.
        repeats: how many samples have each embedding in the whole set; None if it is not known.
    """
    if not sample.ids:
        return None
    held = EmbeddingSet(sample.rows, sample.ids, sample.columns, name=name)
    held.space, held.stands_for = space, repeats
    if groups == REPEATS:
        held = held.with_groups(row_hashes(held), REPEATS)
    elif groups in held.columns:
        held = held.with_groups(held.grouped(groups).group_hashes(), groups)
    return held if held.grouping == groups else None
