"""`merge`: the shards of a set become the file that one process would have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from finc_eval.core.errors import UsageError
from finc_eval.core.files.front import file_type
from finc_eval.core.files.wrong_type import check_type
from finc_eval.core.progress import Progress, automatic
from finc_eval.core.remote.mirror import local
from finc_eval.core.remote.urls import out_path
from finc_eval.embeddings.cache import WHOLE, EmbeddingCache
from finc_eval.shards.caches import merge_caches
from finc_eval.shards.sketches import merge_sketches
from finc_eval.sketches.header import SKETCH
from finc_eval.sketches.sketch import Sketch


def merge(
    shards: Iterable[str | Path], out: str | Path, *, force: bool = False, progress: Progress = automatic
) -> EmbeddingCache | Sketch:
    """Join the shards of a set that `extract` or `finc-eval extract sketch` made, on any machines, and open the result.

    Merged embeddings are those of one process: the same rows in the same order, ids, metadata, unreadable samples and
    key. Only the rows of networks may differ in their last digits, as they do between batch sizes. Sketches may also be
    whole ones, of sets without common samples: the result is the sketch of all of them together. Memory does not grow
    with the set, and for embeddings not with the number of shards.

    Args:
        shards: paths of the files, in any order. An iterator of very many is not held in memory.
        out: path of the file.
        force: whether `out` may replace any file; otherwise only what the same samples gave before.
        progress: told how many files are joined.

    Raises:
        UsageError: `out` is one of the shards, or holds other work.
        DataError: shards are missing (`MissingShards` has the commands that make them), two have samples in common, or
            a file is damaged or not a shard.
        IncompatibleError: the files are of different sets, or were made in different ways.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
        >>> np.savez("gen.npz", images)
        >>> parts = [fe.extract("gen.npz", "pixels", "gen.h5", shard=f"{i}/3").path for i in (1, 2, 3)]
        >>> parts[1].name
        'gen.2-of-3.h5'
        >>> fe.merge(parts, "gen.h5")
        EmbeddingCache('gen.h5', n=50, dim=2352, 'pixels')
    """
    if isinstance(shards, str | Path):
        raise UsageError(f"shards must be a list of paths, one or more, got {shards!r}")
    target = out_path(Path(out).expanduser())
    paths = _files(shards, target)
    first = next(paths, None)
    if first is None:
        raise UsageError("shards must be a list of paths, one or more, got none")
    paths = chain([first], paths)
    if file_type(first) == SKETCH:
        return merge_sketches([*paths], target, force, progress)
    check_type(first, str(first), WHOLE)
    return merge_caches(paths, target, force, progress)


def _files(shards: Iterable[str | Path], target: Path) -> Iterator[Path]:
    whole = target.resolve()
    for shard in shards:
        path = local(Path(shard).expanduser())
        if path.resolve() == whole:
            raise UsageError(f"{target} is one of the shards, which the merged file would replace: choose another name")
        yield path
