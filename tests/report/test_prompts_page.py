"""The page and the terminal of paired sets name the words that differ, with pictures of both sets side by side."""

import pytest

import finc_eval as fe
from finc_eval import report
from finc_eval.demo.prompts import prompted_sets

HOSTILE = "<script>alert(1)</script> &"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, one in zip(("faulty", "sound"), prompted_sets(100, 4), strict=True):
        one.write(folder / name)
    sets = [fe.extract(folder / name, "pixels", out=folder / f"{name}.h5") for name in ("faulty", "sound")]
    return fe.compare(*sets, groups="prompt", features=100)


def test_the_three_faults_of_the_toy_are_found_and_nothing_else(found):
    assert {(one.text, one.what) for one in found.prompts.words} == {
        ("seven", "content"),
        ("purple", "content"),
        ("pink", "diversity"),
    }
    (pink,) = [one for one in found.prompts.words if one.text == "pink"]
    assert pink.collapsed == ("gen",)
    assert pink.sets["gen"].distinct * 4 == pink.sets["gen"].n
    assert pink.interval[1] < -0.5
    assert all("seven" in one for word in found.prompts.words if word.text == "seven" for one in word.examples)


def test_page_headline_and_terminal_name_them(found, tmp_path, capsys):
    page = found.to_html(tmp_path / "page.html").read_text()
    report.show(found)
    for text in (page, found.headline, capsys.readouterr().out):
        assert "“purple” or “seven”" in text or "“seven” or “purple”" in text
        assert "copies of few pictures in gen" in text
    section = page[page.index('id="prompts"') : page.index('id="settings"')]
    assert section.count("<img") >= 12
    assert "paired by prompt" in page


def test_a_result_with_prompts_comes_back_from_its_file(found, tmp_path):
    found.save(tmp_path / "c.h5")
    again = fe.load(tmp_path / "c.h5")
    assert again.prompts == found.prompts
    assert again.pairs == found.pairs


def test_prompts_are_text_on_a_page(tmp_path):
    sets = [
        fe.EmbeddingSet(one.rows, metadata={"prompt": [f"{HOSTILE} {text}" for text in one.prompts]})
        for one in prompted_sets(20, 2)
    ]
    page = fe.compare(*sets, pairs="prompt", features=100).to_html(tmp_path / "page.html").read_text()
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
