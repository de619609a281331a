"""Sets in a Python object with a length and numbered items, such as the datasets of torch and torchvision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.samples.in_memory import part, plain, to_pixels
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import Sample, Source, failure_digest, pixels_digest, reason

ERRORS_OF_CODE = (LookupError, TypeError, AttributeError, NameError, AssertionError, ImportError, ArithmeticError)
"""Errors that the code of a dataset raises, as opposed to the readers of damaged files."""


class DatasetSource(Source):
    """The items of a dataset: images or paths of them, tuples of an image, its label and more, or dictionaries.

    An item must be the same image whenever it is read: random augmentation is not supported. Items are read in one
    thread, because a dataset need not be safe for more. If the dataset lists its labels (`targets`, named by `classes`,
    as in torchvision), they are known at once, otherwise after `manifest` has read all items.
    """

    kind = "dataset"

    def __init__(self, dataset: Any, reading: Reading | None = None) -> None:
        self._dataset, self.reading = dataset, reading or EVERYTHING
        n = len(dataset)
        if n == 0:
            raise DataError(f"the dataset ({type(dataset).__name__}) is empty")
        super().__init__(f"dataset {type(dataset).__name__}", [str(number) for number in range(n)], {})
        self.labels = self._listed_labels()
        self.sample(0)  # refuses items of another type at once

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return map(self.sample, numbers)

    def sample(self, number: int) -> Sample:
        sample, _ = self._item(number)
        return sample

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        found = {}
        for number in numbers:
            sample, found[number] = self._item(number)
            yield sample.content
        if self.labels is None and None not in found.values():
            # Labels of items that were not read stay empty: a subset does not need them.
            self.labels = [found.get(number) or "" for number in range(len(self.ids))]

    def _item(self, number: int) -> tuple[Sample, str | None]:
        """Return an item as a sample, and its label or None."""
        name, label = self.ids[number], None
        who = f"item {number} of the dataset"
        try:
            item, found = part(self._dataset[number], who, self.reading.image_key)
            if isinstance(item, tuple | list) and len(item) > 0:
                item, found = item[0], item[1] if len(item) > 1 else None
            label = None if found is None else self._label(found)
            pixels, traits = to_pixels(item, who, self.reading)
        except (DataError, MemoryError):
            raise
        except ERRORS_OF_CODE as error:
            kind = type(error).__name__
            raise DataError(f"{who} raises {kind}: {reason(error)}: mend the dataset, not its samples") from error
        except Exception as error:  # a file may be damaged, and its reader may raise anything
            why = reason(error)
            return Sample(name, None, why, content=failure_digest(why)), label
        return Sample(name, pixels, None, traits, pixels_digest(pixels)), label

    def _listed_labels(self) -> list[str] | None:
        targets = plain(getattr(self._dataset, "targets", None))
        if not isinstance(targets, list) or len(targets) != len(self.ids):
            return None
        labels = [self._label(target) for target in targets]
        return None if None in labels else [label or "" for label in labels]

    def _label(self, value: Any) -> str | None:
        """Return the name of a class; None if the value is not a class but a mask, a box …."""
        value = plain(value)
        classes = getattr(self._dataset, "classes", None)
        if isinstance(classes, list | tuple) and isinstance(value, int) and 0 <= value < len(classes):
            return str(classes[value])
        return str(value) if isinstance(value, int | str) else None
