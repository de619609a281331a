"""Which numbers are judgments: ids, counters, settings and constants are left out and named, and others stay."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.choosing import choose_judges
from finc_eval.judges.scores import read_scores

N = 40
IDS = [f"{number:05d}.png" for number in range(N)]


def drawn(seed, n=N):
    return np.random.default_rng(seed).normal(size=n).tolist()


def chosen(columns, wanted=(), models=("one", "two")):
    """Return the judges of two models with a judge "clip" besides columns of a seed, and the sentences."""
    tables = {
        name: {"id": IDS, "clip": drawn(seed), **{key: make(seed) for key, make in columns.items()}}
        for seed, name in enumerate(models, start=1)
    }
    scores, notes = choose_judges(read_scores(tables, models, wanted), wanted)
    return [*scores[models[0]].judges], " ".join(notes)


def whole(low, high):
    return lambda seed: np.random.default_rng(seed).integers(low, high, N).tolist()


def values(low, high):
    return lambda seed: np.random.default_rng(seed).uniform(low, high, N).tolist()


NO_SCORES = {
    "question_id": lambda seed: [*range(N)],
    "Unnamed: 0": lambda seed: [*range(N)],
    "image_id": whole(0, 10**6),
    "imageId": whole(0, 10**6),
    "prompt_idx": whole(0, 9),
    "noise_seed": whole(0, 2**31),
    "random_seed": whole(0, 2),
    "width": whole(512, 515),
    "img_height": whole(512, 515),
    "file_size": whole(10**4, 10**6),
    "num_inference_steps": whole(20, 30),
    "guidance_scale": values(5, 9),
    "cfg": values(5, 9),
    "timestamp": values(1.7e9, 1.71e9),
    "made": whole(1_700_000_000_000, 1_710_000_000_000),
    "when": lambda seed: [1.7e9 + 30.5 * one for one in range(N)],
    "inference_time": values(1, 3),
    "latency_ms": values(1, 3),
    "counter": lambda seed: [*range(1, N + 1)],
    "backwards": lambda seed: [*range(N, 0, -1)],
    "in order": lambda seed: np.random.default_rng(seed).permutation(N).tolist(),
    "every third": lambda seed: [*range(10, 10 + 3 * N, 3)],
    "coco": lambda seed: np.sort(np.random.default_rng(7).choice(10**6, N, replace=False)).tolist(),
    "strength": lambda seed: [0.75] * N,
    "of the model": lambda seed: [seed] * N,
    "difficulty": lambda seed: drawn(7),
    "objects": lambda seed: np.random.default_rng(7).integers(1, 5, N).tolist(),
}

SCORES = {
    "hps": values(0.2, 0.3),
    "correct": whole(0, 2),
    "count": whole(0, 2),
    "counting": whole(0, 2),
    "rating": whole(1, 6),
    "mos": whole(1, 101),
    "rank": whole(1, 5),
    "blur_index": values(0, 1),
    "identity": values(0, 1),
    "dino-id-similarity": values(0, 1),
    "temporal_flickering": values(0, 1),
    "overall_consistency": values(0, 1),
    "num_correct": whole(90, 190),
    "sorted": lambda seed: sorted(drawn(seed + 10)),
    "VQAScore": values(0, 1),
    "fid_like": values(0, 1),
    "spatial": values(0, 1),
    "steps_quality": values(0, 1),
    "frame consistency": values(0, 1),
    "duration_consistency": values(0, 1),
    "temperature_realism": whole(1, 6),
    "frames_score": whole(1, 6),
    "face_id": values(0, 1),
    "index": values(0, 1),
    "sample": values(0, 1),
    "image": values(0, 1),
    "text": values(0, 1),
    "class": values(0, 1),
    "votes won": whole(0, 11),
    "place of four": lambda seed: [1 + (seed + row) % 4 for row in range(N)],
    "PickScore": values(20, 23),
    "nsfw": lambda seed: np.random.default_rng(seed).exponential(0.002, N).tolist(),
    "likert of one model": lambda seed: [5] * N if seed == 1 else whole(1, 6)(seed),
}


@pytest.mark.parametrize("name", NO_SCORES)
def test_a_number_that_is_no_judgment_is_left_out_and_named(name):
    judges, said = chosen({name: NO_SCORES[name]})
    assert judges == ["clip"] and f"left out of the scores: {name} (" in said and "--judges" in said


@pytest.mark.parametrize("name", SCORES)
def test_a_judgment_stays(name):
    assert chosen({name: SCORES[name]}) == (["clip", name], "")


@pytest.mark.parametrize("name", NO_SCORES)
def test_a_column_that_is_named_is_taken_whatever_it_looks_like(name):
    assert chosen({name: NO_SCORES[name], "other": values(0, 1)}, [name]) == ([name], "")


@pytest.mark.parametrize("name", ["seed", "index", "sample"])
def test_a_column_of_seeds_is_a_judge_only_if_it_is_named(name):
    made = {name: whole(0, 2**31)}
    assert chosen(made) == (["clip"], "") and chosen(made, [name]) == ([name], "")


@pytest.mark.parametrize("value", ["error", "N/K", "4/5", "85 %", "0,83"])
@pytest.mark.parametrize("part", [0.25, 0.5])
def test_a_column_of_numbers_beside_many_texts_is_named_with_its_place(value, part):
    def mixed(seed):
        return [value if row < part * N else one for row, one in enumerate(drawn(seed))]

    judges, said = chosen({"quality": mixed})
    assert judges == ["clip"]
    assert f"quality is not read as a score: {part * N:g} of 40 cells are texts, such as" in said
    assert f"{value!r} in row 1 of scores of two: write numbers, or leave the cells empty" in said
    with pytest.raises(DataError, match=r"row 1 of scores of one has quality .*, not a number: correct it"):
        chosen({"quality": mixed}, ["quality"])


@pytest.mark.parametrize(
    "own", [["a dog", "a cat"] * 20, [f"answer {row}" for row in range(N)], [*"12 4567890x"] + ["b"] * 29]
)
def test_a_column_of_texts_is_left_out_without_a_word(own):
    assert chosen({"answer": lambda seed: own}) == (["clip"], "")


def test_a_score_that_stands_alone_as_numerals_is_named():
    judges, said = chosen({"likert": lambda seed: [f"{1 + row % 5}/5" for row in range(N)]})
    assert judges == ["clip"] and "likert is not read as a score: 40 of 40 cells are texts" in said


def test_a_column_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match=r'judges names .clap., which no scores have .did you mean "clip"'):
        chosen({}, ["clap"])


def test_a_table_of_ids_alone_is_refused():
    tables = {name: {"prompt": IDS, "image_id": [*range(N)]} for name in ("one", "two")}
    with pytest.raises(DataError, match=r"no column of .* is a score: image_id \(by name\); name a column that is one"):
        choose_judges(read_scores(tables, ["one", "two"]), ())


def test_the_same_file_for_two_models_is_ranked_and_said():
    tables = {name: {"id": IDS, "clip": drawn(1), "aes": drawn(2)} for name in ("one", "two")}
    scores, notes = choose_judges(read_scores(tables, ["one", "two"]), ())
    assert [*scores["one"].judges] == ["clip", "aes"]
    assert notes == ["clip and aes has the same values for the samples of one and two: pass each model's own scores"]


def test_a_property_of_prompts_is_found_in_rows_of_another_order():
    order = np.random.default_rng(0).permutation(N)
    level = drawn(7)
    tables = {
        "one": {"prompt": IDS, "level": level, "clip": drawn(1)},
        "two": {"prompt": [IDS[one] for one in order], "level": [level[one] for one in order], "clip": drawn(2)},
    }
    scores, notes = choose_judges(read_scores(tables, ["one", "two"]), ())
    assert [*scores["two"].judges] == ["clip"] and "level (the same for all models)" in notes[0]


def test_a_table_of_features_asks_for_the_judges():
    tables = {"one": {"id": IDS, **{f"f{number}": drawn(number) for number in range(101)}}}
    with pytest.raises(DataError, match=r"has 101 columns of numbers .*, above the 100 .*: name the judges"):
        choose_judges(read_scores(tables, ["one"]), ())
    assert [*choose_judges(read_scores(tables, ["one"]), ["f7"])[0]["one"].judges] == ["f7"]


def test_the_board_says_what_was_left_out_and_takes_what_is_named():
    rng = np.random.default_rng(0)
    sets = {name: fe.EmbeddingSet(rng.normal(size=(N, 4)), ids=tuple(IDS)) for name in ("one", "two")}
    tables = {name: {"id": IDS, "steps": whole(20, 30)(seed), "aes": drawn(seed)} for seed, name in enumerate(sets)}
    ref = rng.normal(size=(80, 4))
    board = fe.leaderboard(sets, ref, scores=tables)
    assert {one.judge for one in board.scores} == {"aes"}
    assert any("left out of the scores: steps (by name)" in one for one in board.warnings)
    named = fe.leaderboard(sets, ref, scores=tables, judges=("steps",))
    assert {one.judge for one in named.scores} == {"steps"}
    assert named.settings.judges == ("steps",)
