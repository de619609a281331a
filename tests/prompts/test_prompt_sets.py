"""Old and fresh prompts: on which of them two sets of images differ less, from a column of the prompts alone."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval import report
from finc_eval.comparison.headline import details
from finc_eval.prompts.page import prompt_tables
from finc_eval.prompts.prompt_sets import permuted_p

PROMPTS = 40


def model(rng, off, each=3, column=None, name="prompt_set"):
    """Images of prompts as embeddings of 8 entries; those of prompt b are `off[b]` away."""
    texts = [f"a thing of number {number}" for number in range(PROMPTS)]
    middle = np.random.default_rng(5).normal(size=(PROMPTS, 8)) * 2 + off
    rows = middle.repeat(each, 0) + 0.5 * rng.normal(size=(PROMPTS * each, 8))
    columns = {} if column is None else {name: np.repeat(column, each).tolist()}
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": np.repeat(texts, each).tolist(), **columns})


OLD = np.where(np.arange(PROMPTS) < 20, "old", "unseen")


def compared(gap, column=OLD, each=3, seed=2, **options):
    rng = np.random.default_rng(seed)
    off = rng.normal(size=(PROMPTS, 8)) * np.where(np.arange(PROMPTS) < 20, 1 - gap, 1.0)[:, None]
    gen, ref = model(rng, off, each, column, **options), model(rng, 0 * off, each)
    return fe.compare(gen, ref, pairs="prompt", features=50)


@pytest.mark.parametrize("each", [3, 1])
@pytest.mark.parametrize(("name", "values"), [("prompt_set", ("old", "unseen")), ("fresh", ("no", "yes"))])
def test_a_model_that_is_fitted_to_old_prompts_differs_less_on_them(each, name, values):
    found = compared(0.8, np.where(OLD == "old", *values), each, name=name)
    (gap,) = found.prompts.prompt_sets
    assert (gap.what, gap.column) == ("content", name) and gap.prompts == dict.fromkeys(values, 20)
    assert gap.p_value < 0.01 and gap.difference > gap.interval[0] > 0
    assert gap.values[values[0]] < gap.values[values[1]]
    assert gap.difference == pytest.approx(gap.values[values[1]] - gap.values[values[0]])


def test_the_distance_of_an_image_is_without_the_part_of_chance():
    (gap,) = compared(1.0, each=3).prompts.prompt_sets
    assert abs(gap.values["old"]) < 0.02 < gap.values["unseen"]


def test_all_outputs_say_it(tmp_path, capsys):
    found = compared(0.8)
    (sentence,) = [text for key, text in details(found).items() if key.startswith("prompt sets")]
    found.to_json(tmp_path / "c.json")
    report.show(found)
    page, terminal = found.to_html(tmp_path / "c.html").read_text(), capsys.readouterr().out
    for text in (page, found.to_markdown().replace("\\", ""), terminal):
        assert sentence in " ".join(text.split())
    for text in (page, terminal):
        assert "unlike the images are by prompt_set" in text
    assert fe.load(tmp_path / "c.json").prompts == found.prompts
    assert json.loads((tmp_path / "c.json").read_text())["prompts"]["prompt_sets"][0]["p_value"] < 0.01
    assert sentence.index("“old”") < sentence.index("“unseen”")


def test_numbers_below_0_have_a_minus_in_sentences_and_tables():
    found = compared(1.0, seed=3)
    (gap,) = found.prompts.prompt_sets
    gap = replace(gap, values={"old": -0.05, "unseen": 0.2}, interval=(-0.01, 0.3))
    assert "−0.05" in gap.sentence({"gen": "a", "ref": "b"})
    tables = prompt_tables(replace(found.prompts, prompt_sets=(gap,)), {"gen": "a", "ref": "b"})
    cells = [cell for table in tables for row in table.rows for cell in row if isinstance(cell, str)]
    assert "−0.050" in cells and "−0.010 to 0.300" in cells
    assert not any(re.search(r"-\d", cell) for cell in cells)


def test_prompts_that_differ_alike_are_open():
    (gap,) = compared(0.0, seed=3).prompts.prompt_sets
    assert gap.p_value > 0.05 and gap.interval[0] < 0 < gap.interval[1]
    assert "open" in gap.sentence({"gen": "a", "ref": "b"})


MIXED = np.where(np.arange(PROMPTS) < 4, "few", "many")
REFUSED = {
    "three values": (np.resize(["a", "b", "c"], PROMPTS), "“a”, “b” and “c”"),
    "one value": (np.full(PROMPTS, "a"), "“a”"),
    "too few prompts": (MIXED, "4"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_does_not_divide_the_prompts_is_said(case):
    column, value = REFUSED[case]
    found = compared(0.5, column)
    assert found.prompts.prompt_sets == () and value in found.prompts.undivided
    assert any(value in text for text in details(found).values())


def test_a_prompt_with_both_values_is_named():
    rng = np.random.default_rng(0)
    gen = model(rng, np.zeros((PROMPTS, 8)), column=OLD)
    ref = model(rng, np.zeros((PROMPTS, 8)), column=np.roll(OLD, 1))
    found = fe.compare(gen, ref, pairs="prompt", features=50)
    assert found.prompts.prompt_sets == () and "number 0" in found.prompts.undivided


def test_a_column_of_the_prompts_file_is_enough(tmp_path):
    lines = ["prompt,fresh", *(f"a thing of number {n},{'no' if n < 8 else 'yes'}" for n in range(16))]
    (tmp_path / "list.csv").write_text("\n".join(lines))
    rng = np.random.default_rng(0)
    for folder in ("gen", "ref"):
        (tmp_path / folder).mkdir()
        for number in range(32):
            pixels = rng.integers(0, 255, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / folder / f"{number // 2:02d}_{number % 2}.png")
    asked = fe.Extraction("pixels", prompts=str(tmp_path / "list.csv"))
    found = fe.compare(tmp_path / "gen", tmp_path / "ref", pairs="prompt", extractor=asked, features=50)
    (gap,) = found.prompts.prompt_sets
    assert gap.prompts == {"no": 8, "yes": 8}


def test_the_permutation_test_keeps_its_level_with_unlike_spreads():
    draws = [
        permuted_p(rng.normal(size=12), 5 * rng.normal(size=24), 0) for rng in map(np.random.default_rng, range(60))
    ]
    assert sum(p <= 0.05 for p in draws) <= 9  # of 60 at .05, more than 9 have a probability of .001
    assert permuted_p(np.zeros(8), np.zeros(9), 0) == 1
