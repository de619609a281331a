"""`Classifiers`: what is asked of the samples of each evaluation: are they of new kinds, and have they new parts?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.embeddings.base import Embeddings
from finc_eval.monitoring.evidence.asked import MOST_SAMPLES, count_high
from finc_eval.monitoring.evidence.parts import Parts, summarize_cells
from finc_eval.monitoring.evidence.unlike import Unlike, represent
from finc_eval.monitoring.exchange import Array, Counts
from finc_eval.monitoring.followed import NEW_KINDS, PARTS, SHARES


def _none() -> NDArray[np.float32]:
    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class AskedSamples:
    """Samples of an evaluation that classifiers are asked about; those of several processes add up by `+`.

    Attributes:
        rows: shape (m, k), by `represent`.
        cells: shape (m, c), by `summarize_cells`.
    """

    rows: NDArray[np.float32] = field(default_factory=_none)
    cells: NDArray[np.float32] = field(default_factory=_none)

    def __add__(self, other: AskedSamples) -> AskedSamples:
        pairs = (self.rows, other.rows), (self.cells, other.cells)
        return AskedSamples(
            *(np.concatenate(pair) if len(pair[0]) and len(pair[1]) else max(pair, key=len) for pair in pairs)
        )


@dataclass(frozen=True, eq=False)
class Classifiers:
    """Classifiers of kinds that the reference lacks, and of parts of pictures.

    Attributes:
        unlike: classifiers by embeddings.
        parts: classifiers by cells; None if the reference has none.
        space: space of the cells.
    """

    unlike: Unlike
    parts: Parts | None
    space: str

    @classmethod
    def of(cls, reference: Embeddings, kinds: int, seed: int) -> Self:
        """Begin with a reference whose monitor follows so many kinds, which come before all other shares."""
        unlike = Unlike.of(reference, kinds + SHARES.index(NEW_KINDS), seed)
        space = "" if reference.cells is None else reference.cells.space
        return cls(unlike, Parts.of(reference, kinds + SHARES.index(PARTS), seed), space)

    def ask(
        self, samples: Embeddings, rows: Counts, counted: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[AskedSamples, NDArray[np.bool_], Array]:
        """Take samples to ask about, and mark what the latest classifiers find.

        Args:
            samples: samples of an evaluation.
            rows: those that are looked at, shape (n,).
            counted: which of these count in the tests, shape (n,).
            rng: draws the samples to ask about.

        Returns:
            The samples; which of `rows` are of new kinds, and which have new parts, (2, n); and how many have parts,
            and how many have cells, (2,).
        """
        embedded, found = represent(samples, rows), np.zeros((2, len(rows)), bool)
        found[0] = self.unlike.flag(embedded)
        order = rng.permutation(np.flatnonzero(counted))[:MOST_SAMPLES]
        if self.parts is None or samples.cells is None or samples.cells.space != self.space:
            return AskedSamples(embedded[order]), found, np.zeros(2)
        cells, places = summarize_cells(samples, rows)
        found[1, places] = self.parts.flag(cells)
        asked = np.flatnonzero(np.isin(places, order))
        return AskedSamples(embedded[order], cells[asked]), found, np.array([found[1].sum(), len(places)], float)

    def with_evaluation(self, samples: AskedSamples, rng: np.random.Generator) -> Self:
        """Return the same with the samples of an evaluation."""
        parts = None if self.parts is None else self.parts.with_evaluation(samples.cells, rng)
        return replace(self, unlike=self.unlike.with_evaluation(samples.rows, rng), parts=parts)

    def followed_parts(self) -> dict[int, tuple[int, int]]:
        """Return how many pictures of the reference count as having a part, and how many there are, by their place."""
        if self.parts is None:
            return {}
        pictures = int((self.parts.block == 0).sum())
        return {self.parts.place: (count_high(pictures), pictures)}

    def look_back(self, place: int, sums: Array) -> Array:
        """Return the samples of each evaluation that have a thing, and samples, (t, 2), by all that is known now.

        A classifier knows little when a change begins, so what it has counted then comes late.
        """
        asked = next((each for each in (self.unlike, self.parts) if each is not None and each.place == place), None)
        if asked is None:
            return sums
        found = sums.copy()
        for number, flagged in asked.flag_again().items():
            share = flagged / np.count_nonzero(asked.block == number)
            found[number - 1, 0] = max(found[number - 1, 0], round(share * found[number - 1, 1]))
        return found

    def add_evidence(self, evidence: Array, count: int | None) -> Array:
        """Return logarithms of e-values of all things, (things,), with those after so many evaluations; None: all.

        That of new kinds is the mean of two: of samples that are far from the reference, and of the classifiers.
        """
        found = evidence.copy()
        if len(bets := self.unlike.bets[:count]):
            found[self.unlike.place] = np.logaddexp(found[self.unlike.place], bets[-1]) - np.log(2)
        if self.parts is not None and len(bets := self.parts.bets[:count]):
            found[self.parts.place] = bets[-1]
        return found

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header["classifiers"] = {"space": self.space, "has_parts": self.parts is not None}
        self.unlike.write(file)
        if self.parts is not None:
            self.parts.write(file)

    @classmethod
    def read(cls, file: StoredFile, evaluations: int, shares: int) -> Self:
        """Read what `write` wrote of so many evaluations and followed shares; call it in `content_of`."""
        header = file.header["classifiers"]
        parts = Parts.read(file, evaluations, shares) if header["has_parts"] else None
        return cls(Unlike.read(file, evaluations, shares), parts, str(header["space"]))
