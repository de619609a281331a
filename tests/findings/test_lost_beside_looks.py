"""A kind that is lost beside a look of all is said, and a look of all brings no lost kind of its own."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.findings import found
from finc_eval.findings.causes import Held
from finc_eval.findings.finding import Finding

N, CLASSES = 120, 10


def darker(pixels, rng):
    return pixels * 0.4


def noisier(pixels, rng):
    return pixels + rng.normal(0, 40, pixels.shape)


def paler(pixels, rng):
    return 0.7 * pixels + 0.3 * pixels.mean(-1, keepdims=True) + 20


LOOKS = {"darker": darker, "noisier": noisier, "paler": paler}


def drawn(seed, look=None, *, lost=False, spread=0.2):
    """A set without labels: the embedding has mean colors, which the look changes, and what a picture shows."""
    rng = np.random.default_rng(seed)
    shown = np.arange(N) % CLASSES
    shown[shown == 0] = rng.integers(1, CLASSES, (shown == 0).sum()) if lost else 0
    pixels = np.kron(rng.integers(20, 220, (N, 4, 4, 3)).astype(float), np.ones((1, 8, 8, 1)))
    images = (pixels if look is None else LOOKS[look](pixels, rng)).clip(0, 255).astype(np.uint8)
    kinds = 4 * np.eye(CLASSES)[shown] + spread * rng.normal(size=(N, CLASSES))
    colors = images[:, ::8, ::8].reshape(N, -1) / 255
    return fe.EmbeddingSet(np.column_stack([kinds, colors]).astype(np.float32), images=images)


def said_of(gen, ref=None):
    findings = fe.compare(gen, ref or drawn(1)).findings
    return [one for one in findings if one.kind == "look" and one.is_of_all], [
        one for one in findings if one.kind == "kind"
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_a_lost_kind_is_said_beside_a_look_of_all(look):
    looks, kinds = said_of(drawn(2, look, lost=True))
    assert looks
    (lost,) = kinds
    assert lost.share_gen == 0 and lost.share_ref == pytest.approx(0.1, abs=0.02)


def test_a_lost_kind_that_borders_on_others_is_said_beside_a_look_of_all():
    looks, (lost,) = said_of(drawn(2, "darker", lost=True, spread=1.1), drawn(1, spread=1.1))
    assert looks and lost.share_gen == 0


APARTNESS = {  # part of the nearest samples that are members, growth of another kind, whether the kind is lost
    "a place of its own": (0.9, 0.0, True),
    "a place of its own, as another kind grows": (0.9, 0.2, True),
    "a place that borders on others": (0.75, 0.0, True),
    "a place that borders on a kind that grows": (0.75, 0.2, False),
    "a place among others": (0.6, 0.0, False),
}


@pytest.mark.parametrize("case", APARTNESS)
def test_a_kind_that_a_look_may_have_taken_to_another_kind_has_to_be_a_place_of_its_own(case, monkeypatch):
    apartness, growth, is_lost = APARTNESS[case]
    monkeypatch.setattr(found, "_apartness", lambda near, members: apartness)
    ref = np.repeat(["lost", "other", "rest"], [20, 20, 60])
    gen = np.repeat(["other", "rest"], [20 + round(100 * growth), 80 - round(100 * growth)])
    sets = {"gen": gen, "ref": ref}
    units = [
        Held(
            Finding(name, "kind", False, (gen == name).mean(), (ref == name).mean(), 0.001, (name,)),
            {label: ids == name for label, ids in sets.items()},
        )
        for name in ("lost", "other")
    ]
    rows = {label: torch.randn(100, 2, generator=torch.Generator().manual_seed(0)) for label in sets}
    lost, _ = found._under_look(units, rows, lambda moved: gen.tolist(), sets)
    assert (lost.without_look is not None) == is_lost


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_of_all_loses_no_kind(look):
    looks, kinds = said_of(drawn(2, look))
    assert looks and kinds == []


def test_a_gate_says_a_lost_kind_beside_a_look_of_all():
    limits = {"appearance": {"whole": 0.5}, "kinds": {"lose": 0.5}}
    verdict = fe.gate(drawn(2, "darker", lost=True), drawn(3), drawn(1), limits)
    assert {one.kind for one in verdict.findings} == {"look", "kind"}
