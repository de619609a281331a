"""Sets whose images are encoded values in tables: columns of .parquet files, as the Hub has them, and files of LMDB."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, FincEvalError, did_you_mean
from finc_eval.core.files.lmdb import lmdb_values
from finc_eval.core.files.parquet import parquet_batches, parquet_schema
from finc_eval.core.remote.mirror import local
from finc_eval.samples.files import FileSource, NoImagesError, bytes_at, refuse_excess
from finc_eval.samples.images import SIGNATURE_BYTES, SIGNATURES, decode_image
from finc_eval.samples.in_memory import IMAGE_KEYS
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import THREADS, Result, Sample, Source, ahead, content_digest, count_decoding, readable

DATA_FILE = "data.mdb"
"""Name of the file in a folder of LMDB."""


class ParquetSource(Source):
    """The images in a column of .parquet files, streamed: {bytes, path} or bytes. Ids are row numbers or file/row."""

    kind = "parquet"

    def __init__(self, name: str, files: list[tuple[str, Path | str]], reading: Reading = EVERYTHING) -> None:
        """Read the number of rows, the labels and the prompts."""
        self.reading = reading
        self._files = [(path if isinstance(path, str) else path.resolve()) for _, path in files]
        self._columns: list[str] = []
        self._sizes: list[int] = []
        ids: list[str] = []
        labels: list[str | None] = []
        prompts: list[str | None] = []
        for prefix, path in files:
            with readable(path):
                schema, rows = parquet_schema(local(path))
            self._columns.append(image_column(schema, self.reading.image_key, str(path)))
            self._sizes.append(rows)
            ids += [f"{prefix}/{row}" if len(files) > 1 else str(row) for row in range(rows)]
            for found, keys in ((labels, LABEL_KEYS), (prompts, PROMPT_KEYS)):
                column = next((key for key in keys if key in schema.names), None)
                found += [None] * rows if column is None else _texts(local(path), column, schema)
        if not ids:
            raise DataError(f"{name} has no rows")
        super().__init__(name, ids, {}, _find_labels(labels), _find_labels(prompts))

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return (self._decoded(item) for item in self._encoded(numbers))

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        def work(item: tuple[int, bytes | str]) -> Result:
            return function(self._decoded(item))

        return ahead(count_decoding(work), self._encoded(numbers), threads, weight=lambda item: len(item[1]))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return (content_digest(data) for _, data in self._encoded(numbers))

    def _decoded(self, item: tuple[int, bytes | str]) -> Sample:
        number, data = item
        return decode_image(self.ids[number], data, self.reading)

    def _encoded(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes | str]]:
        """Yield the bytes of the images of these rows; groups of rows without any of them are not read."""
        first = 0
        for path, column, rows in zip(self._files, self._columns, self._sizes, strict=True):
            wanted = [number - first for number in numbers if first <= number < first + rows]
            if wanted:
                for row, value in _values(path, column, wanted):
                    data = value["bytes"] if isinstance(value, dict) else value
                    yield first + row, "the row has no image" if data is None else data
            first += rows


class LmdbSource(FileSource):
    """The values of a file of LMDB that are encoded images; ids are their keys."""

    kind = "lmdb"

    def __init__(self, name: str, path: Path, reading: Reading = EVERYTHING) -> None:
        """Find the place of every image."""
        self.reading = reading
        self._path = path.resolve()
        found: dict[str, tuple[int, int]] = {}
        others = 0
        with open_file(path) as file:
            for key, offset, size in lmdb_values(path):
                file.seek(offset)
                if SIGNATURES.match(file.read(min(size, SIGNATURE_BYTES))):
                    found[key.decode("utf-8", "backslashreplace")] = (offset, size)
                else:
                    others += 1
        ignored = {"other values": others} if others else {}
        if not found:
            raise NoImagesError(name, ignored)
        ids = sorted(found)
        self._places = [found[key] for key in ids]
        super().__init__(name, ids, ignored)

    def open(self, number: int) -> IO[bytes]:
        offset, size = self._places[number]
        refuse_excess(size)
        return io.BytesIO(bytes_at(self._path, offset, size))


def holds_image_column(path: Path) -> bool:
    """Return whether a .parquet file has a column of encoded images; False if it cannot be read."""
    try:
        return bool(_image_columns(parquet_schema(path)[0]))
    except (FincEvalError, ImportError, OSError, ValueError):
        return False


def image_column(schema: Any, key: str | None, where: str) -> str:
    """Return the column of the images: the named or only one, or one of a usual name."""
    found = _image_columns(schema)
    if not found or (key is not None and key not in found):
        named = "" if key is None else f" {key!r}{did_you_mean(key, schema.names)}"
        raise DataError(
            f"{where} has no column of images{named}: {', '.join(found) or 'none'} of its columns "
            f"{', '.join(schema.names)} hold the bytes of images"
        )
    usual = [name for name in IMAGE_KEYS if name in found]
    if key is None and not usual and len(found) != 1:
        raise DataError(f"{where} has the columns of images {', '.join(found)}: name one by image_key")
    return key or (usual or found)[0]


def _image_columns(schema: Any) -> list[str]:
    from pyarrow import types

    def is_encoded(kind: Any) -> bool:
        if types.is_struct(kind):
            inside = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
            return "bytes" in inside and is_encoded(inside["bytes"])
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    return [field.name for field in schema if is_encoded(field.type)]


def _texts(path: Path, column: str, schema: Any) -> list[str | None]:
    """Read a column as texts; numbers of classes get the names that Hugging Face keeps in the schema."""
    names: list[str] = []
    try:
        info = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        names = info["info"]["features"][column]["names"]
    except (ValueError, KeyError, TypeError):
        pass

    def text(value: Any) -> str | None:
        if value is None:
            return None
        return str(names[value]) if isinstance(value, int) and 0 <= value < len(names) else str(value)

    return [text(value) for _, value in _values(path, column)]


def _values(path: Path | str, column: str, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Any]]:
    found = parquet_batches(local(path), column, rows)
    while True:
        with readable(path):
            item = next(found, None)
        if item is None:
            return
        yield item


def _find_labels(values: list[str | None]) -> list[str] | None:
    return [value or "" for value in values] if any(value is not None for value in values) else None
