"""All outputs of a gate say its findings, and nothing else: a finding that is taken out is gone from each of them."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from _pages import Page
from _pictures import blur, darken, lose, release, repeat
from _runs_of_scenes import OLD, noise, run_of, scenes
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval import report
from finc_eval.demo.planted import shipped_digits
from finc_eval.findings.finding import Finding
from finc_eval.gates.page import OF_LIMITS, comment
from finc_eval.gates.pipelines import annotation_lines, junit_xml
from finc_eval.report.cards import anchor

LOST = {"kinds": {"lose": 0.5, "column": "label"}}
LOOKS = {"appearance": {"part": 0.02, "whole": 0.05}}


def copy(images, labels):
    """A quarter of the release are pictures of the reference."""
    ref = release_pictures(2)
    return [ref[i] if i % 4 == 0 else one for i, one in enumerate(images)], labels


def release_pictures(seed):
    from _pictures import drawn

    return drawn(seed)[0]


CASES = {  # change of the release, policy, kind of the first finding, its name, and whether a limit is on it
    "a lost kind, without a limit": (lose, {"kinds.moved": 0.02}, "look or kind", "reddish|color-0", False),
    "a look of a part": (blur, LOOKS, "look", "blurred", True),
    "a look of the whole set": (darken, LOOKS, "look", "darker", True),
    "one picture again and again": (repeat, {"basics.duplicates": 0.01}, "repeat", "one picture, 20 times", True),
    "copies of the reference": (copy, {"basics.copies": 0.05}, "copy", "copies of the reference", True),
    "a metric": (darken, {"metrics": {"kid": {"most": 1e-6}}}, "metric", "kid", True),
}


@pytest.fixture
def verdict_of(judged):
    return lambda case: judged(*CASES[case][:2])


def outputs(verdict):
    """Return all outputs of a verdict, by name, without their markup."""
    texts = {
        "headline": verdict.headline,
        "says": " ".join(verdict.says.values()),
        "page": report.page(verdict, {}),
        "Markdown": verdict.to_markdown(),
        "JUnit": junit_xml(verdict),
        "comment": comment(verdict, {}, "c")[0],
        "JSON": verdict.to_json(),
        "print": repr(verdict),
        "notebook": verdict._repr_html_(),
    }
    return {key: html.unescape(one).replace("\\", "").replace("\xa0", " ") for key, one in texts.items()}


@pytest.mark.one_of_each(by=lambda case: CASES[case][4])
@pytest.mark.parametrize("case", CASES)
def test_a_finding_says_what_is_wrong_by_kind_name_shares_and_ids(case, verdict_of):
    *_, kind, name, is_limited = CASES[case]
    verdict = verdict_of(case)
    found = verdict.findings[0]
    assert (
        found.kind in kind and re.search(name, found.name) and found.name in found.text.replace("samples that are ", "")
    )
    assert bool(found.limits) == is_limited or verdict.overall != "regression"
    assert found.text in verdict.headline or not is_limited
    if kind == "metric":
        assert (found.share_gen, found.share_ref, found.ids) == (None, None, ())
        return
    assert found.whole or found.size == pytest.approx(abs(found.share_gen - found.share_ref))
    assert found.ids and set(found.ids) <= {f"{one}" for one in range(120)}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", CASES)
def test_a_finding_that_is_taken_out_is_in_no_output_and_another_is_in_all(case, verdict_of):
    verdict = verdict_of(case)
    name = verdict.findings[0].name
    without = replace(verdict, findings=())
    if CASES[case][2] not in ("metric", "copy"):  # limits on these are called so by the policy
        assert [key for key, text in outputs(without).items() if name in text] == []
    added = Finding("zebra crossings", "kind", False, 0.3, 0.1, 0.001, text="a sentence without the name")
    for given in (without, verdict):
        texts = outputs(replace(given, findings=(added, *given.findings)))
        missing = [key for key, text in texts.items() if "zebra crossings" not in text]
        assert missing in ([], ["headline", "says"]), "a failure is said alone, before what has no limit"
        assert missing == [] or given.overall == "regression"


def test_a_limit_on_looks_has_shares_and_ids_where_no_finding_is_behind_it(monkeypatch):
    """Its value is a gain, which is no share of the release."""
    monkeypatch.setattr("finc_eval.gates.gate.find_suspects", lambda *_: [])
    verdict = fe.gate(release(3, blur), release(1), release(2), LOOKS)
    found = {one.limit: one for one in verdict.findings}
    part, whole = found["appearance.part"], found["appearance.whole"]
    assert part.kind == "look" and whole.whole and not part.whole
    (gain,) = (one.value for one in verdict.limits if one.name == "appearance.part")
    assert part.share_gen - part.share_ref >= gain - 1e-9 and part.share_ref > 0
    assert whole.share_gen is whole.share_ref is None
    for one in (part, whole):
        assert len(one.ids) == 8 and all(int(name) % 4 == 0 for name in one.ids)  # every fourth picture is blurred


def test_a_card_of_a_gate_draws_how_its_look_is_spread_and_folds_its_members(verdict_of):
    verdict = verdict_of("a look of a part")
    found, page = verdict.findings[0], Page(report.page(verdict, {}))
    assert found.trait == "sharpness" and {*found.spread.shares} == {"gen", "ref"}
    card = page.by_id(anchor(found.name))
    assert len(page.find("svg", "spread", card)) == 1
    (fold,) = page.find("details", "members", card)
    folded = [text.split() for text in page.texts("code", inside=fold)]
    assert folded == [[*found.examples["gen"]]] and len(folded[0]) > 8  # what other sets show of a look has it not
    assert OF_LIMITS in page.visible


def test_a_table_of_limits_has_the_names_of_the_findings(verdict_of):
    verdict = verdict_of("a look of a part")
    renamed = tuple(replace(one, name="fuzzy") for one in verdict.findings)
    text = replace(verdict, findings=renamed).to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|") and " appearance." in line]
    assert len(rows) == 2 and all("fuzzy" in row and "blurr" not in row for row in rows)
    (line, *_) = annotation_lines(replace(verdict, findings=renamed))
    assert "fuzzy" in line and "blurr" not in line


def test_causes_are_the_findings_by_other_names(verdict_of):
    verdict = verdict_of("a look of a part")
    (cause, *_), (found, *_) = verdict.causes, verdict.findings
    assert (cause.words, cause.share, cause.before) == (found.text, found.share_gen, found.share_ref)
    assert (cause.limit, cause.allowed, cause.examples) == ("appearance.part", found.allowed, found.examples)
    assert set(found.limits) == {"appearance.part", "appearance.whole"}
    assert found.ids == cause.examples["gen"]


def test_findings_are_read_back(verdict_of, tmp_path):
    verdict = verdict_of("a look of a part")
    verdict.to_json(tmp_path / "verdict.json")
    assert fe.load(tmp_path / "verdict.json").findings == verdict.findings


def test_copies_are_counted_beside_those_of_the_baseline():
    old = release(1, copy)
    found = fe.gate(release(3, copy), old, release(2), {"basics.copies": 0.05}).findings[0]
    assert (found.share_gen, found.share_ref) == (0.25, 0.25)
    assert found.text == "copies of the reference (25 %, before 25 %; allowed 5 %)".replace("25 %", "25.0 %")


# ── pairs that show other pictures, though no limit is on them ───────────────────────────────────────────────────────

BEFORE, OTHERS, REAL = OLD[:40], scenes(40, seed=5), scenes(40, seed=7)
PAIRED = {"pairs": "id", "kinds": {"lose": 0.9, "min_share": 0.4}}


@pytest.mark.one_of_each("is_said")
@pytest.mark.parametrize(
    ("new", "is_said"),
    [([*BEFORE[:25], *OTHERS[25:]], False), ([*BEFORE[:15], *OTHERS[15:]], True), (noise(BEFORE, 3), False),
     (OTHERS, True), (BEFORE, False)],
    ids=["some are others", "most are others", "noise", "all are others", "equal"],
)  # fmt: skip
def test_a_pass_says_that_most_pictures_are_others(new, is_said):
    verdict = fe.gate(run_of(new), run_of(BEFORE), run_of(REAL), PAIRED)
    said = [one for one in verdict.findings if one.name == "most pictures are others than before"]
    assert bool(said) == is_said and (is_said == ("most pictures are others" in verdict.headline)), verdict.headline
    for one in said:
        others = sum((a != b).any() for a, b in zip(new, BEFORE, strict=True)) / len(BEFORE)
        assert one.kind == "pair" and one.share_gen == pytest.approx(others, abs=0.05) and not one.limits
        assert all((np.asarray(new[int(name[:4])]) != BEFORE[int(name[:4])]).any() for name in one.ids)


FORMS = {
    "mirrored": lambda one: one[:, ::-1],
    "upside down": lambda one: one[::-1],
    "in negative": lambda one: 255 - one,
    "shifted": lambda one: np.roll(one, 4, 1),
    "": lambda one: np.asarray(Image.fromarray(one).filter(ImageFilter.GaussianBlur(3))),
}


def said_of_digits(new, rows=40):
    """Return the finding on pairs of a release of 40 digits by pixels; `new` makes it of those before and of others."""
    images, _ = shipped_digits()
    chosen = np.random.default_rng(0).permutation(len(images))
    old, ref, others = (images[chosen[start : start + rows]] for start in (0, rows, 2 * rows))
    release = np.stack([new(*two) for two in zip(old, others, strict=True)])
    sets = [fe.EmbeddingSet(np.float32(one.reshape(rows, -1)) / 255, images=[*one]) for one in (release, old, ref)]
    (finding,) = [one for one in fe.gate(*sets, PAIRED).findings if one.kind == "pair"]
    return finding


@pytest.mark.one_of_each
@pytest.mark.parametrize("form", FORMS, ids=[form or "blurred" for form in FORMS])
def test_pictures_of_before_in_another_form_are_not_others(form):
    """Their embeddings, which are pixels, are as far away as those of others."""
    said = said_of_digits(lambda old, _: FORMS[form](old))
    assert said.name == "most pictures have changed"
    assert said.text.startswith(f"most pictures have changed{': ' * bool(form)}{form} (")


def test_digits_that_are_others_are_others():
    assert said_of_digits(lambda _, other: other).name == "most pictures are others than before"


def test_ids_that_no_policy_pairs_say_nothing():
    verdict = fe.gate(run_of(OTHERS), run_of(BEFORE), run_of(REAL), {"kinds": PAIRED["kinds"]})
    assert "others" not in verdict.headline


def test_pairs_that_are_broken_are_a_finding_where_no_limit_is_on_them():
    new = [*noise(BEFORE[1:]), *noise(BEFORE[:1])]
    verdict = fe.gate(run_of(new), [run_of(BEFORE), run_of(noise(BEFORE, 1))], run_of(REAL), {"by_id": {"worse": 50}})
    assert verdict.by_id.verdict == "broken"
    found = next(one for one in verdict.findings if one.kind == "pair")
    assert found.name.startswith("ids are shifted by 1") and not found.limits and found.name in verdict.headline


def test_a_look_of_many_kinds_is_said_though_a_limit_on_some_of_them_holds():
    rng = np.random.default_rng(0)
    sets = rng.integers(0, 40, (2, 120, 16, 16, 3), np.uint8)
    for images, is_new in zip(sets, (True, False), strict=True):
        for place, image in enumerate(images):
            row, column = rng.integers(2, 5, 2)
            image[row : row + 9, column : column + 9] = (250, 20, 20) if is_new and place % 2 else 200
    new, old = (fe.extract([*map(Image.fromarray, images)], "pixels") for images in sets)
    verdict = fe.gate(new, old, old, {"kinds": {"lose": 0.5, "min_share": 0.1}})
    assert verdict.of("held")
    looks = [finding for finding in verdict.findings if finding.kind == "look"]
    low, high = looks[0].share_interval
    assert low <= 0.5 <= high and 0.4 < looks[0].share_gen < 0.7 and looks[0].share_ref < 0.05
