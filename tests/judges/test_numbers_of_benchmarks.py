"""Numbers that public benchmarks print: each is reproduced from a file of its layout, with an interval for that number.

The files are drawn. The printed numbers are computed here by the published rule of each tool, in plain Python.
"""

import json
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.judges.layouts.vbench_totals import mean_totals
from finc_eval.judges.paired import by_rule
from finc_eval.judges.scores import read_scores
from finc_eval.judges.weighting import Weighting
from finc_eval.leaderboards.judged import Judgments

MODELS = ("one", "two")
PROMPTS = [f"a thing called {chr(97 + number)}" for number in range(12)]


def rng_of(model):
    return np.random.default_rng(7 + MODELS.index(model))


def videos(model, dimension, keys):
    """Return the entries of videos of a dimension, of unlike numbers of frames, with these keys."""
    rng, found = rng_of(model), []
    for number, prompt in enumerate(PROMPTS):
        for seed in range(3):
            frames = (rng.random(int(rng.integers(4, 17))) < 0.3 + 0.05 * number).astype(float).tolist()
            entry = {"video_path": f"out/{prompt}-{seed}.mp4", "video_results": mean(frames)}
            more = {
                "frame_count": len(frames),
                "cnt_per_video": len(frames),
                "frame_results": frames,
                "cur_sim": frames[-1],
            }
            found.append(entry | {key: more[key] for key in keys})
    if dimension == "imaging_quality":
        found = [{**entry, "video_results": 100 * entry["video_results"]} for entry in found]
    return found


def by_frames(entries):
    counts = [
        entry.get("frame_count") or entry.get("cnt_per_video") or len(entry["frame_results"]) for entry in entries
    ]
    return sum(entry["video_results"] * n for entry, n in zip(entries, counts, strict=True)) / sum(counts)


def by_videos(entries):
    return mean(entry["video_results"] for entry in entries)


VBENCH = {  # rule of each dimension by one process, with the keys of its entries
    "object_class": (by_frames, ("frame_count",)),
    "scene": (by_frames, ("frame_count",)),
    "background_consistency": (by_frames, ("cnt_per_video",)),
    "spatial_relationship": (by_frames, ("frame_results",)),
    "appearance_style": (by_frames, ("frame_results", "cur_sim")),
    "motion_smoothness": (by_videos, ()),
    "imaging_quality": (lambda entries: by_videos(entries) / 100, ()),
}
BY_PROCESSES = {  # rules by several processes
    "spatial_relationship": (by_videos, ("frame_results",)),
    "appearance_style": (lambda entries: mean(entry["cur_sim"] for entry in entries), ("frame_results", "cur_sim")),
}


def vbench(folder, model, dimension, rule, keys):
    entries = videos(model, dimension, keys)
    path = folder / f"{model}_{dimension}_eval_results.json"
    path.write_text(json.dumps({dimension: [rule(entries), entries]}))
    return [path], {dimension: rule(entries)}


def geneval(folder, model):
    rng, sizes, paths = rng_of(model), {"single_object": 5, "counting": 4, "colors": 3}, []
    tasks = {
        tag: (rng.random((prompts, 4)) < 0.4 + 0.2 * number).tolist()
        for number, (tag, prompts) in enumerate(sizes.items())
    }
    for tag, right in tasks.items():  # a file a task, as of several machines
        rows = [
            {
                "filename": f"o/{tag}/{n:05d}/samples/{k:04d}.png",
                "tag": tag,
                "prompt": f"{tag} number {n}",
                "correct": good,
            }
            for n, images in enumerate(right)
            for k, good in enumerate(images)
        ]
        paths.append(folder / f"{model}-{tag}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths, {"geneval": mean(mean(good for images in right for good in images) for right in tasks.values())}


def comp_bench(folder, model):
    rng, paths, printed = rng_of(model), [], {}
    for annotation, judge in (("annotation_blip", "blip_vqa"), ("annotation_obj_detection_2d", "unidet_2d")):
        answers = [f"{answer:.4f}" for answer in rng.random(36)]
        path = folder / model / annotation / "vqa_result.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([{"question_id": n, "answer": answer} for n, answer in enumerate(answers)]))
        paths.append(path)
        printed[judge] = sum(map(float, answers)) / len(answers)
    return paths, printed


def hps(folder, model):
    rng = rng_of(model)
    scores = {"anime": rng.normal(27, 2, 20).tolist(), "photo": rng.normal(25, 2, 16).tolist()}
    path = folder / f"{model}.json"
    path.write_text(json.dumps({model: scores}))
    return [path], {"hps": mean([*scores["anime"], *scores["photo"]])}


def image_reward(folder, model):
    rng = rng_of(model)
    rows = []
    for number in range(12):  # prompts of one text twice, and of unlike numbers of images
        rewards = rng.normal(0, 1, 2 + number % 3).tolist()
        rows.append(
            {"id": f"{number:03d}", "prompt": PROMPTS[number // 2], "mean_score": mean(rewards), "rewards": rewards}
        )
    path = folder / f"ImageReward-v1.0-benchmark-{model}-result.json"
    path.write_text(json.dumps(rows))
    return [path], {"image_reward": mean(row["mean_score"] for row in rows)}


CASES = {
    **{
        f"VBench, {dimension}": (lambda folder, model, d=dimension, how=how: vbench(folder, model, d, *how))
        for dimension, how in VBENCH.items()
    },
    **{
        f"VBench, {dimension}, several processes": (
            lambda folder, model, d=dimension, how=how: vbench(folder, model, d, *how)
        )
        for dimension, how in BY_PROCESSES.items()
    },
    "GenEval": geneval,
    "T2I-CompBench": comp_bench,
    "HPS": hps,
    "ImageReward": image_reward,
}


@pytest.mark.parametrize("case", CASES)
def test_the_number_that_a_tool_prints_is_reproduced(tmp_path, case):
    files = {model: CASES[case](tmp_path, model) for model in MODELS}
    judged = Judgments.read({model: [*map(str, paths)] for model, (paths, _) in files.items()}, None, MODELS, ())
    results = judged.results(0)
    columns = {column.key: column for column in results.columns}
    for model, (_, printed) in files.items():
        assert columns.keys() == printed.keys()
        for judge, number in printed.items():
            estimate = columns[judge].estimates[model]
            assert estimate.value == pytest.approx(number, rel=1e-9)
            assert results.stated[judge][model] == pytest.approx(number, rel=1e-9)
            low, high = estimate.interval
            assert low < number < high and columns[judge].higher_is_better
            assert dict(columns[judge].signature.fields)["rule"]
    assert results.remarks == []  # no other number, and no doubt of the direction, which the layout states


def test_a_number_that_the_videos_do_not_give_is_said_with_the_reason(tmp_path):
    entries = videos("one", "subject_consistency", ())
    texts = {"one": by_videos(entries) + 0.02, "two": by_videos(entries)}
    for model, value in texts.items():
        (tmp_path / f"{model}.json").write_text(json.dumps({"subject_consistency": [value, entries]}))
    results = Judgments.read({m: str(tmp_path / f"{m}.json") for m in MODELS}, None, MODELS, ()).results(0)
    (said,) = results.remarks
    assert "for one" in said and "for two" not in said and "frames, which the file does not count" in said


def test_two_files_that_were_made_by_unlike_rules_are_named(tmp_path):
    paths = {
        "one": vbench(tmp_path, "one", "spatial_relationship", *VBENCH["spatial_relationship"])[0],
        "two": vbench(tmp_path, "two", "spatial_relationship", *BY_PROCESSES["spatial_relationship"])[0],
    }
    results = Judgments.read({m: [*map(str, own)] for m, own in paths.items()}, None, MODELS, ()).results(0)
    (said,) = results.remarks
    assert "one has VBench by frames" in said and "two has VBench by videos" in said


def test_a_number_is_the_benchmark_s_own_although_another_model_lacks_prompts(tmp_path):
    paths, printed = {}, {}
    for model in MODELS:
        own, numbers = hps(tmp_path, model)
        paths[model], printed[model] = own[0], numbers["hps"]
    scores = json.loads(paths["two"].read_text())["two"]
    scores["photo"] = scores["photo"][:10]
    paths["two"].write_text(json.dumps(scores))
    printed["two"] = mean([*scores["anime"], *scores["photo"]])
    results = Judgments.read({m: str(path) for m, path in paths.items()}, None, MODELS, ()).results(0)
    (column,) = results.columns
    assert {m: e.value for m, e in column.estimates.items()} == pytest.approx(printed)
    assert any("two lacks 6" in note for note in results.notes)


def test_images_of_comp_bench_are_found_by_the_last_number_of_their_names(tmp_path):
    """Images of a prompt are a cluster: their prompt is in the names of the set."""
    ids = [f"{prompt}_{3 * number + seed:06d}.png" for number, prompt in enumerate(PROMPTS) for seed in range(3)]
    order = np.random.default_rng(0).permutation(len(ids))
    files = {model: [*map(str, comp_bench(tmp_path, model)[0])] for model in MODELS}
    draw = np.random.default_rng(1)
    sets = {
        model: fe.EmbeddingSet(
            draw.normal(size=(len(ids), 4)),
            ids=[ids[row] for row in order],
            metadata={"prompt": [ids[row].rpartition("_")[0] for row in order]},
        )
        for model in MODELS
    }
    board = fe.leaderboard(sets, draw.normal(size=(60, 4)), scores=files, metrics=["kid"])
    assert {score.prompts for score in board.scores} == {len(PROMPTS)}
    assert all(score.reported == pytest.approx(score.value) for score in board.scores)
    assert {score.judge for score in board.scores} == {"blip_vqa", "unidet_2d"}
    assert not any("intervals are too narrow" in warning for warning in board.warnings)
    alone = {model: fe.EmbeddingSet(draw.normal(size=(len(ids), 4)), ids=ids) for model in MODELS}
    board = fe.leaderboard(alone, draw.normal(size=(60, 4)), scores=files, metrics=["kid"])
    assert {score.prompts for score in board.scores} == {len(ids)}
    assert any("intervals are too narrow" in warning for warning in board.warnings)


def test_the_influences_of_a_rule_are_those_of_leaving_a_prompt_out():
    rng = np.random.default_rng(0)
    prompt = np.repeat(np.arange(10), 3)
    scores, rule = rng.random(30), Weighting("r", rng.uniform(1, 9, 30), ("a",) * 12 + ("b",) * 18)
    found = by_rule(scores, prompt, rule, 12)
    for number in range(10):
        kept = np.flatnonzero(prompt != number)
        count = 4 if number < 4 else 6
        moved = found.value - rule.at(kept).number(scores[kept])
        assert found.influences[number] == pytest.approx(moved * np.sqrt((count - 1) / count))
    assert found.influences[10:].tolist() == [0, 0]


def test_a_task_of_one_prompt_widens_the_interval():
    scores, tasks = np.array([1.0, 0.0, 1.0, 0.0, 1.0]), ("a",) * 4 + ("b",)
    found = by_rule(scores, np.arange(5), Weighting("r", np.ones(5), tasks), 5)
    without = by_rule(scores[:4], np.arange(4), Weighting("r", np.ones(4)), 5)
    assert found.value == 0.75 and found.influences[4] == pytest.approx(0.125)
    assert found.influences[:4] == pytest.approx(without.influences[:4] / 2)


@pytest.mark.parametrize(("name", "row"), [("a cat_000007.png", 0), ("dog_12.jpg", 1)])
def test_numbers_that_two_names_end_with_are_of_none(name, row):
    from finc_eval.judges.scores import match_numbers

    names = ["a cat_000007.png", "dog_12.jpg", "x_3.png", "y_3.png", "plain.png"]
    assert match_numbers([str(int(name.rpartition("_")[2].partition(".")[0])), "3", "99"], names).tolist() == [
        row,
        -1,
        -1,
    ]


def test_a_file_of_comp_bench_in_another_folder_keeps_the_name_of_its_column(tmp_path):
    path = tmp_path / "vqa_result.json"
    path.write_text(json.dumps([{"question_id": n, "answer": str(n / 10)} for n in range(5)]))
    assert [*read_scores({"one": str(path)}, ["one"])["one"].judges] == ["answer"]


QUALITY = ("subject_consistency", "background_consistency", "temporal_flickering", "motion_smoothness")
QUALITY += ("aesthetic_quality", "imaging_quality", "dynamic_degree")
SEMANTIC = ("object_class", "multiple_objects", "human_action", "color", "spatial_relationship", "scene")
SEMANTIC += ("appearance_style", "temporal_style", "overall_consistency")


def vbench_files(folder, dimensions, model, seed=0):
    """Write a file of each dimension, of 20 prompts and three videos each; return them and the printed values."""
    rng, files, values = np.random.default_rng(seed), [], {}
    for dimension in dimensions:
        # Prompts of dimensions overlap, as in VBench.
        start = 10 * (len(files) % 4)
        entries = [
            {"video_path": f"out/a thing number {n}-{k}.mp4", "video_results": float(rng.uniform(0.7, 0.9))}
            for n in range(start, start + 20)
            for k in range(3)
        ]
        if dimension == "imaging_quality":
            entries = [{**entry, "video_results": 100 * entry["video_results"]} for entry in entries]
        values[dimension] = by_videos(entries) / (100 if dimension == "imaging_quality" else 1)
        files.append(str(folder / f"{model}-{dimension}.json"))
        (folder / f"{model}-{dimension}.json").write_text(json.dumps({dimension: [values[dimension], entries]}))
    return files, values


def printed_scores(values):
    """The rule of VBench's cal_final_score.py, with its least and largest values."""
    ends = {
        "subject_consistency": (0.1462, 1.0),
        "background_consistency": (0.2615, 1.0),
        "temporal_flickering": (0.6293, 1.0),
        "motion_smoothness": (0.706, 0.9975),
        "scene": (0.0, 0.8222),
        "appearance_style": (0.0009, 0.2855),
        "temporal_style": (0.0, 0.364),
        "overall_consistency": (0.0, 0.364),
    }
    normal = {
        name: (value - ends.get(name, (0.0, 1.0))[0]) / (ends.get(name, (0.0, 1.0))[1] - ends.get(name, (0.0, 1.0))[0])
        for name, value in values.items()
    }
    quality = sum(normal[name] * (0.5 if name == "dynamic_degree" else 1.0) for name in QUALITY) / 6.5
    semantic = sum(normal[name] for name in SEMANTIC) / 9
    return {"vbench_quality": quality, "vbench_semantic": semantic, "vbench_total": (4 * quality + semantic) / 5}


def test_the_total_score_of_vbench_is_reproduced_with_an_interval(tmp_path):
    files, printed = {}, {}
    for seed, model in enumerate(MODELS):
        files[model], values = vbench_files(tmp_path, (*QUALITY, *SEMANTIC), model, seed)
        printed[model] = printed_scores(values)
    judged = Judgments.read(files, None, MODELS, ())
    results = judged.results(0)
    columns = {column.key: column for column in results.columns}
    assert [*columns][-3:] == ["vbench_quality", "vbench_semantic", "vbench_total"] and not results.remarks
    for model in MODELS:
        for key, number in printed[model].items():
            estimate = columns[key].estimates[model]
            assert estimate.value == pytest.approx(number, rel=1e-9)
            assert results.stated[key][model] == pytest.approx(number, rel=1e-9)
            assert 0 < estimate.interval[1] - estimate.interval[0] < 0.2
    total = columns["vbench_total"]
    assert total.signature.fields and total.higher_is_better


def test_without_all_dimensions_there_is_no_total(tmp_path):
    files = {model: vbench_files(tmp_path, QUALITY, model, seed)[0] for seed, model in enumerate(MODELS)}
    assert Judgments.read(files, None, MODELS, ()).totals == ("vbench_quality",)
    path = tmp_path / "two-dynamic_degree.json"
    ((dimension, (value, entries)),) = json.loads(path.read_text()).items()
    for few in ([], entries[:3]):  # no video, or those of one prompt
        path.write_text(json.dumps({dimension: [value, few], "another": [value, entries]}))
        assert Judgments.read(files, None, MODELS, ()).totals == ()
    files["two"] = files["two"][1:]
    assert Judgments.read(files, None, MODELS, ()).totals == ()


def test_the_error_of_a_total_is_that_of_leaving_prompts_out(tmp_path):
    """Leaving a prompt out of all dimensions moves the total by its influence, but for the factor of the jackknife."""
    files, _ = vbench_files(tmp_path, QUALITY, "one")
    (table,) = read_scores({"one": files}, ["one"]).values()
    means = mean_totals("vbench_quality", {"one": table})
    prompts = sorted({*table.prompts})
    for prompt in prompts[:5]:
        judges = {
            name: np.where(np.array(table.prompts) == prompt, np.nan, scores) for name, scores in table.judges.items()
        }
        rest = mean_totals("vbench_quality", {"one": replace(table, judges=judges)})
        moved = means.values[0] - rest.values[0]
        assert means.influences[0, prompts.index(prompt)] == pytest.approx(moved * np.sqrt(19 / 20))
