"""From private to synthetic records: a release, a generator fitted to it, samples of the generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.npz import NpzRows
from finc_eval.core.progress import Progress
from finc_eval.core.record import settings_from
from finc_eval.core.run import Run
from finc_eval.numerics.precision import kept_random_states
from finc_eval.private.dp.fitting import check_fit
from finc_eval.private.dp.gaussian_mechanism import class_indices
from finc_eval.private.dp.ledger import Ledger
from finc_eval.private.dp.losses import note_losses
from finc_eval.private.dp.public_values import column_arrays
from finc_eval.private.dp.records import table_identity
from finc_eval.private.settings import (
    DpHpFew,
    ImageSynthesisOptions,
    ImageSynthesisSettings,
    NetworkName,
    SynthesisOptions,
    SynthesisSettings,
)
from finc_eval.private.synthesis.dp_hp import (
    Generator,
    PassingRecords,
    PrivateEmbedding,
    draw_labels,
    fit,
    release_embedding,
)
from finc_eval.private.synthesis.generators import (
    Bounded,
    Convolutional,
    FullyConnected,
    Network,
    ProductMixture,
    Smooth,
)
from finc_eval.private.synthesis.learned import learned_from
from finc_eval.private.synthesis.released_features import Shape, image_statistics, table_statistics
from finc_eval.private.synthesis.result import (
    SyntheticImages,
    SyntheticTable,
    first_of_each,
    make_columns,
    synthesis_of,
)
from finc_eval.private.synthesis.tabular import Table

MIXTURE_COMPONENTS, MIXTURE_RATE = 200, 0.1
"""Components of a table's mixture for each class, and learning rate of its fit, which ends sooner if the release is met
within its noise. `benchmarks/dp_hp_marginals.py` measures tables that are made with them."""

HIDDEN_WIDTHS, IMAGE_BATCH, IMAGE_RATE = (60, 60), 300, 0.01
"""Widths of our network for images, samples of each class in a step, and learning rate. Wider networks learn noise:
`benchmarks/dp_hp_mnist.py` has it beside the paper's network."""

PAPER_WIDTHS, PAPER_BATCH = (500, 500), 200
"""Widths of the DP-HP paper's networks for images, and samples of all classes in a step, as in its published code."""

PrivateImages = np.ndarray | NpzRows  # images (m, h, w) or (m, h, w, c), uint8, in memory or in a file


def synthesize_table(
    values: Mapping[str, ArrayLike],
    table: Table,
    settings: SynthesisSettings | None = None,
    *,
    ledger: Ledger | str | Path | None,
    run: Run | None = None,
    **options: Unpack[SynthesisOptions],
) -> SyntheticTable:
    """Make a synthetic table from a private release of a real table.

    Args:
        values: private columns by name: a mapping, or a data frame. Columns that the description does not list are
            not released; in the ledger they help to recognize the table.
        table: public description of the table.
        settings: budget and method; default: built from the options.
        ledger: ledger in which the spending is recorded, on the disk, before noise is drawn; None to record nothing.
        run: progress of the fit, which is computed on the CPU.
        options: fields of `SynthesisSettings` as keywords; epsilon is required.

    Raises:
        BudgetError: the ledger's budget does not suffice. Nothing is spent.
        UsageError: an argument is out of range. Nothing is spent.
        DataError: the data do not fit the description. Nothing is spent.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> from finc_eval.privacy import Category, Number, Table
        >>> table = Table((Number.between("age", 18, 95), Category("smokes", ("no", "yes"))))
        >>> private = {"age": np.arange(18, 68), "smokes": np.array(["no", "yes"] * 25)}
        >>> made = fe.privacy.synthesize_table(private, table, epsilon=1, steps=5, count=20, ledger=None)
        >>> list(made.values), len(made.values["age"]), made.synthesis.guarantee.epsilon
        (['age', 'smokes'], 20, 1)
    """
    chosen = settings_from(SynthesisSettings, settings, options)
    guarantee = chosen.protection(ledger)
    progress = Run.of(run).progress
    columns = column_arrays(values)
    records, labels = table.encoded(columns)
    fate = "take the usual level, or the nearest"
    check_fit(table.misfits(columns), len(records), chosen.max_undescribed, fate, table.of_missing)
    with note_losses():
        target = release_embedding(
            records,
            labels,
            table_statistics(chosen.method, table, chosen.seed),
            guarantee,
            ledger=ledger,
            identity=None if ledger is None else table_identity(columns),
            name=chosen.name,
            classes=table.classes,
            bound=chosen.method.bound,
            progress=progress,
        )
        components = 1 if isinstance(chosen.method, DpHpFew) else MIXTURE_COMPONENTS
        generator = ProductMixture(table, components, chosen.seed)
        course = _fit(generator, target, chosen, MIXTURE_RATE, progress)
        drawn = draw_labels(target.shares, chosen.count or len(records), chosen.seed)
        sampled = generator.sample(drawn, chosen.seed)
        made = synthesis_of(
            str(chosen.method), generator, target, table.label.values if table.label else (), drawn, course
        )
        learned = learned_from(table, target)
        made = replace(made, columns=make_columns(table, sampled), learned=learned)
        return SyntheticTable(table.decoded(sampled, drawn, chosen.seed), made)


def synthesize_images(
    images: PrivateImages,
    labels: Sequence[object] | None,
    settings: ImageSynthesisSettings | None = None,
    *,
    classes: Sequence[str] = (),
    ledger: Ledger | str | Path | None,
    run: Run | None = None,
    **options: Unpack[ImageSynthesisOptions],
) -> SyntheticImages:
    """Make synthetic images from a private release of real images.

    Args:
        images: private images, (m, h, w) or (m, h, w, c), uint8: an array, or the rows of an .npz file, which are read
            once, in batches.
        labels: class of each image; None without classes.
        settings: budget, method and network; default: built from the options.
        classes: public list of classes. Images of other classes count as nothing.
        ledger: ledger in which the spending is recorded, on the disk, before noise is drawn; None to record nothing.
        run: device on which the network is fitted, and progress.
        options: fields of `ImageSynthesisSettings` as keywords; epsilon is required.

    Raises:
        BudgetError: the ledger's budget does not suffice. Nothing is spent.
        UsageError: an argument is out of range. Nothing is spent.
        DataError: the images or labels cannot be used. Nothing is spent.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> rows, _ = example_sets(200)
        >>> private = (255 * rows).astype(np.uint8).reshape(-1, 28, 28)
        >>> made = fe.privacy.synthesize_images(private, None, epsilon=5, steps=2, count=10, ledger=None)
        >>> made.images.shape, made.images.dtype, made.synthesis.records
        ((10, 28, 28), dtype('uint8'), 200)
    """
    chosen = settings_from(ImageSynthesisSettings, settings, options)
    guarantee = chosen.protection(ledger)
    if images.dtype != np.uint8 or len(images.shape) not in (3, 4) or 0 in images.shape:
        form = f"{images.dtype} of shape {images.shape}"
        raise DataError(f"images must be uint8 of shape (m, h, w) or (m, h, w, c), got {form}")
    if (labels is None) != (not classes) or len(set(classes)) < len(classes):
        raise UsageError(f"labels come with a public list of classes, each once, got {list(classes)}")
    progress, where = Run.of(run).progress, usable_device(Run.of(run).device)
    shape: Shape = (*images.shape[1:3], images.shape[3] if len(images.shape) == 4 else 1)
    places = None if labels is None else class_indices(labels, classes, len(images), chosen.max_undescribed)
    statistics = image_statistics(chosen.method, shape, chosen.seed)
    generator = _network(chosen.network, shape, max(len(classes), 1), chosen.seed, where)
    with note_losses():
        target = release_embedding(
            _image_records(images, shape),
            places,
            statistics,
            guarantee,
            ledger=ledger,
            name=chosen.name,
            classes=max(len(classes), 1),
            bound=chosen.method.bound,
            progress=progress,
        ).to(where)
        course = _fit(generator, target, chosen, IMAGE_RATE, progress)
        drawn = draw_labels(target.shares, chosen.count or len(images), chosen.seed)
        height, width, channels = shape
        made = np.concatenate(
            [
                (batch * 255).round().to(torch.uint8).numpy().reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
                for batch in generator.sample_batches(drawn, chosen.seed)
            ]
        ).reshape(-1, *images.shape[1:])
        named = np.array(classes, dtype=str)[drawn.numpy()] if classes else None
        synthesis = synthesis_of(str(chosen.method), generator, target, classes, drawn, course)
        return SyntheticImages(made, named, replace(synthesis, shown=first_of_each(drawn, classes)))


def _fit(
    generator: Generator, target: PrivateEmbedding, settings: SynthesisSettings, rate: float, progress: Progress
) -> list[float]:
    """Fit a generator until only noise is left; without noise, to the last step."""
    until = 0.0 if target.guarantee is None else settings.method.until
    return fit(generator, target, steps=settings.steps, rate=rate, until=until, progress=progress)


def _network(name: NetworkName, shape: Shape, classes: int, seed: int, device: torch.device) -> Network:
    ours = name == "smooth"
    widths, batch = (HIDDEN_WIDTHS, IMAGE_BATCH) if ours else (PAPER_WIDTHS, max(PAPER_BATCH // classes, 2))
    head = Smooth(shape) if ours else Bounded(prod(shape))
    with kept_random_states():  # a new layer draws weights, which are then drawn again with the seed
        body = (
            Convolutional(classes, shape, widths[0])
            if name == "convolutional"
            else FullyConnected(classes, widths, head.width)
        )
    return Network(body, head, classes, batch, seed, device)


def _image_records(images: PrivateImages, shape: Shape) -> PassingRecords:
    """Return images as records of c·h·w numbers in [0, 1], channels first."""

    def batches(size: int) -> Iterator[torch.Tensor]:
        if isinstance(images, NpzRows):
            parts = images.batches(size)
        else:
            parts = (images[start : start + size] for start in range(0, len(images), size))
        for pixels in parts:
            planes = pixels.reshape(len(pixels), *shape).transpose(0, 3, 1, 2)
            yield torch.from_numpy(planes.reshape(len(pixels), -1)).float() / 255

    return PassingRecords(len(images), prod(shape), batches)
