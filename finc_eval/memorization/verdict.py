"""Words of an audit: its verdict and its warnings; and whether attacks falsify the guarantee that a generator states.

An attack can show that a statement is false. If none does, that shows nothing: these attacks are far from the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, expm1
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.words import percent
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.memorization.attacks import CONTROL_AUC_RANGE, Attack, AttackName
from finc_eval.memorization.copying import TailName
from finc_eval.memorization.distances import SetDistances
from finc_eval.memorization.settings import AUDIT_ALPHA, check_guarantee
from finc_eval.numerics.ceilings import Ceilings

NearerTo = Literal["training", "real"]
"""Sets that generated samples are nearer to than fresh samples: the training set, or real samples, of whatever set."""

SHOWN_BY: dict[TailName, str] = {
    "calibrated": "their embeddings are nearer to the training set than the embeddings of fresh samples",
    "hash": "their perceptual hashes are nearer to the training set than the hashes of fresh samples",
    "views": "mirrored, widened or shifted, they are nearer to the training set than fresh samples",
}
"""Evidence that samples are altered copies, by the test that finds most of them."""


UNLIKE = (
    "Training set and holdout are not of one distribution, so nothing is concluded from how near samples are to the "
    "training set."
)
"""Second sentence of the verdict if the holdout is another set."""


@dataclass(frozen=True)
class CopiesFound(Record):
    """Number of copies in the generated set.

    Attributes:
        same_embedding: number of generated samples with the same embedding as a training sample.
        fresh_same_embedding: number of fresh samples with one.
        same_pixels: number of generated samples with the same pixels as a training sample; None without pixels.
        fresh_same_pixels: number of fresh samples with them; None without pixels.
        at_least: lower bound of the number of copies, exact and altered ones, by the tests of single samples; 0 if none
            of them finds any. The bounds hold at the level of these tests.
        shown_by: test that gives this bound; None if there is none.
        hash_bits: median number of bits in which the hashes of suspicious samples and their training pictures differ,
            and the same of all fresh samples; None without pictures or suspicious samples.
    """

    same_embedding: int
    fresh_same_embedding: int
    same_pixels: int | None = None
    fresh_same_pixels: int | None = None
    at_least: int = 0
    shown_by: TailName | None = None
    hash_bits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if (self.same_pixels is None) != (self.fresh_same_pixels is None):
            raise DataError("it counts equal pixels of generated samples alone, or of fresh samples alone")


def verdict(
    copies: CopiesFound,
    n: int,
    fresh: int,
    *,
    nearer_to: NearerTo | None,
    share: float,
    images: bool,
    unlike: bool = False,
) -> str:
    """Return the verdict as a sentence.

    Samples are nearer to `nearer_to` than to fresh samples, `share` of them to the training set, as if it and the
    holdout were of one size. If these are `unlike` in distribution, only equal samples are copies.
    """
    single, many = ("a training image", "training images") if images else ("a training sample", "training samples")
    same, fresh_same, how = copies.same_embedding, copies.fresh_same_embedding, "with equal embeddings"
    if copies.same_pixels and copies.fresh_same_pixels is not None:
        same, fresh_same, how = copies.same_pixels, copies.fresh_same_pixels, "pixel by pixel"
    if unlike:
        copies = replace(copies, at_least=0, shown_by=None)
    evidence, bits = "", copies.hash_bits
    if copies.shown_by and copies.at_least > same:
        evidence = f": {SHOWN_BY[copies.shown_by]}"
        if copies.shown_by == "hash" and bits:
            evidence = (
                f": {bits[0]:g} of 256 bits of their perceptual hashes differ, in fresh samples {bits[1]:g} (medians)"
            )
    if same:
        are = f"is {single}" if same == 1 else f"are {many}"
        sentence = f"{same:,} of {n:,} samples {are}, {how}"
        if fresh_same:
            sentence += f" (so {'is' if fresh_same == 1 else 'are'} {fresh_same:,} of {fresh:,} fresh samples)"
        if evidence:
            sentence += f"; with altered copies it is at least {copies.at_least:,}"
    elif evidence:
        are = f"is {single}" if copies.at_least == 1 else f"are {many}"
        sentence = f"At least {copies.at_least:,} of {n:,} samples {are}, altered"
    elif nearer_to == "training":
        return (
            "Samples are nearer to the training set than fresh samples are, but no single sample is shown to be a copy."
        )
    elif nearer_to == "real":
        return (
            f"Samples are nearer to real {'images' if images else 'samples'} than fresh samples are, but nothing shows "
            f"them nearer to the training set than to the holdout: {percent(share, 1)} of them are (DCR share; 50 % "
            "without copies). No copies were found."
        )
    else:
        opening = f"No {'exact ' if unlike else ''}copies of {many} were found among {n:,} samples."
        return f"{opening} {UNLIKE}" if unlike else opening
    return f"{sentence}{evidence}." + (f" {UNLIKE}" if unlike else "")


@dataclass(frozen=True)
class StatedGuarantee(Record):
    """A statement that a generator was trained with (ε, δ)-differential privacy for each training sample.

    Attributes:
        epsilon, delta: guarantee as stated by the trainer.
        ceilings: the most that any (ε, δ)-private mechanism allows an attacker.
        falsified_by: attacks whose lower bounds exceed these ceilings, at the confidence of the audit for all together.
    """

    epsilon: float
    delta: float
    ceilings: Ceilings
    falsified_by: tuple[AttackName, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_falsified(self) -> bool:
        """True if an attack got more than the statement allows."""
        return bool(self.falsified_by)


def judge_guarantee(epsilon: float, delta: float, attacks: Sequence[Attack], nearer: bool) -> StatedGuarantee:
    """Hold a stated guarantee against attacks, by their bounds of ε and of the AUC.

    An attack whose control is not sound is passed over: it distinguishes members from others by more than membership.
    So is every attack unless samples are `nearer` to the training set by the measures of copying: a holdout of another
    distribution, if the test of it missed that, takes in attacks alone.
    """
    ceilings = guarantee_ceilings(epsilon, delta)
    more = (attack for attack in attacks if nearer and attack.control_is_sound and exceeds(attack, epsilon, ceilings))
    return StatedGuarantee(epsilon, delta, ceilings, tuple(attack.name for attack in more))


def exceeds(attack: Attack, epsilon: float, ceilings: Ceilings) -> bool:
    """Return whether an attack got more than a guarantee allows."""
    return attack.statistics.epsilon_lower_bound > epsilon or attack.statistics.auc_interval[0] > ceilings.auc


def guarantee_ceilings(epsilon: float, delta: float) -> Ceilings:
    """Return the most that (ε, δ) allows an attacker (Kairouz et al. 2015).

    TPR ≤ min(e^ε α + δ, 1 − e^−ε (1 − δ − α)) at false positives α: two straight lines, which meet at
    α = (1 − δ)/(1 + e^ε). A Gaussian mechanism of the same (ε, δ) allows less (`guarantee.ceilings`), but the
    statement does not say that it is one.
    """
    check_guarantee(epsilon, delta)
    growth = exp(epsilon)
    meet = (1 - delta) / (1 + growth)

    def tpr(alpha: float) -> float:
        return min(growth * alpha + delta, 1 - (1 - delta - alpha) / growth, 1.0)

    first = meet * (delta + tpr(meet)) / 2
    second = (1 - delta - meet) * (tpr(meet) + 1) / 2
    return Ceilings(
        auc=first + second + delta,
        advantage=(expm1(epsilon) + 2 * delta) / (growth + 1),
        tpr_at_1_percent=tpr(0.01),
        tpr_at_01_percent=tpr(0.001),
    )


MIN_RESOLVED_NON_MEMBERS = 10_000  # number of non-members from which on a rate of 0.1 % false positives means something


def set_warnings(
    infos: Mapping[str, SetInfo], overlap: int, measured: SetDistances, spacings: NDArray[np.float64]
) -> Iterator[str]:
    """Yield warnings about the sets."""
    n, m = infos["train"].n, infos["holdout"].n
    if n != m:
        yield (
            f"train has {n:,} samples and holdout {m:,}: all are used, because copies of samples that are left out "
            "would not be seen, and the DCR share is given as for equal sizes"
        )
    if m < MIN_RESOLVED_NON_MEMBERS:
        yield (
            f"holdout has {m:,} samples: rates at 0.1 % false positives are rough below "
            f"{MIN_RESOLVED_NON_MEMBERS:,} samples"
        )
    if overlap:
        yield (
            f"{overlap} of the {m:,} samples of holdout have the same embedding as a training sample: they make the "
            "control look like copies, and hide some copies"
        )
    held = int((measured.to_non_members.distances[:, 0] == 0).sum())
    if held:
        yield (
            f"{held} generated samples have the same embedding as a holdout sample: make sure that the generator was "
            "not trained on the holdout"
        )
    repeated = int((spacings == 0).sum())
    if repeated:
        yield (
            f"{repeated:,} of the {n:,} training samples are duplicates of others: AuthPct and NNDR see no near copies "
            "of them"
        )
    for label, info in infos.items():
        yield from info.warnings(label)
        if info.clip and info.clip.windows > 1:
            yield f"the windows of one video of {label} are taken for independent, so that intervals are too narrow"


def attack_warnings(attacks: Sequence[Attack], same_law: float) -> Iterator[str]:
    """Yield warnings about the attacks, and about a holdout whose p-value of the training set's law is small."""
    if same_law <= AUDIT_ALPHA:
        yield (
            f"training set and holdout are not of one distribution (p = {same_law:.2g}): nearness to the training set "
            "and attacks show that as well, so no copying is concluded from them, and no guarantee is held against "
            "them; pass a holdout that was drawn as the training set was"
        )

    for attack in attacks:
        if not attack.control_is_sound:
            yield (
                f"the attack {attack.name} also distinguishes train from holdout by samples that cannot be copies (AUC "
                f"{attack.control.auc:.3f}, not within {CONTROL_AUC_RANGE[0]} to {CONTROL_AUC_RANGE[1]}): the two are "
                "not of one distribution, and it measures that"
            )
    if "domias" not in [attack.name for attack in attacks]:
        yield (
            "the DOMIAS attack, often the strongest, is left out: it needs further samples that are in none of the "
            "sets (audit --reference)"
        )
