"""A card's network on a device: resized samples in, embeddings out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import torch

from finc_eval.core.device import send, usable_device
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.extractors.card import Card, NetworkPrecision, Output
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.preprocess import normalize_values
from finc_eval.extractors.weights import check_weights
from finc_eval.numerics.precision import arithmetic
from finc_eval.numerics.process import kept_random_states, own_settings
from finc_eval.samples.clips import ASSUMED_FPS

Network = Callable[[torch.Tensor], dict[str, torch.Tensor]]


class Embedder:
    """The network of a card, ready to embed.

    A batch that does not fit into memory is halved and tried again; later batches are divided in the same way.

    Args:
        card: the extractor.
        device: device of the network; default: CUDA if available.
        precision: arithmetic of the network: "float32" is true float32, the others run under autocast.
        compiled_for: batch size to compile the network for, on a CPU where torch can compile; it takes half a minute
            and gives 1.7 times the speed. None: do not compile.
    """

    def __init__(
        self,
        card: Card,
        device: str | torch.device | None = None,
        precision: NetworkPrecision = "float32",
        compiled_for: int | None = None,
    ) -> None:
        self.device = usable_device(device)
        self._card, self._precision = card, precision
        found = check_weights(card)
        of_images = card.clip is None or card.output.frames is not None
        layout = torch.channels_last if of_images else torch.channels_last_3d
        with own_settings(), kept_random_states():  # a network is filled with random numbers before its weights
            self._network = load_backbone(card, self.device, found and found[0]).to(memory_format=layout)
        self._most: int | None = None
        self._compiled: Network | None = None
        if compiled_for is not None and self.device.type == "cpu":
            self._most, self._compiled = compiled_for, self._compile(compiled_for)

    def __call__(self, pixels: torch.Tensor, times: torch.Tensor | None = None) -> torch.Tensor:
        """Embed a batch of resized samples.

        Args:
            pixels: (m, height, width, 3) or (m, frames, height, width, 3), from `preprocess.resize_frames`.
            times: instants in seconds at which the frames of clips are shown, (m, frames); default: evenly spaced at
                `ASSUMED_FPS`.

        Returns:
            (m, d) float32 on the device: the values of the embedding, then of the card's further outputs.
        """
        rows: list[torch.Tensor] = []
        start = 0
        while start < len(pixels):
            part = pixels[start : start + (self._most or len(pixels))]
            embedded = self._fitting(part, None if times is None else times[start : start + len(part)])
            if embedded is None:
                self._make_room(len(part))
            else:
                rows.append(embedded)
                start += len(part)
        return torch.cat(rows)

    def _fitting(self, pixels: torch.Tensor, times: torch.Tensor | None) -> torch.Tensor | None:
        """Embed samples; None if the memory is too small."""
        try:
            return self._embed(pixels, times)
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            return None

    @arithmetic("float32")
    @torch.inference_mode()
    def _embed(self, pixels: torch.Tensor, times: torch.Tensor | None) -> torch.Tensor:
        batch = normalize_values(send(pixels, self.device), self._card.preprocessing)
        if getattr(self._network, "takes_times", False):
            if times is None:
                times = torch.arange(pixels.shape[1]).expand(len(pixels), -1) / ASSUMED_FPS
            outputs = self._run(partial(self._network, times=send(times, self.device)), batch)
        elif self._compiled is None:
            outputs = self._run(self._network, batch)
        else:
            # The network is compiled for one shape: a smaller last batch is padded, and the padding is cut off.
            filled = torch.cat([batch, batch.new_zeros((self._most or 0) - len(batch), *batch.shape[1:])])
            outputs = {name: rows[: len(batch)] for name, rows in self._run(self._compiled, filled).items()}
        wanted = {"output": self._card.output}
        wanted |= {f"extra.{name}": output for name, output in self._card.extra.items()}
        return torch.cat([self._checked(outputs, name, output) for name, output in wanted.items()], dim=1)

    def _run(self, network: Network, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        kind = getattr(torch, self._precision)
        autocast = torch.autocast(self.device.type, kind) if kind != torch.float32 else nullcontext()
        try:
            with autocast:
                outputs: dict[str, torch.Tensor] = network(batch)
        except Exception as error:  # networks raise almost anything on inputs of a wrong size
            if _out_of_memory(error):
                raise
            what = (str(error).strip().splitlines() or [""])[-1] or type(error).__name__
            raise DataError(
                f"card {self._card.name}: the network fails on a batch of shape {tuple(batch.shape)} ({what}): check "
                "preprocessing.size, and that the network runs on this device in this precision"
            ) from error
        return outputs

    @arithmetic("float32")
    @torch.inference_mode()
    def _compile(self, size: int) -> Network | None:
        """Compile the network for batches of this size; None if torch cannot compile it here."""
        how, clip = self._card.preprocessing, self._card.clip
        shape = (size, *([clip.frames] if clip else []), *how.size, 3)
        compiled = torch.compile(self._network, dynamic=False)
        try:
            self._run(compiled, normalize_values(torch.zeros(shape, dtype=torch.uint8, device=self.device), how))
        except Exception:  # this machine has no compiler, or it cannot compile this network
            return None
        return compiled

    def _checked(self, outputs: dict[str, torch.Tensor], name: str, wanted: Output) -> torch.Tensor:
        card = self._card.name
        if wanted.layer not in outputs:
            raise DataError(
                f'card {card}: the network has no layer "{wanted.layer}"{did_you_mean(wanted.layer, outputs)}: '
                f"set {name}.layer to one of {', '.join(outputs)}"
            )
        rows = outputs[wanted.layer]
        if rows.shape[1:] != (wanted.dimension,):
            raise DataError(
                f"card {card}: the network gives {wanted.layer} of shape {tuple(rows.shape[1:])}, "
                f"the card says {wanted.dimension}: correct {name}.dimension"
            )
        return rows.float()

    def _make_room(self, tried: int) -> None:
        if tried == 1:
            raise UsageError(
                f"{self.device} has too little memory for one sample of {self._card.name}: choose a smaller extractor, "
                "another device, or free some memory"
            )
        self._most, self._compiled = tried // 2, None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _out_of_memory(error: Exception) -> bool:
    """Return whether memory was too small: CUDA has its own class of error, the CPU only RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
