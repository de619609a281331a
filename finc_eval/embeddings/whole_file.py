"""The finished file of an embedding cache, made from the batches of the unfinished one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from finc_eval.core.files.writing import NewFile
from finc_eval.core.progress import Progress
from finc_eval.core.record import plain
from finc_eval.embeddings.journal import Journal
from finc_eval.embeddings.recipe import DTYPE, CacheHeader, Identity
from finc_eval.samples import Traits
from finc_eval.samples.profile import Profile
from finc_eval.samples.source import Digests

DIGESTS, FAILED, TRAITS = "shard/digests", "shard/failed", "shard/traits"
"""Arrays of a shard until it is merged: the digest of each sample, the numbers of those that failed, and traits."""


class Texts(NamedTuple):
    """Texts of a cache.

    Attributes:
        ids: ids of all samples.
        columns: columns of metadata, one text a sample.
        failures: (id, reason) of the samples whose rows are not kept.
    """

    ids: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    failures: Sequence[tuple[str, str]]


def write_cache(
    file: NewFile,
    journal: Journal,
    identity: Identity,
    widths: Mapping[str, int],
    texts: Texts,
    digests: Digests | None,
    progress: Progress,
) -> None:
    """Write the good rows, each output to its own array, and all that describes them.

    Args:
        file: the file to write.
        journal: the unfinished cache, whose rows hold all outputs side by side.
        identity: what the rows were made of.
        widths: entries of each output, in the order in which they lie in a row.
        texts: texts of all samples.
        digests: content digests of all samples, which a shard keeps.
        progress: told how many rows are copied.
    """
    n, lost = journal.done, journal.failures
    kept = [row for row in range(n) if row not in lost]
    targets = [
        file.rows(name if name == "embeddings" else f"outputs/{name}", (len(kept), entries), DTYPE)
        for name, entries in widths.items()
    ]
    content = file.rows("content", (len(kept),), "<u8")
    bounds, done, traits = np.cumsum([0, *widths.values()]).tolist(), 0, list[str]()
    for batch in journal.batches():
        good = np.array([reason is None for reason in batch.reasons])
        content.append(batch.content[good])
        rows = batch.rows[good]
        for number, target in enumerate(targets):
            target.append(rows[:, bounds[number] : bounds[number + 1]])
        traits += [one for one, fine in zip(batch.traits, good, strict=True) if fine and one]
        done += len(good)
        progress("write cache", done, n)
    file.texts("ids", [texts.ids[row] for row in kept])
    write_columns(file, {name: [values[row] for row in kept] for name, values in texts.columns.items()})
    file.texts("failures/ids", [name for name, _ in texts.failures])
    file.texts("failures/reasons", [reason for _, reason in texts.failures])
    if identity.shard is not None and digests is not None:
        file.array(DIGESTS, digests)
        file.array(FAILED, np.array(sorted(lost), np.int64))
        file.texts(TRAITS, traits)
    profile = Profile.of(Traits.decode(one.encode("ascii")) for one in traits)
    file.header |= plain(CacheHeader.of(identity, profile, tuple(texts.columns), tuple(widths)[1:]))


def write_columns(file: NewFile, columns: Mapping[str, Sequence[str]]) -> None:
    """Write columns of metadata."""
    for name, strings in columns.items():
        file.texts(column_array(name), strings)


def column_array(name: str) -> str:
    """Return the name of the list of texts of a column; HDF5 reads "/" and "." in a name as a path."""
    return f"metadata/{quote(name, safe=' ').replace('.', '%2E')}"
