"""Sets of Hugging Face's package `datasets`: its objects, and the folders that `save_to_disk` writes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from finc_eval.core.doors import inside, open_file, read_text
from finc_eval.core.errors import DataError, FincEvalError, did_you_mean
from finc_eval.core.files.parquet import check_values
from finc_eval.core.files.parsed import read_json
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE, numbered
from finc_eval.samples.files import FileSource
from finc_eval.samples.in_memory import part, plain, to_pixels
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import Sample, Source, content_digest, decoded_digest, reason

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"

ERRORS_OF_CODE = (LookupError, TypeError, AttributeError, NameError, AssertionError, ImportError, ArithmeticError)
"""Errors that the code of a dataset raises, as opposed to the readers of damaged files."""


class HuggingFaceSource(FileSource):
    """The image column of a dataset of one split, without a format; ids are row numbers.

    Images are read from their original files, not as `datasets` would decode them. The label is the column of a class
    type, else one named "label" or "class"; the prompt is a column named "prompt", "caption" or "text". `folder` holds
    all files which the rows name; None for a dataset of this process, whose program chose them.
    """

    kind = "hugging-face"

    def __init__(self, dataset: Any, name: str, folder: Path | None = None, reading: Reading = EVERYTHING) -> None:
        import datasets

        self.reading = reading
        features = dataset.features
        images = [column for column, feature in features.items() if isinstance(feature, datasets.Image)]
        key = self.reading.image_key
        if key is not None and key not in images:
            held = ", ".join(images) or _listed(features)
            raise DataError(f"{name} has no column of images {key!r}{did_you_mean(key, images)}: it has {held}")
        images = images if key is None else [key]
        if not images:
            raise DataError(
                f"{name} has no column of images, it has {_listed(features)}: cast paths or bytes by "
                "dataset.cast_column(name, datasets.Image()); of lists pass the images, or their numbers by "
                "numpy.array(dataset[name])"
            )
        if images[1:]:
            raise DataError(f"{name} has the image columns {', '.join(images)}: name one by image_key (--image-key)")
        self._column, self._folder = images[0], folder
        self._rows = dataset.select_columns(images).cast_column(self._column, datasets.Image(decode=False))
        ids = numbered(len(dataset), name)
        super().__init__(name, ids, {}, _labels(dataset), _prompts(dataset))

    def open(self, number: int) -> IO[bytes]:
        stored = self._rows[number][self._column]
        if stored is None:
            raise ValueError("the row has no image")
        if stored["bytes"] is not None:
            return io.BytesIO(stored["bytes"])
        return open_file(Path(stored["path"]) if self._folder is None else inside(self._folder, stored["path"]))


def _listed(features: Mapping[str, Any]) -> str:
    """Return the columns of a dataset with what each holds."""
    return ", ".join(f"{key} ({getattr(feature, 'dtype', None) or 'lists'})" for key, feature in features.items())


class ArrayColumn:
    """A column of arrays as a dataset of its own; `targets` are the labels of the samples."""

    def __init__(self, dataset: Any, column: str) -> None:
        self._column, self.targets = column, _labels(dataset)
        self._rows = dataset.select_columns([column]).with_format("numpy", dtype=dataset.features[column].dtype)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Any:
        return self._rows[number][self._column]


def open_dataset(dataset: Any, name: str, folder: Path | None = None, reading: Reading = EVERYTHING) -> Source:
    """Open the column of images or, where it has none, the column of arrays of a dataset; see `HuggingFaceSource`."""
    import datasets

    if not hasattr(dataset, "features"):
        splits = list(dataset)
        if not splits:
            raise DataError(f"{name} is empty")
        if len(splits) != 1 or not hasattr(dataset[splits[0]], "__len__"):
            advice = f"pass one of them, such as d[{splits[0]!r}]" if splits[1:] else f"pass d[{splits[0]!r}], and n"
            raise DataError(f"{name} holds the splits {', '.join(splits)}: {advice}")
        dataset = dataset[splits[0]]
    dataset = dataset.with_format(None)  # what is stored, without transforms
    if len(dataset) == 0:
        raise DataError(f"{name} is empty")
    arrays = [
        key for key, feature in dataset.features.items() if isinstance(feature, datasets.Array2D | datasets.Array3D)
    ]
    if any(isinstance(feature, datasets.Image) for feature in dataset.features.values()):
        arrays = [key for key in arrays if key == reading.image_key]
    chosen = [key for key in arrays if reading.image_key in (None, key)]
    if len(chosen) != 1:
        if arrays:
            raise DataError(
                f"{name} has the columns of arrays {', '.join(arrays)}: name one of them by image_key (--image-key)"
            )
        return HuggingFaceSource(dataset, name, folder, reading)
    source = DatasetSource(ArrayColumn(dataset, chosen[0]), reading)
    source.name, source.prompts = name, _prompts(dataset)
    return source


def is_saved(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote this folder."""
    return (folder / SPLITS).is_file() or ((folder / STATE).is_file() and (folder / INFO).is_file())


def open_saved(folder: Path, reading: Reading = EVERYTHING) -> Source:
    """Open one split that `save_to_disk` wrote."""
    if (folder / SPLITS).is_file():
        match read_json(inside(folder, SPLITS)):
            case {"splits": [str(first), *others]}:
                listed = ", ".join(map(str, (first, *others)))
                raise DataError(f"{folder} holds the splits {listed}: pass the folder of one, {folder}/{first}")
            case _:
                raise DataError(f"{folder / SPLITS} names no splits: save the dataset again")
    try:
        from datasets import load_from_disk
    except ImportError as error:
        raise DataError(
            f"{folder} is a Hugging Face dataset, and the package that reads it is missing: pip install datasets"
        ) from error
    # The package shall read files of this folder alone, which take no more memory than they have.
    inside(folder, INFO)
    match read_json(inside(folder, STATE)):
        case {"_data_files": [*files]} if all(isinstance(entry, dict) for entry in files):
            data = set[Path]()
            for entry in files:
                if (file := inside(folder, entry.get("filename"))) in data:
                    raise DataError(f"{folder / STATE} lists {file.name} more than once: save the dataset again")
                data.add(file)
        case _:
            raise DataError(f"{folder / STATE} names no data: save the dataset again")
    try:
        read_text(folder / INFO, copies=BYTES_PER_TEXT_BYTE)
        dataset = load_from_disk(str(folder)).with_format(None)
    except FincEvalError:
        raise
    except Exception as error:  # errors of Arrow or JSON, depending on the damage
        raise DataError(f"{folder} cannot be read as a Hugging Face dataset ({error}): save it again") from error
    check_values(dataset.data.table, str(folder))
    return open_dataset(dataset, str(folder.resolve()), folder, reading)


def _prompts(dataset: Any) -> list[str] | None:
    return next((_texts(dataset, key) for key in PROMPT_KEYS if key in dataset.features), None)


def _labels(dataset: Any) -> list[str] | None:
    from datasets import ClassLabel

    of_class_type = [column for column, feature in dataset.features.items() if isinstance(feature, ClassLabel)]
    if len(of_class_type) == 1:
        feature = dataset.features[of_class_type[0]]
        values = _values(dataset, of_class_type[0])
        return [str(feature.int2str(value)) if value is not None and value >= 0 else "" for value in values]
    return next((_texts(dataset, key) for key in LABEL_KEYS if key in dataset.features), None)


def _texts(dataset: Any, column: str) -> list[str]:
    return ["" if value is None else str(value) for value in _values(dataset, column)]


def _values(dataset: Any, column: str) -> list[Any]:
    """Return a column as it is stored: the package would open the files, and addresses, that some types name."""
    values: list[Any] = dataset.select_columns([column]).with_format("arrow")[:].column(column).to_pylist()
    return values


class DatasetSource(Source):
    """The items of a dataset: images or paths of them, tuples of an image, its label and more, or dictionaries.

    An item must be the same image whenever it is read: random augmentation is not supported. Items are read in one
    thread, because a dataset need not be safe for more. If the dataset lists its labels (`targets`, named by `classes`,
    as in torchvision), they are known at once, otherwise after `manifest` has read all items.
    """

    kind = "dataset"

    def __init__(self, dataset: Any, reading: Reading = EVERYTHING) -> None:
        self._dataset, self.reading = dataset, reading
        n = len(dataset)
        if n == 0:
            raise DataError(f"the dataset ({type(dataset).__name__}) is empty")
        name = f"dataset {type(dataset).__name__}"
        super().__init__(name, numbered(n, name), {})
        targets = plain(getattr(dataset, "targets", None))
        if isinstance(targets, list) and len(targets) == n:
            labels = [self._label(target) for target in targets]
            self.labels = None if None in labels else [label or "" for label in labels]
        self.sample(0)  # refuses items of another type at once

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return map(self.sample, numbers)

    def sample(self, number: int) -> Sample:
        sample, _ = self._item(number)
        return sample

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        labels = {}
        for number in numbers:
            sample, labels[number] = self._item(number)
            yield sample.content
        if self.labels is None and None not in labels.values():
            # Labels of items that were not read stay empty: a subset does not need them.
            self.labels = [labels.get(number) or "" for number in range(len(self.ids))]

    def _item(self, number: int) -> tuple[Sample, str | None]:
        """Return an item as a sample, and its label or None."""
        name, label = self.ids[number], None
        who = f"item {number} of the dataset"
        try:
            item, given_label = part(self._dataset[number], who, self.reading.image_key)
            if isinstance(item, tuple | list) and len(item) > 0:
                item, given_label = item[0], item[1] if len(item) > 1 else None
            label = None if given_label is None else self._label(given_label)
            pixels, encoding = to_pixels(item, who, self.reading)
        except (DataError, MemoryError):
            raise
        except ERRORS_OF_CODE as error:
            kind = type(error).__name__
            raise DataError(f"{who} raises {kind}: {reason(error)}: mend the dataset, not its samples") from error
        except Exception as error:  # a file may be damaged, and its reader may raise anything
            why = reason(error)
            return Sample(name, None, why, content=content_digest(why)), label
        return Sample(name, pixels, None, encoding, decoded_digest(pixels, encoding)), label

    def _label(self, value: Any) -> str | None:
        """Return the name of a class; None if the value is not a class but a mask, a box …."""
        value = plain(value)
        classes = getattr(self._dataset, "classes", None)
        if isinstance(classes, list | tuple) and isinstance(value, int) and 0 <= value < len(classes):
            return str(classes[value])
        return str(value) if isinstance(value, int | str) else None
