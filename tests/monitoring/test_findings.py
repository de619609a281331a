"""Findings of a monitor: each cause once, in all outputs, and in nothing else."""

import copy
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits
from finc_eval.findings.finding import Finding
from finc_eval.monitoring.findings import Followings
from finc_eval.monitoring.followed import Alarm

IMAGES, LABELS = shipped_digits()
KEPT = np.flatnonzero(np.isin(LABELS, [0, 1, 7]))
ORDER = np.random.default_rng(0).permutation(KEPT)


def digits(rows, change=lambda one: one):
    """Digits as a set: embedded by 7 × 7 means, with labels and pictures."""
    images = [change(Image.fromarray(IMAGES[row])) for row in rows]
    small = np.stack([np.asarray(one, np.float32).reshape(7, 4, 7, 4).mean((1, 3)).ravel() / 255 for one in images])
    return fe.EmbeddingSet(
        small, ids=[f"{row}-{place}" for place, row in enumerate(rows)], metadata={"label": LABELS[rows]}, images=images
    )


@cache
def fresh():
    """A monitor before its first evaluation, which no test changes."""
    return fe.Monitor(digits(ORDER[:160]))


def follow(make, steps=6, size=40):
    """A monitor of digits, of which `make` returns the set of an evaluation from its rows, step and other rows."""
    monitor = copy.deepcopy(fresh())
    for step in range(steps):
        monitor.update(step, make(ORDER[160 + size * step : 160 + size * (step + 1)], step, ORDER[-200:]))
    return monitor


@pytest.fixture(scope="module")
def lost():
    """A monitor of digits that lose the ones."""
    return follow(lambda rows, step, others: digits(rows if step < 2 else rows[LABELS[rows] != 1]))


@pytest.fixture(scope="module")
def repeated():
    def make(rows, step, others):
        return digits(rows if step < 2 else [*rows[:26], *others[:1].repeat(14)])

    return follow(make)


def test_a_lost_kind_is_named_by_its_label_with_both_shares_and_samples_of_the_reference(lost):
    first = lost.findings[0]
    assert (first.kind, first.name, first.whole, first.p_value) == ("kind", "1", False, None)
    assert first.share_gen < 0.15 < first.share_ref < 0.5 and first.e_value >= 20
    assert 0 < len(first.ids) <= 8 and np.median([LABELS[int(one.partition("-")[0])] for one in first.ids]) == 1
    (alarm,) = [one for one in lost.alarms if one.finding == "1"]
    assert (alarm.text, alarm.after, alarm.before) == (first.text, first.share_gen, first.share_ref)
    assert first.parts and f"kind “{first.name}”" in first.text
    assert lost.result.findings == lost.findings


def test_a_picture_that_is_repeated_is_named_with_its_number_and_is_the_cause_of_its_kind(repeated):
    first = repeated.findings[0]
    assert (first.kind, first.name) == ("repeat", "one picture, 14 times") and first.share_gen > 0.2
    assert len({*first.ids}) <= 8 and first.name in first.text
    assert all(one.kind != "kind" for one in repeated.findings)


def test_a_whole_look_has_no_shares_and_shows_the_clearest_samples():
    blurred = follow(
        lambda rows, step, others: digits(
            rows, (lambda one: one.filter(ImageFilter.GaussianBlur(1.2))) if step > 1 else lambda one: one
        )
    )
    first = blurred.findings[0]
    assert (first.kind, first.share_gen, first.share_ref, first.whole) == ("look", None, None, True)
    assert first.ids and first.name in first.text and len(blurred.alarms) <= 2


def test_new_kinds_have_the_label_of_the_samples_that_are_far():
    four = np.flatnonzero(LABELS == 4)

    def make(rows, step, others):
        far = digits(four[12 * step : 12 * step + 12]).rows_at(np.arange(12)).numpy() + 5 * (step > 1)
        own = digits(rows).rows_at(np.arange(len(rows))).numpy()
        names = [*map(str, LABELS[rows]), *(["4"] * 12)]
        return fe.EmbeddingSet(np.concatenate([own, far])[: None if step > 1 else len(own)],
                               metadata={"label": names[: None if step > 1 else len(own)]})  # fmt: skip

    monitor = follow(make)
    (found,) = [one for one in monitor.findings if one.kind == "kind"]
    assert found.name == "4" and "far from every kind of the reference, such as “4”" in found.text


def test_the_largest_finding_now_is_first_copies_before_it_and_distances_and_diversity_last():
    """Sizes are parts of all samples: a mean that moves by two deviations makes laws differ in 68 % of them."""
    sizes = {
        "diversity": (5.0, 1.0),
        "kind 1": (0.1, 0.0),
        "sharpness": (0.0, 2.0),
        "repeats": (0.0, 0.4),
        "copies": (0, 0.02),
    }
    alarms = [Alarm(9.0, name, f"{name} has changed", 5.0, *size, (5.0, 5.0)) for name, size in sizes.items()]
    follow_all = Followings(SimpleNamespace(spread_of=lambda thing: 1.0), [*sizes], {}, {})
    found = follow_all.findings(alarms, [], {}, lambda *_: (), {})
    assert [one.name for one in found] == ["copies", "sharpness", "repeats", "kind 1", "diversity"]


def test_a_union_of_kinds_is_listed_only_if_it_has_an_alarm(lost):
    unions, listed = lost.basis.unions, {thing.name for thing in lost.result.followed}
    assert unions and unions < {*lost.basis.names}
    assert unions & listed <= {alarm.name for alarm in lost.alarms}
    assert {*lost.basis.names} - unions <= listed
    for name in unions:
        place = lost.basis.names.index(name)
        inside = [(own <= lost.basis.members[place]).all() for own in lost.basis.members]
        assert sum(inside) > 1


def test_copies_of_the_reference_are_a_finding_without_an_alarm():
    monitor = copy.deepcopy(fresh())
    with pytest.warns(UserWarning, match="also in the reference"):
        monitor.update(1, digits(ORDER[152:200]))
    (found,) = monitor.findings
    assert (found.kind, found.name, found.share_gen, found.share_ref) == (
        "copy",
        "copies of the reference",
        8 / 48,
        0.0,
    )
    assert found.ids == tuple(f"{row}-{place}" for place, row in enumerate(ORDER[152:160])) and monitor.alarms == []
    assert found.name in monitor.result.headline


def outputs(course, tmp_path):
    """All that a course says, in words; JSON has the alarms as they were raised, too."""
    page = course.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    return {"page": page, "Markdown": course.to_markdown(), "notebook": course._repr_html_(), "says": course.headline}


def test_what_is_no_finding_is_in_no_output(repeated, tmp_path):
    course = repeated.result
    without = replace(course, findings=course.findings[1:])
    name = course.findings[0].name
    for where, text in outputs(course, tmp_path).items():
        assert name in text, where
    for where, text in outputs(without, tmp_path).items():
        assert name not in text and course.findings[0].text not in text, where
    assert not any(one["name"] == name for one in without.to_dict()["findings"])


def test_what_is_a_finding_is_in_all_outputs(repeated, tmp_path):
    made_up = Finding("quite wobbly", "look", True, None, None, None, text="since step 2 samples are quite wobbly")
    course = replace(repeated.result, findings=(made_up, *repeated.findings))
    for where, text in outputs(course, tmp_path).items():
        assert "quite wobbly" in text, where
    course.to_json(tmp_path / "course.json")
    assert fe.load(tmp_path / "course.json").findings[0] == made_up


def test_findings_are_those_of_the_monitor_that_was_saved(repeated, tmp_path):
    repeated.save(tmp_path / "monitor.h5")
    again = fe.Monitor.load(tmp_path / "monitor.h5")
    assert again.findings == repeated.findings and again.follows == repeated.follows
    assert np.array_equal(again.history.shared, repeated.history.shared)


def test_a_look_without_a_word_waits_for_its_cause():
    """Frames of digits end at once where noise begins, which has its evidence two evaluations later."""
    rng = np.random.default_rng(1)

    def noisy(one):
        return Image.fromarray((np.asarray(one, float) + rng.normal(0, 14, (28, 28))).clip(0, 255).astype(np.uint8))

    monitor = follow(lambda rows, step, others: digits(rows, noisy if step > 1 else lambda one: one), steps=7)
    assert [one.name for one in monitor.findings] == ["noisier"]
    assert "framed, or with bars at its edges" in monitor.findings[0].explains


def test_memory_of_shared_samples_is_bounded(repeated):
    things = len(repeated.names) + 1
    assert repeated.history.shared.shape == (7, things, things)
    assert follow(lambda rows, step, others: digits(rows), 11, 10).history.shared.shape == (9, things, things)
