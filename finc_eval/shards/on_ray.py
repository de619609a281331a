"""Shards of a set embedded by the actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from finc_eval.core import errors
from finc_eval.core.doors import with_home
from finc_eval.core.errors import DataError, FincEvalError, UsageError, check_count
from finc_eval.core.places import is_url
from finc_eval.core.run import Run
from finc_eval.embeddings.extract import SetExtraction
from finc_eval.extractors.settings import AnyExtractor, extraction_of

ITEM = "item"  # column of `ray.data.from_items`


class ShardActor:
    """An actor that embeds shards of one set: it lists the samples once, and loads the network once.

    Each shard becomes the file that `extract(…, shard="i/N")` writes, which is opened if it exists already. So an actor
    that dies loses nothing: Ray gives its shard to another actor. The class is for `map_batches` of a Ray dataset whose
    items are shards, "1/64", "2/64" and so on; `extract_on_ray` makes that dataset.

    Args:
        samples: path or URL of the set, the same for all machines.
        out: path or URL of the file of the whole set; shards are written next to it.
        extractor: name of an extractor, path of a card, or `Extraction`, as in `compare`.
        metadata: table of columns to keep with the samples, as in `extract`.
        force: whether the files of shards may replace other work.
        run: device, batch size, threads and progress; default: of the actor's machine.

    Raises:
        UsageError: `extractor` names a shard.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
        >>> np.savez("gen.npz", images)
        >>> fe.ShardActor("gen.npz", "gen.h5", "pixels")({"item": ["1/2", "2/2"]})
        {'shard': ['1/2', '2/2'], 'path': ['gen.1-of-2.h5', 'gen.2-of-2.h5'], 'n': [25, 25]}
    """

    def __init__(
        self,
        samples: str | Path,
        out: str | Path,
        extractor: AnyExtractor = None,
        *,
        metadata: object | None = None,
        force: bool = False,
        run: Run | None = None,
    ) -> None:
        how = extraction_of(extractor)
        if how.shard is not None:
            raise UsageError(f"an actor gets its shards in its calls: leave shard={how.shard!r} out")
        self._samples, self._out, self._how = samples, out, how
        self._metadata, self._force, self._run = metadata, force, run

    @cached_property
    def _set(self) -> SetExtraction:
        return SetExtraction(self._samples, self._how, metadata=self._metadata, run=self._run)

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        """Embed the shards in the column "item"; return their names, the paths of their files and numbers of rows."""
        shards, paths, rows = [str(shard) for shard in batch[ITEM]], list[str](), list[int]()
        for shard in shards:
            with self._set.extract(self._out, shard, force=self._force) as cache:
                paths.append(str(cache.path))
                rows.append(cache.n)
        return {"shard": shards, "path": paths, "n": rows}


class _Telling(ShardActor):
    """An actor that returns an error as a row: Ray would end the others, and keep of it a text of many lines."""

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        try:
            made = super().__call__(batch)
        except FincEvalError as error:
            return {"shard": [*batch[ITEM]], "path": [""], "error": [str(error)], "kind": [type(error).__name__]}
        return {"shard": made["shard"], "path": made["path"], "error": [""], "kind": [""]}


def extract_on_ray(
    samples: str | Path,
    out: str | Path,
    ranges: int,
    extractor: AnyExtractor = None,
    *,
    actors: int = 1,
    gpus: float = 0,
    metadata: str | Path | None = None,
    force: bool = False,
    run: Run | None = None,
) -> list[Path]:
    """Embed a set in shards by actors of a Ray cluster, and return the paths of their files, for `merge`.

    The cluster is the program's own connection, by default this machine. All its machines must reach the samples and
    the folder of `out` by the same path or URL. A shard that fails does not stop the others. Call it again: finished
    shards are only opened, and unfinished shards go on where they stopped. See `ShardActor`.

    Args:
        samples: path or URL of the set.
        out: path or URL of the file of the whole set; shards are written next to it.
        ranges: number of shards. With several for each actor, a slow machine gets fewer of them.
        extractor: name of an extractor, path of a card, or `Extraction`, as in `compare`.
        actors: number of actors.
        gpus: number of GPUs of each actor; a fraction lets actors share a GPU.
        metadata: path or URL of a table of columns to keep with the samples, as in `extract`.
        force: whether the files of shards may replace other work.
        run: device, batch size, threads and progress; default: of each actor's machine.

    Raises:
        UsageError: Ray is not installed, or an argument is out of range.
        FincEvalError: a shard cannot be made, as `extract` says.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
        >>> np.savez("gen.npz", images)
        >>> parts = fe.extract_on_ray("gen.npz", "gen.h5", 3, "pixels", actors=2)  # doctest: +SKIP
        >>> fe.merge(parts, "gen.h5")  # doctest: +SKIP
        EmbeddingCache('gen.h5', n=50, dim=2352, 'pixels')
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UsageError('extract_on_ray needs Ray, which is not installed: pip install "finc-eval[ray]"') from error
    ranges, actors = check_count("ranges", ranges), check_count("actors", actors)
    options = {"metadata": metadata and _everywhere(metadata), "force": force, "run": run}
    items = ray.data.from_items([f"{number}/{ranges}" for number in range(1, ranges + 1)], override_num_blocks=ranges)
    made = items.map_batches(
        _Telling,
        fn_constructor_args=(_everywhere(samples), _everywhere(out), extractor),
        fn_constructor_kwargs=options,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(actors, ranges)),
        num_gpus=gpus,
    )
    rows = sorted(made.take_all(), key=lambda row: int(row["shard"].partition("/")[0]))
    for row in rows:
        if row["error"]:
            raise getattr(errors, row["kind"], DataError)(f"shard {row['shard']}: {row['error']}")
    return [Path(row["path"]) for row in rows]


def _everywhere(path: str | Path) -> str:
    """Return a path that does not depend on the folder in which a process works."""
    return str(path) if is_url(path) else str(with_home(path).absolute())
