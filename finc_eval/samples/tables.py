"""Sets whose samples are encoded images in a table: .parquet files, as the Hub has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parquet import ROWS_AT_ONCE, image_columns, parquet_batches, parquet_schema
from finc_eval.core.files.parsed import foreign_json
from finc_eval.core.memory import check_decoded, check_list
from finc_eval.samples.images import decode_image
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS
from finc_eval.samples.reading import EVERYTHING, IMAGE_KEYS, Reading
from finc_eval.samples.source import THREADS, Result, Sample, Source, ahead, content_digest, count_decoding, readable

MAX_REPEATED = 100  # times its size that the images of a .parquet file may take: they are packed, and repeat


class ParquetSource(Source):
    """The images in a column of .parquet files, streamed: {bytes, path} or bytes. Ids are row numbers or file/row."""

    kind = "parquet"

    def __init__(self, name: str, files: list[tuple[str, Path | str]], reading: Reading = EVERYTHING) -> None:
        """Read the number of rows, the labels and the prompts."""
        self.reading = reading
        self._files = [(path if isinstance(path, str) else path.resolve()) for _, path in files]
        schemas, self._columns, self._sizes = list[Any](), list[str](), list[int]()
        for _, path in files:
            with readable(path):
                schema, rows = parquet_schema(on_disk(path))
            self._columns.append(_image_column(schema, self.reading.image_key, str(path)))
            self._sizes.append(rows)
            schemas.append(schema)
        check_list(sum(self._sizes), name)
        ids = [*map(str, range(self._sizes[0]))]
        if len(files) > 1:
            ids = [f"{file}/{row}" for (file, _), rows in zip(files, self._sizes, strict=True) for row in range(rows)]
        if not ids:
            raise DataError(f"{name} has no rows")
        texts_of: tuple[list[str | None], list[str | None]] = [], []  # labels and prompts
        for (_, path), schema, rows in zip(files, schemas, self._sizes, strict=True):
            for texts, keys in zip(texts_of, (LABEL_KEYS, PROMPT_KEYS), strict=True):
                column = next((key for key in keys if key in schema.names), None)
                texts += [None] * rows if column is None else _texts(on_disk(path), column, schema)
        labels, prompts = (None if set(texts) <= {None} else [text or "" for text in texts] for texts in texts_of)
        super().__init__(name, ids, {}, labels, prompts)

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return (decode_image(self.ids[number], data, self.reading) for number, data in self._encoded(numbers))

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        def work(item: tuple[int, bytes | str]) -> Result:
            return function(decode_image(self.ids[item[0]], item[1], self.reading))

        return ahead(count_decoding(work), self._encoded(numbers), threads, weight=lambda item: len(item[1]))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return (content_digest(data) for _, data in self._encoded(numbers))

    def _encoded(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes | str]]:
        """Yield the bytes of the images of these rows; groups of rows without any of them are not read."""
        first = 0
        for path, column, rows in zip(self._files, self._columns, self._sizes, strict=True):
            begin, end = bisect_left(numbers, first), bisect_left(numbers, first + rows)
            if begin < end:
                wanted = range(rows) if end - begin == rows else [number - first for number in numbers[begin:end]]
                # 1 << 20: bytes of images that are read of any file.
                most = max(1 << 20, MAX_REPEATED * on_disk(path).stat().st_size)
                for row, value in _values(path, column, wanted):
                    data = value["bytes"] if isinstance(value, dict) else value
                    most -= len(data or b"")
                    if most < 0:
                        raise DataError(
                            f"{path}: its images, to row {row:,}, are more than {MAX_REPEATED} times its size, because "
                            "rows share them: keep one row of each image"
                        )
                    yield first + row, "the row has no image" if data is None else data
            first += rows


def _image_column(schema: Any, key: str | None, where: str) -> str:
    """Return the column of the images: the named or only one, or one of a usual name."""
    columns = image_columns(schema)
    if not columns or (key is not None and key not in columns):
        named = "" if key is None else f" {key!r}{did_you_mean(key, schema.names)}"
        raise DataError(
            f"{where} has no column of images{named}: {', '.join(columns) or 'none'} of its columns "
            f"{', '.join(schema.names)} hold the bytes of images"
        )
    usual = [name for name in IMAGE_KEYS if name in columns]
    if key is None and not usual and len(columns) != 1:
        raise DataError(f"{where} has the columns of images {', '.join(columns)}: name one by image_key (--image-key)")
    return key or (usual or columns)[0]


def _texts(path: Path, column: str, schema: Any) -> list[str | None]:
    """Read a column as texts; numbers of classes get the names that Hugging Face keeps in the schema."""
    names: list[str] = []
    try:
        info = foreign_json((schema.metadata or {}).get(b"huggingface", b"{}"), str(path))
        names = info["info"]["features"][column]["names"]
    except (DataError, KeyError, TypeError):
        pass

    def text(value: Any) -> str | None:
        if value is None:
            return None
        return str(names[value]) if isinstance(value, int) and 0 <= value < len(names) else str(value)

    texts, letters = list[str | None](), 0
    for row, value in _values(path, column):
        texts.append(text(value))
        letters += len(texts[-1] or "")
        if not (row + 1) % ROWS_AT_ONCE:
            check_decoded(letters, f"{path}: the column {column}, to row {row + 1:,},")
    return texts


def _values(path: Path | str, column: str, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Any]]:
    batches = parquet_batches(on_disk(path), column, rows)
    while True:
        with readable(path):
            item = next(batches, None)
        if item is None:
            return
        yield item
