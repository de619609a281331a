"""Encoding of a set's samples in counts, and warnings where two sets are encoded differently.

Compression, resizing and lost colors leave traces that feature extractors see (Parmar et al. 2022, "On Aliased
Resizing and Surprising Subtleties in GAN Evaluation"): they move every score, whatever the samples show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from math import log
from statistics import NormalDist
from typing import Any, Self, TypeVar

from finc_eval.core.files.icc import SRGB
from finc_eval.core.record import Record
from finc_eval.core.words import percent
from finc_eval.samples.encoding import CMYK, PALE, SHALLOW_VALUES, UNREADABLE, Encoding, has_alpha

# TIFF may hold JPEG, and an array may have been decoded from one, but this cannot be seen.
LOSSLESS = frozenset({"array", "PNG", "BMP", "TIFF", "PPM", "WEBP-lossless"}) | frozenset(
    {"png", "apng", "bmp", "ppm", "tiff", "rawvideo", "ffv1", "huffyuv", "ffvhuff", "utvideo", "qtrle"}
)

MAX_SHARE_DIFFERENCE = 0.2
MAX_SIZE_RATIO = 1.5
MAX_FPS_RATIO = 1.02
MAX_LENGTH_RATIO = 1.1
MOST_SHALLOW = 0.95  # differences between two sets beyond which there is a warning

UNMARKED = "unmarked"

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
        frames: number of videos by their number of frames.
        seconds: number of videos by duration, to three digits.
        colors: number of videos by their marks of color matrix and transfer function; "unmarked" without.
        pixel_aspects: number of videos by ratio of width to height of a pixel, to three digits.
        spaces: number of images by the color space that their files state; "sRGB" without a statement.
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
    frames: dict[int, int] = field(default_factory=dict)
    seconds: dict[float, int] = field(default_factory=dict)
    colors: dict[str, int] = field(default_factory=dict)
    pixel_aspects: dict[float, int] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, encodings: Iterable[Encoding]) -> Self:
        """Count the encodings of samples."""
        # Large sets have few distinct encodings.
        counts = Counter(encodings)

        def counted(of: Callable[[Encoding], Key | None]) -> dict[Key, int]:
            total = Counter[Key]()
            for encoding, times in counts.items():
                if (key := of(encoding)) is not None:
                    total[key] += times
            return dict(sorted(total.items()))

        sizes, other_sizes = _most_frequent(counted(lambda encoding: f"{encoding.width}x{encoding.height}"))
        return cls(
            n=sum(counts.values()),
            gray=sum(times for encoding, times in counts.items() if encoding.is_gray),
            formats=counted(lambda encoding: encoding.format),
            modes=counted(lambda encoding: encoding.mode),
            sizes=sizes,
            other_sizes=other_sizes,
            widths=counted(lambda encoding: encoding.width),
            heights=counted(lambda encoding: encoding.height),
            aspects=counted(lambda encoding: float(f"{encoding.width / encoding.height:.3g}")),
            qualities=counted(lambda encoding: encoding.quality),
            fps=counted(lambda encoding: None if encoding.fps is None else round(encoding.fps, 2)),
            frames=counted(lambda encoding: encoding.frames),
            seconds=counted(lambda encoding: None if encoding.seconds is None else float(f"{encoding.seconds:.3g}")),
            colors=counted(lambda encoding: None if encoding.fps is None else encoding.color or UNMARKED),
            pixel_aspects=counted(lambda encoding: None if encoding.fps is None else float(f"{encoding.aspect:.3g}")),
            spaces=counted(lambda encoding: None if encoding.fps is not None else encoding.color or SRGB),
        )

    def __add__(self, other: Profile) -> Profile:
        total: dict[str, Any] = {}
        for name in (each.name for each in fields(self)):
            ours, theirs = getattr(self, name), getattr(other, name)
            is_table = isinstance(ours, dict)
            total[name] = dict(sorted((Counter(ours) + Counter(theirs)).items())) if is_table else ours + theirs
        total["sizes"], others = _most_frequent(total["sizes"])
        return Profile(**total | {"other_sizes": total["other_sizes"] + others})

    @property
    def median_quality(self) -> int | None:
        """Median quality of the JPEGs; None without JPEGs of a known quality."""
        return _quantile(self.qualities, 0.5) if self.qualities else None

    def at_rate(self, fps: float | None) -> Profile:
        """Return the profile of the videos resampled to so many frames a second: slower videos only repeat frames."""
        if fps is None:
            return self
        rates = Counter[float]()
        for rate, count in self.fps.items():
            rates[min(rate, fps)] += count
        return replace(self, fps=dict(sorted(rates.items())))

    def share(self, count: int) -> float:
        """Return a number of samples as a share of all samples."""
        return count / self.n if self.n else 0.0


def shallow(profile: Profile) -> str | None:
    """Return a sentence if nearly all images use a small part of the range of their pixels; None otherwise."""
    if sum(profile.modes[mode] for mode in profile.modes if mode.endswith(PALE)) >= max(1, MOST_SHALLOW * profile.n):
        return (
            f"no pixel is below {128 - SHALLOW_VALUES} of 255: the images are pale; if their numbers were 0 to 1, they "
            "were taken for -1 to 1: state range=(0, 1), or --range 0,1"
        )
    marked = {mode: count for mode, count in profile.modes.items() if "/" in mode and not mode.endswith(PALE)}
    if not marked:
        return None
    deep = any(map(_is_deep, marked))
    alike = [count for mode, count in profile.modes.items() if _is_deep(mode) == deep]
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


def _is_deep(mode: str) -> bool:
    """Return whether images of a mode have 16 bits in their files."""
    return mode.startswith("I") or ";16" in mode


def unlike_encodings(gen: Profile, ref: Profile, names: tuple[str, str] = ("gen", "ref")) -> list[str]:
    """Return one warning for each way in which two sets are encoded so differently that scores move."""
    if not gen.n or not ref.n:
        return []
    checks = (_unlike_compression, _unlike_shapes, _unlike_colors, _unlike_videos)
    return [warning for check in checks for warning in check(gen, ref, *names)]


def _unlike_compression(gen: Profile, ref: Profile, a: str, b: str) -> Iterator[str]:
    """Yield warnings on traces of compression that one set has more of."""
    lossy = [
        profile.share(sum(count for form, count in profile.formats.items() if form not in LOSSLESS))
        for profile in (gen, ref)
    ]
    if abs(lossy[0] - lossy[1]) > MAX_SHARE_DIFFERENCE:
        yield (
            f"{percent(lossy[0])} of {a} ({_mostly(gen.formats)}) and {percent(lossy[1])} of {b} "
            f"({_mostly(ref.formats)}) are compressed with loss: its traces alone move the scores; "
            "save both sets alike, best without loss"
        )
    elif min(lossy) > MAX_SHARE_DIFFERENCE and _mostly(gen.formats) != _mostly(ref.formats):
        yield (
            f"{a} is mostly {_mostly(gen.formats)} and {b} mostly {_mostly(ref.formats)}: the traces of "
            "compression differ and move the scores; save both sets in the same way, best without loss"
        )
    quality = gen.median_quality, ref.median_quality
    if quality[0] is not None and quality[1] is not None and abs(quality[0] - quality[1]) > 5:
        yield (
            f"the JPEGs of {a} have the median quality {quality[0]}, those of {b} {quality[1]}: the traces of "
            "compression differ and move the scores; save both sets with one quality, best without loss"
        )


def _unlike_shapes(gen: Profile, ref: Profile, a: str, b: str) -> Iterator[str]:
    """Yield warnings on sizes, and on widths to heights."""
    if _unlike(gen.widths, ref.widths, MAX_SIZE_RATIO) or _unlike(gen.heights, ref.heights, MAX_SIZE_RATIO):
        yield (
            f"samples are {_span(gen.widths)} pixels wide and {_span(gen.heights)} high in {a}, {_span(ref.widths)} "
            f"and {_span(ref.heights)} in {b} (from the 10th to the 90th percentile): after resizing for the "
            "network, the smaller samples are blurrier; bring both sets to one size with one good filter"
        )
    levels = [step / 20 for step in range(21)]
    ours, theirs = ([_quantile(profile.aspects, level) for level in levels] for profile in (gen, ref))
    # Wasserstein distance between the two distributions of logarithms.
    distance = sum(abs(log(a / b)) for a, b in zip(ours, theirs, strict=True)) / len(levels)
    if distance > log(1.1):
        yield (
            f"width to height is {_span(gen.aspects)} in {a} and {_span(ref.aspects)} in {b} (from the 10th to "
            "the 90th percentile): extractors squash or crop the two sets differently; crop both to one shape"
        )


def _unlike_colors(gen: Profile, ref: Profile, a: str, b: str) -> Iterator[str]:
    """Yield warnings on color spaces, gray samples, and alpha channels."""
    if _unlike_marks(gen.spaces, ref.spaces):
        yield (
            f"{_in_other_spaces(gen.spaces)} of {a} and {_in_other_spaces(ref.spaces)} of {b} have colors that "
            "are not sRGB, by their color profile or gamma, and are read as if they were: the same colors come out "
            f"differently; {_advice_on_spaces({*gen.spaces, *ref.spaces})}"
        )
    gray = gen.share(gen.gray), ref.share(ref.gray)
    if abs(gray[0] - gray[1]) > MAX_SHARE_DIFFERENCE:
        yield (
            f"{percent(gray[0])} of {a} and {percent(gray[1])} of {b} are gray: color alone separates the sets; "
            "make both gray, or remove the gray samples, unless color is what you want to measure"
        )
    alpha = [profile.share(sum(n for mode, n in profile.modes.items() if has_alpha(mode))) for profile in (gen, ref)]
    if max(alpha) >= 0.01 and min(alpha) == 0:
        yield (
            f"{percent(alpha[0])} of {a} and {percent(alpha[1])} of {b} have an alpha channel, which is dropped, so "
            "that the colors it hides become visible: put such samples on a background of your choice"
        )


def _unlike_videos(gen: Profile, ref: Profile, a: str, b: str) -> Iterator[str]:
    if _unlike(gen.fps, ref.fps, MAX_FPS_RATIO):
        yield (
            f"{a} has {_span(gen.fps)} frames a second and {b} {_span(ref.fps)} (from the 10th to the 90th "
            "percentile): the same motion looks slower or faster to the network; bring both to the lower rate, as fps "
            "does (--fps on the command line), or use an extractor whose card sets clip.fps"
        )
    stated = [sum(profile.fps.values()) / sum(profile.frames.values()) for profile in (gen, ref) if profile.frames]
    if len(stated) == 2 and abs(stated[0] - stated[1]) > MAX_SHARE_DIFFERENCE:
        yield (
            f"{percent(stated[0])} of {a} and {percent(stated[1])} of {b} state their frame rate: the others count as "
            "having the extractor's rate, which may be too slow or too fast; store both sets as videos"
        )
    if gen.seconds and ref.seconds:
        unlike = _unlike(gen.seconds, ref.seconds, MAX_LENGTH_RATIO)
        ours, theirs = f"{_span(gen.seconds)} seconds", _span(ref.seconds)
    else:
        unlike = _unlike(gen.frames, ref.frames, MAX_LENGTH_RATIO)
        ours, theirs = (f"{_span(profile.frames)} frames" if profile.frames else "" for profile in (gen, ref))
    if unlike:
        yield (
            f"videos last {ours} in {a} and {theirs} in {b} (from the 10th to the 90th percentile): the extractor "
            "sees other parts of them, and repeats frames of short videos; cut both to one length"
        )
    if _unlike_marks(gen.colors, ref.colors):
        yield (
            f"the colors of {a} are marked {_mostly(gen.colors)} and those of {b} {_mostly(ref.colors)} (matrix "
            "and transfer function, ISO 23091-2; 16 and 18 are HDR): the same colors come out differently; encode both "
            "sets alike"
        )
    if _unlike(gen.pixel_aspects, ref.pixel_aspects, MAX_FPS_RATIO):
        yield (
            f"pixels are {_span(gen.pixel_aspects)} times as wide as high in {a} and {_span(ref.pixel_aspects)} in "
            f"{b}, and are read as squares: one set looks narrower; scale both to square pixels"
        )


def _advice_on_spaces(spaces: set[str]) -> str:
    """Return how to bring sets of these color spaces to sRGB: only by a profile can a file be converted here."""
    fixed = [name for name in (CMYK, UNREADABLE) if name in spaces]
    if not fixed:
        return "convert both sets (color='srgb', --color srgb), or save both in sRGB"
    save = f"save in sRGB what has no profile to convert it by ({', '.join(fixed)})"
    return save if spaces <= {SRGB, *fixed} else f"{save}, then convert both sets (color='srgb', --color srgb)"


def _in_other_spaces(spaces: dict[str, int]) -> str:
    """Return the share of images in other color spaces than sRGB, and the most frequent of these spaces."""
    others = {space: count for space, count in spaces.items() if space != SRGB}
    share = percent(sum(others.values()) / sum(spaces.values()))
    return f"{share} ({_mostly(others)})" if others else share


def _unlike_marks(ours: dict[str, int], theirs: dict[str, int]) -> bool:
    """Return whether the share of a mark of color differs by more than allowed, and than by chance."""
    n, m = sum(ours.values()), sum(theirs.values())
    shares = [(ours.get(mark, 0) / n, theirs.get(mark, 0) / m) for mark in ours | theirs if n and m]
    return bool(shares) and _beyond_chance([*shares, *((other, our_share) for our_share, other in shares)], n, m)


def _unlike(ours: dict[Number, int], theirs: dict[Number, int], ratio: float) -> bool:
    """Return whether two distributions differ by more than a ratio in more samples than allowed, and than by chance.

    The distance follows Kolmogorov and Smirnov, where values within the ratio count as equal.
    """
    if not ours or not theirs:
        return False
    shares = [
        (_share_below(counts, value), _share_below(other, value * ratio))
        for counts, other in ((ours, theirs), (theirs, ours))
        for value in counts
    ]
    return _beyond_chance(shares, sum(ours.values()), sum(theirs.values()))


def _beyond_chance(shares: list[tuple[float, float]], n: int, m: int) -> bool:
    """Return whether the first share of a pair is larger by more than allowed, and by chance in 5 % of pairs of sets.

    Shares are of samples with several properties in sets of n and m.
    """
    larger = NormalDist().inv_cdf(1 - 0.05 / len(shares))  # Bonferroni
    for first, second in shares:
        pooled = (n * first + m * second) / (n + m)
        error = (pooled * (1 - pooled) * (1 / n + 1 / m)) ** 0.5
        if first - second > 0.99 or first - second > max(MAX_SHARE_DIFFERENCE, larger * error):
            return True
    return False


def _share_below(counts: dict[Number, int], value: float) -> float:
    return sum(count for bound, count in counts.items() if bound <= value) / sum(counts.values())


def _span(counts: dict[Number, int]) -> str:
    """Return the range from the 10th to the 90th percentile."""
    low, high = _quantile(counts, 0.1), _quantile(counts, 0.9)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


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
    kept = dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:32])
    return kept, sum(sizes.values()) - sum(kept.values())
