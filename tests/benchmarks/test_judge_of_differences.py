"""The judge of the benchmark of differences: what is found, with which side, share and words, and what is false."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from _differences.cases import FAULTS, all_cases, words_of_class
from _differences.judge import Planted, judge, skill
from differences import judge_file, means_of

from finc_eval.core.errors import DataError

SIZES = {"gen": 100, "ref": 100}


def ids(places, side="gen"):
    return [f"{side}/{place:04d}.png" for place in places]


GRAY = Planted("gen", tuple(ids(range(20))), 0.2, "gr[ae]y", follows="pale")
LOST = Planted("ref", tuple(ids(range(30, 45), "ref")), 0.15, "koala")
SAID = {"side": "gen", "ids": ids(range(20)), "interval": [0.12, 0.29], "words": "a fifth is gray", "p_value": 0.01}
KOALA = {"side": "ref", "ids": ids(range(30, 42), "ref"), "share": 0.16, "words": "lacks koala"}
SHUFFLED = np.random.default_rng(1).permutation(100)
EVERYTHING = {"side": "gen", "ids": [*ids(SHUFFLED), *ids(SHUFFLED, "ref")], "share": 0.2, "words": "gray"}
OTHERS = {"side": "gen", "ids": ids(range(60, 80)), "share": 0.2, "words": "noisy"}

CASES = {
    # name: planted, answer, (found, side, share, words, clean, consequences, false)
    "perfect": ([GRAY], [SAID], (1, 1, 1, 1, 1, 0, 0)),
    "empty": ([GRAY], [], (0, 0, 0, 0, 1, 0, 0)),
    "everything": ([GRAY], [EVERYTHING], (0, 0, 0, 0, 0, 0, 1)),
    "the wrong side": ([GRAY], [SAID | {"side": "ref"}], (1, 0, 0, 1, 1, 0, 0)),
    "a side where each set has its own": (
        [replace(GRAY, side="either")],
        [SAID | {"side": "ref"}],
        (1, 1, 1, 1, 1, 0, 0),
    ),
    "another share": ([GRAY], [SAID | {"interval": [0.3, 0.5]}], (1, 1, 0, 1, 1, 0, 0)),
    "a share without an interval": ([GRAY], [{**SAID, "interval": None, "share": 0.27}], (1, 1, 1, 1, 1, 0, 0)),
    "any share": ([GRAY], [SAID | {"interval": [0, 1]}], (1, 1, 0, 1, 1, 0, 0)),
    "ten others first": ([GRAY], [*[OTHERS] * 10, SAID], (0, 0, 0, 0, 0, 1, 10)),
    "nine others first": ([GRAY], [*[OTHERS] * 9, SAID], (1, 1, 1, 1, 0, 0, 9)),
    "no share": ([GRAY], [{**SAID, "interval": None}], (1, 1, 0, 1, 1, 0, 0)),
    "other words": ([GRAY], [SAID | {"words": "pale"}], (1, 1, 1, 0, 1, 0, 0)),
    "the cause, and what follows": ([GRAY], [SAID, SAID | {"words": "pale"}], (1, 1, 1, 1, 1, 1, 0)),
    "the cause, and another": ([GRAY], [SAID, OTHERS], (1, 1, 1, 1, 0, 0, 1)),
    "something else": ([GRAY], [OTHERS], (0, 0, 0, 0, 0, 0, 1)),
    "the sets differ somehow": ([GRAY], [{"side": "gen", "ids": []}], (0, 0, 0, 0, 1, 0, 0)),
    "not claimed": ([GRAY], [SAID | {"p_value": 0.2}], (0, 0, 0, 0, 1, 0, 0)),
    "one of two": ([GRAY, LOST], [SAID], (0.5, 0.5, 0.5, 0.5, 1, 0, 0)),
    "two in another order": ([GRAY, LOST], [KOALA, SAID], (1, 1, 1, 1, 1, 0, 0)),
    "two as one": ([GRAY, LOST], [SAID | {"ids": SAID["ids"] + KOALA["ids"]}], (0.5, 0.5, 0.5, 0.5, 1, 0, 0)),
    "nothing of equal sets": ([], [], (None, None, None, None, 1, 0, 0)),
    "something of equal sets": ([], [OTHERS], (None, None, None, None, 0, 0, 1)),
    "something of equal sets, without samples": ([], [{"side": "gen"}], (None, None, None, None, 0, 0, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_answer_is_judged(case):
    planted, answer, expected = CASES[case]
    verdict = judge(planted, answer, SIZES)
    parts = (verdict.found, verdict.side, verdict.share, verdict.words, verdict.clean)
    assert (*parts, verdict.consequences, verdict.false) == expected


HALF = Planted("gen", tuple(ids(range(50))), 0.5, "gr[ae]y")


@pytest.mark.parametrize("order", [("gen", "ref"), ("ref", "gen"), ("gen",)])
def test_a_list_of_everything_finds_nothing_in_any_order_of_the_sets(order):
    everything = [name for side in order for name in ids(SHUFFLED, side)]
    verdict = judge([HALF], [{"side": "gen", "ids": everything}], SIZES)
    assert (verdict.found, verdict.clean) == (0, 0)


def test_what_follows_in_place_of_the_cause_is_found_without_its_words():
    verdict = judge([GRAY], [SAID | {"words": "a fifth is pale"}], SIZES)
    assert (verdict.found, verdict.words) == (1, 0)


def test_the_skill_of_a_list_is_0_by_chance_and_1_for_a_perfect_one():
    rng = np.random.default_rng(0)
    drawn = [skill(ids(rng.permutation(100)), GRAY, SIZES) for _ in range(200)]
    assert abs(np.mean(drawn)) < 0.1
    assert skill(ids(range(12)), GRAY, SIZES) == pytest.approx(1), "some of the planted samples, and no others"
    assert skill(ids(range(2)), GRAY, SIZES) < 0.5, "two samples are too few to show it"
    assert skill(ids([*range(50, 55), *range(20)]), GRAY, SIZES) < skill(ids([*range(20), *range(50, 55)]), GRAY, SIZES)


def test_cases_are_the_same_for_a_seed_and_the_truth_is_what_was_changed(tmp_path):
    draw = all_cases(0)["digits 0"]
    first, again, other = draw(), draw(), all_cases(1)["digits 0"]()
    assert first.truth == again.truth != other.truth
    (fault,) = first.planted
    assert len(fault.ids) == round(fault.share * len(first.sets["gen"])) == 36
    bright = {f"gen/{n:04d}.png" for n, image in enumerate(first.sets["gen"]) if np.asarray(image).mean() > 128}
    assert bright == set(fault.ids), "inverted digits are mostly white"
    assert all(np.array_equal(*pair) for pair in zip(first.sets["ref"], again.sets["ref"], strict=True))


def test_the_answer_of_another_tool_is_judged_from_files(tmp_path):
    case = all_cases(0)["digits 0"]()
    (tmp_path / "truth.json").write_text(
        json.dumps({"digits-0": case.truth, "digits-5": all_cases(0)["digits 5"]().truth})
    )
    answer = [{"side": "gen", "ids": list(case.planted[0].ids), "share": 0.12, "words": "negative pictures"}]
    (tmp_path / "answer.json").write_text(json.dumps({"digits-0": answer}))
    verdicts = judge_file(tmp_path, tmp_path / "answer.json")
    assert verdicts["digits-0"].scores() == dict.fromkeys(("found", "side", "share", "words", "clean"), 1.0)
    assert verdicts["digits-5"].clean == 1


WORDS = {
    # what is planted: words that people say, words that they do not mean by it
    "king_penguin": (["more penguins"], ["a million birds"]),
    "tarantula": (["spiders are missing"], ["insects"]),
    "lion": (["fewer lions"], ["a million", "dandelions"]),
    "tabby": (["a tabby", "cats"], ["one category"]),
    "circle": (["round things", "a disc"], ["another background"]),
    "gray": (["greyscale", "images without color", "desaturated"], ["blurred"]),
    "upside down": (["flipped", "rotated by 180 degrees"], ["gray"]),
    "one picture": (["identical pictures", "duplicates", "the same image"], ["gray"]),
}


@pytest.mark.parametrize("planted", WORDS)
def test_other_words_for_the_same_thing_are_accepted(planted):
    pattern = FAULTS[planted].words if planted in FAULTS else words_of_class(planted)
    accepted, refused = WORDS[planted]
    assert all(re.search(pattern, text, re.IGNORECASE) for text in accepted)
    assert not any(re.search(pattern, text, re.IGNORECASE) for text in refused)


def claim(**changes):
    return {"shapes-0": [{"side": "gen", "ids": ["gen/0004.png"]} | changes]}


REFUSED = {
    # name: answer, what the message names
    "a case that is not there": ({"shapes 0": []}, "shapes 0"),
    "a sample without its set": (claim(ids=["0004.png"]), "0004.png"),
    "a sample that is not there": (claim(ids=["gen/0150.png"]), "gen/0150.png"),
    "one sample, not a list": (claim(ids="gen/0004.png"), "ids"),
    "another name of a set": (claim(side="generated"), "generated"),
    "a share in percent": (claim(share=11), "11"),
    "an interval of one end": (claim(interval=[0.1]), "interval"),
    "a p-value that is no number": (claim(p_value=float("nan")), "p_value"),
    "a part that is not known": (claim(pvalue=0.2), "pvalue"),
    "a list of cases": ([], "dictionary"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_answer_of_another_form_is_refused(case, tmp_path):
    answer, named = REFUSED[case]
    truth = {"extractor": "pixels", "sizes": {"gen": 150, "ref": 150}, "planted": []}
    (tmp_path / "truth.json").write_text(json.dumps({"shapes-0": truth}))
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    with pytest.raises(DataError, match=re.escape(named)):
        judge_file(tmp_path, tmp_path / "answer.json")


def test_means_are_of_the_cases_that_have_a_number():
    verdicts = [judge([GRAY], [SAID], SIZES), judge([GRAY], [], SIZES), judge([], [OTHERS], SIZES)]
    means = means_of(verdicts)
    assert (means["found"], means["words"], means["clean"]) == (0.5, 0.5, pytest.approx(2 / 3, abs=0.01))
    assert (means["equal sets"], means["cases"]) == ("1 of 1", 3)
