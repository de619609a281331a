"""Kinds of clips are named by how they move: by what was done to them, and not by anything else."""

from functools import cache

import numpy as np
import pytest
import torch
from _described import Described
from _stored import made_once
from PIL import Image, ImageFilter

from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.naming.names import name_by_members

FRAMES, SIDE = 33, 48
N, FAULTY = 36, 12


def scenes():
    """Scenes of N smooth pictures that move in all directions, at unlike speeds, of 66 frames."""
    rng, made = np.random.default_rng(0), []
    for _ in range(N):
        small = [rng.integers(0, 256, (side, side, 3), dtype=np.uint8) for side in (6, 12, 24)]
        large = sum(np.asarray(Image.fromarray(one).resize((160, 160), 3), float) for one in small) / 3
        image, angle, speed = Image.fromarray(large.astype(np.uint8)), rng.uniform(0, 6.28), rng.uniform(0.4, 0.9)
        steps = np.arange(-33, 33)[:, None] * speed * np.array([np.cos(angle), np.sin(angle)])
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


def at(clip, places):
    """Frames at places between frames, blended."""
    low = places.astype(int)
    weight = (places - low)[:, None, None, None]
    return np.rint(clip[low] * (1 - weight) + clip[np.minimum(low + 1, len(clip) - 1)] * weight).astype(np.uint8)


FASTER = {
    "juddering": lambda scene: scene[np.arange(FRAMES) * 3 // 2],
    "with dropped frames": lambda scene: scene[np.flatnonzero(np.random.default_rng(0).random(66) > 0.2)[:FRAMES]],
}
"""Faults that need more frames than a clip has."""

FAULTS = {
    "with alternating sharpness": lambda clip: at(clip, np.arange(FRAMES) / 2),
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


def embed_clips(made):
    card = load_card("motion")
    return CardNetwork(card, "cpu")(torch.from_numpy(made))[:, : card.output.dimension]


@pytest.fixture(scope="module")
def embed():
    return embed_clips


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """Scenes, and the embeddings of their clips."""

    def make(folder):
        drawn = scenes()
        return drawn, embed_clips(drawn[:, :FRAMES])

    return made_once(tmp_path_factory, "clips of scenes", make)


@pytest.fixture(scope="module")
def long(drawn):
    return drawn[0]


@pytest.fixture(scope="module")
def clean(long):
    return long[:, :FRAMES]


@pytest.fixture(scope="module")
def embedded(drawn):
    return drawn[1]


def named(rows, space="motion@00000000"):
    sets = {"gen": Moving(rows, space), "ref": Moving(rows[FAULTY:], space)}
    (name,) = name_by_members([{"gen": np.arange(FAULTY)}], sets)
    return name


@pytest.fixture(scope="module")
def made(embed, long, clean, embedded):
    """A function that returns the embeddings of all clips, the first of which have a fault."""

    @cache
    def with_fault(plant):
        whole = long if plant in FASTER.values() else clean
        return torch.cat([embed(np.stack([plant(one) for one in whole[:FAULTY]])), embedded[FAULTY:]])

    return with_fault


ALIKE = [f"flickering at every {word} frame" for word in ("third", "fourth", "sixth")]
"""Faults that two others of the same kind stand for."""


def but_alike(faults):
    return [pytest.param(one, marks=[pytest.mark.long] * (one in ALIKE)) for one in faults]


@pytest.mark.long
@pytest.mark.one_of_each(by=lambda case: case.startswith("with"))
@pytest.mark.parametrize("trait", but_alike([*FAULTS, *FASTER]))
def test_a_kind_of_faulty_clips_is_named_by_its_fault(made, trait):
    rows = made((FAULTS | FASTER)[trait])
    name = named(rows)
    assert trait in [evidence.value for evidence in name.evidence]
    assert trait in name.text or trait in FASTER  # these are first of all uneven
    assert named(rows, "pixels@00000000").text is None


def test_clips_without_a_fault_have_no_name(embedded):
    assert named(embedded).text is None


OTHER_TRAITS = {
    "shuffled": (lambda clip: clip[np.random.default_rng(0).permutation(FRAMES)], {"looping"}),
    "with a cut": (FAULTS["with a cut"], {"shaking", "looping"}),
    "shaking": (shaken, {"looping", "juddering"}),
    "juddering": (FASTER["juddering"], {other for other in FAULTS if other.startswith("flickering")}),
    "slower by whole frames": (lambda clip: clip[np.arange(FRAMES) // 2], {"with alternating sharpness"}),
    "slower": (
        lambda clip: at(clip, np.arange(FRAMES) / 2),
        {"with dropped frames", "flickering at every second frame"},
    ),
    **{
        trait: (FAULTS[trait], {other for other in FAULTS if other.startswith("flickering")} - {trait})
        for trait in FAULTS
        if trait.startswith("flickering at")
    },
}
"""Faults, and the traits of other faults that look like them."""


@pytest.mark.one_of_each
@pytest.mark.parametrize("fault", but_alike(OTHER_TRAITS))
def test_a_fault_is_not_taken_for_another(made, fault):
    plant, others = OTHER_TRAITS[fault]
    assert others.isdisjoint(evidence.value for evidence in named(made(plant)).evidence)
