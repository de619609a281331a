"""A kind that is lost beside a look of all is said, and a look of all brings no lost kind of its own."""

import numpy as np
import pytest

import finc_eval as fe

N, CLASSES = 120, 10


def darker(pixels, rng):
    return pixels * 0.4


def noisier(pixels, rng):
    return pixels + rng.normal(0, 40, pixels.shape)


def paler(pixels, rng):
    return 0.7 * pixels + 0.3 * pixels.mean(-1, keepdims=True) + 20


LOOKS = {"darker": darker, "noisier": noisier, "paler": paler}


def drawn(seed, look=None, *, lost=False):
    """A set without labels: the embedding has mean colors, which the look changes, and what a picture shows."""
    rng = np.random.default_rng(seed)
    shown = np.arange(N) % CLASSES
    shown[shown == 0] = rng.integers(1, CLASSES, (shown == 0).sum()) if lost else 0
    pixels = np.kron(rng.integers(20, 220, (N, 4, 4, 3)).astype(float), np.ones((1, 8, 8, 1)))
    images = (pixels if look is None else LOOKS[look](pixels, rng)).clip(0, 255).astype(np.uint8)
    kinds = 4 * np.eye(CLASSES)[shown] + 0.2 * rng.normal(size=(N, CLASSES))
    colors = images[:, ::8, ::8].reshape(N, -1) / 255
    return fe.EmbeddingSet(np.column_stack([kinds, colors]).astype(np.float32), images=images)


def said_of(gen):
    findings = fe.compare(gen, drawn(1)).findings
    return [one for one in findings if one.kind == "look" and one.is_of_all], [
        one for one in findings if one.kind == "kind"
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_a_lost_kind_is_said_beside_a_look_of_all(look):
    looks, kinds = said_of(drawn(2, look, lost=True))
    assert looks
    (lost,) = kinds
    assert lost.share_gen == 0 and lost.share_ref == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_of_all_loses_no_kind(look):
    looks, kinds = said_of(drawn(2, look))
    assert looks and kinds == []


def test_a_gate_says_a_lost_kind_beside_a_look_of_all():
    limits = {"appearance": {"whole": 0.5}, "kinds": {"lose": 0.5}}
    found = fe.gate(drawn(2, "darker", lost=True), drawn(3), drawn(1), limits)
    assert {one.kind for one in found.findings} == {"look", "kind"}
