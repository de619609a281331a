"""Text towers: the vectors of prompts in the space of a card's images, by open_clip with the weights of the card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.tensors import fill_network
from finc_eval.extractors.weights import check_weights
from finc_eval.numerics.precision import arithmetic
from finc_eval.numerics.process import kept_random_states, own_settings

TEXTS = 64
"""Prompts of a batch."""

NO_IMAGES = {"image_size": 16, "layers": 1, "width": 16, "patch_size": 16, "head_width": 16}
"""Smallest image tower of open_clip, which makes both towers; it is not used."""


class TextTower:
    """The text tower of a card, ready to embed.

    Args:
        card: an extractor of images with a table [text].
        device: device of the network; default: CUDA if available.

    Raises:
        UsageError: the card has no text tower, or open_clip is not installed.
        DataError: the weights are missing, or do not fit the model.
    """

    def __init__(self, card: Card, device: str | torch.device | None = None) -> None:
        if card.text is None or card.weights is None:
            raise UsageError(
                f"{card.name} has no text tower, which embeds prompts as its images: take clip-vitb32 or "
                "clip-vitl14-336, or add a table [text] and [weights] to your card"
            )
        found = check_weights(card)
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
        self._network: Any = fill_network(network, of_text, found and found[0])
        self._network.requires_grad_(False).eval().to(self.device)

    @arithmetic("float32")
    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the vectors of texts, (n, dimension) float32 on the CPU.

        The last tokens of a text that is longer than the model reads are left out, as CLIP does.
        """
        rows = [
            self._network.encode_text(self.tokens(list(texts[start : start + TEXTS])).to(self.device)).float().cpu()
            for start in range(0, len(texts), TEXTS)
        ]
        return torch.cat(rows)

    def unread(self, texts: Sequence[str]) -> str:
        """Say how many texts are longer than the model reads, if any are."""
        most = self.tokens.context_length
        cut = sum(len(self.tokens.encode(text)) + 2 > most for text in texts)  # a token begins a text, another ends it
        ends = f"the end of {cut:,} of {len(texts):,} prompts is not read: the text tower of {self.name} takes {most}"
        return f"{ends} tokens" if cut else ""
