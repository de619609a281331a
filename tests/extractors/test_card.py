"""Cards say everything that decides an embedding, and nothing else is accepted."""

import json
from dataclasses import replace
from importlib import resources

import pytest
import timm
import torch
from _networks import message

from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.networks import load_backbone, timm_cards

PIXELS = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
WEIGHTS = '\n[weights]\nfile = "{file}"\nsha256 = "{sha256}"\nlicense = "MIT"\n'
CLIP = '\n[clip]\nframes = 16\nstride = 1\nwindows = 1\nshort = "loop"\n'


def weights(file="net.pt", sha256="0" * 64):
    return WEIGHTS.format(file=file, sha256=sha256)


@pytest.fixture
def edited(tmp_path):
    """Return the path of a card like pixels in which one text is replaced by another."""

    def edit(old="", new="", more=""):
        assert old in PIXELS
        path = tmp_path / "card.toml"
        path.write_text(PIXELS.replace(old, new, 1) + more)
        return path

    return edit


@pytest.mark.parametrize("name", available_cards())
def test_every_card_bears_its_name_and_says_whom_to_cite_and_what_to_beware_of(name):
    card = load_card(name)
    assert card.name == name
    assert card.citation
    assert card.traps
    if card.weights:
        assert card.weights.license
        assert card.weights.urls or card.weights.package
        assert "/" not in card.weights.file


def test_no_two_cards_keep_different_weights_under_one_file_name():
    kept = [load_card(name).weights for name in available_cards()]
    digests = {(weights.file, weights.sha256) for weights in kept if weights}
    assert len(digests) == len({file for file, _ in digests})


def digest(card):
    """Return all that decides the numbers. The weights may be missing here, so their digest is the stated one."""
    return json.dumps(card.recipe | {"weights": card.weights and card.weights.sha256}, sort_keys=True)


def test_the_four_inceptions_are_four_extractors():
    names = ["inception-fid", "inception-fid-clean", "inception-fid-legacy-pytorch", "inception-tv"]
    assert len({digest(load_card(name)) for name in names}) == 4


def test_the_digest_follows_what_changes_the_numbers_and_not_the_prose(edited):
    before = digest(load_card("pixels"))
    assert digest(load_card(edited('name = "pixels"', 'name = "mine"'))) == before
    assert digest(load_card(edited("seed = 0", "seed = 1"))) == before
    assert digest(load_card(edited('pooling = "flatten"', 'pooling = "none"'))) == before
    assert digest(load_card(edited("std = [1.0, 1.0, 1.0]", "std = [1, 1, 1]"))) == before
    others = [
        digest(load_card(edited('"bicubic"', '"lanczos"'))),
        digest(load_card(edited("= 2352", "= 2353"))),
        digest(load_card(edited('kind = "pixels"', 'kind = "other"'))),
        digest(load_card(edited(more='\n[extra.logits]\nlayer = "logits"\npooling = "none"\ndimension = 10\n'))),
        digest(load_card(edited(more=weights()))),
        digest(load_card(edited(more=weights(sha256="1" * 64)))),
    ]
    assert len({before, *others}) == 7


def test_where_the_weights_lie_is_no_part_of_the_digest(edited):
    before = digest(load_card(edited(more=weights("net.pt"))))
    assert digest(load_card(edited(more=weights("./other.pt")))) == before


def test_golden_values_may_be_left_out(tmp_path):
    (tmp_path / "card.toml").write_text(PIXELS[: PIXELS.index("[golden]")])
    assert load_card(tmp_path / "card.toml").golden is None


def test_weights_may_lie_beside_the_users_card(edited, tmp_path):
    assert load_card(edited(more=weights("./net.pt"))).weights.file == str(tmp_path / "net.pt")
    assert load_card(edited(more=weights("nets/net.pt"))).weights.file == str(tmp_path / "nets" / "net.pt")
    assert load_card(edited(more=weights("/nets/net.pt"))).weights.file == "/nets/net.pt"
    assert load_card(edited(more=weights("net.pt"))).weights.file == "net.pt"


def test_an_unknown_extractor_is_named_with_the_nearest_and_the_list():
    text = message(load_card, "pixel")
    assert 'unknown extractor "pixel" (did you mean "pixels"?)' in text
    assert "finc-eval doctor extractors list shows all" in text
    assert "choose one of " + ", ".join(available_cards()) in message(load_card, "nosuch")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("geometry", "geomtry", 'unknown key "preprocessing.geomtry" (did you mean "geometry"?)'),
        ("[output]", "[outputs]", 'unknown key "outputs" (did you mean "output"?)'),
        ('kind = "pixels"', "", 'the key "loader.kind" is missing: add a string'),
        ('geometry = "squash"', "", 'the key "preprocessing.geometry" is missing: add "squash" or "crop"'),
        ("dimension = 2352", 'dimension = "2352"', """"output.dimension" must be a whole number, got '2352'"""),
        ("dimension = 2352", "dimension = true", '"output.dimension" must be a whole number, got True'),
        ("dimension = 2352", "dimension = 0", '"output.dimension" must be greater than 0, got 0'),
        ("[28, 28]", "[28]", '"preprocessing.size" must be a list of 2 whole numbers, got [28]'),
        ("[28, 28]", "[28, 0]", '"preprocessing.size" must be greater than 0, got 0'),
        ("[28, 28]", "28", '"preprocessing.size" must be a list of 2 whole numbers, got 28'),
        ('"bicubic"', '"cubic"', """must be "bicubic" or "bilinear" or "lanczos", got 'cubic\'"""),
        (
            "antialias = true",
            "antialias = false",
            '"preprocessing.antialias" must be true with method = "pil", got false',
        ),
        ('"uint8"', '"none"', '"preprocessing.rounding" must be "uint8" with method = "pil", got "none"'),
        ('"pil"', '"tensorflow1"', '"preprocessing.interpolation" must be "bilinear" with method = "tensorflow1"'),
        ("[0.0, 1.0]", "[1.0, 0.0]", '"preprocessing.range" must be a lower and a higher value, got [1.0, 0.0]'),
        (
            'geometry = "squash"',
            'geometry = "crop"\ncrop_fraction = 1.5',
            '"preprocessing.crop_fraction" must be less than or equal to 1, got 1.5',
        ),
        ("std = [1.0, 1.0, 1.0]", "std = [1, 0, 1]", '"preprocessing.std" must be greater than 0, got 0'),
        ("shape = [37, 41, 3]", "shape = [37, 41]", '"golden.shape" must be [height, width, 3], got [37, 41]'),
        ("[loader]", "[loader", "cannot be read as a TOML file"),
    ],
)
def test_a_wrong_card_is_refused_with_the_key_and_the_value(edited, old, new, words):
    assert words in message(load_card, edited(old, new))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (weights(sha256="abc"), "\"weights.sha256\" must be 8 to 64 lower-case hex digits, got 'abc'"),
        (weights(sha256="A" * 64), "must be 8 to 64 lower-case hex digits"),
        (weights() + 'urls = ["ftp://a/b"]\n', "must begin with https://, http:// or file://, got 'ftp://a/b'"),
        (weights() + 'package = "../x"\n', '"weights.package" must be an import name and folders'),
        ('\n[extra.Logits]\nlayer = "logits"\npooling = "none"\ndimension = 2\n', "lower-case letters, digits"),
        (
            '\n[extra.a]\nlayer = "logits"\npooling = "none"\ndimension = 0\n',
            '"extra.a.dimension" must be greater than 0, got 0',
        ),
        ('\n[extra.a]\nlayer = "a"\n[extra.a]\nlayer = "b"\n', "cannot be read as a TOML file"),
        (CLIP.replace("16", "0"), '"clip.frames" must be greater than 0, got 0'),
        (CLIP.replace("windows = 1", "windows = -2"), '"clip.windows" must be greater than 0, got -2'),
        (CLIP + "fps = 0.0\n", '"clip.fps" must be greater than or equal to 0.0001, got 0.0'),
        (CLIP, '"golden.shape" must be [frames, height, width, 3], got [37, 41, 3]'),
    ],
)
def test_tables_that_make_no_sense_are_refused(edited, more, words):
    assert words in message(load_card, edited(more=more))


def test_a_missing_card_file_is_named(tmp_path):
    assert f"the card {tmp_path / 'no.toml'} cannot be read" in message(load_card, tmp_path / "no.toml")


def test_an_unknown_loader_is_refused(edited):
    card = load_card(edited('kind = "pixels"', 'kind = "pixel"'))
    assert 'unknown loader.kind "pixel" (did you mean "pixels"?)' in message(load_backbone, card, torch.device("cpu"))


def test_pixels_refuses_weights_it_would_not_use(edited):
    card = load_card(edited(more=weights()))
    assert "takes no weights" in message(load_backbone, card, torch.device("cpu"))


def test_any_network_of_timm_has_a_card_as_timm_configures_it():
    card = load_card("timm:resnet18")
    assert card.name == "timm:resnet18.a1_in1k"
    assert card.preprocessing.size == (224, 224)
    assert (card.preprocessing.geometry, card.preprocessing.crop_fraction) == ("crop", 0.95)
    assert (card.output.layer, card.output.dimension, card.extra["logits"].dimension) == ("features", 512, 1000)
    assert card.weights.urls == ("https://huggingface.co/timm/resnet18.a1_in1k/resolve/main/model.safetensors",)
    assert digest(card) == digest(load_card("timm:resnet18.a1_in1k"))


@pytest.mark.parametrize("name", ["resnet18.a1_in1", "resnet18_a1_in1k"])
def test_a_network_timm_has_no_weights_of_is_refused_with_the_nearest(name):
    text = message(load_card, f"timm:{name}")
    assert f'has no trained weights of "{name}" (did you mean "resnet18.' in text


def test_timms_squash_keeps_the_share_it_crops():
    # timm brings the sides to 256 / 0.95 and takes the middle, in this mode too.
    config = timm.get_pretrained_cfg("resnet18.a1_in1k")
    squash = replace(config, crop_mode="squash", crop_pct=0.9)
    how = timm_cards._preprocessing("resnet18.a1_in1k", squash)
    assert (how.geometry, how.crop_fraction) == ("squash", 0.9)


def test_a_network_of_timm_without_features_of_an_image_is_refused(monkeypatch):
    class Rows(torch.nn.Module):
        def __init__(self):
            raise NotImplementedError("no classification")

    monkeypatch.setattr(timm, "create_model", lambda *_, **__: Rows())
    assert "does not give one row of features for each image (no classification)" in message(load_card, "timm:resnet18")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "1" + 400 * "0"])
def test_numbers_that_are_none_are_refused(edited, value):
    assert '"preprocessing.std" must be a finite number' in message(
        load_card, edited("std = [1.0, 1.0, 1.0]", f"std = [1.0, {value}, 1.0]")
    )


@pytest.mark.parametrize("name", ["\0.toml", "~nobody-of-that-name/x.toml"])
def test_what_is_no_path_is_refused(name):
    assert "cannot be read" in message(load_card, name)
