"""Names and causes of the modes of a comparison, and pairs of modes that show one kind of sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from finc_eval.comparison.assemble import LISTED, Candidate
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import Mode
from finc_eval.naming.causes import CauseKind, frequency_or_appearance
from finc_eval.naming.links import look_different
from finc_eval.naming.names import name_modes

LABEL = "label"
"""Column of metadata that tells whether a mode is one of frequency or of appearance."""


def named(modes: Sequence[tuple[Candidate, Mode]], gen: SketchedSet, ref: SketchedSet) -> list[Mode]:
    """Name the significant modes that refits find again, tell their cause, and link those of one kind of sample."""
    chosen = [(one, mode) for one, mode in modes if mode.p_value <= LISTED and mode.firm]
    if not (chosen and gen.has_rows and ref.has_rows):
        return [mode for _, mode in modes]
    sets = {"gen": gen.at_hand, "ref": ref.at_hand}
    members = [{"gen": mode.top_gen, "ref": mode.top_ref} for _, mode in chosen]
    names = name_modes(members, sets)
    links = look_different(names, [mode.role for _, mode in chosen], members, sets)
    labels = {one.label: _labels(one) for one in (gen, ref)}
    known = {
        mode.id: replace(
            mode,
            name=name.text,
            evidence=name.evidence,
            cause=_cause(one, gen, ref, labels),
            looks_different=None if link is None else chosen[link][1].id,
        )
        for (one, mode), name, link in zip(chosen, names, links, strict=True)
    }
    return [known.get(mode.id, mode) for _, mode in modes]


def _labels(one: SketchedSet) -> list[str] | None:
    """Return the label of each sample of the bottom-k sample; None without labels."""
    embeddings = one.at_hand
    if LABEL not in embeddings.columns:
        return None
    of_ids = dict(zip(embeddings.ids_between(0, embeddings.n), embeddings.column(LABEL), strict=True))
    return [of_ids[name] for name in one.sketch.sample.ids]


def _cause(one: Candidate, gen: SketchedSet, ref: SketchedSet, labels: dict[str, list[str] | None]) -> CauseKind | None:
    ordered = (gen, ref) if one.role == "over" else (ref, gen)
    known = {each.label: values for each in ordered if (values := labels[each.label]) is not None}
    if len(known) < len(ordered):
        return None
    members = {each.label: np.flatnonzero(one.members(each).cpu().numpy()) for each in ordered}
    return frequency_or_appearance(known, members).kind
