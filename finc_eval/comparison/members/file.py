"""Neighborhoods, which tell the members of modes among fresh samples, in files."""

from __future__ import annotations

import torch

from finc_eval.comparison.members.neighbors import Neighborhood
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.numerics.axes import PrincipalAxes

PLACE = "members/"
"""Beginning of the names of the arrays."""


def write_neighborhood(file: NewFile, found: Neighborhood) -> None:
    """Store a neighborhood."""
    axes = found.axes
    file.header["members"] = {"unit": axes.unit}
    arrays = {"origin": axes.origin, "axes": axes.axes, "rows": found.rows, "marks": found.marks, "lean": found.lean}
    for name, tensor in arrays.items():
        file.array(f"{PLACE}{name}", tensor.float().cpu().numpy())


def read_neighborhood(file: StoredFile, dim: int, modes: int) -> Neighborhood | None:
    """Read the neighborhood that `write_neighborhood` stored, if there is one; call it in `content_of`.

    Args:
        file: the file.
        dim: number of entries of an embedding.
        modes: number of modes.
    """
    if not file.names(PLACE):
        return None

    def array(name: str, *shape: int | None) -> torch.Tensor:
        found = torch.from_numpy(file.array(f"{PLACE}{name}", *shape))
        if not found.isfinite().all():
            raise ValueError(f"{PLACE}{name} has numbers that are not finite")
        return found

    axes = PrincipalAxes(array("origin", dim), array("axes", dim, None), float(file.header["members"]["unit"]))
    if not axes.unit > 0:
        raise ValueError("its unit of length is not positive")
    rows = array("rows", None, axes.axes.shape[1])
    return Neighborhood(axes, rows, array("marks", len(rows), modes), array("lean", len(rows), modes))
