"""A card's networks on a device: samples to embeddings and their check, texts to vectors, embeddings to classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from finc_eval.core.device import send, usable_device
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.cells import cell_table
from finc_eval.extractors.folding import fold
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.networks.cell_maps import CELLS, WithCells
from finc_eval.extractors.networks.tensors import fill_network, load_tensors
from finc_eval.extractors.preprocess import normalize_values, resize_frames
from finc_eval.extractors.weights import check_weights, locate
from finc_eval.numerics.precision import arithmetic, kept_random_states, own_settings
from finc_eval.samples.whole.course import ASSUMED_FPS

Network = Callable[[torch.Tensor], dict[str, torch.Tensor]]

TEXTS_AT_ONCE = 64  # prompts of a batch

NO_IMAGES = {"image_size": 16, "layers": 1, "width": 16, "patch_size": 16, "head_width": 16}
"""Smallest image tower of open_clip, which makes both towers; it is not used."""


class CardNetwork:
    """The network of a card, ready to embed, with float32 as true float32 or the others under autocast.

    A batch that does not fit into memory is halved and tried again; later batches are divided in the same way. A
    network `compiled_for` a batch size has 1.7 times the speed after half a minute, on a CPU where torch can compile.
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
        weights = check_weights(card)
        of_images = card.clip is None or card.output.frames is not None
        layout = torch.channels_last if of_images else torch.channels_last_3d
        with own_settings(), kept_random_states():  # a network is filled with random numbers before its weights
            self._network = load_backbone(card, self.device, weights and weights[0]).to(memory_format=layout)
        self._most: int | None = None
        self._compiled: Network | None = None
        if precision == "float32" and self.device.type == "cpu" and card.clip is None:  # clips gain nothing
            self._fold()
        if (table := cell_table(card)) is not None:
            self._network = WithCells(self._network, table, card.name)
        if compiled_for is not None and self.device.type == "cpu":
            self._most, self._compiled = compiled_for, self._compile(compiled_for)

    def __call__(self, pixels: torch.Tensor, times: torch.Tensor | None = None) -> torch.Tensor:
        """Embed a batch of resized samples.

        Pixels are (m, height, width, 3) or (m, frames, height, width, 3), from `preprocess.resize_frames`; frames are
        shown at `times` in seconds, (m, frames), by default evenly at `ASSUMED_FPS`. The result is (m, d) float32 on
        the device: the embedding, then the card's further outputs.
        """
        return self.with_cells(pixels, times)[0]

    def with_cells(
        self, pixels: torch.Tensor, times: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embed a batch as a call does; also return its cells, (m, windows, c) int8 on the device, or None."""
        parts: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        start = 0
        while start < len(pixels):
            part = pixels[start : start + (self._most or len(pixels))]
            try:
                parts.append(self._embed(part, None if times is None else times[start : start + len(part)]))
                start += len(part)
                continue
            except RuntimeError as error:
                if not _out_of_memory(error):
                    raise
            # The error no longer holds the tensors of the attempt.
            if len(part) == 1:
                raise UsageError(
                    f"{self.device} has too little memory for one sample of {self._card.name}: choose a smaller "
                    "extractor, another device, or free some memory"
                )
            self._most, self._compiled = len(part) // 2, None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        cells = [made for _, made in parts if made is not None]
        return torch.cat([rows for rows, _ in parts]), torch.cat(cells) if cells else None

    @arithmetic()
    @torch.inference_mode()
    def _embed(self, pixels: torch.Tensor, times: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
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
        card, rows = self._card.name, []
        for name, output in wanted.items():
            if output.layer not in outputs:
                raise DataError(
                    f'card {card}: the network has no layer "{output.layer}"{did_you_mean(output.layer, outputs)}: '
                    f"set {name}.layer to one of {', '.join(outputs)}"
                )
            rows.append(outputs[output.layer].float())
            if rows[-1].shape[1:] != (output.dimension,):
                raise DataError(
                    f"card {card}: the network gives {output.layer} of shape {tuple(rows[-1].shape[1:])}, "
                    f"the card says {output.dimension}: correct {name}.dimension"
                )
        return torch.cat(rows, dim=1), outputs.get(CELLS)

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

    def _fold(self) -> None:
        """Fold what follows and precedes convolutions into them, if the embedding of noise then stays the same."""
        plain, noise = self._network, _noise(self._card)

        def outputs(network: torch.nn.Module) -> torch.Tensor:
            self._network = network
            return self._embed(noise, None)[0]

        try:
            with kept_random_states():  # a layer is filled with random numbers before its weights
                self._network = fold(plain, outputs)
        except (DataError, RuntimeError):  # the first batch will tell
            self._network = plain

    @arithmetic()
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


def _out_of_memory(error: Exception) -> bool:
    """Return whether memory was too small: CUDA has its own class of error, the CPU only RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


@dataclass(frozen=True)
class Classifier:
    """A linear layer with named classes."""

    weight: torch.Tensor  # shape (c, d)
    bias: torch.Tensor  # shape (c,)
    names: tuple[str, ...]  # names of the classes, c of them

    def probabilities(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute the probability of each class, shape (n, c), from embeddings of shape (n, d)."""
        return torch.softmax(rows.float().cpu() @ self.weight.T + self.bias, 1)


def load_classifier(card: Card) -> Classifier | None:
    """Read the card's last layer; None if it states none or its weights are not on this machine."""
    if card.head is None or card.weights is None or locate(card.weights) is None:
        return None
    weights = check_weights(card)
    if weights is None:
        return None
    names = imagenet_tree().classes
    tensors = load_tensors(weights[0])
    shapes = {card.head.weight: (len(names), card.output.dimension), card.head.bias: (len(names),)}
    for name, shape in shapes.items():
        if name not in tensors:
            fault = f'its weights have no tensor "{name}"{did_you_mean(name, tensors)}'
        elif tuple(tensors[name].shape) != shape:
            fault = f"the tensor {name} has shape {tuple(tensors[name].shape)}, not {shape}"
        else:
            continue
        raise DataError(f"card {card.name}: {fault}: correct the table [head]")
    return Classifier(tensors[card.head.weight].float(), tensors[card.head.bias].float(), names)


class TextTower:
    """The text tower of an extractor of images, ready to embed.

    A card without a table [text] or an environment without open_clip is a UsageError; weights that are missing or do
    not fit the model are a DataError.
    """

    def __init__(self, card: Card, device: str | torch.device | None = None) -> None:
        if card.text is None or card.weights is None:
            raise UsageError(
                f"{card.name} has no text tower, which embeds prompts as its images: take clip-vitb32 or "
                "clip-vitl14-336, or add a table [text] and [weights] to your card"
            )
        weights = check_weights(card)
        try:
            import open_clip
        except ImportError as error:
            raise UsageError(f"the text tower of {card.name} needs open_clip: pip install open_clip_torch") from error
        name, self.name, self.device = card.text.model, card.name, usable_device(device)
        config = open_clip.get_model_config(name)
        if config is None:
            near = did_you_mean(name, open_clip.list_models())
            raise DataError(f'card {card.name}: open_clip has no model "{name}"{near}: correct text.model')
        wanted: dict[str, Any] = {**config["text_cfg"], **card.text.options}
        if wanted.keys() & {"hf_model_name", "hf_tokenizer_name"}:
            raise DataError(
                f"card {card.name}: the tokens of {name} are in files of a hub, which are not fetched: choose a model "
                "of CLIP's own tokens, such as ViT-B-32"
            )
        self.tokens = open_clip.get_tokenizer(name, context_length=wanted.get("context_length"))
        with own_settings(), kept_random_states():
            try:
                network = open_clip.CLIP(card.output.dimension, NO_IMAGES, wanted, config.get("quick_gelu", False))
            except (TypeError, ValueError, RuntimeError, AssertionError) as error:
                raise DataError(
                    f"card {card.name}: open_clip cannot make {name} with {card.text.options} ({error}): correct "
                    "text.options"
                ) from error
        del network.visual
        of_text = replace(card, weights=replace(card.weights, layout="open-clip-text"))
        self._network: Any = fill_network(network, of_text, weights and weights[0])
        self._network.requires_grad_(False).eval().to(self.device)

    @arithmetic()
    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the vectors of texts, (n, dimension) float32 on the CPU.

        The last tokens of a text that is longer than the model reads are left out, as CLIP does.
        """
        rows = [
            self._network.encode_text(self.tokens(list(texts[start : start + TEXTS_AT_ONCE])).to(self.device))
            .float()
            .cpu()
            for start in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        return torch.cat(rows)

    def unread(self, texts: Sequence[str]) -> str:
        """Say how many texts are longer than the model reads, if any are."""
        most = self.tokens.context_length
        cut = sum(len(self.tokens.encode(text)) + 2 > most for text in texts)  # a token begins a text, another ends it
        ends = f"the end of {cut:,} of {len(texts):,} prompts is not read: the text tower of {self.name} takes {most}"
        return f"{ends} tokens" if cut else ""


def _noise(card: Card) -> torch.Tensor:
    """Return one sample of noise, resized, that the card's golden values are of."""
    golden, frames = card.golden, (card.clip.frames,) if card.clip else ()
    shape, seed = (golden.shape, golden.seed) if golden else ((*frames, *card.preprocessing.size, 3), 0)
    noise = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return torch.from_numpy(np.stack([resize_frames(noise, card.preprocessing)]))


@dataclass(frozen=True)
class ExtractorCheck:
    """Embedding of one sample of noise, compared with the card's golden values."""

    name: str  # name of the card
    device: str  # device of the network
    dimension: int  # dimension of the embedding
    finite: bool  # whether all values of the embedding and of the further outputs are finite
    # "agrees" or "differs", within the card's tolerance; "none" for a card without golden values
    golden: Literal["agrees", "differs", "none"]
    norm: float  # Euclidean norm of the embedding
    first: tuple[float, ...]  # first values of the embedding, as many as the card has golden values, or four
    deviation: float | None  # largest relative deviation from the golden values; None without them

    @property
    def passed(self) -> bool:
        """Return whether the values are finite and do not differ from the golden values."""
        return self.finite and self.golden != "differs"


def check_extractor(card: Card, device: str | torch.device | None = None) -> ExtractorCheck:
    """Embed one sample of noise and compare it with the card's golden values."""
    embedder, golden = CardNetwork(card, device), card.golden
    row = embedder(_noise(card))[0].double().cpu()
    embedding = row[: card.output.dimension]
    norm, first = float(embedding.norm()), embedding[: len(golden.first) if golden else 4].tolist()
    deviation: float | None = None
    compared: Literal["agrees", "differs", "none"] = "none"
    if golden:
        # Relative to a typical value where the value itself is smaller: small values are differences of large values.
        typical = golden.norm / len(embedding) ** 0.5
        deviation = max(
            abs(norm / golden.norm - 1),
            *(abs(now - then) / max(abs(then), typical) for now, then in zip(first, golden.first, strict=True)),
        )
        compared = "agrees" if deviation <= golden.tolerance else "differs"
    return ExtractorCheck(
        name=card.name,
        device=str(embedder.device),
        dimension=len(embedding),
        finite=bool(row.isfinite().all()),
        golden=compared,
        norm=norm,
        first=tuple(first),
        deviation=deviation,
    )
