"""`KindsOfSamples`: the listed kinds of a result, to which fresh samples are assigned; kept in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.tally import Tally


@dataclass(frozen=True, eq=False)
class KindsOfSamples:
    """A tree of kinds, and which of its nodes a result lists.

    Attributes:
        place: place of each leaf's kind among the listed kinds, shape (leaves,); −1 for none.
    """

    tree: KindTree
    place: NDArray[np.int64]
    tallies: Mapping[str, Tally]

    def assign(self, embeddings: object) -> NDArray[np.int64]:
        """Return the place of the kind of each sample, shape (n,); −1 for samples of no listed kind."""
        rows = as_embeddings(embeddings, "the embeddings")
        return np.concatenate([self.places(batch.rows) for batch in rows.batches()])

    def places(self, rows: torch.Tensor) -> NDArray[np.int64]:
        """Return what `assign` does, of rows that are known to be embeddings, shape (n, d)."""
        return self.place[self.tree.assign(rows)[0]]

    def write(self, file: NewFile) -> None:
        """Write the tree, the places and the tallies into a file."""
        self.tree.write(file)
        file.array("kinds/place", self.place)
        file.header["tallies"] = {label: one.n for label, one in self.tallies.items()}
        for number, one in enumerate(self.tallies.values()):
            file.array(f"kinds/members/{number}", one.members)
            file.array(f"kinds/effects/{number}", np.stack([one.effects, one.even, one.within]))


def read_kinds(file: StoredFile, listed: int) -> KindsOfSamples:
    """Read what `KindsOfSamples.write` wrote, of a result with this many kinds; call it in `content_of`."""
    tree = KindTree.read(file)
    place = file.array("kinds/place", tree.tree.leaves, dtype="<i8")
    if not ((place >= -1) & (place < listed)).all():
        raise ValueError("its kinds do not match its tree")
    return KindsOfSamples(tree, place, dict(_read_tallies(file, tree.tree.nodes)))


def _read_tallies(file: StoredFile, nodes: int) -> Iterator[tuple[str, Tally]]:
    for number, (label, n) in enumerate(file.header["tallies"].items()):
        members = file.array(f"kinds/members/{number}", nodes, dtype="<i8")
        effects, even, within = file.array(f"kinds/effects/{number}", 3, nodes, dtype="<f8")
        fit = (members >= 0).all() and members[-1] == n and min(effects.min(), even.min()) >= 1 and (within >= 0).all()
        if not fit:
            raise ValueError("its counts are not of its kinds")
        yield str(label), Tally(int(n), members, effects, even, within)
