"""The page, the table and the verb of kinds."""

import json

import numpy as np
import pytest
from _pages import HOSTILE, Page

import finc_eval as fe
from finc_eval import report

CENTERS = np.random.default_rng(0).normal(0, 3, (6, 16))


@pytest.fixture(scope="module")
def found() -> fe.Kinds:
    rng = np.random.default_rng(1)
    gen = CENTERS[rng.integers(0, 5, 300)] + rng.normal(size=(300, 16))
    ref = CENTERS[rng.integers(0, 6, 300)] + rng.normal(size=(300, 16))
    ids = [f"{i}{HOSTILE}" for i in range(300)]
    return fe.kinds({"gen": fe.EmbeddingSet(gen, ids=ids), "ref": ref}, levels=(5, 20), level=20)


def test_the_page_is_well_formed_and_shows_every_kind_once(found):
    page = Page(report.page(found, {}))
    assert len(page.find("tr", "mode")) == len(found.modes)
    assert len(page.find("script")) == 1


def test_the_table_fits_and_the_sentences_give_the_difference(found, capsys):
    report.show(found)
    printed = capsys.readouterr().out
    assert "ref has more of" in printed
    assert "gen and ref differ in" in printed
    assert max(len(line.rstrip()) for line in printed.splitlines() if "│" in line) <= 80
    assert found.significant()[0].id in report.fragment(found)


def test_json_comes_back(found, tmp_path):
    found.to_json(tmp_path / "kinds.json")
    back = fe.load(tmp_path / "kinds.json")
    assert back.modes == found.modes
    assert json.loads(found.to_json())["differences"]["gen"]["value"] == found.difference
