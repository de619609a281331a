"""Labels, prompts and ids of two machines are one name, or a sentence says how they differ."""

import re
import unicodedata

import numpy as np
import pytest

import finc_eval as fe

FORMS = {
    "decomposed": ("café", unicodedata.normalize("NFD", "café")),
    "a space": ("cat", "cat "),
    "a float": ("7", "7.0"),
    "a truth value": ("True", "true"),
    "a zero": ("3", "03"),
    "an identifier": ("n01440764", "N01440764"),
    "quotes": ("it's", "it’s"),
}


def labeled(name, n=300, seed=0, column="label", **more):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    rows = np.where(kind[:, None], 4, -4) + rng.normal(size=(n, 12))
    return fe.EmbeddingSet(rows.astype("f4"), metadata={column: [name if one else "tea" for one in kind], **more})


@pytest.mark.one_of_each
@pytest.mark.parametrize(("old", "new"), FORMS.values(), ids=FORMS)
def test_a_gate_passes_the_same_labels_in_another_form(old, new, tmp_path):
    (tmp_path / "gate.toml").write_text('kinds.moved = 0.15\nkinds.column = "label"\n')
    found = fe.gate(labeled(new, seed=1), labeled(old, seed=2), labeled(old, 600, 3), str(tmp_path / "gate.toml"))
    assert found.overall == "pass"
    assert any("written in several ways" in one for one in found.warnings)


@pytest.mark.one_of_each
@pytest.mark.parametrize(("old", "new"), FORMS.values(), ids=FORMS)
def test_metrics_by_class_and_shares_by_value_join_the_forms(old, new):
    gen, ref = labeled(new, seed=1), labeled(old, seed=2)
    scores = fe.metrics(gen, ref, ["fd"], by="label")
    assert {one.of for one in scores} == {None, old, "tea"}
    assert "written in several ways" in " ".join(scores["fd"].notes)
    found = fe.kinds({"gen": gen, "ref": ref}, by="label")
    assert len(found.by.kinds) == 2
    assert min(kind.p_value for kind in found.by.kinds) > 0.01


@pytest.mark.one_of_each
@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new in FORMS.values() if new != "7.0"])
def test_prompts_in_another_form_are_pairs(old, new):
    def prompted(name, seed):
        prompts = [f"{one // 4} is {name}" if one % 8 < 4 else f"{one // 4} is tea" for one in range(160)]
        rows = np.random.default_rng(seed).normal(size=(160, 6)).astype("f4")
        return fe.EmbeddingSet(rows, metadata={"prompt": prompts})

    found = fe.compare(prompted(new, 1), prompted(old, 2), features=50, pairs="prompt")
    assert found.pairs.blocks == 40
    assert not any("lacks" in one for one in found.warnings)


def test_ids_with_backslashes_and_capitals_are_pairs():
    def named(form, seed):
        rows = np.random.default_rng(seed).normal(size=(60, 6)).astype("f4")
        return fe.EmbeddingSet(rows, ids=[form(f"day/{one:03}.png") for one in range(60)])

    gen = named(lambda one: one.replace("/", "\\").upper(), 1)
    found = fe.compare(gen, named(str, 2), features=50, pairs="id")
    assert found.pairs.blocks == 60


def test_a_board_joins_the_forms_of_entries_that_are_added_later(tmp_path):
    board = fe.leaderboard(
        {"a": labeled("Cat", seed=1), "b": labeled("cat ", seed=2)}, labeled("cat", seed=3), by="label", metrics=["fd"]
    )
    assert len(board.by.kinds) == 2
    assert any(re.search("written in several ways", one) for one in board.warnings)


def test_values_that_a_set_has_both_of_are_told():
    gen = labeled("cat", seed=1)
    values = gen.column("label")
    mixed = fe.EmbeddingSet(gen.rows_at(np.arange(gen.n)).numpy(), metadata={"label": ["Tea", *values[1:]]})
    found = fe.kinds({"gen": mixed, "ref": labeled("cat", seed=2)}, by="label")
    assert len(found.by.kinds) == 3
    assert any("kept apart" in one and "'Tea'" in one for one in found.warnings)
