"""The page and the terminal of paired sets name the words that differ, with pictures of both sets side by side."""

import re

import numpy as np
import pytest

import finc_eval as fe
from finc_eval import report
from finc_eval.demo.planted import shipped_digits
from finc_eval.demo.prompts import COLORS, GROUNDS, prompted_sets

HOSTILE = "<script>alert(1)</script> &"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, one in zip(("faulty", "sound"), prompted_sets(100, 4), strict=True):
        one.write(folder / name)
    sets = [fe.extract(folder / name, "pixels", out=folder / f"{name}.h5") for name in ("faulty", "sound")]
    return fe.compare(*sets, groups="prompt", features=50, modes=2)


def test_the_three_faults_of_the_toy_are_found_and_nothing_else(found):
    assert {(one.text, one.what) for one in found.prompts.words} == {
        ("seven", "content"),
        ("purple", "content"),
        ("pink", "diversity"),
    }
    (pink,) = [one for one in found.prompts.words if one.text == "pink"]
    assert pink.sets["gen"].distinct * 4 == pink.sets["gen"].n
    assert pink.interval[1] < -0.5
    assert len(pink.examples) == 1 and len(pink.sets["gen"].ids) == 4, "images of one prompt show how alike they are"
    assert all("seven" in one for word in found.prompts.words if word.text == "seven" for one in word.examples)


def test_page_headline_and_terminal_name_them(found, tmp_path, capsys):
    page = found.to_html(tmp_path / "page.html").read_text()
    report.show(found)
    for text in (page, found.headline, capsys.readouterr().out):
        assert "In faulty, images of prompts with “purple” look like “blue”." in text and "with “seven” differ" in text
        assert re.search(
            r"In faulty, images of the same prompt with “pink” repeat: \d+ of (\d+) are distinct \(sound \1 of \1\)\.",
            text,
        )
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
    page = fe.compare(*sets, pairs="prompt", features=20, modes=1).to_html(tmp_path / "page.html").read_text()
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.long
def test_a_fault_of_both_models_is_found_against_reference_images_of_the_same_prompts():
    """Both toy models draw threes for eights: only images of the prompts as they should be tell."""
    (one, other), reference = prompted_sets(100, 4), prompted_sets(200, 4, seed=7, faults=False)[1]
    prompted = [fe.EmbeddingSet(each.rows, metadata={"prompt": each.prompts}) for each in (one, other)]
    rows, digits, labels = reference.rows.copy(), *shipped_digits()
    eights = [row for row, prompt in enumerate(reference.prompts) if "eight" in prompt]
    strokes = digits[np.flatnonzero(labels == 8)[: len(eights)]].reshape(len(eights), -1, 1) / 255
    for row, stroke in zip(eights, strokes, strict=True):
        color, ground = reference.prompts[row].split()[1], reference.prompts[row].split()[-1]
        drawn = stroke * np.array(COLORS[color]) + (1 - stroke) * np.array(GROUNDS[ground])
        rows[row] = (drawn / 255).reshape(-1)
    photographs = fe.EmbeddingSet(rows, metadata={"prompt": reference.prompts})
    against = [
        {word.text for word in fe.compare(each, photographs, pairs="prompt", features=50).prompts.words}
        for each in prompted
    ]
    assert all("eight" in words for words in against)
    assert "eight" not in {word.text for word in fe.compare(*prompted, pairs="prompt", features=50).prompts.words}
