"""From private records to synthetic ones: one release, a generator fitted to it, samples of the generator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.progress import Progress, silent
from finc_eval.feature_maps.class_features import class_indices
from finc_eval.privacy.dp.gaussian_mechanism import Guarantee
from finc_eval.privacy.dp.ledger import Ledger
from finc_eval.privacy.reference.release import Bound
from finc_eval.privacy.synthesis.dp_hp import Generator, PrivateEmbedding, Statistic, drawn_labels, fit, release
from finc_eval.privacy.synthesis.generators import Bounded, Convolutional, FullyConnected, Network, Smooth
from finc_eval.privacy.synthesis.mixture import ProductMixture
from finc_eval.privacy.synthesis.recipes import (
    Shape,
    fourier_image_recipe,
    fourier_table_recipe,
    image_recipe,
    paper_image_recipe,
    paper_table_recipe,
    table_recipe,
)
from finc_eval.privacy.synthesis.tabular import Table

NetworkKind = Literal["smooth", "fully-connected", "convolutional"]

COMPONENTS, TABLE_STEPS, TABLE_RATE = 200, 300, 0.1
"""Of a table's mixture for each class, and of its fit, which ends sooner where the release is met within its noise."""

HIDDEN, IMAGE_BATCH, IMAGE_STEPS, IMAGE_RATE = (60, 60), 300, 300, 0.01
"""Of a fully connected network for images, and of its fit: samples of each class in a step. Wider ones learn noise."""

FEW = "dp-hp-few"

TABLE_METHODS: dict[str, tuple[Callable[[Table, int], tuple[Statistic, ...]], Bound]] = {
    "dp-hp": (lambda table, seed: table_recipe(table), "tight"),
    FEW: (lambda table, seed: table_recipe(table, 1), "tight"),
    "dp-hp-paper": (paper_table_recipe, "paper"),
    "dp-merf": (fourier_table_recipe, "tight"),
}
"""By name: what of a table is released, and the sensitivity that is assumed."""

IMAGE_METHODS: dict[str, tuple[Callable[[Shape, int], tuple[Statistic, ...]], Bound]] = {
    "dp-hp": (lambda shape, seed: image_recipe(shape), "tight"),
    "dp-hp-paper": (paper_image_recipe, "paper"),
    "dp-merf": (fourier_image_recipe, "tight"),
}
"""The same of images."""


@dataclass(frozen=True)
class Synthesis:
    """What was done, none of which says more of the data than the synthetic records do.

    Attributes:
        method: one of `TABLE_METHODS` or `IMAGE_METHODS`.
        guarantee: of everything that came of it, this result included, to each private record.
        records: private ones; their number is public.
        synthetic: those made.
        features: released numbers, the shares of classes apart.
        shares: of the classes, by name, as released; empty where there are no classes.
        discrepancy: of the generator from the release: about 1 where only noise is left.
        steps: of the fit.
    """

    method: str
    guarantee: Guarantee
    records: int
    synthetic: int
    features: int
    shares: dict[str, float]
    discrepancy: float
    steps: int

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON types, the ceilings of attackers among it."""
        return asdict(self) | {"guarantee": self.guarantee.to_dict()}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        return (
            f"{self.synthetic} synthetic records by {self.method} from {self.records} private ones: "
            f"{self.features} released numbers, discrepancy {self.discrepancy:.2f} after {self.steps} steps\n"
            f"{self.guarantee}"
        )


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """Attributes: the columns of the table's description by name, and how they came about."""

    values: dict[str, np.ndarray]
    synthesis: Synthesis


@dataclass(frozen=True, eq=False)
class SyntheticImages:
    """Attributes: images of the private ones' shape and type, the class of each if there are any, and how they came."""

    images: np.ndarray
    labels: np.ndarray | None
    synthesis: Synthesis


def synthesize_table(
    values: Mapping[str, np.ndarray],
    table: Table,
    *,
    epsilon: float,
    delta: float = 1e-5,
    ledger: Ledger | str | Path | None,
    identities: Sequence[str] = (),
    name: str | None = None,
    method: str = "dp-hp",
    count: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> SyntheticTable:
    """A synthetic table made from one private release of another.

    Args:
        values: the private columns by name; those that the description leaves out are not looked at.
        table: the public description.
        epsilon: ε of the guarantee, for a record that is replaced; the number of records is public.
        delta: δ of it; well below one over the number of records.
        ledger: where the spending is recorded, on the disk, before noise is drawn; None where nobody counts.
        identities: what the ledger knows the data set by; digests of the encoded records when empty.
        name: what the ledger calls it beside that.
        method: one of `TABLE_METHODS`.
        count: synthetic records; as many as private ones when None.
        seed: of generator and samples; noise has none.
        progress: told of the steps of the fit.

    Raises:
        FincEvalError: the data do not fit the description, an argument is out of range, or the budget does not
            suffice. Nothing is spent then.
    """
    _check(method, TABLE_METHODS, count)
    recipe, bound = TABLE_METHODS[method]
    guarantee = Guarantee.of(epsilon, delta)
    records, labels = table.encoded(values)
    target = release(
        records,
        labels,
        recipe(table, seed),
        guarantee,
        ledger=ledger,
        identities=identities,
        name=name,
        classes=table.classes,
        bound=bound,
    )
    generator = ProductMixture(table, 1 if method == FEW else COMPONENTS, seed)
    course = fit(generator, target, steps=TABLE_STEPS, rate=TABLE_RATE, progress=progress)
    drawn = drawn_labels(target.shares, count or len(records), seed)
    made = table.decoded(generator.sample(drawn, seed), drawn, seed)
    names = table.label.values if table.label else ()
    return SyntheticTable(made, _described(method, target, names, len(drawn), course))


def synthesize_images(
    images: np.ndarray,
    labels: Sequence[object] | None,
    *,
    classes: Sequence[str] = (),
    epsilon: float,
    delta: float = 1e-5,
    ledger: Ledger | str | Path | None,
    identities: Sequence[str] = (),
    name: str | None = None,
    method: str = "dp-hp",
    network: NetworkKind = "smooth",
    steps: int = IMAGE_STEPS,
    count: int | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress = silent,
) -> SyntheticImages:
    """Synthetic images made from one private release of others.

    Args:
        images: private ones, (m, h, w) or (m, h, w, c), uint8.
        labels: their classes; None where there are none.
        classes: the public list of them; images of no class in it count as nothing.
        epsilon: ε of the guarantee, for an image that is replaced; the number of images is public.
        delta: δ of it; well below one over the number of images.
        ledger: where the spending is recorded, on the disk, before noise is drawn; None where nobody counts.
        identities: what the ledger knows the data set by; digests of the images when empty.
        name: what the ledger calls it beside that.
        method: one of `IMAGE_METHODS`.
        network: "smooth", which makes images of low frequencies and grain, or the paper's "fully-connected" or
            "convolutional".
        steps: of the fit.
        count: synthetic images; as many as private ones when None.
        seed: of network, codes and random features; noise has none.
        device: where the network is fitted.
        progress: told of the steps of the fit.

    Raises:
        FincEvalError: an argument is out of range, or the budget does not suffice. Nothing is spent then.
    """
    _check(method, IMAGE_METHODS, count)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape:
        raise FincEvalError(f"images must be uint8 of shape (m, h, w) or (m, h, w, c), got {_form(images)}")
    if (labels is None) != (not classes) or len(set(classes)) < len(classes):
        raise FincEvalError(f"labels come with a public list of classes, each once, got {list(classes)}")
    recipe, bound = IMAGE_METHODS[method]
    guarantee = Guarantee.of(epsilon, delta)
    shape: Shape = (*images.shape[1:3], images.shape[3] if images.ndim == 4 else 1)
    places = None if labels is None else class_indices(labels, classes, len(images))
    records = torch.from_numpy(images.reshape(len(images), *shape).transpose(0, 3, 1, 2).reshape(len(images), -1))
    generator = _network(network, shape, max(len(classes), 1), seed, device)
    target = release(
        records.float() / 255,
        places,
        recipe(shape, seed),
        guarantee,
        ledger=ledger,
        identities=identities,
        name=name,
        classes=max(len(classes), 1),
        bound=bound,
    ).to(device)
    course = fit(generator, target, steps=steps, rate=IMAGE_RATE, progress=progress)
    drawn = drawn_labels(target.shares, count or len(images), seed)
    pixels = (generator.sample(drawn, seed) * 255).round().to(torch.uint8).numpy()
    height, width, channels = shape
    made = pixels.reshape(-1, channels, height, width).transpose(0, 2, 3, 1).reshape(-1, *images.shape[1:])
    named = np.array(classes, dtype=str)[drawn.numpy()] if classes else None
    return SyntheticImages(made, named, _described(method, target, classes, len(drawn), course))


def _network(kind: str, shape: Shape, classes: int, seed: int, device: str | torch.device) -> Generator:
    if kind not in get_args(NetworkKind):
        names = get_args(NetworkKind)
        raise FincEvalError(f"network must be one of {', '.join(names)}, got {kind!r}{did_you_mean(kind, names)}")
    head = Smooth(shape) if kind == "smooth" else Bounded(shape[0] * shape[1] * shape[2])
    with torch.random.fork_rng():  # a new layer draws weights, which are then drawn again with the seed
        body = Convolutional(classes, shape) if kind == "convolutional" else FullyConnected(classes, HIDDEN, head.width)
    return Network(body, head, classes, IMAGE_BATCH, seed, device)


def _described(
    method: str, target: PrivateEmbedding, names: Sequence[str], count: int, course: list[float]
) -> Synthesis:
    return Synthesis(
        method=method,
        guarantee=target.guarantee,
        records=target.records,
        synthetic=count,
        features=target.size,
        shares=dict(zip(names, target.shares.tolist(), strict=False)),
        discrepancy=course[-1],
        steps=len(course),
    )


def _check(method: str, methods: Mapping[str, object], count: int | None) -> None:
    if method not in methods:
        raise FincEvalError(
            f"method must be one of {', '.join(methods)}, got {method!r}{did_you_mean(method, methods)}"
        )
    if count is not None and count < 1:
        raise FincEvalError(f"the number of synthetic records must be positive, got {count}")


def _form(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"
