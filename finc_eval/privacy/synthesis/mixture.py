"""A mixture of independent columns: a generator of tables whose mean embedding is computed exactly, not sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import torch

from finc_eval.core.checks import check_count
from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.coordinate_kernels import CoordinateFeatures, CoordinateSum, SumAndProduct, factors_of
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite import TotalDegree
from finc_eval.privacy.synthesis.released_features import BoundedMoments, Statistic
from finc_eval.privacy.synthesis.tabular import Table

LOGIT_SPREAD = 0.5
"""Standard deviation of the first logits: components must differ before they can separate."""


class ProductMixture:
    """Generator with the same number of components for each class, within which the columns are independent.

    It starts from what is publicly known of the columns, so a fit that stops early changes only what the data say.
    With enough components it can be any distribution. For each component, E φ factorizes into expectations over single
    columns. So the mean embedding is a smooth function of the probabilities, without sampling, and without a relaxation
    that would have to be rounded. (Aydore et al. 2021 fit relaxed records to noisy marginals in the same spirit.)
    """

    def __init__(self, table: Table, components: int, seed: int = 0, device: str | torch.device = "cpu") -> None:
        check_count("components", components)
        self.table, self.components = table, components
        start = torch.randn(
            table.classes * components, sum(table.levels), generator=torch.Generator().manual_seed(seed)
        )
        prior = torch.cat([column.prior for column in table.columns]).log()
        self.logits = (prior + LOGIT_SPREAD * start).to(device).requires_grad_()

    def parameters(self) -> list[torch.Tensor]:
        """Return the logits."""
        return [self.logits]

    @property
    def probabilities(self) -> list[torch.Tensor]:
        """Probability of each level of a column in each component: (classes · components, levels) per column."""
        return [block.softmax(1) for block in torch.split(self.logits, self.table.levels, 1)]

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """Return E φ over the components of each class, (classes, q) for each statistic."""
        columns = self.probabilities
        return [self._mean(statistic, columns) for statistic in statistics]

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """Draw one record for each label: a component of the class, then a level of every column."""
        generator = torch.Generator().manual_seed(seed)
        component = torch.randint(self.components, (len(labels),), generator=generator)
        chosen = labels.cpu() * self.components + component
        levels = [
            torch.multinomial(column.detach().cpu()[chosen], 1, generator=generator)[:, 0]
            for column in self.probabilities
        ]
        return self.table.one_hot(torch.stack(levels, 1))

    def _mean(self, statistic: Statistic, columns: list[torch.Tensor]) -> torch.Tensor:
        phi, codes = statistic.phi, self._codes(statistic)
        if isinstance(phi, SumAndProduct):
            parts = [self._mean(replace(statistic, phi=one), columns) for one in (phi.sum, phi.product)]
            return torch.cat(parts, 1) / sqrt(2)
        if isinstance(phi, CoordinateFeatures) and all(code.shape[1] == 1 for code in codes):
            parts = [columns[place] @ phi.single(place, codes[place][:, 0]) for place in phi.coordinates]
            if isinstance(phi, CoordinateSum):
                return self._by_class(torch.cat(parts, 1) * phi.dim**-0.5)
            # The two factors of a component meet in the product that averages: their outer product never exists.
            left, right = (one.view(self.table.classes, self.components, -1) for one in factors_of(parts))
            return torch.einsum("cna,cnb->cab", left, right).flatten(1) / self.components
        if isinstance(phi, BoundedMoments) and phi.order <= 2:
            return self._second_order(phi, columns, [code.clamp_min(0) for code in codes])[:, phi.left_out :]
        if isinstance(phi, TotalDegree) and phi.order <= 2 and not phi.center.any():
            return self._second_order(phi, columns, codes)
        if isinstance(phi, RandomFourierFeatures):
            return self._fourier(phi, columns, codes)
        raise UsageError(
            f"the expectation of {phi!r} under a mixture is not known: fit a network, or use Fourier features, sum or "
            "product features with one coordinate per column, or total-degree features to degree 2 without a center"
        )

    def _second_order(self, phi: TotalDegree, columns: list[torch.Tensor], codes: list[torch.Tensor]) -> torch.Tensor:
        """Return E φ from the features of single columns and their products, φ_a φ_b/φ_0 for each pair of coordinates.

        `TotalDegree` orders the pairs of coordinates a ≤ b by a, then b, like the upper triangle of a matrix by rows.
        """
        alone = []  # expected features of each column as if it were the only one
        for p, code in zip(columns, codes, strict=True):
            block = TotalDegree(code.shape[1], phi.order, length_scale=phi.length_scale, rho=phi.rho, device=phi.device)
            alone.append(p @ block(code))
        base = torch.stack([features[:, 0] for features in alone], 1).prod(1)
        ratios = [features[:, 1:] / features[:, :1] for features in alone]
        first = torch.cat([ratio[:, : code.shape[1]] for ratio, code in zip(ratios, codes, strict=True)], 1)
        weighed = first * base[:, None]
        parts = [self._by_class(base[:, None]), self._by_class(weighed)]
        if phi.order == 2:
            shape = (self.table.classes, self.components, phi.dim)
            pairs = torch.einsum("cna,cnb->cab", weighed.view(shape), first.view(shape)) / self.components
            start = 0
            for ratio, code in zip(ratios, codes, strict=True):
                width = code.shape[1]
                rows, cols = torch.triu_indices(width, width, device=pairs.device)
                within = self._by_class(ratio[:, width:] * base[:, None])
                pairs = pairs.index_put(
                    (torch.arange(len(pairs), device=pairs.device)[:, None], rows + start, cols + start), within
                )
                start += width
            rows, cols = torch.triu_indices(phi.dim, phi.dim, device=pairs.device)
            parts.append(pairs[:, rows, cols])
        return torch.cat(parts, 1)

    def _fourier(
        self, phi: RandomFourierFeatures, columns: list[torch.Tensor], codes: list[torch.Tensor]
    ) -> torch.Tensor:
        """Return E cos and E sin, the parts of E exp(iω·x): the product of the columns' characteristic functions."""
        product = torch.exp(-1j * (phi.center @ phi.frequencies)).expand(len(self.logits), -1)
        start = 0
        for p, code in zip(columns, codes, strict=True):
            phases = code @ phi.frequencies[start : start + code.shape[1]]
            product = product * torch.complex(p @ phases.cos(), p @ phases.sin())
            start += code.shape[1]
        return self._by_class(torch.cat([product.real, product.imag], 1) * phi.features**-0.5)

    def _by_class(self, features: torch.Tensor) -> torch.Tensor:
        """Average over the components of each class."""
        return features.view(self.table.classes, self.components, -1).mean(1)

    def _codes(self, statistic: Statistic) -> list[torch.Tensor]:
        """Return the input of φ for each level of each column, (levels, coordinates)."""
        view = statistic.view
        if view is None or len(view) != sum(self.table.levels):
            raise UsageError("a mixture needs statistics that see a table's codes or positions")
        codes, start = [], 0
        for block in torch.split(view, self.table.levels):
            own = (block != 0).any(0).nonzero()[:, 0]
            width = max(len(own), 1)
            if len(own) and (int(own[0]) != start or int(own[-1]) != start + width - 1):
                raise UsageError("a mixture needs a view that gives every column coordinates of its own")
            codes.append(block[:, start : start + width])
            start += width
        return codes
