"""Shares of three faults that a comparison would have found, for a reader of "nothing found".

Blurred pictures stand for looks, and are imitated: some pictures are blurred and measured, and the effect of each share
of them on the columns of a look follows from the measured values of both sets. Lost kinds come from the tests of kinds,
and copies from the numbers of samples alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log, log10, sqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy.special import gammaln, ndtr, ndtri

from finc_eval.core.progress import silent
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.words import join_words, percent
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import counts_by_hash, sample_hashes
from finc_eval.findings.copies import COPIED
from finc_eval.naming.measured import LOOKED, Measured, MeasuredSets, columns_of, exchange_columns
from finc_eval.naming.repeated import REPEATED
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import TRAITS, measure_looks
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import BESIDE_ALPHA
from finc_eval.partitions.kmeans import FIT_SAMPLES

BLURRED = 32  # pictures that are blurred and measured
BLUR = 1 / 40  # radius of the blur, in parts of the shorter side: 1.6 pixels of 64
SHARPNESS = [trait.name for trait in TRAITS].index("sharpness")  # place of the trait that shows blur

AIMED = 0.9
"""Probability that a column of blur is significant: a look may still have another name, and pictures are seldom all as
sharp. Of 80 blurs of the share that is said, a look with their name found 72."""

EXCHANGES = 499  # exchanges behind the critical value of all looks
RATIO = 8  # largest ratio of repetitions of the samples of both sets, in which the sizes of the sets are imitated

OF_CLASS = 1.5
"""Share of a class of photographs that is found as a kind, in parts of that of a separate kind, which has all of it and
nothing else. Of 60 planted losses of a class, 33 were found at 1.0 times that share, 43 at 1.3, 55 at 1.6."""

RARER = 2.2
"""Times as many samples of both sets that show half of a class or of copies. A number of samples is needed, which grows
slowly with the number of kinds: of 48 planted losses of half of a class, 38 were found in 2.2 times as many."""


@dataclass(frozen=True)
class Visible(Record):
    """Shares that would have been found with a probability of about 80 %; None where it is not known.

    Attributes:
        blurred: share of clearly blurred pictures.
        lost: share of a class that it lacks, in the reference.
        copies: share of exact copies of the reference.
        times: how many times as many samples of both sets would show half of each share; None if no number would, as
            where no more pictures are measured, or kinds are not fitted to more samples.
    """

    blurred: float | None = None
    lost: float | None = None
    copies: float | None = None
    times: float | None = None

    @classmethod
    def of_all(cls, every: Sequence[Visible]) -> Visible:
        """Return the shares that would have been found in each of several sets: the largest, where all know one."""
        shares = {name: [getattr(each, name) for each in every] for name in ("blurred", "lost", "copies")}
        return cls(**{name: None if None in found else max(found, default=None) for name, found in shares.items()})

    @property
    def others(self) -> bool:
        """True if more is known than the share of a kind."""
        return self.blurred is not None or self.copies is not None

    def sentence(self, sizes: tuple[int, int]) -> str:
        """Say the shares, and which sizes would show half, given numbers of samples; "" if nothing is known.

        Example:
            >>> Visible(0.104, 0.09, 0.08, 4.0).sentence((150, 150))
            'A blurred tenth, a lost class of 9 % or copies of 8 % would have been seen; 600 samples show half.'
        """
        parts = [] if self.blurred is None else [f"a blurred {_share(self.blurred, 'tenth')}"]
        parts += [] if self.lost is None else [f"a lost class of {_share(self.lost)}"]
        parts += [] if self.copies is None else [f"copies of {_share(self.copies)}"]
        if not parts:
            return ""
        said = join_words(parts, "or")
        half = "" if self.times is None else f"; {_sizes([self.times * size for size in sizes])} samples show half"
        return f"{said[0].upper()}{said[1:]} would have been seen{half}."


def _share(value: float, of_tenth: str = "") -> str:
    """Write a share in percent, rounded up, with a decimal below 3 %; `of_tenth` stands for about a tenth."""
    if of_tenth and 0.095 <= value <= 0.105:
        return of_tenth
    decimals = int(value < 0.03)
    scale = 100 * 10**decimals
    return percent(ceil(value * scale - 1e-9) / scale, decimals)


def _sizes(numbers: list[float]) -> str:
    """Write numbers of samples with two digits, rounded up: "600", or "400 against 1,600"."""
    written = []
    for number in numbers:
        step = 10 ** max(floor(log10(number)) - 1, 0)
        written.append(f"{ceil(number / step - 1e-9) * step:,}")
    return " against ".join(dict.fromkeys(written))


def visible_among(found: Sequence[tuple[int, Visible]], sets: int) -> Visible | None:
    """Return what would have been found among so many sets, or the next number that is known; None if none is."""
    return next((visible for number, visible in found if number >= sets), None)


def find_visible(
    sets: Mapping[str, Embeddings],
    known: MeasuredSets,
    lost: float | None,
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    *,
    equal: int | None = None,
    run: Run | None = None,
    among: int = 1,
) -> Visible:
    """Return what a comparison of two sets, "gen" and "ref", that found nothing would have found.

    Args:
        sets: embeddings, by label.
        known: measurements of both sets; without pictures, nothing is said of blur.
        lost: smallest share of a separate kind that would have been found; None if kinds were not asked for.
        seed: random seed of the exchanges.
        blocks: block of each sample of paired sets, by label; exchanges keep to blocks.
        equal: number of generated samples that equal a reference sample; default: they are counted. Nothing is said of
            copies if there are such samples: chance may give them.
        run: run, whose device is used.
        among: number of sets that are compared with one reference and share an error.
    """
    blurred, times = visible_blur(sets, known, seed, blocks, among)
    equal = count_equal(sets, run) if equal is None else equal
    n, m = sets["gen"].n, sets["ref"].n
    copies = None if equal else smallest_copied(n, m, among)
    of_class = None if lost is None or lost * OF_CLASS >= 1 else lost * OF_CLASS
    more = max(times or 0.0, RARER)
    is_shown = blurred is None or times is not None
    is_shown &= all(samples.stands_for is None for samples in sets.values())  # a sketch keeps as many of more samples
    is_shown &= of_class is None or more * (n + m) <= FIT_SAMPLES
    is_shown &= copies is None or (smallest_copied(ceil(more * n), ceil(more * m), among) or 1.0) <= copies / 2
    return Visible(blurred, of_class, copies, more if is_shown else None)


def count_equal(sets: Mapping[str, Embeddings], run: Run | None = None) -> int:
    """Return the number of generated samples that equal a reference sample."""
    counts = counts_by_hash(sets, sample_hashes(sets, replace(Run.of(run), progress=silent)))
    _, own, others = counts["gen"].beside(counts["ref"])
    return int(own[others > 0].sum())


def smallest_copied(n: int, m: int, among: int = 1) -> float | None:
    """Return the smallest share of copies of the reference that `hold_copies` finds; None if it finds none.

    All other samples are unlike. Chance divides c pairs of equal samples so that each set has one of each pair with
    probability 2^c · C(n + m − 2c, m − c) / C(n + m, m).

    Args:
        n: number of generated samples.
        m: number of reference samples.
        among: number of sets that are compared with one reference and share an error.
    """

    def log_choose(total: Array, part: Array) -> Array:
        return np.asarray(gammaln(total + 1) - gammaln(part + 1) - gammaln(total - part + 1))

    pairs = np.arange(1, min(n, m) + 1, dtype=float)
    both = np.full(len(pairs), float(n + m))
    chance = pairs * log(2) + log_choose(both - 2 * pairs, m - pairs) - log_choose(both, np.full(len(pairs), float(m)))
    # A half of the level: p-values are of random parts.
    level = min(COPIED, level_of_each(BESIDE_ALPHA, among)) / 2
    is_found = (chance <= log(level)) & (pairs >= REPEATED * n)
    return float(pairs[is_found.argmax()] / n) if is_found.any() else None


def visible_blur(
    sets: Mapping[str, Embeddings],
    known: MeasuredSets,
    seed: int,
    blocks: Mapping[str, NDArray[np.int64]] | None = None,
    among: int = 1,
) -> tuple[float | None, float | None]:
    """Return the smallest share of blurred pictures that looks show, and the samples that show half of it.

    The samples are in parts of those at hand; None for what none would show.
    """
    traits, measured = known
    first = next((at for at, trait in enumerate(traits) if trait == TRAITS[0]), None)
    blurred = None if first is None else _blur_some(sets["gen"], measured["gen"].rows, seed)
    if first is None or blurred is None:
        return None, None
    table, columns = columns_of(traits, measured)
    rows = {label: one.rows for label, one in measured.items()}
    exchanged = exchange_columns(table, sets, rows, seed, blocks, EXCHANGES)
    if exchanged is None or not columns:
        return None, None
    critical = _critical(np.abs(exchanged.z[1:]).max(1), among)
    place = first + SHARPNESS
    seen = exchanged.variances[0]
    scales = np.sqrt(np.where(seen > 0, seen / _independent(table), 1.0))  # of what does not vary, as if independent
    scale = {
        column.tail: float(factor) for column, factor in zip(columns, scales, strict=True) if column.place == place
    }
    values = {label: one.values[:, place] for label, one in measured.items()}
    n = len(values["gen"])

    def is_shown(count: int) -> bool:
        return _times(critical, *_effects(count / n, values, blurred, scale), 1.0) is not None

    counts = range(1, n + 1)
    least = bisect_left(counts, True, key=is_shown)
    if least == len(counts):
        return None, None
    share, most = counts[least] / n, LOOKED / max(map(len, values.values()))
    return share, _times(critical, *_effects(share / 2, values, blurred, scale), most)


def _critical(largest: Array, among: int) -> float:
    """Return the value that the largest of all columns exceeds at the level of one of several sets.

    `largest` has it in each exchange, shape (r,). Exchanges reach the level of one set; for the level of one of
    several, columns are taken for as many independent normal ones as give the same level of one set.
    """
    found = float(np.quantile(largest, 1 - BESIDE_ALPHA))
    return -float(ndtri(level_of_each(ndtr(-found), among)))


def _times(critical: float, z: Array, errors: Array, most: float) -> float | None:
    """Return in how many times as many samples a column exceeds the critical value; None if not in the most.

    `z` are effects and `errors` their errors, (columns,); the errors of the mean and of the tails are taken for
    independent.
    """
    # 0.1: step in which the sizes are told apart; 1e-3: the error where all of a tail is blurred.
    for times in np.arange(1, most + 0.05, 0.1).tolist():
        missed = ndtr((critical - z * sqrt(times)) / np.maximum(errors, 1e-3))
        if 1 - missed.prod() >= AIMED:
            return float(times)
    return None


def _blur_some(samples: Embeddings, rows: NDArray[np.int64], seed: int) -> Array | None:
    """Blur some of these pictures, and measure their sharpness, shape (k,); None if they are not at hand."""
    chosen = np.random.default_rng(seed).permutation(rows)[:BLURRED]
    images = samples.images_at(chosen)
    return None if images is None else measure_looks([_blur(image) for image in images])[0][:, SHARPNESS]


def _blur(image: Image.Image) -> Image.Image:
    return image.convert("RGB").filter(ImageFilter.GaussianBlur(BLUR * min(image.size)))


def _independent(table: Mapping[str, Array]) -> Array:
    """Return the variance of each difference of means, (columns,), as if all samples were independent."""
    return np.asarray(np.maximum(sum(one.var(0, ddof=1) / len(one) for one in table.values()), 1e-12))


def _effects(
    share: float, values: Mapping[str, Array], blurred: Array, scale: Mapping[int, float]
) -> tuple[Array, Array]:
    """Return the effects of a share of blurred pictures on the columns of sharpness, and the errors of these effects.

    Both have shape (columns,), in standard errors as the test estimates them, which takes the share for a chance. The
    errors do not: a set has the share. Both sets are taken for samples of one law, that of all
    samples together: each is imitated by all of them, in the ratio of their sizes, and the share of the generated one
    is replaced. `scale` has the ratio of the standard error of each tail to that of independent samples.
    """
    pooled = np.concatenate([*values.values()])
    n, m = (len(values[label]) for label in ("gen", "ref"))
    ratio = Fraction(n, m).limit_denominator(RATIO)
    repeats = {"gen": max(1, min(RATIO, ratio.numerator)), "ref": ratio.denominator}
    mixed = np.random.default_rng(0).permutation(pooled)
    made = {label: np.tile(mixed, times) for label, times in repeats.items()}
    count = round(share * len(made["gen"]))
    made["gen"][:count] = np.resize(blurred, count)
    measured = {label: Measured(np.arange(len(each)), each[:, None]) for label, each in made.items()}
    table, columns = columns_of([TRAITS[SHARPNESS]], measured)
    gen, ref = table["gen"], table["ref"].var(0) / m
    scales = np.array([scale.get(column.tail, 1.0) for column in columns])
    inside = sum(len(part) / len(gen) * part.var(0) for part in (gen[:count], gen[count:]) if len(part))
    estimated, real = (np.maximum(spread / n + ref, 1e-12) for spread in (gen.var(0), inside))
    differences = np.abs(gen.mean(0) - table["ref"].mean(0))
    return differences / (scales * np.sqrt(estimated)), np.sqrt(real / estimated)
