"""Laws of what is released of images and tables: weights, shares of the budget, and length scales of each method."""

import numpy as np
import pytest
import torch

from finc_eval.privacy import Guarantee
from finc_eval.private.dp.ledger import Ledger
from finc_eval.private.dp.population import RowViews
from finc_eval.private.settings import DpHp, DpHpPaper, DpMerf
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.released_features import cosine_basis, image_statistics, pool, table_statistics
from finc_eval.private.synthesis.tabular import Table

TABLE = Table(
    (
        Number.between("age", 18, 95, levels=7),
        Category("smokes", ("no", "yes")),
        Number.between("dose", 0, 1, levels=4),
    ),
    None,
)
PAPER = DpHpPaper(sum_order=6, product_order=3, product_columns=2, draws=5, sum_share=0.7, gamma=0.3)


@pytest.mark.parametrize("of", ["images", "a table"])
def test_the_sum_and_the_products_of_the_paper_have_their_weights_and_their_parts_of_the_budget(of):
    is_table = of == "a table"
    single, *products = table_statistics(PAPER, TABLE) if is_table else image_statistics(PAPER, (3, 4, 1))
    assert len(products) == 5
    assert single.weight == (1.0 if is_table else 0.3)
    assert [one.weight for one in products] == pytest.approx([0.3 / 5 if is_table else 1 / 5] * 5)
    whole = single.budget + sum(one.budget for one in products)
    assert single.budget / whole == pytest.approx(0.7)
    dim = 3 if is_table else 12
    assert {len(set(one.phi.coordinates)) for one in products} == {2}
    assert all(0 <= place < dim for one in products for place in one.phi.coordinates)
    assert (single.phi.order, products[0].phi.order, single.phi.dim) == (6, 3, dim)
    few = table_statistics(DpHpPaper(sum_order=2, product_order=1, product_columns=9, draws=1), TABLE)
    assert len(few[1].phi.coordinates) == 3  # a table of three columns has no more


def test_length_scales_follow_from_the_mean_square_of_what_is_public():
    (merf,) = table_statistics(DpMerf(), TABLE)
    codes = [column.codes.square().sum(1) @ column.prior for column in TABLE.columns]
    assert TABLE.mean_square(TABLE.codes) == pytest.approx(float(sum(codes)), rel=1e-5)
    assert merf.phi.sigma == pytest.approx((float(sum(codes)) / 2) ** 0.5, rel=1e-5)
    single, pairs = table_statistics(DpHp(), TABLE)
    assert pairs.phi.length_scale == pytest.approx(merf.phi.sigma, rel=1e-6) and single.phi.dim == 3
    first, second = image_statistics(DpHp(), (8, 8, 1))
    (random,) = image_statistics(DpMerf(), (8, 8, 1))
    assert first.phi.length_scale == pytest.approx(2 * random.phi.sigma)
    assert second.phi.length_scale == pytest.approx(first.phi.length_scale / 2**0.5)
    (larger,) = image_statistics(DpMerf(), (16, 16, 1))
    assert larger.phi.sigma == pytest.approx(2 * random.phi.sigma)


@pytest.mark.parametrize("shape", [(28, 28, 1), (9, 16, 3), (5, 4, 1)])
def test_a_pooled_image_has_cells_of_equal_norm_without_a_pixel_in_common(shape):
    view = pool(shape)
    assert view.shape == (shape[0] * shape[1] * shape[2], min(7, shape[0]) * min(7, shape[1]) * shape[2])
    torch.testing.assert_close(view.T @ view, torch.eye(view.shape[1]))
    assert ((view > 0).sum(1) == 1).all()


def test_the_lowest_waves_are_orthonormal_and_come_first():
    basis = cosine_basis(6, 9, 20)
    torch.testing.assert_close(basis.T @ basis, torch.eye(20), atol=1e-5, rtol=0)
    torch.testing.assert_close(basis[:, 0], torch.full((54,), 54**-0.5))
    whole = cosine_basis(6, 9, 54)
    rows, columns = torch.meshgrid(torch.arange(6), torch.arange(9), indexing="ij")
    wave = (torch.cos(torch.pi * (rows + 0.5) / 6) * torch.cos(torch.pi * (columns + 0.5) * 2 / 9)).flatten()
    assert (whole.T @ (wave / wave.norm())).abs().max() == pytest.approx(1, abs=1e-5)


def test_missing_numbers_are_drawn_as_nan_and_others_from_their_intervals():
    column = Number("dose", (0.0, 1.0, 10.0), missing=True)
    levels = np.array([0, 2, 1, 2, 0])
    found = column.decoded(levels, np.random.default_rng(0))
    assert np.isnan(found).tolist() == [False, True, False, True, False]
    assert (found[[0, 4]] < 1).all() and 1 <= found[2] < 10
    assert column.levels == 3 and column.encoded(np.array([0.5, np.nan, 3.0])).tolist() == [0, 2, 1]


def test_a_data_set_is_said_to_look_like_the_line_that_it_has_most_in_common_with(tmp_path):
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(240, 6)))
    ledger = Ledger.create(tmp_path / "ledger.jsonl", 9.0, 1e-5)

    def spend(number, some):
        views = RowViews()
        views.add(some)
        with pytest.warns(UserWarning) if number == 3 else pytest.MonkeyPatch.context():
            ledger.spend((f"{number:064x}",), Guarantee.of(0.5, 1e-5), "a test", None, views.views())

    spend(1, rows[:120])
    spend(2, rows[120:])
    views = RowViews()
    views.add(torch.cat([rows[90:120], rows[120:210]]))  # a quarter of the first, three quarters of the second
    with pytest.warns(UserWarning, match=r"line 3 of the ledger \(75 % are equal\)"):
        ledger.spend((f"{3:064x}",), Guarantee.of(0.5, 1e-5), "a test", None, views.views())
