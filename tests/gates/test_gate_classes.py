"""Classes that the extractor's last layer sees are searched for lost and new ones, as nodes of a tree are."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.extractors.imagenet import imagenet_tree
from finc_eval.gates import divisions
from finc_eval.naming.evidence import Name

N = 600
BREEDS = ("golden retriever", "beagle", "goldfish", "volcano", "teapot")
POLICY = {"kinds": {"lose": 0.5}}


@pytest.fixture
def seen(monkeypatch):
    """Sets whose rows say nothing of their classes, which a last layer sees all the same."""

    def probabilities(one, rows):
        chance = torch.full((len(rows), len(imagenet_tree().below)), 1e-6)
        labels = one.column("label")
        for place, row in enumerate(rows.tolist()):
            chance[place, imagenet_tree().names.index(labels[row])] = 0.9
        return chance

    monkeypatch.setattr(divisions, "classifier_of", lambda space: object())
    monkeypatch.setattr(divisions, "probabilities", probabilities)

    def draw(seed, lost=(), new=()):
        rng = np.random.default_rng(seed)
        labels = rng.choice([one for one in BREEDS if one not in lost], N)
        for place, (label, share) in enumerate(new):
            labels[place * N // 10 :][: round(share * N)] = label
        return fe.EmbeddingSet(rng.normal(size=(N, 8)).astype(np.float32), metadata={"label": labels.tolist()})

    return draw


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "lost, found, named",
    [
        ((), None, ""),
        (("goldfish",), "goldfish", "goldfish"),
        # The narrowest everyday noun above both, once; what its samples are called is said by their labels.
        (("golden retriever", "beagle"), "dog", "golden retriever and beagle"),
    ],
)
def test_a_class_or_a_noun_that_is_lost_is_a_regression_by_its_name(seen, lost, found, named):
    verdict = fe.gate(seen(3, lost), seen(1), seen(2), POLICY)
    broken = [one.name for one in verdict.of("regressed")]
    if found is None:
        assert broken == []
        return
    assert verdict.overall == "regression" and broken == [f"kinds.lose seen-{found}"]
    headline = verdict.headline
    assert "lacks " in headline and all(name in headline for name in named.split(" and "))
    assert headline.count("lacks") == 1


@pytest.mark.parametrize(
    "new, limit, found",
    [
        ((), 0.03, []),
        ((("lemon", 0.05),), 0.03, ["lemon"]),
        ((("lemon", 0.05),), 0.08, ["lemon"]),  # of which half is seen
        ((("lemon", 0.05),), 0.12, []),  # of which half would be seen: more than there is
        ((("lemon", 0.004),), 0.001, []),  # two samples are chance
        ((("tabby", 0.03), ("Egyptian cat", 0.03)), 0.05, ["cat"]),  # the noun holds both
        ((("goldfish", 0.05),), 0.03, []),  # which the reference has
    ],
)
def test_a_class_that_the_reference_lacks_is_a_regression_by_its_name(seen, new, limit, found):
    verdict = fe.gate(seen(3, new=new), seen(1), seen(2), {"kinds": {"new": limit}})
    assert [one.about for one in verdict.of("regressed")] == [f"seen-{name}" for name in found]
    assert not found or (verdict.overall == "regression" and all(name in verdict.headline for name in found))


def test_samples_of_a_noun_without_a_name_of_their_own_are_called_by_the_noun(seen, monkeypatch):
    monkeypatch.setattr(divisions, "names_of_unions", lambda unions, *_: {kind: Name(None) for kind in unions})
    verdict = fe.gate(seen(3, ("golden retriever", "beagle")), seen(1), seen(2), POLICY)
    assert "lacks dog" in verdict.headline


def test_without_a_last_layer_no_class_is_searched():
    rows = [np.random.default_rng(seed).normal(size=(200, 8)).astype(np.float32) for seed in range(3)]
    assert not [one for one in fe.gate(*rows, POLICY).limits if one.about.startswith("seen-")]
