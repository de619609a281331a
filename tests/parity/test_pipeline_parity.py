import re
from importlib import resources

import numpy as np
import pytest
import torch
from _library_checks import TORCH_FIDELITY
from _parity import function_of
from PIL import Image

import finc_eval as fe
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.kid import kid

THEIRS = """
import contextlib, sys
import torch_fidelity
def their(gen, ref, weights):
    with contextlib.redirect_stdout(sys.stderr):
        return torch_fidelity.calculate_metrics(
            input1=str(gen), input2=str(ref), fid=True, kid=True, isc=True, cuda=False, cache=False, verbose=False,
            feature_extractor_weights_path=str(weights), kid_subsets=5, kid_subset_size=10, isc_splits=2, batch_size=8,
        )
"""


@pytest.fixture
def random_inception(tmp_path):
    """The card inception-fid with random weights, and their file."""
    from finc_eval.extractors.networks.fid_inception import FidInception

    torch.manual_seed(0)
    weights = tmp_path / "random.pth"
    network = FidInception()
    for module in network.modules():
        # The default of torch shrinks the signal in every layer, until all images look alike.
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=0.05)
    torch.save(network.state_dict(), weights)
    text = (resources.files("finc_eval.extractors.cards") / "inception-fid.toml").read_text()
    card = tmp_path / "random-inception.toml"
    table = f'[weights]\nfile = "{weights}"\nlicense = "none"\n\n'
    card.write_text(re.sub(r"\[weights\].*?\n\n", table, text, flags=re.DOTALL))
    return card, weights


@pytest.mark.long
def test_fid_kid_and_inception_score_of_folders_are_torch_fidelitys(digits, random_inception, tmp_path):
    if TORCH_FIDELITY.version is None:
        pytest.skip("needs torch-fidelity: pip install torch-fidelity")
    rows, labels = digits
    card, weights = random_inception
    for name, digit in (("gen", 1), ("ref", 8)):
        (tmp_path / name).mkdir()
        for number, row in enumerate(rows[labels == digit][:12]):
            gray = (255 * row.reshape(28, 28)).round().astype(np.uint8)
            Image.fromarray(np.stack([gray, gray.T, 255 - gray], 2)).save(tmp_path / name / f"{number:02}.png")
        fe.extract(tmp_path / name, card, tmp_path / f"{name}.h5", run=fe.Run(batch_size=8))
    paths = {name: str(tmp_path / name) for name in ("gen", "ref")}
    expected = function_of(THEIRS)(weights=weights, **paths)
    gen, ref = (EmbeddingCache(tmp_path / f"{name}.h5") for name in paths)
    score = inception_score(EmbeddingCache(tmp_path / "gen.h5", "logits_unbiased"), splits=2)
    distance = kid(gen, ref, subsets=5, subset_size=10)
    assert frechet_distance(gen, ref).value == pytest.approx(expected["frechet_inception_distance"], rel=1e-4)
    # Theirs sums kernels in float32, whose last digits depend on the processor.
    assert distance.mean == pytest.approx(expected["kernel_inception_distance_mean"], rel=1e-3)
    # Random logits tell images apart little: the score is barely above one, and what is above is compared.
    assert score.mean - 1 == pytest.approx(expected["inception_score_mean"] - 1, rel=1e-2)
    assert score.mean - 1 > 1e-5
