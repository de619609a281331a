"""Networks of images embed clips frame by frame, and pool as the card says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import check_rules
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.samples.clips import Clip

IMAGES = load_card("efficientnet-lite0")
FRAMES = 5


def card_of_clips(frames, dimension):
    output = replace(IMAGES.output, frames=frames, dimension=dimension)
    return replace(IMAGES, output=output, extra={}, cells=None, clip=Clip(FRAMES, 1, 1, "hold"), golden=None)


@pytest.fixture(scope="module")
def clips():
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, FRAMES, 224, 224, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def frames(clips):
    rows = CardNetwork(replace(IMAGES, extra={}), "cpu")(clips.flatten(0, 1))
    return rows.view(2, FRAMES, -1)


POOLED = {
    "mean": lambda rows: rows.mean(1),
    "mean and deviation": lambda rows: torch.cat([rows.mean(1), ((rows - rows.mean(1, True)) ** 2).mean(1).sqrt()], 1),
    "thirds": lambda rows: torch.cat([rows[:, :2].mean(1), rows[:, 2:4].mean(1), rows[:, 4:].mean(1)], 1),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("pooling", POOLED)
def test_a_clip_is_the_pooled_embeddings_of_its_frames(pooling, clips, frames):
    expected = POOLED[pooling](frames)
    found = CardNetwork(card_of_clips(pooling, expected.shape[1]), "cpu")(clips)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_thirds_know_the_order_of_frames_and_means_do_not(clips):
    mean, thirds = (
        CardNetwork(card_of_clips(pooling, 1280 * parts), "cpu") for pooling, parts in (("mean", 1), ("thirds", 3))
    )
    both = torch.stack([clips[0], clips[0].flip(0)])
    torch.testing.assert_close(*mean(both), rtol=1e-4, atol=1e-4)
    ahead, backwards = thirds(both)
    assert (ahead - backwards).norm() > 0.01 * ahead.norm()


def test_the_pooling_decides_the_recipe_and_needs_clips():
    one, other = (card_of_clips(pooling, 1280).recipe for pooling in ("mean", "thirds"))
    assert one != other and "frames" not in IMAGES.recipe["output"]
    with pytest.raises(DataError, match="pools the frames of clips: add a table"):
        check_rules(replace(card_of_clips("mean", 1280), clip=None), "card")
