import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.gaussians.opened import gaussian_statistics
from finc_eval.measures.gaussians.reference_statistics import note_beside, read_statistics, write_statistics


def drawn(n, shift=0.0, seed=0, dim=6):
    return shift + torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.fixture
def rows():
    return drawn(50).double().numpy()


@pytest.fixture
def theirs(rows):
    """mu and sigma as other tools compute them."""
    return {"mu": rows.mean(0), "sigma": np.cov(rows, rowvar=False)}


def test_statistics_of_other_tools_are_those_of_their_samples_of_unknown_number(rows, theirs, tmp_path):
    found = read_statistics(saved(tmp_path / "fid.npz", **theirs))
    expected = gaussian_statistics(rows)
    torch.testing.assert_close(found.mean, expected.mean.cpu(), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(found.covariance, expected.covariance.cpu(), rtol=1e-6, atol=1e-7)
    assert found.n is None
    result = frechet_distance(drawn(40, 0.5), tmp_path / "fid.npz")
    assert result.value == pytest.approx(frechet_distance(drawn(40, 0.5), rows).value, rel=1e-6)
    assert result.warnings == (
        f"{tmp_path / 'fid.npz'} does not state its number of samples, so its share of the bias is unknown",
    )


def test_compressed_files_read_as_well(theirs, tmp_path):
    np.savez_compressed(tmp_path / "fid.npz", **theirs)
    assert read_statistics(tmp_path / "fid.npz").dim == 6


def test_a_file_of_the_adm_evaluator_holds_statistics_for_fid_and_sfid(theirs, tmp_path):
    samples = np.zeros((3, 8, 8, 3), np.uint8)
    path = saved(tmp_path / "adm.npz", **theirs, mu_s=np.ones(4), sigma_s=2 * np.eye(4), arr_0=samples)
    assert read_statistics(path).dim == 6
    spatial = read_statistics(path, spatial=True)
    torch.testing.assert_close(spatial.mean, torch.ones(4).double())
    torch.testing.assert_close(spatial.covariance, 2 * torch.eye(4).double())


def test_what_is_written_is_read_back_with_its_number_and_extractor(tmp_path):
    statistics = gaussian_statistics(drawn(50)).to(torch.device("cpu"))
    signature = write_statistics(tmp_path / "ref.npz", statistics)
    found = read_statistics(tmp_path / "ref.npz")
    assert (found.n, found.space) == (50, "array-6")
    assert torch.equal(found.mean, statistics.mean)
    assert torch.equal(found.covariance, statistics.covariance)
    assert frechet_distance(found, statistics).value == 0
    with np.load(tmp_path / "ref.npz", allow_pickle=False) as file:
        assert Signature.parse(str(file["signature"])) == signature
    assert str(signature).startswith("statistics|n:50|fx:array-6|digest:")


def test_other_numbers_have_another_signature(tmp_path):
    one, other = drawn(50), drawn(50)
    other[0, 0] += 1e-3
    signatures = [write_statistics(tmp_path / "ref.npz", gaussian_statistics(rows)) for rows in (one, other)]
    (difference,) = signatures[0].differences(signatures[1])
    assert difference.startswith("digest: ")


def test_statistics_of_another_extractor_are_refused(tmp_path):
    statistics = gaussian_statistics(drawn(50))
    object.__setattr__(statistics, "space", "dinov2-vitl14@12345678")
    write_statistics(tmp_path / "ref.npz", statistics)
    other = gaussian_statistics(drawn(50))
    object.__setattr__(other, "space", "dinov2-vitb14@12345678")
    with pytest.raises(FincEvalError, match=r"was embedded with dinov2-vitb14@12345678, .*with dinov2-vitl14@12345678"):
        frechet_distance(other, tmp_path / "ref.npz")


@pytest.mark.parametrize("key, value", [("n", np.array(51)), ("space", np.array("other@1")), ("mu", np.ones(6))])
def test_a_file_of_ours_that_was_changed_is_refused(key, value, tmp_path):
    write_statistics(tmp_path / "ref.npz", gaussian_statistics(drawn(50)))
    with np.load(tmp_path / "ref.npz") as file:
        arrays = dict(file)
    saved(tmp_path / "ref.npz", **arrays | {key: value})
    with pytest.raises(FincEvalError, match="was changed since it was written: its digest does not match"):
        read_statistics(tmp_path / "ref.npz")


class Planted:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_no_pickle_is_ever_loaded(tmp_path):
    (tmp_path / "ref.pkl").write_bytes(pickle.dumps(Planted()))
    with pytest.raises(FincEvalError, match="is a pickle, which runs its author's code when it is read"):
        frechet_distance(drawn(9), tmp_path / "ref.pkl")
    (tmp_path / "ref.npz").write_bytes(pickle.dumps(Planted()))
    with pytest.raises(FincEvalError, match="cannot be read as an"):
        read_statistics(tmp_path / "ref.npz")
    hidden = np.empty(1, object)
    hidden[0] = Planted()
    np.savez(tmp_path / "hidden.npz", mu=hidden, sigma=np.eye(1))
    with pytest.raises(FincEvalError, match="holds Python objects, which are not read"):
        read_statistics(tmp_path / "hidden.npz")


def test_what_a_file_lacks_is_named_with_what_to_do(theirs, tmp_path):
    with pytest.raises(FincEvalError, match="does not exist"):
        read_statistics(tmp_path / "none.npz")
    with pytest.raises(FincEvalError, match="has no mu and sigma, it has arr_0: those are samples, embed them"):
        read_statistics(saved(tmp_path / "samples.npz", arr_0=np.zeros(3)))
    with pytest.raises(FincEvalError, match="has no mu_s and sigma_s, it has mu, sigma"):
        read_statistics(saved(tmp_path / "fid.npz", **theirs), spatial=True)
    with pytest.raises(FincEvalError, match="it has feats: those are embeddings, for KID"):
        read_statistics(saved(tmp_path / "kid.npz", feats=np.zeros((3, 2))))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"mu": np.zeros(5)}, r"a mean of shape \(d,\) and a covariance of \(d, d\), got \(5,\) and \(6, 6\)"),
        ({"mu": np.full(6, np.nan)}, "holds numbers that are not finite"),
        ({"mu": np.zeros(6, int)}, "must hold floating-point numbers, got int64 and float64"),
        ({"sigma": np.triu(np.ones((6, 6)))}, "is not symmetric with a positive diagonal"),
        ({"sigma": -np.eye(6)}, "is not symmetric with a positive diagonal"),
        ({"format": np.array("finc-eval statistics 9")}, "has the layout 'finc-eval statistics 9', this version reads"),
        ({"format": np.array("finc-eval statistics 1")}, "lacks digest, n, space: it is damaged"),
    ],
)
def test_what_is_no_mean_and_covariance_is_refused(change, message, theirs, tmp_path):
    with pytest.raises(FincEvalError, match=message):
        read_statistics(saved(tmp_path / "bad.npz", **theirs | change))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("part", "is_refused"), [(0.5e-5, False), (2e-5, True)])
@pytest.mark.parametrize("kind", ["asymmetric", "negative"])
def test_what_is_symmetric_with_a_positive_diagonal_is_a_matter_of_the_largest_entry(
    kind, part, is_refused, unit, tmp_path
):
    sigma = np.diag([4.0, 1.0, 0.0])
    sigma[(0, 1) if kind == "asymmetric" else (2, 2)] = 4 * part * (1 if kind == "asymmetric" else -1)
    path = saved(tmp_path / "one.npz", mu=np.zeros(3), sigma=unit * sigma)
    if is_refused:
        with pytest.raises(FincEvalError, match="is not symmetric with a positive diagonal"):
            read_statistics(path)
    else:
        assert read_statistics(path).dim == 3


@pytest.mark.parametrize("n", [None, 1, 50])
def test_statistics_without_a_number_are_foreign_when_they_are_read_back(n, tmp_path):
    statistics = replace(gaussian_statistics(drawn(50)), n=n, rows=None)
    write_statistics(tmp_path / "ref.npz", statistics)
    found = read_statistics(tmp_path / "ref.npz")
    assert (found.n, found.is_foreign) == (n, n is None)


@pytest.mark.parametrize(
    ("shift", "gain", "is_said"),
    [(0.0, 1.0, False), (3.0, 1.0, False), (3.4, 1.0, True), (0.0, 1.45, False), (0.0, 1.55, True), (0.0, 0.6, True)],
)
def test_embeddings_and_statistics_of_one_file_are_compared(shift, gain, is_said, tmp_path):
    """`shift`: distance of the means, in the root mean square distance of the mean of another sample."""
    rows = np.random.default_rng(0).normal(2, 1, (100, 4)).astype(np.float32)
    sigma = np.cov(rows, rowvar=False)
    mu = rows.mean(0) + np.array([shift * (np.trace(sigma) / 100) ** 0.5, 0, 0, 0])
    path = saved(tmp_path / "both.npz", embeddings=rows, mu=mu, sigma=gain * sigma)
    one = as_embeddings(path)
    note = note_beside(path, one, one, Run())
    assert (note is not None) == is_said and (note is None or "contradicts itself" in note)
