"""Generators for DP-HP: the paper's networks, and free points, with heads that turn numbers into records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import nn

from finc_eval.core.errors import FincEvalError
from finc_eval.privacy.synthesis.dp_hp import Statistic
from finc_eval.privacy.synthesis.recipes import Shape, channel_by_channel, cosine_basis

CODE = 10
"""Entries of z, as in the paper."""

AT_ONCE = 2000
"""Records that are sampled at once."""

CONTRAST = 2.0
"""What an output of 1 of a network is worth to an image, of which the norm is some 10."""


class Head(Protocol):
    """Turns what a network puts out into records."""

    width: int

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """(n, width) → (n, k), with numbers from a generator on the same device where the head draws any."""
        ...


class Bounded:
    """Numbers between two public bounds, by a sigmoid: pixels from 0 to 1, for example.

    Args:
        width: entries of a record.
        low, high: the bounds.
    """

    def __init__(self, width: int, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise FincEvalError(f"bounds must ascend, got {low:g} and {high:g}")
        self.width, self.low, self.high = width, low, high

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """Each entry between the bounds."""
        return self.low + (self.high - self.low) * outputs.sigmoid()


class Smooth:
    """Images of low spatial frequencies with grain, drawn back into [0, 1].

    What is fitted to a noisy embedding can make an image of noise; waves longer than a few pixels cannot. The grain is
    what such images lack: without it, classifiers that are trained on them believe in pixels that never vary.

    Args:
        shape: height, width and channels.
        waves: entries of the discrete cosine transform of each channel, the lowest frequencies.
        grain: standard deviation of independent noise on every pixel.
        brightness: of every pixel at the start.
    """

    def __init__(self, shape: Shape, waves: int = 100, grain: float = 0.3, brightness: float = 0.13) -> None:
        height, width, channels = shape
        self.basis = channel_by_channel(cosine_basis(height, width, min(waves, height * width)), channels)
        self.width, self.grain, self.brightness = self.basis.shape[1], grain, brightness

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """(n, width) → (n, c·h·w), in [0, 1]."""
        pixels = self.brightness + CONTRAST * outputs @ self.basis.T.to(outputs.device)
        grain = torch.randn(pixels.shape, generator=chance, device=pixels.device)
        return (pixels + self.grain * grain).clamp(0, 1)


class Levels:
    """One-hot vectors of levels, column by column, drawn by the straight-through Gumbel-softmax.

    Args:
        levels: of each column.
        temperature: of the softmax through which gradients pass.
    """

    def __init__(self, levels: Sequence[int], temperature: float = 1.0) -> None:
        self.levels, self.width, self.temperature = list(levels), sum(levels), temperature

    def __call__(self, outputs: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """One level for each column."""
        uniform = torch.rand(outputs.shape, generator=chance, device=outputs.device).clamp(1e-10, 1 - 1e-7)
        perturbed = (outputs - (-uniform.log()).log()) / self.temperature
        blocks = []
        for block in torch.split(perturbed, self.levels, 1):
            soft = block.softmax(1)
            hard = nn.functional.one_hot(soft.argmax(1), soft.shape[1]).to(soft)
            blocks.append(hard + soft - soft.detach())  # the value of one, the gradient of the other
        return torch.cat(blocks, 1)


class FullyConnected(nn.Sequential):
    """The paper's network for tables and one of its two for images: linear, batch norm, ReLU, and so on.

    Args:
        classes: the label enters as a one-hot vector beside z.
        hidden: widths of the layers between.
        width: of the output.
    """

    def __init__(self, classes: int, hidden: Sequence[int], width: int) -> None:
        layers: list[nn.Module] = []
        before = CODE + classes
        for size in hidden:
            layers += [nn.Linear(before, size), nn.BatchNorm1d(size), nn.ReLU()]
            before = size
        super().__init__(*layers, nn.Linear(before, width))


class Convolutional(nn.Sequential):
    """The paper's other network for images: a linear layer to a quarter of their side, bilinear upsampling twice.

    Args:
        classes: the label enters as a one-hot vector beside z.
        shape: height and width, multiples of 4, and channels of the images.
        hidden: width of the linear layer before.
        maps: at a quarter and at half of the side.

    Raises:
        FincEvalError: height or width is no multiple of 4.
    """

    def __init__(
        self, classes: int, shape: Shape = (28, 28, 1), hidden: int = 200, maps: tuple[int, int] = (16, 8)
    ) -> None:
        height, width, channels = shape
        if height % 4 or width % 4:
            raise FincEvalError(f"images of a convolutional generator must have sides divisible by 4, got {shape[:2]}")
        first, second = maps
        cells = first * height * width // 16
        super().__init__(
            nn.Linear(CODE + classes, hidden),
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
    """A network that maps noise and a class to a record; every mean is over a fresh mini-batch.

    The batch makes the discrepancy larger by the variance of φ over its size, which the gradient sees as well: that
    is the paper's way, and its price in accuracy falls with the batch.

    Args:
        network: (n, CODE + classes) → (n, head.width).
        head: what makes records of it.
        classes: the number of classes.
        batch: samples of each class in a step.
        seed: of the weights of linear and convolutional layers, which are drawn again, and of z.
        device: where it is fitted.
    """

    def __init__(
        self,
        network: nn.Module,
        head: Head,
        classes: int,
        batch: int = 200,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        if batch < 2:
            raise FincEvalError(f"batch norm needs at least 2 samples of a class, got {batch}")
        self.head, self.classes, self.batch = head, classes, batch
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            for layer in network.modules():
                if isinstance(layer, nn.Linear | nn.Conv2d):
                    layer.reset_parameters()
        self.network = network.to(device)
        self._chance = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[torch.Tensor]:
        """The weights."""
        return list(self.network.parameters())

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """For each statistic (classes, q): the mean of φ over a new batch of each class."""
        self.network.train()
        records = self._records(torch.arange(self.classes).repeat_interleave(self.batch), self._chance)
        return [statistic(records).view(self.classes, self.batch, -1).mean(1) for statistic in statistics]

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """A record of each class, with the batch norms of the training."""
        self.network.eval()
        chance = torch.Generator(self._chance.device).manual_seed(seed)
        with torch.no_grad():
            return torch.cat([self._records(some, chance).cpu() for some in torch.split(labels.cpu(), AT_ONCE)])

    def _records(self, labels: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        z = torch.randn(len(labels), CODE, generator=chance, device=chance.device)
        given = torch.cat([z, nn.functional.one_hot(labels.to(z.device), self.classes).to(z)], 1)
        return self.head(self.network(given), chance)


class Points:
    """As many free points for each class: the empirical distribution that is fitted is what is sampled.

    Nothing but their number keeps them from any shape, so with few features they should be few.

    Args:
        head: what makes records of free numbers.
        classes: the number of classes.
        count: points of each class.
        spread: deviation of the free numbers at the start.
        seed: of them.
        device: where they are fitted.
    """

    def __init__(
        self,
        head: Head,
        classes: int,
        count: int = 500,
        spread: float = 1.0,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        if count < 1:
            raise FincEvalError(f"there must be points, got {count} of each class")
        self.head, self.classes, self.count = head, classes, count
        start = torch.randn(classes * count, head.width, generator=torch.Generator().manual_seed(seed))
        self.free = (spread * start).to(device).requires_grad_()
        self._chance = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[torch.Tensor]:
        """The free numbers."""
        return [self.free]

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """For each statistic (classes, q): the mean of φ over the points of each class."""
        records = self.head(self.free, self._chance)
        return [statistic(records).view(self.classes, self.count, -1).mean(1) for statistic in statistics]

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """A point of each class, each as often as another as far as possible."""
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.empty(len(labels), dtype=torch.long)
        for label in range(self.classes):
            places = (labels.cpu() == label).nonzero()[:, 0]
            rounds = -(-len(places) // self.count)
            order = torch.cat([torch.randperm(self.count, generator=generator) for _ in range(rounds)] or [places])
            chosen[places] = label * self.count + order[: len(places)]
        with torch.no_grad():
            free = self.free[chosen.to(self.free.device)]
            return self.head(free, torch.Generator(free.device).manual_seed(seed)).cpu()
