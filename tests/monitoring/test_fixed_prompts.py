"""Pictures of fixed prompts: pairs, what has changed in them, and their place in outputs and files."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.monitoring.fixed.prompts import say_fixed
from finc_eval.monitoring.fixed.ranks import score_of_pairs

PROMPTS = [f"prompt {number}" for number in range(10)]


def pictures(rng, n, red=0):
    pixels = rng.integers(0, 190, (n, 4, 4, 3))
    return named(pixels, red)


def named(pixels, red=0, prompts=None):
    moved = pixels.copy()
    moved[..., 0] += red
    images = np.kron(moved, np.ones((1, 8, 8, 1))).astype(np.uint8)
    rows = pixels.reshape(len(pixels), -1) / np.float32(255)
    return fe.EmbeddingSet(rows, images=images, metadata=None if prompts is None else {"prompt": prompts})


@pytest.fixture(scope="module")
def monitor():
    """A monitor of fixed prompts that are redder from step 3 on, beside fresh samples that are not."""
    rng = np.random.default_rng(0)
    monitor, fixed = fe.Monitor(pictures(rng, 100)), rng.integers(0, 190, (10, 4, 4, 3))
    for step in range(7):
        jitter = rng.integers(0, 4, fixed.shape)
        order = rng.permutation(10)  # pairs are told by their prompts
        names = [PROMPTS[place] for place in order]
        own = named((fixed + jitter)[order], 40 * (step > 2), names)
        monitor.update(step, pictures(rng, 24), fixed=own)
    return monitor


def test_a_change_of_all_pairs_is_found_though_fresh_samples_hardly_show_it(monitor):
    changes = {change.name: change for change in monitor.result.fixed.changes}
    warmth = changes["warmth"]
    assert warmth.step in (3, 4) and "redder" in warmth.finding
    assert warmth.interval[0] <= warmth.now - warmth.first <= warmth.interval[1]
    assert "streaks" not in changes and monitor.alarms == []
    assert "10 fixed prompts" in monitor.result.says["fixed"]
    assert [*monitor.result.says][-2:] == ["why", "fixed"]  # the reason stands behind the step to keep


def test_outputs_and_files_keep_fixed_prompts(monitor, tmp_path):
    monitor.save(tmp_path / "monitor.h5")
    again = fe.Monitor.load(tmp_path / "monitor.h5")
    assert again.result.to_dict() == monitor.result.to_dict()
    page = again.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count(f'alt="{PROMPTS[0]} at step ') == 7 and "Fixed prompts" in page
    assert fe.load(_json_of(monitor, tmp_path)).fixed == monitor.result.fixed


def _json_of(monitor, folder):
    monitor.result.to_json(folder / "course.json")
    return folder / "course.json"


def test_fixed_pictures_of_other_prompts_are_refused_and_the_monitor_stays(monitor):
    rng = np.random.default_rng(1)
    before = monitor.result.to_dict()["steps"]
    for fixed, error in ((rng.normal(size=(10, 48)), IncompatibleError),):
        with pytest.raises(error, match="prompt"):
            monitor.update(9, pictures(rng, 24), fixed=fixed)
    assert monitor.result.to_dict()["steps"] == before


@pytest.mark.parametrize("is_picture", [False, True])
def test_fixed_pictures_that_are_not_finite_hide_no_alarm(is_picture):
    """A training that diverges makes both sets NaN: the alarm on it stands, and the next step is compared again."""
    rng = np.random.default_rng(5)

    def draw(n):
        return rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8) if is_picture else rng.normal(size=(n, 4))

    fixed, broken = draw(6), draw(24).astype(np.float32)
    broken[:] = np.nan
    monitor = fe.Monitor(draw(60), extractor="pixels" if is_picture else None)
    monitor.update(0, draw(24), fixed=fixed)
    with pytest.warns(UserWarning, match="(fixed|step 1)"):
        alarms = monitor.update(1, broken, fixed=np.concatenate([fixed[1:], broken[:1]]))
    assert any("fixed" in text for text in monitor.warnings)
    assert [alarm.name for alarm in alarms] == ["not finite"] and monitor.fixed_prompts.steps.tolist() == [0]
    monitor.update(2, draw(24), fixed=fixed)
    assert monitor.fixed_prompts.steps.tolist() == [0, 2]


def test_fixed_pictures_of_another_extractor_are_named():
    rng = np.random.default_rng(1)
    with pytest.raises(IncompatibleError, match="the fixed pictures have 5 entries"):
        fe.Monitor(rng.normal(size=(60, 4))).update(0, rng.normal(size=(24, 4)), fixed=rng.normal(size=(6, 5)))


def test_one_fixed_picture_is_refused():
    rng = np.random.default_rng(1)
    monitor = fe.Monitor(rng.normal(size=(60, 4)))
    with pytest.raises(UsageError, match="pair"):
        monitor.update(0, rng.normal(size=(24, 4)), fixed=rng.normal(size=(1, 4)))


def test_scores_of_pairs_are_standard_normal_if_nothing_changes():
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(200):
        values = rng.normal(size=12)[None] + rng.normal(size=(6, 12)).round(1)  # prompts differ; some values are equal
        scores += [score_of_pairs(values[t], values[:t], rng) for t in range(1, 6)]
    scores = np.array(scores)
    assert abs(scores.mean()) < 4 / 1000**0.5 and abs(scores.std() - 1) < 4 / 2000**0.5
    assert np.isnan(score_of_pairs(np.ones(3), np.empty((0, 3)), rng))
    assert np.isnan(score_of_pairs(np.full(3, np.nan), np.ones((2, 3)), rng))


def test_nothing_is_said_of_pairs_that_hardly_change():
    """All pairs move by a hundredth of the spread: that is sure, and does not matter."""
    rng = np.random.default_rng(3)
    reference, fixed = rng.normal(size=(80, 4)), rng.normal(size=(12, 4))
    monitor = fe.Monitor(reference)
    for step in range(6):
        monitor.update(step, rng.normal(size=(24, 4)), fixed=fixed * (1 + 0.002 * step))
    course = monitor.result.fixed
    assert course.changes == () and say_fixed(course) == "" and course.moved[0] == 0 < course.moved[-1] < 0.02


def test_pictures_by_prompt_are_paired_by_their_prompts_and_a_step_counts_once():
    rng = np.random.default_rng(4)
    images = rng.integers(0, 256, (60, 16, 16, 3), dtype=np.uint8)
    monitor = fe.Monitor(images[:44], extractor="pixels")
    for step, order in ((0, (0, 1, 2)), (1, (2, 0, 1))):
        monitor.update(step, images[44:56], fixed={f"prompt {place}": images[56 + place] for place in order})
    known = monitor.fixed_prompts
    assert known.names == ("prompt 0", "prompt 1", "prompt 2") and known.moved.tolist() == [0, 0]
    assert monitor._with_fixed(1, dict.fromkeys(known.names, images[56])) is known
