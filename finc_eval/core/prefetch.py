"""Reading ahead: while one item is worked on, the next one is made in a thread."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetched(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items in the same order, each made while the one before it is in use."""
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(lambda: next(items, None))
        while (item := waiting.result()) is not None:
            waiting = reader.submit(lambda: next(items, None))
            yield item
