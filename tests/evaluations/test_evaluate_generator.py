"""One generator judged by everything that its sets allow: each part is what its own function gives."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest
from _pages import Page
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.app import app
from finc_eval.comparison import compare as comparing
from finc_eval.comparison.pages.comparison import KINDS_TITLE
from finc_eval.core.words import figure
from finc_eval.evaluations import evaluation as evaluations
from finc_eval.evaluations.page import QUESTIONS, answers, page, side_by_side
from finc_eval.measures.gaussians.reference_statistics import read_statistics

PUBLIC = [name for name in QUESTIONS if name != "private"]
"""Parts of an evaluation whose reference is public."""

pytestmark = pytest.mark.usefixtures("quick_audits")


def small(digits):
    """Digits as 14 x 14 pixels."""
    return digits[0].reshape(-1, 28, 28)[:, ::2, ::2].reshape(-1, 196)


@pytest.fixture(scope="module")
def sets(digits):
    """A generator that copies 40 of 110 training samples, its reference, and a holdout."""
    x = small(digits)
    return {"gen": np.concatenate([x[400:440], x[700:780]]), "ref": x[:120], "train": x[400:510], "holdout": x[550:660]}


@pytest.fixture(scope="module")
def whole(sets):
    return fe.evaluate(**sets, features=20, modes=2)


def test_each_part_is_what_its_own_function_gives(whole, sets):
    own = fe.compare(sets["gen"], sets["ref"], features=20, modes=2)
    assert [mode.id for mode in whole.comparison.directions] == [mode.id for mode in own.directions]
    assert [kind.id for kind in whole.comparison.kinds] == [kind.id for kind in own.kinds] != []
    audited = fe.audit(sets["gen"], sets["train"], sets["holdout"])
    assert whole.audit.verdict == audited.verdict and whole.audit.copying.copies.same_embedding == 40
    assert whole.audit.membership == audited.membership
    assert whole.scores["fd"].value == fe.metrics(sets["gen"], sets["ref"], ["fd"])["fd"].value
    assert list(whole.methods.comparisons) == ["finc", "rarity", "fld", "ken"]
    assert list(whole.parts) == PUBLIC and whole.missing == {}


@pytest.mark.long
def test_the_samples_are_divided_into_kinds_once(sets, monkeypatch):
    true, divided = comparing.divide, []
    monkeypatch.setattr(comparing, "divide", lambda *given, **how: divided.append(1) or true(*given, **how))
    gen, ref = sets["gen"][:80], sets["ref"][:80]
    found = fe.evaluate(gen, ref, "fd", features=20, modes=2)
    assert divided == [1] and found.comparison.kinds
    monkeypatch.setattr(comparing, "divide", lambda *_, **__: pytest.fail("the samples were divided"))
    assert fe.evaluate(gen, ref, "fd", features=20, modes=2, method=fe.Finc(clusters=False)).methods


def test_the_summary_answers_every_question_on_top_of_the_page(whole, tmp_path):
    text = whole.to_html(tmp_path / "evaluation.html").read_text()
    top, rest = text.split('<h2 id="scores"')
    for said in (whole.audit.verdict, "Membership-inference score"):
        assert said in top.split('<h2 id="summary"')[1]
    tables = {name: [table.title for table in report.outline(part).tables] for name, part in whole.parts.items()}
    shown = [name for name in QUESTIONS if {*tables.get(name, ())} - {KINDS_TITLE}]
    assert {"scores", "audit"} <= {*shown}
    assert [name for name in QUESTIONS if f'<h2 id="{name}"' in text] == shown
    assert "vendi" in rest and rest.count("<table") >= 3 and text.count("<style>") == 1 and 'style="' not in text


def test_the_page_begins_as_the_page_of_the_comparison_and_says_its_headline_once(whole, tmp_path):
    pages = [
        Page(each.to_html(tmp_path / f"{number}.html").read_text())
        for number, each in enumerate((whole, whole.comparison))
    ]
    cards = [[each.attributes(one)["id"] for one in each.find("article", "card")] for each in pages]
    kinds = {f"mode-{kind.id}" for kind in whole.comparison.kinds}
    assert {*cards[0]} & kinds == {*cards[1]} & kinds != set()
    first = whole.comparison.headline.split(". ")[0].rstrip(".")
    assert " ".join(pages[0].texts("p")).count(first) == 1 and not any(first in text for text in pages[0].texts("dd"))


def test_pictures_come_from_where_the_samples_are_now(whole, sets, digits, tmp_path):
    def pictured(found, **rows):
        """The parts that show pictures of these digits, of a result that was read from JSON."""
        samples = {
            name: np.repeat((255 * one.reshape(-1, 14, 14, 1)).astype(np.uint8), 3, axis=-1)
            for name, one in rows.items()
        }
        again = fe.Evaluation.from_dict(found.to_dict())
        text = again.to_html(tmp_path / "evaluation.html", samples=samples).read_text()
        assert ("pass samples={" in text) is not bool(samples)
        return [part[1 : part.index('"', 1)] for part in text.split("<h2 id=")[1:] if "data:image/" in part]

    zeros, others = small(digits)[digits[1] == 0][:120], small(digits)[:120]
    unlike = fe.evaluate(zeros, others, "fd", features=50, modes=2)
    assert pictured(unlike) == []
    shown = pictured(unlike, gen=zeros, ref=others)
    assert shown[0] == "modes" and "methods" in shown and "audit" not in shown
    audited = {name: sets[name] for name in ("gen", "ref", "train")}
    assert "audit" in pictured(whole, **audited)
    with pytest.raises(fe.UsageError, match="no samples of a set 'holdout': it shows samples of gen, ref, train"):
        pictured(whole, holdout=sets["holdout"])
    with pytest.raises(fe.UsageError, match="no samples of a set 'train': it shows samples of gen, ref"):
        pictured(unlike, train=zeros)


def test_json_holds_every_part_and_comes_back(whole, tmp_path):
    whole.to_json(tmp_path / "evaluation.json")
    again = fe.load(tmp_path / "evaluation.json")
    assert again.to_dict() == whole.to_dict() and "not known" in again.encodings
    compared = replace(whole.comparison, map=None)  # maps are in .h5 files alone
    assert page(again, {}).split() == page(replace(whole, comparison=compared), {}).split()


def test_without_a_training_set_there_is_no_audit_and_the_page_says_why(sets):
    found = fe.evaluate(sets["gen"][:60], sets["ref"][:60], features=20, modes=2)
    assert found.audit is None
    assert dict(answers(found))[QUESTIONS["audit"]] == "Not computed: an audit needs a training set and a holdout."


@pytest.mark.long
def test_a_part_that_cannot_be_computed_does_not_stop_the_others(sets):
    few = {name: one[:50] for name, one in sets.items()}
    found = fe.evaluate(**few, features=20, modes=2)
    assert found.audit is None and "an audit needs at least 100 of each set" in found.missing["audit"]
    assert found.scores is not None


@pytest.mark.one_of_each("ref")
@pytest.mark.parametrize(
    ("ref", "metrics", "parts", "scores"),
    [
        ("array", "prdc", {"comparison", "scores", "methods"}, {"precision", "recall", "density", "coverage"}),
        ("statistics", ["fd"], {"scores"}, {"fd"}),
        ("statistics", None, {"scores"}, {"fd"}),
        ("file of statistics", ["fd"], {"scores"}, {"fd"}),
        ("sketch", ["fd"], {"comparison", "scores"}, {"fd"}),
    ],
)
def test_metrics_are_chosen_by_name_and_read_by_name(sets, tmp_path, ref, metrics, parts, scores):
    x, y = sets["gen"][:100], sets["ref"][:100]
    sketch = fe.Sketch.reference(y, features=20)
    plain = {"mu": y.mean(0).astype(float), "sigma": np.cov(y.T.astype(float))}
    np.savez(tmp_path / "s.npz", **plain)
    forms = {"array": y, "sketch": sketch, "file of statistics": str(tmp_path / "s.npz")}
    forms["statistics"] = read_statistics(tmp_path / "s.npz")
    found = fe.evaluate(x, forms[ref], metrics, features=20, modes=2)
    own = fe.metrics(x, forms[ref], metrics or ["fd"])
    assert set(found.parts) == parts and {one.key for one in found.scores} == scores
    assert {key: found[key].value for key in scores} == {key: own[key].value for key in scores}
    assert found.missing.keys() == {"comparison", "scores", "methods", "audit"} - parts
    assert fe.Evaluation.from_dict(found.to_dict()).to_dict() == found.to_dict()
    text = found.to_html(tmp_path / "e.html").read_text()
    assert all(reason in html.unescape(text) for reason in found.missing.values())
    with pytest.raises(fe.UsageError, match="no score is called 'fdd'"):
        found["fdd"]


@pytest.mark.parametrize(
    ("metrics", "said"),
    [("fidd", "unknown metric"), ([], "no metric was named"), ("fld", "fld needs a third set"), (np.eye(3), "metric")],
    ids=["unknown", "none", "three sets", "a set in their place"],
)
def test_wrong_names_of_metrics_are_refused(sets, metrics, said):
    with pytest.raises(fe.UsageError, match=said):
        fe.evaluate(sets["gen"][:60], sets["ref"][:60], metrics, features=20)


def test_half_of_an_audit_is_refused(sets):
    with pytest.raises(fe.UsageError, match="both a training set and a holdout"):
        fe.evaluate(sets["gen"], sets["ref"], train=sets["train"])
    result = CliRunner().invoke(app, ["evaluate", "--gen", ".", "--ref", ".", "--train", "."])
    assert result.exit_code == 3 and "--holdout" in result.stderr


def test_folders_are_embedded_once_and_their_page_shows_pictures(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    zeros = np.flatnonzero(digits[1] == 0)[:60]
    for name, rows in {"gen": zeros, "ref": range(60)}.items():
        (tmp_path / name).mkdir()
        for row in rows:
            pixels = (digits[0][row].reshape(28, 28) * 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{row}.png")
    opened = []
    true = evaluations.open_sets
    monkeypatch.setattr(
        evaluations, "open_sets", lambda *given, **how: opened.append([*given[0]]) or true(*given, **how)
    )
    inputs = ["--gen", tmp_path / "gen", "--ref", tmp_path / "ref", "--extractor", "pixels", "--features", "20"]
    command = ["evaluate", *map(str, inputs), "--out", str(tmp_path / "out"), "--quiet", "--verbose"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    assert opened == [["gen", "ref"]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["evaluation.html", "evaluation.json"]
    assert "encoded alike" in result.stdout
    assert "data:image/" in (tmp_path / "out" / "evaluation.html").read_text()
    data = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert data["type"] == "evaluation" and data["comparison"]["gen"]["n"] == 60


@pytest.fixture(scope="module")
def private(digits, tmp_path_factory):
    """The path of a private sketch of digits that are in no set."""
    x = small(digits)
    sketch = fe.privacy.release_sketch(x[1000:2000], public=x[2000:2500], epsilon=1, delta=1e-5, ledger=None)
    path = tmp_path_factory.mktemp("private") / "reference.h5"
    sketch.save(path)
    return path


@pytest.fixture(scope="module")
def private_whole(sets, private):
    audited = {name: sets[name] for name in ("gen", "train", "holdout")}
    return fe.evaluate(ref=private, **audited)


def test_a_private_reference_gives_its_distance_beside_the_membership_score(private_whole, sets, private, tmp_path):
    """Both have a meaning and a yardstick, on one page; the holdout is the yardstick of the distance."""
    found = private_whole
    own = fe.privacy.PrivateSketch.load(private)
    assert list(found.parts) == ["private", "audit"] and found.missing.keys() == {"comparison", "scores", "methods"}
    assert {one.name: one.value for one in found.private.scores} == {
        name: own.score(sets[name]).value for name in ("gen", "holdout")
    }
    table = side_by_side(found, found.private)
    (distance, guarantee, membership) = table.rows
    assert "0 if the kernel cannot" in distance[2] and "Real samples, the holdout:" in distance[3]
    assert guarantee[1].startswith("(1, 1e-05)-DP") and "guessing has 0.5" in guarantee[3]
    assert f"{found.audit.membership.generated.value:.3g} in 1/distance, p = " in membership[1]
    assert "95 % of equal densities stay below" in membership[3]
    text = html.unescape(found.to_html(tmp_path / "e.html").read_text())
    for row in table.rows:
        assert all(cell in text for cell in row)
    assert "does not cover the membership score" in text
    assert text.index('id="privacy"') < text.index('id="private"') < text.index('id="audit"')
    again = fe.Evaluation.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict() and type(again.private) is type(found.private)


def test_the_holdout_is_a_yardstick_of_the_private_distance_and_no_generator(private_whole, sets, private):
    """The first sentence is about the generated set alone, beside real samples."""
    found = private_whole.private
    assert found.yardstick == "holdout" and [one.name for one in found.generators] == ["gen"]
    first = private_whole.headline.partition(". ")[0]
    assert first.startswith(f"gen is at an MMD² of {figure(found.generators[0].value, '.3g')} [")
    assert first.endswith(f" real samples, holdout ({figure(found.real.value, '.3g')})")
    assert "generators" not in private_whole.headline
    assert "Of 2 generators" not in private_whole.to_markdown() and "holdout (real samples)" in found.to_markdown()
    # With more generators, these alone are ranked.
    own = fe.privacy.PrivateSketch.load(private)
    more = own.compare({"b": sets["gen"][::2], "real": sets["holdout"], "a": sets["gen"][1::2]}, yardstick="real")
    assert "Of 2 generators" in more.headline and [one.name for one in more.scores][-1] == "real"
    assert "real samples, real (" in more.headline and "real" not in [one.name for one in more.generators]
    with pytest.raises(fe.UsageError, match="yardstick must be one of a, b, got 'hold'"):
        own.compare({"a": sets["gen"], "b": sets["holdout"]}, yardstick="hold")


def test_a_private_reference_alone_gives_the_distance_and_says_what_is_missing(sets, private, tmp_path):
    np.save(tmp_path / "gen.npy", sets["gen"])
    command = ["evaluate", "--gen", tmp_path / "gen.npy", "--ref", private, "--out", tmp_path / "out", "--verbose"]
    result = CliRunner().invoke(app, [*map(str, command)])
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "Guarantee of the private reference: (1, 1e-05)-DP, one record replaced" in said
    assert "Membership-inference score (KAHM, eq. 69): –" in said and "an audit needs a training set" in said
    with pytest.raises(fe.UsageError, match="metrics are not computed: the reference is a private sketch"):
        fe.evaluate(sets["gen"], private, "fd")


def test_results_of_before_private_references_still_open(whole):
    data = whole.to_dict()
    del data["private"]
    assert fe.Evaluation.from_dict(data).private is None
