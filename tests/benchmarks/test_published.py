"""The papers' tables are transcribed once, and the presets that bear a paper's name have its numbers."""

import pytest
from _papers import published

import finc_eval as fe
from finc_eval.privacy.synthesis.released_features import paper_image_statistics


@pytest.mark.parametrize("data_set", ["mnist", "fashion-mnist"])
def test_kernels_of_pixels_have_the_length_scales_of_their_row_of_table_9(data_set):
    (row,) = [one for one in published("dp_hp")["table_9"] if one["data set"] == data_set]
    single, *products = paper_image_statistics((28, 28, 1), 0, fe.privacy.DpHpPaper(data_set=data_set))
    assert single.phi.length_scale**2 == pytest.approx(row["l² of the sum"])
    assert {round(one.phi.length_scale**2, 9) for one in products} == {row["l² of the products"]}
    assert (single.phi.order, products[0].phi.order) == (row["order of the sum"], row["order of the products"])
