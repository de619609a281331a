"""Which prompts to add next: words whose cells are open, and how many more prompts with the word decide them."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.numerics.inference import units_for


def labeled(rng, share, prompts=60):
    """A set in which a share of the pictures of prompts with "alone" is wet, and of others one in twenty."""
    texts = [f"{'alone' if number % 4 == 0 else 'crowd'} thing {number}" for number in range(prompts)]
    names = np.repeat(texts, 4).tolist()
    wet = rng.random(len(names)) < np.where(["alone" in text for text in names], share, 0.05)
    metadata = {"prompt": names, "weather": np.where(wet, "wet", "dry").tolist()}
    return fe.EmbeddingSet(rng.normal(size=(len(names), 2)).astype(np.float32), metadata=metadata)


def compared(seed, share):
    rng = np.random.default_rng(seed)
    gen, ref = labeled(rng, share), labeled(rng, 0.05)
    return fe.compare(gen, ref, pairs="prompt", features=50).prompts


@pytest.fixture(scope="module")
def open_cell():
    """A comparison in which the planted cell is neither found nor far from it."""
    found = (compared(seed, 0.17) for seed in range(20))
    return next(each for each in found if any(plan.cell.word == "alone" for plan in each.plans))


def test_an_open_cell_is_planned_with_its_shares(open_cell):
    (plan,) = [plan for plan in open_cell.plans if plan.cell.word == "alone"]
    assert plan.cell.p_value > 0.05 and plan.cell.prompts == 15
    assert plan.cell.share_gen != plan.cell.share_ref
    assert plan.more == plan.needed - 15 > 0
    assert plan.to_dict()["more"] == plan.more


def test_plans_do_not_repeat_what_is_found_and_are_in_order():
    found = compared(0, 0.7)
    assert [cell.word for cell in found.cells] == ["alone"]
    assert "alone" not in {plan.cell.word for plan in found.plans}
    needed = [plan.needed for plan in found.plans]
    assert needed == sorted(needed) and len(needed) <= 5


@pytest.mark.parametrize(
    ("have", "margin", "fixed", "needed"),
    [(100, 0.2, 0.0, 400), (100, 0.4, 0.0, 100), (100, 0.2, 0.003, np.inf), (100, 0.0, 0.0, np.inf)],
)
def test_units_that_decide_a_margin_grow_with_its_inverse_square(have, margin, fixed, needed):
    assert units_for(have, 0.01, margin, 4.0, fixed) == pytest.approx(needed)
