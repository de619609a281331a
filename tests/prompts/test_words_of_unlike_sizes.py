"""Words are tested on as many images of a prompt in one set as in the other, and in bounded memory."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts import images as sums_over_images
from finc_eval.prompts import table
from finc_eval.prompts.table import prompt_differences

COLORS, THINGS = ("red", "blue"), ("cat", "dog", "car")
NAMES = [f"{color} {thing} {place}" for color in COLORS for thing in THINGS for place in range(6)]


def images(each, seed, wrong=0.0):
    """Skewed noise around each prompt; red ones are moved, and the first images are the same for any `each`."""
    rows = []
    for number, name in enumerate(NAMES):
        noise = np.random.default_rng([seed, number]).lognormal(size=(each, 8))
        rows.append(np.random.default_rng(number).normal(size=8) * 3 + noise + wrong * ("red" in name))
    prompts = [name for name in NAMES for _ in range(each)]
    return fe.EmbeddingSet(np.concatenate(rows).astype(np.float32), metadata={"prompt": prompts})


def words(gen, ref):
    tree = KindTree.of_sets([images(8, 9)], 0, Run())
    pairing, _ = pair({"gen": gen, "ref": ref}, "prompt")
    return prompt_differences(pairing, tree, 0, Run()).words


def test_further_images_of_one_set_do_not_change_the_tests():
    few, many = (words(images(2, 1, wrong=3.0), images(each, 2)) for each in (2, 7))
    assert [(one.text, one.what, one.p_value) for one in few] == [(one.text, one.what, one.p_value) for one in many]
    assert "red" in [one.text for one in few]
    assert few[0].difference != many[0].difference  # all images count for the estimate


@pytest.mark.parametrize("most", [1, 80, 10_000])
def test_means_of_pairs_are_bounded(monkeypatch, most):
    monkeypatch.setattr(sums_over_images, "MAX_PAIRS", most)
    seen = []
    choose = table.choose
    monkeypatch.setattr(table, "choose", lambda *given: seen.append(len(given[1])) or choose(*given))
    assert "red" in [one.text for one in words(images(4, 1, wrong=3.0), images(4, 2))]
    assert seen[0] == {1: 36, 80: 72, 10_000: 144}[most]


def test_copies_of_one_picture_are_not_taken_for_content():
    """A set that repeats its pictures differs in diversity; the mean of four copies is not four draws."""
    for seed in range(6):
        first, second = images(4, seed), images(4, seed + 100)
        rows = first.rows_at(np.arange(first.n)).numpy().copy()
        rows[:] = rows[np.arange(len(rows)) // 4 * 4]
        found = words(fe.EmbeddingSet(rows, metadata={"prompt": first.column("prompt")}), second)
        assert [(one.text, one.what) for one in found if one.what == "content"] == []
        assert [(one.text, one.what) for one in found] == [("", "diversity")]


def test_a_word_whose_images_are_all_copies_has_an_interval():
    """All of 18 prompts have copies alone: another prompt may still have images that differ."""
    rows, other = images(4, 1).rows_at(np.arange(144)).numpy().copy(), images(4, 2)
    is_red = np.arange(144) < 72
    rows[is_red] = rows[np.arange(144) // 4 * 4][is_red]
    (found,) = words(fe.EmbeddingSet(rows, metadata={"prompt": other.column("prompt")}), other)
    assert (found.text, found.what, found.difference) == ("red", "diversity", -1)
    assert found.interval[0] == -1 and -0.8 < found.interval[1] < -0.3
