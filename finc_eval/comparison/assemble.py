"""From fitted directions and their score passes to modes: the same whatever proposed the directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.estimates import Estimates
from finc_eval.comparison.inputs import Scored
from finc_eval.comparison.modes import Mode, Role, Tail, mode_id
from finc_eval.comparison.result import Settings
from finc_eval.comparison.score_pass import excess_frequency
from finc_eval.comparison.search import NUMERICAL_ZERO
from finc_eval.numerics.inference import holm


def assembled(
    over: CrossFit, under: CrossFit, gen: Scored, ref: Scored, settings: Settings
) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """The modes of both roles, of directions that were scored side by side, those of `over` first."""
    count, family = over.full.vectors.shape[1], over.full.vectors.shape[1] + under.full.vectors.shape[1]
    tested = (
        _test("over", over, slice(0, count), gen, ref, settings.rho),
        _test("under", under, slice(count, family), ref, gen, settings.rho),
    )
    adjusted = holm(torch.cat([one.estimates.p_values() for one in tested]))
    more, less = (_modes(one, adjusted[one.columns], family, gen, ref, settings) for one in tested)
    return more, less


@dataclass(frozen=True)
class _Tested:
    """One role of the comparison: its directions, their columns in the score passes, and what the passes say."""

    role: Role
    fit: CrossFit
    columns: slice
    estimates: Estimates


def _test(role: Role, fit: CrossFit, columns: slice, first: Scored, second: Scored, rho: float) -> _Tested:
    return _Tested(
        role, fit, columns, Estimates.of([(1.0, first.masses[columns])], [(1.0, second.masses[columns])], rho)
    )


def _modes(
    tested: _Tested, p_values: torch.Tensor, family: int, gen: Scored, ref: Scored, settings: Settings
) -> tuple[Mode, ...]:
    """The modes of one role: eigenvectors as they are by eigenvalue, all others by cross-fitted excess."""
    role, fit, estimates = tested.role, tested.fit, tested.estimates
    masses = estimates.mass_first, estimates.mass_second
    mass_gen, mass_ref = masses if role == "over" else masses[::-1]
    half_width = estimates.half_widths(family)
    own = gen.side if role == "over" else ref.side
    found: dict[str, Mode] = {}
    for rank in range(min(settings.modes, len(p_values))):
        if float(fit.full.excess[rank]) <= NUMERICAL_ZERO:
            break
        tails, sign = _tails(role, tested.columns.start + rank, gen, ref, settings.rho)
        direction = sign * fit.full.vectors[:, rank]
        side, column = 0 if sign > 0 else 1, tested.columns.start + rank
        powers = [one.scores.powers()[:, side, column] for one in ((gen, ref) if role == "over" else (ref, gen))]
        excess, width = float(estimates.excess[rank]), float(half_width[rank])
        # Two modes can share their best sample; the second is then named after its next best.
        names = (mode_id(role, sample) for sample in (*own.typical(direction), str(rank)))
        name = next(name for name in names if name not in found)
        found[name] = Mode(
            id=name,
            role=role,
            excess=excess,
            mass_gen=float(mass_gen[rank]),
            mass_ref=float(mass_ref[rank]),
            excess_frequency=excess_frequency(powers[0], powers[1], settings.rho),
            interval=(excess - width, excess + width),
            p_value=float(p_values[rank]),
            standard_error=float(estimates.error[rank]),
            stability=float(fit.stability[rank]),
            fitted_excess=float(fit.full.excess[rank]),
            direction=direction.float().cpu().numpy(),
            tails=tails,
        )
    if settings.by_eigenvalue:
        return tuple(found.values())
    return tuple(sorted(found.values(), key=lambda mode: mode.excess, reverse=True))


def _tails(role: Role, column: int, gen: Scored, ref: Scored, rho: float) -> tuple[tuple[Tail, Tail], int]:
    """Both sides of a direction, the one that carries most of the excess first, and the sign that makes it positive.

    The excess is quadratic in s, so neither side alone is the mode.
    """
    energy_gen, energy_ref = gen.scores.energies()[:, column], ref.scores.energies()[:, column]
    energy = energy_gen - rho * energy_ref if role == "over" else energy_ref - rho * energy_gen
    order = (0, 1) if energy[0] >= energy[1] else (1, 0)
    total = float(energy.sum())
    tails = []
    for side in order:
        (gen_index, gen_best), (ref_index, ref_best) = gen.scores.best(side, column), ref.scores.best(side, column)
        tails.append(
            Tail(
                share=float(energy[side]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=gen.side.ids_at(gen_index),
                ref_ids=ref.side.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return (tails[0], tails[1]), 1 if order[0] == 0 else -1
