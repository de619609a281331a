"""One classifier over the data of several parties, who exchange nothing but distances.

The distance to a class is the least over the parties (Kumar, Moser, Fischer, JAIR 79, 2024, eq. 104), so the result
equals the result of the union of their branches. Parties in processes of their own meet in a folder: one `ask`s by
writing `queries.h5`, each party `answer`s with one file of distances, and the asker `gather`s them. The parties see the
queries. The asker sees distances, which are exact functions of the parties' samples and distinguish members from others
as far as `membership_score` measures.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.files.stored import existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.record import Record, plain, structure
from finc_eval.private.kahm.files import check_labels
from finc_eval.private.kahm.models import ClassModels, WideKahm, matching_scores

__all__ = ["GlobalDistances", "answer", "ask", "combine", "gather", "local_distances", "ship"]

EXCHANGE_LAYOUT = 2
QUERIES_TYPE, DISTANCES_TYPE = "kahm-queries", "kahm-distances"
PARTY_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class ClientAnswer(Record):
    """Header of a party's answer: the labels of its classes, and the digest of the queries that it answers."""

    classes: tuple[bool | int | float | str, ...]
    queries: str


@dataclass(frozen=True, eq=False)
class GlobalDistances:
    """Distances of queries to classes, over all parties.

    Attributes:
        classes: labels that any party has, sorted.
        values: distances, shape (queries, classes).

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> fe.kahm.federated.GlobalDistances(("cat", "dog"), np.array([[1.0, 2.0], [3.0, 1.0]])).labels
        ('cat', 'dog')
    """

    classes: tuple[Hashable, ...]
    values: NDArray[np.float64]

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """Nearest class of every query; the first class if a query has no distance to any."""
        return tuple(self.classes[number] for number in self.values.argmin(1))

    @property
    def scores(self) -> NDArray[np.float64]:
        """Class-matching scores (Definition 8), shape (queries, classes)."""
        return matching_scores(self.values)


def local_distances(models: ClassModels, queries: object) -> dict[Hashable, NDArray[np.float64]]:
    """Return the answer of one party: the distances of all queries to each of its classes.

    Args:
        models: models of the party.
        queries: points, shape (n, p): array, tensor, cache or its path.

    Raises:
        UsageError: the models are not models of classes.
        IncompatibleError: the queries have another dimension than the party's samples.
        DataError: a row is not finite.

    Example:
        >>> import finc_eval as fe
        >>> party = fe.kahm.fit_classes([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"])
        >>> found = fe.kahm.federated.local_distances(party, [[0.5], [9.0]])
        >>> found["a"].round(1).tolist(), found["b"].round(1).tolist()
        ([0.0, 7.8], [4.5, 3.0])
    """
    _check_models(models)
    return dict(zip(models.classes, models.distances(queries).values.T, strict=True))


def combine(parties: Sequence[Mapping[Hashable, NDArray[np.float64]]]) -> GlobalDistances:
    """Combine local distances into the global classifier (eq. 104).

    Args:
        parties: for each party, the distances of all queries by class, shape (queries,). A class that a party does not
            have is missing from its answer, and counts as infinitely far.

    Raises:
        UsageError: no party has a class.
        IncompatibleError: the parties answer different numbers of queries, or have classes of words and of numbers.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> near, far = np.array([1.0, 2.0]), np.array([3.0, 1.0])
        >>> fe.kahm.federated.combine([{"a": near}, {"b": far}, {"a": far}]).values.tolist()
        [[1.0, 3.0], [1.0, 1.0]]
    """
    answers = [values for party in parties for values in party.values()]
    if not answers:
        raise UsageError("no party has any class: there is nothing to combine")
    sizes = sorted({len(values) for values in answers})
    if len(sizes) > 1:
        raise IncompatibleError(f"parties must answer the same queries, got {' and '.join(map(str, sizes))} distances")
    classes = _in_order(set[Hashable]().union(*parties))
    values = np.full((sizes[0], len(classes)), np.inf)
    for party in parties:
        for label, distances in party.items():
            column = classes.index(label)
            values[:, column] = np.minimum(values[:, column], distances)
    return GlobalDistances(classes, values)


def ship(parties: Sequence[ClassModels]) -> ClassModels:
    """Combine the models of the parties themselves (Remark 6), so that queries stay with the asker.

    A model holds the samples it was made of, exactly: Y = (K + λI) U, see `Kahm.samples`. Ship models of noisy or
    fabricated samples (`fit_private_classes`), or the data leave with them.

    Args:
        parties: models of each party.

    Raises:
        UsageError: no models are given, or something else.
        IncompatibleError: the models have different dimensions or extractors, or classes of words and of numbers.

    Example:
        >>> import finc_eval as fe
        >>> parties = [fe.kahm.fit_classes([[0.0], [1.0], [5.0]], ["a", "a", label]) for label in ("a", "b")]
        >>> joined = fe.kahm.federated.ship(parties)
        >>> joined.classes, len(joined.models["a"].branches)
        (('a', 'b'), 2)
    """
    if not parties:
        raise UsageError("no models were shipped: there is nothing to combine")
    held: dict[Hashable, list[WideKahm]] = {}
    for party in parties:
        _check_models(party)
        for label, model in party.models.items():
            held.setdefault(label, []).append(model)
    spaces = {party.space for party in parties} - {""}
    if len(spaces) > 1:
        raise IncompatibleError(f"models of parties must have one extractor, got {' and '.join(sorted(spaces))}")
    joined = {label: WideKahm.union(held[label]) for label in _in_order(held)}
    return ClassModels(joined, parties[0].settings, "".join(spaces))


def ask(folder: str | Path, queries: ArrayLike) -> None:
    """Write queries for all parties: `queries.h5` in the folder.

    Args:
        folder: folder of the exchange, made if it does not exist. Answers to earlier queries that lie there are not
            taken for answers to these.
        queries: points, shape (n, p), finite.

    Raises:
        DataError: the queries are not such an array, or the file cannot be written.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.federated.ask("exchange", [[0.5], [9.0]])
        >>> fe.kahm.federated.answer("exchange", "clinic-1", fe.kahm.fit_classes([[0.0], [5.0]], ["a", "b"]))
        >>> fe.kahm.federated.gather("exchange", ["clinic-1"]).values.round(1).tolist()
        [[0.5, 4.5], [9.0, 4.0]]
    """
    rows = np.asarray(queries)
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.floating) or not np.isfinite(rows).all():
        raise DataError(f"queries must be finite floats of shape (n, p), got {rows.dtype} of shape {rows.shape}")
    rows = np.ascontiguousarray(rows, f"<f{min(rows.itemsize, 8)}")
    with new_file(Path(folder) / "queries.h5", QUERIES_TYPE, EXCHANGE_LAYOUT) as file:
        file.array("queries", rows)
        file.header["digest"] = _digest(rows)


def answer(folder: str | Path, party: str, models: ClassModels) -> None:
    """Write a party's distances of the queries: `PARTY.distances.h5` in the folder. Nothing else leaves the party.

    Args:
        folder: folder of the exchange, where `ask` wrote.
        party: name of the party, which names the file.
        models: models of the party.

    Raises:
        UsageError: the name cannot name a file, or the models are not models of classes.
        DataError: `ask` has not written queries yet, or a label of a class cannot be written.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.federated.ask("exchange", [[0.5], [9.0]])
        >>> fe.kahm.federated.answer("exchange", "clinic-2", fe.kahm.fit_classes([[0.0], [5.0]], ["a", "b"]))
        >>> fe.kahm.federated.gather("exchange", ["clinic-2"]).labels
        ('a', 'b')
    """
    path = _answer_path(folder, party)
    _check_models(models)
    check_labels(models.classes, "exchanged")
    with existing_file(Path(folder) / "queries.h5", QUERIES_TYPE, EXCHANGE_LAYOUT, "ask again") as file:
        rows, digest = file.stored("queries").whole(), str(file.header["digest"])
        if rows.ndim != 2 or digest != _digest(rows):
            raise ValueError("its queries differ from the queries that were asked")
    distances = models.distances(rows)
    with new_file(path, DISTANCES_TYPE, EXCHANGE_LAYOUT) as file:
        file.array("distances", np.asarray(distances.values, np.float64))
        file.header |= plain(ClientAnswer(tuple(models.classes), digest))  # type: ignore[arg-type]


def gather(folder: str | Path, parties: Sequence[str]) -> GlobalDistances:
    """Combine the answers in a folder into the global classifier.

    Args:
        folder: folder of the exchange, where `ask` and `answer` wrote.
        parties: names of the parties that must have answered.

    Raises:
        UsageError: a party is named twice.
        DataError: a party has not answered yet, or a file cannot be read.
        IncompatibleError: a party answered other queries.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.federated.ask("exchange", [[0.5], [9.0]])
        >>> for name, part in {"north": [[0.0], [5.0]], "south": [[1.0], [7.0]]}.items():
        ...     fe.kahm.federated.answer("exchange", name, fe.kahm.fit_classes(part, ["a", "b"]))
        >>> fe.kahm.federated.gather("exchange", ["north", "south"]).values.round(1).tolist()
        [[0.5, 4.5], [8.0, 2.0]]
    """
    if twice := next((party for party in parties if list(parties).count(party) > 1), None):
        raise UsageError(f"the party {twice} is named twice: give each name once")
    with existing_file(Path(folder) / "queries.h5", QUERIES_TYPE, EXCHANGE_LAYOUT, "ask again") as file:
        digest = str(file.header["digest"])
    waiting = [party for party in parties if not _answer_path(folder, party).exists()]
    if waiting:
        raise DataError(f"{', '.join(waiting)} did not answer in {folder} yet: wait, or leave them out")
    answers: list[Mapping[Hashable, NDArray[np.float64]]] = []
    for party in parties:
        path = _answer_path(folder, party)
        with existing_file(path, DISTANCES_TYPE, EXCHANGE_LAYOUT, f"ask {party} for it again") as file:
            made = structure(ClientAnswer, file.header, str(path))
            distances = file.array("distances", None, len(made.classes), dtype="<f8")
            if np.isnan(distances).any() or (distances < 0).any():
                raise ValueError("a distance is not a number of at least 0")
        if made.queries != digest:
            raise IncompatibleError(f"{path} answers other queries than the queries in {folder}: have it made again")
        answers.append(dict(zip(made.classes, distances.T, strict=True)))
    return combine(answers)


def _check_models(models: object) -> None:
    if not isinstance(models, ClassModels):
        raise UsageError(
            f"models of a party are what fe.kahm.fit_classes or load_models returns, got {type(models).__name__}"
        )


def _in_order(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(labels))  # type: ignore[type-var]  # labels of one type have an order
    except TypeError as error:
        raise IncompatibleError(
            "parties must name their classes by words alone, or by numbers alone: rename the classes of one"
        ) from error


def _answer_path(folder: str | Path, party: str) -> Path:
    if not PARTY_NAME.fullmatch(party):
        raise UsageError(
            f"the name of a party names a file: use letters, digits, dots, dashes and underscores, not {party!r}"
        )
    return Path(folder) / f"{party}.distances.h5"


def _digest(rows: NDArray[np.floating]) -> str:
    """Return the SHA-256 of rows (n, d), with their type and shape."""
    return sha256_of(f"{rows.dtype.str}{rows.shape}", rows)
