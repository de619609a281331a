"""Kinds of clips are named by how they move: by what was done to them, and not by anything else."""

import numpy as np
import pytest
import torch
from _described import Described
from PIL import Image, ImageFilter

from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import Embedder
from finc_eval.naming.names import name_modes

FRAMES, SIDE = 33, 64
N, FAULTY = 36, 12


def clips():
    """Clips of N smooth pictures that move in all directions, at unlike speeds."""
    rng, made = np.random.default_rng(0), []
    for _ in range(N):
        small = [rng.integers(0, 256, (side, side, 3), dtype=np.uint8) for side in (6, 12, 24)]
        large = sum(np.asarray(Image.fromarray(one).resize((160, 160), 3), float) for one in small) / 3
        image, angle, speed = Image.fromarray(large.astype(np.uint8)), rng.uniform(0, 6.28), rng.uniform(0.4, 0.9)
        steps = np.arange(-16, 17)[:, None] * speed * np.array([np.cos(angle), np.sin(angle)])
        boxes = [(48 - x, 48 - y, 48 - x + SIDE, 48 - y + SIDE) for x, y in steps]
        made.append(np.stack([np.asarray(image.resize((SIDE, SIDE), 3, box=box)) for box in boxes]))
    return np.stack(made)


def repeated(clip):
    return clip[np.maximum(np.arange(FRAMES) - (np.arange(FRAMES) % 4 == 3), 0)]


def still_at_the_end(clip):
    return clip[np.minimum(np.arange(FRAMES), 16)]


def flickering(clip, factors):
    return (clip * factors[:, None, None, None]).astype(np.uint8)


def every(period):
    return np.where(np.arange(FRAMES) % period, 1, 0.85)


def blurring(clip):
    return np.stack(
        [np.asarray(Image.fromarray(one).filter(ImageFilter.GaussianBlur(k / 16))) for k, one in enumerate(clip)]
    )


def shaken(clip):
    rng = np.random.default_rng(0)
    return np.stack([np.roll(one, rng.integers(-2, 3, 2), (0, 1)) for one in clip])


FAULTS = {
    "with less motion": lambda clip: np.repeat(clip[:1], FRAMES, 0),
    "with repeated frames": repeated,
    "slowing down": still_at_the_end,
    "flickering": lambda clip: flickering(clip, np.random.default_rng(0).uniform(0.85, 1, FRAMES)),
    **{
        f"flickering at every {word} frame": lambda clip, period=period: flickering(clip, every(period))
        for period, word in enumerate(("second", "third", "fourth", "fifth", "sixth"), 2)
    },
    "with a cut": lambda clip: np.concatenate([clip[:17], clip[::-1, ::-1, ::-1][17:]]),
    "looping": lambda clip: clip[np.arange(FRAMES) % 11],
    "shaking": shaken,
    "blurring over time": blurring,
    "getting sharper": lambda clip: blurring(clip)[::-1].copy(),
    "getting darker": lambda clip: (clip * np.linspace(1, 0.3, FRAMES)[:, None, None, None]).astype(np.uint8),
    "with jumps between frames": lambda clip: clip[np.arange(FRAMES) + 4 * (np.arange(FRAMES) > 20) - 4],
}


class Moving(Described):
    """Clips by their embeddings."""

    def __init__(self, rows, space):
        super().__init__(len(rows))
        self.space, self._embedded = space, rows

    def rows_at(self, indices):
        return self._embedded[torch.as_tensor(indices)]


@pytest.fixture(scope="module")
def embed():
    card = load_card("motion")
    embedder = Embedder(card, "cpu")
    return lambda made: embedder(torch.from_numpy(made))[:, : card.output.dimension]


@pytest.fixture(scope="module")
def clean():
    return clips()


@pytest.fixture(scope="module")
def embedded(embed, clean):
    return embed(clean)


def named(rows, space="motion@00000000"):
    sets = {"gen": Moving(rows, space), "ref": Moving(rows[FAULTY:], space)}
    (name,) = name_modes([{"gen": np.arange(FAULTY)}], sets)
    return name


@pytest.mark.parametrize("trait", FAULTS)
def test_a_kind_of_faulty_clips_is_named_by_its_fault(embed, clean, embedded, trait):
    faulty = embed(np.stack([FAULTS[trait](clip) for clip in clean[:FAULTY]]))
    made = torch.cat([faulty, embedded[FAULTY:]])
    name = named(made)
    assert trait in [evidence.value for evidence in name.evidence]
    assert trait in name.text
    assert named(made, "pixels@00000000").text is None


def test_clips_without_a_fault_have_no_name(embedded):
    assert named(embedded).text is None
