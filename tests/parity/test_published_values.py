"""Numbers that others have published, by the whole path; each test says what it needs.

FINC_EVAL_WEIGHTS names the folder of weights (`finc-eval doctor weights fetch` fills it), FINC_EVAL_CIFAR10 the folder
cifar-10-batches-bin of the binary version of CIFAR-10, FINC_EVAL_ADM one with the files of the ADM evaluator. On a CPU
they take hours.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.device import default_device
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import load_backbone
from finc_eval.extractors.weights import FOLDER_VARIABLE, check_weights, locate
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.kid import kid, kid_interval
from finc_eval.measures.metrics import metrics as evaluate
from finc_eval.measures.precision_recall import precision_recall


def card_with_weights(name):
    card = load_card(name)
    if not os.environ.get(FOLDER_VARIABLE) or locate(card.weights) is None:
        pytest.skip(f"needs {card.weights.file} in ${FOLDER_VARIABLE}: finc-eval doctor weights fetch {name}")
    return card


def folder_of(variable, *files):
    folder = Path(os.environ.get(variable) or "nowhere")
    if not all((folder / file).is_file() for file in files):
        pytest.skip(f"needs {', '.join(files)} in ${variable}")
    return folder


def cifar10(part):
    """Images (n, 32, 32, 3) of the files of CIFAR-10's binary version, in which a label precedes every image."""
    files = [f"data_batch_{number}.bin" for number in range(1, 6)] if part == "train" else ["test_batch.bin"]
    folder = folder_of("FINC_EVAL_CIFAR10", *files)
    records = np.concatenate([np.fromfile(folder / file, np.uint8).reshape(-1, 3073) for file in files])
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def some(images, count, seed):
    """A seeded part of the images, in their order."""
    return images[np.sort(np.random.RandomState(seed).choice(len(images), count, replace=False))]


@torch.inference_mode()
def i3d_logits_of_noise(seed, network, clips=128):
    """Return the logits of uniform noise in [0, 1]: clips of 16 frames of 224 x 224, without preprocessing."""
    draw, rows = np.random.RandomState(seed), []
    for _ in range(clips):
        clip = torch.from_numpy(draw.rand(16, 224, 224, 3).astype(np.float32)).permute(3, 0, 1, 2)
        rows.append(network(clip[None].to(default_device()))["logits"].cpu())
    return torch.cat(rows)


def test_fvd_of_noise_is_that_of_fvd_comparison():
    card = card_with_weights("i3d-rgb-k400")
    network = load_backbone(card, default_device(), check_weights(card)[0])
    gen, ref = (i3d_logits_of_noise(seed, network) for seed in (1, 2))
    # Too few clips for fvd(), which refuses them.
    assert frechet_distance(gen, ref).value == pytest.approx(10.138085, rel=1e-4)


def test_the_inception_score_of_cifar10_is_torch_fidelitys(tmp_path):
    card_with_weights("inception-fid")
    fe.extract(cifar10("train"), "inception-fid", tmp_path / "train.h5")
    found = inception_score(EmbeddingCache(tmp_path / "train.h5", "logits_unbiased"))
    assert (found.mean, found.std) == pytest.approx((11.23678, 0.09514), rel=1e-3)


def test_fid_kid_and_inception_score_of_parts_of_cifar10_are_torch_fidelitys(tmp_path):
    # Its precision and recall of these, 0.6852 and 0.6908, are of VGG-16's features, for which there is no card.
    card_with_weights("inception-fid")
    for part in ("train", "test"):
        fe.extract(some(cifar10(part), 5000, 2020), "inception-fid", tmp_path / f"{part}.h5")
    gen, ref = (EmbeddingCache(tmp_path / f"{part}.h5") for part in ("train", "test"))
    assert frechet_distance(gen, ref).value == pytest.approx(10.3233274, rel=1e-4)
    # Its sums are of float32, whose rounding is 1e-7.
    assert kid(gen, ref).mean == pytest.approx(-2.907863e-05, abs=1e-6)
    score = inception_score(EmbeddingCache(tmp_path / "train.h5", "logits_unbiased"))
    assert (score.mean, score.std) == pytest.approx((10.75051, 0.5778723), rel=1e-3)


def test_metrics_of_dinov2_on_parts_of_cifar10_are_dgm_evals(tmp_path):
    card_with_weights("dinov2-vitl14")
    for part in ("train", "test"):
        fe.extract(some(cifar10(part), 512, 13579), "dinov2-vitl14", tmp_path / f"{part}.h5")
    gen, ref = (EmbeddingCache(tmp_path / f"{part}.h5") for part in ("test", "train"))
    # Of 512 samples in 1024 dimensions, where its square root of a singular matrix is not exact.
    assert frechet_distance(gen, ref).value == pytest.approx(862.53745, rel=1e-2)
    assert kid_interval(gen, ref).value == pytest.approx(0.01095, abs=1e-4)
    found = precision_recall(gen, ref)
    shares = (found.precision, found.recall, found.density, found.coverage)
    # Two samples of 512 may lie on the other side of a surface.
    assert shares == pytest.approx((0.90430, 0.91797, 0.97969, 0.94141), abs=2.1 / 512)


def test_metrics_of_adm_are_its_evaluators(tmp_path):
    card_with_weights("inception-fid")
    samples, statistics = "admnet_guided_upsampled_imagenet256.npz", "VIRTUAL_imagenet256_labeled.npz"
    folder = folder_of("FINC_EVAL_ADM", samples, statistics)
    gen = fe.extract(folder / samples, "inception-fid", tmp_path / "gen.h5")
    found = evaluate(gen, folder / statistics, ["fid", "sfid", "inception_score"])
    assert not found.failures
    assert found["fid"].value == pytest.approx(3.942557, rel=1e-3)
    assert found["sfid"].value == pytest.approx(6.140434, rel=1e-3)
    # Its splits are not shuffled.
    assert found["inception_score_mean"].value == pytest.approx(215.8370, rel=1e-2)
