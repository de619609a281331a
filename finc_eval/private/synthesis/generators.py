"""Generators for DP-HP: networks with heads for images, and a mixture of independent columns for tables.

The mean embedding of a mixture is computed exactly, not sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt

import torch
from torch import nn

from finc_eval.core.errors import UsageError, check_count
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.precision import kept_random_states
from finc_eval.private.hermite.coordinate_kernels import CoordinateFeatures, CoordinateSum, SumAndProduct, factors_of
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.synthesis.released_features import (
    BoundedMoments,
    Shape,
    Statistic,
    channel_by_channel,
    cosine_basis,
)
from finc_eval.private.synthesis.tabular import Table

CODE_SIZE = 10  # number of entries of the code z, as in the paper
START_CONTRAST = 2.0  # factor from a network's output to the coefficient of a wave in an image, whose norm is about 10


class Bounded:
    """Head for numbers between two public bounds, such as pixels from 0 to 1, by a sigmoid."""

    def __init__(self, width: int, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise UsageError(f"bounds must ascend, got {low:g} and {high:g}")
        self.width, self.low, self.high = width, low, high

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """Map every entry to a number between the bounds."""
        return self.low + (self.high - self.low) * outputs.sigmoid()


class Smooth:
    """Head for images of low spatial frequencies with grain, clipped to [0, 1].

    A generator that is fitted to a noisy embedding could make images of noise. Waves longer than a few pixels cannot.
    The grain, independent noise on every pixel, is what such images lack: without it, classifiers that are trained on
    them rely on pixels that never vary. Of each channel's cosine transform the `waves` lowest frequencies are made.
    """

    def __init__(self, shape: Shape, waves: int = 100, grain: float = 0.3, brightness: float = 0.13) -> None:
        height, width, channels = shape
        self.basis = channel_by_channel(cosine_basis(height, width, min(waves, height * width)), channels)
        self.width, self.grain, self.brightness = self.basis.shape[1], grain, brightness

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """Turn outputs into images: (n, width) → (n, c·h·w), in [0, 1]."""
        pixels = self.brightness + START_CONTRAST * outputs @ self.basis.T.to(outputs.device)
        grain = torch.randn(pixels.shape, generator=chance, device=pixels.device)
        return (pixels + self.grain * grain).clamp(0, 1)


class FullyConnected(nn.Sequential):
    """The paper's network for tables, and one of its two for images: linear layers with batch norm and ReLU.

    The label enters as a one-hot vector, concatenated to z.
    """

    def __init__(self, classes: int, hidden: Sequence[int], width: int) -> None:
        layers: list[nn.Module] = []
        before = CODE_SIZE + classes
        for size in hidden:
            layers += [nn.Linear(before, size), nn.BatchNorm1d(size), nn.ReLU()]
            before = size
        super().__init__(*layers, nn.Linear(before, width))


class Convolutional(nn.Sequential):
    """The paper's other network for images: linear layers to a quarter of the side, then bilinear upsampling, twice."""

    def __init__(
        self, classes: int, shape: Shape = (28, 28, 1), hidden: int = 200, maps: tuple[int, int] = (16, 8)
    ) -> None:
        height, width, channels = shape
        if height % 4 or width % 4:
            raise UsageError(f"images of a convolutional generator must have sides divisible by 4, got {shape[:2]}")
        first, second = maps
        cells = first * height * width // 16
        super().__init__(
            nn.Linear(CODE_SIZE + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, cells),
            nn.BatchNorm1d(cells),
            nn.ReLU(),
            nn.Unflatten(1, (first, height // 4, width // 4)),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(first, second, 5, padding=2),
            nn.BatchNorm2d(second),
            nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(second, channels, 5, padding=2),
            nn.Flatten(),
        )


class Network:
    """Generator that maps noise and a class to a record by a network. Every mean is over a fresh mini-batch.

    A batch increases the discrepancy by the variance of φ divided by its size, and the gradient also follows that. This
    is the paper's method; its cost in accuracy falls with the batch.

    The network maps (n, CODE_SIZE + classes) to (n, head.width). The seed decides z and the weights of linear and
    convolutional layers, which are drawn again. `batch` is the number of samples of each class in a step.
    """

    def __init__(
        self,
        network: nn.Module,
        head: Bounded | Smooth,
        classes: int,
        batch: int = 200,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        if batch < 2:
            raise UsageError(f"batch norm needs at least 2 samples of a class, got {batch}")
        self.head, self.classes, self.batch = head, classes, batch
        with kept_random_states():
            torch.manual_seed(seed)
            for layer in network.modules():
                if isinstance(layer, nn.Linear | nn.Conv2d):
                    layer.reset_parameters()
        self.network = network.to(device)
        self._chance = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[torch.Tensor]:
        """Return the weights."""
        return list(self.network.parameters())

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """Return the mean of φ over a new batch of each class, (classes, q) for each statistic."""
        self.network.train()
        labels = torch.arange(self.classes).repeat_interleave(self.batch)
        records = self._records(labels, self._chance)
        labels = labels.to(records.device)
        return [statistic.class_sums(records, labels, self.classes) / self.batch for statistic in statistics]

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """Draw one record for each label (n,), with the batch norms of the training: (n, d)."""
        return torch.cat(list(self.sample_batches(labels, seed)))

    def sample_batches(self, labels: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
        """Yield the records that `sample` returns, some at a time."""
        self.network.eval()
        chance = torch.Generator(self._chance.device).manual_seed(seed)
        # 2000: number of records that are sampled at once.
        for some in torch.split(labels.cpu(), 2000):
            with torch.no_grad():
                made = self._records(some, chance).cpu()
            yield made

    def _records(self, labels: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        z = torch.randn(len(labels), CODE_SIZE, generator=chance, device=chance.device)
        given = torch.cat([z, nn.functional.one_hot(labels.to(z.device), self.classes).to(z)], 1)
        return self.head(self.network(given), chance)


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
        # 0.5: standard deviation of the first logits: components must differ before they can separate.
        self.logits = (prior + 0.5 * start).to(device).requires_grad_()

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
            parts = [self._mean(replace(statistic, phi=part), columns) for part in (phi.sum, phi.product)]
            return torch.cat(parts, 1) / sqrt(2)
        if isinstance(phi, CoordinateFeatures) and all(code.shape[1] == 1 for code in codes):
            parts = [columns[number] @ phi.single(number, codes[number][:, 0]) for number in phi.coordinates]
            if isinstance(phi, CoordinateSum):
                return self._by_class(torch.cat(parts, 1) * phi.dim**-0.5)
            # The two factors of a component meet in the product that averages: their outer product never exists.
            left, right = (factor.view(self.table.classes, self.components, -1) for factor in factors_of(parts))
            return torch.einsum("cna,cnb->cab", left, right).flatten(1) / self.components
        if isinstance(phi, BoundedMoments) and phi.order <= 2:
            return self._second_order(phi, columns, [code.clamp_min(0) for code in codes])[:, phi.left_out :]
        if isinstance(phi, TotalDegree) and phi.order <= 2 and not phi.center.any():
            return self._second_order(phi, columns, codes)
        if isinstance(phi, RandomFourierFeatures):
            # E cos and E sin, the parts of E exp(iω·x): the product of the columns' characteristic functions.
            product = torch.exp(-1j * (phi.center @ phi.frequencies)).expand(len(self.logits), -1)
            start = 0
            for p, code in zip(columns, codes, strict=True):
                phases = code @ phi.frequencies[start : start + code.shape[1]]
                product = product * torch.complex(p @ phases.cos(), p @ phases.sin())
                start += code.shape[1]
            return self._by_class(torch.cat([product.real, product.imag], 1) * phi.features**-0.5)
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

    def _by_class(self, features: torch.Tensor) -> torch.Tensor:
        """Average features (k c, q) over the c components of each of k classes: (k, q)."""
        return features.view(self.table.classes, self.components, -1).mean(1)

    def _codes(self, statistic: Statistic) -> list[torch.Tensor]:
        """Return the input of φ for each level of each column, (levels, coordinates)."""
        view = statistic.view
        if view is None or len(view) != sum(self.table.levels):
            raise UsageError("a mixture needs statistics that see a table's codes or positions")
        codes, start = [], 0
        for block in torch.split(view, self.table.levels):
            used = (block != 0).any(0).nonzero()[:, 0]
            width = max(len(used), 1)
            if len(used) and (int(used[0]) != start or int(used[-1]) != start + width - 1):
                raise UsageError("a mixture needs a view that gives every column coordinates of its own")
            codes.append(block[:, start : start + width])
            start += width
        return codes


class IndependentColumns:
    """A table without relations: each column has shares of its own, which are the same in every class.

    It starts from what is publicly known of the columns, and from the released shares of the classes, (classes,). The
    features know the shares of the classes, too, and better. So these are fitted as well.
    """

    def __init__(self, table: Table, shares: torch.Tensor) -> None:
        self._alone = ProductMixture(replace(table, label=None), 1)
        prior = torch.cat([column.prior for column in table.columns]).log()
        self._alone.logits = prior[None].clone().requires_grad_()
        self._released = shares
        self._classes = shares.log().clone().requires_grad_()

    def parameters(self) -> list[torch.Tensor]:
        """Return the logits of the levels and of the classes."""
        return [*self._alone.parameters(), self._classes]

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """Return E φ for each class, times its share over the released one: (classes, q) for each statistic."""
        factors = (self._classes.softmax(0) / self._released)[:, None]
        return [factors * mean for mean in self._alone.means(statistics)]

    def draw(self, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw records (n, k) and their classes (n,), which have nothing to do with each other."""
        chance = torch.Generator().manual_seed(seed)
        shares = self._classes.detach().softmax(0).cpu()
        classes = torch.multinomial(shares, count, replacement=True, generator=chance)
        return self._alone.sample(torch.zeros(count, dtype=torch.long), seed), classes
