"""Scores by sample: tables and public result files, means over prompts, and parts where a judge prefers."""

import json

import numpy as np
import pytest

from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.parts import Division, Gains, find_parts
from finc_eval.judges.scores import match_ids, read_scores


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def test_every_numeric_column_is_a_judge_and_texts_divide_samples(tmp_path):
    text = "id,prompt,seed,clip,tag,correct\nx.png,a dog,0,.5,animal,True\ny.png,a sign,0,,text,False\n"
    one = read_scores({"one": written(tmp_path, "one.csv", text)}, ["one"])["one"]
    assert [*one.judges] == ["clip", "correct"] and one.judges["correct"].tolist() == [1, 0]
    assert np.isnan(one.judges["clip"][1]) and one.judges["clip"][0] == 0.5
    assert one.ids == ("x.png", "y.png") and one.prompts == ("a dog", "a sign")
    assert one.labels == {"tag": ("animal", "text")}


@pytest.mark.parametrize(
    "form",
    [
        lambda path: {"one": path},
        lambda path: {"one": str(path)},
        lambda path: {"one": {"id": ["x", "y"], "clip": [0.5, 0.25]}},
        lambda path: {"one": [{"id": "x", "clip": 0.5}, {"id": "y", "clip": 0.25}]},
        lambda path: {"one": pytest.importorskip("pandas").DataFrame({"id": ["x", "y"], "clip": [0.5, 0.25]})},
        lambda path: {
            "one": pytest.importorskip("pandas").DataFrame({"id": ["x", "y"], "clip": [0.5, 0.25]}).set_index("id")
        },
        lambda path: [{"model": "one", "id": "x", "clip": 0.5}, {"model": "one", "id": "y", "clip": 0.25}],
    ],
    ids=["path", "text", "columns", "rows", "frame", "indexed frame", "one table"],
)
def test_all_forms_of_a_table_give_the_same_scores(tmp_path, form):
    path = written(tmp_path, "one.jsonl", lines([{"id": "x", "clip": 0.5}, {"id": "y", "clip": 0.25}]))
    one = read_scores(form(path), ["one", "two"])["one"]
    assert one.ids == ("x", "y") and one.judges["clip"].tolist() == [0.5, 0.25]


def test_numbers_alone_are_scores_by_row():
    one = read_scores({"one": np.array([0.5, 0.25])}, ["one"])["one"]
    assert one.ids == ("0", "1") and not one.has_ids and one.judges["score"].tolist() == [0.5, 0.25]


VIDEO = [{"video_path": f"out/a red car-{n}.mp4", "video_results": 0.9 - 0.2 * n} for n in (0, 1)]
PUBLIC = {
    "VBench": (
        {"color": [0.8, VIDEO], "scene": [0.5, [{**VIDEO[0], "video_results": True}]]},
        {"color": [0.9, 0.7], "scene": [1, None]},
        ["a red car", "a red car"],
    ),
    "GenEval 2": ([[1.0, 0.25], [0.5, 0.5]], {"soft_tifa_am": [0.625, 0.5], "soft_tifa_gm": [0.5, 0.5]}, ["0", "1"]),
    "GenEval 2, named": (
        {"method": "soft_tifa_gm", "results": [{"sample_id": "t", "prompt": "two toys", "atom_scores": [0.25, 1]}]},
        {"soft_tifa_am": [0.625], "soft_tifa_gm": [0.5]},
        ["two toys"],
    ),
    "HPS": (
        {"my-model": {"anime": [0.28, 0.27, 0.29], "photo": [0.25, 0.26, 0.24]}},
        {"hps": [0.28, 0.27, 0.29, 0.25, 0.26, 0.24]},
        ["anime 0", "anime 1", "anime 2", "photo 0", "photo 1", "photo 2"],
    ),
    "ImageReward": (
        [{"id": "7", "prompt": "a cat", "mean_score": 0.75, "rewards": [[0.5], [1.0]]}],
        {"image_reward": [0.5, 1.0]},
        ["a cat", "a cat"],
    ),
}
PUBLIC_LINES = {
    "GenEval": (
        [
            {
                "filename": "o/00000/samples/0000.png",
                "tag": "counting",
                "prompt": "two cats",
                "correct": False,
                "reason": "expected 2",
                "metadata": "{}",
                "details": "{}",
            }
        ],
        {"geneval": [0]},
        ["two cats"],
    ),
    "lmms-eval": (
        [
            {
                "doc_id": 3,
                "target": "x",
                "filtered_resps": ["y"],
                "doc_hash": "h",
                "clip_score": 0.5,
                "vqa": {"question_id": 17, "exact": 1.0, "category": "x"},
                "input": "What is it?",
            }
        ],
        {"clip_score": [0.5], "vqa.exact": [1.0]},
        ["What is it?"],
    ),
    "lmms-eval, one question": (
        [
            {"doc_id": n, "filtered_resps": "y", "exact_match": 1.0, "input": "Is it real?", "token_counts": [None]}
            for n in (0, 1)
        ],
        {"exact_match": [1.0, 1.0]},
        ["0", "1"],
    ),
}


@pytest.mark.parametrize("tool", [*PUBLIC, *PUBLIC_LINES])
def test_public_result_files_are_known_by_their_content(tmp_path, tool):
    value, judges, prompts = PUBLIC.get(tool) or PUBLIC_LINES[tool]
    path = written(tmp_path, "results.txt", value if tool in PUBLIC else lines(value))
    one = read_scores({"one": path}, ["one"])["one"]
    assert {
        name: [None if np.isnan(x) else round(x, 9) for x in own.tolist()] for name, own in one.judges.items()
    } == judges
    assert list(one.prompts) == prompts


@pytest.mark.parametrize(("kind", "judge"), [("CLIP", "clip"), ("ImageReward-v1.0", "image_reward")])
def test_the_benchmark_of_image_reward_names_its_other_scores_in_the_file(tmp_path, kind, judge):
    path = written(tmp_path, f"{kind}-benchmark-sd-result.json", [{"id": "7", "prompt": "a cat", "rewards": 0.5}])
    one = read_scores({"one": path}, ["one"])["one"]
    assert [*one.judges] == [judge] and one.ids == ("7_0.png",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[0, 1, 2], [2, 0, 1]]", "has a layout that is not known: expected columns: id or prompt"),  # HPS's rankings
        ('{"scores": {"deep": {"deeper": 1}}}', "has a layout that is not known: expected columns: id or prompt"),
        (
            "id,name2\nx,dog\ny,cat\n",
            r"has no column of numbers, only id and name2 \(the first name2 is “dog”\): expected columns",
        ),
        ("id,clip\nx,50.1%\ny,48.2%\n", r"only id and clip \(the first clip is “50.1%”\): expected columns"),
        ("id;clip\nx;0,28\ny;0,31\n", r"only id and clip \(the first clip is “0,28”\): expected columns"),
        ("x.png 0.28\ny.png 0.31\n", r"only x.png 0.28 \(the first x.png 0.28 is “y.png 0.31”\): expected columns"),
        ("id,clip\nx,0.5\nx,0.7\n", "scores 'x' 2 times: keep one row a sample"),
        (
            "id,clip\n" + "".join(f"{n},{n}\n" for n in range(20)) + "z,high\n",
            "row 22 of .* has clip 'high', not a number",
        ),
    ],
)
def test_what_is_not_scores_is_refused_in_a_sentence(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        read_scores({"one": written(tmp_path, "one.any", text)}, ["one"])


def test_scores_of_a_model_that_is_not_on_the_board_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r'scores are given for on, which the board does not have .did you mean "one"'):
        read_scores({"on": {"id": ["x"], "clip": [1.0]}}, ["one", "two"])


@pytest.mark.parametrize(
    ("scored", "samples"),
    [
        (("a/x.png", "y.jpg"), ("a/x.png", "y.jpg", "z.png")),
        (("/data/out/x.png", "out/y.jpg"), ("x.png", "y.jpg", "z.png")),
        (("x", "y"), ("a/x.png", "y.jpg", "z.png")),
        (("o/0/samples/0.png", "o/1/samples/0.png"), ("0/samples/0.png", "1/samples/0.png", "1/samples/1.png")),
    ],
)
def test_ids_match_by_their_paths_and_by_the_ends_of_these(scored, samples):
    assert match_ids(scored, samples).tolist() == [0, 1]


def test_means_over_shared_prompts_are_paired_and_their_errors_are_of_differences():
    rng = np.random.default_rng(0)
    level, prompts = 5 * rng.normal(size=100), [f"p{n:03d}" for n in range(100)]
    means = mean_scores(
        {"a": np.repeat(level, 2) + 0.1 * rng.normal(size=200), "b": level[10:] + 0.3 + 0.1 * rng.normal(size=90)},
        {"a": np.repeat(prompts, 2).tolist(), "b": prompts[10:]},
    )
    assert means.is_paired and means.prompts == (90, 90) and means.degrees == 89
    assert means.values[1] - means.values[0] == pytest.approx(0.3, abs=0.05)
    variance = means.covariance @ [1, -1] @ [1, -1]
    differences = means.table[0] - means.table[1]
    assert variance == pytest.approx(np.nanvar(differences, ddof=1) / 90)
    assert means.within == pytest.approx(0.01, rel=0.4) and means.seeds == 1.5


def test_models_without_common_prompts_have_the_means_of_their_own():
    means = mean_scores({"a": np.arange(4.0), "b": np.arange(3.0)}, {"a": list("pqrs"), "b": list("sxy")})
    assert not means.is_paired and means.values.tolist() == [1.5, 1.0]


def test_a_word_and_a_label_where_a_model_loses_are_named_and_no_others():
    rng = np.random.default_rng(3)
    prompts = [f"a {('sign with text', 'dog', 'house', 'boat')[n % 4]} number {n}" for n in range(160)]
    values = rng.normal(size=160) + 0.4 - 2.0 * (np.arange(160) % 4 == 0)
    labels = Division.of_texts([("sign", "dog", "house", "boat")[n % 4] for n in range(160)])
    found = find_parts("clip", [Gains("two", values, np.arange(160), {"label": labels})], prompts)
    assert {one.part for one in found if one.by == "label"} == {"sign"}
    word = next(one.part for one in found if one.by == "word")
    assert {"sign", "text", "with"} & {*word.split()}
    label = next(one for one in found if one.by == "label")
    assert label.value < -1 and 0.2 < label.elsewhere < 0.7 and label.interval[0] < -1.6 < label.interval[1]


def test_answers_that_are_all_right_in_a_small_part_are_no_finding():
    answers = np.array([1.0] * 6 + [1, 1, 1, 0] * 30)
    parts = Division.of_texts(["small"] * 6 + ["large"] * 120)
    gains = Gains("", answers - answers.mean(), np.arange(126), {"label": parts})
    assert find_parts("ocr", [gains], [f"prompt {n}" for n in range(126)]) == ()


def test_kinds_that_lie_in_a_clear_one_are_not_named_with_it():
    rng = np.random.default_rng(0)
    cells = np.arange(200) % 4
    members = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], bool)
    kinds = Division(("first", "second", "both", "third", "fourth"), cells, members)
    values = rng.normal(size=200) + 3.0 * (cells < 2)
    found = find_parts("clip", [Gains("two", values, np.arange(200), {"kind": kinds})], [f"p{n}" for n in range(200)])
    assert [one.part for one in found] == ["both"]
