"""Covariates of votes: where they come from, their effects, strengths at equal ones, and what is refused."""

import json

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.covariates import read_covariates, strengths_at_equal
from finc_eval.judges.votes import read_votes

STRENGTHS = {"a": 0.5, "b": 0.0, "c": -0.5}
PROMPTS = [f"prompt {number}" for number in range(150)]


def shown_by(seed, more=1.5):
    """Return the light of what each model shows by prompt; b shows more of it."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=len(PROMPTS)) + more * (name == "b") for name in STRENGTHS}


def drawn(seed, shown, votes=1500, effect=1.0, side=0.0):
    """Return votes of people who prefer light, and the left side."""
    rng, names, rows = np.random.default_rng(seed), [*STRENGTHS], []
    for _ in range(votes):
        left, right = rng.choice(names, 2, replace=False).tolist()
        prompt = rng.integers(len(PROMPTS))
        gap = STRENGTHS[left] - STRENGTHS[right] + effect * (shown[left][prompt] - shown[right][prompt]) + side
        winner = "tie" if rng.random() < 0.1 else left if rng.random() < 1 / (1 + np.exp(-gap)) else right
        light = {f"{one}_light": shown[name][prompt] for one, name in (("left", left), ("right", right))}
        voter = f"voter {rng.integers(40)}"
        rows.append({"prompt": PROMPTS[prompt], "left": left, "right": right, "winner": winner, "voter": voter} | light)
    return rows


def fit(rows, *names, columns=None):
    """Fit votes with covariates; `columns` has the metadata of the set of each model."""
    rng = np.random.default_rng(0)
    given = columns or {key: {} for key in STRENGTHS}
    sets = {
        name: fe.EmbeddingSet(rng.normal(size=(150, 2)).astype(np.float32), metadata={"prompt": PROMPTS, **given[name]})
        for name in STRENGTHS
    }
    votes = read_votes(rows, [*STRENGTHS], names)
    return strengths_at_equal(votes, read_covariates(votes, names, sets))


def is_true(found):
    """Return whether strengths at equal covariates are those that votes were drawn by."""
    errors = np.sqrt(np.diag(found.spread.covariance))
    return bool((np.abs(found.fit.strengths - [*STRENGTHS.values()]) < 3 * errors).all())


def test_a_covariate_that_acts_is_measured_and_strengths_are_those_without_it():
    rows = drawn(1, shown_by(1))
    found = fit(rows, "light")
    (effect,) = found.effects
    assert effect.unit == pytest.approx(np.std([row[f"{one}_light"] for row in rows for one in ("left", "right")]))
    assert effect.interval[0] < effect.unit < effect.interval[1] and effect.p_value < 1e-6 and effect.votes == 1500
    assert is_true(found) and found.fit.strengths.argmax() == 0 and found.notes == ()


@pytest.mark.parametrize("form", ["number", "text"])
def test_a_column_of_the_sets_is_a_covariate_and_a_text_counts_by_its_length(form):
    shown = shown_by(2)
    rows = drawn(2, shown)
    texts = {name: ["x" * round(200 * np.exp(one / 2)) for one in values] for name, values in shown.items()}
    written = shown if form == "number" else texts
    columns = {name: {"light": [str(one) for one in values]} for name, values in written.items()}
    for row in rows:
        del row["left_light"], row["right_light"]
    found = fit(rows, "light", columns=columns)
    assert is_true(found) and found.effects[0].interval[0] > 0.7
    assert found.effects[0].unit == pytest.approx({"number": 1.23, "text": 0.61}[form], abs=0.1)


def test_the_side_is_a_covariate():
    found = fit(drawn(3, shown_by(3), effect=0, side=0.4), "side")
    (effect,) = found.effects
    assert effect.unit == 1 and effect.interval[0] < 0.4 < effect.interval[1] and effect.p_value < 0.01


def test_a_covariate_that_is_noise_does_nothing():
    rows, rng = drawn(4, shown_by(4), effect=0), np.random.default_rng(0)
    for row in rows:
        row |= {"left_noise": rng.normal(), "right_noise": rng.normal()}
    found = fit(rows, "noise", "side")
    assert min(one.p_value for one in found.effects) > 0.01 and is_true(found)
    assert [one.name for one in found.effects] == ["noise", "side"]


def test_votes_without_a_known_covariate_are_left_out_and_counted():
    rows = drawn(5, shown_by(5))
    for row in rows[:100]:
        row["left_light"] = ""
    found = fit(rows, "light")
    assert found.effects[0].votes == 1400
    assert found.notes == ("100 votes of 1,500 without a known light are not counted at equal light",)


def decided(rows):
    for row in rows:
        row["winner"] = max(("left", "right"), key=lambda side: row[f"{side}_light"])
        row["winner"] = row[row["winner"]]


def of_models(rows):
    for row in rows:
        row |= {f"{side}_light": len(row[side]) + ord(row[side]) for side in ("left", "right")}


def unknown(rows):
    for row in rows:
        row["right_light"] = ""


def twice(rows):
    for row in rows:
        row |= {f"{side}_dark": -row[f"{side}_light"] for side in ("left", "right")}


@pytest.mark.parametrize(
    ("names", "change", "error", "said"),
    [
        (("light",), decided, DataError, "light would explain some votes entirely, .* leave it out"),
        (("light",), of_models, DataError, "light is the same whatever the model, or follows from the model: leave it"),
        (("light", "dark"), twice, DataError, "dark is the same whatever .* follows from the model and light: leave"),
        (("light",), unknown, DataError, "no vote has a light of both samples that it shows: leave light out"),
        (("ligth",), list, UsageError, "'ligth', which neither votes nor sets have.*left_ligth and right_ligth"),
        (("brightness",), list, UsageError, "brightness, and the pictures of a are not at hand: pass its samples"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(names, change, error, said):
    rows = drawn(6, shown_by(6), votes=300)
    change(rows)
    with pytest.raises(error, match=said):
        fit(rows, *names)


def folder_of(root, name, light, kinds=False):
    """Write pictures of one pattern each, with this light, and their prompts."""
    (root / name).mkdir()
    lines = []
    for number, own in enumerate(light):
        pattern = np.random.default_rng(number).integers(0, 40, (8, 8, 3)).astype(np.uint8)
        picture = np.asarray(Image.fromarray(pattern).resize((16, 16), Image.Resampling.BICUBIC)).astype(float)
        Image.fromarray((picture + own).clip(0, 255).astype(np.uint8)).save(root / name / f"{number:03}.png")
        lines.append(json.dumps({"file_name": f"{number:03}.png", "prompt": PROMPTS[number]}))
    (root / name / "metadata.jsonl").write_text("\n".join(lines))
    return str(root / name)


def test_looks_of_the_pictures_shown_are_covariates_and_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(f"{__name__}.PROMPTS", PROMPTS[:120])
    shown = shown_by(7)
    sets = {name: folder_of(tmp_path, name, 100 + 20 * light) for name, light in shown.items()}
    ref = folder_of(tmp_path, "ref", 100 + 20 * np.random.default_rng(9).normal(size=120))
    rows = drawn(7, shown)
    rng = np.random.default_rng(0)
    scores = {name: {"id": [f"{n:03}.png" for n in range(120)], "clip": rng.normal(size=120)} for name in sets}
    scores["c"]["clip"] = scores["c"]["clip"] - 2.5 * (shown["c"] < -0.4)  # c is worse where it is dark
    board = fe.leaderboard(
        sets, ref, votes=rows, scores=scores, covariates=("brightness", "side"), extractor="pixels", metrics=("kid",)
    )
    brightness, side = board.covariates
    assert brightness.name == "brightness" and brightness.p_value < 1e-6 and side.p_value > 0.001
    assert board.votes[0].name == "b" and board.votes[0].rank_set == (1, 1)
    equal = {one.name: one for one in board.votes}
    assert equal["a"].equal_rank_set == (1, 1) and equal["b"].equal_rank_set == (2, 2)
    for name, true in STRENGTHS.items():
        low, high = equal[name].equal_interval
        assert low - 0.1 < true < high + 0.1
    said = board.to_markdown()
    assert "If all models showed the same brightness and side, a would be first by votes (rank 1);" in said
    assert "Votes at equal brightness and side" in said
    of_look = [one for one in board.parts if (one.judge, one.name, one.by) == ("clip", "c", "look")]
    assert of_look[0].part == "dark" and of_look[0].value < -1 < of_look[0].elsewhere
    assert "By clip, c is" in said and "worse than the others on samples that look “dark”" in said
    assert {one.by for one in board.parts if one.judge == "votes"} == {"look"}  # votes prefer bright pictures
    back = tmp_path / "board.json"
    board.to_json(back)
    assert fe.load(back).to_dict() == board.to_dict()
    assert "|covariates:brightness/side" in str(board.criterion("votes").signature)
    assert "covariates" not in str(board.criterion("unmatched").signature)


def test_covariates_without_votes_are_refused(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    with pytest.raises(UsageError, match="covariates names side, and no votes are given"):
        fe.leaderboard({"a": rows[:20], "b": rows[20:]}, rows + 1, covariates=("side",))
