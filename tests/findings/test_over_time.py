"""Clips that drift, freeze and loop are named with the frame from which they do so, and equal clips are not."""

import json

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.findings.over_time import find_drifts
from finc_eval.naming.measured import measure_sets

FRAMES, SIDE, CLIPS = 100, 24, 24
LIGHT = np.array([0.299, 0.587, 0.114])


def scene(rng):
    """A camera that sways over blocks of random colors, (100, 24, 24, 3)."""
    colors = rng.uniform(0.25, 0.6, (20, 20, 1)) * rng.uniform(0.7, 1.0, (20, 20, 3))
    picture = (255 * colors).repeat(4, 0).repeat(4, 1)
    place, phase = np.arange(FRAMES), rng.uniform(0, 6, 2)
    steps = 28 + 26 * np.sin(place[:, None] / rng.uniform(9, 25, 2) + phase)
    return np.stack([picture[y : y + SIDE, x : x + SIDE] for y, x in steps.astype(int)]).astype(np.uint8)


def scenes(seed, count=CLIPS):
    rng = np.random.default_rng(seed)
    return [scene(rng) for _ in range(count)]


def grown(start):
    return (1.01 ** np.maximum(0, np.arange(FRAMES) - start))[:, None, None, None]


def saturated(clip, start):
    gray = (clip @ LIGHT)[..., None]
    return np.clip(gray + (clip - gray) * grown(start), 0, 255).astype(np.uint8)


def brightened(clip, start):
    return np.clip(clip * grown(start), 0, 255).astype(np.uint8)


def frozen(clip, start):
    return clip[np.minimum(np.arange(FRAMES), start)]


def looped(clip, period):
    return clip[np.arange(FRAMES) % period]


def drifts_of(gen, ref, groups=None):
    """The drifts of two lists of clips, with their samples."""
    sets = {}
    for label, clips in (("gen", gen), ("ref", ref)):
        metadata = None if groups is None else {"group": groups}
        found = fe.EmbeddingSet(np.zeros((len(clips), 2)), metadata=metadata, images=clips, name=label)
        sets[label] = found if groups is None else found.grouped("group")
    return find_drifts(sets, measure_sets(sets), 0)


PLANTED = {
    "saturation from 40": (lambda clip: saturated(clip, 40), "with rising saturation", (32, 44), None),
    "saturation from 0": (lambda clip: saturated(clip, 0), "with rising saturation", (0, 12), None),
    "brightness from 40": (lambda clip: brightened(clip, 40), "with rising brightness", (34, 46), None),
    "a loop of 16": (lambda clip: looped(clip, 16), "looping", (16, 16), 16),
    "a freeze at 60": (lambda clip: frozen(clip, 60), "frozen", (60, 60), None),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_drift_is_named_and_dated(fault):
    plant, name, (low, high), period = PLANTED[fault]
    (held,) = drifts_of([plant(clip) for clip in scenes(1)], scenes(2))
    found = held.finding
    assert (found.kind, found.name, found.period, found.is_more) == ("drift", name, period, True)
    assert low <= found.first_frame <= high
    assert found.first_frame_interval[0] <= found.first_frame <= found.first_frame_interval[1]
    assert found.share_gen > 0.8 and found.share_ref < 0.2
    assert held.members["gen"].mean() > 0.8


@pytest.mark.parametrize(("black", "name"), [(0, "frozen"), (8, "frozen or cut to black"), (24, "cut to black")])
def test_clips_that_stand_still_on_black_are_said_to_be_cut_to_black(black, name):
    clips = [frozen(clip, 60) for clip in scenes(1)]
    for clip in clips[:black]:
        clip[60:] = 0
    (held,) = drifts_of(clips, scenes(2))
    assert (held.finding.name, held.finding.first_frame) == (name, 60)


def test_dark_clips_that_freeze_are_not_cut_to_black():
    dark = [frozen(clip // 64, 60) for clip in scenes(1)]  # all of their frames are nearly black
    found = [held.finding.name for held in drifts_of(dark, [clip // 64 for clip in scenes(2)])]
    assert not any("black" in name for name in found)


def test_the_share_of_clips_that_drift_is_estimated():
    clips = [looped(clip, 16) if place % 3 == 0 else clip for place, clip in enumerate(scenes(3, 60))]
    (held,) = drifts_of(clips, scenes(4, 60))
    assert held.finding.share_gen == pytest.approx(1 / 3)
    assert held.finding.share_interval[0] < 1 / 3 < held.finding.share_interval[1]
    assert held.members["gen"].tolist() == [place % 3 == 0 for place in range(60)]


def test_a_drift_of_the_reference_that_clips_lack_is_said_of_the_reference():
    (held,) = drifts_of(scenes(5), [frozen(clip, 60) for clip in scenes(6)])
    assert held.finding.name == "frozen" and not held.finding.is_more
    assert held.finding.first_frame == 60


@pytest.mark.parametrize(
    ("place", "since"),
    [(np.maximum(0, np.arange(FRAMES) - 40), " for a while from frame 0 on"),
     (np.minimum(np.arange(FRAMES), 60), " from frame 60 on")],
)  # fmt: skip
def test_a_freeze_that_ends_is_not_said_to_go_on(place, since):
    (held,) = drifts_of([clip[place] for clip in scenes(1)], scenes(2))
    assert (held.finding.name, held.finding.since) == ("frozen", since)


def test_tables_of_findings_date_each_drift():
    (held,) = drifts_of([saturated(clip, 40) for clip in scenes(1)], scenes(2))
    assert held.finding.since and held.finding.in_tables.endswith(held.finding.since)


EQUAL = {
    "plain": (lambda clip: clip, lambda clip: clip),
    "both loop": (lambda clip: looped(clip, 16), lambda clip: looped(clip, 16)),
    "both drift": (lambda clip: brightened(clip, 40), lambda clip: brightened(clip, 40)),
    "shorter": (lambda clip: clip, lambda clip: clip[:60]),
    "frozen after the reference ends": (lambda clip: frozen(clip, 70), lambda clip: clip[:60]),
    "too short": (lambda clip: looped(clip, 4)[:12], lambda clip: clip[:12]),
}


@pytest.mark.parametrize("case", EQUAL)
def test_nothing_is_said_of_clips_that_do_the_same_as_the_reference(case):
    gen, ref = EQUAL[case]
    assert drifts_of([gen(clip) for clip in scenes(7)], [ref(clip) for clip in scenes(8)]) == []


def test_clips_of_a_group_count_as_one():
    """Four clips of a group drift alike: two such groups of six are no evidence."""
    groups = [str(place // 4) for place in range(CLIPS)]
    gen = [brightened(clip, 0) if place < 8 else clip for place, clip in enumerate(scenes(9))]
    assert drifts_of(gen, scenes(10), groups) == []


def test_sets_without_clips_have_no_drifts():
    images = [clip[0] for clip in scenes(11)]
    assert drifts_of(images, images) == []


@pytest.fixture(scope="module")
def compared():
    def as_set(clips, name):
        rows = np.stack([clip[50, ::6, ::6].reshape(-1) for clip in clips]) / np.float32(255)
        return fe.EmbeddingSet(rows, images=clips, name=name)

    gen = as_set([looped(clip, 16) for clip in scenes(1)], "gen")
    return fe.compare(gen, as_set(scenes(2), "ref"), features=100)


def test_a_comparison_says_a_drift_in_all_outputs(compared, tmp_path):
    found = next(finding for finding in compared.findings if finding.kind == "drift")
    assert (found.name, found.first_frame, found.period) == ("looping", 16, 16)
    text = found.text
    assert "looping every 16 frames from frame 16 on" in text
    assert text in compared.headline and text in compared.to_markdown()
    page = compared.to_html(tmp_path / "page.html").read_text()
    assert page.count("looping every 16 frames from frame 16 on") >= 3  # the headline, the table, and its clips
    assert "Over time: clips looping" in page and "Over time: clips looping" in compared.to_markdown()
    assert "from frame 16 on" in repr(compared)
    stored = json.loads(compared.to_json(tmp_path / "found.json"))
    (kept,) = [finding for finding in stored["findings"] if finding["kind"] == "drift"]
    assert (kept["first_frame"], kept["first_frame_interval"], kept["period"]) == (16, [16, 16], 16)
    assert [row[1:] for row in kept["course"]] == [[0.0, 0.0]] * 2 + [[1.0, 0.0]] * 10
    assert fe.load(tmp_path / "found.json").findings == compared.findings
