"""A release that passes without a finding is said with the faults that would have been seen; others are not."""

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.findings.visible import Visible


def pictures(folder, seed, n=60):
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for number in range(n):
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).resize((32, 32)).save(folder / f"{number}.png")
    return str(folder)


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    place = tmp_path_factory.mktemp("visible")
    sets = [pictures(place / name, seed) for seed, name in enumerate(("gen", "old", "ref"), 10)]
    return fe.gate(*sets, {"basics": {"samples": 20}}, extractor="pixels")


def test_a_pass_says_what_would_have_been_seen(verdict):
    assert verdict.overall == "pass" and not verdict.findings
    assert verdict.visible is not None and verdict.visible.copies is None and verdict.visible.blurred is not None
    assert "would have been seen" in verdict.says["seen"]
    assert "would have been seen" in verdict.summary and "would have been seen" in verdict.to_markdown()
    assert Visible(**verdict.to_dict()["visible"]) == verdict.visible
