"""Several methods on the same two sets: the modes of each, and which of them are of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, get_args

import numpy as np
import torch

from finc_eval.comparison.compare import compare_sides, settings_for
from finc_eval.comparison.inputs import Kernel, Side, Sketching, open_sides
from finc_eval.comparison.method import METHODS, MethodName, methods_of
from finc_eval.comparison.modes import Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.search import Rotation, check_search
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.serialize import Document
from finc_eval.core.storage import write_text
from finc_eval.numerics.precision import Precision
from finc_eval.samples import Samples

SCHEMA = 1

SAME = 0.7
"""Correlation of what samples add to the masses of two modes from which on they are one kind. On the demo's digits it
is 0.71 to 0.98 for modes of one digit, and 0.6 at most for those of two."""


ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Kind:
    """Modes of one kind, by their correlation with the mode that was found first.

    Attributes:
        name: a letter, or more.
        role: of all its modes.
        modes: the ids of the modes of each method that has some, best first; the first of all is the one found first.
    """

    name: str
    role: Role
    modes: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class MethodTable(Document):
    """What several methods find on the same two sets.

    Attributes:
        comparisons: of the two sets, by method.
        kinds: of the modes of all methods, over- and then under-represented, in the order in which they were found.
    """

    comparisons: dict[str, Comparison]
    kinds: tuple[Kind, ...]

    @property
    def first(self) -> Comparison:
        """The comparison of the first method, which shares sets, feature map and most settings with the others."""
        return next(iter(self.comparisons.values()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of all comparisons, each once."""
        return tuple(dict.fromkeys(warning for one in self.comparisons.values() for warning in one.warnings))

    def kind_of(self, method: str, mode: Mode) -> Kind:
        """The kind that a mode of this method is of."""
        return next(kind for kind in self.kinds if mode.id in kind.modes.get(method, ()))

    def to_dict(self) -> dict[str, Any]:
        """All comparisons and kinds, as plain JSON types; `schema` numbers the layout."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": SCHEMA,
            "comparisons": {method: found.to_dict() for method, found in self.comparisons.items()},
            "kinds": [
                {
                    "name": kind.name,
                    "role": kind.role,
                    "modes": {method: list(ids) for method, ids in kind.modes.items()},
                }
                for kind in self.kinds
            ],
        }

    def to_html(
        self, path: str | Path, *, gen_samples: Samples | None = None, ref_samples: Samples | None = None
    ) -> Path:
        """Write the page: one self-contained HTML file with the modes of the methods side by side.

        Args:
            path: the file to write.
            gen_samples: where the generated samples are now, if not where they were embedded from.
            ref_samples: the same for the reference samples.

        Raises:
            FincEvalError: when samples that were passed cannot be opened, or the file cannot be written.
        """
        # The page is drawn by the layer above, which is loaded only when it is asked for.
        from finc_eval.report.methods import render_methods

        self.first.gen.check_samples(gen_samples)
        self.first.ref.check_samples(ref_samples)
        return write_text(path, render_methods(self, gen_samples=gen_samples, ref_samples=ref_samples))

    def __repr__(self) -> str:
        counts = ", ".join(f"{method} {len(found.significant())}" for method, found in self.comparisons.items())
        return f"MethodTable(modes with p ≤ 0.05: {counts}; {len(self.kinds)} kinds)"

    def _repr_html_(self) -> str:
        from finc_eval.report.methods import render_methods_fragment

        return render_methods_fragment(self)


def compare_methods(
    gen: object,
    ref: object,
    methods: Sequence[MethodName] = METHODS,
    *,
    rho: float = 1.0,
    kernel: Kernel = "gaussian",
    sigma: float | None = None,
    features: int | Literal["auto"] = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    novel: float | None = None,
    neighbors: int | None = None,
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> MethodTable:
    """Compare two sets by FINC and by the baselines of its paper, and say which modes are of one kind.

    All methods share sets, feature map, folds and tests, and differ in nothing but in how they find directions. Each is
    tested as a family of its own, so that every method is another chance of a false discovery.

    Args:
        gen: the generated set: embeddings, as `compare` takes them; a sketch does for "finc" alone.
        ref: the reference set, likewise.
        methods: which, in the order of the columns: "finc", "ken", "rarity", "fld".
        rho: ρ > 0.
        kernel: "gaussian" or "cosine".
        sigma: σ of the Gaussian kernel; 0.5 × the reference's median distance when left out.
        features: r, the number of frequencies, or "auto".
        modes: how many modes of each role and method at most.
        seed: of the frequencies.
        rotation: of FINC's eigenvectors: "varimax", or None.
        novel: of Rarity and FLD, the share of a set's samples that are clustered; 0.3 when left out.
        neighbors: of Rarity, to which neighbor the balls of its manifold reach; 3 when left out.
        precision: of the covariances.
        batch_size: samples per matrix product.
        device: where to compute.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: when no method is named or one twice, and as `compare` does.
    """
    check_search(rho, modes, rotation)
    chosen = methods_of(methods, novel, neighbors)
    if not chosen:
        raise FincEvalError(f"no method was named: name some of {', '.join(METHODS)}")
    how = Sketching(kernel, sigma, features, seed, precision, batch_size, device)
    sides, rule = open_sides({"gen": gen, "ref": ref}, ["ref"], how, progress)
    comparisons: dict[str, Comparison] = {
        method.name: compare_sides(
            sides["gen"],
            sides["ref"],
            settings_for(sides["gen"], rule, method, rho, modes, rotation),
            _named(progress, method.name),
        )
        for method in chosen
    }
    return MethodTable(comparisons, kinds_of(comparisons, list(sides.values())))


def _named(progress: Progress, method: str) -> Progress:
    return lambda stage, done, total: progress(f"{method}: {stage}", done, total)


def kinds_of(comparisons: Mapping[str, Comparison], sides: Sequence[Side]) -> tuple[Kind, ...]:
    """Which modes are of one kind, by what the bottom-k samples of both sets add to the mass of their first sides, s₊².

    Modes are taken method by method, by rank: each is of the kind whose first mode it correlates with most, by `SAME`
    at least, or else the first of a new kind.
    """
    samples = torch.cat([side.sample[0] for side in sides])
    kinds: list[Kind] = []
    for role in ROLES:
        found = [(method, mode) for method, one in comparisons.items() for mode in one.all_modes if mode.role == role]
        if not found:
            continue
        directions = torch.from_numpy(np.stack([mode.direction for _, mode in found])).to(samples)
        alike = _correlations((directions @ samples.T).clamp_min(0).square())
        firsts: dict[int, Kind] = {}
        for place, (method, mode) in enumerate(found):
            nearest = max(firsts, key=lambda first: float(alike[first, place]), default=None)
            if nearest is None or alike[nearest, place] < SAME:
                nearest = place
                firsts[place] = Kind(_letters(len(kinds) + len(firsts)), role, {})
            of_method = firsts[nearest].modes
            of_method[method] = (*of_method.get(method, ()), mode.id)
        kinds += firsts.values()
    return tuple(kinds)


def _correlations(rows: torch.Tensor) -> torch.Tensor:
    """Of every pair of rows, (k, m) → (k, k); 0 where a row does not vary, or there are no columns."""
    if rows.shape[1] < 2:
        return rows.new_zeros(len(rows), len(rows))
    return torch.corrcoef(rows).reshape(len(rows), -1).nan_to_num(0.0)


def _letters(number: int) -> str:
    """A, B, …, Z, AA, AB, and so on."""
    more, last = divmod(number, len(ascii_uppercase))
    return (_letters(more - 1) if more else "") + ascii_uppercase[last]
