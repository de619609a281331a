"""Cards say everything that decides an embedding, and nothing else is accepted."""

from importlib import resources

import numpy as np
import pytest
import torch

from finc_eval.backbones import load_backbone
from finc_eval.cards import available_cards, load_card
from finc_eval.errors import FincEvalError
from finc_eval.preprocess import preprocess

PIXELS = (resources.files("finc_eval.extractors") / "pixels.toml").read_text()
WEIGHTS = '\n[weights]\nfile = "net.pt"\nsha256 = "{}"\nlicence = "MIT"\n'


@pytest.fixture
def edited(tmp_path):
    """Return the path of a card like pixels in which one text is replaced by another."""

    def edit(old="", new="", more=""):
        assert old in PIXELS
        path = tmp_path / "card.toml"
        path.write_text(PIXELS.replace(old, new, 1) + more)
        return path

    return edit


def message(call, *arguments):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("name", available_cards())
def test_every_card_gives_its_golden_values(name):
    card = load_card(name)
    golden, cpu = card.golden, torch.device("cpu")
    assert card.name == name
    image = np.random.default_rng(golden.seed).integers(0, 256, golden.shape, dtype=np.uint8)
    pixels = torch.from_numpy(preprocess(image, card.preprocessing))[None]
    (embedding,) = load_backbone(card, cpu)(pixels).numpy()
    assert embedding.shape == (card.output.dimension,)
    assert np.linalg.norm(embedding) == pytest.approx(golden.norm, rel=golden.tolerance)
    np.testing.assert_allclose(embedding[: len(golden.first)], golden.first, rtol=golden.tolerance)


def test_pixels_leaves_mnist_sized_images_as_they_are():
    image = np.random.default_rng(1).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    pixels = preprocess(image, load_card("pixels").preprocessing)
    assert pixels.dtype == np.float32
    np.testing.assert_array_equal(pixels, image.transpose(2, 0, 1) / np.float32(255))


def test_mean_and_deviation_are_in_units_of_scaled_pixels(edited):
    card = load_card(edited("mean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]", "mean = [0, 0.5, 1]\nstd = [1, 0.5, 2]"))
    white = np.full((28, 28, 3), 255, np.uint8)
    np.testing.assert_allclose(preprocess(white, card.preprocessing)[:, 0, 0], [1, 1, 0])


def test_crop_keeps_the_centre_and_squash_keeps_everything(edited):
    image = np.zeros((56, 168, 3), np.uint8)
    image[:, 56:112] = 255
    crop = load_card(edited('"squash"', '"crop"')).preprocessing
    assert preprocess(image, load_card("pixels").preprocessing).mean() == pytest.approx(1 / 3, abs=0.02)
    assert preprocess(image, crop).shape == (3, 28, 28)
    assert preprocess(image, crop)[:, :, 2:-2].min() == 1
    assert preprocess(image[:57, :91], crop).shape == (3, 28, 28)


def test_shrinking_is_antialiased():
    checkers = np.zeros((280, 280, 3), np.uint8)
    checkers[::2, ::2] = checkers[1::2, 1::2] = 255
    assert np.ptp(preprocess(checkers, load_card("pixels").preprocessing)) < 0.05


def test_the_digest_follows_what_changes_the_numbers_and_not_the_prose(edited):
    digest = load_card("pixels").digest
    assert load_card(edited('name = "pixels"', 'name = "mine"')).digest == digest
    assert load_card(edited("seed = 0", "seed = 1")).digest == digest
    assert load_card(edited("std = [1.0, 1.0, 1.0]", "std = [1, 1, 1]")).digest == digest
    others = [
        load_card(edited('"bicubic"', '"lanczos"')).digest,
        load_card(edited("= 2352", "= 2353")).digest,
        load_card(edited('kind = "pixels"', 'kind = "other"')).digest,
        load_card(edited(more=WEIGHTS.format("0" * 64))).digest,
        load_card(edited(more=WEIGHTS.format("1" * 64))).digest,
    ]
    assert len({digest, *others}) == 6


def test_golden_values_may_be_left_out(tmp_path):
    (tmp_path / "card.toml").write_text(PIXELS[: PIXELS.index("[golden]")])
    assert load_card(tmp_path / "card.toml").golden is None


def test_an_unknown_extractor_is_named_with_the_nearest_and_the_list():
    text = message(load_card, "pixel")
    assert 'there is no extractor "pixel" (did you mean "pixels"?)' in text
    assert "choose one of " + ", ".join(available_cards()) in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("geometry", "geomtry", 'unknown key "preprocessing.geomtry" (did you mean "geometry"?)'),
        ("[output]", "[outputs]", 'unknown key "outputs" (did you mean "output"?)'),
        ('kind = "pixels"', "", 'the key "loader.kind" is missing: add a string'),
        ('geometry = "squash"', "", 'the key "preprocessing.geometry" is missing: add "squash" or "crop"'),
        ("dimension = 2352", 'dimension = "2352"', """"output.dimension" must be an integer, got '2352'"""),
        ("dimension = 2352", "dimension = true", '"output.dimension" must be an integer, got True'),
        ("dimension = 2352", "dimension = 0", '"output.dimension" must be positive, got 0'),
        ("[28, 28]", "[28]", '"preprocessing.size" must be a list of 2 integers, got [28]'),
        ("[28, 28]", "[28, 0]", '"preprocessing.size" must be positive'),
        ("[28, 28]", "28", '"preprocessing.size" must be a list of 2 integers, got 28'),
        ('"bicubic"', '"cubic"', """must be "bicubic" or "bilinear" or "lanczos", got 'cubic\'"""),
        ("antialias = true", "antialias = false", '"preprocessing.antialias" must be true, got False'),
        ("std = [1.0, 1.0, 1.0]", "std = [1, 0, 1]", '"preprocessing.std" must be positive'),
        ("[loader]", "[loader", "is no valid TOML"),
    ],
)
def test_a_wrong_card_is_refused_with_the_key_and_the_value(edited, old, new, words):
    assert words in message(load_card, edited(old, new))


def test_weights_need_a_sha256(edited):
    assert '"weights.sha256" must be 64' in message(load_card, edited(more=WEIGHTS.format("abc")))


def test_a_missing_card_file_is_named(tmp_path):
    assert f"the card {tmp_path / 'no.toml'} cannot be read" in message(load_card, tmp_path / "no.toml")


def test_an_unknown_loader_is_refused(edited):
    card = load_card(edited('kind = "pixels"', 'kind = "pixel"'))
    assert 'no loader.kind "pixel" (did you mean "pixels"?)' in message(load_backbone, card, torch.device("cpu"))


def test_pixels_refuses_weights_it_would_not_use(edited):
    card = load_card(edited(more=WEIGHTS.format("0" * 64)))
    assert "takes no weights" in message(load_backbone, card, torch.device("cpu"))
