"""Every public result has a short text, a notebook view, plain types and a data frame, from one base."""

import json
import sys

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core import progress
from finc_eval.core.shown import Shown
from finc_eval.demo import example_sets
from finc_eval.kahm.membership import membership_score
from finc_eval.report import RESULTS, result_class

MAX_SHORT = 300
"""Characters of a short text."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One result of every kind."""
    gen, ref = example_sets(400)
    x, y = gen[:200], ref[:200]
    comparison = fe.compare(x, y, features=50)
    ledger = fe.privacy.Ledger.create(tmp_path_factory.mktemp("l") / "l", epsilon=1, delta=1e-5)
    private = fe.privacy.release_sketch(y, public=ref[200:], epsilon=1, ledger=ledger)
    scores = fe.evaluate(x, y, "vendi")
    table = fe.privacy.Table([fe.privacy.Category("kind", ("a", "b"))])
    settings = {"epsilon": 1, "ledger": None, "steps": 2, "count": 3}
    return [
        comparison,
        comparison.modes[0],
        fe.compare_models([x, y], features=50),
        fe.compare_methods(x, y, "finc", features=50),
        fe.sweep(x, y, "rho", [1], features=50),
        fe.compare_releases(comparison, comparison, alpha=1 - 1e-9),
        fe.kinds([x, y], levels=(5,), level=5),
        fe.leaderboard([x, gen[200:]], y, level=5),
        fe.gate(x, y, ref[200:], {"kinds": {"lose": 0.5, "level": 5}}),
        scores,
        scores["vendi"],
        fe.audit(gen, ref[:200], ref[200:]),
        fe.evaluate_generator(x[:60], y[:60], features=20),
        membership_score(np.arange(1.0, 40), np.arange(2.0, 50), permutations=19),
        private.score(x),
        private.compare({"a": x, "b": gen[200:]}),
        private,
        fe.Sketch.reference(y, features=50),
        fe.EmbeddingSet(x, metadata={"kind": ["a"] * 200}),
        fe.privacy.synthesize_table({"kind": ["a", "b"] * 40}, table, **settings),
    ]


def test_every_type_of_result_is_among_them(results):
    assert {result_class(name) for name in RESULTS} <= {type(one) for one in results}


def test_a_result_has_a_short_text_on_one_line(results):
    for one in results:
        text = repr(one)
        assert text.startswith(f"{type(one).__name__}(") and "\n" not in text and len(text) < MAX_SHORT, text
        assert type(one).__repr__ is Shown.__repr__, "one mechanism for all"


def test_a_result_has_a_view_in_notebooks_and_plain_types(results):
    for one in results:
        assert "<" in one._repr_html_()
        assert json.loads(json.dumps(one.to_dict())) == one.to_dict()


def test_a_result_has_a_data_frame(results):
    pytest.importorskip("pandas")
    frames = {type(one).__name__: one.to_frame() for one in results}
    comparison, models = results[0], results[2]
    assert list(frames["Comparison"]["id"]) == [mode.id for mode in comparison.modes]
    ends = frames["Comparison"][["share_difference_interval.low", "share_difference_interval.high"]]
    assert tuple(ends.iloc[0]) == comparison.modes[0].share_difference_interval
    label = models.modes[0].set_with_most
    assert frames["ModelComparison"][f"shares.{label}.share"][0] == models.modes[0].shares[label].share
    assert list(frames["Scores"]["key"]) == ["vendi"]
    assert set(frames["Audit"]["block"]) == {"copying", "attacks"}
    assert list(frames["PrivateComparison"]["name"]) == [one.name for one in results[14].scores]
    assert frames["PrivateScore"]["name"][0] == "all"
    assert len(frames["EmbeddingSet"]) == 200 and set(frames["SyntheticTable"].columns) == {"kind"}
    assert all(len(frame.columns) for frame in frames.values())


def test_without_pandas_the_sentence_says_what_to_do(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fe.UsageError, match=r"to_frame needs pandas: pip install pandas, or use to_dict\(\)"):
        results[0].to_frame()


def test_notebooks_draw_a_bar_for_each_stage_and_other_programs_none(monkeypatch):
    drawn = []

    class Bar:
        def __init__(self, total, desc):
            self.n, self.total = 0, total
            drawn.append((desc, total))

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
    assert fe.Run().progress is progress.automatic
