"""The embedding cache: one HDF5 file per set and extractor, that knows what it was made of.

`cache_writer` makes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import h5py
import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.storage import PROGRAM
from finc_eval.embeddings.recipe import DTYPE, SCHEMA, Recipe
from finc_eval.samples.clips import Clip
from finc_eval.samples.profile import Profile

if TYPE_CHECKING:
    import pandas as pd
    import torch

WHOLE, PARTIAL = "embeddings", "unfinished embeddings"
BLOCK_BYTES = 1 << 18
ID_BLOCK, ID_BLOCKS = 4096, 64

Floats = npt.NDArray[np.float32]


class EmbeddingCache:
    """A whole embedding cache, open for reading: an (n, dim) float32 array whose rows are read when they are asked for.

    Attributes:
        path: the file.
        key: digest of what decides the rows.
        n: number of rows.
        dim: length of a row.
        shape: (n, dim).
        dtype: float32.
        ndim: 2.
        extractor: name of the card; `extractor_digest` is the digest of `recipe`, what decides an embedding.
        outputs: the network's further outputs that are kept, as `output` opens them: ("logits",).
        manifest_digest: digest of the samples' manifest.
        source: absolute path the samples were read from, or "array".
        ignored: files of the set that are no samples, counted by suffix.
        failures: (id, reason) of every sample that could not be read.
        profile: how the samples were encoded: formats, sizes, JPEG quality.

    Args:
        path: the file.
        output: whose rows to read: one of `outputs`; the embeddings when left out.

    Raises:
        FincEvalError: the file is missing, unfinished, damaged, or no embedding cache, or has no such output.
    """

    dtype, ndim = np.dtype(DTYPE), 2

    def __init__(self, path: str | Path, output: str | None = None) -> None:
        self.path = Path(path)
        self._file = _open(self.path)
        try:
            attributes = self._file.attrs
            self.key = str(attributes["key"])
            self.extractor = str(attributes["extractor"])
            self.extractor_digest = str(attributes["extractor_digest"])
            self.manifest_digest = str(attributes["manifest_digest"])
            self.recipe: Recipe = json.loads(_strings(self._file["recipe"])[0])
            self.profile = Profile.from_dict(json.loads(_strings(self._file["profile"])[0]))
            (self.source,) = _strings(self._file["source"])
            self.ignored: dict[str, int] = json.loads(attributes["ignored"])
            self.outputs = tuple(self._file.get("outputs", ()))
            if output is not None and output not in self.outputs:
                raise _no_output(self.path, output, self.outputs)
            self._rows = self._file["embeddings" if output is None else f"outputs/{output}"]
            # Of the dataset alone: a cycle through `self` would keep the file open.
            names = self._file["ids"]
            self._id_block = lru_cache(ID_BLOCKS)(lambda b: _strings(names, slice(b * ID_BLOCK, (b + 1) * ID_BLOCK)))
            self.n, self.dim = self.shape = tuple(map(int, self._rows.shape))
            self.failures: list[tuple[str, str]] = list(
                zip(
                    _strings(self._file["failures/ids"]),
                    _strings(self._file["failures/reasons"]),
                    strict=True,
                )
            )
        except (KeyError, OSError, ValueError) as error:
            self.close()
            raise _damaged(self.path) from error

    @property
    def digest(self) -> str:
        """The key: what tells two caches apart."""
        return self.key

    @cached_property
    def ids(self) -> list[str]:
        """The samples' ids, one per row."""
        return _strings(self._file["ids"])

    def ids_between(self, start: int, stop: int) -> list[str]:
        """The ids of consecutive samples, read from the file."""
        return _strings(self._file["ids"], slice(start, stop))

    def ids_at(self, indices: npt.NDArray[np.int64]) -> tuple[str, ...]:
        """The ids of the samples at these indices, read from the file in blocks, of which some are kept."""
        return tuple(self._id_block(index // ID_BLOCK)[index % ID_BLOCK] for index in indices.tolist())

    @cached_property
    def content(self) -> npt.NDArray[np.uint64]:
        """(n,) uint64: a digest of each decoded image; equal for exact copies, within and across sets."""
        return cast("npt.NDArray[np.uint64]", self._file["content"][:])

    @cached_property
    def labels(self) -> list[str] | None:
        """The samples' classes, one a row; None where the set has none."""
        return _strings(self._file["labels"]) if "labels" in self._file else None

    @cached_property
    def prompts(self) -> list[str] | None:
        """The samples' prompts, one a row; None where the set has none."""
        return _strings(self._file["prompts"]) if "prompts" in self._file else None

    @property
    def clip(self) -> Clip | None:
        """Which frames of a video a sample is; None of images."""
        policy = self.recipe["clip"]
        return policy and Clip(**policy)

    def output(self, name: str) -> EmbeddingCache:
        """The same samples with the rows of one of `outputs`."""
        return EmbeddingCache(self.path, name)

    def to_torch(self) -> torch.Tensor:
        """All rows as a tensor in memory, (n, dim) float32."""
        import torch

        return torch.from_numpy(self[:])

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a data frame, by sample id; labels and prompts, where there are any, are its first columns.

        Raises:
            FincEvalError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise FincEvalError("to_pandas needs pandas: pip install pandas") from error
        frame = pd.DataFrame(self[:], index=pd.Index(self.ids, name="id"))
        for place, name in enumerate(name for name in ("labels", "prompts") if getattr(self, name) is not None):
            frame.insert(place, name.removesuffix("s"), getattr(self, name))
        return frame

    def damage(self) -> str | None:
        """Read every row, and say what is wrong with the file; None where all is as it was written."""
        digest = hashlib.blake2b(digest_size=32)
        try:
            for rows in self.batches(block_rows(self.dim)):
                digest.update(rows.data)
        except (OSError, RuntimeError) as error:
            return f"its rows cannot be read ({error})"
        same = digest.hexdigest() == self._rows.attrs["blake2b"]
        return None if same else "its rows are not those that were written"

    def batches(self, size: int) -> Iterator[Floats]:
        """Yield the rows in order, `size` at a time: (b, dim) float32."""
        for start in range(0, self.n, size):
            yield self._rows[start : start + size].astype(np.float32, copy=False)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int | slice | npt.NDArray[Any] | Sequence[int]) -> Floats:
        """Return the rows `index` names, as numpy would: in its order, repeats and negatives included."""
        if isinstance(index, slice) and index.step in (None, 1):
            return cast(Floats, self._rows[index].astype(np.float32, copy=False))
        rows = np.arange(self.n)[index]
        result = np.empty((*rows.shape, self.dim), np.float32)
        # HDF5 is slow at lists of single rows, so whole blocks are read.
        size = block_rows(self.dim)
        for block in np.unique(rows // size):
            inside = rows // size == block
            result[inside] = self._rows[block * size : (block + 1) * size][rows[inside] - block * size]
        return result

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an EmbeddingCache is read from its file: it cannot become an array without a copy")
        return np.asarray(self._rows[:], dtype)

    def __repr__(self) -> str:
        failures = f", failures={len(self.failures)}" if self.failures else ""
        return f"EmbeddingCache({str(self.path)!r}, n={self.n}, dim={self.dim}, {self.extractor!r}{failures})"

    def close(self) -> None:
        """Close the file; the rows cannot be read any more."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open(path: Path) -> h5py.File:
    """Open a file that says that it is a whole cache."""
    if not path.exists():
        raise FincEvalError(f"{path} does not exist: make it with finc-eval extract")
    if path.is_dir() or not h5py.is_hdf5(path):
        raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")
    try:
        file = h5py.File(path, "r")
        program, kind, schema = (file.attrs.get(name) for name in ("program", "kind", "schema"))
    except (OSError, RuntimeError) as error:
        raise _damaged(path) from error
    if (program, kind, schema) == (PROGRAM, WHOLE, SCHEMA):
        return file
    file.close()
    if program == PROGRAM and kind == PARTIAL:
        raise FincEvalError(f"{path} is unfinished: run the same finc-eval extract again to resume it")
    if program == PROGRAM and kind == WHOLE:
        raise FincEvalError(
            f"{path} has cache schema {schema} and this finc-eval reads {SCHEMA}: "
            "move it away and extract again, or use the finc-eval it was made with"
        )
    raise FincEvalError(f"{path} is no finc-eval embedding cache: make one with finc-eval extract")


def _no_output(path: Path, name: str, outputs: tuple[str, ...]) -> FincEvalError:
    has = f"it has {', '.join(outputs)}" if outputs else "it has none beside the embeddings"
    return FincEvalError(
        f'{path} has no output "{name}"{did_you_mean(name, outputs)}: {has}; extract with a card that keeps it'
    )


def _damaged(path: Path) -> FincEvalError:
    return FincEvalError(f"{path} is cut short or damaged: delete it and run finc-eval extract again")


def block_rows(dim: int) -> int:
    """Rows that are read or written together, about 256 KiB."""
    return max(1, BLOCK_BYTES // (dim * np.dtype(DTYPE).itemsize))


def _strings(dataset: h5py.Dataset, part: slice = slice(None)) -> list[str]:
    return cast("list[str]", dataset.asstr("utf-8", "surrogateescape")[part].tolist())
