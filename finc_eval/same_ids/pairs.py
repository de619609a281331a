"""Pairs of samples with one id: what is measured of each, in pixels and in the space of the embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.pictures import picture
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.measured import Measured, looked_rows
from finc_eval.naming.repeated import pixels_of
from finc_eval.naming.traits import TRAITS, Trait
from finc_eval.same_ids.clips import FRAMES, MOTION, Clips, frames_of, measure_motion, thumbnails_of_clips
from finc_eval.same_ids.kept import KeptPairs
from finc_eval.same_ids.lpips import Lpips, find_lpips
from finc_eval.same_ids.measures import measure_pairs
from finc_eval.same_ids.pair_looks import PairLooks, TraitsOfPairs, spread_over, with_numbers
from finc_eval.same_ids.shown import THUMB, Thumbs, correlate, make_thumbnails
from finc_eval.samples.source import prefetch

Array = NDArray[np.float64]

SIZES = ("frames", "height", "width")  # size of the first sample of a pair; a picture has 1 frame
SIZES_BEFORE = tuple(f"{name} before" for name in SIZES)  # size of the second
MEASURES = ("mse", "ssim", "ms_ssim", "structure", "detail", "grain", "blank", *SIZES, *SIZES_BEFORE)
"""Measures of a pair of pictures."""
PAIRS = "measure pairs"  # stage of progress
READ_TOGETHER, CLIPS_TOGETHER = 32, 2
"""Pairs that are read while as many are measured: of 512 × 512 pixels, and 16 frames, 100 MB together."""

BYTES = 8  # values of a thumbnail that are kept as one number of 64 bits
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
        _, pixels = self.read(np.arange(min(len(self.ids), CLIPS_TOGETHER)))
        clips = [] if pixels is None else [clip for side in pixels for clip in side]
        return bool(clips) and all(clip.ndim == 4 and len(clip) > 1 for clip in clips)

    @property
    def looked(self) -> NDArray[np.int64]:
        """Pairs whose looks are measured, by their number, in order: as many as of any set, drawn by their ids."""
        return looked_rows(Subset(self.gen, self.rows[0]))

    def read(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[Clips, Clips] | None]:
        """Return the pairs, of those chosen, whose pixels are as they were embedded, and both pixels.

        None stands for the pixels where no pictures are at hand, however many pairs are asked for.
        """
        first = self.gen.pixels_found(self.rows[0][chosen])
        second = None if first is None else self.ref.pixels_found(self.rows[1][chosen])
        if first is None or second is None:
            return chosen, None
        whole = [
            (place, new, other)
            for place, new, other in zip(chosen.tolist(), first, second, strict=True)
            if new is not None and other is not None
        ]
        return np.array([place for place, *_ in whole], np.int64), (
            [new for _, new, _ in whole],
            [other for *_, other in whole],
        )

    def contents(self) -> NDArray[np.uint64] | None:
        """Return the digests of both pictures of each pair, (n, 2); None if they are unknown, and for clips."""
        first, second = (pixels_of(samples) for samples in (self.gen, self.ref))
        if first is None or second is None or self.are_clips:
            return None
        return np.column_stack([first[self.rows[0]], second[self.rows[1]]])


@dataclass(frozen=True, eq=False)
class PairTable:
    """Measurements of pairs, shape (n,) each; those of pictures are NaN where these are not as they were embedded."""

    values: dict[str, Array]  # by the name of the measure
    others: Array  # part of other ids whose sample is at most as far from the first sample as its own
    traits: tuple[Array, Array] | None  # traits of both pictures, (n, traits) each, NaN where these were not measured
    thumbs: tuple[Thumbs, Thumbs] | None = None  # thumbnails of both, (n, frames of 16 rows, 16, 3) each
    # vectors alone: the other id that is nearest to the first sample, and its distance; see `values`
    nearest_id: tuple[NDArray[np.int64], Array] | None = None
    owner: NDArray[np.int64] | None = None  # of several runs of a baseline, the run of the first sample, (n,)
    looks: tuple[Trait, ...] = TRAITS  # what `traits` has the values of

    def __len__(self) -> int:
        return len(self.others)

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Pairs whose pictures could not be read, while those of others could."""
        return np.isnan(self.values.get("mse", self.others))

    def part(self, chosen: NDArray[np.bool_]) -> PairTable:
        """Return some of the pairs."""
        if chosen.all():
            return self
        traits = None if self.traits is None else (self.traits[0][chosen], self.traits[1][chosen])
        thumbs = None if self.thumbs is None else (self.thumbs[0][chosen], self.thumbs[1][chosen])
        values = {name: measure[chosen] for name, measure in self.values.items()}
        owner = None if self.owner is None else self.owner[chosen]
        others = self.others[chosen]
        return replace(self, values=values, others=others, traits=traits, thumbs=thumbs, nearest_id=None, owner=owner)

    def nearest(self, other: PairTable) -> PairTable:
        """Return, of two tables of the same first samples, the nearer pair of each."""
        name = "mse" if "mse" in self.values and "mse" in other.values else "distance"
        takes = (self.values[name] <= other.values[name]) | np.isnan(other.values[name])
        values = {
            key: np.where(takes, measure, other.values[key])
            for key, measure in self.values.items()
            if key in other.values
        }
        thumbs = self.thumbs
        if thumbs is not None and other.thumbs is not None:
            thumbs = (thumbs[0], np.where(takes[:, None, None, None], thumbs[1], other.thumbs[1]))
        return replace(self, values=values, others=np.where(takes, self.others, other.others), thumbs=thumbs)


def align(names: Mapping[str, NDArray[np.str_]], sets: Mapping[str, Embeddings]) -> Aligned:
    """Pair the samples of two sets by their names; of samples with one name, the first counts.

    `names` has the name of each sample by the label of its set, shape (n,) each.
    """
    (gen, first), (ref, second) = ((samples, names[label]) for label, samples in sets.items())
    ids, *rows = np.intersect1d(first, second, return_indices=True)
    return Aligned(ids, gen, ref, (rows[0].astype(np.int64), rows[1].astype(np.int64)))


def measure(
    pairs: Aligned, run: Run, *, with_traits: bool = False, measured: Mapping[str, Measured] = MappingProxyType({})
) -> PairTable:
    """Measure all pairs: in the space of the embeddings, and their pictures, where these are at hand.

    `measured` is what is measured of "gen" and "ref" already: the looks of those pictures are not measured again.
    """
    distance, others = measure_in_space(pairs)
    found = _pictures(pairs, run, with_traits, measured)
    looked, of_pairs = pairs.looked, None if found is None else found[1]
    if with_traits:
        sets, rows = (pairs.gen, pairs.ref), (pairs.rows[0][looked], pairs.rows[1][looked])
        of_pairs = spread_over(with_numbers(of_pairs, sets, rows), looked, len(pairs.ids))
    looks, traits = of_pairs or (TRAITS, None)
    if found is None:
        near = _nearest_ids(pairs, distance, others)
        return PairTable({"distance": distance}, others, traits, nearest_id=near, looks=looks)
    values, _, thumbs = found
    return PairTable({**values, "distance": distance}, others, traits, thumbs, looks=looks)


def measure_in_space(pairs: Aligned) -> tuple[Array, Array]:
    """Return the distance of each pair over that of two ids, and the part of other ids that are as near."""
    n = len(pairs.ids)
    drawn = np.random.default_rng(0).permutation(n)[:OTHERS]
    compared = pairs.ref.rows_at(pairs.rows[1][drawn]).cpu().double()
    distance, typical, near = np.empty(n), np.empty(n), np.empty(n)
    for start in range(0, n, OTHERS):
        some = slice(start, start + OTHERS)
        first, second = (
            samples.rows_at(rows[some]).cpu().double()
            for samples, rows in zip((pairs.gen, pairs.ref), pairs.rows, strict=True)
        )
        mine = (first - second).norm(dim=1)
        length = second.norm(dim=1)
        apart = torch.cdist(first, compared)
        apart[torch.from_numpy(drawn)[None] == torch.arange(start, start + len(first))[:, None]] = torch.inf
        distance[some] = mine
        # Without another id, the length of a vector stands for the distance of two.
        typical[some] = apart.median(1).values if n > 1 else length
        near[some] = (apart <= mine[:, None]).double().mean(1)
    return distance / max(float(np.median(typical)), np.finfo(float).tiny), near


def _nearest_ids(pairs: Aligned, distance: Array, others: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the nearest other id of the samples that are not nearest to their own, and its distance; -1 of others.

    `distance` to the own sample and the part of `others` that are nearer have shape (pairs,), and so have both results.
    """
    asked = np.flatnonzero(others > 0)
    place, near = np.full(len(distance), -1), np.full(len(distance), np.inf)
    mine = (pairs.gen.rows_at(pairs.rows[0][asked]) - pairs.ref.rows_at(pairs.rows[1][asked])).cpu().double()
    found, apart = nearest_others(pairs, asked)
    # Distances are in parts of one scale, which both distances of a pair tell.
    lengths = np.maximum(mine.norm(dim=1).numpy(), np.finfo(float).tiny)
    place[asked], near[asked] = found, apart / lengths * distance[asked]
    return place, near


def nearest_others(pairs: Aligned, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
    """Return the place of the nearest other sample of the reference, and its distance, for new samples at places.

    `places` are numbers of pairs, shape (m,); both results have that shape.
    """
    vectors = pairs.gen.rows_at(pairs.rows[0][places]).cpu().double()
    found, least = np.zeros(len(places), np.int64), np.full(len(places), np.inf)
    for start in range(0, len(pairs.ids), OTHERS):
        apart = torch.cdist(vectors, pairs.ref.rows_at(pairs.rows[1][start : start + OTHERS]).cpu().double()).numpy()
        apart[places[:, None] == np.arange(start, start + apart.shape[1])] = np.inf
        nearer = apart.min(1) < least
        found = np.where(nearer, start + apart.argmin(1), found)
        least = np.minimum(least, apart.min(1))
    return found, least


def _pictures(
    pairs: Aligned, run: Run, with_traits: bool, measured: Mapping[str, Measured]
) -> tuple[dict[str, Array], TraitsOfPairs | None, tuple[Thumbs, Thumbs]] | None:
    """Read and measure the pictures of all pairs, a few at a time, but for those that an earlier run kept."""
    lpips = find_lpips(run.torch_device)
    names = [*MEASURES, *(MOTION if pairs.are_clips else ()), *(() if lpips is None else ("lpips",))]
    n, together = len(pairs.ids), CLIPS_TOGETHER if pairs.are_clips else READ_TOGETHER
    contents, looked = pairs.contents(), pairs.looked if with_traits else np.empty(0, np.int64)
    kept = KeptPairs(contents, n, names)
    of_looked = None if contents is None else contents[looked]
    looks = PairLooks((pairs.gen, pairs.ref), (pairs.rows[0][looked], pairs.rows[1][looked]), of_looked)
    looks.take(measured)
    shape = (2, (FRAMES if pairs.are_clips else 1) * THUMB, THUMB, 3)
    thumbs = KeptPairs(contents, n, [f"thumbs {number}" for number in range(np.prod(shape) // BYTES)])
    wanted = looks.missing
    missing = np.union1d(np.union1d(kept.missing, thumbs.missing), looked[wanted])
    parts = (missing[start : start + together] for start in range(0, len(missing), together))
    done = n - len(missing)
    for part, (some, pixels) in prefetch((part, pairs.read(part)) for part in parts):
        done += len(part)
        if pixels is None and len(kept.missing) == n:
            return None  # no pictures are at hand
        if pixels is None or not len(some):
            continue
        values = (measure_clips if pairs.are_clips else measure_pictures)(*pixels, lpips)
        kept.add(some, np.column_stack([values[name] for name in names]))
        small = [(thumbnails_of_clips if pairs.are_clips else make_thumbnails)(side) for side in pixels]
        thumbs.add(some, np.stack(small, 1).reshape(len(some), -1).view(np.float64))
        _, places, among = np.intersect1d(some, looked[wanted], return_indices=True)
        if len(places):
            looks.add(wanted[among], [[picture(side[place]) for place in places] for side in pixels])
        run.progress(PAIRS, done, n)
    if len(kept.missing) == n:
        return None  # no picture is as it was embedded
    for store in (kept, thumbs, looks):
        store.write()
    known = np.delete(np.arange(n), kept.missing)
    found = {
        name: measure for name, measure in zip(names, kept.values.T, strict=True) if not np.isnan(measure[known]).any()
    }
    first, second = thumbs.values.view(np.uint8).reshape(n, *shape).swapaxes(0, 1)
    found["coarse"] = correlate(first, second)
    return found, looks.found() if with_traits else None, (first, second)


def measure_clips(first: Clips, second: Clips, lpips: Lpips | None = None) -> dict[str, Array]:
    """Measure pairs of clips: their frames as pictures, on average, and their motion."""
    parts = []
    for new, other in zip(frames_of(first), frames_of(second), strict=True):
        count = min(len(new), len(other))
        parts.append(
            {name: values.mean() for name, values in measure_pictures(new[:count], other[:count], lpips).items()}
        )
    found = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    frames = {"frames": first, "frames before": second}
    found |= {name: np.array([float(len(clip)) for clip in side]) for name, side in frames.items()}
    return found | measure_motion(first, second)


def measure_pictures(
    first: Sequence[Image.Image | NDArray[np.uint8]],
    second: Sequence[Image.Image | NDArray[np.uint8]],
    lpips: Lpips | None = None,
) -> dict[str, Array]:
    """Measure pairs of pictures of any sizes; the first takes the size of the second."""
    alike: dict[tuple[int, ...], list[int]] = {}
    before = [_colors(image) for image in second]
    now = [_colors(image, other.shape) for image, other in zip(first, before, strict=True)]
    for place, pixels in enumerate(before):
        alike.setdefault(pixels.shape, []).append(place)
    found: dict[str, Array] = {}
    for places in alike.values():
        both = [[colors[place] for place in places] for colors in (now, before)]
        values = measure_pairs(*both) | ({} if lpips is None else {"lpips": lpips.measure(*both)})
        for name, some in values.items():
            found.setdefault(name, np.empty(len(second)))[places] = some
    return found | _sizes(first, second)


def _sizes(*both: Sequence[Image.Image | NDArray[np.uint8]]) -> dict[str, Array]:
    """Return the sizes of the first pictures, and of the second."""
    found: dict[str, Array] = {}
    for names, some in zip((SIZES, SIZES_BEFORE), both, strict=True):
        shapes = np.array([(1, *picture(image).size[::-1]) for image in some], float).reshape(-1, len(names))
        found |= dict(zip(names, shapes.T, strict=True))
    return found


def _colors(image: Image.Image | NDArray[np.uint8], shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Return the pixels of a picture in color, (h, w, 3), in another shape if one is given."""
    if isinstance(image, np.ndarray) and image.ndim == 3 and shape in (None, image.shape):
        return image
    colored = picture(image).convert("RGB")
    return np.asarray(colored if shape is None else colored.resize((shape[1], shape[0])))
