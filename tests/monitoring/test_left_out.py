"""Samples that a look does not count: those of the reference, of an earlier look, and those that are not finite."""

import json

import numpy as np
import pytest
import torch
from _said import values
from PIL import Image

import finc_eval as fe
from finc_eval.monitoring.followed import CopiesAtStep

D = 6


def draw(seed, n=64, d=D):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


REFERENCE = draw(0, 400)
ORDER = np.random.default_rng(9).permutation(400)

OF_REFERENCE = {
    "the same": REFERENCE,
    "in another order": REFERENCE[ORDER],
    "a part": REFERENCE[:64],
    "a part at random": REFERENCE[ORDER[:20]],
    "four samples": REFERENCE[ORDER[:4]],
    "a tensor": torch.from_numpy(REFERENCE),
    "in double precision": REFERENCE.astype(np.float64),
    "in half precision": REFERENCE.astype(np.float16),
    "embedded again, in other batches": REFERENCE + 1e-5 * draw(1, 400),
    "with ids": fe.EmbeddingSet(REFERENCE[:100], ids=[f"new-{one}" for one in range(100)]),
    "mostly": np.concatenate([REFERENCE[:40], draw(2, 24)]),
    "half": np.concatenate([draw(2, 32), REFERENCE[:32]]),
    "with samples that are not finite": np.concatenate([REFERENCE[:40], np.full((8, D), np.nan, np.float32)]),
}


def drawn_of(values, seed, n):
    return values[np.random.default_rng(seed).integers(0, len(values), n)]


def of_a_pool(seed, n):
    return drawn_of(draw(50, 600), seed, n)


def of_few_values(seed, n):
    return drawn_of(draw(51, 60), seed, n)


NOT_OF_REFERENCE = {
    "independent": (REFERENCE, draw(3)),
    "a single sample": (REFERENCE, draw(3, 1)),
    "drawn from one pool": (of_a_pool(1, 400), of_a_pool(2, 64)),
    "of a law with few values": (of_few_values(1, 400), of_few_values(2, 64)),
    "collapsed to a sample of the reference": (REFERENCE, np.repeat(REFERENCE[:1], 64, 0)),
    "collapsed to two samples of the reference": (REFERENCE, np.repeat(REFERENCE[:2], 32, 0)),
    "near the reference": (REFERENCE, REFERENCE[63::-1] + 0.2 * draw(4)),
    "of one dimension": (draw(5, 400, 1), draw(6, 64, 1)),
    "of two dimensions": (draw(5, 1500, 2), draw(6, 64, 2)),
}


@pytest.fixture(scope="module")
def monitor_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "monitor.h5"
    fe.Monitor(REFERENCE).save(path)
    return path


@pytest.fixture
def monitor(monitor_file):
    return fe.Monitor.load(monitor_file)


@pytest.mark.parametrize("case", OF_REFERENCE)
def test_a_look_that_is_the_reference_or_a_part_of_it_is_left_out_and_told(case, monitor):
    with pytest.warns(UserWarning, match="of step 5 are those of the reference: this evaluation is left out"):
        alarms = monitor.update(5, OF_REFERENCE[case])
    assert [one.name for one in alarms] in ([], ["not finite"]) and monitor.steps == []
    assert "those of the reference" in monitor.result.warnings[-1]
    monitor.update(5, draw(7))
    assert monitor.steps == [5]


@pytest.mark.parametrize("case", NOT_OF_REFERENCE)
def test_samples_that_only_lie_near_the_reference_or_repeat_by_their_law_stay(case):
    reference, look = NOT_OF_REFERENCE[case]
    monitor = fe.Monitor(reference)
    monitor.update(1, look)
    assert monitor.result.samples == (len(look),) and not monitor.warnings


def test_a_few_samples_of_the_reference_are_left_out_alone(monitor):
    look = fe.EmbeddingSet(
        np.concatenate([draw(8, 50), REFERENCE[:14]]), metadata={"prompt": [f"prompt {one}" for one in range(64)]}
    )
    with pytest.warns(UserWarning, match="step 5: 14 of 64 samples are also in the reference, and are left out"):
        monitor.update(5, look)
    assert monitor.result.samples == (50,)


def with_copies(seed, count, n=64):
    return np.concatenate([draw(seed, n - count), REFERENCE[np.random.default_rng(seed).permutation(400)[:count]]])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("counts", "copies", "kept"),
    [({10: 19}, "19 64 10", None), ({10: 6, 20: 7, 30: 6}, "3 7 64 20", None), ({10: 0, 20: 40}, "40 64 20", 10)],
)
def test_a_generator_that_copies_the_reference_has_no_clean_bill(monitor, tmp_path, counts, copies, kept):
    for step, count in counts.items():
        monitor.update(step, with_copies(step, count))
    monitor.save(tmp_path / "monitor.h5")
    for course in (monitor.result, fe.Monitor.load(tmp_path / "monitor.h5").result):
        assert [(one.step, one.count, one.of) for one in course.copies] == [
            (step, count, 64) for step, count in counts.items() if count
        ]
        first = next(iter(course.says.values()))
        assert values(course.says["copies"]) == copies and first == course.says["copies"]
        assert course.headline.startswith(first) and json.loads(course.to_json())["headline"] == course.headline
        assert course.to_markdown().partition("## Monitor\n\n")[2].startswith(first)
        page = course.to_html(tmp_path / "page.html").read_text()
        assert 0 < page.index(first[:30]) < page.index("<table")
        assert course.keep == kept and ("copies of the reference" in course.says["why"]) == (kept is None)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_copies_nothing_is_said_of_them(monitor):
    monitor.update(10, draw(10))
    assert "copies" not in monitor.result.says and not monitor.copies


@pytest.mark.parametrize("numbers", [(0, 64), (65, 64), (1, 0), (-1, 64)])
def test_copies_of_a_file_are_of_its_samples(numbers):
    with pytest.raises(fe.DataError, match="copies among"):
        CopiesAtStep(10.0, *numbers)


def test_the_same_pictures_in_another_folder_are_the_reference(tmp_path):
    rng = np.random.default_rng(0)
    for place in range(60):
        for folder, kept in (("ref", True), ("copy", True), ("part", place < 20)):
            (tmp_path / folder).mkdir(exist_ok=True)
            pixels = np.random.default_rng(place).integers(0, 256, (16, 16, 3), dtype=np.uint8)
            if kept:
                name = f"{place}.png" if folder == "ref" else f"img_{rng.integers(1e9)}.png"
                Image.fromarray(pixels).save(tmp_path / folder / name)
    monitor = fe.Monitor(tmp_path / "ref", extractor="pixels")
    for folder, count in (("copy", 60), ("part", 20)):
        with pytest.warns(UserWarning, match=f"{count} of the {count} samples of step 1 are those of the reference"):
            monitor.update(1, tmp_path / folder)


def test_processes_that_have_parts_of_the_reference_leave_the_look_out(monitor):
    with pytest.warns(UserWarning, match="64 of the 64 samples of step 1 are those of the reference"):
        monitor.add(1, [monitor.measure(REFERENCE[:32]), monitor.measure(REFERENCE[32:64])])
    assert monitor.steps == []


@pytest.mark.one_of_each(by=lambda change: change == "rounding")
@pytest.mark.parametrize("change", ["none", "order", "rounding"])
def test_a_look_that_repeats_an_earlier_one_is_left_out_and_told(monitor, tmp_path, change):
    look = draw(11)
    monitor.update(1, look)
    monitor.update(2, draw(12))
    monitor.save(tmp_path / "monitor.h5")
    again = {"none": look, "order": look[::-1].copy(), "rounding": look.astype(np.float16)}[change]
    for one in (monitor, fe.Monitor.load(tmp_path / "monitor.h5")):
        with pytest.warns(UserWarning, match="the samples of step 3 are those of step 1: this evaluation is left out"):
            assert one.update(3, again) == []
        assert one.steps == [1, 2] and "those of step 1" in one.result.warnings[-1]


EARLIER, OTHER, NEW = (draw(seed, 80) for seed in (11, 12, 14))
AGAIN = {  # an evaluation, and the part of its samples that are those of steps 1 and 2
    "the first eight": (np.r_[EARLIER[:8], NEW[8:]], 0.1),
    "all but the first sixteen": (np.r_[NEW[:16], EARLIER[16:]], 0.8),
    "the last half": (np.r_[NEW[:36], EARLIER[36:]], 0.55),
    "every third": (np.where(np.arange(80)[:, None] % 3 == 0, EARLIER, NEW), 0.34),
    "a small part of an evaluation": (EARLIER[40:60], 1.0),
    "halves of two evaluations": (np.r_[EARLIER[:40], OTHER[40:]], 1.0),
    "among twice as many": (np.r_[EARLIER, NEW, draw(15, 80)], 0.33),
    "none": (NEW, 0.0),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", AGAIN)
def test_an_evaluation_is_left_out_by_the_share_of_its_samples_that_were_seen(monitor, case):
    samples, share = AGAIN[case]
    for step, earlier in ((1, EARLIER), (2, OTHER)):
        monitor.update(step, earlier)
    monitor.update(3, samples)
    assert monitor.steps == ([1, 2] if share >= 0.5 else [1, 2, 3])
    said = [text for text in monitor.warnings if "of step 3 are those of" in text]
    assert len(said) == (share > 0)
    if 0 < share < 0.9:
        assert int(values(said[0]).split()[0]) / 100 == pytest.approx(share, abs=0.07)


def test_looks_that_repeat_by_their_law_stay():
    monitor = fe.Monitor(REFERENCE)
    for step in range(6):
        monitor.update(step, np.repeat(draw(13, 2), 32, 0))  # a generator that has collapsed
    assert len(monitor.steps) == 6 and {one.name for one in monitor.alarms} == {"repeats"}
    monitor = fe.Monitor(of_few_values(1, 400))
    for step in range(6):
        monitor.update(step, of_few_values(step + 2, 64))
    assert len(monitor.steps) == 6


def test_the_reference_among_the_looks_raises_no_alarm():
    """A small part of `benchmarks/monitor.py --regime "reference among the looks"`."""
    alarmed = 0
    for seed, n in enumerate((64, 128)):
        monitor = fe.Monitor(draw([seed, 0], n))
        with pytest.warns(UserWarning, match="those of the reference"):
            monitor.update(0, draw([seed, 0], n))
        for step in range(1, 9):
            monitor.update(50 * step, draw([seed, step], n))
        alarmed += bool(monitor.alarms)
    assert not alarmed


def broken(rows, places, value=np.nan):
    rows = np.array(rows)
    rows[places, 1] = value
    return rows


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_samples_that_are_not_finite_are_counted_left_out_and_an_alarm(monitor, value):
    rows = draw(21).astype(np.float64)
    with pytest.warns(UserWarning, match=r"step 50: 3 of 64 samples are not finite \(NaN or Inf\), and are left out"):
        (alarm,) = monitor.update(50, broken(rows, [3, 9, 60], value))
    assert alarm.name == "not finite" and alarm.step == alarm.since == 50
    assert alarm.text == "since step 50: samples are not finite (NaN or Inf), and are left out: 3 of 64"
    assert (alarm.before, alarm.after) == (0, 3 / 64) and monitor.result.samples == (61,)
    clean = fe.Monitor(REFERENCE)
    clean.update(50, np.delete(rows, [3, 9, 60], 0))
    assert np.array_equal(clean.history.scores, monitor.history.scores, equal_nan=True)
    with pytest.warns(UserWarning, match="step 100: 1 of 64 samples is not finite"):
        assert monitor.update(100, broken(draw(22), [0])) == []  # one alarm, and each look is told
    assert "3 of 64" in monitor.result.headline


def test_a_look_without_any_finite_sample_is_an_alarm_and_no_look(monitor):
    monitor.update(50, draw(23))
    with pytest.warns(UserWarning, match="64 of 64 samples are not finite"):
        (alarm,) = monitor.update(100, np.full((64, D), np.nan))
    assert alarm.after == 1 and monitor.steps == [50] and monitor.result.keep == 50
    assert "64 of 64" in monitor.result.to_markdown()


@pytest.mark.parametrize("as_list", [False, True])
def test_pictures_that_hold_nan_are_counted_left_out_and_an_alarm(as_list):
    torch.manual_seed(0)
    monitor = fe.Monitor(torch.rand(60, 3, 16, 16), extractor=fe.Extraction("pixels", range=(0, 1)))
    for step, places in ((1, [2, 5]), (2, [*range(16)])):
        pictures = torch.rand(16, 3, 16, 16)
        pictures[places, 0, 3, 3] = float("nan")
        with pytest.warns(UserWarning, match=f"step {step}: {len(places)} of 16 samples are not finite"):
            monitor.update(step, [*pictures] if as_list else pictures, prompts=[f"prompt {one}" for one in range(16)])
    assert monitor.result.samples == (14,) and [one.name for one in monitor.alarms] == ["not finite"]


def test_parts_of_processes_that_are_not_finite_add_up(monitor):
    parts = [monitor.measure(broken(draw(24, 32), [0, 1])), monitor.measure(np.full((32, D), np.nan))]
    with pytest.warns(UserWarning, match="34 of 64 samples are not finite"):
        monitor.add(1, parts)
    assert monitor.result.samples == (30,)
