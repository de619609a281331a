"""Numbers that were printed under a convention are explained by it, and other numbers are not."""

import io
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import finc_eval as fe
from finc_eval.conventions.quoted import MAX_EXACT, MAX_OTHER_SAMPLES, Quoted
from finc_eval.conventions.search import Search
from finc_eval.conventions.table import Convention
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.demo import example_sets
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.kid import polynomial_kernel
from finc_eval.measures.mmd import kernel_sums

RUN = fe.Run(device="cpu")


@pytest.fixture(scope="module")
def rows():
    """Two sets of 120 embeddings of 40 entries."""
    return tuple(np.asarray(made[:, 300:340], np.float32) for made in example_sets(120))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


def fd(gen, ref, **options):
    return fe.metrics.fd(gen, ref, run=RUN, **options).value


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def by_n(gen, ref):
    x, y = ((one - one.mean(0)) / len(one) ** 0.5 for one in (gen, ref))
    common = np.linalg.svd(x @ y.T, compute_uv=False).sum()
    return ((gen.mean(0) - ref.mean(0)) ** 2).sum() + (x**2).sum() + (y**2).sum() - 2 * common


def drawn(x, how):
    if how == "numpy":
        np.random.seed(42)
        return x[np.random.choice(len(x), 100, replace=False)]
    if how == "Python":
        random.seed(0)
        return x[random.sample(range(len(x)), 100)]
    return x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:100]]


PLANTED = {
    "nothing differs": lambda x, y: fd(x, y),
    "divided by n": by_n,
    "square root": lambda x, y: fd(x, y) ** 0.5,
    "times 1,000": lambda x, y: 1000 * fd(x, y),
    "unit length": lambda x, y: fd(unit(x), unit(y)),
    "first 100 generated samples": lambda x, y: fd(x[:100], y),
    "first 100 samples of both sets": lambda x, y: fd(x[:100], y[:100]),
    "second half of the reference": lambda x, y: fd(x, y[60:]),
    "100 generated samples, drawn by numpy with seed 42": lambda x, y: fd(drawn(x, "numpy"), y),
    "100 generated samples, drawn by Python with seed 0": lambda x, y: fd(drawn(x, "Python"), y),
    "100 reference samples, drawn by torch with seed 0": lambda x, y: fd(x, drawn(y, "torch")),
}


@pytest.mark.parametrize("expected", PLANTED)
def test_a_convention_of_arithmetic_or_samples_is_named_first(rows, expected):
    found = fe.explain(f"{PLANTED[expected](*map(np.float64, rows)):.5g}", *rows, run=RUN)
    assert len(found[0].conventions) == 1 and expected in found[0].conventions[0]
    assert found[0].is_exact and found[0].by_chance <= MAX_EXACT
    assert found.as_is.value == pytest.approx(fd(*rows))


def test_two_conventions_are_named_together(rows):
    found = fe.explain(f"{fd(unit(rows[0]), unit(rows[1][:60])):.6g}", *rows, run=RUN)
    assert set(found[0].conventions) == {"embeddings of unit length", "the first half of the reference set"}


def test_kid_is_explained_by_its_bias_and_its_factor(rows):

    sums = kernel_sums(*map(ArrayEmbeddings, rows), polynomial_kernel)
    assert fe.explain(f"{sums.biased():.5g}", *rows, "kid", run=RUN)[0].conventions[0].startswith("the biased value")
    assert fe.explain(f"{1000 * sums.unbiased():.5g}", *rows, "kid", run=RUN)[0].conventions == ("times 1,000",)


def test_prdc_is_explained_by_its_neighbors(rows):
    number = fe.metrics.prdc(*rows, k=3, run=RUN).value
    as_is = fe.metrics.prdc(*rows, run=RUN).value
    found = fe.explain(f"{number:.5f}", *rows, "prdc", run=RUN)
    assert number != as_is and found[0].conventions == ("3 neighbors",)


def test_numbers_of_no_convention_have_no_explanation(rows):
    as_is = fd(*rows)
    drawn = as_is * np.exp(np.random.default_rng(3).uniform(-np.log(2), np.log(2), 20))
    assert sum(bool(fe.explain(f"{number:.5g}", *rows, run=RUN)) for number in drawn) <= 1


def test_a_number_of_two_digits_has_no_explanation(rows):
    found = fe.explain(f"{fd(rows[0][:100], rows[1]):.1g}", *rows, run=RUN)
    assert found == [] and any("too few digits" in text for text in found.not_tried)


def test_many_samples_leave_chance_alone_as_the_explanation(monkeypatch):
    """At 20 000 samples in two dimensions, the error is 0.3 %: other samples of the same law explain a number."""
    monkeypatch.setattr("finc_eval.conventions.table.SEEDS", ())
    draw = np.random.default_rng(0)
    gen, again, ref = (draw.normal(shift, 1, (20_000, 2)).astype(np.float32) for shift in (3, 3, 0))
    found = fe.explain(f"{fd(again, ref):.6g}", gen, ref, run=RUN)
    assert not found[0].is_exact and "nothing differs" in found[0].conventions[0]
    low, high = found[0].interval
    assert low < fd(again, ref) < high and found[0].by_chance <= MAX_OTHER_SAMPLES


@pytest.fixture(scope="module")
def pictures():
    """Two sets of 24 colored pictures of 40 x 40 pixels."""
    draw = np.random.default_rng(0)
    drawn = draw.integers(0, 256, (48, 5, 5, 3), dtype=np.uint8)
    large = [np.asarray(Image.fromarray(small).resize((40, 40), Image.Resampling.BICUBIC)) for small in drawn]
    return np.stack(large[:24]), np.stack(large[24:])


def jpeg(images, quality):
    made = []
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "JPEG", quality=quality)
        made.append(np.asarray(Image.open(buffer)))
    return np.stack(made)


def resized(images, size, how):
    return np.stack([np.asarray(Image.fromarray(image).resize((size, size), how)) for image in images])


OF_PIXELS = {
    ("JPEG, quality 75",): lambda gen, ref: (jpeg(gen, 75), jpeg(ref, 75)),
    ("JPEG, quality 90, of the generated set alone",): lambda gen, ref: (jpeg(gen, 90), ref),
    ("red and blue exchanged, of the generated set alone",): lambda gen, ref: (gen[..., ::-1], ref),
    ("resized to 32 pixels first",): lambda gen, ref: (
        resized(gen, 32, Image.Resampling.BICUBIC),
        resized(ref, 32, Image.Resampling.BICUBIC),
    ),
    ("resized by Pillow's bilinear filter",): lambda gen, ref: (
        resized(gen, 16, Image.Resampling.BILINEAR),
        resized(ref, 16, Image.Resampling.BILINEAR),
    ),
}


@pytest.fixture(scope="module")
def thumbnails(tmp_path_factory):
    """The card of CONTRIBUTING: the pixels of thumbnails of 16 x 16 pixels."""
    path = tmp_path_factory.mktemp("card") / "thumbnails.toml"
    path.write_text(
        'name = "thumbnails"\ndescription = "Thumbnails."\ncitation = "None."\ntraps = []\n'
        '[loader]\nkind = "pixels"\n[preprocessing]\nsize = [16, 16]\ngeometry = "squash"\nmethod = "pil"\n'
        'interpolation = "bicubic"\nantialias = true\nrounding = "uint8"\nrange = [0.0, 1.0]\nmean = [0.0, 0.0, 0.0]\n'
        'std = [1.0, 1.0, 1.0]\n[output]\nlayer = "input"\npooling = "flatten"\ndimension = 768\n'
    )
    return path


@pytest.mark.parametrize("expected", OF_PIXELS)
def test_a_convention_of_pixels_is_named_first(pictures, thumbnails, expected):
    altered = OF_PIXELS[expected](*pictures)
    number = fe.metrics.fd(*altered, extractor=thumbnails, run=RUN).value
    found = fe.explain(f"{number:.5f}", *pictures, extractor=thumbnails, run=RUN)
    assert found[0].conventions == expected
    assert found.as_is.value == pytest.approx(fe.metrics.fd(*pictures, extractor=thumbnails, run=RUN).value)


def test_larger_sets_try_pixels_on_a_part_of_the_samples_first(pictures, thumbnails, monkeypatch):
    monkeypatch.setattr("finc_eval.conventions.search.SCREENED", 8)
    number = fe.metrics.fd(*(jpeg(images, 75) for images in pictures), extractor=thumbnails, run=RUN).value
    found = fe.explain(f"{number:.5f}", *pictures, extractor=thumbnails, run=RUN)
    assert found[0].conventions == ("JPEG, quality 75",)


@pytest.mark.parametrize(("number", "may"), [(1.1, False), (1.3, True), (1.5, True), (1.7, False)])
def test_an_effect_on_parts_says_which_conventions_may_give_a_number(number, may):
    of_part, of_half = (1.0, 1.4), (1.1, 1.5)  # without and with a convention
    part = SimpleNamespace(of=lambda changes: (of_half if "gen.rows" in changes else of_part)["resize" in changes])
    search = Search(Quoted.of(f"{number:.3f}"), SimpleNamespace(of=lambda _: 1.0), {}, RUN)
    assert search._may_land(part, Convention("resized", {"resize": "pil"})) is may  # 1 + .4 ± .2


@pytest.mark.long
def test_larger_sets_are_not_embedded_whole_for_a_number_of_no_convention(pictures, thumbnails, monkeypatch, tmp_path):
    monkeypatch.setattr("finc_eval.conventions.search.SCREENED", 8)
    far = 5 * fe.metrics.fd(*pictures, extractor=thumbnails, run=RUN).value
    assert fe.explain(f"{far:.7g}", *pictures, extractor=thumbnails, run=RUN) == []
    sizes = [fe.EmbeddingCache(path).n for path in (tmp_path / "cache").rglob("*.h5")]
    assert 2 <= sizes.count(24) <= 6 and sizes.count(8) > 30  # parts of the sets in all ways, the whole sets in few


def test_embeddings_leave_pixels_out_and_say_so(rows):
    found = fe.explain(0.123456, *rows, run=RUN)
    assert any("pass the samples" in text for text in found.not_tried)


WRONG = [
    ("two", "fd", UsageError, "'two'"),
    (0, "fd", UsageError, "'0'"),
    (float("nan"), "fd", UsageError, "'nan'"),
    (True, "fd", UsageError, "'True'"),
    ("1e400", "fd", UsageError, "'1e400'"),
    ("1e-400", "fd", UsageError, "'1e-400'"),
    ("sNaN", "fd", UsageError, "'sNaN'"),
    (28.09, "fdd", UsageError, "fdd"),
    (28.09, "fld", UsageError, "fld"),
    (28.09, "fid", IncompatibleError, "inception-fid"),
]


@pytest.mark.parametrize(("value", "metric", "error", "named"), WRONG)
def test_wrong_numbers_and_metrics_are_refused(rows, value, metric, error, named):
    with pytest.raises(error, match=named):
        fe.explain(value, *rows, metric, run=RUN)


def test_sets_of_unlike_sizes_of_embeddings_are_refused(rows):
    with pytest.raises((DataError, IncompatibleError), match="40"):
        fe.explain(28.09, rows[0], rows[1][:, :30], run=RUN)


@pytest.mark.parametrize(
    ("given", "half"), [("28.10", 0.005), (28.1, 0.05), (28, 0.5), ("1.3e-3", 5e-5), ("-0.02", 0.005)]
)
def test_a_number_stands_for_all_that_round_to_it(given, half):
    quoted = Quoted.of(given)
    assert quoted.half == pytest.approx(half)
    low, high = quoted.exact(quoted.value)
    assert high - low == pytest.approx(2 * half, rel=0.2)
    assert quoted.near[0] < quoted.value < quoted.near[1]


def test_a_metric_that_is_no_name_is_one_sentence():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(fe.UsageError, match="unknown metric"):
        fe.explain(3.2, rows, rows, metric=["fd"])
