"""Settings of the calling process are not an input: results and caches are those of a fresh process."""

import decimal
import io
import random
import warnings
from contextlib import contextmanager
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from _tables import every_value
from PIL import GifImagePlugin, Image, ImageFile, PngImagePlugin, TiffImagePlugin
from torch.overrides import TorchFunctionMode

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_source

pytestmark = pytest.mark.usefixtures("quick_audits")
ROWS = np.random.default_rng(0).normal(size=(2, 60, 8)).astype(np.float32)
IMAGES = np.random.default_rng(1).integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)


@contextmanager
def default_type(kind):
    torch.set_default_dtype(kind)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def attribute(target, name, value):
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)


@contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


class Passing(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


HARMLESS = {
    "inference mode": torch.inference_mode,
    "gradients": torch.enable_grad,
    "deterministic algorithms": deterministic,
    "benchmarks of cuDNN": lambda: attribute(torch.backends.cudnn, "benchmark", True),
    "errors of numpy": lambda: np.errstate(all="raise"),
    "printed numbers of numpy": lambda: np.printoptions(precision=1, threshold=2),
    "warnings as errors": lambda: warnings.catch_warnings(action="error"),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "a mode of functions": Passing,
    "few decimals": lambda: decimal.localcontext(decimal.Context(prec=2)),
}
CHANGING = {
    "bfloat16 autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float16 autocast": lambda: torch.autocast("cpu", dtype=torch.float16),
    "float64 by default": lambda: default_type(torch.float64),
    "bfloat16 by default": lambda: default_type(torch.bfloat16),
    "meta by default": lambda: default_device("meta"),
    "a block on meta": lambda: torch.device("meta"),
}
SETTINGS = HARMLESS | CHANGING
ONE_OF_A_KIND = ["bfloat16 autocast", "float64 by default", "meta by default"]

VERBS = {
    "metrics": lambda x, y: [score.value for score in fe.metrics(x, y, ["fd", "kid", "prdc", "vendi"]).scores],
    "compare": lambda x, y: str(fe.compare(x, y, features=20, modes=2)).split("finc|")[0],
    "kinds": lambda x, y: repr(fe.kinds({"a": x, "b": y})),
    "audit": lambda x, y: repr(fe.audit(*np.random.default_rng(3).normal(size=(3, 120, 8)).astype(np.float32))),
    "leaderboard": lambda x, y: [
        row.rank_set for row in fe.leaderboard({"a": x, "b": y[:30]}, y[30:], metrics=["kid", "fd"]).rows
    ],
    "sketch": lambda x, y: fe.Sketch.reference(y, features=50).n,
}


@cache
def plain(verb):
    return VERBS[verb](*ROWS)


@cache
def embedded(extractor):
    return np.asarray(fe.extract(IMAGES[:4], extractor)[:])


EACH = every_value([*SETTINGS], [*VERBS])
ALL = [pytest.param(*one, marks=pytest.mark.long) for one in product(CHANGING, VERBS) if one not in EACH]


@pytest.mark.one_of_each("verb")
@pytest.mark.parametrize("setting, verb", [*EACH, *ALL])
def test_a_result_does_not_depend_on_settings_of_torch(verb, setting):
    expected = plain(verb)
    with SETTINGS[setting]():
        assert VERBS[verb](*ROWS) == expected


@pytest.mark.one_of_each(by=lambda case: case if case.startswith("pixels") else "a network")
@pytest.mark.parametrize(
    "extractor, setting",
    [
        *product(["pixels"], SETTINGS),
        *product(["efficientnet-lite0"], ONE_OF_A_KIND),
        *(
            pytest.param("efficientnet-lite0", setting, marks=pytest.mark.long)
            for setting in SETTINGS
            if setting not in ONE_OF_A_KIND
        ),
    ],
)
def test_embeddings_do_not_depend_on_settings_of_torch(setting, extractor, assets):
    expected = embedded(extractor)
    with SETTINGS[setting]():
        found = np.asarray(fe.extract(IMAGES[3::-1].copy(), extractor)[:])[::-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("operation", ["matmul", "conv"])
def test_products_on_the_cpu_are_not_rounded_where_the_caller_allows_it(operation):
    backend = getattr(torch.backends.mkldnn, operation, None)
    if backend is None:
        pytest.skip("this torch has no such setting")
    with attribute(backend, "fp32_precision", "bf16"):
        with arithmetic():
            rows = torch.full((256, 256), 1 + 2.0**-12)
            assert torch.equal((rows @ rows)[0, 0], torch.tensor(256 * (1 + 2.0**-12) ** 2))
            assert operation == "matmul" or backend.fp32_precision == "ieee"
        assert backend.fp32_precision == "bf16"


@pytest.mark.one_of_each
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_torch_are_the_callers_again(setting):
    with SETTINGS[setting]():
        before = torch.get_default_dtype(), torch.get_default_device(), torch.is_autocast_enabled("cpu")
        fe.extract(IMAGES, "pixels")
        fe.metrics(*ROWS, "fd")
        assert before == (torch.get_default_dtype(), torch.get_default_device(), torch.is_autocast_enabled("cpu"))


def test_random_states_are_untouched(assets):
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    fe.extract(IMAGES[:2], "efficientnet-lite0")
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1:] == (np.random.get_state()[1].tolist(), random.getstate())


def test_a_function_that_draws_images_goes_on_with_the_callers_random_state():
    def make(count):
        return torch.randint(0, 256, (count, 8, 8, 3), dtype=torch.uint8)

    first, second = (np.asarray(fe.extract(make, "pixels", n=9)[:]) for _ in range(2))
    assert not np.array_equal(first, second)


def cut(form):
    data = io.BytesIO()
    noise = np.random.default_rng(2).integers(0, 256, (200, 200, 3)).astype(np.uint8)
    Image.fromarray(noise).save(data, form)
    return data.getvalue()[: len(data.getvalue()) // 3]


@pytest.mark.one_of_each(by=lambda form: form == "GIF")
@pytest.mark.parametrize("form", ["JPEG", "PNG", "BMP", "TIFF", "WEBP", "GIF", "PPM"])
def test_a_cut_file_is_a_failure_whatever_pillow_is_set_to(form, tmp_path, monkeypatch):
    (tmp_path / "set").mkdir()
    suffix = {"JPEG": "jpg"}.get(form, form.lower())
    (tmp_path / "set" / f"cut.{suffix}").write_bytes(cut(form))
    Image.fromarray(IMAGES[0]).save(tmp_path / "set" / "whole.png")
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    cache = fe.extract(tmp_path / "set", "pixels")
    assert [name for name, _ in cache.failures] == [f"cut.{suffix}"]
    with pytest.raises(FincEvalError, match="1 unreadable sample"):
        fe.extract(tmp_path / "set", "pixels", strict=True)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@pytest.mark.parametrize(
    "module, name, value",
    [
        (GifImagePlugin, "LOADING_STRATEGY", GifImagePlugin.LoadingStrategy.RGB_ALWAYS),
        (TiffImagePlugin, "READ_LIBTIFF", True),
        (PngImagePlugin, "MAX_TEXT_CHUNK", 1),
        (PngImagePlugin, "MAX_TEXT_MEMORY", 1),
        (Image, "MAX_IMAGE_PIXELS", 10),
    ],
)
@pytest.mark.parametrize("form", ["gif", "tif", "png"])
def test_other_settings_of_pillow_do_not_change_what_is_read(module, name, value, form, tmp_path, monkeypatch):
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("comment", "a" * 100, zip=True)
    Image.fromarray(IMAGES[0]).save(tmp_path / f"one.{form}", **({"pnginfo": info} if form == "png" else {}))
    before = next(iter(open_source(tmp_path).samples()))
    monkeypatch.setattr(module, name, value)
    after = next(iter(open_source(tmp_path).samples()))
    assert (after.error, after.encoding) == (before.error, before.encoding)
    assert np.array_equal(after.pixels, before.pixels)
    assert getattr(module, name) == value


def test_pillows_limit_of_pixels_does_not_apply_to_animations(tmp_path, monkeypatch):
    frames = [Image.fromarray(image) for image in IMAGES[:4]]
    frames[0].save(tmp_path / "one.webp", save_all=True, append_images=frames[1:], lossless=True)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    (sample,) = open_source(tmp_path, clip=Clip(2, 1, 1, "hold")).samples()
    assert (sample.error, len(sample.pixels)) == (None, 2)
    assert Image.MAX_IMAGE_PIXELS == 10
