"""A board names the fault of each model, and claims none of a model of the reference's law."""

import json
import re
from dataclasses import replace

import pytest
from _releases import CENTERS, release
from _said import values

import finc_eval as fe
import finc_eval.leaderboards.board as board_module
from finc_eval.comparison.findings import EXCHANGES_OF_BOARDS, MODELS, clear_among, differences_between
from finc_eval.extractors.weights import MissingWeightsError
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import find_differences
from finc_eval.findings.visible import Visible, visible_among
from finc_eval.leaderboards.page import says
from finc_eval.naming.evidence import Evidence
from finc_eval.numerics.inference import BESIDE_ALPHA

MANY = Finding("y", "kind", False, 0.02, 0.01, 0.0)


def labelled(n, seed, **planted):
    rows = release(n, seed, **planted)
    nearest = ((rows[:, None] - CENTERS[None]) ** 2).sum(-1).argmin(1)
    return fe.EmbeddingSet(rows, metadata={"label": [f"sort-{one}" for one in nearest]})


def test_each_model_has_its_fault_by_name_and_clean_models_have_none():
    models = {"a": labelled(400, 1, lost=1), "b": labelled(400, 2), "c": labelled(400, 3, new=0.2)}
    ref = labelled(400, 4)
    board = fe.leaderboard(models, ref)
    assert "lacks sort-0" in board["a"].fault and "too many sort-20" in board["c"].fault
    assert board["b"].fault == ""
    alone, *_ = differences_between(models["c"], ref, None, 0, fe.Run()).findings
    assert replace(board["c"].findings[0], text=alone.text) == alone, "a model is divided with the reference alone"
    assert [*board.headline_parts] == ["fault of c", "fault of a", "clean"]
    assert "b" in board.headline_parts["clean"] and board.headline.startswith(board.headline_parts["fault of c"])
    assert json.loads(board.to_json())["headline"] == board.headline
    assert "lacks sort-0" in repr(board) and "lacks sort-0" in board.to_markdown()


def test_a_board_from_before_faults_were_looked_for_claims_no_absence_of_them():
    board = fe.leaderboard({"a": labelled(120, 1), "b": labelled(120, 2)}, labelled(120, 4))
    assert [*board.headline_parts] == ["clean"]
    data = board.to_dict()
    for row in data["rows"]:
        del row["fault"], row["faults"], row["fault_size"], row["findings"], row["is_searched"]
    old = type(board).from_dict(data)
    assert [*old.headline_parts] == ["unknown"] and old["a"].fault == ""


def test_looks_of_forty_models_can_be_adjusted_for_all_of_them(monkeypatch):
    monkeypatch.setattr("finc_eval.comparison.findings.EXCHANGES_OF_BOARDS", EXCHANGES_OF_BOARDS)
    one, ref = release(300, 1), release(300, 2)
    one[:30] = one[0]  # one sample, thirty times
    found = differences_between(fe.EmbeddingSet(one), fe.EmbeddingSet(ref), None, 0, fe.Run()).findings
    repeats = [each for each in found if each.kind == "repeat"]
    assert len(repeats) == 1 and repeats[0].p_value <= BESIDE_ALPHA / 40
    assert repeats[0] in clear_among(found, 40)


def test_a_headline_has_the_faults_of_the_worst_model_in_full_and_those_of_others_in_few_words():
    board = fe.leaderboard({"a": labelled(100, 1)}, labelled(100, 4), metrics=("kid",))
    row = board.rows[0]
    faulty = [
        replace(row, name=f"m{n}", findings=(Finding(f"x{n}", "kind", False, 0.0, n / 20, 0.0), MANY))
        for n in range(1, 12)
    ]
    every = replace(board, rows=(*faulty, replace(row, name="clean", findings=())))
    parts = every.headline_parts
    assert [*parts] == [*(f"fault of m{n}" for n in range(11, 3, -1)), "more", "clean"]
    assert re.search("lacks x11 [^;]*; too many y", parts["fault of m11"])
    assert re.search(r"lacks x10 \([^;]*\), more “y” \(2.0 %\)$", parts["fault of m10"])
    assert all(f"lacks x{n}" in parts[f"fault of m{n}"] for n in range(4, 12)) and values(parts["more"]) == "3"
    assert "; ".join(parts.values()) in every.headline


def test_a_kind_that_only_a_trait_names_is_of_samples_that_have_it():
    kind = fe.compare(labelled(300, 3, new=0.2), labelled(300, 4), features=20).significant()[0]
    trait = Evidence("trait", "brighter", 0.9, 0.1, 0.001, True)
    (finding,) = find_differences([], [replace(kind, name="brighter", evidence=(trait,))])
    assert finding.words == "too many samples that are brighter"


def test_metrics_without_weights_are_left_out_and_named_and_the_others_are_there(monkeypatch):
    whole = board_module.open_models

    def opened(models, ref, settings, *others):
        if "fid" in settings.metrics:
            raise MissingWeightsError("the weights of inception-fid are not here")
        return whole(models, ref, settings, *others)

    monkeypatch.setattr(board_module, "open_models", opened)
    models, ref = {"a": release(100, 1), "b": release(100, 2)}, release(100, 4)
    board = fe.leaderboard(models, ref, metrics=("fid", "kid"))
    assert board.settings.metrics == ("kid",) and "kid" in board.rows[0].scores
    assert board.warnings[0] == "fid is left out: the weights of inception-fid are not here"
    for refused in ({"metrics": ("fid",)}, {"metrics": ("fid", "kid"), "rank_by": "fid"}):
        with pytest.raises(MissingWeightsError):
            fe.leaderboard(models, ref, **refused)


def test_a_row_of_an_earlier_board_keeps_its_faults_in_words():
    board = fe.leaderboard({"a": labelled(120, 1), "b": labelled(120, 2)}, labelled(120, 4), metrics=("kid",))
    data = board.to_dict()
    for row in data["rows"]:
        del row["findings"], row["is_searched"]
    data["rows"][0] |= {"faults": ["lacks pizza (0.1 %, reference 5.0 %)"], "fault_size": 0.05}
    first, second = type(board).from_dict(data).rows
    assert (first.fault, first.findings[0].name) == ("lacks pizza (0.1 %, reference 5.0 %)", "lacks pizza")
    assert (second.fault, second.fault_size) == ("", 0.0)


def test_a_board_says_what_would_have_been_seen_of_models_without_a_fault():
    models = {"a": labelled(400, 1, lost=1), "b": labelled(400, 2), "c": labelled(300, 3)}
    board = fe.leaderboard(models, labelled(400, 4))
    assert board["a"].visible is None and board["b"].visible.copies < board["c"].visible.copies
    said = says(board)["seen"]
    assert Visible.of_all([board["b"].visible, board["c"].visible]).sentence((0, 0)) == said
    assert said in board.to_markdown() and "samples show half" not in said
    assert fe.Leaderboard.from_dict(board.to_dict())["b"].visible == board["b"].visible


def test_more_models_share_the_error_and_larger_shares_are_seen():
    found = differences_between(labelled(300, 2), labelled(300, 4), None, 0, fe.Run()).visible
    assert [models for models, _ in found] == [*MODELS]
    for name in ("lost", "copies"):
        shares = [getattr(visible, name) for _, visible in found]
        assert shares == sorted(shares) and shares[0] < shares[-1]
    assert visible_among(found, 3) == dict(found)[5] and visible_among(found, 101) is None


@pytest.mark.parametrize(
    ("is_sure", "faulty", "first"),
    [(False, "best", False), (True, "best", True), (False, "other", True), (True, "other", True)],
)
def test_the_worst_model_is_not_first_without_a_word(is_sure, faulty, first):
    """A board said "three is worst" and "three is first by unmatched alone", of models that it could not tell apart."""
    board = fe.leaderboard({"a": labelled(120, 1), "b": labelled(120, 2)}, labelled(120, 4), metrics=("kid",))
    names = board.criterion().names
    groups = tuple((name,) for name in names) if is_sure else (names,)
    main = replace(board.criterion(), groups=groups)
    bad = names[0] if faulty == "best" else names[1]
    lost = Finding("x", "kind", False, 0.0, 0.3, 0.0)
    found = replace(
        board,
        criteria=(main, *(other for other in board.criteria if other.key != main.key)),
        rows=tuple(replace(row, findings=(lost,) if row.name == bad else ()) for row in board.rows),
    )
    said = says(found)
    assert f"{bad} is worst" in said["faults"]
    assert (f"{names[0]} is first" in said["order"]) == first
    assert ("that fault" in said["order"]) == (is_sure and faulty == "best")
    assert all(name in said["order"] for name in (names if not is_sure else names[:1]))


@pytest.mark.parametrize(
    ("tied", "said"), [("ab", "a and b"), ("abc", "a, b and c"), ("abcdefghijklm", "a and 12 others")]
)
def test_tied_models_are_one_list(tied, said):
    board = fe.leaderboard({"a": labelled(120, 1), "b": labelled(120, 2)}, labelled(120, 4), metrics=("kid",))
    main = replace(board.criterion(), groups=(tuple(tied),), names=tuple(tied))
    lost = Finding("x", "kind", False, 0.0, 0.3, 0.0)
    rows = tuple(replace(row, findings=(lost,) if row.name == "a" else ()) for row in board.rows)
    rest = tuple(other for other in board.criteria if other.key != main.key)
    found = replace(board, criteria=(main, *rest), rows=rows)
    assert says(found)["order"].startswith(f"{said} cannot be distinguished by ")
