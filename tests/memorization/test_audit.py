"""The audit of planted generators of real digits: what is planted is found, and what is fresh is not."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from _cards import small_pixel_card
from _pages import BREAKOUT, HOSTILE, Page, check_fits_a_terminal
from _stored import made_once
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, FincEvalError, UsageError
from finc_eval.memorization import audit as audit_module
from finc_eval.memorization import nearness, strata, views
from finc_eval.memorization.hashes import PLAIN_VIEWS
from finc_eval.memorization.page import page as audit_page
from finc_eval.memorization.page import show
from finc_eval.memorization.result import Audit
from finc_eval.memorization.settings import AuditSettings
from finc_eval.numerics.families import holm

pytestmark = pytest.mark.usefixtures("quick_audits")

SIZE = 600


@pytest.fixture(scope="module")
def sets(digits):
    """Four disjoint sets of digits, on the 12 principal components of a fifth."""
    x, labels = digits
    public = x[4 * SIZE :]
    mean = public.mean(0)
    axes = np.linalg.svd(public - mean, full_matrices=False)[2][:12]
    encoded = ((x - mean) @ axes.T).astype(np.float32)
    parts = {name: encoded[place * SIZE : (place + 1) * SIZE] for place, name in enumerate(("train", "holdout"))}
    parts |= {"reference": encoded[2 * SIZE : 3 * SIZE], "gen": encoded[3 * SIZE : 4 * SIZE]}
    return parts | {"labels": labels[:SIZE]}


def audited(gen, sets, **options):
    return fe.audit(gen, sets["train"], sets["holdout"], sets["reference"], **options)


def copying(sets, rows):
    gen = sets["gen"].copy()
    gen[: len(rows)] = sets["train"][rows]
    return gen


@pytest.fixture(scope="module")
def fresh(sets, tmp_path_factory):
    make = lambda _: audited(sets["gen"], sets, stated_epsilon=1.0, stated_delta=1e-5)  # noqa: E731
    return made_once(tmp_path_factory, "audit of fresh samples", make)


@pytest.fixture(scope="module")
def threes(sets, tmp_path_factory):
    """A generator that has copied 45 threes, and nothing else: 7.5 % of its samples."""
    rows = np.flatnonzero(sets["labels"] == 3)[:45]
    make = lambda _: audited(copying(sets, rows), sets, stated_epsilon=0.5, stated_delta=1e-5)  # noqa: E731
    return made_once(tmp_path_factory, "audit of copied threes", make)


def test_its_tables_fit_a_terminal(threes, monkeypatch, capsys):
    check_fits_a_terminal(threes, monkeypatch, capsys)


def test_a_fresh_generator_is_not_accused(fresh):
    assert fresh.copying.found_by == ()
    assert fresh.copying.memorized_strata == ()
    assert (fresh.copying.copies.same_embedding, fresh.copying.copies.fresh_same_embedding) == (0, 0)
    assert not fresh.stated.is_falsified
    for attack in fresh.attacks:
        low, high = attack.statistics.auc_interval
        assert low < 0.5 < high
        assert attack.control_is_sound
        assert 0.45 < attack.control.auc < 0.55


def test_the_membership_score_stands_beside_the_attacks_with_its_null(threes, tmp_path, capsys):
    own = threes.membership.generated
    page = threes.to_html(tmp_path / "audit.html").read_text()
    section = page[page.index("The membership-inference score") :]
    assert "equal densities stay below" in section and f"{own.value:.3g}" in section
    assert f"{own.threshold() / own.deviation:.3g}" in section and f"{threes.membership.control.value:.3g}" in section
    assert "in 1/distance" in section and f"{own.standardized:.3g}" in section
    show(threes)
    assert f"Membership-inference score (KAHM, eq. 69): {own.value:.3g} in 1/distance, p = " in capsys.readouterr().out


def test_planted_copies_are_found_counted_and_listed_first(threes, sets):
    assert "calibrated" in threes.copying.found_by
    assert (threes.copying.copies.same_embedding, threes.copying.copies.fresh_same_embedding) == (45, 0)
    listed = threes.copying.pairs
    assert {int(pair.gen) for pair in listed} <= set(range(45))
    assert all(pair.distance == pair.calibrated == pair.fresh_share == 0 for pair in listed)
    train, gen = sets["train"], copying(sets, np.flatnonzero(sets["labels"] == 3)[:45])
    assert all((train[int(pair.train)] == gen[int(pair.gen)]).all() for pair in listed)


def test_it_says_which_kind_of_the_training_set_was_memorized(threes, sets):
    (memorized, *others) = threes.copying.memorized_strata
    labels = [sets["labels"][int(name)] for name in memorized.examples]
    assert labels.count(3) >= len(labels) / 2
    assert len(others) <= 1  # threes may be of two kinds
    assert memorized.suspicious > 10 * memorized.fresh_suspicious
    assert sum(stratum.generated for stratum in threes.copying.strata) <= SIZE


def test_a_memorized_kind_is_told_where_no_measure_of_the_whole_set_finds_it(fresh):
    first, *others = fresh.copying.strata
    found = replace(fresh.copying, strata=(replace(first, p_value=0.01, against_holdout=0.001), *others))
    text = replace(fresh, copying=found).headline
    assert text.startswith("Samples are nearer to the training set")
    assert "No measure of the whole set finds" in text
    assert f"Copying is found in 1 of {len(others) + 1} kinds of the training set." in text
    assert "kinds of the training set" not in fresh.headline


def test_the_strongest_attack_tells_the_copied_members_at_a_low_rate_of_false_alarms(threes):
    assert threes.strongest.name in ("nearest", "kahm")
    assert threes.strongest.statistics.at_1_percent.tpr > 0.05
    assert "nearest" in threes.stated.falsified_by


def test_each_of_seven_measures_has_an_interval_a_control_and_an_adjusted_p_value(fresh, threes):
    names = ["authpct", "c_t", "dcr", "nndr", "calibrated", "mifid", "fld_gap"]
    for found in (fresh, threes):
        assert [measure.name for measure in found.copying.measures] == names
        for measure in found.copying.measures:
            assert measure.interval[0] <= measure.value <= measure.interval[1]
            assert measure.control_interval[0] <= measure.control <= measure.control_interval[1]
        p_values = torch.tensor([measure.p_value for measure in found.copying.measures], dtype=torch.double)
        assert [measure.adjusted for measure in found.copying.measures] == holm(2 * p_values).tolist()
    assert fresh.copying.power_alpha == pytest.approx(0.5 * 0.05 / 7)


@pytest.mark.long
def test_kinds_of_the_training_set_may_spend_a_tenth_of_alpha(monkeypatch):
    x = np.random.default_rng(0).normal(size=(3, 300, 4)).astype(np.float32)
    x[:, :150] += 4
    near = np.linalg.norm(x[0] - x[0, 0], axis=1).argsort()[:20]
    x[2, :20] = x[0, near]

    def p_values():
        return np.array([stratum.p_value for stratum in fe.audit(x[2], x[0], x[1]).copying.strata])

    adjusted = p_values()
    monkeypatch.setattr(strata, "STRATA_PART", 1.0)
    alone = p_values()
    assert 0 < adjusted.min() < 0.05
    np.testing.assert_allclose(adjusted, np.minimum(10 * alone, 1), rtol=1e-9)


def test_the_three_blocks_are_apart_in_the_json_and_none_is_a_probability_or_a_score_of_privacy(threes, tmp_path):
    text = threes.to_json(tmp_path / "audit.json")
    content = json.loads((tmp_path / "audit.json").read_text())
    assert content == json.loads(text) == threes.to_dict()
    assert {"copying", "attacks", "stated"} <= set(content)
    assert content["stated"]["is_falsified"] is True
    assert content["copying"]["found_by"] == list(threes.copying.found_by)
    assert content["strongest_attack"] == threes.strongest.name
    assert content["copying"]["power"][0].keys() == {"test", "kind", "share", "copies", "probability"}
    assert Audit.from_dict(content).to_dict() == content
    for shown in (text, audit_page(threes, {}), threes._repr_html_(), repr(threes)):
        assert "privacy score" not in shown.lower()
        assert "probability of being private" not in shown.lower()


def test_the_generated_set_is_not_in_the_signature(fresh, threes):
    assert str(fresh.signature) == str(threes.signature)


def test_names_of_samples_cannot_break_out_of_the_page(threes):
    pair, stratum = threes.copying.pairs[0], threes.copying.strata[0]
    copying = replace(
        threes.copying,
        pairs=(replace(pair, gen=HOSTILE, train=BREAKOUT),),
        strata=(replace(stratum, id=BREAKOUT, examples=(HOSTILE,)),),
    )
    hostile = replace(threes, copying=copying, gen=replace(threes.gen, name=BREAKOUT))
    for text in (audit_page(hostile, {}), hostile._repr_html_()):
        page = Page(text)  # which checks that elements nest
        assert not any("alert" in script for script in page.texts("script"))
        assert all(not name.startswith("on") for _, attributes, _ in page.elements for name in attributes)
        assert HOSTILE in "".join(page.texts("span", "gen") + page.texts("th"))


def test_the_summary_answers_three_questions(fresh, threes, sets):
    assert [*fresh.says] == ["verdict", "measures", "power", "attack", "guarantee"]
    assert "No measure finds" in fresh.says["measures"]
    assert fresh.says["guarantee"].endswith(
        "do not contradict the stated guarantee of ε = 1, δ = 1e-05. This does not confirm it."
    )
    assert threes.headline.startswith("45 of 600 samples are training samples, with equal embeddings.")
    assert "The stated guarantee of ε = 0.5, δ = 1e-05 is false" in threes.headline


def test_attacks_alone_conclude_nothing_about_a_stated_guarantee(threes):
    text = replace(threes, stated=replace(threes.stated, falsified_by=())).headline
    assert "The attacks got more than the stated guarantee of ε = 0.5" in text and "Nothing is concluded." in text


def test_without_a_statement_and_a_reference_both_are_said_to_be_missing(sets):
    found = fe.audit(sets["gen"][:200], sets["train"][:200], sets["holdout"][:150], pairs=3)
    assert found.stated is None
    assert "No guarantee was stated, and this audit is not one." in found.headline
    assert "No guarantee was stated" in audit_page(found, {})
    assert len(found.copying.pairs) == 3
    for words in (
        "DOMIAS attack, often the strongest, is left out",
        "train has 200 samples and holdout 150",
        "holdout has 150 samples: rates at 0.1 %",
    ):
        assert any(words in warning for warning in found.warnings), words


def test_a_holdout_that_was_trained_on_is_refused_and_a_few_duplicates_are_told(sets):
    gen, train, holdout = (sets[name][:150].copy() for name in ("gen", "train", "holdout"))
    with pytest.raises(FincEvalError, match="holdout and train are the same samples"):
        fe.audit(gen, train, train.copy())
    with pytest.raises(FincEvalError, match="150 of the 150 samples of holdout have the same embedding as a training"):
        fe.audit(gen, train, train[::-1].copy())
    with pytest.raises(FincEvalError, match="reference and holdout are the same samples"):
        fe.audit(gen, train, holdout, holdout.copy())
    holdout[:3] = train[:3]
    found = fe.audit(holdout, np.concatenate([train, train[:2]]), holdout)
    for start in (
        "3 of the 150 samples of holdout have the same embedding",
        "150 generated samples have the same embedding as a hold",
        "4 of the 152 training samples are duplicates",
    ):
        assert any(warning.startswith(start) for warning in found.warnings), start


def test_a_holdout_of_one_video_cannot_be_cut_in_two(sets):
    windows = [f"clip.mp4#{window}" for window in range(len(sets["holdout"]))]
    holdout = fe.EmbeddingSet(sets["holdout"], windows, name="holdout")
    with pytest.raises(FincEvalError, match="one half of its videos has 0: pass samples of many videos"):
        fe.audit(sets["gen"], sets["train"], holdout)


def test_a_shifted_holdout_is_said_to_be_no_control(sets):
    found = fe.audit(*(sets[name][:150] for name in ("gen", "train")), sets["holdout"][:150] + 2)
    assert any("the two are not of one distribution" in warning for warning in found.warnings)
    assert not found.attacks[0].control_is_sound


def test_constant_features_are_left_out_where_they_would_be_divided_by(sets):
    wide = {name: np.pad(sets[name][:150], ((0, 0), (0, 2))) for name in ("gen", "train", "holdout")}
    found = fe.audit(**wide)
    assert found.copying.measure("fld_gap").interval[0] < 0


@pytest.mark.long
def test_collapsed_and_degenerate_generators_are_audited_all_the_same(sets):
    for name, copies in (("gen", 0), ("train", 110)):
        found = fe.audit(np.repeat(sets[name][:1], 110, axis=0), sets["train"][:110], sets["holdout"][:110])
        assert found.copying.copies.same_embedding == copies
        assert json.loads(found.to_json()) and audit_page(found, {})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"gen": np.zeros((99, 12), np.float32)}, "gen has 99 samples: an audit needs at least 100 of each set"),
        ({"reference": np.zeros((5, 12), np.float32)}, "reference has 5 samples: an audit needs at least 100"),
        ({"holdout": np.zeros((200, 7), np.float32)}, "gen has 12 entries per embedding and holdout 7"),
        ({"train": np.full((200, 12), np.nan, np.float32)}, r"train: the embedding in row 0 is not finite"),
        ({"gen": np.zeros((2, 2, 2), np.float32)}, r"gen must be embeddings of shape \(n, d\)"),
        ({"stated_epsilon": 1.0}, "pass both, or neither"),
        ({"pairs": 0}, "pairs must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_one_sentence(sets, changed, sentence):
    given = {name: sets[name] for name in ("gen", "train", "holdout", "reference")}
    with pytest.raises(FincEvalError, match=sentence):
        fe.audit(**given | changed)


@pytest.mark.long
def test_settings_and_keywords_give_the_same_audit_and_the_result_remembers_them(sets):
    small = [sets[name][:110] for name in ("gen", "train", "holdout", "reference")]
    by_keyword = fe.audit(*small, pairs=3, seed=5)
    by_settings = fe.audit(*small, settings=AuditSettings(pairs=9, seed=5), pairs=3)
    assert by_settings.to_dict() == by_keyword.to_dict()
    assert by_keyword.settings == AuditSettings(pairs=3, seed=5)


def test_a_measure_that_the_data_do_not_allow_is_left_out_but_a_wrong_argument_is_not(sets, monkeypatch):
    small = [sets[name][:110] for name in ("gen", "train", "holdout")]

    def refuse(error):
        def mifid(*_):
            raise error

        monkeypatch.setattr(audit_module, "mifid", mifid)
        return fe.audit(*small)

    found = refuse(DataError("too many entries"))
    assert "MiFID is left out: too many entries" in found.warnings
    with pytest.raises(DataError, match="mifid was not computed"):
        found.copying.measure("mifid")
    with pytest.raises(UsageError, match="no such option"):
        refuse(UsageError("no such option"))


def test_pictures_may_lie_elsewhere_now_but_must_be_of_a_set_that_is_shown(threes, tmp_path):
    with pytest.raises(UsageError, match="the result has no set 'holdout': it has gen, train"):
        threes.to_html(tmp_path / "a.html", samples={"holdout": "photos/"})
    with pytest.raises(FincEvalError, match="photos"):
        threes.to_html(tmp_path / "a.html", samples={"gen": "photos/"})


@pytest.fixture(scope="module")
def folders(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    images = np.rint(digits[0].reshape(-1, 28, 28)[:, ::2, ::2] * 255).astype(np.uint8)
    parts = {"train": images[:100], "holdout": images[100:200], "gen": images[200:300].copy()}
    parts["gen"][:20] = parts["train"][:20]
    for name, rows in parts.items():
        (folder / name).mkdir()
        for number, image in enumerate(rows):
            Image.fromarray(image).save(folder / name / f"{number:03d}.png")
    return folder


def test_the_verb_audits_folders_of_images_and_shows_pairs(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(views, "MAX_ALTERED", 5)
    monkeypatch.setattr(nearness, "query_views", lambda *_: PLAIN_VIEWS)
    page, card = tmp_path / "out" / "audit.html", small_pixel_card(tmp_path / "small.toml", 8)
    sets = (part for name in ("gen", "train", "holdout") for part in (f"--{name}", folders / name))
    stated = ("--stated-epsilon", 9, "--stated-delta", 0, "--verbose")
    result = CliRunner().invoke(
        app, ["audit", *map(str, (*sets, "--extractor", card, "--out", page.parent, *stated, "--verbose"))]
    )
    assert result.exit_code == 0, result.output
    for block in ("1. Copying in the samples", "2. Attackability", "3. Stated guarantee"):
        assert block in result.output
        assert block in page.read_text()
    assert "equal pixels: 20 generated samples, 0 fresh samples" in result.output
    html = page.read_text()
    assert html.count('alt="000.png"') >= 2  # the copy, and the training sample that it is of
    assert "http" not in html.replace('http-equiv="Content-Security-Policy"', "")
    assert json.loads(page.with_suffix(".json").read_text())["copying"]["copies"]["same_pixels"] == 20


def test_the_verb_refuses_a_half_stated_guarantee_before_it_reads_anything(tmp_path):
    arguments = ["audit", "--gen", "a", "--train", "b", "--holdout", "c", "--stated-epsilon", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3
    assert "pass both, or neither" in result.stderr


def test_settings_are_checked_and_options_named():
    with pytest.raises(fe.UsageError, match="seed must be a whole number of at least 0, got -1"):
        fe.AuditSettings(seed=-1)
    with pytest.raises(fe.UsageError, match=r"unknown option 'pair' \(did you mean .pairs.\?\)"):
        fe.audit(*np.zeros((3, 200, 4), np.float32), pair=5)
    assert type(fe.AuditSettings(pairs=np.int64(3)).pairs) is int
