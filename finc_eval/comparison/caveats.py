"""Warnings to print with a comparison: sentences on what to know before trusting its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from finc_eval.comparison.fits import constant_features
from finc_eval.comparison.inputs import SketchedSet, SketchedSets
from finc_eval.comparison.result import Copies
from finc_eval.comparison.score_pass import ScoredSet
from finc_eval.comparison.settings import Fld, Settings
from finc_eval.core.words import plural
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.repeats import IN_BOTH
from finc_eval.embeddings.set_info import MAX_EXAMPLES, notes_on
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.naming.measured import left_out_columns
from finc_eval.naming.properties import unused_columns
from finc_eval.numerics.kernels import bandwidth_warnings
from finc_eval.sketches.folds import FAR

LARGE_KERNEL_ERROR = 0.1
"""Rms error of the kernel from which a comparison carries a warning: 43 frequencies on digits; 2 000 have 0.02."""


def copies_between(gen: SketchedSet, ref: SketchedSet) -> Copies | None:
    """Count the generated samples that equal a reference sample; None without decoded pixels to compare."""
    if gen.cache is None or ref.cache is None:
        return None
    contents, rows = np.unique(ref.cache.content, return_index=True)
    copied = np.flatnonzero(np.isin(gen.cache.content, contents))
    examples = copied[:MAX_EXAMPLES]
    originals = rows[np.searchsorted(contents, gen.cache.content[examples])]
    return Copies(len(copied), tuple(zip(gen.ids_at(examples), ref.ids_at(originals), strict=True)))


def caveats(
    opened: SketchedSets,
    settings: Settings,
    scored: Mapping[str, ScoredSet],
    sample: torch.Tensor,
    error: KernelError | None,
    copies: Copies | None,
) -> list[str]:
    """Return what to know before trusting the numbers, in sentences.

    `sample` has embeddings of both sets, (m, d), by which the error of the kernel was measured.
    """
    sets = opened.sets["gen"], opened.sets["ref"]
    phi, rho = sets[0].sketch.feature_map, settings.rho
    found = []
    if rho < 1:
        found.append(f"with ρ = {rho:g}, below 1, a direction that both sets have equally often counts for both")
    if phi.sigma is not None:
        found += bandwidth_warnings(sample, phi.sigma)
    if error is not None and error.rms > LARGE_KERNEL_ERROR:
        found.append(
            f"with features={phi.features}, the kernel has an error of {error.rms:.2f} (rms), so that directions and "
            "shares depend on the seed: take more, such as the default"
        )
    found += _far_samples(scored)
    if without := [sketched.label for sketched in sets if not sketched.has_rows]:
        found.append(
            f"the sketch of {' and '.join(without)} keeps too few samples to divide into kinds, or not which groups "
            "they are of: the sets are compared by directions alone, which miss more of the small kinds"
        )
    if isinstance(settings.method, Fld):
        constant = [constant_features(sketched.embeddings) for sketched in sets if sketched.embeddings is not None]
        if count := int(np.logical_or(*constant).sum()):
            entries = f"{count} of the {sets[0].sketch.dim} features"
            found.append(f"{entries} are constant in one of the sets, and FLD leaves them out there")
    for sketched in sets:
        found += sketched.info().warnings(sketched.label)
    for sketched in sets:
        notes = notes_on(sketched.label, CachedEmbeddings(sketched.cache)) if sketched.cache else []
        found += [note for note in notes if note not in found]
    if copies and copies.count and not any(IN_BOTH in warning for warning in opened.warnings):
        are = "is an exact copy" if copies.count == 1 else "are exact copies"
        found.append(f"{plural(copies.count, 'generated sample')} {are} of reference samples")
    if not without:
        held = {sketched.label: sketched.at_hand for sketched in sets}
        found += unused_columns(held)
        used = (settings.by, settings.groups, settings.pairs)
        found += [*left_out_columns(held, used), *_without_pictures(sets)] if rho == 1 else []
    return found


def _without_pictures(sets: Sequence[SketchedSet]) -> list[str]:
    """Return a sentence if the looks of images were not measured, as they are gone; arrays of embeddings had none."""
    gone = [
        sketched.label
        for sketched in sets
        if sketched.cache and not sketched.cache.clip and not CachedEmbeddings(sketched.cache).samples
    ]
    if not gone:
        return []
    return [
        f"the images of {' and '.join(gone)} are neither in files nor held in memory: looks, such as gray or noisy, "
        "were not measured; pass a folder or a list of images"
    ]


def _far_samples(scored: Mapping[str, ScoredSet]) -> Iterator[str]:
    """Yield a sentence on the samples of each set that are far from all others."""
    for label, passed in scored.items():
        if (far := passed.far) is not None:
            (name,) = passed.sketched.ids_at(np.array([far.farthest]))
            yield (
                f"{label} has {plural(far.count, 'sample')} more than {FAR:g} times as far from its middle as half of "
                f"the set, {name!r} {far.distance:.3g} times: look whether {'it is' if far.count == 1 else 'they are'} "
                "broken"
            )
