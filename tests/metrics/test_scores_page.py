"""The page, the notebook view and the terminal table of scores."""

from dataclasses import replace

import numpy as np
import pytest
from _pages import BREAKOUT, HOSTILE, Page

import finc_eval as fe
from finc_eval import report
from finc_eval.core.words import figure
from finc_eval.report.terminal import PLAIN


def draw(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def scores():
    return fe.metrics(draw(300), draw(300, seed=1), ["vendi", "mmd", "fid"])


def test_the_page_has_the_numbers_the_signatures_and_what_was_refused(scores, tmp_path):
    page = Page(scores.to_html(tmp_path / "scores.html").read_text())
    rows = [page.texts("td", inside=row) for row in page.find("tr", "mode")]
    assert [row[0] for row in rows] == [figure(score.value, ".6g") for score in scores.scores]
    assert page.texts("p", "signature") == [str(score.signature) for score in scores.scores]
    assert "fid is defined on inception-fid" in page.visible
    first, second = (f"{score.key} {figure(score.value)}" for score in scores)
    assert page.texts("p", "summary") == [f"gen against ref: {first} and {second}; fid could not be computed."]


def test_notebook_and_terminal_show_the_rows_of_the_page(scores, capsys):
    report.show(scores)
    shown, cell = capsys.readouterr().out, Page(scores._repr_html_()).text(0)
    for score in scores.scores:
        assert figure(score.value, ".6g").translate(PLAIN) in shown
        assert figure(score.value, ".6g") in cell
    assert "lower" in shown
    assert "the floor is the score of the reference." in shown


def test_hostile_names_of_sets_stay_text(scores):
    hostile = replace(scores, gen=HOSTILE, ref=BREAKOUT)
    for text in (report.page(hostile, {}), report.fragment(hostile)):
        assert not Page(text).find("img") and not any("alert" in one for one in Page(text).texts("script"))


def test_the_page_refuses_samples(scores):
    with pytest.raises(fe.UsageError, match='pages of the type "scores" show no samples'):
        report.page(scores, {"gen": "samples/"})
