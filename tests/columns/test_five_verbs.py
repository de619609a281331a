"""A column of the user, registered or of metadata, in the five verbs: a planted difference has the user's words."""

import copy
import pickle
import warnings
from itertools import product

import numpy as np
import pytest
from _quick import quick_results  # noqa: F401
from _redder import COLUMNS, held, is_red, pictures, redness

import finc_eval as fe

LIMITS = {"appearance": {"part": 0.05, "whole": 0.3}}


def compare(planted, ref, before):
    found = fe.compare(planted(1), ref(2), features=50)
    return [one.name for one in found.looks], " ".join(found.says.values())


def gate(planted, ref, before):
    found = fe.gate(planted(1), before(2), ref(3), LIMITS)
    return [one.words for one in found.causes], " ".join(found.says.values())


def leaderboard(planted, ref, before):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fe.leaderboard({"a": planted(1), "b": before(2)}, ref(3))
    return [fault for row in found.rows if row.name == "a" for fault in row.faults], " ".join(found.says.values())


def monitor(planted, ref, before):
    found = fe.Monitor(ref(1))
    for step in range(6):
        found.update(step, (planted if step > 1 else before)(10 + step))
    return [one.text for one in found.alarms], " ".join(found.result.says.values())


def same_ids(planted, ref, before):
    found = fe.compare(planted(1), before(1), pairs="id", features=50)
    return [*found.by_id.looks, *(one.name for one in found.by_id.worse)], " ".join(found.says.values())


VERBS = {"compare": compare, "gate": gate, "leaderboard": leaderboard, "monitor": monitor, "same ids": same_ids}


def drawn(red=0, part=1.0, n=60, **metadata):
    """A function of a seed that draws a set of n pictures; sets of one seed show the same, slightly changed."""

    def of(seed):
        values = {key: np.random.default_rng(seed).normal(size=n) + mean for key, mean in metadata.items()}
        return held(pictures(n, seed, red, part), values)

    return of


def diagonals(case):
    """Return how far a case lies from the diagonal of the table, on which each column and each verb is."""
    column, verb = case
    return ([*VERBS].index(verb) - [*COLUMNS].index(column)) % len(VERBS)


@pytest.mark.one_of_each("verb", "column")
@pytest.mark.parametrize(("column", "verb"), sorted(product(COLUMNS, VERBS), key=diagonals))
def test_planted_differences_are_named_with_the_words_of_the_user_and_the_name_of_a_column_of_metadata(verb, column):
    function, words = COLUMNS[column]
    fe.register_column("redness of mine", function, **words, brings=["warmth", "green", "brightness"])
    said = {words.get("more"), words.get("high"), "high in “redness of mine”"} - {None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, text = VERBS[verb](drawn(red=60, score=2.0), drawn(score=0), drawn(score=0))
    assert any(word in name for name in names for word in said), names
    assert verb == "monitor" or any(word in text for word in said), text  # which begins with three alarms
    assert any("higher in “score”" in name for name in names), names
    assert "higher in “score”" in text, text


@pytest.mark.parametrize("verb", VERBS)
def test_sets_without_a_difference_have_no_word_of_the_user(verb):
    fe.register_column("redness of mine", redness, less="less red", more="redder than wanted", bad="more")
    fe.register_column("constant", lambda image: 1.0)
    fe.register_column("always", lambda image: True)
    fe.register_column("is red", is_red, bad="more")
    names, text = VERBS[verb](*[drawn(n=40, score=0)] * 3)
    words = ("wanted", "less red", "redness of mine", "constant", "always", "is red", "score")
    assert [name for name in [*names, text] if any(word in name for word in words)] == []


def test_a_part_of_a_set_is_high_in_the_column_or_has_the_users_word():
    fe.register_column("redness of mine", redness, less="less red", more="redder", high="tinted red")
    sets = [held(pictures(60, 1, 80, 0.3)), held(pictures(60, 2))]
    (look, *_) = fe.compare(*sets, features=50).looks
    assert (look.name, look.trait, look.whole) == ("tinted red", "redness of mine", False)
    assert look.share_gen == pytest.approx(0.3, abs=0.15)
    fe.register_column("redness of mine", redness, less="less red", more="redder")
    (look, *_) = fe.compare(*sets, features=50).looks
    assert look.name == "high in “redness of mine”"


def test_what_a_column_brings_is_not_said_beside_it():
    sets = [held(pictures(30, 1, 60)), held(pictures(30, 2))]
    fe.register_column("mine", redness, less="less red", more="redder", brings=["warmth", "green", "brightness"])
    found = {one.trait for one in fe.compare(*sets, features=50).looks}
    assert "mine" in found and not found & {"warmth", "green", "brightness"}
    fe.unregister_column("mine")
    assert {one.trait for one in fe.compare(*sets, features=50).looks} & {"warmth", "green", "brightness"}


def test_a_run_is_worse_on_the_bad_side_of_a_column_alone():
    for name, bad in (("good", "less"), ("bad", "more"), ("neither", None)):
        fe.register_column(name, redness, less=f"less {name}", more=f"more {name}", bad=bad)
    found = fe.compare(drawn(red=60, n=40)(1), drawn(n=40)(1), pairs="id", features=50).by_id
    assert [f"more {name}" in [harm.name for harm in found.worse] for name in ("good", "bad", "neither")] == [
        False,
        True,
        False,
    ]
    assert "more neither" in found.looks and not {"more good", "more bad"} & {*found.looks}


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_a_reference_without_any_of_a_column_is_judged_by_the_spread_of_both(fraction):
    fe.register_column("mine", lambda image: redness(image) > 40, high="red", more="redder", bad="more")
    found = fe.compare(
        drawn(red=120, part=fraction, n=40)(1), held(pictures(40, 1, -40)), pairs="id", features=50
    ).by_id
    assert ("redder" in [one.name for one in found.worse]) == bool(fraction)


def test_vectors_alone_are_compared_by_their_metadata_and_a_gate_does_not_call_them_held():
    def of(seed, mean=0.0):
        rng = np.random.default_rng(seed)
        return fe.EmbeddingSet(rng.normal(size=(80, 4)), None, {"score": rng.normal(size=80) + mean})

    fe.register_column("redness of mine", redness)
    assert [one.name for one in fe.compare(of(1, 2), of(2), features=50).looks] == ["higher in “score”"]
    assert fe.gate(of(1, 2), of(2), of(3), LIMITS).overall == "regression"
    assert fe.gate(of(1), of(2), of(3), LIMITS).overall == "error"  # looks could not be judged
    found = fe.Monitor(of(1))
    assert "redness of mine" not in found.names and "column score" in found.names


FEW = drawn(n=16, score=0)


def followed():
    found = fe.Monitor(drawn(n=40, score=0)(1))
    found.update(0, FEW(2))
    return found


CHANGED = {
    "another function": lambda: fe.register_column("mine", lambda image: redness(image) + 1),
    "no column": lambda: fe.unregister_column("mine"),
}


def test_a_monitor_refuses_to_go_on_with_another_column(tmp_path):
    fe.register_column("mine", redness, less="less red", more="redder")
    found = followed()
    found.save(tmp_path / "m.h5")
    fe.register_column("mine", lambda image: redness(image), less="less red", more="redder")  # the same code? another
    fe.register_column("mine", redness)
    stored = fe.Monitor.load(tmp_path / "m.h5")
    for case in CHANGED:
        CHANGED[case]()
        for monitor in (found, stored):
            with pytest.raises(
                fe.IncompatibleError, match=r"column 'mine'.*register the function that the monitor began with"
            ):
                monitor.update(1, FEW(3))
            assert monitor.steps == [0], case
        fe.register_column("mine", redness)
    for monitor in (found, stored):
        monitor.update(1, FEW(3))
        assert monitor.steps == [0, 1]


def test_a_monitor_goes_on_with_an_object_that_no_digest_holds_as_long_as_it_is_the_same():
    function, words = COLUMNS["object with a state"]
    fe.register_column("mine", function, **words)
    found = followed()
    fe.register_column("mine", function, **words)
    found.update(1, FEW(3))
    fe.register_column("mine", type(function)(), **words)
    with pytest.raises(fe.IncompatibleError, match="another function"):
        found.update(2, FEW(4))


def test_values_of_any_size_are_followed_by_their_ranks_and_shown_as_they_are():
    fe.register_column("huge", lambda image: 1e9 + redness(image) / 100, less="less red", more="redder")
    found = fe.Monitor(drawn(n=40)(1))
    for step in range(6):
        found.update(step, drawn(60 if step > 1 else 0, n=40)(10 + step))
    assert "huge" in [one.name for one in found.alarms]
    (course,) = [one for one in found.result.followed if one.name == "huge"]
    assert course.reference == pytest.approx(1e9, abs=1) and course.values[-1] > course.reference


def test_columns_of_seeds_and_numbers_of_rows_are_not_followed():
    rng = np.random.default_rng(0)
    pixels = pictures(40, 1)
    values = {"seed": rng.integers(0, 2**31, 40), "row": range(40), "code": rng.integers(0, 5, 40), "text": ["a"] * 40}
    assert not any(name.startswith("column") for name in fe.Monitor(held(pixels, values)).names)


def test_a_column_with_few_missing_values_is_compared_and_with_many_is_left_out():
    def scores(seed, mean):
        values = np.random.default_rng(seed).normal(mean, 1, (3, 80))
        return {
            f"lacks {missing}": ["" if row < missing else f"{value:.3f}" for row, value in enumerate(column)]
            for missing, column in zip((1, 8, 20), values, strict=True)
        }

    sets = [held(pictures(80, seed), scores(seed, mean)) for seed, mean in ((1, 2), (2, 0))]
    names = [finding.name for finding in fe.compare(*sets, features=50).findings]
    assert [f"higher in “lacks {missing}”" in names for missing in (1, 8, 20)] == [True, True, False], names


@pytest.mark.parametrize(("least", "is_said"), [(0, True), (1000, True)])
def test_counts_are_compared_whether_or_not_the_other_set_has_the_same(least, is_said):
    rng = np.random.default_rng(0)
    sets = [
        held(pictures(80, seed), {"count": rng.integers(low, low + 60, 80)}) for seed, low in ((1, least + 40), (2, 0))
    ]
    assert any("“count”" in one.name for one in fe.compare(*sets, features=50).findings) == is_said


def test_parts_of_processes_add_as_one():
    fe.register_column("mine", redness, less="less red", more="redder")
    fe.register_column("is red", is_red)
    one = fe.Monitor(drawn(n=40)(1))
    two = copy.deepcopy(one)
    pixels = pictures(40, 5, 60)
    one.update(0, held(pixels))
    two.add(0, [two.measure(held(some)) for some in (pixels[:15], pixels[15:])])
    for first, second in zip(one.result.followed, two.result.followed, strict=True):
        if first.name in ("mine", "is red"):
            assert first.values == pytest.approx(second.values) and first.values[0] is not None


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_that_fails_stops_each_verb_with_the_name_of_the_column(verb):
    calls = []

    def fails(image):
        calls.append(1)
        if len(calls) > 100:
            raise ValueError("no red here")
        return 1.0

    fe.register_column("mine", fails)
    with pytest.raises(fe.UsageError, match=r"the function of the column 'mine' failed on the sample .*no red here"):
        VERBS[verb](drawn(), drawn(), drawn())


def test_a_stored_board_says_that_a_model_was_measured_by_another_function(tmp_path):
    board = fe.Board(tmp_path / "board")
    fe.register_column("mine", redness, less="less red", more="redder")
    ref = drawn(n=24)(1)
    board.add({"a": drawn(60, n=24)(2)}, ref, metrics=["kid"])
    fe.register_column("mine", redness)
    board.add({"b": drawn(n=24)(3)}, ref)
    assert not any("was measured of" in warning for warning in board.leaderboard().warnings)
    fe.register_column("mine", lambda image: -redness(image))
    board.add({"c": drawn(n=24)(4)}, ref)
    warned = board.leaderboard().warnings
    assert any("“mine” was measured of c by another function than of a" in warning for warning in warned)


def test_a_monitor_with_a_lambda_goes_to_another_process():
    fe.register_column("mine", lambda image: redness(image), less="less red", more="redder")
    found = pickle.loads(pickle.dumps(followed()))
    found.update(1, FEW(3))
    assert found.steps == [0, 1]


class Scaled:
    """A measurement with weights, which no digest holds."""

    def __init__(self, weight):
        self.weights = [weight]

    def __call__(self, image):
        return self.weights[0] * redness(image)


@pytest.mark.one_of_each("refused", by=lambda case: case.startswith("plain"))
@pytest.mark.parametrize(
    ("now", "refused"),
    [(Scaled(1.0), False), (Scaled(1.0 + 1e-7), False), (Scaled(1.1), True), (Scaled(-1.0), True), (redness, False)],
    ids=["the same weights", "rounding", "other weights", "turned", "plain code of the same values"],
)
def test_a_stored_monitor_knows_a_function_without_a_digest_by_what_it_returns(now, refused, tmp_path):
    fe.register_column("mine", Scaled(1.0), less="less red", more="redder")
    followed().save(tmp_path / "m.h5")
    fe.register_column("mine", now, less="less red", more="redder")
    stored = fe.Monitor.load(tmp_path / "m.h5")
    assert not any("'mine'" in warning for warning in stored.warnings)
    if refused:
        with pytest.raises(fe.IncompatibleError, match="has another function"):
            stored.update(1, FEW(3))
    else:
        stored.update(1, FEW(3))
    assert stored.steps == [0] + [1] * (not refused)


def test_a_stored_monitor_warns_of_a_function_that_nothing_checks(tmp_path):
    weights = [1.0]  # pictures of chance have 64 × 64 pixels
    fe.register_column("mine", lambda image: weights[0] * redness(image) if image.width != 64 else None)
    followed().save(tmp_path / "m.h5")
    stored = fe.Monitor.load(tmp_path / "m.h5")
    assert any("'mine'" in warning and "nobody can check" in warning for warning in stored.warnings)
    stored.update(1, FEW(3))
    assert stored.steps == [0, 1]


def test_all_outputs_say_a_column_and_escape_its_name(tmp_path):
    fe.register_column("a <b> | c", redness)
    found = fe.compare(drawn(60, n=30)(1), drawn(n=30)(2), features=50)
    assert found.looks[0].name == "higher in “a <b> | c”"
    page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "a &lt;b&gt; | c" in page and "a <b> | c" not in page
    for text in (found.to_markdown(), found._repr_html_()):
        assert "higher in" in text
    found.to_json(tmp_path / "found.json")
    assert fe.load(tmp_path / "found.json").looks == found.looks
