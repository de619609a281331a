"""A quarter of clips with a fault is named by it, on crops of real clips and on camera moves over photographs."""

import numpy as np
import pytest
import torch
import video_faults
from video_faults import FAULTS, TRAITS

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.naming.names import name_by_members

N, FAULTY = 48, 12

SMALL = ("sped by 2",)
"""Faults that are smaller than what scenes differ by: a dozen such clips may have no name, or that of the fault."""


@pytest.fixture(scope="module")
def scenes(assets):
    return video_faults.scenes(N, seed=77, real=2)


def embed(clips):
    return CardNetwork(load_card("motion"), "cpu")(torch.from_numpy(np.stack(clips)))[
        :, : load_card("motion").output.dimension
    ]


@pytest.fixture(scope="module")
def clean(scenes):
    return embed([FAULTS["none"](scene, None, None) for scene in scenes])


@pytest.mark.by_turns(3)
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_quarter_of_clips_with_a_fault_is_named_by_it(scenes, clean, fault):
    rng = np.random.default_rng(1)
    faulty = embed([FAULTS[fault](scenes[row], rng, scenes[row + FAULTY]) for row in range(FAULTY)])
    made = ArrayEmbeddings(torch.cat([faulty, clean[FAULTY:]]))
    made.space = "motion@00000000"
    (name,) = name_by_members([{"gen": np.arange(FAULTY)}], {"gen": made})
    found = [evidence.value for evidence in name.evidence]
    if fault in SMALL and name.text is None:
        return
    assert (TRAITS[fault] in found) if TRAITS[fault] else found == []
