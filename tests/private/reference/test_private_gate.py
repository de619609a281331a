"""Gates on a private reference: limits on the distance from private records, and what they refuse."""

import numpy as np
import pytest
from _private import sketch_of_known_noise
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.gates.first_policy import first_policy
from finc_eval.private.reference import mean_distance
from finc_eval.private.reference.gate import FARTHER, PrivateDistance

LIMITS = {"private": {"distance": 0.05, "farther": 0.02}}


@pytest.fixture(scope="module")
def sketch(sets, transform):
    return sketch_of_known_noise(sets[1], transform)


@pytest.fixture(scope="module")
def releases(sets):
    """A baseline, another draw of its generator, and inverted digits."""
    gen = sets[2]
    return {"old": gen[:300], "same": gen[300:600], "inverted": 1 - gen[300:600]}


def judged(verdict):
    return {limit.name: limit.verdict for limit in verdict.limits}


def test_a_release_like_its_baseline_passes_and_a_farther_one_is_a_regression(releases, sketch):
    passed = fe.gate(releases["same"], releases["old"], sketch, LIMITS)
    assert passed.exit_code == 0 and list(judged(passed)) == ["private.distance", "private.farther"]
    failed = fe.gate(releases["inverted"], releases["old"], sketch, LIMITS)
    assert failed.exit_code == 1 and set(judged(failed).values()) == {"regressed"}
    assert [finding.limit for finding in failed.findings] == ["private.distance", "private.farther"]
    assert "farther from the private records than the baseline, by" in failed.findings[1].text
    assert failed.limits[0].value == pytest.approx(sketch.score(releases["inverted"]).value)


def test_a_verdict_says_the_guarantee_and_what_was_not_judged_and_is_read_back(releases, sketch, tmp_path):
    verdict = fe.gate(releases["same"], releases["old"], sketch, LIMITS)
    assert "(1, 1e-05)-DP" in verdict.warnings[0] and "none of them was judged" in verdict.warnings[0]
    verdict.to_json(tmp_path / "verdict.json")
    assert fe.load(tmp_path / "verdict.json").to_dict() == verdict.to_dict()
    assert verdict.warnings[0] in verdict.to_html(tmp_path / "verdict.html").read_text()
    assert verdict.sets["ref"].digest == sketch.digest and verdict.sets["ref"].n == sketch.m


def test_a_far_release_does_not_make_a_limit_too_fine_that_an_unchanged_release_keeps(releases, sketch):
    """The errors of a far release are larger, and do not say what a release like its baseline would keep."""
    limit = float(fe.Policy.parse(first_policy([releases["old"]], sketch)).private.farther)
    for name in ("same", "inverted"):
        verdict = fe.gate(releases[name], releases["old"], sketch, {"private": {"farther": limit}})
        assert len(verdict.warnings) == 1 and FARTHER in judged(verdict), name
    few = fe.gate(releases["same"][:60], releases["old"], sketch, {"private": {"farther": limit}})
    assert FARTHER in few.warnings[1]  # a smaller release is less sure than its baseline


REFUSED = [
    ({"kinds": {"lose": 0.5}}, "kinds"),
    ({"basics": {"copies": 0.1}}, "basics.copies"),
    ({"basics": {"membership": 0.1}}, "basics.membership"),
    (LIMITS | {"groups": "prompt"}, "groups"),
    (LIMITS | {"pairs": "id"}, "pairs"),
]
"""Policies with a part that needs samples of the reference, or units that a score does not know, and its name."""


@pytest.mark.parametrize(("policy", "named"), REFUSED)
def test_a_policy_that_a_private_reference_cannot_answer_is_refused(policy, named, releases, sketch):
    with pytest.raises(fe.UsageError, match=named):
        fe.gate(releases["same"], releases["old"], sketch, policy)


def test_several_baselines_are_refused_and_plain_facts_are_judged(releases, sketch):
    with pytest.raises(fe.UsageError, match="one baseline, got 2"):
        fe.gate(releases["same"], [releases["old"], releases["inverted"]], sketch, LIMITS)
    verdict = fe.gate(releases["same"], releases["old"], sketch, {"basics": {"samples": 301}})
    assert judged(verdict) == {"basics.samples": "regressed"}


def test_without_a_private_reference_a_limit_on_it_is_missing(releases):
    verdict = fe.gate(releases["same"], releases["old"], releases["old"], LIMITS)
    assert verdict.exit_code == 3 and set(judged(verdict).values()) == {"missing"}


def test_an_anchor_is_another_release_to_be_no_farther_than(releases, sketch):
    verdict = fe.gate(releases["same"], releases["same"], sketch, LIMITS, anchor=releases["old"])
    assert set(judged(verdict)) == {"private.distance", "private.farther", "private.farther-anchor"}


def test_the_first_policy_is_kept_by_another_draw_of_the_baseline(releases, sketch):
    policy = fe.Policy.parse(first_policy([releases["old"]], sketch))
    assert policy.limited == ("private",) and policy.private.farther < policy.private.distance
    assert fe.gate(releases["same"], releases["old"], sketch, policy).exit_code == 0
    with pytest.raises(fe.UsageError, match="groups"):
        first_policy([releases["old"]], sketch, groups="prompt")


def test_the_command_promotes_a_release_that_passed(releases, sketch, tmp_path):
    sketch.save(tmp_path / "ref.h5")
    (tmp_path / "gate.toml").write_text("private.distance = 0.05\nprivate.farther = 0.02\n")
    for name, rows in releases.items():
        np.save(tmp_path / f"{name}.npy", rows)
    rest = f"--baseline {tmp_path}/history --ref {tmp_path}/ref.h5 --policy {tmp_path}/gate.toml --out {tmp_path}/out"

    def run(command):
        return CliRunner().invoke(app, f"gate {command} {rest}".split()).exit_code

    assert run(f"--first --gen {tmp_path}/old.npy") == 0
    assert run(f"--gen {tmp_path}/inverted.npy --force") == 1
    assert run(f"--promote --gen {tmp_path}/same.npy --force") == 0
    assert len(list((tmp_path / "history").glob("000*"))) == 2


def test_what_is_detectable_lies_beyond_the_margin_and_is_found_by_its_own_bound(releases, sketch):
    """With an estimate of as much above the least that is seen as the power asks for, the bound meets the margin."""
    gen = sketch.summarize(releases["old"])
    value = mean_distance.squared_distance(sketch.noisy_mean, gen)
    evidence = PrivateDistance(name="x", value=value, margin=value, n=gen.n, ref=sketch.noisy_mean, gen=gen)
    assert evidence.margin < evidence.detectable(0.05) < evidence.detectable(0.01)
    assert evidence.bound("low", 0.05) < value < evidence.bound("high", 0.05)
    assert evidence.bound("high", 0.05, 100.0) < evidence.bound("high", 0.05)
    # The lower bound of an estimate above `least` is above the margin, with the power's quantile between the two.
    assert mean_distance.detected_beyond(sketch.noisy_mean, gen, value, 1.6, 0.0) == pytest.approx(
        mean_distance.detected_beyond(sketch.noisy_mean, gen, value, 1.6, 1e-9), rel=1e-6
    )
