"""Tables of scores in all forms: without a heading, as JSON of names, in several files, with a benchmark's number."""

import json

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.files.columns_in import parquet_columns
from finc_eval.judges.scores import read_scores
from finc_eval.judges.tables import NamedColumns
from finc_eval.judges.votes import read_votes

N = 30
IDS = [f"{number:05d}.png" for number in range(N)]
MODELS = ["one", "two"]


def drawn(seed, n=N):
    return np.random.default_rng(seed).normal(size=n).round(6).tolist()


def lines(between, *columns):
    return "".join(between.join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def write(place, name, content):
    place = place / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(place)


WITHOUT_HEADING = {
    "tab": lambda own: lines("\t", IDS, own),
    "comma": lambda own: lines(",", IDS, own),
    "semicolon": lambda own: lines(";", IDS, own),
    "score first": lambda own: lines(",", own, IDS),
    "numbers of rows": lambda own: lines(",", range(N), own),
    "scores alone": lambda own: lines(",", own),
    "a first score that is missing": lambda own: f"x.png,nan\n{lines(',', IDS, own)}",
    "empty lines": lambda own: "\n" + lines(",", IDS, own) + "\n",
    "a mark of the order of bytes": lambda own: "\ufeff" + lines(",", IDS, own),
    "exponents": lambda own: lines(",", IDS, [f"{one:e}" for one in own]),
}


@pytest.mark.parametrize("form", WITHOUT_HEADING)
def test_a_table_without_a_heading_is_read_whole(tmp_path, form):
    files = {
        name: write(tmp_path, f"{name}.txt", WITHOUT_HEADING[form](drawn(seed))) for seed, name in enumerate(MODELS)
    }
    scores = read_scores(files, MODELS)
    for seed, name in enumerate(MODELS):
        assert [*scores[name].judges] == ["score"]
        values = scores[name].judges["score"]
        assert np.allclose(values[np.isfinite(values)], drawn(seed))


@pytest.mark.parametrize(
    ("names", "judge"),
    [
        (("one/niqe.txt", "two/niqe.txt"), "niqe"),
        (("one_niqe.tsv", "two_niqe.tsv"), "niqe"),
        (("one.csv", "two.csv"), "score"),
        (("a.csv", "b.csv"), "score"),
    ],
)
def test_a_judge_without_a_name_is_called_as_its_files_are(tmp_path, names, judge):
    files = {model: write(tmp_path, name, lines(",", IDS, drawn(1))) for model, name in zip(MODELS, names, strict=True)}
    assert {name for one in read_scores(files, MODELS).values() for name in one.judges} == {judge}


@pytest.mark.parametrize(
    "text",
    [
        lines(",", IDS, drawn(1), drawn(2)),
        lines(",", IDS, ["a dog"] * N, drawn(2)),
        lines(",", drawn(1), drawn(2)),
        lines(",", IDS, drawn(1)) + "x.png,high\n",
    ],
)
def test_a_table_without_a_heading_that_does_not_say_its_judge_is_refused(tmp_path, text):
    with pytest.raises(DataError, match=r"has no heading \(its first row is .*\): write one, such as id,clip,prompt"):
        read_scores({"one": write(tmp_path, "one.csv", text)}, MODELS)


def test_a_number_in_a_heading_with_names_is_a_name(tmp_path):
    text = "id,1,clip\n" + lines(",", IDS, drawn(1), drawn(2))
    assert [*read_scores({"one": write(tmp_path, "one.csv", text)}, MODELS)["one"].judges] == ["1", "clip"]


def test_a_frame_that_lost_its_first_row_in_the_heading_is_refused_and_one_without_a_heading_read():
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame({0: IDS, 1: drawn(1)})
    assert read_scores({"one": whole}, MODELS)["one"].judges["score"].tolist() == drawn(1)
    with pytest.raises(DataError, match=r"a column called '0.345', which is data: read the table without a heading"):
        read_scores({"one": whole.rename(columns={0: "00000.png", 1: "0.345"})}, MODELS)


@pytest.mark.parametrize(
    ("value", "judges"),
    [
        (dict(zip(IDS, drawn(1), strict=True)), ["score"]),
        ({**dict(zip(IDS, drawn(1), strict=True)), "x.png": None}, ["score"]),
        ({one: {"clip": value, "aes": 2 * value} for one, value in zip(IDS, drawn(1), strict=True)}, ["clip", "aes"]),
        ({"id": IDS, "clip": drawn(1)}, ["clip"]),
        (drawn(1), ["score"]),
    ],
)
def test_json_is_read_as_python_takes_it(tmp_path, value, judges):
    for form in (value, write(tmp_path, "one.json", value)):
        one = read_scores({"one": form}, MODELS)["one"]
        assert [*one.judges] == judges and one.judges[judges[0]][:N].tolist() == drawn(1)
        assert one.ids[:N] == tuple(IDS) if isinstance(value, dict) else one.ids[0] == "0"


def vbench(dimension, seed, ids=IDS, value=None):
    own = drawn(seed)
    videos = [{"video_path": f"v/{id}", "video_results": one} for id, one in zip(ids, own, strict=False)]
    return {dimension: [float(np.mean(own)) if value is None else value, videos]}


SEVERAL = {
    "dimensions": (vbench("motion", 1), vbench("subject", 2)),
    "dimensions of other videos": (vbench("motion", 1, IDS[:20]), vbench("subject", 2, IDS[10:])),
    "csv beside json lines": (
        "id,motion\n" + lines(",", IDS, drawn(1)),
        "".join(json.dumps({"id": id, "subject": one}) + "\n" for id, one in zip(IDS, drawn(2), strict=True)),
    ),
    "another order": (
        "id,motion\n" + lines(",", IDS, drawn(1)),
        "id,subject\n" + lines(",", IDS[::-1], drawn(2)[::-1]),
    ),
    "prompts": ("prompt,motion\n" + lines(",", IDS, drawn(1)), "prompt,subject\n" + lines(",", IDS, drawn(2))),
    "rows": ("motion\n" + lines(",", drawn(1)), "subject\n" + lines(",", drawn(2))),
    "files whose names are the judges": (lines(",", IDS, drawn(1)), lines(",", IDS, drawn(2))),
}


@pytest.mark.parametrize("form", SEVERAL)
def test_several_files_of_a_model_are_one_table(tmp_path, form):
    names = ("motion", "subject")
    files = [write(tmp_path, f"{name}.any", text) for name, text in zip(names, SEVERAL[form], strict=True)]
    one = read_scores({"one": files}, MODELS)["one"]
    assert [*one.judges] == [*names]
    for seed, name in enumerate(names, start=1):
        values = one.judges[name][np.isfinite(one.judges[name])]
        assert np.isin(drawn(seed)[: len(values)], values).all()
    if "other" not in form:
        assert np.allclose(one.judges["subject"], drawn(2))


def test_parts_of_one_judge_are_joined_and_what_the_parts_state_is_dropped(tmp_path):
    files = [write(tmp_path, f"{n}.json", vbench("motion", n, ids)) for n, ids in enumerate((IDS[:15], IDS[15:]))]
    one = read_scores({"one": files}, MODELS)["one"]
    assert one.n == N and np.isfinite(one.judges["motion"]).all() and one.stated == {}


@pytest.mark.parametrize("turned", [False, True])
def test_two_scores_of_one_sample_are_refused_with_both(tmp_path, turned):
    texts = ["id,clip\n" + lines(",", IDS, own) for own in (drawn(1), [*drawn(1)[:3], 9.0, *drawn(1)[4:]])]
    files = [write(tmp_path, name, text) for name, text in zip(("a.csv", "b.csv"), texts, strict=True)]
    files = files[::-1] if turned else files
    values = [f"{drawn(1)[3]:g}", "9"]
    first, second = values[::-1] if turned else values
    with pytest.raises(DataError, match=rf"gives clip {first} to '00003.png' of one, and .* {second} \(1 such\)"):
        read_scores({"one": files}, MODELS)


@pytest.mark.parametrize(
    "texts",
    [
        ("id,clip\nx,1\ny,2\n", "prompt,aes\nx,1\ny,2\n"),
        ("clip\n1\n2\n", "aes\n1\n2\n3\n"),
        ("id,clip\nx,1\ny,2\n", "aes\n1\n2\n"),
        ("prompt,clip\nx,1\nx,2\n", "prompt,aes\nx,1\nx,2\n"),
    ],
)
def test_files_that_cannot_be_joined_are_refused(tmp_path, texts):
    files = [write(tmp_path, f"{n}.csv", text) for n, text in enumerate(texts)]
    with pytest.raises(DataError, match=r"name their samples in unlike ways|several times without a seed"):
        read_scores({"one": files}, MODELS)


def test_tables_with_a_column_model_may_be_several_files(tmp_path):
    text = {
        judge: f"model,id,{judge}\n" + "".join(lines(",", [name] * N, IDS, drawn(seed)) for name in MODELS)
        for seed, judge in enumerate(("clip", "aes"))
    }
    files = [write(tmp_path, f"{judge}.csv", own) for judge, own in text.items()]
    scores = read_scores(files, MODELS)
    assert all([*scores[name].judges] == ["clip", "aes"] for name in MODELS)
    mixed = read_scores([{"one": write(tmp_path, "more.csv", "id,hps\n" + lines(",", IDS, drawn(3)))}, *files], MODELS)
    assert {*mixed["one"].judges} == {"hps", "clip", "aes"} and {*mixed["two"].judges} == {"clip", "aes"}


def boards(scores, ids=IDS, **options):
    rng = np.random.default_rng(0)
    sets = {name: fe.EmbeddingSet(rng.normal(size=(len(ids), 4)), ids=tuple(ids)) for name in MODELS}
    return fe.leaderboard(sets, rng.normal(size=(60, 4)), scores=scores, **options)


def test_what_a_benchmark_states_stands_beside_the_number_and_a_difference_is_said(tmp_path):
    ids = [f"a thing {chr(97 + number // 5)}-{number % 5}.mp4" for number in range(N)]
    files = {
        name: write(
            tmp_path, f"{name}.json", {**vbench("motion", seed, ids, value), **vbench("subject", 7 + seed, ids)}
        )
        for seed, (name, value) in enumerate(zip(MODELS, (0.9, None), strict=True))
    }
    board = boards(files, ids)
    found = {(one.judge, one.name): one.reported for one in board.scores}
    assert found["motion", "one"] == 0.9 and found["subject", "two"] == pytest.approx(np.mean(drawn(8)))
    said = [one for one in board.warnings if "the file's own number" in one]
    assert len(said) == 1 and said[0].startswith("motion: the file's own number is 0.9 for one, ")
    assert "Scores as benchmarks state them" in board.to_markdown()
    assert json.loads(board.to_json())["scores"][0]["reported"] is not None


def test_geneval_is_the_mean_of_its_tasks(tmp_path):
    def rows(right):
        for number in range(N):
            tag = "single_object" if number < 24 else "counting"
            yield {"filename": f"o/{number:05d}.png", "tag": tag, "prompt": f"p {number}", "correct": right(number)}

    texts = {
        "one": "".join(json.dumps(row) + "\n" for row in rows(lambda number: number < 24)),
        "two": "".join(json.dumps(row) + "\n" for row in rows(lambda number: number % 2 == 0)),
    }
    board = boards({name: write(tmp_path, f"{name}.jsonl", text) for name, text in texts.items()})
    assert {one.name: (one.value, one.reported) for one in board.scores} == {"one": (0.5, 0.5), "two": (0.5, 0.5)}
    assert all(
        one.interval[0] < 0.5 < one.interval[1] for one in board.scores
    )  # one has tasks all right, and all wrong


@pytest.mark.parametrize("turn", ["names", "numbers"])
def test_scores_of_other_samples_are_refused_before_anything_is_embedded(tmp_path, turn, monkeypatch):
    from PIL import Image

    import finc_eval.leaderboards.board as board

    monkeypatch.setattr(board, "measure_models", lambda *_, **__: pytest.fail("embedded"))
    for name in MODELS:
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", (16, 16), (number, 0, 0)).save(tmp_path / name / f"{number}.png")
    sets = {name: str(tmp_path / name) for name in MODELS}
    if turn == "numbers":
        sets = {name: np.zeros((3, 4)) for name in MODELS}
    tables = {name: {"id": ["a.png", "b.png", "c.png"], "clip": [1.0, 2.0, 4.0]} for name in MODELS}
    with pytest.raises(DataError, match=r"no id of scores of one is a sample of one \('a.png' is not '0"):
        fe.leaderboard(sets, sets["one"], scores=tables)


def test_scores_of_other_samples_are_refused_where_only_the_set_knows_its_names():
    with pytest.raises(DataError, match="no id of scores of one is a sample of one"):
        boards({name: {"id": [f"x{number}" for number in range(N)], "clip": drawn(1)} for name in MODELS})


def test_a_table_of_parquet_is_read_by_columns_and_bounded_by_what_it_states(tmp_path, monkeypatch):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "one.parquet"
    parquet.write_table(arrow.table({"id": IDS, "clip": drawn(1), "boxes": [[1]] * N}), path)
    one = read_scores({"one": path}, MODELS)["one"]
    assert one.ids == tuple(IDS) and {name: own.tolist() for name, own in one.judges.items()} == {"clip": drawn(1)}
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "5kB")
    with pytest.raises(DataError, match=r"the list of 30 rows takes 10.5 kB when decoded, above the 5 kB"):
        read_scores({"one": path}, MODELS)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1xxxx", "cannot be read as a .parquet file"),
        (b"id,clip", "cannot be read as a .parquet file"),
        (None, "does not exist"),
    ],
)
def test_what_is_not_a_table_of_parquet_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "one.parquet"
    if content is not None:
        path.write_bytes(content)
    for read in (lambda: read_scores({"one": path}, MODELS), lambda: read_votes(path, MODELS)):
        with pytest.raises(DataError, match=said):
            read()


def test_a_text_of_too_many_lines_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = write(tmp_path, "one.csv", "id,clip\n" + lines(",", IDS, drawn(1)))
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "9kB")
    with pytest.raises(DataError, match=r"the list of 31 lines takes 10.8 kB when decoded"):
        read_scores({"one": path}, MODELS)


def test_a_file_that_is_given_twice_does_not_move_the_columns_that_another_lacks():
    first = NamedColumns("a", {"prompt": ["p", "q"], "length": [1, 2]})
    joined = NamedColumns.joined([first, NamedColumns("b", {"prompt": ["r"]}), first])
    assert joined.columns == {"prompt": ["p", "q", "r", "p", "q"], "length": [1, 2, None, 1, 2]}
    places = [joined.place(row) for row in range(5)]
    assert places == ["row 1 of a", "row 2 of a", "row 1 of b", "row 1 of a", "row 2 of a"]


def test_a_cell_that_is_no_number_is_named_by_its_row_in_a_table_of_all_models(tmp_path):
    rows = [(MODELS[row % 2], row, "bad" if row == 13 else row / 7) for row in range(60)]
    path = write(tmp_path, "all.csv", "model,id,clip\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    with pytest.raises(DataError, match=r"^row 15 of .*all.csv has clip 'bad', not a number: correct it$"):
        read_scores([path], MODELS)


def test_categories_of_parquet_share_their_texts(tmp_path):
    """A file of kilobytes would otherwise take a copy of its longest text for each row."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    numbers = arrow.array([0, 1, None, 0] * 10, arrow.int32())
    column = arrow.DictionaryArray.from_arrays(numbers, arrow.array(["y" * 1000, "z"]))
    parquet.write_table(arrow.table({"id": [*range(40)], "tag": column}), tmp_path / "a.parquet")
    tags = parquet_columns(tmp_path / "a.parquet", "a")["tag"]
    assert tags == column.to_pylist()
    assert len({id(tag) for tag in tags}) == 3
