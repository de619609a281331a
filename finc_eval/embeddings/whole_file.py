"""The finished file of an embedding cache, made from the rows of the unfinished one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import h5py
import numpy as np
import numpy.typing as npt

from finc_eval.core.progress import Progress
from finc_eval.core.record import plain
from finc_eval.core.storage import PROGRAM
from finc_eval.embeddings.cache import WHOLE, block_rows
from finc_eval.embeddings.hdf5 import contiguous_dataset, write_strings
from finc_eval.embeddings.recipe import CACHE_LAYOUT, DTYPE, Identity
from finc_eval.samples import Traits
from finc_eval.samples.profile import Profile


def write_metadata(
    file: h5py.File,
    part: h5py.File,
    identity: Identity,
    good: npt.NDArray[np.bool_],
    texts: Mapping[str, Sequence[str]],
    failures: Sequence[tuple[str, str]],
) -> None:
    """Write everything but the rows.

    Args:
        file: the file to write.
        part: the unfinished cache.
        identity: what the rows were made of.
        good: whether each row is kept, shape (n,).
        texts: n strings under each name, such as "ids".
        failures: (id, reason) of the samples whose rows are not kept.
    """
    kept = np.flatnonzero(good).tolist()
    for name, strings in texts.items():
        write_strings(file, name, [strings[row] for row in kept])
    write_strings(file, "failures/ids", [name for name, _ in failures])
    write_strings(file, "failures/reasons", [reason for _, reason in failures])
    profile = Profile.of(Traits.decode(one) for one in part["traits"][:][good])
    write_strings(file, "profile", [json.dumps(plain(profile))])
    write_strings(file, "recipe", [json.dumps(identity.recipe)])
    write_strings(file, "source", [identity.source])
    file["content"] = part["content"][:][good]
    file.attrs["extractor"] = identity.extractor
    file.attrs["extractor_digest"] = identity.extractor_digest
    file.attrs["manifest_digest"] = identity.manifest.digest
    file.attrs["ignored"] = json.dumps(identity.manifest.ignored)
    file.attrs["key"] = identity.key
    file.attrs["schema"] = CACHE_LAYOUT
    file.attrs["kind"] = WHOLE
    file.attrs["program"] = PROGRAM


def write_rows(
    file: h5py.File, part: h5py.File, good: npt.NDArray[np.bool_], widths: Mapping[str, int], progress: Progress
) -> None:
    """Copy the good rows, each output to its own dataset, with a digest of its bytes.

    Args:
        file: the file to write.
        part: the unfinished cache, whose rows hold all outputs side by side.
        good: whether each row is kept, shape (n,).
        widths: entries of each output, in the order in which they lie in a row.
        progress: told how many rows are copied.
    """
    targets = [
        contiguous_dataset(file, name if name == "embeddings" else f"outputs/{name}", (int(good.sum()), entries), DTYPE)
        for name, entries in widths.items()
    ]
    bounds = np.cumsum([0, *widths.values()]).tolist()
    digests = [hashlib.blake2b(digest_size=32) for _ in targets]
    file.flush()
    n, end, size = len(good), 0, block_rows(bounds[-1])
    for start in range(0, n, size):
        here = slice(start, start + size)
        kept = part["rows"][here][good[here]]
        for number, (target, digest) in enumerate(zip(targets, digests, strict=True)):
            values = np.ascontiguousarray(kept[:, bounds[number] : bounds[number + 1]])
            target[end : end + len(values)] = values
            digest.update(values.data)
        end += len(kept)
        progress("write cache", min(here.stop, n), n)
    for target, digest in zip(targets, digests, strict=True):
        target.attrs["blake2b"] = digest.hexdigest()
