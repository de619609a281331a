"""The conventions that move a number, in the order in which they are tried: what costs least comes first."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

COUNTS = (100, 200, 250, 256, 500, 512, 1000, 1024, 2000, 2048, 4096, 5000, 10000, 20000, 25000, 30000, 40000, 50000)
"""Numbers of samples that published values are of."""

SEEDS = (0, 42)  # seeds that people write


class TakenRows(NamedTuple):
    """The samples of a set that are taken: a function of arguments and of the size of the set."""

    choose: Callable[..., NDArray[np.int64]]
    arguments: tuple[Hashable, ...] = ()

    def __call__(self, size: int) -> NDArray[np.int64]:
        """Return the numbers of the samples."""
        return self.choose(*self.arguments, size)


SETS = {"gen": "generated", "ref": "reference"}


@dataclass(frozen=True, eq=False)
class Convention:
    """One way in which another computation may differ, as changes of knobs.

    Knobs are "gen.rows", "gen.look", "gen.card", the same of "ref", "layer", "unit length", "form" and "factor". Two
    conventions go together unless they change the same knob.
    """

    text: str  # what differs, in plain words
    changes: Mapping[str, object]  # value of each knob that differs from what `metrics` does


Pair = tuple[Convention, Convention]


def joined(conventions: Iterable[Convention]) -> dict[str, object]:
    """Return the changes of several conventions together."""
    return {knob: value for convention in conventions for knob, value in convention.changes.items()}


def pairs_of(singles: Sequence[Convention]) -> Iterator[Pair]:
    """Yield all pairs of conventions that go together."""
    for first, second in combinations(singles, 2):
        if not first.changes.keys() & second.changes.keys():
            yield first, second


def of_arithmetic(forms: Mapping[str, object], outputs: Sequence[str]) -> list[Convention]:
    """Return the conventions of the arithmetic on embeddings that are there; `forms` are of the metric."""
    found = [Convention(text, {"form": form}) for text, form in forms.items()]
    found += [Convention(f"times {factor:,}", {"factor": factor}) for factor in (1000, 100)]
    found.append(Convention("embeddings of unit length", {"unit length": True}))
    return found + [Convention(f"the output “{name}” of the network", {"layer": name}) for name in outputs]


def of_parts(sizes: Mapping[str, int], ids: Mapping[str, Sequence[str]]) -> list[Convention]:
    """Return the conventions that choose samples: the first in the order of names, halves, and folders."""
    found = []
    for label in sizes:
        folders = [name.partition("/")[0] if "/" in name else "" for name in ids[label]]
        for folder in ("train", "training", "val", "valid", "validation", "test"):
            inside = tuple(number for number, known in enumerate(folders) if known == folder)
            if 2 <= len(inside) < sizes[label]:
                text = f"only the folder {folder} of the {SETS[label]} set"
                found.append(_taken(text, TakenRows(_these, inside), label))
    for half, rows in (("first", FIRST_HALF), ("second", TakenRows(second_half))):
        if sizes["ref"] >= 4:
            found.append(_taken(f"the {half} half of the reference set", rows, "ref"))
    for count in _counts(sizes):
        fitting = [label for label in sizes if count < sizes[label]]
        found += [
            _taken(f"the first {count:,} {SETS[label]} samples", TakenRows(first, (count,)), label) for label in fitting
        ]
        if len(fitting) == len(SETS):
            found.append(_taken(f"the first {count:,} samples of both sets", TakenRows(first, (count,)), *fitting))
    return found


def of_draws(sizes: Mapping[str, int]) -> list[Convention]:
    """Return samples that were drawn at random with the seeds that people write."""
    ways = {"numpy": drawn_by_numpy, "Python": drawn_by_python, "torch": drawn_by_torch}
    return [
        _taken(
            f"{count:,} {SETS[label]} samples, drawn by {way} with seed {seed}", TakenRows(draw, (count, seed)), label
        )
        for count in _counts(sizes)
        for label in sizes
        if count < sizes[label]
        for seed in SEEDS
        for way, draw in ways.items()
    ]


def of_pixels(knob: str, name: str) -> list[Convention]:
    """Return the conventions of other pixels: of both sets, and of each alone."""
    both = Convention(name, {f"{label}.{knob}": name for label in SETS})
    return [both, *(Convention(f"{name}, of the {SETS[label]} set alone", {f"{label}.{knob}": name}) for label in SETS)]


def first(count: int, size: int) -> NDArray[np.int64]:
    """Return the first samples."""
    return np.arange(min(count, size))


def first_half(size: int) -> NDArray[np.int64]:
    """Return the first half of a set."""
    return np.arange(size // 2)


FIRST_HALF = TakenRows(first_half)


def second_half(size: int) -> NDArray[np.int64]:
    """Return the second half of a set."""
    return np.arange(size // 2, size)


def drawn_by_numpy(count: int, seed: int, size: int) -> NDArray[np.int64]:
    """Draw as `np.random.seed(seed); np.random.choice(size, count, replace=False)`."""
    return np.sort(np.random.RandomState(seed).permutation(size)[:count])


def drawn_by_python(count: int, seed: int, size: int) -> NDArray[np.int64]:
    """Draw as `random.seed(seed); random.sample(samples, count)`."""
    return np.sort(np.array(random.Random(seed).sample(range(size), count)))


def drawn_by_torch(count: int, seed: int, size: int) -> NDArray[np.int64]:
    """Draw as `torch.manual_seed(seed); torch.randperm(size)[:count]`."""
    return np.sort(torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:count].numpy())


def _these(*rows_and_size: int) -> NDArray[np.int64]:
    return np.array(rows_and_size[:-1], np.int64)


def _counts(sizes: Mapping[str, int]) -> list[int]:
    """Return the counts to try, the largest first: usual counts, and the size of the smaller set."""
    largest = max(sizes.values())
    # 10: a tenth of the samples gives quite another number, and fewer are not tried.
    return sorted({n for n in (*COUNTS, *sizes.values()) if largest / 10 <= n < largest}, reverse=True)


def _taken(text: str, rows: TakenRows, *labels: str) -> Convention:
    return Convention(text, {f"{label}.rows": rows for label in labels})
