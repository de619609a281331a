"""Labels of people correct a judge: prediction-powered means, on a board."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.power import reach
from finc_eval.judges.prediction_powered import MIN_LABELED, Labeled, corrected_means, plan_labels, say_correction
from finc_eval.leaderboards.assemble import rank_column
from finc_eval.leaderboards.judged import Judgments


def labeled(y, f, others):
    names = tuple(map(str, range(len(y) + len(others))))
    return Labeled(y, f, others, names[: len(y)], names[len(y) :])


def drawn(seed, n=60, others=400, scale=3.0):
    """Labels, and scores by a judge on a scale of its own, of one law with mean 0."""
    draw = np.random.default_rng(seed)
    quality = draw.normal(size=n + others)
    y, f = quality + draw.normal(0, 0.4, n + others), scale * quality + 10 + draw.normal(0, 0.5, n + others)
    return labeled(y[:n], f[:n], f[n:])


def test_the_mean_and_its_error_are_those_of_ppi_python():
    """Figures by ppi-python 0.2.3, `ppi_mean_pointestimate` and `ppi_mean_ci` at the same λ, from the same numbers."""
    draw = np.random.default_rng(4)
    y, f, others = draw.normal(1, 1, 60), draw.normal(2, 1, 60), draw.normal(2, 1, 300)
    f += y
    others += draw.normal(1, 1, 300)
    found = corrected_means({"one": labeled(y, f, others)})
    assert found.weights[0] == pytest.approx(PPI["weight"], rel=1e-9)
    assert found.values[0] == pytest.approx(PPI["mean"], rel=1e-7)
    # ppi-python divides squares by n and N, and takes the quantile of the normal law.
    parts = found.influences[0, np.argsort(np.argsort([*map(str, range(360))]))]
    of_labels, of_others = (parts[:60] ** 2).sum() * 58 / 60, (parts[60:] ** 2).sum() * 299 / 300
    assert np.sqrt(of_labels + of_others) == pytest.approx(PPI["error"], rel=1e-6)


PPI = {"weight": 0.38331073386428705, "mean": 0.95063755, "error": 0.09686484}


def test_a_good_judge_makes_intervals_shorter_and_noise_does_not():
    assert corrected_means({"one": drawn(0)}).width < 0.7
    known = drawn(1)
    noise = np.random.default_rng(2).normal(size=460)
    found = corrected_means({"one": labeled(known.labels, noise[:60], noise[60:])})
    assert 0.9 < found.width < 1.1 and abs(found.correlation) < 0.4


def test_intervals_hold_the_mean_of_a_judge_that_is_biased_by_kind():
    """The rate of 300 intervals of 95 % lies within 91 and 98.5 %, with probability .998."""
    held = 0
    for seed in range(300):
        known = drawn(seed, n=50)
        bias = np.random.default_rng(1000 + seed).integers(0, 2, 450) * 4.0
        found = corrected_means({"one": labeled(known.labels, known.scores - bias[:50], known.others - bias[50:])})
        held += abs(found.values[0]) <= 2.011 * np.sqrt((found.influences**2).sum())
    assert 273 <= held <= 296


def test_a_judge_without_others_or_without_variance_leaves_the_mean_of_the_labels():
    y = np.arange(float(MIN_LABELED))
    for known in (labeled(y, 2 * y, np.zeros(0)), labeled(y, np.ones(len(y)), np.ones(50))):
        found = corrected_means({"one": known})
        assert found.values[0] == y.mean() and found.weights[0] == 0 and found.width == pytest.approx(1, abs=0.05)


def test_few_labels_are_refused():
    with pytest.raises(DataError, match=f"{MIN_LABELED}"):
        corrected_means({"one": labeled(np.arange(5.0), np.arange(5.0), np.arange(50.0))})


@pytest.fixture(scope="module")
def tables():
    """Scores of 200 samples of two models by a judge that likes the worse, and labels of 60 of each."""
    draw = np.random.default_rng(0)
    scores, labels = {}, {}
    for model, better, bias in (("one", 0.5, -2.0), ("two", 0.0, 2.0)):
        quality = draw.normal(better, 1, 200)
        ids = [f"s{number}" for number in range(200)]
        scores[model] = {"id": ids, "clip": (quality + bias + draw.normal(0, 0.3, 200)).tolist()}
        some = draw.choice(200, 60, replace=False)
        labels[model] = {"id": [ids[row] for row in some], "rating": (quality[some] + draw.normal(0, 0.2, 60)).tolist()}
    return scores, labels


def test_labels_turn_the_order_of_a_judge_that_likes_the_worse_model(tables):
    scores, labels = tables
    found = Judgments.read(scores, None, ["one", "two"], (), labels=labels)
    assert found.keys == ("clip", "rating by clip")
    results = found.results(0)
    clip, corrected = results.columns
    assert clip.estimates["one"].value < clip.estimates["two"].value
    one, two = (corrected.estimates[name] for name in ("one", "two"))
    assert one.interval[0] < 0.5 < one.interval[1] and two.interval[0] < 0 < two.interval[1]
    assert one.value > two.value
    assert results.corrected["rating by clip"].labeled == (60, 60)
    assert results.corrected["rating by clip"].width < 0.7


def test_a_board_ranks_by_labels(tables):
    scores, labels = tables
    draw = np.random.default_rng(5)
    ids = [f"s{number}" for number in range(200)]
    models = {name: fe.EmbeddingSet(draw.normal(size=(200, 4)), ids=ids) for name in ("one", "two")}
    ref = draw.normal(size=(200, 4))
    board = fe.leaderboard(models, ref, scores=scores, labels=labels, metrics=["kid"], rank_by="rating by clip")
    assert [row.name for row in board.rows] == ["one", "two"]
    standing = {found.name: found for found in board.scores if found.judge == "rating by clip"}
    assert standing["one"].prompts == 60 and standing["one"].value > standing["two"].value
    assert any("as people do" in text for text in board.warnings)


def test_the_verb_takes_labels_as_it_takes_scores(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    draw = np.random.default_rng(5)
    for name, given in (("scores", tables[0]), ("labels", tables[1])):
        for model, table in given.items():
            rows = zip(*table.values(), strict=True)
            lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
            (tmp_path / f"{name}-{model}.csv").write_text("\n".join(lines).replace("\ns", "\n"))
    for model in ("one", "two", "ref"):
        np.save(tmp_path / f"{model}.npy", draw.normal(size=(200, 4)).astype(np.float32))
    sets = [f"{model}={tmp_path / model}.npy" for model in ("one", "two")]
    given = [
        f"--{name}={','.join(f'{model}={tmp_path}/{name}-{model}.csv' for model in ('one', 'two'))}"
        for name in ("scores", "labels")
    ]
    command = [
        "leaderboard",
        *sets,
        "--ref",
        str(tmp_path / "ref.npy"),
        *given,
        "--metrics",
        "kid",
        "--out",
        str(tmp_path / "board"),
        "--json",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert {found["judge"] for found in json.loads(result.stdout)["scores"]} == {"clip", "rating by clip"}


def test_labels_without_scores_or_of_other_samples_are_refused(tables):
    scores, labels = tables
    with pytest.raises(UsageError, match="labels"):
        Judgments.read(None, None, ["one", "two"], (), labels=labels)
    strange = {name: {**table, "id": [f"x{id}x" for id in table["id"]]} for name, table in labels.items()}
    with pytest.raises(DataError, match="no sample"):
        Judgments.read(scores, None, ["one", "two"], (), labels=strange).results(0)


def test_labels_of_one_model_alone_give_its_number_and_rank_nobody(tables):
    scores, labels = tables
    results = Judgments.read(scores, None, ["one", "two"], (), labels={"one": labels["one"]}).results(0)
    assert any("of two, it has no labels" in remark and "ranks no model" in remark for remark in results.remarks)
    assert not any("is not ranked by rating" in note for note in results.notes)  # which would say it again
    criterion, standings = rank_column(results.columns[1], dict.fromkeys(["one", "two"]))
    assert criterion.names == () and criterion.groups == ()
    one, two = standings["one"], standings["two"]
    assert one.interval[0] < one.value < one.interval[1] and one.rank_set is None and two.value is None
    assert one.reason and two.reason


def test_of_three_models_two_with_labels_are_ranked(tables):
    scores, labels = tables
    scores = {**scores, "three": scores["one"]}
    results = Judgments.read(scores, None, [*scores], (), labels=labels).results(0)
    criterion, standings = rank_column(results.columns[1], dict.fromkeys(scores))
    assert {*criterion.names} == {"one", "two"} and standings["three"].rank_set is None


def scale_said(scores_of):
    """Return what is said of a judge whose scores are a function of the quality and the model."""
    draw, found = np.random.default_rng(3), {}
    for model, better in (("one", 0.5), ("two", 0.0)):
        quality = draw.normal(better, 1, 400)
        f, y = scores_of(quality, model) + draw.normal(0, 0.2, 400), quality + draw.normal(0, 0.2, 400)
        found[model] = labeled(y[:100], f[:100], f[100:])
    return say_correction(corrected_means(found), "rating", "clip", is_alike=True)


@pytest.mark.parametrize(
    ("scores_of", "says", "not_said"),
    [
        (lambda quality, model: quality, ["as people do", "do not surely differ"], "otherwise"),
        (lambda quality, model: quality + 0.3, ["as people do", "scale is not theirs"], "otherwise"),
        (lambda quality, model: 3 * quality + 10, ["as people do", "scale is worthless: it gives one"], "otherwise"),
        (
            lambda quality, model: quality + 2.0 * (model == "two"),
            ["orders one and two otherwise", "worthless"],
            "other way round",
        ),
        (lambda quality, model: -quality, ["other way round"], "says nothing"),
        (lambda quality, model: 0 * quality, ["says nothing about rating"], "scale"),
    ],
    ids=["theirs", "shifted", "own scale", "likes a model", "reversed", "noise"],
)
def test_a_sentence_says_whether_a_judge_ranks_and_whether_its_scale_is_that_of_people(scores_of, says, not_said):
    said = scale_said(scores_of)
    assert all(part in said for part in says) and not_said not in said


def test_labels_are_planned_with_the_error_that_other_scores_leave(tables):
    scores, labels = tables
    results = Judgments.read(scores, None, ["one", "two"], (), labels=labels).results(0)
    by_clip, by_people = results.plans
    assert (by_clip.unit, by_people.unit, by_people.judge) == ("prompts", "labels", "rating by clip")
    assert (by_people.first, by_people.have) == ("one", 60)
    means = results.corrected["rating by clip"]
    one, two = means.of_labels
    rest = ((means.influences[0] - means.influences[1]) ** 2).sum() - ((one - two) ** 2).sum()
    at = ((one - two) ** 2).sum() * 60 / by_people.needed + rest
    assert by_people.margin / np.sqrt(at) >= reach(2)
    assert by_people.needed >= MIN_LABELED and by_people.more == max(by_people.needed - 60, 0)
    by_few = plan_labels("key", replace(means, values=means.values / 2.5), better=True)[0]
    assert MIN_LABELED < by_few.needed < 200
    at = ((one - two) ** 2).sum() * 60 / by_few.needed + rest
    assert by_few.margin / np.sqrt(at) == pytest.approx(reach(2), rel=0.01)
    board_of = Judgments.read(scores, None, ["one", "two"], (), labels={"one": labels["one"]}).results(0)
    assert [plan.unit for plan in board_of.plans] == ["prompts"]
