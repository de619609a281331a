"""Two runs with the same ids: what changed, what broke, whether anything is worse, and how it is said."""

import json
import re

import numpy as np
import pytest
from _runs_of_scenes import OLD, SIDE, N, blurred, broken, judge_pairs, noise, run_of, scenes, thumbnails
from _said import values
from PIL import Image

import finc_eval as fe
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.settings import Settings
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import Run
from finc_eval.embeddings.same_names import rows_of, without_suffixes
from finc_eval.same_ids.worse import error_of, judge_kinds


def compare(new, again=(), **columns):
    return judge_pairs(run_of(new, **columns), run_of(OLD, **columns), [run_of(one) for one in again])


@pytest.fixture(scope="module")
def black():
    """A comparison of a run with six black pictures, with all that a comparison has."""
    return fe.compare(run_of(broken("black")[0]), run_of(OLD), pairs="id", features=20, modes=1)


BLACK = broken("black")[1]


HOWS = ["another picture", "black", "white", "shifted", "the picture of", "turned gray"]


@pytest.mark.parametrize("again", [[], [noise(OLD, 1, seed=2)]], ids=["alone", "with a floor"])
def test_pairs_that_are_broken_in_unlike_ways_are_each_named_by_their_own(again):
    new, each = noise(OLD, 3), {}
    for row, how in zip((3, 20, 21, 40, 47, 59), HOWS, strict=True):
        new[row], each[f"{row:04d}.png"] = broken(how)[0][row], how
    found = compare(new, again)
    assert {one: next(how for how in HOWS if said.startswith(how)) for one, said in found.reasons.items()} == each
    assert set(found.broken) == each.keys()


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("again", [[], [noise(OLD, 1, seed=2)]], ids=["alone", "with a floor"])
def test_broken_pairs_are_listed_by_id_with_what_they_are(how, again):
    new, expected = broken(how)
    found = compare(new, again)
    assert set(found.broken) == expected
    assert {one.startswith(how) for one in found.reasons.values()} == {True}


def test_a_run_in_which_all_is_broken_is_judged_as_a_whole():
    found = compare([one * 0 for one in OLD])
    assert len(found.broken) == N
    assert {one.what for one in found.worse} >= {"look", "repeats"}


def blank(pictures, count, shade=0):
    return [np.full_like(one, shade) if row < count else one for row, one in enumerate(pictures)]


@pytest.mark.parametrize(("shade", "again"), [(0, False), (255, True)])
def test_blank_pictures_are_broken_however_many_they_are(shade, again):
    found = compare(blank(noise(OLD, 3), N // 2, shade), [noise(OLD, 1, seed=2)] if again else [])
    assert set(found.broken) == {f"{row:04d}.png" for row in range(N // 2)}
    assert set(found.reasons.values()) == {"black" if shade == 0 else "white"}
    assert found.run == f"pairs 1 to {N // 2}: {'black' if shade == 0 else 'white'}"


def test_blank_pictures_are_broken_unless_the_baseline_has_as_many():
    before = blank(OLD, 12)
    assert compare(blank(noise(OLD, 3), N // 2), [before]).verdict == "broken", (
        "half are far more than the baseline's fifth"
    )
    usual = compare(blank(noise(OLD, 3), 12), [before])
    assert (usual.verdict, usual.broken, usual.is_usual) == ("undecided", [], True)


SAME = {
    "equal": lambda: OLD,
    "noise of 1/255": lambda: noise(OLD, 1),
    "noise of 3/255": lambda: noise(OLD, 3),
    "darker": lambda: [np.rint(one * 0.8).astype(np.uint8) for one in OLD],
    "tinted": lambda: [np.clip(one + np.array([20, 0, -20]), 0, 255).astype(np.uint8) for one in OLD],
    "one picture noisier than others": lambda: [*noise(OLD[:-1], 3), *noise(OLD[-1:], 6)],
    "one picture that differs a little": lambda: [*OLD[:-1], *noise(OLD[-1:], 2)],
}


@pytest.mark.one_of_each(by=lambda case: {"equal": "noise", "tinted": "darker"}.get(case.split()[0], case.split()[0]))
@pytest.mark.parametrize("case", SAME)
def test_a_run_in_which_nothing_is_broken_has_no_list(case):
    found = compare(SAME[case]())
    assert found.broken == []
    assert found.worse == []


def test_noise_that_no_eye_sees_changes_all_pictures_and_makes_nothing_worse():
    found = compare(noise(OLD, 3), [noise(OLD, 1, seed=2), noise(OLD, 1, seed=3)])
    assert found.changed > 0.95
    assert (found.broken, found.worse) == ([], [])


def test_a_run_that_is_as_far_as_runs_of_the_baseline_has_not_changed():
    found = compare(noise(OLD, 1, seed=4), [noise(OLD, 1, seed=2)])
    assert found.changed < 0.05
    assert found.interval[0] == 0


UNLIKE_IDS = {
    "another format": (["a.webp", "b.c.webp"], ["b.c.png", "a.png"], ["a", "b.c"]),
    "a folder": (["x/a.JPEG", "x/b.JPEG"], ["x/a.png", "x/b.png"], ["x/a", "x/b"]),
    "some that are equal": (["a.webp", "b.png"], ["a.png", "b.png"], None),
    "two files of one stem": (["a.webp", "a.jpg"], ["a.png", "b.png"], None),
    "numbers": (["v1.0", "v2.0"], ["v1.1", "v2.1"], None),
    "other names": (["c.webp"], ["a.png"], None),
}
"""Ids of two runs, and those of the first as they are compared; None where they stay as they are."""


@pytest.mark.parametrize("case", UNLIKE_IDS)
def test_ids_are_compared_without_suffixes_where_these_alone_are_unlike(case):
    gen, ref, expected = UNLIKE_IDS[case]
    found, said = without_suffixes({"gen": gen, "ref": ref})
    assert found["gen"] == (expected or gen)
    assert bool(said) == bool(expected)


@pytest.mark.parametrize(
    "case",
    [one for one in UNLIKE_IDS if one != "two files of one stem"],  # told apart where all ids are known
)
def test_rows_are_found_by_the_ids_by_which_samples_are_compared(case):
    gen, ref, _ = UNLIKE_IDS[case]
    names, _ = without_suffixes({"gen": gen, "ref": ref})
    samples = fe.EmbeddingSet(np.eye(len(ref), dtype=np.float32), ids=ref)
    expected = {
        one: names["ref"].index(name) for one, name in zip(gen, names["gen"], strict=True) if name in names["ref"]
    }
    assert rows_of(samples, gen) == expected


def test_a_run_in_another_format_is_paired_and_it_is_said(tmp_path):
    for folder, suffix in (("new", "webp"), ("old", "png")):
        (tmp_path / folder).mkdir()
        for number, pixels in enumerate(OLD[:30]):
            Image.fromarray(pixels).save(tmp_path / folder / f"{number:03}.{suffix}", lossless=True)
    found = fe.compare(tmp_path / "new", tmp_path / "old", extractor="pixels", features=20, modes=1)
    assert found.by_id.changed == 0 and len(found.by_id.table) == 30
    assert "'000.webp' of gen and '000.png' of ref" in " ".join(found.warnings)


@pytest.mark.long
def test_a_baseline_of_two_states_is_no_break():
    """Some samples of each run of the baseline are in another state; so are some of the new run."""
    other, rng = scenes(seed=7), np.random.default_rng(0)

    def run(seed):
        return [two if rng.random() < 0.08 else one for one, two in zip(noise(OLD, 1, seed), other, strict=True)]

    found = compare(run(4), [run(2), run(3)])
    assert found.broken == []
    assert found.interval[0] == 0


WORSE = {
    "blurrier": lambda one: blurred([one])[0],
    "noisier": lambda one: noise([one], 25)[0],
    "paler": lambda one: np.rint(0.5 * one + 0.5 * one.mean(2, keepdims=True)).astype(np.uint8),
    "flatter": lambda one: np.rint(0.6 * one + 0.4 * one.mean()).astype(np.uint8),
    "pattern": lambda one: np.clip(
        one + 12.0 * ((np.indices((SIDE, SIDE)).sum(0) % 4 == 0) * 2 - 1)[..., None], 0, 255
    ).astype(np.uint8),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", WORSE)
def test_what_is_worse_is_named(name):
    found = compare([WORSE[name](one) for one in OLD])
    assert any(name in one.name for one in found.worse), found.worse
    assert all(one.interval[0] > one.margin for one in found.worse if one.what == "look")


@pytest.mark.long
def test_what_the_reference_has_none_of_has_a_margin_all_the_same():
    found = compare([np.clip(one.astype(int) + 1, 0, 255).astype(np.uint8) for one in OLD])
    assert found.worse == []
    assert all(abs(one.difference) < 10 for one in found.not_worse)


def test_images_of_a_word_that_became_one_picture_are_named_with_the_word():
    old = scenes(120)
    prompts = [f"a photo of a {'cat' if row % 6 == 0 else f'dog{row % 7}'}" for row in range(len(old))]
    new = noise(old, 1)
    for row in range(0, len(old), 12):
        new[row] = new[0]
    found = judge_pairs(*(run_of(one, prompt=prompts) for one in (new, old)))
    assert any("one picture, 10 times" in one.name and "“cat”" in one.name for one in found.worse), found.worse


def test_a_kind_that_lost_more_than_its_margin_is_worse_and_chance_is_not():
    rng = np.random.default_rng(0)
    before = rng.integers(0, 5, 500)
    lost, moved = before.copy(), before.copy()
    lost[np.flatnonzero(before == 3)[:40]] = 1
    moved[:5] = (before[:5] + 1) % 5
    names = ["a", "b", "c", "d", "e"]
    (one,) = judge_kinds((lost, before), names, error_of(5))
    assert (one.name, one.verdict, one.difference) == ("d", "worse", 0.08)
    (one,) = judge_kinds((moved, before), names, error_of(5))
    assert (one.name, one.verdict) == ("kinds", "undecided")
    (one,) = judge_kinds((before, before), names, error_of(5))
    assert (one.name, one.verdict) == ("kinds", "not worse")


def test_the_headline_answers_three_questions(black):
    sentences = black.by_id.sentences
    assert {"changed", "broken", "worse"} <= {*sentences} and next(iter(sentences)) == "verdict"
    assert values(sentences["verdict"]) == "6 60 6" and "black" in sentences["verdict"]
    said = values(sentences["broken"])
    assert said.startswith("6 ") and said.endswith(" 3") and "black" not in sentences["broken"]
    assert black.by_id.worse == [] and all(sentences[key] in black.headline for key in ("changed", "broken"))


def test_a_tenth_that_is_gray_is_said_though_the_mean_hardly_moves():
    old = scenes(120)
    new = noise(old)
    for row in range(0, len(old), 10):
        new[row] = np.repeat(np.rint(new[row].mean(2, keepdims=True)), 3, 2).astype(np.uint8)
    found = fe.compare(run_of(new), run_of(old), pairs="id", features=20, modes=1)
    assert "10 % of the generated set is gray, without color" in found.headline


def test_arrays_without_pictures_are_compared_in_their_space():
    rng = np.random.default_rng(0)
    ref = rng.normal(size=(N, 16)).astype(np.float32)
    gen = (ref + rng.normal(0, 0.05, ref.shape)).astype(np.float32)
    gen[[4, 40]] = rng.normal(size=(2, 16))
    found = judge_pairs(gen, ref)
    assert sorted(found.broken) == ["4", "40"]
    assert set(found.reasons.values()) == {"another sample"}
    assert list(found.measured) == ["distance"]


def test_the_table_has_a_row_for_each_pair():
    pytest.importorskip("pandas")
    table = compare(noise(OLD, 3)).table
    assert len(table) == N
    assert {"id", "psnr", "ssim", "ms_ssim", "distance", "broken"} <= set(table.columns)
    assert table.psnr.between(37, 40).all()


def test_a_comparison_that_is_stored_has_all_pairs(black, tmp_path):
    black.save(tmp_path / "a.h5")
    loaded = fe.load(tmp_path / "a.h5")
    assert all(np.isfinite(one.standard_error) for one in loaded.directions)
    assert set(loaded.by_id.broken) == BLACK
    assert loaded.by_id.measured == black.by_id.measured
    assert json.loads(black.to_json())["by_id"]["changed"] == black.by_id.changed


def test_the_page_shows_broken_pairs_first_and_has_each_anchor_once(black, tmp_path):
    black.to_html(tmp_path / "a.html")
    page = re.sub(r"(?s)<script.*?</script>", "", (tmp_path / "a.html").read_text())
    anchors = re.findall(r'\sid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert (
        page.index(">Broken pairs<") < page.index(">Is anything worse?<") < page.index("<summary>Kinds and directions")
    )
    assert page.index(">Broken pairs<") < page.index('<svg class="map'), "the largest difference is seen first"
    assert all(f">{name}<" in page for name in BLACK)


def test_two_runs_are_found_unasked_and_said():
    found = fe.compare(run_of(noise(OLD[:40])), run_of(OLD[:40]), features=20, modes=1)
    assert found.by_id is not None
    assert any("as two runs with the same seeds" in one for one in found.warnings)


UNPAIRED = {
    "names by chance": lambda: (run_of(scenes(60, seed=8)), run_of(OLD[:60])),
    "numbers of rows": lambda: (thumbnails(noise(OLD[:60])), thumbnails(OLD[:60])),
    "few common names": lambda: (
        run_of(noise(OLD[:60]), [f"{'new' if row % 2 else ''}{row:04d}.png" for row in range(60)]),
        run_of(OLD[:60]),
    ),
}


@pytest.mark.parametrize("case", UNPAIRED)
def test_two_sets_that_are_not_two_runs_are_not_paired(case):
    gen, ref = UNPAIRED[case]()
    assert sketch_sets({"gen": gen, "ref": ref}, Settings(features=20), Run()).pairing is None


def test_two_runs_whose_samples_are_in_groups_are_not_paired():
    sets = (run_of(one, prompt=[f"prompt {row // 3}" for row in range(60)]) for one in (noise(OLD[:60]), OLD[:60]))
    assert fe.compare(*sets, groups="prompt", features=20, modes=1).by_id is None


def test_an_id_that_one_set_lacks_is_named():
    found = fe.compare(run_of(OLD[:39]), run_of(OLD[:40]), pairs="id", features=20, modes=1)
    assert any("0039.png" in one for one in found.warnings)
    assert found.by_id.n == 39


def test_runs_again_need_pairs_by_id_and_the_same_ids():
    with pytest.raises(UsageError, match='pass pairs="id"'):
        fe.compare(run_of(scenes(seed=8)), run_of(OLD), again=[run_of(OLD)], features=20)
    with pytest.raises(UsageError, match="again must be a list of sets"):
        fe.compare(run_of(OLD), run_of(OLD), pairs="id", again="old2", features=20)
    other = run_of(OLD, [f"x{row}" for row in range(N)])
    with pytest.raises(DataError, match="again 1 has 0 ids in common with ref"):
        fe.compare(run_of(OLD), run_of(OLD), pairs="id", again=[other], features=20)


def test_progress_says_how_many_pairs_are_measured():
    seen = []
    run = fe.Run(progress=lambda *told: seen.append(told))
    judge_pairs(run_of(OLD[:40]), run_of(OLD[:40]), run=run)
    assert ("measure pairs", 40, 40) in seen


def test_a_floor_of_several_runs_is_of_the_ids_that_all_runs_have():
    ref, runs = run_of(OLD), [run_of(noise(OLD[:-2], 1, seed=2)), run_of(noise(OLD, 1, seed=3))]
    found = judge_pairs(run_of(noise(OLD[1:], 3), [f"{row:04d}.png" for row in range(1, N)]), ref, runs)
    assert (found.n, found.floor, found.broken) == (N - 1, 2, [])
    assert found.changed > 0.95


@pytest.mark.long
def test_images_of_a_prompt_that_became_alike_are_less_diverse():
    prompts = [f"prompt {row % 30}" for row in range(N)]
    new = [np.rint(0.6 * one + 0.4 * OLD[row % 30]).astype(np.uint8) for row, one in enumerate(OLD)]
    found = compare(new, prompt=prompts)
    assert any(one.what == "diversity" for one in found.worse), found.worse
    assert not any(one.what == "diversity" for one in compare(noise(OLD), prompt=prompts).worse)
