"""Warnings to print with a comparison: sentences on what to know before trusting its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finc_eval.comparison.fits import constant_features
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.result import Copies
from finc_eval.comparison.scored import ScoredSet
from finc_eval.core.words import plural
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.repeats import IN_BOTH
from finc_eval.embeddings.set_info import MAX_EXAMPLES, notes_on
from finc_eval.feature_maps.approximation import KernelError
from finc_eval.naming.properties import unused_columns
from finc_eval.samples.profile import unlike_encodings
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


def set_warnings(gen: SketchedSet, ref: SketchedSet, copies: Copies | None, sentences: Sequence[str]) -> list[str]:
    """Warn of small sets, unreadable samples, windows, unlike encodings, and copies, unless `sentences` name them."""
    found = []
    for one in (gen, ref):
        found += [*one.info().warnings(one.label)]
    for one, cache in ((gen, gen.cache), (ref, ref.cache)):
        notes = notes_on(one.label, CachedEmbeddings(cache)) if cache else []
        found += [note for note in notes if note not in found]
    if copies and copies.count and not any(IN_BOTH in one for one in sentences):
        are = "is an exact copy" if copies.count == 1 else "are exact copies"
        found.append(f"{plural(copies.count, 'generated sample')} {are} of reference samples")
    if gen.has_rows and ref.has_rows:
        found += unused_columns({one.label: one.at_hand for one in (gen, ref)})
    if gen.cache and ref.cache:
        found += unlike_encodings(gen.cache.seen_profile, ref.cache.seen_profile)
    return found


def rho_warnings(rho: float) -> list[str]:
    """Warn of ρ below 1, under which equal sets differ."""
    return [f"with ρ = {rho:g}, below 1, a mode that both sets have equally often counts for both"] if rho < 1 else []


def kernel_warnings(error: KernelError | None, features: int | None) -> list[str]:
    """Warn of so few random frequencies that the features are far from the kernel."""
    if error is None or features is None or error.rms <= LARGE_KERNEL_ERROR:
        return []
    return [
        f"with features={features}, the kernel has an error of {error.rms:.2f} (rms), so that modes and shares depend "
        "on the seed: take more, such as the default"
    ]


def far_warnings(one: ScoredSet) -> list[str]:
    """Warn of samples so far from all others that they are probably broken."""
    if one.far is None:
        return []
    far, are = one.far, "it is" if one.far.count == 1 else "they are"
    (name,) = one.sketched.ids_at(np.array([far.farthest]))
    return [
        f"{one.sketched.label} has {plural(far.count, 'sample')} more than {FAR:g} times as far from its middle as "
        f"half of the set, {name!r} {far.distance:.3g} times: look whether {are} broken"
    ]


def undivided_warnings(gen: SketchedSet, ref: SketchedSet) -> list[str]:
    """Warn of sketches whose samples cannot be divided into kinds."""
    without = [one.label for one in (gen, ref) if not one.has_rows]
    if not without:
        return []
    return [
        f"the sketch of {' and '.join(without)} keeps too few samples to divide into kinds, or not which groups "
        "they are of: the sets are compared by directions alone, which miss more of the small kinds"
    ]


def fld_warnings(gen: SketchedSet, ref: SketchedSet) -> list[str]:
    """Warn of features that FLD leaves out because they are constant."""
    constant = [constant_features(one.embeddings) for one in (gen, ref) if one.embeddings is not None]
    count = int(np.logical_or(*constant).sum())
    if not count:
        return []
    return [f"{count} of the {gen.sketch.dim} features are constant in one of the sets, and FLD leaves them out there"]
