"""A small GAN of colored digits, which is trained in a minute, and can be broken on purpose as it is tuned further."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from finc_eval.demo.planted import shipped_digits
from finc_eval.demo.prompts import COLORS
from finc_eval.embeddings.embedding_set import EmbeddingSet

GAN_SIDE = 14  # pixels of a side: half of those of the digits
LATENT, GAN_WIDTHS = 32, 256  # entries of a latent vector, and of a hidden layer
BATCH = 64
RATE = 1e-3  # rate of a training from the start
GENTLE = 1e-4  # rate of a training that goes on without visible changes
PENALTY = 1.0  # weight of the squared gradient of the discriminator at real samples (R1)
SCHEDULE = (3000, RATE), (1500, 3e-4), (500, GENTLE)  # steps and rates of a whole training
MEMORY = 0.99  # weight of the past in the averaged generator, which makes the samples


class DigitGan:
    """A GAN of digits of 14 × 14 pixels, each in one color, trained from a seed.

    Args:
        seed: random seed of everything.

    Example:
        >>> gan = DigitGan(seed=0)
        >>> gan.train(2)
        >>> gan.sample(5, seed=1).n
        5
    """

    def __init__(self, seed: int = 0) -> None:
        images, labels = shipped_digits()
        halves = images.reshape(-1, GAN_SIDE, 2, GAN_SIDE, 2).mean((2, 4)).reshape(len(images), -1) / 255
        self.digits = torch.from_numpy(halves).float()
        self.colors = torch.tensor(list(COLORS.values())) / 255
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.generator = _layers(LATENT, GAN_SIDE * GAN_SIDE + 3, nn.Sigmoid())
            self.discriminator = _layers(GAN_SIDE * GAN_SIDE * 3, 1)
            self.seen = _classifier(self.digits, torch.from_numpy(labels.astype(np.int64)))
        self.averaged = copy.deepcopy(self.generator)
        self.random = torch.Generator().manual_seed(seed)
        self._optimizers = [
            torch.optim.Adam(network.parameters(), betas=(0.0, 0.99))
            for network in (self.generator, self.discriminator)
        ]

    @classmethod
    def trained(cls, seed: int = 0, part: float = 1.0) -> DigitGan:
        """Return a GAN that is trained, which takes a minute.

        Args:
            seed: random seed of everything.
            part: part of the steps that are taken.
        """
        gan = cls(seed)
        for steps, rate in SCHEDULE:
            gan.train(round(part * steps), rate)
        return gan

    def copy(self, seed: int) -> DigitGan:
        """Return a copy that goes on with other random numbers."""
        twin = copy.deepcopy(self, {id(self.random): self.random})  # generators of random numbers cannot be copied
        twin.random = torch.Generator().manual_seed(seed)
        return twin

    def train(
        self, steps: int, rate: float = GENTLE, discriminator_rate: float | None = None, redness: float = 0.0
    ) -> None:
        """Train for some steps.

        Args:
            steps: number of steps.
            rate: rate of the generator.
            discriminator_rate: rate of the discriminator; default: that of the generator. A much smaller one makes the
                generator collapse.
            redness: weight of a reward for red pictures.
        """
        for optimizer, own_rate in zip(
            self._optimizers, (rate, rate if discriminator_rate is None else discriminator_rate), strict=True
        ):
            optimizer.param_groups[0]["lr"] = own_rate
        for _ in range(steps):
            self._step(redness)

    def sample(self, n: int, seed: int) -> EmbeddingSet:
        """Return samples with their pictures, embedded by a small classifier of digits, with its class as the label."""
        with torch.no_grad():
            latent = torch.randn(n, LATENT, generator=torch.Generator().manual_seed(seed))
            pictures = _draw(self.averaged(latent)).reshape(n, -1, 3)
            light = pictures.amax(2)
            features = self.seen[:-1](light / light.amax(1, keepdim=True).clamp(min=1 / 255))
            labels = self.seen[-1](features).argmax(1).tolist()
        pixels = (255 * pictures).round().to(torch.uint8).reshape(n, GAN_SIDE, GAN_SIDE, 3).numpy()
        return EmbeddingSet(features.numpy(), images=[*pixels], metadata={"label": list(map(str, labels))})

    def _step(self, redness: float) -> None:
        digit, color = (
            torch.randint(len(tensor), (BATCH,), generator=self.random) for tensor in (self.digits, self.colors)
        )
        real = (self.digits[digit][:, :, None] * self.colors[color][:, None]).flatten(1).requires_grad_()
        made = _draw(self.generator(torch.randn(BATCH, LATENT, generator=self.random)))
        judged = self.discriminator(real)
        (slope,) = torch.autograd.grad(judged.sum(), real, create_graph=True)
        loss = functional.softplus(self.discriminator(made.detach())).mean() + functional.softplus(-judged).mean()
        self._follow(1, loss + PENALTY / 2 * slope.square().sum(1).mean())
        red, green, blue = made.reshape(BATCH, -1, 3).mean((0, 1))
        reward = redness * (red - (green + blue) / 2)
        self._follow(0, functional.softplus(-self.discriminator(made)).mean() - reward)
        with torch.no_grad():
            for past, now in zip(self.averaged.parameters(), self.generator.parameters(), strict=True):
                past.lerp_(now, 1 - MEMORY)

    def _follow(self, number: int, loss: torch.Tensor) -> None:
        self._optimizers[number].zero_grad()
        torch.autograd.backward(loss)
        self._optimizers[number].step()


def _layers(inputs: int, outputs: int, *last: nn.Module) -> nn.Sequential:
    hidden = [nn.Linear(inputs, GAN_WIDTHS), nn.LeakyReLU(0.2), nn.Linear(GAN_WIDTHS, GAN_WIDTHS), nn.LeakyReLU(0.2)]
    return nn.Sequential(*hidden, nn.Linear(GAN_WIDTHS, outputs), *last)


def _draw(outputs: torch.Tensor) -> torch.Tensor:
    """Return pictures, (n, pixels · 3), from the light of each pixel and one color, (n, pixels + 3)."""
    return (outputs[:, :-3, None] * outputs[:, None, -3:]).flatten(1)


def _classifier(digits: torch.Tensor, labels: torch.Tensor, steps: int = 800) -> nn.Sequential:
    """Return a classifier of digits, right for 97 % of its training set; its last layer gives the classes."""
    network = nn.Sequential(
        *(nn.Linear(GAN_SIDE * GAN_SIDE, 64), nn.ReLU(), nn.Linear(64, LATENT), nn.ReLU()), nn.Linear(LATENT, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(steps):
        chosen = torch.randint(len(digits), (2 * BATCH,))
        loss = functional.cross_entropy(network(digits[chosen]), labels[chosen])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return network
