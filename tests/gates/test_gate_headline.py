"""The first line of a gate: what is wrong by name and once, and what most likely is though no limit is on it."""

import html
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from _pictures import SIDE, blur, lose, release, repeat
from _said import values_by_key
from PIL import Image
from scipy import stats

import finc_eval as fe
from finc_eval import report
from finc_eval.gates.limit import Limit
from finc_eval.gates.page import _seen
from finc_eval.gates.pipelines import junit_xml
from finc_eval.gates.verdict import ReleaseFinding
from finc_eval.numerics.inference import ALPHA

CASES = {
    "a limit on repeats names the picture": (
        repeat, {"basics.duplicates": 0.01}, "regression", "failed 1", r"picture.* 1\d ",
    ),
    "a lost kind without a limit is named": (
        lose, {"kinds.moved": 0.02}, "undecided", "likely 1", "not limited.*(color-0|reddish)",
    ),
    "a look without a limit is named": (blur, {"kinds.moved": 0.02}, "undecided", "likely 1", "blurred"),
    "a lost kind has its name": (
        lose, {"kinds.lose": 0.5, "kinds.column": "label"}, "regression", "failed 1",
        r"lacks (mostly )?color-0 \(0\.0 .* \d+\.\d .* 100 ",
    ),
}  # fmt: skip


@pytest.mark.one_of_each(by=lambda case: CASES[case][2])
@pytest.mark.parametrize("case", CASES)
def test_the_headline_names_what_is_wrong_and_is_the_first_line_of_all_outputs(case, capsys, judged):
    change, policy, overall, key, words = CASES[case]
    verdict = judged(change, policy)
    assert verdict.overall == overall
    (line,) = verdict.headline.splitlines()
    assert re.search(words, verdict.headline_parts[key]), verdict.headline_parts
    assert all(one in line for one in verdict.headline_parts.values())
    assert json.loads(verdict.to_json())["headline"] == line
    assert f'name="headline" value="{line}"' in junit_xml(verdict)
    report.show(verdict)
    assert capsys.readouterr().out.startswith(line)
    assert line.split(" (")[0] in html.unescape(verdict.to_markdown()).replace("\\", "")
    assert line.split(" (")[0] in html.unescape(report.page(verdict, {})).replace("\xa0", " ")


def test_an_unchanged_release_is_said_to_hold_and_nothing_is_claimed():
    verdict = fe.gate(release(3), release(1), release(2), {"kinds.lose": 0.65, "kinds.column": "label"})
    assert verdict.overall == "pass" and values_by_key(verdict.headline_parts) == {"held": str(len(verdict.limits))}
    assert verdict.causes == () and "seen from" in verdict.held


def stamp(images, labels):
    """An eighth of the release is one new picture."""
    stamped = np.zeros((SIDE, SIDE, 3), np.uint8)
    stamped[::4] = 255
    return [Image.fromarray(stamped) if i % 8 == 0 else one for i, one in enumerate(images)], labels


def test_a_repeated_picture_that_is_a_new_kind_is_one_cause():
    verdict = fe.gate(release(3, stamp), release(1), release(2), {"basics.duplicates": 0.01, "kinds.new": 0.05})
    assert {limit.rule for limit in verdict.of("regressed")} == {"basics.duplicates", "kinds.new"}
    assert [cause.words.partition(" (")[0] for cause in verdict.causes if cause.limit] == ["one picture, 15 times"]


@pytest.mark.parametrize(
    ("limit", "verdict", "value", "words"),
    [
        (None, "held", 0.1, "Not limited: "),
        ("a", "held", 0.1, "Within its limit: "),
        ("a", "held", 0.3, "Not surely beyond its limit: "),
        ("a", "undecided", 0.3, "Undecided: "),
        ("a", "regressed", 0.3, ""),
    ],
)
def test_what_broke_no_limit_is_marked_apart_from_what_failed(limit, verdict, value, words):
    finding = ReleaseFinding(
        "owls", "kind", False, 0.0, 0.09, None, text="lacks owls (0 %, before 9 %)", limits=(limit,) if limit else (),
        examples={"gen": (), "ref": ("1",)},
    )  # fmt: skip
    limits = [SimpleNamespace(name="a", verdict=verdict, value=value, margin=0.2, harm="high")]
    found = SimpleNamespace(findings=[finding], limits=limits, sets=("gen", "baseline"), parts=())
    (seen,) = _seen(found)
    assert seen.heading == f"{words}lacks owls" and seen.ink == ("other" if words else "gen")


@pytest.mark.parametrize(
    ("name", "value", "margin", "words"),
    [
        ("basics.duplicates", 0.213, 0.2, "21.3 % 20 %"),
        ("basics.duplicates", 0.20004, 0.2, "20.004 % 20 %"),
        ("kinds.new k3", 0.0500001, 0.05, "5.00001 % 5 %"),
        ("kinds.lose k3", 0.5, 0.5, "50 % 50 %"),
        ("appearance.whole", 0.300004, 0.3, "0.300004 0.3"),
        ("appearance.whole", 1.24687, 0.3, "1.247 0.3"),
    ],
)
def test_a_number_of_a_limit_is_written_unlike_what_is_allowed(name, value, margin, words):
    limit = Limit(name, "regressed", value, None, margin, "high", None, None, "", {}, {})
    assert f"{limit.number(value)} {limit.number(margin)}" == words


def a_cause(name, limit, kind="kind", share=0.3):
    return ReleaseFinding(name, kind, False, share, 0.05, None, limits=(limit,))


FAILED = {  # findings by name, with the first limit of each, and parts of the headline by key
    "all causes by name": (
        [a_cause(f"dog {place}", f"a{place}") for place in range(5)],
        ["too many dog 0", "too many dog 1", "too many dog 2", "more “dog 3” (30.0 %)", "more “dog 4” (30.0 %)"],
    ),
    "kinds without names": (
        [a_cause("cat", "a0"), *(a_cause(f"unnamed kind k{place}", f"a{place}") for place in range(1, 5))],
        ["too many cat", "too many samples of the unnamed kind k1", "too many samples of the unnamed kind k2",
         "2 more kinds without a name"],
    ),
    "one cause of all limits": (
        [replace(a_cause("cat", "a0"), limits=tuple(f"a{place}" for place in range(5)))], ["too many cat"],
    ),
    "a look that is gone": (
        [*(a_cause(f"dog {place}", f"a{place}") for place in range(4)), a_cause("noisy", "a4", "look", 0.0)],
        ["too many dog 0", "too many dog 1", "too many dog 2", "more “dog 3” (30.0 %)", "none noisy (before 5.0 %)"],
    ),
    "limits without a finding": (
        [], ["a0 is 0.5", "a1 is 0.5", "a2 is 0.5", "2 more limits failed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILED)
def test_causes_are_named_and_only_limits_are_counted_as_limits(case, failed):
    findings, texts = FAILED[case]
    limits = [Limit(f"a{place}", "regressed", 0.5, None, 0.1, "high", None, None, "", {}, {}) for place in range(5)]
    told = replace(failed, findings=tuple(findings), limits=tuple(limits)).headline_parts
    assert [text.partition(" (30.0 %, before")[0] for text in told.values()] == texts


@pytest.mark.parametrize(
    ("kind", "p_value", "is_said"),
    [("kind", 0.03, False), ("kind", 0.02, True), ("look", 0.01, True), ("copy", None, True)],
)
def test_what_stands_beside_pass_is_clear(kind, p_value, is_said, passed):
    finding = ReleaseFinding("owls", kind, False, 0.3, 0.1, p_value)
    told = replace(passed, findings=(finding,)).headline_parts
    assert (told.get("likely 1") == "differs, not limited: more: owls 10 → 30 %") == is_said == ("likely 1" in told)


@pytest.mark.long
def test_a_release_without_a_change_is_seldom_said_to_differ_beside_pass():
    """At most one of twenty, as a headline: 60 releases of pictures of stripes."""
    seeds = range(2000, 2180, 3)
    verdicts = [
        fe.gate(release(seed), release(seed + 1), release(seed + 2), {"kinds.lose": 0.9, "appearance.whole": 0.9})
        for seed in seeds
    ]
    claims = sum("differs" in verdict.headline for verdict in verdicts)
    assert claims <= stats.binom.ppf(0.999, len(seeds), ALPHA), claims
