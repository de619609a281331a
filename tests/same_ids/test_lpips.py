"""LPIPS equals that of the package lpips, and is measured where both files of its weights are."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
import torchvision
from _runs_of_scenes import judge_pairs
from test_measures import noisy, pictures

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.weights import MissingWeightsError
from finc_eval.same_ids import lpips, pairs
from finc_eval.same_ids.lpips import LAYERS, Lpips

CPU = torch.device("cpu")


def saved(weights, path, tensors):
    torch.save(tensors, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(weights, file=str(path), sha256=digest, package=None, urls=())


class OneWeight(torch.nn.Linear):
    """A linear layer of one weight, whatever it should map."""

    def __init__(self, *sizes, **options):
        super().__init__(1, 1)


@pytest.fixture(scope="module", autouse=True)
def small_classifiers():
    """Networks with linear layers of one weight: theirs are 24 of 25 weights, and no part of LPIPS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn, "Linear", OneWeight)
        yield


@pytest.fixture(scope="module")
def card(tmp_path_factory, small_classifiers):
    """The card with weights drawn by chance, in two files that no test changes."""
    folder = tmp_path_factory.mktemp("lpips")
    torch.manual_seed(0)
    whole = load_card("alexnet")
    network = torchvision.models.alexnet()
    for layer in network.features:
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.uniform_(layer.weight, -1, 1)
            layer.weight.data /= layer.weight[0].numel() ** 0.5
    channels = [network.features[place - 1].out_channels for place in LAYERS]
    heads = {f"lin{number}.model.1.weight": torch.rand(1, one, 1, 1) for number, one in enumerate(channels)}
    return replace(
        whole,
        weights=saved(whole.weights, folder / "alexnet.pth", network.state_dict()),
        lpips=saved(whole.lpips, folder / "linear.pth", heads),
    )


@pytest.fixture(scope="module")
def own(card):
    return Lpips(card, CPU)


@pytest.fixture(scope="module")
def oracle(card):
    """LPIPS of the package lpips, with the weights of the card."""
    package = pytest.importorskip("lpips", reason="lpips is missing: pip install .[test]")
    found = package.LPIPS(pnet_rand=True, pretrained=False, verbose=False)
    network = torchvision.models.alexnet()
    network.load_state_dict(torch.load(card.weights.file))
    for one in (getattr(found.net, f"slice{number + 1}") for number in range(len(LAYERS))):
        for place, layer in one.named_children():
            layer.load_state_dict(network.features[int(place)].state_dict())
    found.load_state_dict(torch.load(card.lpips.file), strict=False)
    return found


@pytest.mark.parametrize("size", [pytest.param((512, 512), marks=pytest.mark.long), (97, 71), (31, 64)])
def test_it_is_that_of_the_package_lpips(own, oracle, size):
    first = pictures((2, *size, 3))
    second = noisy(first)
    both = [torch.from_numpy(one).permute(0, 3, 1, 2).float() / 255 for one in (first, second)]
    expected = oracle(*both, normalize=True).flatten().tolist()
    assert own.measure(first, second) == pytest.approx(expected, rel=1e-4)


def test_equal_pictures_are_0_apart_and_small_ones_are_not_measured(own):
    measure = own.measure
    first = pictures((1, 40, 40, 3))
    assert measure(first, first) == [0]
    assert np.isnan(measure(first[:, :30], first[:, :30])).all()


@pytest.mark.parametrize("lacking", ["weights", "lpips"])
def test_without_one_of_the_files_it_is_not_measured(card, lacking, monkeypatch):
    gone = replace(card, **{lacking: replace(getattr(card, lacking), file="/nowhere/weights.pth")})
    with pytest.raises(MissingWeightsError, match=r"weights\.pth.* are not at /nowhere"):
        Lpips(gone, CPU)
    monkeypatch.setattr(lpips, "load_card", lambda name: gone)
    assert lpips.find_lpips(CPU) is None


def test_with_both_files_it_is_found(card, monkeypatch):
    monkeypatch.setattr(lpips, "load_card", lambda name: card)
    assert lpips.find_lpips(CPU) is not None


def test_a_file_of_other_tensors_is_refused(card):
    other = replace(card, lpips=card.weights)
    with pytest.raises(DataError, match="does not hold the linear layers of LPIPS"):
        Lpips(other, CPU)


@pytest.mark.parametrize(("side", "is_there"), [(40, True), (16, False)])
def test_the_table_has_it_for_pictures_that_are_large_enough(own, monkeypatch, side, is_there):
    import finc_eval as fe

    monkeypatch.setattr(pairs, "find_lpips", lambda device: own)
    old = pictures((30, side, side, 3))
    sets = [
        fe.EmbeddingSet(
            one[:, ::8, ::8].reshape(30, -1).astype(np.float32), [f"{row}.png" for row in range(30)], {}, one
        )
        for one in (noisy(old), old)
    ]
    found = judge_pairs(*sets, run=Run(device="cpu"))
    assert ("lpips" in found.table) is is_there
    assert found.table["ssim"].notna().all()
