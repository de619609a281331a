"""Which step to keep, and the outputs of a course."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.monitoring.followed import say


def follow(reference, looks):
    monitor = fe.Monitor(reference)
    for step, rows in enumerate(looks):
        monitor.update(step, rows)
    return monitor.result


def test_a_step_before_the_first_alarm_is_kept():
    rng = np.random.default_rng(0)
    course = follow(rng.normal(size=(300, 6)), [rng.normal(size=(64, 6)) + (step >= 8) for step in range(14)])
    assert course.alarms and 0 <= course.keep < 8 and "It is before step 3" in course.why


def test_of_a_generator_that_never_was_like_the_reference_the_nearest_step_is_kept():
    """A training from scratch against real samples: alarms at once, and distances that shrink up to step 9."""
    rng = np.random.default_rng(1)
    shifts = [*np.linspace(3, 0.3, 10), 1.5, 3]
    course = follow(rng.normal(size=(300, 6)), [rng.normal(size=(160, 6)) + shift for shift in shifts])
    assert course.alarms[0].since == 0 and course.keep == 9 and "from the first evaluation on" in course.why
    assert "no step is free of them" in course.says["why"]


@pytest.mark.parametrize(
    ("name", "after", "words"),
    [
        ("specks", -1, "are on average less noisy (noise with specks"),
        ("specks", 1, "are on average noisier, with specks (noise with specks"),
        ("pattern", -1, "are on average covered less by a periodic pattern (periodic pattern"),
        ("blocks", 1, "have on average more JPEG artifacts (JPEG artifacts"),
        ("mosaic", -1, "are on average less pixelated or upscaled (pixelation"),
    ],
)
def test_a_change_of_a_look_is_said_in_few_words_either_way(name, after, words):
    assert say(name, 0.0, after, 1.0).startswith(f"samples {words} ")


def test_distances_are_unbiased_and_grow_with_the_shift():
    rng = np.random.default_rng(2)
    course = follow(rng.normal(size=(300, 6)), [rng.normal(size=(64, 6)) for _ in range(16)])
    values = np.array(course.to_reference)
    assert abs(values.mean()) < 4 * values.std() / 16**0.5
    assert course.to_first[0] == 0 and course.to_previous[0] == 0
    far = follow(rng.normal(size=(300, 6)), [rng.normal(size=(64, 6)) + shift for shift in (0, 1, 2)])
    assert far.to_reference[0] < far.to_reference[1] < far.to_reference[2]
    assert far.to_previous[2] < far.to_first[2]


def test_outputs_say_the_same(tmp_path):
    rng = np.random.default_rng(3)
    course = follow(rng.normal(size=(300, 4)), [0.3 * rng.normal(size=(64, 4)) for _ in range(6)])
    course.to_json(tmp_path / "course.json")
    back = fe.load(tmp_path / "course.json")
    assert back.to_dict() == course.to_dict() and back.alarms == course.alarms
    for text in (course.to_markdown(), course.to_html(tmp_path / "a.html").read_text(), back._repr_html_()):
        assert "samples are less diverse" in text
    frame = course.to_frame()
    assert set(frame[frame["name"] == "diversity"]["step"]) == set(range(6))


def test_a_monitor_without_a_look_has_a_page(tmp_path):
    monitor = fe.Monitor(np.random.default_rng(0).normal(size=(100, 4)))
    page = monitor.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No alarm in 0 evaluations" in page and monitor.result.keep is None
