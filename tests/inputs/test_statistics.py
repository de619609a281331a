"""Mean and covariance are used as such, or refused by name; they are never read as samples."""

import numpy as np
import pytest
import torch
from _tables import every_value

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.measures.gaussians.reference_statistics import read_statistics

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 12)).astype(np.float32), RNG.normal(size=(400, 12)) + 0.3
MU, SIGMA = Y.mean(0), np.cov(Y.T)
WANT = fe.metrics(X, Y.astype(np.float32), "fd")["fd"].value

NAMES = [
    ("mu", "sigma"),
    ("mean", "cov"),
    ("mean", "covariance"),
    ("m", "s"),
    ("m1", "s1"),
    ("mu1", "sigma1"),
    ("real_mu", "real_sigma"),
    ("mean_real", "cov_real"),
    ("ref_mean", "ref_cov"),
    ("feature_mean", "feature_cov"),
    ("MU", "SIGMA"),
    ("average", "C"),
    ("a", "b"),
]


def npz(path, arrays):
    np.savez(path / "st.npz", **arrays)
    return path / "st.npz"


def packed(path, arrays):
    np.savez_compressed(path / "st.npz", **arrays)
    return path / "st.npz"


def pt(path, arrays):
    torch.save({name: torch.tensor(one) for name, one in arrays.items()}, path / "st.pt")
    return path / "st.pt"


def nested(path, arrays):
    torch.save({"stats": {name: torch.as_tensor(one) for name, one in arrays.items()}, "epoch": 3}, path / "st.pth")
    return path / "st.pth"


def safetensors(path, arrays):
    save = pytest.importorskip("safetensors.torch").save_file
    save({name: torch.tensor(one) for name, one in arrays.items()}, path / "st.safetensors")
    return path / "st.safetensors"


FORMS = [npz, packed, pt, nested, safetensors]


@pytest.mark.parametrize("names, form", every_value(NAMES, FORMS))
def test_statistics_under_any_names_have_the_distance_of_their_samples(names, form, tmp_path):
    path = form(tmp_path, dict(zip(names, (MU, SIGMA), strict=True)))
    assert fe.metrics(X, path, "fd")["fd"].value == pytest.approx(WANT, rel=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_a_tuple_a_row_vector_and_single_precision_are_statistics_too(form, tmp_path):
    path = form(tmp_path, {"mean": MU[None].astype(np.float32), "cov": SIGMA.astype(np.float32)})
    assert fe.metrics(X, path, "fd")["fd"].value == pytest.approx(WANT, rel=1e-3)
    torch.save((torch.as_tensor(MU), torch.as_tensor(SIGMA)), tmp_path / "pair.pt")
    assert fe.metrics(X, tmp_path / "pair.pt", "fd")["fd"].value == pytest.approx(WANT, rel=1e-4)


def sums(rows, name):
    rows = torch.as_tensor(rows)
    return {
        f"{name}_features_sum": rows.sum(0),
        f"{name}_features_cov_sum": rows.T @ rows,
        f"{name}_features_num_samples": torch.tensor(len(rows)),
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_state_of_torchmetrics_is_its_mean_and_covariance(form, tmp_path):
    state = sums(Y, "real") | sums(np.zeros((0, 12)), "fake")
    path = form(tmp_path, {name: one.numpy() for name, one in state.items()})
    assert fe.metrics(X, path, "fd")["fd"].value == pytest.approx(WANT, rel=1e-4)


NUMBERS = [
    ({"mu": MU, "sigma": SIGMA, "n": np.array(400)}, 400),
    ({"mu": MU, "sigma": SIGMA, "N": np.array([400])}, 400),
    ({"mu": MU, "sigma": SIGMA, "num_samples": np.array(400.0)}, 400),
    ({"mean": MU, "cov": SIGMA, "count": np.array(400)}, 400),
    ({"real_mu": MU, "real_sigma": SIGMA, "real_num_images": np.array(400), "fake_num_images": np.array(7)}, 400),
    ({"m1": MU, "s1": SIGMA, "n1": np.array(400)}, 400),
    ({"a": MU, "b": SIGMA, "nobs": np.array(400)}, 400),
    ({"mu": MU, "sigma": SIGMA, "n": np.array(400), "n_samples": np.array(300)}, None),
    ({"mu": MU, "sigma": SIGMA, "n": np.array(-1)}, None),
    ({"mu": MU, "sigma": SIGMA, "n": np.array(400.5)}, None),
    ({"mu": MU, "sigma": SIGMA, "n": np.array(np.nan)}, None),
    ({"mu": MU, "sigma": SIGMA, "dimension": np.array(12)}, None),
    ({"mu": MU, "sigma": SIGMA, "resolution": np.array(256)}, None),
    ({"mu": MU, "sigma": SIGMA, "batch_size": np.array(50)}, None),
    ({"mu": MU, "sigma": SIGMA}, None),
]


@pytest.mark.parametrize("case, form", every_value(NUMBERS, FORMS))
def test_a_number_of_samples_beside_statistics_is_used(case, form, tmp_path):
    beside, n = case
    path = form(tmp_path, beside)
    assert read_statistics(path).n == n
    score = fe.metrics(X, path, "fd")["fd"]
    assert score.value == pytest.approx(WANT, rel=1e-4)
    assert any("does not state its number of samples" in note for note in score.notes) is (n is None)
    assert f"n:300/{n}" in str(score.signature) or n is None


@pytest.mark.parametrize("form", [npz, *(pytest.param(one, marks=pytest.mark.long) for one in FORMS[1:])])
def test_statistics_with_a_number_are_still_of_an_unknown_extractor(form, tmp_path):
    arrays = {"mu": np.zeros(2048), "sigma": np.eye(2048), "n": np.array(5000)}
    path = form(tmp_path, arrays)
    score = fe.metrics(path, path, "fid")["fid"]
    assert f"{path.name} does not say which extractor made it: inception-fid is assumed" in score.notes
    assert "n:5000/5000" in str(score.signature)


REFUSED = [
    ({"mu1": MU, "sigma1": SIGMA, "mu2": MU, "sigma2": SIGMA}, "several means and covariances"),
    ({"cov": SIGMA, "one": MU, "other": MU}, "may be its mean"),
    ({"total_sum": MU, "cov_sum": SIGMA}, "without the number of samples"),
    ({"mean": MU, "precision": np.linalg.inv(SIGMA)}, "not a covariance by its name"),
    ({"mu": MU, "sigma_inv": np.linalg.inv(SIGMA)}, "not a covariance by its name"),
    ({"mean": MU, "corr": np.corrcoef(Y.T)}, "not a covariance by its name"),
    ({"mean": MU, "chol": np.linalg.cholesky(SIGMA)}, "not a covariance by its name"),
    ({"mean": MU, "scatter": 399 * SIGMA, "n": np.array(400)}, "not a covariance by its name"),
    ({"mu": MU, "sqrt_cov": SIGMA}, "not a covariance by its name"),
    ({"mu": MU}, "mu|vector|images"),
    ({"sigma": SIGMA}, "symmetric matrix"),
    ({"mu": MU, "sigma": np.sqrt(np.diag(SIGMA))}, "mean of shape|save one array|variances are not enough"),
    ({"mean": MU, "var": SIGMA.diagonal().copy()}, r"variances are not enough.*covariance, shape \(12, 12\)"),
    ({"mean": MU[None], "std": np.sqrt(np.diag(SIGMA))[None]}, "variances are not enough"),
    ({"real_mean": MU, "real_variance": SIGMA.diagonal().copy(), "n": np.array(400)}, "variances are not enough"),
    ({"m": MU.astype("f4"), "v": np.diag(SIGMA).astype("f4")}, "variances are not enough"),
    ({"mu": MU, "sigma": SIGMA - 2 * np.eye(12)}, "positive diagonal"),
]


@pytest.mark.parametrize("case, form", every_value(REFUSED, FORMS))
def test_what_cannot_be_decided_is_refused_by_name(case, form, tmp_path):
    arrays, message = case
    with pytest.raises(FincEvalError, match=message):
        fe.metrics(X, form(tmp_path, arrays), "fd")


VERBS = {
    "compare": lambda x, path: fe.compare(x, path, features=50),
    "compare-gen": lambda x, path: fe.compare(path, x, features=50),
    "kinds": lambda x, path: fe.kinds({"a": x, "b": path}),
    "leaderboard": lambda x, path: fe.leaderboard({"a": x, "b": x[:100]}, path),
    "sketch": lambda x, path: fe.Sketch.reference(path, features=50),
    "kid": lambda x, path: fe.metrics(x, path, "kid"),
}


@pytest.mark.parametrize(
    "verb, names, form", every_value([*VERBS], [("mu", "sigma"), ("mean", "cov"), ("a", "b")], FORMS)
)
def test_other_verbs_refuse_statistics(verb, names, form, tmp_path):
    path = form(tmp_path, dict(zip(names, (MU, SIGMA), strict=True)))
    with pytest.raises(FincEvalError, match=r"mean and covariance|moments"):
        VERBS[verb](X, path)


@pytest.mark.parametrize(
    "matrix", [SIGMA, SIGMA.astype(np.float32), torch.as_tensor(SIGMA), np.corrcoef(Y.T), Y @ Y.T], ids=range(5)
)
def test_a_matrix_of_pairs_is_not_a_set_of_embeddings(matrix):
    with pytest.raises(FincEvalError, match="is a symmetric matrix"):
        fe.metrics(matrix, matrix, "fd")


@pytest.mark.parametrize("extra, form", every_value([{"mean": MU, "cov": SIGMA}, {"weights": MU}], FORMS))
def test_embeddings_with_statistics_beside_them_are_embeddings(extra, form, tmp_path):
    path = form(tmp_path, {"embeddings": Y.astype(np.float32)} | extra)
    assert fe.metrics(X, path, "fd")["fd"].value == pytest.approx(WANT, rel=1e-4)


BESIDE = {
    "equal": ({"mu": MU, "sigma": SIGMA}, False),
    "another mean": ({"mu": MU + 3, "sigma": SIGMA}, True),
    "another spread": ({"mu": MU, "sigma": 4 * SIGMA}, True),
    "other names": ({"mean": MU + 3, "cov": SIGMA}, True),
    "of other size": ({"mu": MU[:4] + 3, "sigma": SIGMA[:4, :4]}, False),
    "no statistics": ({"weights": MU + 3, "gram": Y.T @ Y}, False),
    "of two sets": ({"mu1": MU, "sigma1": SIGMA, "mu2": MU + 3, "sigma2": SIGMA}, False),
}


@pytest.mark.parametrize(
    "case, name, form", every_value([*BESIDE], ["feats", "features", "embeddings", "arr_0"], [npz, pt])
)
def test_embeddings_beside_statistics_that_contradict_them_are_said(case, name, form, tmp_path):
    beside, is_said = BESIDE[case]
    path = form(tmp_path, {name: Y.astype(np.float32)} | beside)
    for metrics in (fe.metrics(X, path, ["fd", "kid"]), fe.metrics(path, X, ["fd", "kid"])):
        assert metrics["fd"].value == pytest.approx(WANT, rel=1e-4)
        assert any("contradicts itself" in note and "embeddings" in note for note in metrics["fd"].notes) is is_said
        assert not any("contradicts itself" in note for note in metrics["kid_mean"].notes)


DICTIONARIES = {
    "mu and sigma": {"mu": MU, "sigma": SIGMA},
    "other names": {"mean": MU, "cov": SIGMA},
    "inside another": {"real": {"mu": MU, "sigma": SIGMA}},
}


@pytest.mark.parametrize("form", ["npy", "npz"])
@pytest.mark.parametrize("held", DICTIONARIES)
def test_a_dictionary_that_numpy_pickled_is_refused_as_one(held, form, tmp_path):
    path = tmp_path / f"st.{form}"
    (np.save if form == "npy" else np.savez)(path, np.array(DICTIONARIES[held]))
    for read in (lambda: fe.metrics(X, path, "fd"), lambda: fe.extract(path, "pixels"), lambda: fe.compare(X, path)):
        with pytest.raises(FincEvalError, match=r"one Python object, such as a dictionary.*savez\(path, mu=…, sigma=…"):
            read()


NETWORKS = {
    "a square layer": {"fc.weight": SIGMA, "fc.bias": MU},
    "a layer": {"fc.weight": Y[:7], "fc.bias": MU[:7]},
    "without a name": {"weight": Y[:7], "bias": MU[:7]},
    "two layers": {"0.weight": Y[:20], "0.bias": MU, "2.weight": Y[:7], "2.bias": MU[:7]},
    "convolutions": {"conv.weight": Y.reshape(-1, 3, 2, 2), "conv.bias": MU, "fc.weight": Y[:12], "fc.bias": MU},
    "one convolution": {"conv.weight": Y[:200].reshape(-1, 3, 2, 2), "conv.bias": Y[:200, :1].ravel()},
    "norms": {"proj_weight": Y[:7], "norm.running_mean": Y[0, :7], "norm.running_var": MU[:7]},
    "other names": {"kernel": Y[:7], "embedding": Y.reshape(2, 200, 12), "offset": MU[:7]},
}


@pytest.mark.parametrize("name, form", every_value([*NETWORKS], [pt, nested, safetensors]))
def test_the_weights_of_a_network_are_no_samples(name, form, tmp_path):
    arrays = {one: np.ascontiguousarray(values + np.arange(values.shape[-1])) for one, values in NETWORKS[name].items()}
    path = form(tmp_path, arrays)
    for verb in (lambda: fe.metrics(X, path, "fd"), lambda: fe.kinds({"a": X, "b": path}, extractor="pixels")):
        with pytest.raises(FincEvalError, match="weights of a network, not samples"):
            verb()


@pytest.mark.parametrize(
    "beside, form",
    every_value(
        [{"mean": MU, "std": MU}, {"score": Y[:, 0]}, {"epoch": np.array(3)}, {"labels": np.arange(400)}], FORMS
    ),
)
def test_embeddings_of_any_name_with_vectors_beside_them_are_samples(beside, form, tmp_path):
    path = form(tmp_path, {"x": Y.astype(np.float32)} | beside)
    assert fe.metrics(X, path, "fd")["fd"].value == pytest.approx(WANT, rel=1e-4)


def test_as_many_embeddings_as_entries_are_samples(tmp_path):
    np.savez(tmp_path / "x.npz", features=Y[:12], weights=MU)
    assert fe.metrics(X, tmp_path / "x.npz", "kid")["kid_mean"].value != 0


IMAGES = RNG.integers(0, 256, (60, 6, 6, 3)).astype(np.uint8)


@pytest.fixture
def batch(tmp_path, monkeypatch):
    """A reference batch as guided-diffusion has it, with statistics of its images by "pixels" plus `offset`."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    rows = np.asarray(fe.extract(IMAGES, "pixels")[:], float)

    def save(offset=0.0, name="arr_0", **more):
        arrays = {name: IMAGES, "mu": rows.mean(0) + offset, "sigma": np.cov(rows.T)} | more
        np.savez(tmp_path / "ref.npz", **arrays, mu_s=np.zeros(7), sigma_s=np.eye(7))
        np.savez(tmp_path / "bare.npz", IMAGES)
        return tmp_path / "ref.npz", tmp_path / "bare.npz"

    return save


OF_BATCHES = {
    "metrics": lambda gen, path: fe.metrics(path, path, ["kid", "fd"], extractor="pixels")["kid_mean"].value,
    "compare": lambda gen, path: fe.compare(gen, path, extractor="pixels", features=50).difference,
    "extract": lambda gen, path: len(fe.extract(path, "pixels")),
    "kinds": lambda gen, path: repr(fe.kinds({"a": path, "b": path}, extractor="pixels")),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("verb, name", every_value([*OF_BATCHES], ["arr_0", "images", "samples"]))
def test_a_reference_batch_is_its_images(verb, name, batch, tmp_path):
    path, bare = batch(name=name)
    np.savez(tmp_path / "gen.npz", IMAGES[::-1])
    assert OF_BATCHES[verb](tmp_path / "gen.npz", path) == OF_BATCHES[verb](tmp_path / "gen.npz", bare)


@pytest.mark.long
@pytest.mark.parametrize("offset, said", [(0.0, "holds both images and statistics"), (50.0, "contradicts itself")])
def test_a_distance_says_what_it_took_and_what_contradicts(offset, said, batch):
    path, bare = batch(offset)
    score = fe.metrics(bare, path, "fd", extractor="pixels")["fd"]
    assert score.value == pytest.approx(0, abs=1e-6)
    assert any(said in note for note in score.notes)


def test_the_statistics_of_a_reference_batch_can_be_read(batch):
    assert read_statistics(batch()[0]).dim == len(fe.extract(IMAGES, "pixels")[0])
