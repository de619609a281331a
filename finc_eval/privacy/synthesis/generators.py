"""Generators of images for DP-HP: networks, and heads that turn their outputs into images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from finc_eval.core.errors import UsageError
from finc_eval.numerics.process import kept_random_states
from finc_eval.privacy.synthesis.released_features import Shape, Statistic, channel_by_channel, cosine_basis

CODE_SIZE = 10
"""Number of entries of the code z, as in the paper."""

SAMPLES_AT_ONCE = 2000
"""Number of records that are sampled at once."""

CONTRAST = 2.0
"""Factor from a network's output to the coefficient of a wave in an image, whose norm is about 10."""


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
        pixels = self.brightness + CONTRAST * outputs @ self.basis.T.to(outputs.device)
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
        """Draw one record for each label, with the batch norms of the training."""
        return torch.cat(list(self.sample_batches(labels, seed)))

    def sample_batches(self, labels: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
        """Yield the records that `sample` returns, some at a time."""
        self.network.eval()
        chance = torch.Generator(self._chance.device).manual_seed(seed)
        for some in torch.split(labels.cpu(), SAMPLES_AT_ONCE):
            with torch.no_grad():
                made = self._records(some, chance).cpu()
            yield made

    def _records(self, labels: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        z = torch.randn(len(labels), CODE_SIZE, generator=chance, device=chance.device)
        given = torch.cat([z, nn.functional.one_hot(labels.to(z.device), self.classes).to(z)], 1)
        return self.head(self.network(given), chance)
