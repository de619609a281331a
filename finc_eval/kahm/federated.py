"""One classifier over the data of several parties, who exchange distances alone.

The distance to a class is the least over the parties (Kumar, Moser, Fischer, JAIR 79, 2024, eq. 104), so the result is
that of the union of their branches. In processes of their own, parties meet in a folder: the asker writes `queries.h5`
and each party one file of distances. What each side learns: the parties see the queries, the asker sees distances,
which are exact functions of the parties' samples and tell members from others as `membership_score` measures.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from finc_eval.core.errors import FincEvalError
from finc_eval.core.storage import existing_hdf5, new_hdf5
from finc_eval.kahm.models import ClassModels, WideKahm, matching_scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SCHEMA = 1
QUERIES, DISTANCES = "kahm-queries", "kahm-distances"
PARTY = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, eq=False)
class GlobalDistances:
    """Distances of queries to classes, over all parties.

    Attributes:
        classes: all that any party has, sorted.
        values: shape (queries, classes).
    """

    classes: tuple[Hashable, ...]
    values: NDArray[np.float64]

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The nearest class of every query."""
        return tuple(self.classes[place] for place in self.values.argmin(1))

    @property
    def scores(self) -> NDArray[np.float64]:
        """The class-matching scores, shape (queries, classes)."""
        return matching_scores(self.values)


def combined(parties: Sequence[Mapping[Hashable, NDArray[np.float64]]]) -> GlobalDistances:
    """The global classifier from local distances (eq. 104).

    Args:
        parties: for each, the distances of all queries by class, shape (queries,); classes that a party does not have
            are left out, and count as infinitely far.

    Raises:
        FincEvalError: no party has a class, or they answer unlike numbers of queries.
    """
    answers = [values for party in parties for values in party.values()]
    if not answers:
        raise FincEvalError("no party has any class: there is nothing to combine")
    sizes = sorted({len(values) for values in answers})
    if len(sizes) > 1:
        raise FincEvalError(f"parties must answer the same queries, got {' and '.join(map(str, sizes))} distances")
    names: set[Hashable] = set().union(*parties)
    classes = tuple(sorted(names))  # type: ignore[type-var]  # labels of one kind have an order
    values = np.full((sizes[0], len(classes)), np.inf)
    for party in parties:
        for label, distances in party.items():
            place = classes.index(label)
            values[:, place] = np.minimum(values[:, place], distances)
    return GlobalDistances(classes, values)


def local_distances(models: ClassModels, queries: object) -> dict[Hashable, NDArray[np.float64]]:
    """What a party answers: the distances of all queries to each of its classes."""
    return dict(zip(models.classes, models.distances(queries).values.T, strict=True))


def shipped(parties: Sequence[ClassModels]) -> ClassModels:
    """The same classifier from the parties' models themselves (Remark 6), so that queries stay with the asker.

    A model holds the samples it was made of, exactly: Y = (K + λI) U, see `Kahm.samples`. Ship models of noisy or
    fabricated samples (`finc_eval.kahm.fabrication`), or the data leave with them.

    Raises:
        FincEvalError: no models, or of unlike dimensions.
    """
    if not parties:
        raise FincEvalError("no models were shipped: there is nothing to combine")
    held: dict[Hashable, list[WideKahm]] = {}
    for party in parties:
        for label, model in party.models.items():
            held.setdefault(label, []).append(model)
    order = sorted(held)  # type: ignore[type-var]  # labels of one kind have an order
    return ClassModels({label: WideKahm.union(held[label]) for label in order}, parties[0].settings)


def ask(folder: str | Path, queries: ArrayLike) -> None:
    """Write the queries for all parties: `queries.h5` in the folder.

    Args:
        folder: made if it is not there; answers to earlier queries that lie there are not taken for these.
        queries: shape (n, p), finite.

    Raises:
        FincEvalError: no such array, or the file cannot be written.
    """
    rows = np.ascontiguousarray(queries)
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.floating) or not np.isfinite(rows).all():
        raise FincEvalError(f"queries must be finite floats of shape (n, p), got {rows.dtype} of shape {rows.shape}")
    with new_hdf5(Path(folder) / "queries.h5", QUERIES, SCHEMA) as file:
        file["queries"] = rows
        file.attrs["digest"] = _digest(rows)


def answer(folder: str | Path, party: str, models: ClassModels) -> None:
    """Write a party's distances of the queries: `PARTY.distances.h5` in the folder; nothing else leaves the party.

    Raises:
        FincEvalError: there are no queries, or the name or a class cannot be written.
    """
    _check_party(party)
    if not all(isinstance(label, str | int | float | bool) for label in models.classes):
        raise FincEvalError(f"classes must be strings or numbers to be exchanged, got {list(models.classes)}")
    with existing_hdf5(Path(folder) / "queries.h5", QUERIES, SCHEMA) as file:
        rows, digest = file["queries"][:], str(file.attrs["digest"])
    found = models.distances(rows)
    with new_hdf5(_answer_path(folder, party), DISTANCES, SCHEMA) as file:
        file["distances"] = found.values
        file.attrs["classes"] = json.dumps(list(models.classes))
        file.attrs["queries"] = digest


def gather(folder: str | Path, parties: Sequence[str]) -> GlobalDistances:
    """The global classifier from the answers in a folder.

    Args:
        folder: where `ask` and `answer` wrote.
        parties: who must have answered.

    Raises:
        FincEvalError: somebody has not answered yet, or answered other queries.
    """
    with existing_hdf5(Path(folder) / "queries.h5", QUERIES, SCHEMA) as file:
        digest = str(file.attrs["digest"])
    waiting = [party for party in parties if not _answer_path(folder, party).exists()]
    if waiting:
        raise FincEvalError(f"{', '.join(waiting)} did not answer in {folder} yet: wait, or leave them out")
    answers = []
    for party in parties:
        path = _answer_path(folder, party)
        with existing_hdf5(path, DISTANCES, SCHEMA) as file:
            if str(file.attrs["queries"]) != digest:
                raise FincEvalError(f"{path} answers other queries than those in {folder}: have it made again")
            answers.append(dict(zip(json.loads(file.attrs["classes"]), file["distances"][:].T, strict=True)))
    return combined(answers)


def _answer_path(folder: str | Path, party: str) -> Path:
    _check_party(party)
    return Path(folder) / f"{party}.distances.h5"


def _check_party(party: str) -> None:
    if not PARTY.fullmatch(party):
        raise FincEvalError(
            f"a party's name is a file's: use letters, digits, dots, dashes and underscores, not {party!r}"
        )


def _digest(rows: NDArray[np.floating]) -> str:
    return hashlib.sha256(f"{rows.dtype.str}{rows.shape}".encode() + rows.tobytes()).hexdigest()
