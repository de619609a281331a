import pytest
import torch

import finc_eval as fe
from finc_eval import FincEvalError
from finc_eval.comparison import directions as differential
from finc_eval.numerics import precision as products
from finc_eval.numerics.eigen import extreme_eigenpairs
from finc_eval.numerics.precision import arithmetic, round_mantissa
from finc_eval.sketches.settings import SketchSettings

new_style = pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "matmul"), reason="torch 2.8 has no such setting")


def settings():
    """Everything in torch that decides how float32 products are rounded."""
    if not hasattr(torch.backends.mkldnn, "matmul"):
        return torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32
    return torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision


@pytest.fixture
def torch_settings():
    """Leaves torch's settings as they were, whatever the test does to them."""
    before = settings()
    yield
    torch.set_float32_matmul_precision("highest")
    if hasattr(torch.backends.mkldnn, "matmul"):
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = before
    assert settings() == before


def numbers():
    """Float32 of all magnitudes and both signs, with ties, zeros, the largest and denormal ones."""
    generator = torch.Generator().manual_seed(0)
    exponents = torch.randint(-120, 120, (20_000,), generator=generator)
    ordinary = torch.ldexp(torch.randn(20_000, generator=generator), exponents)
    ties = torch.arange(1 << 12).ldexp(torch.tensor(-11)) + 1
    edges = torch.tensor([0.0, -0.0, 3.4e38, -3.4e38, torch.finfo(torch.float32).max, 1e-45, -1e-40, 1.2e-38])
    return torch.cat([ordinary, ties, edges])


BFLOAT16, TF32 = 16, 13  # bits of the mantissa of float32 that these formats lack


def test_rounding_to_the_bits_of_bfloat16_is_torchs_own():
    values = numbers()
    assert torch.equal(round_mantissa(values, BFLOAT16), values.bfloat16().float())


def test_rounding_keeps_so_many_bits_and_goes_to_the_nearest():
    values = numbers()
    values = values[(values.abs() >= 2.0**-126) & (values.abs() < 3e38)]  # normal, and not rounded to infinity
    result = round_mantissa(values, TF32)
    mantissa, _ = torch.frexp(result.double())
    assert torch.equal(mantissa * 2**11, (mantissa * 2**11).round())  # the leading one, and ten bits
    assert not torch.equal(mantissa * 2**10, (mantissa * 2**10).round())  # all ten are in use
    _, exponent = torch.frexp(values.double())
    half_a_unit = torch.ldexp(torch.ones(len(values), dtype=torch.double), exponent - 12)
    assert (result.double() - values.double()).abs().le(half_a_unit).all()
    assert torch.equal(round_mantissa(result, TF32), result)


def test_ties_go_to_the_even_neighbor():
    unit = 2.0**-10
    ties = torch.tensor([1 + 0.5 * unit, 1 + 1.5 * unit, 1 + 2.5 * unit, -1 - 0.5 * unit, -1 - 1.5 * unit])
    expected = torch.tensor([1.0, 1 + 2 * unit, 1 + 2 * unit, -1.0, -1 - 2 * unit])
    assert torch.equal(round_mantissa(ties, TF32), expected)
    above = torch.nextafter(ties, 2 * ties)
    assert torch.equal(round_mantissa(above, TF32)[[0, 2, 3]], torch.tensor([1 + unit, 1 + 3 * unit, -1 - unit]))


def test_rows_that_are_not_contiguous_are_rounded_alike():
    values = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))
    assert torch.equal(round_mantissa(values.T, 13), round_mantissa(values, 13).T)


def loosened_as_of_old():
    torch.set_float32_matmul_precision("medium")


def loosened_by_the_new_names():
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"


LOOSENED = [loosened_as_of_old, pytest.param(loosened_by_the_new_names, marks=new_style)]


@pytest.mark.parametrize("loosened", LOOSENED)
def test_float32_products_are_true_float32_whatever_torch_is_set_to(torch_settings, loosened):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(512, 512, generator=generator)
    loosened()
    with arithmetic():
        product = rows.T @ rows
    exact = rows.double().T @ rows.double()
    assert float((product - exact).abs().max()) < 3e-6 * float(exact.abs().max())


@new_style
@pytest.mark.parametrize("loosened", LOOSENED)
def test_where_onednn_would_round_it_may_not(torch_settings, monkeypatch, loosened):
    monkeypatch.setattr(products, "_onednn_is_exact", lambda: False)  # as on a CPU with matrix units for bfloat16
    loosened()
    with arithmetic():
        assert settings() == ("ieee", "ieee")


@pytest.mark.parametrize("loosened", LOOSENED)
def test_the_settings_of_torch_are_restored_also_after_an_exception(torch_settings, loosened):
    loosened()
    before = settings()
    with arithmetic():
        pass
    assert settings() == before
    with pytest.raises(ZeroDivisionError), arithmetic(), arithmetic():
        1 / 0  # noqa: B018
    assert settings() == before


def test_an_unknown_precision_is_one_clear_sentence():
    with pytest.raises(FincEvalError, match=r'one of float32, float64, got \'float\' \(did you mean "float\d\d"\?\)$'):
        SketchSettings(precision="float")
    with pytest.raises(FincEvalError, match="precision must be one of"):
        SketchSettings(precision="tf32")


@pytest.mark.parametrize("loosened", LOOSENED)
def test_a_comparison_is_computed_in_float32_whatever_torch_is_set_to(torch_settings, monkeypatch, loosened):
    seen = []

    def observed(*arguments, **named):
        seen.append(settings())
        return extreme_eigenpairs(*arguments, **named)

    rows = torch.randn(80, 5, generator=torch.Generator().manual_seed(0)).split(40)
    monkeypatch.setattr(differential, "extreme_eigenpairs", observed)
    loosened()
    before = settings()
    with arithmetic():
        inside = settings()
    fe.compare(*rows, features=10)
    assert len(seen) == 5  # the two roles of two sets are the ends of one spectrum
    assert set(seen) == {inside} != {before}
    assert settings() == before
