"""What to know of two sets before trusting how they compare, one sentence each."""

from __future__ import annotations

from math import ceil

import numpy as np

from finc_eval.comparison.inputs import Side
from finc_eval.comparison.result import Copies, SetInfo
from finc_eval.samples.profile import unlike_encodings

FEW = 500
"""Below this many samples a comparison carries a warning."""

ALL_BUT_FEW = 0.99
"""Share of a set's samples that are distinct, below which a comparison carries a warning."""


def caveats(gen: Side, ref: Side, copies: Copies | None) -> tuple[str, ...]:
    """Of few or repeated samples, unreadable ones, windows of videos, copies, and files that differ by themselves."""
    return (
        *_of_sets((gen.info(), ref.info()), copies),
        *_repeated(gen),
        *_repeated(ref),
        *_unlike_encodings(gen, ref),
    )


def _of_sets(infos: tuple[SetInfo, SetInfo], copies: Copies | None) -> list[str]:
    found = []
    for label, info in zip(("gen", "ref"), infos, strict=True):
        if info.n < FEW:
            found.append(f"{label} has only {info.n} samples: expect wide intervals and unstable modes below {FEW}")
        if info.unreadable:
            found.append(f"{info.unreadable} samples of {label} could not be read and are not in the comparison")
        if info.clip and info.clip.windows > 1:
            videos = ceil(info.n / info.clip.windows)
            found.append(
                f"the {info.n} samples of {label} are windows of about {videos} videos, and those of one video are "
                "alike: intervals and p-values take them for independent, and are too sure"
            )
    if copies and copies.count:
        found.append(f"{copies.count} generated samples are exact copies of reference samples")
    return found


def _repeated(side: Side) -> list[str]:
    """Whether a set consists of copies of itself, as that of a collapsed generator."""
    distinct = len(np.unique(side.cache.content)) if side.cache else side.sketch.n
    if distinct > ALL_BUT_FEW * side.sketch.n:
        return []
    return [
        f"only {distinct:,} of the {side.sketch.n:,} samples of {side.label} are distinct, the others are exact copies"
    ]


def _unlike_encodings(gen: Side, ref: Side) -> list[str]:
    """What sets the files of the two sets apart, beside what they show."""
    return unlike_encodings(gen.cache.profile, ref.cache.profile) if gen.cache and ref.cache else []
