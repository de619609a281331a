"""The extractor of motion: its flow is where pictures went, and its histograms are those of FVMD."""

import math

import numpy as np
import pytest
import torch
from _videos import encode
from PIL import Image

import finc_eval as fe
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.network import CardNetwork
from finc_eval.extractors.networks.flow import optical_flow
from finc_eval.extractors.networks.motion import MEASURED, measurements, motion_histograms

CARD = load_card("motion")
SIDE, FRAMES = CARD.preprocessing.size[0], CARD.clip.frames


def picture(seed=0, side=160):
    """A smooth picture with edges at all scales."""
    rng = np.random.default_rng(seed)
    layers = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (n, n, 3), dtype=np.uint8)).resize((side, side), 3), float)
        for n in (5, 10, 20, 40)
    ]
    return (sum(layers) / 4).astype(np.uint8)


def moved(image, right, down, side=SIDE):
    """What a camera sees whose picture has moved by so many pixels."""
    box = (40 - right, 40 - down, 40 - right + side, 40 - down + side)
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC, box=box))


def pan(speed, fps=25.0, seed=0, frames=FRAMES, angle=0.0):
    """Frames of a picture that moves by `speed` heights a second."""
    step = speed * SIDE / fps
    middle = (frames - 1) / 2
    return np.stack(
        [
            moved(picture(seed), step * (k - middle) * math.cos(angle), step * (k - middle) * math.sin(angle))
            for k in range(frames)
        ]
    )


def described(clips, fps=25.0, times=None):
    """Embed clips, (n, frames, height, width, 3)."""
    clips = torch.from_numpy(np.stack(clips))
    if times is None:
        times = (torch.arange(clips.shape[1]) / fps).expand(len(clips), -1)
    return CardNetwork(CARD, "cpu")(clips, times)[:, : CARD.output.dimension]


def gray(image):
    return torch.from_numpy(image @ np.array([0.299, 0.587, 0.114]) / 255).float()[None, None]


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("angle", [0.0, 2.0, 4.0])
def test_flow_is_the_displacement_of_the_picture(distance, angle):
    right, down = distance * math.cos(angle), distance * math.sin(angle)
    flow, _ = optical_flow(gray(moved(picture(), 0, 0)), gray(moved(picture(), right, down)))
    inner = flow[0, :, 10:-10, 10:-10]
    assert inner[0].median() == pytest.approx(right, abs=0.1 + 0.02 * distance)
    assert inner[1].median() == pytest.approx(down, abs=0.1 + 0.02 * distance)


def test_flicker_and_fading_are_not_motion():
    dark = (0.6 * moved(picture(), 0, 0)).astype(np.uint8)
    flow, _ = optical_flow(gray(moved(picture(), 0, 0)), gray(dark))
    assert flow.abs().mean() < 0.15


def test_histograms_are_those_of_fvmd():
    """The numbers are those of calc_hist of the package fvmd 1.0.0."""
    vectors = np.random.default_rng(0).normal(0, 20, (2, 12, 400, 2))
    found = motion_histograms(torch.from_numpy(vectors).view(2, 12, 20, 20, 2)).unflatten(1, (3, 4)).sum(2)
    assert found[0, 0, 0, 0].tolist() == [7.75, 7.0, 9.5, 4.625, 4.75, 10.125, 9.75, 8.0]
    assert found[1, 2, 3, 1].tolist() == [5.875, 7.75, 11.0, 11.125, 8.25, 3.625, 4.25, 10.375]
    assert float(found.sum()) == 5991.5


def distance(one, other):
    return float((one - other).norm())


def test_motion_is_counted_by_the_second_and_not_by_the_frame():
    slow, often, fast = (described([pan(*how)], fps=how[1]) for how in ((0.2, 12.5), (0.2, 25.0), (0.8, 25.0)))
    assert distance(slow, often) < distance(often, fast) / 2


def test_the_end_of_a_short_clip_that_is_held_does_not_count():
    short = pan(0.3, frames=17)
    held = np.concatenate([short, np.repeat(short[-1:], FRAMES - 17, 0)])
    times = (torch.arange(FRAMES).clamp_max(16) / 25)[None]
    whole = described([pan(0.3)])
    assert distance(described([held], times=times), whole) < distance(described([held]), whole) / 2


FAULTS = {
    "frozen": lambda clip: np.repeat(clip[:1], FRAMES, 0),
    "reversed": lambda clip: clip[::-1].copy(),
    "shuffled": lambda clip: clip[np.random.default_rng(0).permutation(FRAMES)],
    "at twice the speed": lambda clip: clip[np.arange(FRAMES) * 2 % FRAMES],
    "every frame twice": lambda clip: clip[np.arange(FRAMES) // 2 * 2],
    "flickering": lambda clip: (clip * np.where(np.arange(FRAMES) % 2, 0.8, 1)[:, None, None, None]).astype(np.uint8),
    "fading": lambda clip: (clip * np.linspace(1, 0.3, FRAMES)[:, None, None, None]).astype(np.uint8),
}


@pytest.fixture(scope="module")
def scenes():
    """Two clips, and their embeddings."""
    clips = [pan(0.3, seed=seed) for seed in range(2)]
    return clips, described(clips)


@pytest.mark.one_of_each
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_moves_a_clip_further_than_another_scene_does(fault, scenes):
    clips, clean = scenes
    faulty = described([FAULTS[fault](clip) for clip in clips])
    apart = torch.pdist(clean).mean()
    assert (faulty - clean).norm(dim=1).min() > apart


def test_the_embedding_does_not_depend_on_the_batch():
    clips = [pan(0.1 + seed / 10, seed=seed) for seed in range(2)]
    together, alone = described(clips), torch.cat([described([clip]) for clip in clips])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


@pytest.mark.long
def test_videos_are_embedded_with_their_times_and_compared_as_fvmd(tmp_path):
    for name, fps in (("gen", 10), ("ref", 25)):
        (tmp_path / name).mkdir()
        for seed in range(3):
            data = encode("mp4", pan(0.3, fps=fps, seed=seed), rate=fps, options={"crf": "10"})
            (tmp_path / name / f"{seed}.mp4").write_bytes(data)
    gen, ref = (fe.extract(tmp_path / name, "motion", tmp_path / f"{name}.h5") for name in ("gen", "ref"))
    assert gen.dim == CARD.output.dimension and gen.outputs == ("fvmd",)
    # The same motion, at another rate; as arrays without times, all frames would count as 25 a second.
    arrays = fe.extract(np.stack([pan(0.3, fps=10, seed=seed) for seed in range(3)]), "motion", tmp_path / "arrays.h5")
    away = [np.linalg.norm(one[:].mean(0) - ref[:].mean(0)) for one in (gen, arrays)]
    assert away[0] < away[1] / 2
    score = fe.metrics(gen, ref, ["fvmd"])["fvmd"]
    assert score.value > 0 and "motion@" in str(score.signature)
    assert fe.metrics(ref, ref, ["fvmd"])["fvmd"].value == pytest.approx(0, abs=1e-6)


def test_videos_are_resampled_on_request_and_the_space_says_so(tmp_path):
    frames = pan(0.3, fps=25, seed=1)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.mp4").write_bytes(encode("mp4", frames, options={"crf": "10"}))
    plain = fe.extract(tmp_path / "set", "motion", tmp_path / "plain.h5")
    slow = fe.extract(tmp_path / "set", "motion", tmp_path / "slow.h5", fps=5)
    assert (plain.clip.fps, slow.clip.fps) == (None, pytest.approx(5.0))
    assert plain.extractor_digest != slow.extractor_digest
    again = fe.extract(tmp_path / "set", "motion", tmp_path / "again.h5", fps=5)
    assert slow.extractor_digest == again.extractor_digest
    with pytest.raises(fe.FincEvalError, match="motion@"):
        fe.compare(plain, slow)


@pytest.mark.parametrize(
    ("extractor", "fps", "words"),
    [
        ("pixels", 8.0, "fps 8 is of clips, and pixels takes images"),
        ("motion", 0.0, "fps must be a positive number, got 0"),
    ],
)
def test_a_rate_that_makes_no_sense_is_refused(extractor, fps, words):
    with pytest.raises(fe.UsageError, match=words):
        load_card(extractor).resampled(fps)


def test_brightness_counts_as_far_as_all_pixels_change_alike():
    stripes = np.broadcast_to(np.where(np.arange(SIDE) // 8 % 2, 150, 90)[:, None, None], (SIDE, SIDE, 3))
    others = {"swapped, and a little brighter": 248 - stripes, "all brighter": stripes + 8}
    clips = [np.stack([stripes if k % 2 else other for k in range(FRAMES)]).astype("u1") for other in others.values()]
    swapped, brighter = measurements(described(clips))[:, MEASURED.index("flicker of 2 frames")].tolist()
    assert swapped < brighter / 2
