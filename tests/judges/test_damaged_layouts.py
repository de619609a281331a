"""Result files that are almost right: one sentence that names the place, or numbers, and never a traceback."""

import copy
import json

import numpy as np
import pytest
from _turns import of_this_turn

from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.judges.scores import read_scores
from finc_eval.judges.votes import read_votes
from finc_eval.leaderboards.judged import Judgments

N = 14


def drawn(seed=0):
    return np.random.default_rng(seed).uniform(0, 1, N).round(4).tolist()


LAYOUTS = {
    "VBench": {
        dimension: [0.5, [{"video_path": f"v/a thing-{n}.mp4", "video_results": one} for n, one in enumerate(drawn(k))]]
        for k, dimension in enumerate(("color", "scene"))
    },
    "GenEval 2": [[one, 1 - one, 0.5] for one in drawn()],
    "GenEval 2, named": {
        "method": "gm",
        "results": [{"sample_id": n, "prompt": f"p {n}", "atom_scores": [one, 0.5]} for n, one in enumerate(drawn())],
    },
    "HPS": {"anime": drawn(1), "photo": drawn(2)},
    "HPS of a model": {"m": {"anime": drawn(1), "photo": drawn(2)}},
    "ImageReward": [{"id": n, "prompt": f"p {n}", "rewards": [[one], [0.5]]} for n, one in enumerate(drawn())],
    "T2I-CompBench": [{"question_id": n, "answer": f"{one:.4f}"} for n, one in enumerate(drawn())],
    "names": {f"{n}.png": one for n, one in enumerate(drawn())},
    "columns": {"id": [f"{n}.png" for n in range(N)], "clip": drawn(1)},
    "rows": [{"id": f"{n}.png", "prompt": f"p {n}", "seed": n, "clip": one} for n, one in enumerate(drawn())],
}
LINES = {
    "GenEval": [
        {"filename": f"{n}.png", "tag": "color" if n % 2 else "two", "prompt": f"p {n}", "correct": one > 0.5}
        for n, one in enumerate(drawn())
    ],
    "lmms-eval": [
        {"doc_id": n, "filtered_resps": ["y"], "input": f"What is {n}?", "doc": {"prompt": f"p {n}"}, "score": one}
        for n, one in enumerate(drawn())
    ],
    "lines": [{"id": f"{n}.png", "model": "one", "clip": one} for n, one in enumerate(drawn())],
}
VALUES = (
    None,
    "",
    "x",
    "nan",
    0,
    -1,
    2**62,
    10**400,
    1.7e308,
    -1.7e308,
    float("inf"),
    float("nan"),
    True,
    [],
    [[]],
    {},
)


def places(value, path=()):
    """Yield the paths of all values within lists and tables, but few of equal ones."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        if not isinstance(key, int) or key in (0, 6):
            yield from places(one, (*path, key))


def forged(value, path, new):
    found = copy.deepcopy(value)
    one = found
    for key in path[:-1]:
        one = one[key]
    if new is ...:
        del one[path[-1]]
    else:
        one[path[-1]] = new
    return found


def text_of(value, is_lines):
    return "".join(json.dumps(one) + "\n" for one in value) if is_lines else json.dumps(value)


def judged(path):
    """Read scores as a board does, up to its numbers."""
    Judgments.read(
        {"one": str(path), "two": {"id": ["0.png", "1.png"], "other": [0.5, 0.7]}}, None, ["one", "two"], ()
    ).results(0)


@pytest.mark.parametrize("layout", [*LAYOUTS, *LINES])
def test_no_forged_value_of_a_layout_ends_in_a_traceback(tmp_path, layout):
    """Of the values of each place, each turn has a third."""
    value, is_lines = LAYOUTS.get(layout) or LINES[layout], layout in LINES
    path, refused = tmp_path / "results.any", 0
    cases = [(place, new) for place in places(value) if place for new in (..., *VALUES)]
    for place, new in of_this_turn(cases, 3):
        path.write_text(text_of(forged(value, place, new), is_lines))
        try:
            judged(path)
        except FincEvalError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 1000
    assert refused > 1


@pytest.mark.parametrize(
    ("layout", "place", "new", "said"),
    [
        ("GenEval", (6, "filename"), ..., "row 7 of .* lacks filename"),
        ("GenEval", (6, "correct"), None, "row 7 of .* lacks correct"),
        ("ImageReward", (6, "rewards"), ..., "row 7 of .* lacks rewards"),
        ("ImageReward", (6, "rewards"), ["x"], "row 7 of .* has a reward 'x', not a number"),
        ("lmms-eval", (6, "doc_id"), ..., "row 7 of .* lacks doc_id"),
        ("lmms-eval", (6, "score"), 10**400, r"row 7 of .* has score 1000.*, beyond 1e\+50"),
        ("VBench", ("color", 1, 6, "video_path"), ..., "video 7 of color in .* lacks video_path"),
        ("VBench", ("color", 1, 6, "video_results"), "x", "video 7 of color in .* has video_results 'x', not a number"),
        ("GenEval 2", (6, 1), "x", "prompt 7 of .* has an atom's score 'x', not a number"),
        ("GenEval 2", (6,), [], "prompt 7 of .* lacks atom_scores"),
        ("GenEval 2, named", ("results", 6, "atom_scores"), ..., "prompt 7 of .* lacks atom_scores"),
        ("HPS", ("photo", 6), "x", "score 7 of photo in .* has the value 'x', not a number"),
        ("HPS", ("photo", 6), 1.7e308, r"score 7 of photo in .* has the value 1.7e\+308, beyond 1e\+50"),
        ("T2I-CompBench", (6, "question_id"), ..., "row 7 of .* lacks question_id"),
        ("T2I-CompBench", (6, "answer"), "yes", "row 7 of .* has answer 'yes', not a number"),
        ("rows", (6, "clip"), 10**400, r"row 7 of .* has clip 1000.*, beyond 1e\+50"),
        ("lines", (6,), 5, "row 7 of .* is 5, not a row of named values"),
    ],
)
def test_a_sentence_names_the_place_of_what_is_wrong(tmp_path, layout, place, new, said):
    value, is_lines = LAYOUTS.get(layout) or LINES[layout], layout in LINES
    path = tmp_path / "results.any"
    path.write_text(text_of(forged(value, place, new), is_lines))
    with pytest.raises(DataError, match=said):
        read_scores({"one": str(path)} if layout != "lines" else str(path), ["one"])


def test_whole_numbers_that_python_does_not_write_are_refused():
    with pytest.raises(DataError, match=r"row 2 of scores of one has clip a number of thousands of digits"):
        read_scores({"one": {"id": ["x", "y"], "clip": [1, 10**5000]}}, ["one"])


@pytest.mark.parametrize("value", [one for one in VALUES if not isinstance(one, dict)], ids=repr)
@pytest.mark.parametrize("column", ["prompt", "left", "right", "winner", "voter"])
def test_no_forged_vote_ends_in_a_traceback(column, value):
    rows = [{"prompt": f"p{n}", "left": "a", "right": "b", "winner": "a", "voter": "v"} for n in range(5)]
    rows[3][column] = value
    try:
        read_votes(rows, ["a", "b"])
    except FincEvalError as error:
        assert "\n" not in str(error)
