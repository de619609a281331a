"""The papers' tables are transcribed once, and the presets that bear a paper's name have its numbers."""

import pytest
import torch
from _papers import published

import finc_eval as fe
from finc_eval.privacy.synthesis.dp_hp import MAX_RELEASED
from finc_eval.privacy.synthesis.released_features import image_statistics, table_statistics
from finc_eval.privacy.synthesis.synthesize import IMAGE_RATE, _network
from finc_eval.privacy.synthesis.tabular import Category, Table


@pytest.mark.parametrize("data_set", ["mnist", "fashion-mnist"])
def test_kernels_of_pixels_have_the_length_scales_of_their_row_of_table_9(data_set):
    (row,) = [one for one in published("dp_hp")["table_9"] if one["data set"] == data_set]
    single, *products = image_statistics(fe.privacy.DpHpPaper(data_set=data_set), (28, 28, 1))
    assert single.phi.length_scale**2 == pytest.approx(row["l² of the sum"])
    assert {round(one.phi.length_scale**2, 9) for one in products} == {row["l² of the products"]}
    assert (single.phi.order, products[0].phi.order) == (row["order of the sum"], row["order of the products"])


@pytest.mark.parametrize("name", ["fully-connected", "convolutional"])
def test_the_papers_networks_have_its_widths_and_its_batch_of_all_classes(name):
    for row in published("dp_hp")["table_9"]:
        made = _network(name, (28, 28, 1), 10, 0, torch.device("cpu"))
        widths = [one.out_features for one in made.network if isinstance(one, torch.nn.Linear)]
        assert widths[:-1] == row["hidden"][: len(widths) - 1]
        assert (10 * made.batch, IMAGE_RATE) == (row["batch"], row["rate"])


@pytest.mark.parametrize("row", published("dp_hp")["published_code"], ids=lambda row: row["data set"])
def test_kernels_of_tables_can_have_the_settings_of_the_published_code(row):
    table = Table(tuple(Category(f"column {place}", ("no", "yes")) for place in range(14)))
    order, columns, epochs = row["order of the products"], row["columns"], row["epochs"]
    asked = fe.privacy.DpHpPaper(
        sum_order=row["order of the sum"], product_order=order, product_columns=columns, draws=epochs, gamma=row["γ"]
    )
    single, *products = table_statistics(asked, table)
    assert single.phi.size == 14 * (row["order of the sum"] + 1)
    assert [one.phi.size for one in products] == [(order + 1) ** columns] * epochs
    assert [one.weight for one in products] == [row["γ"] / epochs] * epochs
    assert 2 * sum(one.phi.size for one in (single, *products)) < MAX_RELEASED  # of two classes
