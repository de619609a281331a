"""Questions about a kind: do its members have a property, or more of a trait, than others? With their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.extractors.networks import motion
from finc_eval.naming.classes import WIDEST, sum_up
from finc_eval.naming.evidence import TRAIT, Evidence
from finc_eval.naming.properties import TEXT_COLUMNS, Indices, Properties, SampledSets

MIN_WITH = 3
"""Samples that must have a property before it is tested; rarer ones cannot become significant (Tarone 1990)."""

MORE = 0.2  # difference between the shares of members and others from which a property describes a kind

OF_WIDEST = 0.8
"""Share of the members from which a noun above more than `WIDEST` of all classes is said.

The last layer mistakes 24 classes of small photographs for many others. It saw .86 to 1 of 50 members of each as
animals, and .78 of a mixture: a third were frogs, a quarter spiders, and the others random."""


@dataclass(frozen=True)
class Question:
    """A property, asked of a kind."""

    kind: int
    evidence: Evidence  # the property, its shares, and its p-value
    strength: float  # strength of the property among all of its source, the largest first
    large: bool  # whether the difference is large enough for a name
    is_range: bool = False  # whether the property is a range of numbers or dates
    # part of what members are seen as more than others that is of the class or noun; else the share of the members
    part: float = 0.0
    is_tested: bool = True  # False for a class of too few samples, which may be the example of a noun


def questions_of(panel: SampledSets, properties: Properties) -> Iterator[Question]:
    """Yield one question for each kind and property, with the p-value of Fisher's exact test."""
    member = (panel.members & properties.known).astype(np.int64)
    compared = panel.others & panel.same_sets if properties.are_ranges else panel.others
    other = (compared & properties.known).astype(np.int64)
    members_with, others_with = member @ properties.has, other @ properties.has
    members, others = member.sum(1, keepdims=True), other.sum(1, keepdims=True)
    p_values = enrichment_p(members_with, members, others_with, others)
    share_members, share_others = members_with / np.maximum(members, 1), others_with / np.maximum(others, 1)
    part = share_members
    if properties.weights is not None and properties.tree is not None:
        mean_members, mean_others = (
            mask @ properties.weights / np.maximum(count, 1) for mask, count in ((member, members), (other, others))
        )
        part, strength = sum_up(mean_members, mean_others, properties.tree)
    elif properties.source in TEXT_COLUMNS:
        strength = log_odds(members_with, others_with)
    else:
        # The strongest of ranges that lie in each other is the narrowest that most members and few others are in.
        strength = share_members - share_others if properties.are_ranges else share_members
    # Which properties are frequent enough depends on the margins alone, which the exact test holds fixed.
    enough = members_with + others_with >= MIN_WITH
    if properties.asked is not None:
        enough &= properties.asked[:, None]
    asked, least = enough, np.zeros(len(properties.values))
    if properties.tree is not None:  # A class of few samples may be the example of a noun.
        asked = enough | (strength > 0) & (np.arange(len(properties.values)) < len(properties.tree.below))
        least[properties.tree.parts > WIDEST] = OF_WIDEST
    for kind, value in np.argwhere(asked):
        ours, theirs = float(share_members[kind, value]), float(share_others[kind, value])
        p_value = float(p_values[kind, value]) if enough[kind, value] else 1.0
        evidence = Evidence(properties.source, properties.values[value], ours, theirs, p_value)
        yield Question(
            kind=int(kind),
            evidence=evidence,
            strength=float(strength[kind, value]),
            large=ours - theirs >= MORE and ours >= least[value],
            is_range=properties.are_ranges,
            part=float(part[kind, value]),
            is_tested=bool(enough[kind, value]),
        )


Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def enrichment_p(members_with: Counts, members: Counts, others_with: Counts, others: Counts) -> Floats:
    """Compute one-sided p-values of Fisher's exact test: members have a property more often than others.

    The number of members with the property is hypergeometric given the margins. All arrays broadcast.
    """
    from scipy.stats import hypergeom  # slow to import, and few comparisons need it

    return np.asarray(
        hypergeom.sf(members_with - 1, members + others, members_with + others_with, members), dtype=np.float64
    )


def larger_p(members: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Compute one-sided p-values of "members are larger", shape (t,), by Mann and Whitney's test, and the AUCs.

    Measurements have the shapes (m, t) of members and (o, t) of others. The AUC is P(member > other) + ½ P(equal).
    """
    from scipy.stats import mannwhitneyu

    # The normal approximation, corrected for ties; its tails are heavier than the tails of the bounded rank sum.
    statistic, p_values = mannwhitneyu(members, others, alternative="greater", axis=0, method="asymptotic")
    # Columns without two different values have a variance of zero.
    return np.nan_to_num(p_values, nan=1.0), statistic / (len(members) * len(others))


def log_odds(members_with: Counts, others_with: Counts) -> Floats:
    """Compute z-scores of log-odds ratios of words, from the numbers of members and of others with each, shape (…, w).

    Monroe, Colaresi and Quinn 2008, "Fightin' Words", eq. 16 (δ), 20 (variance) and 22 (z). The informative Dirichlet
    prior is the distribution of words in both parts together, α_w = 500 · f_w. A single word has no odds against
    others: its z-score is 0.
    """
    if members_with.shape[-1] == 1:
        return np.zeros(np.broadcast_shapes(members_with.shape, others_with.shape))
    together = members_with + others_with + 1e-9
    prior = 500 * together / together.sum(-1, keepdims=True)
    ours, theirs = members_with + prior, others_with + prior
    odds_ours, odds_theirs = (part / (part.sum(-1, keepdims=True) - part) for part in (ours, theirs))
    return np.asarray(np.log(odds_ours / odds_theirs) / np.sqrt(1 / ours + 1 / theirs), dtype=np.float64)


SIDE = 64  # side of the thumbnails in pixels
FEWEST = 10  # members from which ranks are tested: the normal approximation of the rank sum needs them
MOST_DEVIATIONS = 1000.0  # standard deviations up to which distances from the others decide the order of traits
COLORED = 0.25  # saturation and brightness from which a pixel has a hue

HUES = {"red": (-15, 15), "yellow": (15, 70), "green": (70, 165), "blue": (165, 255), "purple": (255, 345)}
"""Hues of each color, in degrees."""

MEASURED = ("brightness", "contrast", "sharpness", "saturation", *HUES, "size", "border")
"""Measurements of a picture, in order."""

TRAITS = {
    "brighter": ("brightness", 1),
    "darker": ("brightness", -1),
    "with more contrast": ("contrast", 1),
    "with less contrast": ("contrast", -1),
    "sharper": ("sharpness", 1),
    "blurrier": ("sharpness", -1),
    "more colorful": ("saturation", 1),
    "grayer": ("saturation", -1),
    "redder": ("red", 1),
    "yellower": ("yellow", 1),
    "greener": ("green", 1),
    "bluer": ("blue", 1),
    "more purple": ("purple", 1),
    "larger": ("size", 1),
    "smaller": ("size", -1),
    "with borders": ("border", 1),
}
"""Measurement behind each trait, and whether more or less of it is meant."""


MOTION = "motion"  # extractor whose embeddings tell how a clip moves

MOTION_TRAITS = {
    "with repeated frames": ("repetition", 1),
    "with jumps between frames": ("jump", 1),
    "with a cut": ("cut", 1),
    "looping": ("loop", 1),
    "shaking": ("turning", 1),
    "flickering": ("flicker", 1),
    **{
        f"flickering at every {word} frame": (f"flicker of {period} frames", 1)
        for period, word in zip(motion.PERIODS, ("second", "third", "fourth", "fifth", "sixth"), strict=True)
    },
    "juddering": ("judder", 1),
    "with dropped frames": ("skipping", 1),
    "with alternating sharpness": ("alternation", 1),
    "blurring over time": ("sharpening", -1),
    "getting sharper": ("sharpening", 1),
    "slowing down": ("speeding up", -1),
    "speeding up": ("speeding up", 1),
    "getting brighter": ("brightening", 1),
    "getting darker": ("brightening", -1),
    "with less motion": ("speed", -1),
    "with more motion": ("speed", 1),
    "with uneven motion": ("unevenness", 1),
    "moving to the right": ("right", 1),
    "moving to the left": ("right", -1),
    "moving down": ("down", 1),
    "moving up": ("down", -1),
    "moving outward": ("outward", 1),
    "moving inward": ("outward", -1),
}
"""Measurement behind each trait of motion, and whether more or less of it is meant."""


def measure(image: Image.Image) -> NDArray[np.float64]:
    """Measure a picture: shares, in the order of `MEASURED`, and its size in pixels."""
    width, height = image.size
    shown = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX))
    gray = (shown / 255) @ np.array(motion.LUMA)
    deviation = gray.std()
    laplacian = 4 * gray[1:-1, 1:-1] - gray[:-2, 1:-1] - gray[2:, 1:-1] - gray[1:-1, :-2] - gray[1:-1, 2:]
    channels = np.moveaxis(shown, 2, 0)  # a reduction of so short an axis is slow, and of bytes it is fast
    largest, smallest = (reduce(how, channels) / 255 for how in (np.maximum, np.minimum))
    saturation = (largest - smallest) / np.maximum(largest, 1e-9)
    colored = (saturation > COLORED) & (largest > COLORED)
    # The share of the side that is a uniform margin: the widest frame of one value.
    lines = np.concatenate([gray, gray[::-1], gray.T, gray.T[::-1]]).reshape(4, SIDE, SIDE)[:, : SIDE // 4]
    corner = gray[0, 0]
    uneven = np.maximum(lines.max((0, 2)), corner) - np.minimum(lines.min((0, 2)), corner) > 2 / 255
    border = float(uneven.argmax()) / SIDE if uneven.any() else 0.25
    return np.array(
        [
            gray.mean(),
            deviation,
            laplacian.std() / max(deviation, 1 / 255),  # relative to the contrast
            saturation.mean(),
            *_shares_of_hues(channels[:, colored] / 255, colored.size),
            width * height,
            border,
        ]
    )


def _shares_of_hues(colors: Floats, pixels: int) -> list[float]:
    """Return the shares of hues, in the order of `HUES`, by the colored pixels, (3, colored) in [0, 1], among all."""
    red, green, blue = colors
    # The hue as an angle in the plane of opponent colors, in [-180, 180].
    angle = np.degrees(np.arctan2(np.sqrt(3) * (green - blue), 2 * red - green - blue))

    def below(degrees: float) -> int:
        """Count angles below a number of degrees, which may be of the next turn."""
        return int(np.count_nonzero(angle < degrees)) + int(np.count_nonzero(angle < degrees - 360))

    return [(below(high) - below(low)) / pixels for low, high in HUES.values()]


def trait_questions(panel: SampledSets) -> Iterator[Question]:
    """Yield the tests of all traits of all kinds; nothing where no pictures are at hand.

    Members are compared with others of their own sets: what all pictures of a set look like, as by a brighter camera,
    does not mark a kind.
    """
    wanted = np.zeros(panel.members.shape[1], bool)
    members = [_some(mask, 50) for mask in panel.members]
    others = [_some(mask, 300) for mask in panel.others & panel.same_sets]
    for own, other in zip(members, others, strict=True):
        if min(len(own), len(other)) >= FEWEST:  # pictures of others are not read: nothing is asked of their kinds
            wanted[own] = wanted[other] = True
    if all(extractor_of(samples.space) == MOTION for samples in panel.sets.values()):
        moving = _measure(panel, wanted, motion.MEASURED, _motion)
        yield from _ask(members, others, moving, motion.MEASURED, MOTION_TRAITS)
    yield from _ask(members, others, _measure(panel, wanted, MEASURED, _looks), MEASURED, TRAITS)


Read = Callable[[Embeddings, Indices], ArrayLike | None]
"""Function that measures samples of a set, which are given by their indices; None where there is nothing to read."""


def _ask(
    members: Sequence[NDArray[np.int64]],
    others: Sequence[NDArray[np.int64]],
    measured: NDArray[np.float64],
    names: Sequence[str],
    traits: Mapping[str, tuple[str, int]],
) -> Iterator[Question]:
    """Yield the tests of some traits of all kinds, from measurements (samples, names)."""
    columns, signs = zip(*((names.index(name), sign) for name, sign in traits.values()), strict=True)
    for kind, (own, other) in enumerate(zip(members, others, strict=True)):
        mine, theirs = (rows[~np.isnan(rows[:, 0])] for rows in (measured[own], measured[other]))
        if len(mine) < FEWEST or len(theirs) < FEWEST:
            continue
        mine, theirs = (rows[:, columns] * signs for rows in (mine, theirs))
        p_values, auc = larger_p(mine, theirs)
        shares = _shares_apart(mine, theirs)
        # Traits that all members have come in the order of their distance from the others.
        further = np.clip((mine.mean(0) - theirs.mean(0)) / (theirs.std(0) + 1e-9), -MOST_DEVIATIONS, MOST_DEVIATIONS)
        strengths = auc + further / (MOST_DEVIATIONS * len(mine) * len(theirs))
        for name, p_value, area, strength, *both in zip(traits, p_values, auc, strengths, *shares, strict=True):
            evidence = Evidence(TRAIT, name, float(both[0]), float(both[1]), float(p_value))
            # 0.7: chance that a member has more of a trait than another sample from which the trait describes the kind.
            yield Question(kind, evidence, float(strength), bool(area >= 0.7), part=float(both[0]))


def _shares_apart(members: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return the shares of members and others above the value that tells them apart best, for each column.

    Arguments are measurements, shapes (members, columns) and (others, columns); results have shape (columns,).
    """
    pairs = []
    for mine, theirs in zip(members.T, others.T, strict=True):
        values = np.unique(np.concatenate([mine, theirs]))
        own, rest = (1 - np.searchsorted(np.sort(side), values, "left") / len(side) for side in (mine, theirs))
        best = int((own - rest).argmax())
        pairs.append((own[best], rest[best]))
    shares = np.array(pairs)
    return shares[:, 0], shares[:, 1]


def _some(mask: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return the places of at most `count` marked samples, spread evenly over the sets."""
    chosen = np.flatnonzero(mask)
    return chosen[np.linspace(0, len(chosen) - 1, min(count, len(chosen))).round().astype(np.int64)]


def _measure(panel: SampledSets, wanted: NDArray[np.bool_], names: Sequence[str], read: Read) -> NDArray[np.float64]:
    """Measure the wanted samples, shape (samples, names); NaN for others, and where there is nothing to read."""
    measured = np.full((len(wanted), len(names)), np.nan)
    for samples, rows, place in panel.by_set():
        asked = np.flatnonzero(wanted[place])
        if len(asked) and (found := read(samples, rows[asked])) is not None:
            measured[place.start + asked] = found
    return measured


def _looks(samples: Embeddings, rows: Indices) -> list[NDArray[np.float64]] | None:
    images = samples.images_at(rows)
    return None if images is None else [measure(image) for image in images]


def _motion(samples: Embeddings, rows: Indices) -> NDArray[np.float64]:
    return np.asarray(motion.measurements(samples.rows_at(rows)).cpu().numpy())
