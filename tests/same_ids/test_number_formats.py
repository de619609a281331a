"""A small diffusion model in another number format: the same seeds make other bits, and the release passes."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits

STEPS, COUNT = 12, 100


class Denoiser(nn.Module):
    """A network that says which noise is in digits of 28 pixels at one of the steps."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 1, 3, padding=1)
        self.inner = nn.ModuleList([nn.Conv2d(24, 24, 3, padding=step, dilation=step) for step in (1, 2, 4, 2, 1)])
        self.steps = nn.Embedding(STEPS, 24)

    def forward(self, images, step):
        found = self.first(images) + self.steps(step)[:, :, None, None]
        for layer in self.inner:
            found = found + layer(nn.functional.silu(found))
        return self.last(nn.functional.silu(found))


KEPT = torch.cumprod(1 - torch.linspace(0.02, 0.5, STEPS), 0)  # share of the picture that is left at each step


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    digits = torch.from_numpy(shipped_digits()[0]).float()[:, None] / 127.5 - 1
    net = Denoiser()
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    for _ in range(150):
        images, step = digits[torch.randint(len(digits), (32,))], torch.randint(STEPS, (32,))
        noise, kept = torch.randn_like(images), KEPT[step][:, None, None, None]
        loss = (net(kept.sqrt() * images + (1 - kept).sqrt() * noise, step) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


@torch.inference_mode()
def draw(model, dtype, seed=1):
    """Draw digits without noise on the way (DDIM), in a number format."""
    net = Denoiser()
    net.load_state_dict(model.state_dict())
    net = net.to(dtype)
    images = torch.randn(COUNT, 1, 28, 28, generator=torch.Generator().manual_seed(seed)).to(dtype)
    for step in reversed(range(STEPS)):
        kept, before = KEPT[step], KEPT[step - 1] if step else torch.tensor(1.0)
        noise = net(images, torch.full((COUNT,), step))
        clean = ((images - (1 - kept).sqrt().to(dtype) * noise) / kept.sqrt().to(dtype)).clamp(-1, 1)
        images = before.sqrt().to(dtype) * clean + (1 - before).sqrt().to(dtype) * noise
    pixels = ((images.float()[:, 0].clamp(-1, 1) + 1) * 127.5).round().byte().numpy()
    pictures = [Image.fromarray(one) for one in pixels]
    rows, ids = pixels.reshape(COUNT, -1) / np.float32(255), [f"{n:04d}.png" for n in range(COUNT)]
    return fe.EmbeddingSet(rows, ids, {}, pictures)


@pytest.mark.by_turns(2)
@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_release_in_another_number_format_passes(model, dtype):
    old, new = draw(model, torch.float32), draw(model, dtype)
    verdict = fe.gate(new, old, old, {"by_id": {"broken": 0, "worse": 0}})
    assert verdict.by_id.changed > 0
    assert verdict.overall == "pass", verdict.summary
