"""Names of the modes of a comparison, and pairs of modes that show one kind of sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from finc_eval.comparison.assemble import LISTED
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.modes import Mode
from finc_eval.naming.links import look_different
from finc_eval.naming.names import name_modes


def named(modes: Sequence[Mode], gen: SketchedSet, ref: SketchedSet) -> list[Mode]:
    """Name the significant modes that refits find again, and link those of opposite roles that show one kind."""
    chosen = [mode for mode in modes if mode.p_value <= LISTED and mode.firm]
    sets = {"gen": gen.at_hand, "ref": ref.at_hand}
    members = [{"gen": mode.tails[0].gen, "ref": mode.tails[0].ref} for mode in chosen]
    names = name_modes(members, sets)
    own = [sets["gen" if mode.role == "over" else "ref"].rows_at(mode.top_own).cpu() for mode in chosen]
    others = {one.label: one.sketch.sample.rows for one in (gen, ref)}
    links = look_different(names, [mode.role for mode in chosen], own, others)
    known = {
        mode.id: replace(
            mode,
            name=name.text,
            evidence=name.evidence,
            looks_different=None if link is None else chosen[link].id,
        )
        for mode, name, link in zip(chosen, names, links, strict=True)
    }
    return [known.get(mode.id, mode) for mode in modes]
