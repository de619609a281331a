"""`Fabrication`: fabricated samples, their guarantee and, for the originals' holder, how near they are to these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, UsageError, check_labels
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import extractor_of, space_of
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.set_info import SetInfo, set_info
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.gallery.pictured import Gallery, Pictured
from finc_eval.gallery.thumbnails import Thumbnail, thumbnail
from finc_eval.numerics.attack_statistics import AttackStatistics, attack_statistics
from finc_eval.private.kahm.element_noise import ElementGuarantee, ElementNoise
from finc_eval.private.kahm.fabrication import FabricatedSet
from finc_eval.private.kahm.membership import MembershipScore, membership_score, nearest_distances
from finc_eval.private.kahm.models import fit_classes
from finc_eval.private.kahm.settings import KahmSettings

ORIGINAL, FABRICATED = "original", "fabricated"  # labels of the two sets


@dataclass(frozen=True)
class DistanceQuantiles(Record):
    """Euclidean distances of samples, in the unit of the features.

    Attributes:
        name: what is how far from what.
        samples: number of distances.
        tenth, median, ninetieth: quantiles at 10, 50 and 90 %.
    """

    name: str
    samples: int
    tenth: float
    median: float
    ninetieth: float

    @classmethod
    def of(cls, name: str, distances: NDArray[np.float64]) -> DistanceQuantiles:
        """Return the quantiles of distances, (n,)."""
        return cls(name, len(distances), *np.quantile(distances, [0.1, 0.5, 0.9]).tolist())


@dataclass(frozen=True)
class FabricationNearness(Record):
    """Distances of fabricated samples to their originals, and attacks; NOT PRIVATE, as no noise is added.

    Attributes:
        distances: distances of fabricated samples to their own original and to the nearest one, and of others.
        linked: share of the fabricated samples that are nearer to their own original than to any other: a fact about
            these two files.
        membership: score of models of the fabricated samples (eq. 69), originals against other samples; None without
            others.
        attack: the attack that takes a sample for an original the nearer the nearest fabricated sample is; None without
            others.
    """

    distances: tuple[DistanceQuantiles, ...]
    linked: float
    membership: MembershipScore | None = None
    attack: AttackStatistics | None = None


@dataclass(frozen=True, eq=False)
class Fabrication(Pictured):
    """Samples that were fabricated from noisy samples.

    Without `nearness` it reveals no more about the originals than the fabricated samples do, and the labels, which are
    public. With it, it is for their holder alone.

    Attributes:
        samples: number of fabricated samples, which is public.
        classes: number of samples of each class, which is public.
        guarantee: guarantee of the noise, for each entry and for each record.
        bounds: lowest and highest value of an entry; others were clipped before the noise.
        is_smoothed: whether noisy samples were smoothed and mapped (Definition 14), or stayed as they were.
        steps: M of every branch of every class; empty without smoothing.
        unmapped: number of samples that fabrication could not map, and that stayed noisy.
        settings: settings of the machines.
        nearness: how near fabricated samples are to the originals; None unless it was measured.
        originals: set of the originals; None unless nearness was measured.
        pairs: ids of originals that a page shows beside what was fabricated from them; empty unless entries are pixels.
    """

    type_name: ClassVar[str] = "fabrication"
    page: ClassVar[str] = "finc_eval.private.kahm.fabrication_page"

    samples: int
    classes: dict[str, int]
    guarantee: ElementGuarantee
    bounds: tuple[float, float]
    is_smoothed: bool
    steps: tuple[int, ...]
    unmapped: int
    settings: str
    nearness: FabricationNearness | None = None
    originals: SetInfo | None = None
    pairs: tuple[str, ...] = field(default=())

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the originals and the fabricated samples, if a page shows some."""
        if self.originals is None or not self.pairs:
            return {}
        return {ORIGINAL: self.originals, FABRICATED: SetInfo(FABRICATED, None, self.samples, "", False)}

    def shown_samples(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the pairs that a page shows."""
        shown = self.pairs[: self.shown]
        return {ORIGINAL: shown, FABRICATED: shown}

    def _gather(self, samples: Mapping[str, Any]) -> Gallery:
        """Gather the pictures of the pairs, which only the process that fabricated them and the .h5 file have."""
        if samples:
            raise UsageError("pictures of fabricated samples are in the .h5 file of the result: leave samples out")
        if self.pairs and self.kept is None:
            return Gallery({}, ("The pairs are not shown: their pictures are in the .h5 file of the result.",))
        return super()._gather(samples)

    def _summary(self) -> str:
        return f"{self.samples} samples, {self.guarantee}"

    def _frame_rows(self) -> list[dict[str, object]]:
        """Return the median distances, or without them the number of samples of each class."""
        if self.nearness is None:
            return [{"name": name, "value": float(count)} for name, count in self.classes.items()]
        return [
            {"name": row.name, "value": row.median, "tenth": row.tenth, "ninetieth": row.ninetieth}
            for row in self.nearness.distances
        ]


def describe_fabrication(
    made: FabricatedSet,
    labels: ArrayLike,
    noise: ElementNoise,
    settings: KahmSettings | None = None,
    *,
    originals: object | None = None,
    others: object | None = None,
    device: str | torch.device | None = "cpu",
) -> Fabrication:
    """Describe fabricated samples and, with their originals, measure how near they are to them.

    Without originals the result may be published with the samples. With them it is NOT PRIVATE: it is computed from the
    originals without noise, and is for their holder alone.

    Args:
        made: fabricated samples, in the order of their originals.
        labels: label of each sample, shape (N,).
        noise: noise that was added first.
        settings: settings of the machines.
        originals: samples that were fabricated from, shape (N, p): array, tensor, cache or its path.
        others: samples of the same distribution that nothing was fabricated from, shape (n, p).

        device: device of the computation; None for CUDA if available.

    Raises:
        DataError: there is not one label and one original for each sample, or originals and others are the same.
        UsageError: others came without originals.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> ref = example_sets(200)[1]
        >>> labels, noise = ref.mean(1) > 0.13, fe.kahm.ElementNoise(epsilon=8)
        >>> made = fe.kahm.fabricate_classes(ref, labels, noise)
        >>> found = fe.kahm.describe_fabrication(made, labels, noise, originals=ref)
        >>> [row.name for row in found.nearness.distances]
        ['fabricated to own original', 'fabricated to nearest original', 'original to nearest other original']
        >>> found.nearness.linked > 0.9
        True
    """
    names = [str(label) for label in np.asarray(labels).tolist()]
    check_labels((len(names),), len(made.samples))
    settings = settings or KahmSettings()
    told = Fabrication(
        provenance=Provenance.here("cpu"),
        samples=len(made.samples),
        classes=dict(sorted(Counter(names).items())),
        guarantee=made.guarantee,
        bounds=noise.bounds,
        is_smoothed=bool(made.steps),
        steps=made.steps,
        unmapped=made.kept,
        settings=str(settings),
    )
    if originals is None:
        if others is not None:
            raise UsageError("others are measured beside the originals: pass both")
        return told
    rows = as_embeddings(originals, ORIGINAL)
    if rows.n != len(made.samples) or rows.dim != made.samples.shape[1]:
        given, shape = (rows.n, rows.dim), made.samples.shape
        raise DataError(
            f"originals have the shape {given}, and what was fabricated from them {shape}: pass its originals"
        )
    fresh = None if others is None else as_embeddings(others, "others")
    nearness = _nearness(made, names, settings, rows, fresh, device)
    return _with_pairs(replace(told, nearness=nearness, originals=_set_of(rows)), made, rows)


def _set_of(rows: Embeddings) -> SetInfo:
    return set_info(ORIGINAL, rows, rows.n, rows.digest)


def _nearness(
    made: FabricatedSet,
    labels: Sequence[str],
    settings: KahmSettings,
    rows: Embeddings,
    others: Embeddings | None,
    device: str | torch.device | None,
) -> FabricationNearness:
    """Measure distances between originals, what was fabricated from them, and other samples, and attacks by them."""
    fabricated = ArrayEmbeddings(made.samples, FABRICATED)
    near = nearest(fabricated, rows, 1, device=device)
    own = np.concatenate(
        [
            np.linalg.norm(made.samples[batch.start : batch.start + len(batch.rows)] - batch.rows.numpy(), axis=1)
            for batch in rows.batches()
        ]
    ).astype(np.float64)
    among = nearest(rows, rows, 1, exclude_self=True, device=device).distances[:, 0]
    distances = [
        DistanceQuantiles.of("fabricated to own original", own),
        DistanceQuantiles.of("fabricated to nearest original", near.distances[:, 0]),
        DistanceQuantiles.of("original to nearest other original", among),
    ]
    linked = float((near.indices[:, 0] == np.arange(rows.n)).mean())
    if others is None:
        return FabricationNearness(tuple(distances), linked)
    if others.digest == rows.digest:
        raise DataError(
            "originals and others are the same samples: others are samples that nothing was fabricated from"
        )
    distances.append(
        DistanceQuantiles.of(
            "other sample to nearest original", nearest(others, rows, 1, device=device).distances[:, 0]
        )
    )
    models = replace(fit_classes(fabricated, labels, settings, device=device), space=rows.space)
    members, fresh = (nearest_distances(models, each) for each in (rows, others))
    by_sample = (-nearest(each, fabricated, 1, device=device).distances[:, 0] for each in (rows, others))
    return FabricationNearness(
        tuple(distances),
        linked,
        membership_score(members, fresh, settings=str(settings)),
        attack_statistics(*by_sample),
    )


def _with_pairs(told: Fabrication, made: FabricatedSet, rows: Embeddings) -> Fabrication:
    """Return a fabrication with the pictures of some pairs, spread over the set, if its entries are pixels."""
    # 16: pairs that a page can show at most. The first half of them is spread over the set, too.
    places = np.unique(np.linspace(0, rows.n - 1, 16).astype(np.int64))
    places = np.concatenate([places[::2], places[1::2]])
    ids, kept = rows.ids_at(places), {}
    for label, part in ((ORIGINAL, rows.rows_at(places).numpy()), (FABRICATED, made.samples[places])):
        pictures = _pictures(part, rows.space)
        if pictures is None:
            return told
        kept[label] = dict(zip(ids, pictures, strict=True))
    return replace(told, pairs=ids, kept=kept)


def _pictures(rows: NDArray[np.float32], space: str) -> list[Thumbnail] | None:
    """Return the pictures that the entries of samples are, (n, p); None unless the extractor gives pixels."""
    name = extractor_of(space)
    card = load_card(name) if name in available_cards() else None
    if card is None or card.loader.kind != "pixels" or space_of(card) != space:
        return None
    steps = card.preprocessing
    low, high = steps.range
    values = rows.reshape(len(rows), 3, *steps.size).transpose(0, 2, 3, 1) * np.array(steps.std) + np.array(steps.mean)
    pixels = np.clip(np.rint((values - low) / (high - low) * 255), 0, 255).astype(np.uint8)
    return [thumbnail(picture) for picture in pixels]
