"""Sets held by a Python object with a length and numbered items, as the datasets of torch and torchvision are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.in_memory import plain, to_pixels
from finc_eval.samples.source import Sample, Source, failure_digest, pixels_digest, reason


class DatasetSource(Source):
    """The items of a dataset: images, or tuples of an image, its label and more.

    The same item must be the same image at every reading: no random augmentation. Items are read in one thread, for a
    dataset need not stand more. Labels are known at once where the dataset lists them (`targets`, named by `classes`
    as torchvision does), otherwise when `manifest` has read all items.
    """

    kind = "dataset"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        n = len(dataset)
        if n == 0:
            raise FincEvalError(f"the dataset ({type(dataset).__name__}) is empty")
        super().__init__(f"dataset {type(dataset).__name__}", [str(number) for number in range(n)], {})
        self.labels = self._listed_labels()
        self.sample(0)  # items of another kind are refused at once

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return map(self.sample, numbers)

    def sample(self, number: int) -> Sample:
        sample, _ = self._item(number)
        return sample

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        found = {}
        for number in numbers:
            sample, found[number] = self._item(number)
            yield failure_digest(sample.error or "") if sample.pixels is None else pixels_digest(sample.pixels)
        if self.labels is None and None not in found.values():
            # Those of items that were not asked for stay empty: a subset does not need them.
            self.labels = [found.get(number) or "" for number in range(len(self.ids))]

    def _item(self, number: int) -> tuple[Sample, str | None]:
        """Return an item as a sample, and its label or None."""
        name, label = self.ids[number], None
        try:
            item = self._dataset[number]
            if isinstance(item, tuple | list) and len(item) > 0:
                item, label = item[0], self._label(item[1]) if len(item) > 1 else None
            pixels, traits = to_pixels(item, f"item {number} of the dataset")
        except (FincEvalError, MemoryError):
            raise
        except Exception as error:  # whatever the dataset's own code raises
            return Sample(name, None, reason(error)), label
        return Sample(name, pixels, None, traits), label

    def _listed_labels(self) -> list[str] | None:
        targets = plain(getattr(self._dataset, "targets", None))
        if not isinstance(targets, list) or len(targets) != len(self.ids):
            return None
        labels = [self._label(target) for target in targets]
        return None if None in labels else [label or "" for label in labels]

    def _label(self, value: Any) -> str | None:
        """Return the name of a class, or None if the value is no class but a mask, a box …."""
        value = plain(value)
        classes = getattr(self._dataset, "classes", None)
        if isinstance(classes, list | tuple) and isinstance(value, int) and 0 <= value < len(classes):
            return str(classes[value])
        return str(value) if isinstance(value, int | str) else None
