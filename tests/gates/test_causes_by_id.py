"""A gate by id says each cause once: gray, one picture for all seeds, and one picture for some of them."""

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe

N = 60
POLICY = {
    "by_id": {"broken": 0, "worse": 0},
    "kinds": {"lose": 0.5, "new": 0.05},
    "appearance": {"part": 0.05, "whole": 0.3},
    "basics": {"duplicates": 0.05, "copies": 0.05},
}


def drawn(seed):
    rng = np.random.default_rng(seed)
    blocks = np.kron(rng.integers(0, 256, (N, 8, 8, 3)), np.ones((1, 4, 4, 1))).astype(np.uint8)
    return [Image.fromarray(one) for one in blocks]


def as_set(images):
    small = [np.asarray(one.resize((8, 8), Image.Resampling.BOX), np.float32).ravel() for one in images]
    return fe.EmbeddingSet(np.stack(small) / 255, images=images)


BEFORE, OTHERS = drawn(0), drawn(1)
CASES = {
    "gray": ([one.convert("L").convert("RGB") for one in BEFORE], "gray, without color"),
    "one picture of the run before": ([BEFORE[0]] * N, "one picture, 60 times"),
    "the last picture": ([BEFORE[-1]] * N, "one picture, 60 times"),
    "one new picture": ([OTHERS[0]] * N, "one picture, 60 times"),
    "a fifth of the seeds": (BEFORE[:48] + [BEFORE[5]] * 12, "one picture, 13 times"),
    "a fifth of the seeds, a new picture": (BEFORE[:48] + [OTHERS[5]] * 12, "one picture, 12 times"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_cause_is_one_finding_of_pairs_and_of_a_gate_by_id(case):
    images, name = CASES[case]
    gen, before = as_set(images), as_set(BEFORE)
    pairs = fe.compare(gen, before, pairs="id", features=50)
    verdict = fe.gate(gen, before, as_set(OTHERS), POLICY)
    assert [[finding.name for finding in result.findings] for result in (pairs, verdict)] == [[name], [name]]
    assert verdict.overall == "regression" and name in " ".join(verdict.headline_parts.values())
