"""Pairs of samples with one id: what is measured of each, in pixels and in the space of the embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.progress import Progress, silent
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.pictures import picture
from finc_eval.naming.repeated import pixels_of
from finc_eval.naming.traits import TRAITS, measure_looks
from finc_eval.same_ids.clips import MOTION, Clips, frames_of, measure_motion
from finc_eval.same_ids.kept import KeptPairs
from finc_eval.same_ids.measures import measure_pairs

Array = NDArray[np.float64]

MEASURES = ("mse", "ssim", "ms_ssim", "structure", "detail", "coarse")  # measures of a pair of pictures
PAIRS = "measure pairs"  # stage of progress
READ_TOGETHER, CLIPS_TOGETHER = 64, 4  # pairs in memory: of 512 × 512 pixels, and 16 frames, 100 MB
COARSE = 16  # side of the thumbnails whose correlation is measured, in pixels
OTHERS = 1000  # pictures of other ids that a sample is compared with


@dataclass(frozen=True, eq=False)
class Aligned:
    """Two sets with the same ids: the rows of each in the order of the ids."""

    ids: NDArray[np.str_]
    gen: Embeddings
    ref: Embeddings
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]

    def part(self, chosen: NDArray[np.int64]) -> Aligned:
        """Return some of the pairs."""
        return Aligned(self.ids[chosen], self.gen, self.ref, (self.rows[0][chosen], self.rows[1][chosen]))

    @cached_property
    def are_clips(self) -> bool:
        """True if the samples of both sets are clips whose frames are at hand."""
        one = self.clips(slice(0, 1))
        return one is not None and all(clip.ndim == 4 and len(clip) > 1 for side in one for clip in side)

    def clips(self, chosen: slice | NDArray[np.int64]) -> tuple[Clips, Clips] | None:
        """Read the pixels of some pairs again; None if one of them is not at hand."""
        first = self.gen.pixels_at(self.rows[0][chosen])
        second = None if first is None else self.ref.pixels_at(self.rows[1][chosen])
        return None if first is None or second is None else (first, second)

    def contents(self) -> NDArray[np.uint64] | None:
        """Return the digests of both pictures of each pair, (n, 2); None if they are unknown, and for clips."""
        first, second = (pixels_of(one) for one in (self.gen, self.ref))
        if first is None or second is None or self.are_clips:
            return None
        return np.column_stack([first[self.rows[0]], second[self.rows[1]]])

    def pictures(self, chosen: slice | NDArray[np.int64]) -> tuple[list[Image.Image], list[Image.Image]] | None:
        """Read the pictures of some pairs again; None if one of them is not at hand."""
        first = self.gen.images_at(self.rows[0][chosen])
        second = None if first is None else self.ref.images_at(self.rows[1][chosen])
        return None if first is None or second is None else (first, second)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Measurements of pairs, shape (n,) each."""

    values: dict[str, Array]  # by the name of the measure
    others: Array  # part of other ids whose sample is at most as far from the first sample as its own
    traits: tuple[Array, Array] | None  # traits of both pictures, (n, traits) each; None where these were not measured

    def __len__(self) -> int:
        return len(self.others)

    def nearest(self, other: PairTable) -> PairTable:
        """Return, of two tables of the same first samples, the nearer pair of each."""
        name = "mse" if "mse" in self.values and "mse" in other.values else "distance"
        takes = self.values[name] <= other.values[name]
        values = {
            key: np.where(takes, one, other.values[key]) for key, one in self.values.items() if key in other.values
        }
        return PairTable(values, np.where(takes, self.others, other.others), self.traits)


def align(names: Mapping[str, NDArray[np.str_]], sets: Mapping[str, Embeddings]) -> Aligned:
    """Pair the samples of two sets by their names; of samples with one name, the first counts."""
    (gen, first), (ref, second) = ((one, names[label]) for label, one in sets.items())
    ids, *rows = np.intersect1d(first, second, return_indices=True)
    return Aligned(ids, gen, ref, (rows[0].astype(np.int64), rows[1].astype(np.int64)))


def measure(pairs: Aligned, progress: Progress = silent, *, with_traits: bool = False) -> PairTable:
    """Measure all pairs: in the space of the embeddings, and their pictures, where these are at hand."""
    distance, others = _in_space(pairs)
    found = _pictures(pairs, progress, with_traits)
    values = {"distance": distance} if found is None else {**found[0], "distance": distance}
    return PairTable(values, others, None if found is None else found[1])


def _in_space(pairs: Aligned) -> tuple[Array, Array]:
    """Return the distance of each pair over that of two ids, and the part of other ids that are as near."""
    n = len(pairs.ids)
    drawn = np.random.default_rng(0).permutation(n)[:OTHERS]
    compared = pairs.ref.rows_at(pairs.rows[1][drawn]).cpu().double()
    own, typical, near = np.empty(n), np.empty(n), np.empty(n)
    for start in range(0, n, OTHERS):
        some = slice(start, start + OTHERS)
        first, second = (
            one.rows_at(rows[some]).cpu().double() for one, rows in zip((pairs.gen, pairs.ref), pairs.rows, strict=True)
        )
        mine = (first - second).norm(dim=1)
        apart = torch.cdist(first, compared)
        apart[torch.from_numpy(drawn)[None] == torch.arange(start, start + len(first))[:, None]] = torch.inf
        own[some] = mine
        typical[some] = apart.median(1).values
        near[some] = (apart <= mine[:, None]).double().mean(1)
    return own / max(float(np.median(typical)), np.finfo(float).tiny), near


def _pictures(
    pairs: Aligned, progress: Progress, with_traits: bool
) -> tuple[dict[str, Array], tuple[Array, Array] | None] | None:
    """Read and measure the pictures of all pairs, a few at a time, but for those that an earlier run kept."""
    names = [*MEASURES, *(MOTION if pairs.are_clips else ())]
    traits = [trait.name for trait in TRAITS] if with_traits else []
    columns = [*names, *(f"{side}: {name}" for side in ("gen", "ref") for name in traits)]
    n, together = len(pairs.ids), CLIPS_TOGETHER if pairs.are_clips else READ_TOGETHER
    kept = KeptPairs(pairs.contents(), n, columns)
    missing = kept.missing
    for start in range(0, len(missing), together):
        some = missing[start : start + together]
        clips = pairs.clips(some) if pairs.are_clips else None
        found = (clips and tuple([picture(one) for one in side] for side in clips)) or pairs.pictures(some)
        if found is None:
            return None
        values = measure_pictures(*found) if clips is None else measure_clips(*clips)
        looks = [measure_looks(images)[0] for images in found] if with_traits else []
        kept.add(some, np.column_stack([*(values[name] for name in names), *looks]))
        progress(PAIRS, n - len(missing) + start + len(some), n)
    of_pair, *of_each = np.split(kept.values, [len(names), len(names) + len(traits)], axis=1)
    return dict(zip(names, of_pair.T, strict=True)), (of_each[0], of_each[1]) if with_traits else None


def measure_clips(first: Clips, second: Clips) -> dict[str, Array]:
    """Measure pairs of clips: their frames as pictures, on average, and their motion."""
    parts = []
    for one, other in zip(frames_of(first), frames_of(second), strict=True):
        count = min(len(one), len(other))
        parts.append({name: values.mean() for name, values in measure_pictures(one[:count], other[:count]).items()})
    return {name: np.array([one[name] for one in parts]) for name in parts[0]} | measure_motion(first, second)


def measure_pictures(first: Sequence[Image.Image], second: Sequence[Image.Image]) -> dict[str, Array]:
    """Measure pairs of pictures of any sizes; the first takes the size of the second."""
    first = [one.convert("RGB") for one in first]
    second = [one.convert("RGB") for one in second]
    alike: dict[tuple[int, int], list[int]] = {}
    for place, image in enumerate(second):
        alike.setdefault(image.size, []).append(place)
    found: dict[str, Array] = {}
    for size, places in alike.items():
        resized = ([one[place].resize(size) for place in places] for one in (first, second))  # a copy of the same size
        pixels = [np.stack([np.asarray(image) for image in one]) for one in resized]
        values = measure_pairs(pixels[0], pixels[1])
        values["coarse"] = correlate(*([one[place] for place in places] for one in (first, second)))
        for name, own in values.items():
            found.setdefault(name, np.empty(len(second)))[places] = own
    return found


def correlate(first: Sequence[Image.Image], second: Sequence[Image.Image]) -> Array:
    """Return the correlation of the thumbnails of pairs; what is flat correlates with nothing."""
    both = []
    for one in (first, second):
        small = [np.asarray(image.resize((COARSE, COARSE), Image.Resampling.BOX), float).ravel() / 255 for image in one]
        both.append(np.stack(small))
    x, y = (one - one.mean(1, keepdims=True) for one in both)
    least = (3 / 255) ** 2 * x.shape[1]  # a deviation of three steps counts as none
    scale = np.sqrt(((x * x).sum(1) + least) * ((y * y).sum(1) + least))
    return np.asarray((x * y).sum(1) / scale)
