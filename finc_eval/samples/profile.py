"""Encoding of a set's samples in counts, and warnings where two sets are encoded differently.

Compression, resizing and lost colors leave traces that feature extractors see (Parmar et al. 2022, "On Aliased
Resizing and Surprising Subtleties in GAN Evaluation"): they move every score, whatever the samples show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import accumulate
from math import log
from typing import Any, Self, TypeVar

from finc_eval.core.record import Record
from finc_eval.samples.traits import Traits

MAX_SIZES = 32

# TIFF may hold JPEG, and an array may have been decoded from one, but this cannot be seen.
LOSSLESS = frozenset({"array", "PNG", "BMP", "TIFF", "PPM", "WEBP-lossless"}) | frozenset(
    {"png", "apng", "bmp", "ppm", "tiff", "rawvideo", "ffv1", "huffyuv", "ffvhuff", "utvideo", "qtrle"}
)
ALPHA_MODES = frozenset({"RGBA", "RGBa", "LA", "La", "PA", "rgba", "bgra", "argb", "abgr"})
ALPHA_PREFIXES = ("yuva", "gbrap", "ya8", "ya16")

MAX_SHARE_DIFFERENCE = 0.2
MAX_QUALITY_DIFFERENCE = 5
MAX_SIZE_RATIO = 1.5
MAX_ASPECT_RATIO = 1.1
MAX_FPS_RATIO = 1.02
MIN_ALPHA_SHARE = 0.01
MOST_SHALLOW = 0.95
"""Differences between two sets beyond which there is a warning."""

Key = TypeVar("Key", str, int, float)
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Profile(Record):
    """Counts of how the samples of a set are encoded; `a + b` is the profile of the union.

    Attributes:
        n: number of samples.
        gray: number of gray samples.
        formats: number of samples by format.
        modes: number of samples by pixel mode.
        sizes: number of samples by size, as "640x480". Only the 32 most frequent sizes are kept, so a sum of profiles
            may count a few in `other_sizes` that a profile of the union would have kept.
        other_sizes: number of samples of other sizes.
        widths: number of samples by width.
        heights: number of samples by height.
        aspects: number of samples by ratio of width to height, to three digits.
        qualities: number of JPEGs by quality.
        fps: number of videos by frame rate, to two decimals.
    """

    n: int = 0
    gray: int = 0
    formats: dict[str, int] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    other_sizes: int = 0
    widths: dict[int, int] = field(default_factory=dict)
    heights: dict[int, int] = field(default_factory=dict)
    aspects: dict[float, int] = field(default_factory=dict)
    qualities: dict[int, int] = field(default_factory=dict)
    fps: dict[float, int] = field(default_factory=dict)

    @classmethod
    def of(cls, traits: Iterable[Traits]) -> Self:
        """Count the traits of samples."""
        # Large sets have few distinct traits.
        counts = Counter(traits)

        def counted(of: Callable[[Traits], Key | None]) -> dict[Key, int]:
            found = Counter[Key]()
            for one, times in counts.items():
                if (key := of(one)) is not None:
                    found[key] += times
            return _sorted(found)

        sizes, other_sizes = _most_frequent(counted(lambda one: f"{one.width}x{one.height}"))
        return cls(
            n=sum(counts.values()),
            gray=sum(times for one, times in counts.items() if one.is_gray),
            formats=counted(lambda one: one.format),
            modes=counted(lambda one: one.mode),
            sizes=sizes,
            other_sizes=other_sizes,
            widths=counted(lambda one: one.width),
            heights=counted(lambda one: one.height),
            aspects=counted(lambda one: float(f"{one.width / one.height:.3g}")),
            qualities=counted(lambda one: one.quality),
            fps=counted(lambda one: None if one.fps is None else round(one.fps, 2)),
        )

    def __add__(self, other: Profile) -> Profile:
        total = {one.name: _sum(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        total["sizes"], others = _most_frequent(total["sizes"])
        return Profile(**total | {"other_sizes": total["other_sizes"] + others})

    @property
    def median_size(self) -> tuple[int, int] | None:
        """Median width and median height; None for an empty set."""
        return (_quantile(self.widths, 0.5), _quantile(self.heights, 0.5)) if self.n else None

    @property
    def median_quality(self) -> int | None:
        """Median quality of the JPEGs; None without JPEGs of a known quality."""
        return _quantile(self.qualities, 0.5) if self.qualities else None

    @property
    def quality_range(self) -> tuple[int, int] | None:
        """Lowest and highest quality of the JPEGs; None without JPEGs of a known quality."""
        return (min(self.qualities), max(self.qualities)) if self.qualities else None

    def share(self, count: int) -> float:
        """Return a number of samples as a share of all samples."""
        return count / self.n if self.n else 0.0


def shallow(profile: Profile) -> str | None:
    """Return a sentence if nearly all images use a small part of the range of their pixels; None otherwise."""
    marked = {mode: count for mode, count in profile.modes.items() if "/" in mode}
    if not marked:
        return None
    deep = any(mode.startswith("I") for mode in marked)
    alike = [count for mode, count in profile.modes.items() if mode.startswith("I") == deep]
    if sum(marked.values()) < MOST_SHALLOW * sum(alike):
        return None
    bits = max(int(mode.partition("/")[2].removesuffix("bit")) for mode in marked)
    if deep:
        return (
            f"no pixel is above {2**bits - 1} of 65535: the images look like {bits} bits in files of 16 bits, and are "
            f"nearly black; multiply their values by {2 ** (16 - bits)}, or state the depth in the files"
        )
    return (
        f"no pixel is above {2**bits - 1} of 255: the images are nearly black; if their range was 0 to 1, multiply it "
        "by 255 before it is cast to uint8"
    )


def unlike_encodings(gen: Profile, ref: Profile, name: str = "ref") -> list[str]:
    """Return one warning for each way in which two sets are encoded so differently that scores move.

    Args:
        gen: the generated set.
        ref: the set that it is compared with.
        name: name of that set.
    """
    if not gen.n or not ref.n:
        return []
    checks = (_compression, _quality, _size, _aspect, _gray, _alpha, _fps)
    return [sentence for check in checks for sentence in check(gen, ref, name)]


def _compression(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    lossy = [one.share(sum(count for name, count in one.formats.items() if name not in LOSSLESS)) for one in (gen, ref)]
    if abs(lossy[0] - lossy[1]) > MAX_SHARE_DIFFERENCE:
        yield (
            f"{lossy[0]:.0%} of gen ({_mostly(gen.formats)}) and {lossy[1]:.0%} of {name} ({_mostly(ref.formats)}) are "
            "compressed with loss: its traces alone move the scores; save both sets in the same way, best without loss"
        )
    elif min(lossy) > MAX_SHARE_DIFFERENCE and _mostly(gen.formats) != _mostly(ref.formats):
        yield (
            f"gen is mostly {_mostly(gen.formats)} and {name} mostly {_mostly(ref.formats)}: the traces of compression "
            "differ and move the scores; save both sets in the same way, best without loss"
        )


def _quality(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    ours, theirs = gen.median_quality, ref.median_quality
    if ours is not None and theirs is not None and abs(ours - theirs) > MAX_QUALITY_DIFFERENCE:
        yield (
            f"the JPEGs of gen have the median quality {ours}, those of {name} {theirs}: the traces of compression "
            "differ and move the scores; save both sets with one quality, best without loss"
        )


def _size(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    ours, theirs = gen.median_size, ref.median_size
    if ours is None or theirs is None:
        return
    if max(max(a / b, b / a) for a, b in zip(ours, theirs, strict=True)) > MAX_SIZE_RATIO:
        yield (
            f"the median size is {ours[0]}x{ours[1]} in gen and {theirs[0]}x{theirs[1]} in {name}: after resizing for "
            "the network, the smaller ones are blurrier; bring both sets to one size with one good filter"
        )


def _aspect(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    levels = [step / 20 for step in range(21)]
    ours, theirs = ([_quantile(one.aspects, level) for level in levels] for one in (gen, ref))
    # Wasserstein distance between the two distributions of logarithms.
    distance = sum(abs(log(a / b)) for a, b in zip(ours, theirs, strict=True)) / len(levels)
    if distance > log(MAX_ASPECT_RATIO):
        spans = [f"{one[2]:g}" if one[2] == one[-3] else f"{one[2]:g} to {one[-3]:g}" for one in (ours, theirs)]
        yield (
            f"width to height is {spans[0]} in gen and {spans[1]} in {name} (from the 10th to the 90th percentile): "
            "extractors squash or crop the two sets differently; crop both to one shape"
        )


def _gray(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    ours, theirs = gen.share(gen.gray), ref.share(ref.gray)
    if abs(ours - theirs) > MAX_SHARE_DIFFERENCE:
        yield (
            f"{ours:.0%} of gen and {theirs:.0%} of {name} are gray: color alone tells the sets apart; "
            "make both gray, or remove the gray samples, unless color is what you want to measure"
        )


def _alpha(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    ours, theirs = (one.share(sum(n for mode, n in one.modes.items() if _has_alpha(mode))) for one in (gen, ref))
    if max(ours, theirs) >= MIN_ALPHA_SHARE and min(ours, theirs) == 0:
        yield (
            f"{ours:.0%} of gen and {theirs:.0%} of {name} have an alpha channel, which is dropped, so that "
            "the colors it hides become visible: put such samples on a background of your choice"
        )


def _fps(gen: Profile, ref: Profile, name: str) -> Iterator[str]:
    if not gen.fps or not ref.fps:
        return
    ours, theirs = _quantile(gen.fps, 0.5), _quantile(ref.fps, 0.5)
    if min(ours, theirs) > 0 and max(ours / theirs, theirs / ours) > MAX_FPS_RATIO:
        yield (
            f"gen has {ours:g} frames a second in the median and {name} {theirs:g}: the same motion looks slower or "
            "faster to the network; use an extractor whose card sets clip.fps, or bring both to one rate"
        )


def _has_alpha(mode: str) -> bool:
    mode = mode.partition("/")[0]
    return mode in ALPHA_MODES or mode.startswith(ALPHA_PREFIXES)


def _mostly(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: counts[name])


def _quantile(counts: dict[Number, int], level: float) -> Number:
    """Return the smallest value that at least this share of the samples does not exceed."""
    values = sorted(counts)
    below = accumulate(counts[value] for value in values)
    wanted = level * sum(counts.values())
    return next(value for value, count in zip(values, below, strict=True) if count >= wanted)


def _most_frequent(sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Keep the most frequent sizes, and count the samples of all others."""
    kept = dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:MAX_SIZES])
    return kept, sum(sizes.values()) - sum(kept.values())


def _sum(ours: Any, theirs: Any) -> Any:
    """Add two numbers, or two tables of counts."""
    return _sorted(Counter(ours) + Counter(theirs)) if isinstance(ours, dict) else ours + theirs


def _sorted(counts: dict[Key, int]) -> dict[Key, int]:
    return {key: counts[key] for key in sorted(counts)}
