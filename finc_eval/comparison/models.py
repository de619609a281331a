"""More than two models at once: the modes on which they differ, and which model owns how much of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch

from finc_eval.comparison.cross_fit import CrossFit, squared_overlap
from finc_eval.comparison.estimates import Estimates, standard_error
from finc_eval.comparison.inputs import Kernel, Scored, Sketching, open_sides
from finc_eval.comparison.modes import mode_id
from finc_eval.comparison.result import SetInfo
from finc_eval.comparison.search import NUMERICAL_ZERO, Rotation, Search, check_search
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.serialize import Document
from finc_eval.core.storage import write_text
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.inference import critical_value, holm
from finc_eval.numerics.precision import Precision, arithmetic
from finc_eval.samples import Samples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 1
Set = TypeVar("Set")

SAME = 0.5
"""Squared overlap with a direction already reported from which on another is the same mode."""

REFERENCE = "ref"
"""What the reference is called beside the models."""


@dataclass(frozen=True)
class Holding:
    """What one set has of a mode.

    Attributes:
        mass: cross-fitted mass of the mode in the set, in [0, 1].
        interval: of the mass; all intervals of a table hold together with probability 0.95.
        share: of the mode's mass in all models, each model weighing the same; None for the reference.
        share_interval: the shares that the intervals of all masses allow; None for the reference.
        top_ids: the samples of the set that are most of the mode, best first.
    """

    mass: float
    interval: tuple[float, float]
    share: float | None
    share_interval: tuple[float, float] | None
    top_ids: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SharedMode:
    """A kind of samples that one set has more of than the mixture of all others.

    Attributes:
        id: stable name, from the set that has more and its best sample.
        owner: the label of that set.
        excess: its mass minus ρ × the mean mass in the others, cross-fitted.
        interval: of the excess.
        p_value: of "no excess", one-sided, adjusted for all directions tested (Holm).
        stability: as of a `Mode`.
        holdings: what each set has of the mode, by label.
        direction: v, shape (q,), norm 1.
    """

    id: str
    owner: str
    excess: float
    interval: tuple[float, float]
    p_value: float
    stability: float
    holdings: dict[str, Holding]
    direction: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ModelTable(Document):
    """Modes × models.

    Attributes:
        modes: by descending excess.
        sets: the models, and the reference if there is one, by label.
        rho: ρ.
        tested: how many directions were tested.
        feature_map: φ.
        sigma_rule: where σ came from.
    """

    modes: tuple[SharedMode, ...]
    sets: dict[str, SetInfo]
    rho: float
    tested: int
    feature_map: FeatureMap
    sigma_rule: str

    @property
    def models(self) -> tuple[str, ...]:
        """The labels of the models."""
        return tuple(label for label in self.sets if label != REFERENCE)

    def significant(self, alpha: float = 0.05) -> tuple[SharedMode, ...]:
        """The modes whose adjusted p-value is at most α; among all tested, a false one with probability ≤ α."""
        if not 0 < alpha < 1:
            raise FincEvalError(f"alpha must lie between 0 and 1, got {alpha}")
        return tuple(mode for mode in self.modes if mode.p_value <= alpha)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the directions, as plain JSON types; `schema` numbers the layout."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": SCHEMA,
            "feature_map": dict(self.feature_map.signature()),
            "sigma_rule": self.sigma_rule,
            "rho": self.rho,
            "tested": self.tested,
            "sets": {
                label: {"n": info.n, "source": info.source, "digest": info.digest} for label, info in self.sets.items()
            },
            "modes": [
                {
                    "id": mode.id,
                    "owner": mode.owner,
                    "excess": mode.excess,
                    "interval": list(mode.interval),
                    "p_value": mode.p_value,
                    "stability": mode.stability,
                    "holdings": {
                        label: {
                            "mass": holding.mass,
                            "interval": list(holding.interval),
                            "share": holding.share,
                            "share_interval": None if holding.share_interval is None else list(holding.share_interval),
                            "top_ids": list(holding.top_ids),
                        }
                        for label, holding in mode.holdings.items()
                    },
                }
                for mode in self.modes
            ],
        }

    def to_html(self, path: str | Path, *, samples: Mapping[str, Samples] | None = None) -> Path:
        """Write the page of the table: one self-contained HTML file with thumbnails of the sets.

        Args:
            path: the file to write.
            samples: where the samples of sets are now, by label, if not where they were embedded from: folders, zips,
                npz files or arrays of images.

        Raises:
            FincEvalError: when samples that were passed are of no set of the table or cannot be opened, or the file
                cannot be written.
        """
        # The page is drawn by the layer above, which is loaded only when it is asked for.
        from finc_eval.report.models import render_models

        for label, given in (samples or {}).items():
            if label not in self.sets:
                raise FincEvalError(f"the table has no set {label!r}: it has {', '.join(self.sets)}")
            self.sets[label].check_samples(given)
        return write_text(path, render_models(self, samples))

    def __repr__(self) -> str:
        found = len(self.significant())
        return f"ModelTable({', '.join(self.sets)}: {len(self.modes)} modes, {found} of them with p ≤ 0.05)"


@arithmetic("float32")
def compare_models(
    models: Mapping[str, object],
    ref: object = None,
    *,
    rho: float = 1.0,
    kernel: Kernel = "gaussian",
    sigma: float | None = None,
    features: int | Literal["auto"] = 2000,
    modes: int = 10,
    seed: int = 0,
    rotation: Rotation = "varimax",
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> ModelTable:
    """The modes on which several models differ, and which model owns how much of each.

    Every set is compared with the mixture of all others, each weighing the same; directions found from several sets
    are reported once. A reference takes part like a model, called "ref": the modes that it owns are what the models
    lack. Nothing but sketches is needed; with embeddings the intervals are sharper.

    Args:
        models: two sets or more, by label: arrays, tensors, caches, sketches, or paths of caches or sketches.
        ref: the reference, likewise, if there is one; it decides the bandwidth, and otherwise all models together.
        rho: ρ > 0: how many times the mean mass of the others a set must have.
        kernel: "gaussian" or "cosine".
        sigma: σ of the Gaussian kernel; 0.5 × the reference's median distance when left out.
        features: r, the number of frequencies, or "auto".
        modes: how many modes of each set at most.
        seed: of the frequencies.
        rotation: "varimax", or None for raw eigenvectors.
        precision: of the covariances.
        batch_size: samples per matrix product.
        device: where to compute.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: on fewer than two sets, and as `compare` does.
    """
    check_search(rho, modes, rotation)
    if REFERENCE in models:
        raise FincEvalError(f'a model cannot be called "{REFERENCE}": pass the reference as ref, or rename the model')
    sources = dict(models) | ({} if ref is None else {REFERENCE: ref})
    if len(sources) < 2:
        raise FincEvalError(f"at least two sets are needed to compare, got {len(sources)}")
    how = Sketching(kernel, sigma, features, seed, precision, batch_size, device)
    sides, rule = open_sides(sources, list(models) if ref is None else [REFERENCE], how, progress)
    search = Search.among(list(sides.values()), rho, modes, rotation)
    fits: dict[str, CrossFit] = {}
    for done, (label, side) in enumerate(sides.items()):
        progress("decompose", done, len(sides))
        fits[label] = search.fit([(1.0, side)], _others(label, sides))
    progress("decompose", len(sides), len(sides))
    scored = {label: side.score(list(fits.values()), progress) for label, side in sides.items()}
    family = search.count * len(sides)
    return ModelTable(
        modes=_shared_modes(fits, scored, rho, modes, family),
        sets={label: side.info() for label, side in sides.items()},
        rho=float(rho),
        tested=family,
        feature_map=next(iter(sides.values())).sketch.feature_map,
        sigma_rule=rule,
    )


def _others(label: str, sets: Mapping[str, Set]) -> list[tuple[float, Set]]:
    """All sets but one, as a mixture in which each weighs the same."""
    return [(1 / (len(sets) - 1), other) for name, other in sets.items() if name != label]


def _shared_modes(
    fits: Mapping[str, CrossFit], scored: Mapping[str, Scored], rho: float, modes: int, family: int
) -> tuple[SharedMode, ...]:
    """The reported directions of all sets, one mode each, by descending excess."""
    masses = {label: one.masses for label, one in scored.items()}
    estimates, start = {}, 0
    for label, fit in fits.items():
        columns = slice(start, start + fit.full.vectors.shape[1])
        own, others = masses[label][columns], [(w, m[columns]) for w, m in _others(label, masses)]
        estimates[label] = (start, Estimates.of([(1.0, own)], others, rho))
        start = columns.stop
    adjusted = holm(torch.cat([estimate.p_values() for _, estimate in estimates.values()]))
    candidates = [
        (float(estimate.excess[rank]), label, rank)
        for label, (_, estimate) in estimates.items()
        for rank in range(min(modes, len(estimate.excess)))
        if float(fits[label].full.excess[rank]) > NUMERICAL_ZERO
    ]
    found: dict[str, SharedMode] = {}
    for excess, label, rank in sorted(candidates, reverse=True):
        start, estimate = estimates[label]
        direction = fits[label].full.vectors[:, rank]
        known = [torch.from_numpy(mode.direction).to(direction) for mode in found.values()]
        if known and float(squared_overlap(torch.stack(known, 1), direction[:, None]).max()) > SAME:
            continue
        sign = _sign(label, scored, start + rank, rho)
        names = (mode_id(label, sample) for sample in (*scored[label].side.typical(sign * direction), str(rank)))
        name = next(name for name in names if name not in found)
        width = float(estimate.half_widths(family)[rank])
        found[name] = SharedMode(
            id=name,
            owner=label,
            excess=excess,
            interval=(excess - width, excess + width),
            p_value=float(adjusted[start + rank]),
            stability=float(fits[label].stability[rank]),
            holdings=_holdings(scored, start + rank, sign, family * len(scored)),
            direction=(sign * direction).float().cpu().numpy(),
        )
    return tuple(found.values())


def _sign(owner: str, scored: Mapping[str, Scored], column: int, rho: float) -> int:
    """The sign that makes positive the side of a direction which carries most of its owner's excess."""
    energies = {label: one.scores.energies()[:, column] for label, one in scored.items()}
    others = torch.stack([weight * energy for weight, energy in _others(owner, energies)]).sum(0)
    positive, negative = (energies[owner] - rho * others).tolist()
    return 1 if positive >= negative else -1


def _holdings(scored: Mapping[str, Scored], column: int, sign: int, family: int) -> dict[str, Holding]:
    """What each set has of the direction in this column."""
    masses, lows, highs = {}, {}, {}
    for label, one in scored.items():
        mass, variance = (float(value) for value in one.masses[slice(column, column + 1)].pooled())
        width = critical_value(family) * float(standard_error(torch.tensor(variance)))
        masses[label], lows[label], highs[label] = mass, max(mass - width, 0.0), min(mass + width, 1.0)
    models = [label for label in scored if label != REFERENCE]
    holdings = {}
    for label, one in scored.items():
        index, _ = one.scores.best(0 if sign > 0 else 1, column)
        others = [other for other in models if other != label]
        of_models = label in models
        holdings[label] = Holding(
            mass=masses[label],
            interval=(lows[label], highs[label]),
            share=_share(masses[label], [masses[other] for other in others]) if of_models else None,
            share_interval=(
                (
                    _share(lows[label], [highs[other] for other in others]),
                    _share(highs[label], [lows[other] for other in others]),
                )
                if of_models
                else None
            ),
            top_ids=one.side.ids_at(index),
        )
    return holdings


def _share(own: float, others: list[float]) -> float:
    total = own + sum(others)
    return own / total if total > 0 else 0.0
