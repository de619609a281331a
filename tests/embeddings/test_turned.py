"""Pictures are embedded upside down by the network of their set, once."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from finc_eval.core.run import Run
from finc_eval.embeddings.recipe import space_of
from finc_eval.embeddings.stored import turned
from finc_eval.embeddings.stored.turned import Turner
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.extractors.preprocess import resize_frames

CARD, RUN = load_card("efficientnet-lite0"), Run(device="cpu")
SPACE, PIXELS = space_of(CARD), space_of(load_card("pixels"))
CONTENT, LOOKED, ROWS = np.arange(10, dtype=np.uint64), np.array([1, 4, 5, 8, 9]), np.array([4, 8, 9])
IMAGES = np.random.default_rng(0).integers(0, 256, (len(LOOKED), 40, 50, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def few(monkeypatch, own_cache_folder):
    monkeypatch.setattr(turned, "LEAST_TURNED", len(ROWS))


def turn(content=CONTENT):
    turner = Turner.of(SPACE, content, LOOKED, ROWS, RUN)
    for start in range(0, len(LOOKED), 2):
        turner.add(start, [Image.fromarray(image) for image in IMAGES[start : start + 2]])
    return turner.keep()


def test_pictures_are_resized_and_then_turned():
    found = turn()
    chosen = IMAGES[np.searchsorted(LOOKED, ROWS)]
    ready = np.stack([resize_frames(image, CARD.preprocessing)[::-1, ::-1] for image in chosen])
    expected = CardNetwork(replace(CARD, cells=None, extra={}), "cpu")(torch.from_numpy(ready.copy())).numpy()
    np.testing.assert_array_equal(found.rows, ROWS)
    np.testing.assert_allclose(found.values, expected, atol=1e-4)


def test_the_same_pictures_are_embedded_once_and_others_again(monkeypatch):
    first, embedded = turn(), []
    own = Turner._embed
    monkeypatch.setattr(Turner, "_embed", lambda self, images: (embedded.append(len(images)), own(self, images))[1])
    np.testing.assert_array_equal(turn().values, first.values)
    assert embedded == []
    turn(CONTENT + np.uint64(1))
    assert sum(embedded) == len(ROWS)


DAMAGE = {
    "cut": lambda data: data[:-30],
    "no archive": lambda data: b"text",
    "a changed byte": lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_file_is_made_again(case):
    first = turn()
    (path,) = turned._folder().glob("*.npz")
    path.write_bytes(DAMAGE[case](path.read_bytes()))
    np.testing.assert_array_equal(turn().values, first.values)


def test_the_oldest_files_go(monkeypatch):
    monkeypatch.setattr(turned, "MOST_FILES", 2)
    monkeypatch.setattr(Turner, "_embed", lambda self, images: np.zeros((len(images), 1280), np.float32))
    for number in range(4):
        turn(CONTENT + np.uint64(number))
    assert len([*turned._folder().glob("*.npz")]) == 2


NOT_TURNED = {
    "few pictures": (SPACE, CONTENT, ROWS[:2]),
    "unknown pixels": (SPACE, None, ROWS),
    "a network without cells": (PIXELS, CONTENT, ROWS),
    "arrays": ("array-1280", CONTENT, ROWS),
    "another version of the network": (f"{CARD.name}@00000000", CONTENT, ROWS),
    "clips": (f"{CARD.name}:frames@00000000", CONTENT, ROWS),
}


@pytest.mark.parametrize("case", NOT_TURNED)
def test_nothing_is_turned_where_upright_is_unknown(case):
    space, content, rows = NOT_TURNED[case]
    assert Turner.of(space, content, LOOKED, rows, RUN) is None
