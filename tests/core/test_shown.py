"""Every public result has a short text, a notebook view, plain types and a data frame, from one base."""

import json
import sys
from dataclasses import replace

import pytest

import finc_eval as fe
from finc_eval.core import progress
from finc_eval.core.serialize import Shown
from finc_eval.demo import example_sets
from finc_eval.results import RESULTS, result_class

MAX_SHORT = 300
"""Characters of the first line of a short text."""


@pytest.fixture(scope="module")
def results(documents):
    """One result of every kind."""
    x, y = (rows[:, ::8] for rows in example_sets(200))
    table = fe.privacy.Table([fe.privacy.Category("kind", ("a", "b"))])
    settings = {"epsilon": 1, "ledger": None, "steps": 2, "count": 3}
    return [
        *documents.values(),
        documents["comparison"].directions[0],
        documents["comparison"].kinds[0],
        documents["scores"]["vendi"],
        fe.Sketch.reference(y, features=50),
        fe.EmbeddingSet(x, metadata={"kind": ["a"] * 200}),
        fe.privacy.synthesize_table({"kind": ["a", "b"] * 40}, table, **settings),
    ]


def test_every_type_of_result_is_among_them(results):
    assert {result_class(name) for name in RESULTS} <= {type(one) for one in results}


def test_a_result_has_a_short_text_of_at_most_ten_lines(results):
    for one in results:
        first, *rows = repr(one).split("\n")
        assert first.startswith(f"{type(one).__name__}(") and first.endswith(")") and len(first) < MAX_SHORT, first
        assert len(rows) <= 9 and all(row.startswith("  ") and len(row) <= 122 for row in rows), rows
        assert type(one).__repr__ is Shown.__repr__, "one mechanism for all"


def test_the_rows_of_a_short_text_are_those_that_count(results):
    comparison = results[0]
    rows = repr(comparison).split("\n")[1:]
    assert [row.split(" (")[0].strip() for row in rows] == [one.words for one in comparison.findings]
    assert {part for one in comparison.findings for part in one.parts} == {one.id for one in comparison.significant()}
    assert repr(fe.metrics(*example_sets(300), "vendi")).split("\n")[1].startswith("  vendi 18.4")


def test_a_short_text_of_many_rows_ends_with_an_ellipsis_and_hides_no_control_character(results):
    one = replace(results[0].findings[0], name="a\x1b[2J\nb" + "c" * 500)
    rows = repr(replace(results[0], findings=(one,) * 30)).split("\n")
    assert len(rows) == 10 and rows[-1] == "  …" and "many a\\u001b[2J b" in rows[1] and len(rows[1]) == 122


def test_a_result_has_a_view_in_notebooks_and_plain_types(results):
    for one in results:
        assert "<" in one._repr_html_()
        assert json.loads(json.dumps(one.to_dict())) == one.to_dict()


def test_a_result_has_a_data_frame(results, documents):
    pytest.importorskip("pandas")
    frames = {type(one).__name__: one.to_frame() for one in results}
    comparison, kinds = documents["comparison"], documents["kinds"]
    assert list(frames["Comparison"]["id"]) == [kind.id for kind in comparison.kinds]
    ends = frames["Comparison"][["interval.low", "interval.high"]]
    assert tuple(ends.iloc[0]) == comparison.kinds[0].interval
    label = kinds.kinds[0].set_with_most
    assert frames["Kinds"][f"shares.{label}.share"][0] == kinds.kinds[0].shares[label].share
    assert list(frames["Scores"]["key"]) == [score.key for score in documents["scores"]]
    assert set(frames["Audit"]["block"]) == {"copying", "attacks"}
    assert list(frames["PrivateComparison"]["name"]) == [one.name for one in documents["private-comparison"].scores]
    assert frames["PrivateScore"]["name"][0] == "all"
    assert len(frames["EmbeddingSet"]) == 200 and set(frames["SyntheticTable"].columns) == {"kind"}
    assert all(len(frame.columns) for frame in frames.values())
    of_kinds = frames["Comparison"]
    assert list(of_kinds["significant"]) == [kind.p_value <= 0.05 for kind in comparison.kinds]
    assert {True, False} == {*of_kinds["significant"]}


def test_without_pandas_the_sentence_says_what_to_do(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fe.UsageError, match=r"to_frame needs pandas: pip install pandas, or use to_dict\(\)"):
        results[0].to_frame()


def test_notebooks_draw_a_bar_for_a_work_or_a_stage_and_other_programs_none(monkeypatch):
    drawn, described = [], []

    class Bar:
        def __init__(self, total, desc, leave):
            assert not leave  # a bar that is done makes room for the next
            self.n, self.total = 0, total
            drawn.append((desc, total))

        def set_description(self, text, refresh):
            described.append(text)

        def update(self, more):
            self.n += more

        def close(self):
            drawn.append(("closed", self.n))

    tell = progress.NotebookBars()
    tell("sketch", 0, 2)
    assert drawn == []
    monkeypatch.setitem(sys.modules, "IPython", type("M", (), {"get_ipython": lambda: type("S", (), {"kernel": 1})()}))
    monkeypatch.setitem(sys.modules, "tqdm.auto", type("M", (), {"tqdm": Bar}))
    for done in (0, 1, 2):
        tell("sketch", done, 2)
    assert drawn == [("sketch", 2), ("closed", 2)]
    plan = progress.Plan(tell, ["sketch", "score"])
    for stage, done in (("sketch", 0), ("sketch", 2), ("score", 0), ("score", 2)):
        plan(stage, done, 2)
    assert drawn[2:] == [("1 of 2: sketch", progress.WHOLE), ("closed", progress.WHOLE)]
    assert described[-1] == "2 of 2: score"
    plan("sketch", 1, 2)  # interrupted here
    progress.Plan(tell, ["sketch", "score"])("sketch", 0, 2)
    assert drawn[-2:] == [("closed", progress.WHOLE / 4), ("1 of 2: sketch", progress.WHOLE)]
    assert fe.Run().progress is progress.automatic


def test_columns_of_every_frame_are_named_alike(documents):
    pytest.importorskip("pandas")
    for name, result in documents.items():
        columns = [*result.to_frame().columns]
        nested = [one for one in columns for other in columns if other.startswith(f"{one}.")]
        assert not [one for one in nested if one.endswith("interval")], name
        tested = [one for one in columns if one.rpartition(".")[2] == "p_value"]
        assert {one.removesuffix("p_value") + "significant" for one in tested} <= {*columns}, name
