"""The verdict of an audit in plain words: how many samples are copies, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from finc_eval.core.record import Record
from finc_eval.core.words import percent
from finc_eval.memorization.copying import TailName

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
class Copies(Record):
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


def verdict(
    copies: Copies, n: int, fresh: int, *, nearer_to: NearerTo | None, share: float, images: bool, unlike: bool = False
) -> str:
    """Return the verdict as a sentence.

    Args:
        copies: number of copies.
        n: number of generated samples.
        fresh: number of fresh samples.
        nearer_to: what samples are nearer to than fresh samples are; None if nothing shows that they are.
        share: share of samples nearer to the training set than to the holdout, as if these were of one size.
        images: whether the samples are images.
        unlike: whether training set and holdout are not of one distribution: only equal samples are then copies.
    """
    one, many = ("a training image", "training images") if images else ("a training sample", "training samples")
    same, fresh_same, how = copies.same_embedding, copies.fresh_same_embedding, "with equal embeddings"
    if copies.same_pixels and copies.fresh_same_pixels is not None:
        same, fresh_same, how = copies.same_pixels, copies.fresh_same_pixels, "pixel by pixel"
    if unlike:
        copies = replace(copies, at_least=0, shown_by=None)
    evidence = _evidence(copies.shown_by, copies.hash_bits) if copies.shown_by and copies.at_least > same else ""
    if same:
        are = f"is {one}" if same == 1 else f"are {many}"
        sentence = f"{same:,} of {n:,} samples {are}, {how}"
        if fresh_same:
            sentence += f" (so {'is' if fresh_same == 1 else 'are'} {fresh_same:,} of {fresh:,} fresh samples)"
        if evidence:
            sentence += f"; with altered copies it is at least {copies.at_least:,}"
    elif evidence:
        are = f"is {one}" if copies.at_least == 1 else f"are {many}"
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
        found = f"No {'exact ' if unlike else ''}copies of {many} were found among {n:,} samples."
        return f"{found} {UNLIKE}" if unlike else found
    return f"{sentence}{evidence}." + (f" {UNLIKE}" if unlike else "")


def _evidence(name: TailName, bits: tuple[float, float] | None) -> str:
    if name == "hash" and bits:
        return f": {bits[0]:g} of 256 bits of their perceptual hashes differ, in fresh samples {bits[1]:g} (medians)"
    return f": {SHOWN_BY[name]}"
