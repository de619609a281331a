"""Bounded moments: Hermite features of some degrees alone, for records without negative entries.

For a Mehler ρ near 0, a total-degree feature is a monomial of x that is damped where ‖x‖ is large. Degree 0 says little
more than how many records there are, yet it decides how far apart two images can be. Without it, and for records whose
inner products are never negative (pixels, shares, one-hot vectors), images are closer together, and less noise hides
them.
"""

from __future__ import annotations

from math import comb, exp, factorial, sqrt
from typing import Any

import torch
from scipy.optimize import minimize_scalar

from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.hermite import TotalDegree

TAYLOR_RHO = 1e-6
"""Mehler's ρ at which features equal Taylor's, exp(−‖x‖²/(2l²)) Π (x_d/l)^{k_d} / √(k_d!), to six digits."""

DIAMETER_MARGIN = 1e-5
"""Relative margin of the diameter over the diameter of Taylor's features, for the digits that follow."""


class BoundedMoments(TotalDegree):
    """Features of total degrees a, …, T of max(x, 0).

    The squares of the features of degree k add to the Poisson probability e^{−λ} λ^k/k! with λ = ‖x‖²/l². Inner
    products of two images are positive. So images are at most √(2 · max_λ Σ_k e^{−λ} λ^k/k!) apart: 0.86 for degree 1
    alone, 0.74 for degree 2, 1.08 for both. All total-degree features together need √2.

    Args:
        dim: d, number of entries of a record.
        order: T, the highest degree.
        lowest: a ≥ 1, the lowest degree.
        length_scale: l > 0; images are longest where ‖x‖² is about l² times the degree.
        device: device on which φ is computed.
    """

    kind = "bounded-moments"

    def __init__(
        self, dim: int, order: int, *, lowest: int = 1, length_scale: float, device: str | torch.device = "cpu"
    ) -> None:
        if not 1 <= lowest <= order:
            raise UsageError(f"degrees must go from 1 or more to as many or more, got {lowest} to {order}")
        self.lowest = int(lowest)
        super().__init__(dim, order, length_scale=length_scale, rho=TAYLOR_RHO, device=device)

    @property
    def diameter(self) -> float:  # type: ignore[override]
        """Sup ‖φ(x) − φ(y)‖ over all x, y."""

        def keep(square: float) -> float:
            return exp(-square) * sum(square**k / factorial(k) for k in range(self.lowest, self.order + 1))

        # There is one maximum: the probability of an interval under a Poisson distribution rises, then falls, with its
        # mean.
        best = minimize_scalar(lambda square: -keep(square), bounds=(0, 2 * self.order), method="bounded")
        return (1 + DIAMETER_MARGIN) * sqrt(2 * keep(float(best.x)))

    @property
    def left_out(self) -> int:
        """Number of features of lower degrees."""
        return comb(self.dim + self.lowest - 1, self.dim)

    @property
    def size(self) -> int:
        """Number of features: C(d+T, T) − C(d+a−1, a−1)."""
        return super().size - self.left_out

    @property
    def degrees(self) -> torch.Tensor:
        """Degree of each feature, ascending."""
        return super().degrees[self.left_out :]

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments of the constructor, except for the device."""
        return {name: value for name, value in super().parameters.items() if name != "rho"} | {"lowest": self.lowest}

    def to(self, device: str | torch.device) -> BoundedMoments:
        """Return the same map on another device."""
        return BoundedMoments(self.dim, self.order, lowest=self.lowest, length_scale=self.length_scale, device=device)

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return super()._features(rows.clamp_min(0))[:, self.left_out :]
