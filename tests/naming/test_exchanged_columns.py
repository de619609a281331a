"""Values of samples that are exchanged within prompts: what all images of a prompt have says nothing about the sets."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.demo.prompts import prompted_sets
from finc_eval.naming.measured import exchange_columns

PROMPTS = 60


def exchanged(images, columns):
    """Exchange columns of images of each set, so many of a prompt, from the values of prompts."""
    blocks = {label: np.repeat(np.arange(PROMPTS), n) for label, n in zip(("gen", "ref"), images, strict=True)}
    sets = {label: fe.EmbeddingSet(np.ones((len(block), 2), np.float32)) for label, block in blocks.items()}
    rows = {label: np.arange(len(block)) for label, block in blocks.items()}
    return exchange_columns({label: columns[block] for label, block in blocks.items()}, sets, rows, 0, blocks, 99)


@pytest.mark.parametrize("images", [(4, 4), (3, 5), (1, 7), (2, 3), (6, 1)])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e6])
def test_what_all_images_of_a_prompt_have_is_no_difference(images, value):
    has = np.random.default_rng(1).random((PROMPTS, 3)) < (0.9, 0.5, 0.1)
    assert (exchanged(images, value * has).z == 0).all()


def test_a_difference_within_prompts_is_one():
    blocks = {label: np.repeat(np.arange(PROMPTS), 4) for label in ("gen", "ref")}
    sets = {label: fe.EmbeddingSet(np.ones((4 * PROMPTS, 2), np.float32)) for label in blocks}
    table = {label: np.full((4 * PROMPTS, 1), 1e-3 * (label == "gen")) for label in blocks}
    found = exchange_columns(table, sets, {label: np.arange(4 * PROMPTS) for label in blocks}, 0, blocks, 99)
    assert found.z[0, 0] == pytest.approx(PROMPTS**0.5)


@pytest.mark.filterwarnings("error")
def test_models_that_draw_what_prompts_ask_for_have_no_look_of_colors():
    """A color that a prompt asks for is in all its images, of both models."""
    sets = [
        fe.EmbeddingSet(each.rows, metadata={"prompt": each.prompts}, images=each.images)
        for each in prompted_sets(40, 3, 1, faults=False)
    ]
    assert fe.compare(*sets, pairs="prompt", features=50).findings == ()
