"""Two trainings side by side: what differs, since when, and how much."""

from html import unescape

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.cli.verbs.monitor import steps_of_one
from finc_eval.core.errors import DataError, UsageError
from finc_eval.monitoring.pages.charts import UnitOfThing
from finc_eval.monitoring.trainings.scan import scan_p_values
from finc_eval.monitoring.trainings.shared_steps import SharedSteps
from finc_eval.monitoring.trainings.steps_of_folders import named_trainings, pair_steps, steps_of


def training(seed, change=lambda step, rows: rows, steps=range(0, 800, 100), n=64):
    rng = np.random.default_rng(seed)
    return {step: change(step, rng.normal(size=(n, 4))) for step in steps}


def narrower(step, rows):
    return rows * (1 if step < 400 else 0.5)


REFERENCE = np.random.default_rng(9).normal(size=(200, 4))


@pytest.fixture(scope="module")
def found():
    return fe.compare_trainings({"a": training(1), "b": training(2, narrower)}, REFERENCE)


def test_what_differs_is_dated_and_has_a_size(found):
    diversity = next(one for one in found.differences if one.name == "diversity")
    assert diversity.since in (300, 400, 500) and diversity.since_interval[0] <= 400 <= diversity.since_interval[1]
    assert diversity.interval[0] <= 1.37 <= diversity.interval[1]  # half of the mean distance of normal samples
    assert diversity.p_value <= 0.05 and diversity.first > diversity.second
    assert found.steps == tuple(range(0, 800, 100)) and found.samples == ((64,) * 8, (64,) * 8)


def test_a_drift_that_both_have_is_not_a_difference():
    both = fe.compare_trainings({"a": training(1, narrower), "b": training(2, narrower)}, REFERENCE)
    assert both.differences == () and both.findings == () and {*both.says} == {"differences"}


def test_repeats_are_said_of_the_training_that_has_them():
    def collapse(step, rows):
        return np.where((np.arange(len(rows)) < 30)[:, None] & (step >= 400), 1.0, rows)

    found = fe.compare_trainings({"a": training(1), "b": training(2, collapse)}, REFERENCE)
    repeats = next(one for one in found.differences if one.name == "repeats")
    assert (repeats.first, repeats.since) == (0, 400) and repeats.second == pytest.approx(30 / 64, abs=0.02)
    assert found.findings[0].text == repeats.text and "b:" in repeats.text and "(a: none)" in repeats.text
    assert "samples are more diverse" not in [one.name for one in found.findings]  # it follows from the repeats


@pytest.mark.parametrize("noise", [0, 1e-3])
def test_trainings_with_the_same_seeds_do_not_differ_in_repeats(noise):
    a, rng = training(1), np.random.default_rng(4)
    same = {step: rows + noise * rng.normal(size=rows.shape) for step, rows in a.items()}
    found = fe.compare_trainings({"a": a, "b": same}, REFERENCE)
    assert found.differences == () and sum("the same seeds" in text for text in found.warnings) == 1


def test_the_first_step_of_the_first_training_is_the_reference_by_default():
    found = fe.compare_trainings({"a": training(1), "b": training(2)})
    assert found.steps == tuple(range(100, 800, 100)) and "only b" not in str(found.warnings)
    assert any("step 0 of a is the reference" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("name", "spread", "start", "written"),
    [
        ("saturation", 0.2, 0.8, "−25 to −12.5 %"),  # of the value that the sentence compares to, and not of the origin
        ("noise", 0.2, 0.8, "−1 to −0.5 σ"),
        ("kind cat", None, 0.8, "−20 to −10 points"),
    ],
)
def test_a_difference_is_written_in_the_unit_of_its_sentence(name, spread, start, written):
    assert UnitOfThing(name, 0.4, spread).write_range((-0.2, -0.1), start) == written


def test_outputs_say_the_same(found, tmp_path):
    found.to_json(tmp_path / "found.json")
    back = fe.load(tmp_path / "found.json")
    page = back.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert back.to_dict() == found.to_dict()
    for text in (page, back.to_markdown(), back._repr_html_()):
        assert all(finding.name in unescape(text) for finding in found.findings[:3])
    assert page.count('class="drawn course"') == len(found.followed)
    assert set(found.to_frame().columns) >= {"training", "name", "step", "value", "p_value"}


@pytest.mark.parametrize(
    ("trainings", "words"),
    [
        ({"a": training(1)}, "1 training"),
        ({"a": training(1), "b": training(2), "c": training(3)}, "3 trainings"),
        ([training(1), training(2)], "list"),
        ({"a": {0: REFERENCE}, "b": {1: REFERENCE}}, "the same steps"),
        ({"a": {"x": REFERENCE}, "b": {1: REFERENCE}}, "step"),
        ({"a": 3, "b": {1: REFERENCE}}, "int"),
        ({"a": training(1, lambda _, rows: rows * np.nan), "b": training(2)}, "not finite.* and 14 more"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(trainings, words):
    with pytest.raises(UsageError, match=words):
        fe.compare_trainings(trainings, REFERENCE)


def test_a_training_without_steps_has_no_reference():
    with pytest.raises(UsageError, match="a has no further step"):
        fe.compare_trainings({"a": {}, "b": training(2)})


def test_what_is_left_out_is_said_once_for_each_reason():
    def break_some(step, rows):
        return np.where((np.arange(len(rows)) < step / 100)[:, None], np.nan, rows)

    found = fe.compare_trainings({"a": training(1, break_some, (0, 100, 200)), "b": training(2)}, REFERENCE)
    left_out = [text for text in found.warnings if "left out" in text]
    assert [text.partition(" of ")[0] for text in left_out] == ["a, step 100: 1", "a, step 200: 2"]
    assert not any("reference" in text for text in left_out)


def test_a_reference_among_the_steps_is_not_compared():
    a, b = training(1), training(2)
    found = fe.compare_trainings({"a": a, "b": b}, np.concatenate([a[0], a[100]]))
    assert found.steps == tuple(range(200, 800, 100)) and any(
        "also in the reference" in text for text in found.warnings
    )


def test_p_values_of_scores_without_a_difference_are_uniform():
    rng = np.random.default_rng(0)
    for mask in (0.0, 0.4):
        scores = rng.normal(size=(9, 40))
        scores[rng.random(9) < mask] = np.nan
        alone = np.array([scan_p_values(scores[:, [thing]])[0][0] for thing in range(40)])
        assert abs((alone <= 0.3).mean() - 0.3) < 3 * (0.21 / 40) ** 0.5


@pytest.mark.parametrize("thing", [0, 1], ids=["share", "mean"])
def test_the_difference_of_the_other_order_has_the_mirrored_interval(thing):
    rng = np.random.default_rng(3)
    counts = rng.integers(40, 80, (6, 2, 1)).astype(float)
    sums = np.concatenate([rng.binomial(40, [[[0.1], [0.4]]] * 6), counts * rng.normal([[[1.0], [3.0]]] * 6)], 2)
    squares = sums**2 / counts + counts  # a variance of one within each step
    units = [*np.stack([sums, np.broadcast_to(counts, sums.shape), squares], 3)]
    first, second, (low, high) = SharedSteps(None, (), 1, units=units).now(thing)
    turned = SharedSteps(None, (), 1, units=[step[::-1] for step in units]).now(thing)
    assert low < first - second < high and high - low > 0.01
    assert turned == (second, first, pytest.approx((-high, -low)))


def test_steps_of_folders_and_files(tmp_path):
    for name in ("step-100", "step-200", ".cache"):
        (tmp_path / "run-a" / name).mkdir(parents=True)
    assert [*steps_of(tmp_path / "run-a")] == [100, 200]
    assert [*steps_of(f"{tmp_path}/run-a/step-*")] == [100, 200]
    np.save(tmp_path / "epoch=1.npy", REFERENCE)
    with pytest.raises(DataError, match="no folder or file of samples"):
        steps_of(tmp_path / "run-a" / "step-100")
    run = f"{tmp_path}/run-a"
    assert named_trainings([f"{tmp_path}/epoch=1.npy", f"{tmp_path}/epoch=2.npy"]) is None
    assert [*named_trainings([f"a={run}", f"b={run}"])] == ["a", "b"]
    assert [*named_trainings([f"a={run}", f"b={run}"], ["step-200=7"])["b"]] == [7, 100]
    assert [*pair_steps(run, [100, 150])] == [100] and pair_steps(None, [100]) == {}
    with pytest.raises(UsageError, match="no pictures of any step"):
        pair_steps(run, [300])
    assert named_trainings(["lr=1/step-1", "lr=2/step-2", "lr=3/step-3"]) is None  # steps that do not exist
    assert [*steps_of_one([f"{run}/step-100", f"{run}/step-200"])] == [*steps_of_one([run])] == [100, 200]
    assert steps_of_one([run], ["run-a=7"]) == {7: run} and steps_of_one(["step-9"]) == {9: "step-9"}
    with pytest.raises(UsageError, match="no number that could be its step"):
        steps_of_one(["first", "last"])
    two, odd = [f"a={run}", f"b={run}"], [[f"a={run}"], [f"a={run}", run], [f"a={run}", f"a={run}"]]
    for arguments in (*odd, [*two, f"c={run}"]):
        with pytest.raises(UsageError, match="two trainings are compared, got a="):
            named_trainings(arguments)
    with pytest.raises(UsageError, match="--step final=9"):
        named_trainings(two, ["final=9"])
    for path, words in (("missing", "missing is not a folder"), ("run-a/ckpt-*", "nothing fits ")):
        with pytest.raises(DataError, match=words):
            named_trainings([two[0], f"b={tmp_path}/{path}"])
