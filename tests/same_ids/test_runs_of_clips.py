"""Two runs of a generator of clips: pairs are measured frame by frame, and by how they move."""

import numpy as np
import pytest
from _runs_of_scenes import judge_pairs, scenes

import finc_eval as fe

N, FRAMES, SIDE = 20, 8, 40


def clips(seed=0):
    """Return clips of a camera that moves over a scene, by one to two pixels from frame to frame."""
    rng, found = np.random.default_rng(seed), []
    for scene in scenes(N, seed):
        wide = np.pad(scene, ((0, 30), (0, 30), (0, 0)), "reflect")
        down, right = (rng.uniform(1, 2, 2) * rng.choice([0.3, 1], 2)).tolist()
        at = [(round(down * frame), round(right * frame)) for frame in range(FRAMES)]
        found.append(np.stack([wide[row : row + SIDE, column : column + SIDE] for row, column in at]))
    return found


OLD = clips()


def noisy(some, deviation=2.0, seed=1):
    rng = np.random.default_rng(seed)
    return [np.clip(np.rint(one + rng.normal(0, deviation, one.shape)), 0, 255).astype(np.uint8) for one in some]


def run_of(some):
    rows = np.stack([one[len(one) // 2, ::8, ::8].ravel().astype(np.float32) / 255 for one in some])
    return fe.EmbeddingSet(rows, [f"{number:03d}.mp4" for number in range(len(some))], {}, some)


def compare(new):
    return judge_pairs(run_of(new), run_of(OLD))


def test_noise_on_all_clips_breaks_none():
    found = compare(noisy(OLD))
    assert (found.broken, found.worse) == ([], [])
    assert len(found.measured["motion"]) == N


@pytest.mark.parametrize(
    ("change", "looks"),
    [
        (lambda one: np.repeat(one[len(one) // 2][None], FRAMES, 0), "frozen"),
        pytest.param(lambda one: one[::-1], "played backwards", marks=pytest.mark.long),
        pytest.param(lambda one: one * 0, "black", marks=pytest.mark.long),
    ],
    ids=["frozen", "backwards", "black"],
)
def test_clips_that_move_otherwise_are_broken_though_their_middle_frame_is_right(change, looks):
    new = noisy(OLD)
    for row in (3, 9, 19):
        new[row] = noisy([change(OLD[row])], seed=row)[0]
    found = compare(new)
    assert set(found.broken) == {"003.mp4", "009.mp4", "019.mp4"}
    assert set(found.reasons.values()) == {looks}


ORDERS = {
    "frozen": lambda one: np.repeat(one[3][None], len(one), 0),
    "played backwards": lambda one: one[::-1],
    "with frames in another order": lambda one: one[[3, 0, 6, 1, 7, 2, 5, 4]],
    "of another length (5 frames": lambda one: one[:5],
}
"""What a clip is made into, by its cause."""


def moving(count):
    """Return the clips that move most."""
    return sorted(OLD, key=lambda clip: -float(np.abs(np.diff(clip.astype(float), axis=0)).mean()))[:count]


@pytest.mark.one_of_each(by=lambda name: name == "frozen")
@pytest.mark.parametrize("name", ORDERS)
def test_few_clips_that_move_otherwise_are_broken_from_one_clip_on(name):
    new = [np.ascontiguousarray(ORDERS[name](clip)) for clip in noisy(moving(4))]
    for n in (1, 4):
        found = fe.compare(run_of(new[:n]), run_of(moving(n)), pairs="id", features=20).by_id
        assert found.verdict == "broken"
        assert all(name in reason for reason in found.reasons.values())


def test_few_clips_that_move_as_before_are_clean():
    assert fe.compare(run_of(noisy(moving(4), 3)), run_of(moving(4)), pairs="id", features=20).by_id.verdict == "clean"
