"""Limits on pairs: a release with the prompts and seeds of its baseline, as after a port or a change of precision."""

import json
import re

import numpy as np
import pytest
from _runs_of_scenes import OLD, blurred, broken, noise, run_of
from _said import values
from scipy.stats import binom

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError

POLICY = {"by_id": {"broken": 0, "worse": 0}}
REF = run_of(noise(OLD, 1, seed=5))


RUN = run_of(OLD)
FEW = OLD[:40]


def judge(new, policy=POLICY, again=()):
    baselines = [RUN if len(new) == len(OLD) else run_of(OLD[: len(new)]), *(run_of(one) for one in again)]
    return fe.gate(run_of(new), baselines if again else baselines[0], REF, policy)


@pytest.mark.parametrize("again", [(), (noise(FEW, 1, seed=2),)], ids=["alone", "with a second run"])
def test_noise_that_no_eye_sees_passes(again):
    verdict = judge(noise(FEW, 3), again=again)
    assert verdict.overall == "pass"
    assert verdict.by_id.changed > 0.95
    assert "Nothing is worse by more than a quarter of a standard deviation" in verdict.summary


@pytest.fixture(scope="module")
def black():
    """The verdict of a release with six black pictures."""
    return judge(broken("black")[0])


def test_broken_pairs_fail_by_their_ids(black):
    verdict, ids = black, broken("black")[1]
    assert verdict.overall == "regression"
    assert set(verdict.by_id.broken) == ids
    assert values(verdict.headline_parts["failed 1"]).startswith("6 6 ")
    assert "black" in verdict.headline_parts["failed 1"]
    assert set(verdict.causes[0].examples["gen"]) == ids


def test_as_many_broken_pairs_as_are_allowed_pass():
    new, ids = broken("black")
    assert judge(new, {"by_id": {"broken": len(ids)}}).overall == "pass"
    assert judge(new, {"by_id": {"broken": len(ids) - 1}}).overall == "regression"


def test_what_is_worse_fails_by_name_and_once():
    verdict = judge(blurred(FEW), POLICY | {"appearance": {"whole": 0.05}})
    assert verdict.overall == "regression"
    assert verdict.headline.count("blurrier") == 1
    assert "worse: blurrier (" in verdict.headline_parts["failed 1"]


@pytest.mark.parametrize(
    ("again", "allowed", "overall"),
    [((), 0.5, "regression"), ((noise(FEW, 3, seed=3),), 0.5, "pass"), ((noise(FEW, 3, seed=3),), 0.01, "undecided")],
)
def test_the_share_that_changed_counts_beyond_runs_of_the_baseline(again, allowed, overall):
    assert judge(noise(FEW, 3), {"by_id": {"changed": allowed}}, again).overall == overall


def test_pairs_stand_in_all_outputs(black, tmp_path):
    verdict, ids = black, broken("black")[1]
    text = json.loads(verdict.to_json())
    assert set(text["by_id"]["broken"]) == ids
    verdict.to_json(tmp_path / "verdict.json")
    assert fe.load(tmp_path / "verdict.json").by_id == verdict.by_id
    page = verdict.to_html(tmp_path / "verdict.html").read_text()
    assert "Broken pairs" in page
    assert all(one in page for one in ids)


def test_a_release_that_lacks_an_id_is_refused():
    with pytest.raises(DataError, match="have no partner in gen by id"):
        fe.gate(run_of(OLD[:-1]), run_of(OLD), REF, POLICY)


def test_pairs_by_a_column_contradict_pairs_by_id():
    with pytest.raises(UsageError, match="leave out pairs"):
        fe.Policy.of(POLICY | {"pairs": "prompt"})


@pytest.mark.parametrize("table", [{"broken": -1}, {"changed": 2}, {}])
def test_limits_out_of_range_are_refused(table):
    with pytest.raises(UsageError):
        fe.Policy.of({"by_id": table})


@pytest.fixture(scope="module")
def first_of_one():
    """The first policy for one run."""
    from finc_eval.gates.first_policy import first_policy

    return first_policy([RUN], REF)


def test_the_first_policy_limits_pairs_where_ids_are_common(first_of_one):
    from finc_eval.gates.first_policy import first_policy

    rng = np.random.default_rng(0)
    other = run_of(noise(OLD, 1), [f"{one:x}.png" for one in rng.integers(1 << 40, size=len(OLD))])
    assert "\nby_id.broken = 0" in first_of_one
    assert "\n# by_id.broken = 0" in first_policy([RUN], other)


def test_the_first_policy_limits_what_changes_where_two_runs_of_an_engine_say_what_is_a_change(first_of_one):
    from finc_eval.gates.first_policy import first_policy

    two = first_policy([RUN, run_of(noise(OLD, 1))], REF)
    (share,) = map(float, re.findall(r"^by_id\.changed = ([\d.]+)", two, re.MULTILINE))
    # Two pairs of all lie beyond by chance: the smallest share of two digits that has no more so seldom as 1 of 80.
    assert binom.cdf(2, len(OLD), share) <= 0.0125 < binom.cdf(2, len(OLD), share - 0.01)
    assert "by_id.changed" not in first_of_one


WHOLE = {
    "mirrored": lambda: [np.ascontiguousarray(one[:, ::-1]) for one in noise(FEW)],
    "ids are shifted by 1": lambda: [*noise(FEW[1:]), *noise(FEW[:1])],
    "red and blue exchanged": lambda: [np.ascontiguousarray(one[..., ::-1]) for one in noise(FEW)],
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", WHOLE)
def test_a_run_that_is_broken_as_a_whole_fails_and_nothing_of_it_holds(name):
    verdict = judge(WHOLE[name]())
    assert (verdict.overall, verdict.exit_code) == ("regression", 1)
    assert name in verdict.headline
    verdicts = {one.rule: one.verdict for one in verdict.limits}
    assert verdicts["by_id.broken"] == "regressed"
    assert verdicts["by_id.worse"] in ("undecided", "regressed")


def test_a_run_that_cannot_be_recognized_is_undecided():
    from scipy.ndimage import shift

    moved = [np.clip(shift(one.astype(float), (2, 2, 0), order=1, mode="nearest"), 0, 255) for one in FEW]
    verdict = judge([np.rint(one).astype(np.uint8) for one in moved], {"by_id": {"broken": 0}})
    assert (verdict.by_id.verdict, verdict.overall, verdict.exit_code) == ("undecided", "undecided", 2)
    assert "cannot be recognized" in verdict.headline


def test_a_first_release_has_no_pairs_and_passes(tmp_path):
    verdict = fe.gate(run_of(OLD), tmp_path / "releases", REF, POLICY, first=True)
    assert (verdict.overall, verdict.by_id) == ("pass", None)


@pytest.mark.parametrize("older", [1, 2])
def test_what_is_wrong_with_a_baseline_is_said_of_the_baseline(older):
    from finc_eval.gates.first_policy import first_policy

    sets = [fe.EmbeddingSet(np.random.default_rng(i).normal(size=(60, 4)).astype(np.float32)) for i in range(older + 1)]
    with pytest.raises(fe.FincEvalError, match=r"\bbaseline" + "-1" * (older > 1)) as raised:
        first_policy(sets[:-1], sets[-1], groups="patient")
    assert "gen" not in str(raised.value)
