"""FWD, the Fréchet wavelet distance (Veeramacheneni, Wolter, Kuehne and Gall, ICLR 2025, arXiv 2312.15289).

Haar's wavelet packets divide the pixels of an image by frequency. FWD is the mean over packets of their Fréchet
distances. Each packet has 16 x 16 coefficients of each color, as the authors choose the level: 4 for 256 x 256 pixels.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from finc_eval.core.errors import IncompatibleError
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE, extractor_of
from finc_eval.estimates.of_statistic import Statistic
from finc_eval.measures.frechet import distance_of_gaussians
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, from_moments, row_blocks
from finc_eval.measures.inputs import of_statistic
from finc_eval.numerics.moments import Moments

PACKET_SIDE = 16  # coefficients along a side of a packet, in all of the authors' experiments
COLOR_CHANNELS = 3
IMAGE_SIDES = (32, 64, 128, 256)  # pixels along a side: 1 to 4 halvings of the frequencies
MAX_PACKETS = 64  # packets whose covariances are held at once: 302 MB for each set, which is read again for the next


def wavelet_distance(gen: Embeddings, ref: Embeddings, run: Run | None = None) -> float:
    """Compute the mean Fréchet distance over the wavelet packets of two sets of pixels from 0 to 1."""
    run, bands = Run.of(run), _bands(gen)
    values: list[float] = []
    for start in range(0, bands**2, MAX_PACKETS):
        some = slice(start, min(start + MAX_PACKETS, bands**2))
        pairs = zip(_gaussians(gen, some, bands, run), _gaussians(ref, some, bands, run), strict=True)
        values += [distance_of_gaussians(x, y).value for x, y in pairs]
    return sum(values) / len(values)


def packets(pixels: torch.Tensor, bands: int) -> torch.Tensor:
    """Transform images, (n, 3·s·s) with s = 16·bands, to packets, (bands², n, 3·16·16)."""
    haar = torch.ones(1, 1, dtype=pixels.dtype, device=pixels.device)
    step = torch.tensor([[1, 1], [1, -1]], dtype=pixels.dtype, device=pixels.device) / 2**0.5
    while len(haar) < bands:
        haar = torch.kron(haar, step)
    blocks = pixels.reshape(len(pixels), COLOR_CHANNELS, PACKET_SIDE, bands, PACKET_SIDE, bands)
    return torch.einsum("nchawb,pa,qb->pqnchw", blocks, haar, haar).flatten(3).flatten(0, 1)


def _gaussians(embeddings: Embeddings, some: slice, bands: int, run: Run) -> Iterator[GaussianStatistics]:
    """Yield the Gaussians of some packets of a set, which is read once."""
    sums = [
        Moments(COLOR_CHANNELS * PACKET_SIDE**2, "float64", run.torch_device) for _ in range(some.stop - some.start)
    ]
    center = torch.empty(0)
    for here, rows in row_blocks(embeddings, run.torch_device, min(run.portion, 256)):
        values = packets(rows, bands)[some]
        center = values.mean(1, keepdim=True) if here.start == 0 else center
        for part, centered in zip(sums, values - center, strict=True):
            part.update(centered)
    return (
        from_moments(part, middle[0], embeddings.name, embeddings.space)
        for part, middle in zip(sums, center, strict=True)
    )


def _bands(embeddings: Embeddings) -> int:
    """Return the number of bands of frequencies along a side; raise IncompatibleError unless the set holds pixels."""
    extractor, sides = extractor_of(embeddings.space), {COLOR_CHANNELS * side**2: side for side in IMAGE_SIDES}
    if embeddings.dim not in sides or not (embeddings.space.startswith(ARRAY_SPACE) or extractor.startswith("pixels")):
        raise IncompatibleError(
            f"fwd takes pixels of square images with sides of {', '.join(map(str, IMAGE_SIDES))}, and "
            f"{embeddings.name} has {embeddings.dim} numbers ({extractor}): extract it by pixels-256, or by a card of "
            "your own like it that is named pixels-SIDE"
        )
    return sides[embeddings.dim] // PACKET_SIDE


def _wavelets(gen: Embeddings, ref: Embeddings, run: Run) -> Statistic:
    return lambda gen, ref: {"fwd": wavelet_distance(gen, ref, run)}


def _notes(gen: Embeddings, ref: Embeddings) -> tuple[str, ...]:
    least = COLOR_CHANNELS * PACKET_SIDE**2
    return tuple(
        f"{embeddings.name} has {plural(embeddings.n, 'sample')}: packets of {least} coefficients lack full rank, and "
        f"the distance is too high by an amount that depends on n; give more than {least}, or compare at equal n only"
        for embeddings in (gen, ref)
        if embeddings.n <= least
    )


METRICS = (
    of_statistic(
        "fwd",
        "Fréchet wavelet distance: mean over the frequencies of pixels",
        _wavelets,
        higher_is_better=False,
        notes=_notes,
    ),
)
