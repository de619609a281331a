"""Assembly of modes from fitted directions and their score passes, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.estimates import Estimates
from finc_eval.comparison.modes import Mode, Role, Tail, unique_id
from finc_eval.comparison.score_pass import ScoredSet, excess_frequency
from finc_eval.comparison.settings import Settings
from finc_eval.numerics.inference import holm

NUMERICAL_ZERO = 1e-6
"""Excess below this is rounding: moments are float32, and masses lie between 0 and 1."""

Sign = Literal[1, -1]


def assemble_modes(
    over: CrossFit, under: CrossFit, gen: ScoredSet, ref: ScoredSet, settings: Settings
) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """Return the modes of both roles, from directions that were scored side by side, those of `over` first."""
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
    """One role of a comparison: its directions, their columns in the score passes, and the estimates."""

    role: Role
    fit: CrossFit
    columns: slice
    estimates: Estimates


def _test(role: Role, fit: CrossFit, columns: slice, first: ScoredSet, second: ScoredSet, rho: float) -> _Tested:
    estimates = Estimates.of([(1.0, first.masses[columns])], [(1.0, second.masses[columns])], rho)
    return _Tested(role, fit, columns, estimates)


def _modes(
    tested: _Tested, p_values: torch.Tensor, family: int, gen: ScoredSet, ref: ScoredSet, settings: Settings
) -> tuple[Mode, ...]:
    """Return the modes of one role: eigenvectors by eigenvalue, all others by cross-fitted excess."""
    role, fit, estimates = tested.role, tested.fit, tested.estimates
    masses = estimates.mass_first, estimates.mass_second
    mass_gen, mass_ref = masses if role == "over" else masses[::-1]
    half_width = estimates.half_widths(family)
    more, less = (gen, ref) if role == "over" else (ref, gen)
    found: dict[str, Mode] = {}
    for rank in range(min(settings.modes, len(p_values))):
        if float(fit.full.excess[rank]) <= NUMERICAL_ZERO:
            break
        column = tested.columns.start + rank
        sign = leading_sign(more.scores.energies()[:, column] - settings.rho * less.scores.energies()[:, column])
        direction = sign * fit.full.vectors[:, rank]
        powers = [one.scores.powers()[:, tail_of(sign), column] for one in (more, less)]
        excess, width = float(estimates.excess[rank]), float(half_width[rank])
        name = unique_id(role, [*more.sketched.typical(direction), str(rank)], found)
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
            tails=_tails(role, sign, column, gen, ref, settings.rho),
            direction=direction.float().cpu().numpy(),
        )
    if settings.by_eigenvalue:
        return tuple(found.values())
    return tuple(sorted(found.values(), key=lambda mode: mode.excess, reverse=True))


def leading_sign(energy: torch.Tensor) -> Sign:
    """Return the sign that makes positive the tail with most of the excess; `energy` has shape (2,)."""
    return 1 if float(energy[0]) >= float(energy[1]) else -1


def tail_of(sign: Sign) -> int:
    """Return the index of the tail that is positive under this sign."""
    return 0 if sign > 0 else 1


def _tails(role: Role, sign: Sign, column: int, gen: ScoredSet, ref: ScoredSet, rho: float) -> tuple[Tail, Tail]:
    """Return both tails of a direction, first the one that carries most of the excess.

    The excess is quadratic in s, so neither tail alone is the mode.
    """
    energy_gen, energy_ref = gen.scores.energies()[:, column], ref.scores.energies()[:, column]
    energy = energy_gen - rho * energy_ref if role == "over" else energy_ref - rho * energy_gen
    total = float(energy.sum())
    tails = []
    for tail in (tail_of(sign), 1 - tail_of(sign)):
        (gen_index, gen_best), (ref_index, ref_best) = gen.scores.best(tail, column), ref.scores.best(tail, column)
        tails.append(
            Tail(
                share=float(energy[tail]) / total if total > 0 else 0.5,
                gen=gen_index,
                ref=ref_index,
                gen_ids=gen.sketched.ids_at(gen_index),
                ref_ids=ref.sketched.ids_at(ref_index),
                gen_scores=gen_best,
                ref_scores=ref_best,
            )
        )
    return tails[0], tails[1]
