"""Scores and votes on a board: columns with ranks, what is missing, where judges prefer, and what all outputs say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.leaderboards.board import measure_models, read_judged
from finc_eval.leaderboards.judged import Judgments
from finc_eval.leaderboards.ranks import joint_covariance, rank

N = 120
PROMPTS = [f"a {('sign with text', 'dog', 'house', 'boat')[n % 4]} number {n}" for n in range(N)]
LABELS = [("sign", "dog", "house", "boat")[n % 4] for n in range(N)]


def drawn(seed, prompts=True):
    """Return images of four kinds, far apart, with prompts and labels."""
    rng = np.random.default_rng(seed)
    rows = 6.0 * np.eye(8)[np.arange(N) % 4] + rng.normal(size=(N, 8))
    metadata = {"prompt": PROMPTS, "label": LABELS, "sharpness": [f"{one:.6f}" for one in rng.normal(size=N)]}
    return fe.EmbeddingSet(rows.astype(np.float32), metadata=metadata if prompts else {})


def scores(seed, lead=0.0, on_signs=0.0, level=0.0):
    """Return scores by row number: a lead everywhere, more on signs, and a level that all models have on signs."""
    rng, sign = np.random.default_rng(seed), np.arange(N) % 4 == 0
    shared = np.random.default_rng(99).normal(size=N)
    return {"clip": (shared + 0.3 * rng.normal(size=N) + lead + (on_signs + level) * sign).tolist()}


def votes(seed, strengths, count=300):
    rng, rows, names = np.random.default_rng(seed), [], [*strengths]
    for _ in range(count):
        left, right = rng.choice(names, 2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp(strengths[right] - strengths[left]))
        winner = "tie" if rng.random() < 0.1 else left if wins else right
        prompt, voter = PROMPTS[rng.integers(N)], f"voter {rng.integers(20)}"
        rows.append({"prompt": prompt, "left": left, "right": right, "winner": winner, "voter": voter})
    return rows


@pytest.fixture(scope="module")
def models():
    return {"one": drawn(1), "two": drawn(2), "three": drawn(3)}


@pytest.fixture(scope="module")
def board(models):
    given = {"one": scores(1, 0.4), "two": scores(2, 0.4, -2.5), "three": scores(3)}
    ballots = votes(4, {"one": -1.0, "two": 1.0, "three": 0.0})
    return fe.leaderboard(models, drawn(5), scores=given, votes=ballots, plan=True)


@pytest.fixture(scope="module")
def judge(models):
    """Return a board of the models, which are measured once, by scores and votes and settings of them."""
    measured = measure_models(models, drawn(5), fe.LeaderboardSettings(), None, fe.Run())

    def judged(scores=None, votes=None, **options):
        asked = fe.LeaderboardSettings(**options)
        joined = read_judged(models, scores, votes, asked).joined(models, measured.reference, fe.Run())
        return replace(measured, asked=asked, judged=joined).board

    return judged


@pytest.fixture(scope="module")
def kept(models, tmp_path_factory):
    """A stored board without scores and votes, which no test changes."""
    board = fe.Board(tmp_path_factory.mktemp("kept") / "board")
    board.add(models, drawn(5))
    return board


def test_json_has_scores_and_votes_with_intervals_and_rank_sets(board, tmp_path):
    found = json.loads(board.to_json(tmp_path / "board.json"))
    assert [one["name"] for one in found["votes"]] == ["two", "three", "one"]
    assert [one["name"] for one in found["scores"]] == ["one", "three", "two"]
    assert {one["judge"] for one in found["scores"]} == {"clip"}
    for one in (*found["votes"], *found["scores"]):
        assert one["interval"][0] < one["value"] < one["interval"][1]
        assert len(one["rank_set"]) == 2 and all(isinstance(rank, int) for rank in one["rank_set"])
    assert found["votes"][0]["rank_set"] == [1, 1] and found["scores"][0]["rank_set"] == [1, 1]
    assert fe.load(tmp_path / "board.json").to_dict() == board.to_dict()


def test_scores_and_votes_are_numbers_like_all_others(board):
    assert board.criterion("votes").names == ("two", "three", "one")
    assert board.separable("one", "two", by="clip") and board.separable("one", "two", by="votes")
    assert {"one", "two"} in [{one.first, one.second} for one in board.disagreements()]


def test_rows_may_be_ordered_by_a_judge(models, judge):
    given = {name: scores(place, 1.0 * place) for place, name in enumerate(models)}
    board = judge(given, rank_by="clip")
    assert [row.name for row in board.rows] == ["three", "two", "one"]


def test_lower_is_better_where_it_is_said(models, judge):
    given = {name: scores(place, 1.0 * place) for place, name in enumerate(models)}
    board = judge(given, lower=("clip",))
    assert [one.name for one in board.scores] == ["one", "two", "three"]
    assert not board.scores[0].higher_is_better and board.scores[0].rank_set == (1, 1)


def test_a_model_that_loses_on_one_kind_of_prompts_is_said_to(board):
    of_two = [one for one in board.parts if (one.judge, one.name) == ("clip", "two")]
    assert {"label", "word", "kind"} == {one.by for one in of_two}
    label = next(one for one in of_two if one.by == "label")
    assert label.part == "sign" and label.value < -1 < 0 < label.elsewhere
    assert (
        "By clip, two is 2." in board.to_markdown() and "worse than the others on label “sign”" in board.to_markdown()
    )
    assert not [one for one in board.parts if one.judge == "votes"]


def test_a_judge_with_a_bias_by_kind_is_shown_as_such(models, judge):
    given = {name: scores(place, level=1.5) for place, name in enumerate(models)}
    board = judge(given)
    assert {(one.name, one.part) for one in board.parts if one.by == "label"} == {("", "sign")}
    assert {one.name for one in board.parts} == {""}
    assert "clip gives label “sign”" in board.to_markdown()


def test_all_outputs_say_who_is_first_and_what_decides(board, tmp_path):
    page = board.to_html(tmp_path / "board.html").read_text()
    for text in (page, board.to_markdown()):
        assert "First is two by votes and one by clip." in text
        assert "would be first by votes instead of two" in text
        assert "What decides the margins" in text
    assert "two is first by votes and last by clip, surely apart. It loses most on " in board.to_markdown()
    assert "votes" in {line.split(",")[-1] for line in board.to_csv().splitlines()} or ",votes," in board.to_csv()


def test_plans_are_made_on_request_and_say_more_prompts_for_smaller_margins(board, judge):
    by_votes = [one for one in board.plan if one.judge == "votes"]
    assert [(one.first, one.second) for one in by_votes] == [("two", "three"), ("three", "one")]
    for one in board.plan:
        assert one.needed == pytest.approx(one.have * (one.detectable / one.margin) ** 2, abs=1.5)
    first, *_ = report.outline(board).details  # who asks for a plan reads it first: the cheapest decision
    assert first == min(board.plan, key=lambda one: one.needed - one.have).sentence
    assert judge(votes=votes(1, {"one": 0.0, "two": 0.0})).plan == ()


def test_what_is_missing_is_said_for_scores_and_votes(judge):
    one, two = (scores(place) | {"prompt": PROMPTS} for place in (1, 2))
    two = {key: values[10:] for key, values in two.items()}
    board = judge({"one": one, "two": two}, votes(1, {"one": 1.0, "two": 0.0}))
    said = " ".join(board.warnings)
    assert "clip: of 120 prompts, two lacks 10; means are over the 110 that all models have" in said
    assert "10 samples of 120 of two have no score by clip" in said
    assert "three is not ranked by clip: it has no scores" in said
    assert "three is not ranked by votes: it has no votes" in said
    assert board["three"].scores["votes"].rank_set is None
    assert [one.rank_set for one in board.votes if one.name == "three"] == [None]


@pytest.mark.parametrize("given", [["sharpness"], "sharpness"])
def test_columns_of_the_sets_are_scores(models, judge, given):
    board = judge(given)
    expected = np.mean([float(one) for one in models["one"].column("sharpness")])
    assert next(one.value for one in board.scores if one.name == "one") == pytest.approx(expected)
    assert board.scores[0].prompts == N


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"scores": {"one": {"fd": [1.0, 2.0]}}}, UsageError, "a column of scores is called 'fd', as a number of the"),
        ({"scores": {"four": scores(1)}}, UsageError, "scores are given for four, which the board does not have"),
        ({"votes": votes(1, {"one": 0, "four": 0})}, DataError, "'four' .row 1 of votes. of the votes is not on the"),
        ({"scores": {"one": scores(1)}, "lower": ("clap",)}, UsageError, "lower names 'clap', which no scores have"),
        ({"lower": ("clip",)}, UsageError, "lower names clip, and no scores are given"),
        ({"votes": []}, DataError, "votes have no row: give some"),
        ({"scores": {"one": {"clip": [float("nan")] * 3}}}, DataError, "has no number in any row of clip: fill some"),
        ({"scores": {"one": scores(1)}, "rank_by": "votes"}, UsageError, "no number is called 'votes'"),
    ],
)
def test_what_cannot_be_joined_is_refused_before_the_work(models, given, error, said):
    with pytest.raises(error, match=said):
        fe.leaderboard(models, drawn(5), **given)


def test_a_judge_that_is_noise_ranks_nobody(models):
    ranked = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noise = {name: {"noise": rng.normal(size=N)} for name in models}
        column = Judgments.read(noise, None, [*models], ()).results(0).columns[0]
        estimates = [one for (one,) in column.runs.values()]
        found = rank([one.value for one in estimates], joint_covariance(estimates))
        ranked += found.rank_sets != ((1, 3),) * 3
    assert ranked <= 4  # more has probability .003 at a rate of 5 %


def test_the_command_line_reads_scores_and_votes(tmp_path):
    for name, seed in (("one", 1), ("two", 2), ("ref", 5)):
        np.save(tmp_path / f"{name}.npy", np.asarray(drawn(seed).rows_at(np.arange(N))))
    for name, lead in (("one", 0.0), ("two", 1.0)):
        lines = ["id,clip,loss", *(f"{n},{value},{-value}" for n, value in enumerate(scores(1, lead)["clip"]))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    rows = votes(3, {"one": 0.0, "two": 1.0})
    text = "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)])
    (tmp_path / "votes.csv").write_text(text)
    sets = [f"{name}={tmp_path / name}.npy" for name in ("one", "two")]
    judged = ["--scores", f"one={tmp_path}/one.csv,two={tmp_path}/two.csv", "--lower", "loss", "--plan"]
    command = [
        "leaderboard",
        *sets,
        "--ref",
        str(tmp_path / "ref.npy"),
        *judged,
        "--votes",
        str(tmp_path / "votes.csv"),
    ]
    found = json.loads(CliRunner().invoke(app, [*command, "--out", str(tmp_path / "board"), "--json"]).stdout)
    assert {one["judge"]: one["name"] for one in reversed(found["scores"])} == {"clip": "two", "loss": "two"}
    assert found["votes"][0]["name"] == "two" and found["plan"][0]["judge"] == "votes"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lower": ("clip",)}, "lower names clip, and no scores are given"),
        ({"judges": ("clip",)}, "judges names clip, and no scores are given"),
        ({"covariates": ("side",)}, "covariates names side, and no votes are given"),
        ({"plan": True}, "plan is for scores and votes, and none are given"),
    ],
)
def test_settings_of_scores_and_votes_are_refused_where_there_are_none(models, kept, tmp_path, options, said):
    for call in (fe.leaderboard, fe.Board(tmp_path / "ranked").rank, fe.Board(tmp_path / "added").add):
        with pytest.raises(UsageError, match=said):
            call(models, drawn(5), **options)
    with pytest.raises(fe.FincEvalError, match="leave the option out"):
        kept.add({"four": drawn(4)}, drawn(5), **options)
    assert kept.names == ("one", "three", "two")


def test_a_board_with_votes_is_not_replaced_by_a_model_that_is_added(models, tmp_path):
    ballots = tmp_path / "votes.json"
    ballots.write_text(json.dumps(votes(1, {"one": 1.0, "two": 0.0})))
    for name, one in {**models, "ref": drawn(5)}.items():
        np.save(tmp_path / f"{name}.npy", np.asarray(one.rows_at(np.arange(N))))
    sets = [f"{name}={tmp_path / name}.npy" for name in ("one", "two")]
    ref = ["--ref", str(tmp_path / "ref.npy")]
    folder = tmp_path / "board"
    done = CliRunner().invoke(app, ["leaderboard", *sets, *ref, "--votes", str(ballots), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    before = (folder / "leaderboard.json").read_bytes()
    done = CliRunner().invoke(app, ["leaderboard", "add", str(folder), *ref, f"three={tmp_path}/three.npy"])
    assert done.exit_code == 3 and "later models cannot be added to" in done.output
    assert (folder / "leaderboard.json").read_bytes() == before


def test_of_many_scores_those_that_surely_distinguish_models_say_who_is_first(models):
    noise = {f"noise {n}": np.random.default_rng(n).normal(size=(3, N)) for n in range(7)}
    given = {
        name: {key: own[place].tolist() for key, own in noise.items()} | {"clear": scores(place, 3.0 - place)["clip"]}
        for place, name in enumerate(models)
    }
    said = fe.leaderboard(models, drawn(5), scores=given).says["judges"]
    assert "one by clear" in said and "noise" not in said and "7 scores" in said
