"""Warns where two sets are encoded differently: that alone moves every score, whatever the samples show.

Compression, resizing and lost colors leave traces that feature extractors see (Parmar et al. 2022, "On Aliased
Resizing and Surprising Subtleties in GAN Evaluation").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from math import log
from typing import Any, Self, TypeVar

from finc_eval.samples.traits import Traits

SIZES_KEPT = 32

# TIFF may hold JPEG, and an array may have been decoded from one; nothing in them says so.
LOSSLESS = frozenset({"array", "PNG", "BMP", "TIFF", "PPM", "WEBP-lossless"}) | frozenset(
    {"png", "apng", "bmp", "ppm", "tiff", "rawvideo", "ffv1", "huffyuv", "ffvhuff", "utvideo", "qtrle"}
)
ALPHA = frozenset({"RGBA", "RGBa", "LA", "La", "PA", "rgba", "bgra", "argb", "abgr"})
ALPHA_PREFIXES = ("yuva", "gbrap", "ya8", "ya16")

SHARE_APART = 0.2
QUALITY_APART = 5
SIZE_RATIO = 1.5
ASPECT_RATIO = 1.1
FPS_RATIO = 1.02
RARE = 0.01

Key = TypeVar("Key", str, int, float)
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Profile:
    """How the samples of a set are encoded, counted; `a + b` is the profile of the union.

    Attributes:
        n: number of samples.
        gray: how many of them are gray.
        formats: how many are of each format.
        modes: how many have pixels of each mode.
        sizes: how many are of each size, as "640x480": of the 32 most frequent ones only, so a sum of profiles may
            have a few in `other_sizes` that counting all at once would have kept.
        other_sizes: how many are of another size.
        widths: how many have each width.
        heights: how many have each height.
        aspects: how many have each ratio of width to height, to three digits.
        qualities: how many JPEGs have each quality.
        fps: how many videos have each number of frames a second, to two decimals.
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
        # Of many samples, few are encoded each in its own way.
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
        sizes, others = _most_frequent(_sum(self.sizes, other.sizes))
        return Profile(
            n=self.n + other.n,
            gray=self.gray + other.gray,
            formats=_sum(self.formats, other.formats),
            modes=_sum(self.modes, other.modes),
            sizes=sizes,
            other_sizes=self.other_sizes + other.other_sizes + others,
            widths=_sum(self.widths, other.widths),
            heights=_sum(self.heights, other.heights),
            aspects=_sum(self.aspects, other.aspects),
            qualities=_sum(self.qualities, other.qualities),
            fps=_sum(self.fps, other.fps),
        )

    @property
    def median_size(self) -> tuple[int, int] | None:
        """The median width and the median height; None of an empty set."""
        return (_quantile(self.widths, 0.5), _quantile(self.heights, 0.5)) if self.n else None

    @property
    def median_quality(self) -> int | None:
        """The median quality of the JPEGs; None where there are none, or their tables are of no known quality."""
        return _quantile(self.qualities, 0.5) if self.qualities else None

    @property
    def quality_range(self) -> tuple[int, int] | None:
        """The least and the highest quality of the JPEGs; None as of `median_quality`."""
        return (min(self.qualities), max(self.qualities)) if self.qualities else None

    def share(self, count: int) -> float:
        """Return a number of samples as a share of all."""
        return count / self.n if self.n else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON takes them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Read what `to_dict` returned, also after it has been JSON, which makes every key a string."""
        keys = {"widths": int, "heights": int, "qualities": int, "aspects": float, "fps": float}
        typed: dict[str, Any] = {
            name: {keys.get(name, str)(key): int(count) for key, count in value.items()}
            if isinstance(value, dict)
            else int(value)
            for name, value in content.items()
        }
        return cls(**typed)


def unlike_encodings(gen: Profile, ref: Profile) -> list[str]:
    """Say in sentences where two sets are encoded so differently that scores move.

    Args:
        gen: of the generated set.
        ref: of the reference.

    Returns:
        Nothing where there is nothing to warn of, or one of the sets is empty.
    """
    if not gen.n or not ref.n:
        return []
    checks = (_compression, _quality, _size, _aspect, _gray, _alpha, _fps)
    return [sentence for check in checks for sentence in check(gen, ref)]


def _compression(gen: Profile, ref: Profile) -> Iterator[str]:
    lossy = [
        side.share(sum(count for name, count in side.formats.items() if name not in LOSSLESS)) for side in (gen, ref)
    ]
    if abs(lossy[0] - lossy[1]) > SHARE_APART:
        yield (
            f"{lossy[0]:.0%} of gen ({_mostly(gen.formats)}) and {lossy[1]:.0%} of ref ({_mostly(ref.formats)}) are "
            "compressed with loss: its traces alone move the scores; save both sets alike, best without loss"
        )
    elif min(lossy) > SHARE_APART and _mostly(gen.formats) != _mostly(ref.formats):
        yield (
            f"gen is mostly {_mostly(gen.formats)} and ref mostly {_mostly(ref.formats)}: the traces of compression "
            "differ and move the scores; save both sets alike, best without loss"
        )


def _quality(gen: Profile, ref: Profile) -> Iterator[str]:
    ours, theirs = gen.median_quality, ref.median_quality
    if ours is not None and theirs is not None and abs(ours - theirs) > QUALITY_APART:
        yield (
            f"the JPEGs of gen have the median quality {ours}, those of ref {theirs}: the traces of compression differ "
            "and move the scores; save both sets with one quality, best without loss"
        )


def _size(gen: Profile, ref: Profile) -> Iterator[str]:
    ours, theirs = gen.median_size, ref.median_size
    if ours is None or theirs is None:
        return
    if max(max(a / b, b / a) for a, b in zip(ours, theirs, strict=True)) > SIZE_RATIO:
        yield (
            f"the median size is {ours[0]}x{ours[1]} in gen and {theirs[0]}x{theirs[1]} in ref: resized to the size of "
            "the network, the smaller are the blurrier; bring both sets to one size with one good filter"
        )


def _aspect(gen: Profile, ref: Profile) -> Iterator[str]:
    levels = [step / 20 for step in range(21)]
    ours, theirs = ([_quantile(side.aspects, level) for level in levels] for side in (gen, ref))
    # The distance between two distributions on a line (Wasserstein's), of the logarithms.
    distance = sum(abs(log(a / b)) for a, b in zip(ours, theirs, strict=True)) / len(levels)
    if distance > log(ASPECT_RATIO):
        spans = [f"{side[2]:g}" if side[2] == side[-3] else f"{side[2]:g} to {side[-3]:g}" for side in (ours, theirs)]
        yield (
            f"width to height is {spans[0]} in gen and {spans[1]} in ref (from the 10th to the 90th percentile): "
            "extractors squash or crop the two sets differently; crop both to one shape"
        )


def _gray(gen: Profile, ref: Profile) -> Iterator[str]:
    ours, theirs = gen.share(gen.gray), ref.share(ref.gray)
    if abs(ours - theirs) > SHARE_APART:
        yield (
            f"{ours:.0%} of gen and {theirs:.0%} of ref are gray: color alone tells the sets apart; "
            "make both gray, or take the gray ones out, unless this is what is to be measured"
        )


def _alpha(gen: Profile, ref: Profile) -> Iterator[str]:
    ours, theirs = (side.share(sum(n for mode, n in side.modes.items() if _has_alpha(mode))) for side in (gen, ref))
    if max(ours, theirs) >= RARE and min(ours, theirs) == 0:
        yield (
            f"{ours:.0%} of gen and {theirs:.0%} of ref have an alpha channel, which is dropped, so that colors "
            "hidden by it show: put such samples before a background of your choice"
        )


def _fps(gen: Profile, ref: Profile) -> Iterator[str]:
    if not gen.fps or not ref.fps:
        return
    ours, theirs = _quantile(gen.fps, 0.5), _quantile(ref.fps, 0.5)
    if min(ours, theirs) > 0 and max(ours / theirs, theirs / ours) > FPS_RATIO:
        yield (
            f"gen has {ours:g} frames a second in the median and ref {theirs:g}: the same motion looks slower or "
            "faster to the network; use an extractor whose card sets clip.fps, or bring both to one rate"
        )


def _has_alpha(mode: str) -> bool:
    return mode in ALPHA or mode.startswith(ALPHA_PREFIXES)


def _mostly(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: counts[name])


def _quantile(counts: dict[Number, int], level: float) -> Number:
    """Return the least value that at least this share of the samples do not exceed."""
    values = sorted(counts)
    below = accumulate(counts[value] for value in values)
    wanted = level * sum(counts.values())
    return next(value for value, count in zip(values, below, strict=True) if count >= wanted)


def _most_frequent(sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Keep the most frequent sizes, and count the others."""
    kept = dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:SIZES_KEPT])
    return kept, sum(sizes.values()) - sum(kept.values())


def _sum(ours: dict[Key, int], theirs: dict[Key, int]) -> dict[Key, int]:
    return _sorted(Counter(ours) + Counter(theirs))


def _sorted(counts: dict[Key, int]) -> dict[Key, int]:
    return {key: counts[key] for key in sorted(counts)}
