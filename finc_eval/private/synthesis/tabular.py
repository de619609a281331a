"""Public descriptions of tables: every column has finitely many levels, which are known in advance.

A record is the one-hot vector of its levels, with all columns concatenated. Feature maps see it through public linear
views. `codes` gives similar levels near vectors and serves the relations between columns. `amounts` is the same without
negative entries, for bounded moments. `positions` gives one number per column with its levels far apart, for the
distribution of each column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.parsed import read_json, read_toml
from finc_eval.private.dp.public_values import column_arrays
from finc_eval.private.synthesis.columns import Category, Column, Number, described_column

MAX_POSITION = 8.0  # levels of a column lie in [−8, 8] in the view `positions`, so up to 17 of them are 1 apart


@dataclass(frozen=True)
class Table:
    """The public description of a table: its columns, and the column of classes, if any.

    Attributes:
        columns: all columns but the label.
        label: column of classes, or None.

    Raises:
        UsageError: columns are missing, or two of them have the same name.

    Example:
        >>> import finc_eval as fe
        >>> age = fe.privacy.Number.between("age", 18, 95, levels=7)
        >>> smokes, ill = (fe.privacy.Category(name, ("no", "yes")) for name in ("smokes", "ill"))
        >>> table = fe.privacy.Table((age, smokes), label=ill)
        >>> table.levels, table.classes
        ([7, 2], 2)
    """

    columns: tuple[Column, ...]
    label: Category | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self._every_column]
        if not self.columns or len(set(names)) < len(names):
            raise UsageError(f"a table needs columns, each with a name of its own, got {names}")

    @property
    def _every_column(self) -> tuple[Column, ...]:
        return (*self.columns, self.label) if self.label else self.columns

    @classmethod
    def load(cls, path: str | Path) -> Table:
        """Read the description of a table from a .toml or .json file; docs/dp_generation.md has an example.

        Raises:
            DataError: the file cannot be read, or does not describe a table.
        """
        described = read_toml(path) if Path(path).suffix == ".toml" else read_json(path)
        entries = described.get("columns") if isinstance(described, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DataError(f"{path} must have `columns`, a list of tables with a name each")
        try:
            columns = [described_column(entry) for entry in entries]
        except (DataError, UsageError) as error:
            raise DataError(f"{path}: {error}") from None
        label = described.get("label")
        chosen = next((column for column in columns if column.name == label), None)
        if label is not None and not isinstance(chosen, Category):
            raise DataError(f"{path}: the label must be a column with values, got {label!r}")
        rest = tuple(column for column in columns if column is not chosen)
        return cls(rest, chosen if isinstance(chosen, Category) else None)

    @property
    def classes(self) -> int:
        """Number of classes, 1 without a label."""
        return self.label.levels if self.label else 1

    @property
    def levels(self) -> list[int]:
        """Number of levels of each column."""
        return [column.levels for column in self.columns]

    @cached_property
    def codes(self) -> torch.Tensor:
        """View of a record as the codes of its levels, (k, d)."""
        return _block_diagonal([column.codes for column in self.columns])

    @cached_property
    def amounts(self) -> torch.Tensor:
        """View of a record as the amounts of its levels, (k, d)."""
        return _block_diagonal([column.amounts for column in self.columns])

    def mean_square(self, view: torch.Tensor) -> float:
        """Return the publicly known mean of ‖view of a record‖², for a view that keeps columns apart."""
        return float(torch.cat([column.prior for column in self.columns]) @ view.square().sum(1))

    @cached_property
    def positions(self) -> torch.Tensor:
        """View of a record with the levels of each column far apart on one axis, (k, columns)."""
        places = []
        for column in self.columns:
            half = min((column.levels - 1) / 2, MAX_POSITION)
            places.append(torch.linspace(-half, half, column.levels)[:, None] if half else torch.zeros(1, 1))
        return _block_diagonal(places)

    def encoded(self, values: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the levels of every record as one-hot vectors (n, k), and classes (n,) if the table has a label.

        Raises:
            DataError: a column is missing, has another length than the others, or values of a wrong type.
        """
        for column in self._every_column:
            if column.name not in values:
                raise DataError(
                    f"column {column.name!r} is missing in the data{did_you_mean(column.name, values)}: "
                    f"they have {', '.join(values)}"
                )
        given = column_arrays({column.name: values[column.name] for column in self._every_column})
        encoded = {column.name: column.encoded(given[column.name]) for column in self._every_column}
        levels = np.stack([encoded[column.name] for column in self.columns], 1)
        labels = torch.from_numpy(encoded[self.label.name]) if self.label else None
        return self.one_hot(torch.from_numpy(levels)), labels

    def misfits(self, values: Mapping[str, np.ndarray]) -> dict[str, Counter[str]]:
        """Return the values of each column that its description does not have, with their numbers of records."""
        return {column.name: column.misfits(values[column.name]) for column in self._every_column}

    @property
    def of_missing(self) -> dict[str, str]:
        """Setting that gives what is missing a level, for each column that has none."""
        settings = {Number: "missing = true", Category: 'missing = "…" (one of its values)'}
        return {column.name: settings[type(column)] for column in self._every_column if not column.missing}

    def one_hot(self, levels: torch.Tensor) -> torch.Tensor:
        """Turn levels (n, columns) into one-hot vectors (n, k), float32."""
        blocks = [torch.nn.functional.one_hot(level, count) for level, count in zip(levels.T, self.levels, strict=True)]
        return torch.cat(blocks, 1).float()

    def level_indices(self, records: torch.Tensor) -> torch.Tensor:
        """Turn one-hot vectors (n, k) into levels (n, columns)."""
        return torch.stack([block.argmax(1) for block in torch.split(records, self.levels, 1)], 1)

    def decoded(self, records: torch.Tensor, labels: torch.Tensor | None, seed: int) -> dict[str, np.ndarray]:
        """Return the values of records by column. Numbers are drawn uniformly from the intervals of their levels."""
        rng = np.random.default_rng(seed)
        levels = self.level_indices(records).numpy()
        values = {column.name: column.decoded(level, rng) for column, level in zip(self.columns, levels.T, strict=True)}
        if self.label and labels is not None:
            values[self.label.name] = self.label.decoded(labels.numpy(), rng)
        return values


def _block_diagonal(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Put blocks (k, a, b) on the diagonal of a matrix (k a, k b) that is 0 elsewhere."""
    matrix: torch.Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return matrix
