"""The embedding cache: one HDF5 file per set and extractor, which records what it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt

from finc_eval.core.digest import text_of
from finc_eval.core.doors import NotAFileError
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.stored import StoredFile, content_of, is_foreign, is_stored
from finc_eval.core.places import is_place
from finc_eval.core.record import structure
from finc_eval.core.serialize import Shown
from finc_eval.embeddings.cells import Cells
from finc_eval.embeddings.columns import drop_missing, missing_texts, unknown_column
from finc_eval.embeddings.recipe import CACHE_LAYOUT, DTYPE, CacheHeader, column_array
from finc_eval.embeddings.stored.cell_block import CellBlock
from finc_eval.embeddings.stored.journal import title_of
from finc_eval.extractors.card import BY_FRAMES
from finc_eval.extractors.catalog import all_cards
from finc_eval.samples.clips import Clip
from finc_eval.samples.profile import Profile

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from finc_eval.samples.source import Source

WHOLE = "embeddings"  # type of the file of a finished cache
ID_BLOCK = 4096  # ids that are read together

NOT_A_CACHE = "{} is not a finc-eval embedding cache: make one with finc-eval extract"
OF_ANOTHER = (
    "{} is not a finc-eval embedding cache, but HDF5 of another program: pass its path as a set, or make a cache with "
    "finc-eval extract"
)

EXTRACT_AGAIN = "delete it and run finc-eval extract again"  # remedy for a damaged cache

Floats = npt.NDArray[np.float32]


class EmbeddingCache(Shown):
    """File of embeddings, open for reading: an (n, dim) float32 array whose rows are read on demand.

    Attributes:
        path: path of the file.
        key: digest of everything that decides the rows; it identifies a cache.
        n: number of rows.
        dim: number of entries of a row.
        shape: (n, dim).
        dtype: float32.
        ndim: 2.
        extractor: name of the card.
        extractor_digest: digest of `recipe`.
        recipe: everything about the extractor that decides an embedding.
        outputs: names of the network's further outputs in the file, such as ("logits",); see `output`.
        manifest_digest: digest of the samples' manifest.
        source: absolute path the samples were read from, or "array".
        ignored: number of files of the set that are not samples, by suffix.
        failures: (id, reason) of every sample that could not be read.
        profile: encoding of the samples: formats, sizes, JPEG quality.
        columns: names of the columns of metadata: "label" and "prompt", if there are any, are the first.
        clip: choice of frames that makes samples of a video; None for images.
        reading: which files and values of the source the samples are.
        held: samples of this process that were embedded, and can be read again; None for samples in files, for a
            stream, and for a cache that is opened by its path.
        grids: sentence on samples that look like grids of the others; None without any, and if nobody looked.
        shard: range of a set that the samples are, to be merged with the others; None for a whole set.

    Args:
        path: path of the file, which `extract` makes.
        output: name of one of `outputs`, whose rows are read instead of the embeddings.

    Raises:
        DataError: the file is missing, unfinished, damaged or not an embedding cache.
        UsageError: it does not have this output.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, _ = example_sets(50)
        >>> images = (255 * gen).astype("uint8").reshape(50, 28, 28)
        >>> _ = fe.extract(images, "pixels", out="gen.h5")
        >>> with fe.EmbeddingCache("gen.h5") as cache:
        ...     cache.extractor, cache.shape, cache.ids[:2], cache[-10:].shape
        ('pixels', (50, 2352), ['0', '1'], (10, 2352))
    """

    dtype, ndim = np.dtype(DTYPE), 2

    def __init__(self, path: str | Path, output: str | None = None) -> None:
        self.path = on_disk(path)
        self._file = _open(self.path)
        self.is_open = True
        try:
            with content_of(self.path, EXTRACT_AGAIN):
                header = structure(CacheHeader, self._file.header, str(path))
                self.outputs = header.outputs
                if output is None or output in self.outputs:
                    self._rows = self._file.rows(
                        "embeddings" if output is None else f"outputs/{output}", None, None, dtype=DTYPE
                    )
                    self.n, self.dim = self.shape = cast("tuple[int, int]", self._rows.shape)
                    if not self.dim:
                        raise ValueError("its rows have no entries")
                    self._ids = self._file.texts("ids", self.n)
                    self._content = self._file.rows("content", self.n, dtype="<u8")
                    failed = (self._file.texts(f"failures/{name}").all() for name in ("ids", "reasons"))
                    self.failures: list[tuple[str, str]] = list(zip(*failed, strict=True))
                    self._columns = {name: self._file.texts(column_array(name), self.n) for name in header.columns}
                    self._missing: dict[str, frozenset[str]] = {}
                    self._cells = header.cells and CellBlock(self._file, self.n, header.cells)
                    policy = header.recipe["clip"]
                    self.clip = policy and Clip(**policy)
            if output is not None and output not in self.outputs:
                has = f"it has {', '.join(self.outputs)}" if self.outputs else "it has only the embeddings"
                raise UsageError(
                    f'{self.path} has no output "{output}"{did_you_mean(output, self.outputs)}: {has}; extract with a '
                    "card that keeps it"
                )
        except BaseException:
            self.close()
            raise
        self.key, self.source = header.key, header.source
        self.extractor, self.extractor_digest = header.extractor, header.extractor_digest
        self.manifest_digest, self.recipe, self.profile = header.manifest_digest, header.recipe, header.profile
        self.ignored, self.columns, self.shard = header.ignored, header.columns, header.shard
        self.reading, self.held, self.grids = header.reading, cast("Source | None", None), cast("str | None", None)
        # The function holds the texts alone: a cycle through `self` would keep the file open.
        names = self._ids
        self._id_block = lru_cache(64)(lambda b: names.bytes_between(b * ID_BLOCK, (b + 1) * ID_BLOCK))

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the samples, one per row."""
        return self._ids.all()

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Read the ids of consecutive samples."""
        return self._ids.between(start, stop)

    def id_bytes_between(self, start: int, stop: int) -> list[bytes]:
        """Read the ids of consecutive samples as their bytes, from which they are hashed."""
        return self._ids.bytes_between(start, stop)

    def ids_at(self, indices: npt.NDArray[np.int64]) -> tuple[str, ...]:
        """Read the ids of the samples at these indices; they are read in blocks, some of which are kept."""
        return tuple(text_of(self._id_block(index // ID_BLOCK)[index % ID_BLOCK]) for index in indices.tolist())

    @cached_property
    def content(self) -> npt.NDArray[np.uint64]:
        """Digest of each decoded image, (n,) uint64; exact copies have the same, within and across sets."""
        return cast("npt.NDArray[np.uint64]", self._content.between(0, self.n))

    @property
    def seen_profile(self) -> Profile:
        """Profile of the samples as the extractor sees them: of videos, at the rate that they are resampled to."""
        return self.profile if self.clip is None else self.profile.at_rate(self.clip.fps)

    @property
    def labels(self) -> list[str] | None:
        """Classes of the samples, one per row; None for a set without classes."""
        return self.column("label") if "label" in self.columns else None

    @property
    def prompts(self) -> list[str] | None:
        """Prompts of the samples, one per row; None for a set without prompts."""
        return self.column("prompt") if "prompt" in self.columns else None

    def column(self, name: str, part: slice = slice(None)) -> list[str]:
        """Read a column of the metadata: a text for each sample, "" if it is missing.

        Args:
            name: one of `columns`.
            part: rows to read; default: all.

        Raises:
            UsageError: the cache does not have this column.
        """
        if name not in self.columns:
            raise unknown_column(name, self.columns, str(self.path))
        return drop_missing(self._columns[name].between(*part.indices(self.n)[:2]), self.missing_as(name))

    def missing_as(self, name: str) -> frozenset[str]:
        """Return the texts that stand for a missing value in a column, such as NA among numbers."""
        if name not in self._missing:
            self._missing[name] = missing_texts(self._columns[name].all())
        return self._missing[name]

    @property
    def cells(self) -> Cells | None:
        """Cells of the samples that have them, read anew; None if none are kept, for the reason in `cells_absent`.

        Raises:
            DataError: the file is damaged.
        """
        with content_of(self.path, EXTRACT_AGAIN):
            return self._cells.read() if self._cells else None

    @property
    def cells_absent(self) -> str:
        """Reason why no cells are kept; "" if they are."""
        if self._cells:
            return ""
        if any(card.cells for card in all_cards() if card.name == self.extractor.removesuffix(BY_FRAMES)):
            return f"{self.path} was made before cells were kept: delete it and embed its samples again"
        return f"{self.extractor} has no cells yet"

    def output(self, name: str) -> EmbeddingCache:
        """Open the rows of one of `outputs` for the same samples."""
        return EmbeddingCache(self.path, name)

    def to_torch(self) -> torch.Tensor:
        """Read all rows as a tensor, (n, dim) float32."""
        import torch  # seconds of import, which a cache alone does not need

        return torch.from_numpy(self[:])

    def to_frame(self) -> pd.DataFrame:
        """Read all rows as a data frame, indexed by sample id; the columns of metadata, if any, come first.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError("to_frame needs pandas: pip install pandas, or use np.asarray(cache)") from error
        frame = pd.DataFrame(self[:], index=pd.Index(self.ids, name="id"))
        for number, name in enumerate(self.columns):
            frame.insert(number, name, self.column(name))
        return frame

    def damage(self) -> str | None:
        """Read every byte of the file and return what is damaged, or None if all is as it was written."""
        try:
            self._file.check()
        except DataError as error:
            return str(error).removeprefix(f"{self.path} is ")
        return None

    def batches(self, size: int) -> Iterator[Floats]:
        """Yield the rows in order, `size` at a time: (b, dim) float32."""
        for start in range(0, self.n, size):
            yield self._rows.between(start, start + size)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int | slice | npt.NDArray[Any] | Sequence[int]) -> Floats:
        """Return rows as numpy would: in the order of the index, which may repeat rows and count from the end."""
        if isinstance(index, slice) and index.step in (None, 1):
            return cast(Floats, self._rows.between(*index.indices(self.n)[:2]))
        rows = np.arange(self.n)[index]
        if rows.ndim == 1 and len(rows) and (np.diff(rows) == 1).all():
            return cast(Floats, self._rows.between(rows[0], rows[-1] + 1))
        wanted, result = rows.ravel(), np.empty((rows.size, self.dim), np.float32)
        order = wanted.argsort(kind="stable")
        blocks = wanted[order] // self._rows.together  # what has one checksum is read once
        for part in np.split(order, np.flatnonzero(np.diff(blocks)) + 1):
            if len(part):
                first, last = wanted[part[0]], wanted[part[-1]]
                result[part] = self._rows.between(first, last + 1)[wanted[part] - first]
        return result.reshape(*rows.shape, self.dim)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an EmbeddingCache is read from its file: it cannot become an array without a copy")
        return np.asarray(self[:], dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return the samples and the recipe of the embeddings."""
        return {
            "path": str(self.path),
            "n": self.n,
            "dim": self.dim,
            "extractor": self.extractor,
            "outputs": list(self.outputs),
            "columns": list(self.columns),
            "key": self.key,
            "shard": self.shard and self.shard.name,
            "source": self.source,
            "unreadable": dict(self.failures),
            "ignored": self.ignored,
        }

    def _summary(self) -> str:
        failures = f", failures={len(self.failures)}" if self.failures else ""
        title = cache_title(self)
        name = "" if title is None else f"{title!r}, "
        return f"{name}n={self.n}, dim={self.dim}, {self.extractor!r}{failures}"

    def close(self) -> None:
        """Close the file; no more rows can be read."""
        self.is_open = False
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def cache_title(cache: EmbeddingCache) -> str | None:
    """Return the title of the set in a cache: the name of its folder or archive, or else of the cache's own file.

    None for samples that were never in files, in a cache that nobody named.
    """
    if is_place(cache.source):
        return Path(cache.source).name
    return None if cache.path.stem == cache.key else cache.path.stem


def _open(path: Path) -> StoredFile:
    """Open the file of a finished cache."""
    if not path.exists():
        raise DataError(f"{path} does not exist: make it with finc-eval extract")
    if path.is_dir():
        raise DataError(f"{path} is a folder: embed its samples first, by fe.extract or finc-eval extract")
    try:
        return StoredFile(path, WHOLE, CACHE_LAYOUT, EXTRACT_AGAIN)
    except NotAFileError:
        raise
    except DataError:
        if title_of(path):
            raise DataError(f"{path} is unfinished: run the same finc-eval extract again to resume it") from None
        if is_foreign(path):
            raise DataError(OF_ANOTHER.format(path)) from None
        if not is_stored(path):
            raise DataError(NOT_A_CACHE.format(path)) from None
        raise
