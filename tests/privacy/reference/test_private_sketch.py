import itertools
import json
import math
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from _cards import small_pixel_card
from _files import forge
from _pages import check_fits_a_terminal
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.coordinate_kernels import CoordinateSum
from finc_eval.feature_maps.hermite import TotalDegree
from finc_eval.privacy import Guarantee, PrivateSketch, PublicTransform, release_sketch
from finc_eval.privacy.reference.release import SQUARE_WEIGHT, largest_tail, sensitivity_of
from finc_eval.privacy.reference.result import PrivateComparison, PrivateScore

DELTA = 1e-5

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture(scope="module")
def sets(digits):
    """Disjoint digits: public, private, and two generated sets, the second without sevens; and the private labels."""
    images, labels = digits
    rest, kinds = images[2500:], labels[2500:]
    return images[:1000], images[1000:2500], rest, rest[kinds != 7], labels[1000:2500]


@pytest.fixture(scope="module")
def transform(sets):
    return PublicTransform.fit(sets[0], 10)


def sketch_of(private, public, epsilon=1.0, **rest):
    return release_sketch(private, public=public, epsilon=epsilon, delta=DELTA, ledger=None, **rest)


def test_a_release_scores_generators_and_ranks_the_one_that_lacks_a_digit_last(sets, transform):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform, 8)
    good, bad = sketch.score(whole), sketch.score(without)
    assert good.interval[0] < 0 < good.interval[1]
    assert bad.interval[0] > 0
    comparison = sketch.compare({"bad": without, "good": whole})
    assert [score.name for score in comparison.scores] == ["good", "bad"]
    (pair,) = comparison.pairs
    assert (pair.first, pair.second) == ("good", "bad")
    assert pair.p_value < 1e-3
    assert pair.value == pytest.approx(good.value - bad.value, abs=1e-15)


def test_a_paired_difference_is_surer_than_the_two_scores(sets, transform):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform, 0.3)
    comparison = sketch.compare({"one": whole, "other": without})
    alone = math.hypot(*(score.standard_error for score in comparison.scores))
    assert comparison.pairs[0].standard_error < 0.5 * alone


def test_parts_by_degree_and_by_class_add_to_the_score(sets, transform):
    _, private, whole, _, labels = sets
    sketch = sketch_of(private, transform, labels=labels, classes=[str(digit) for digit in range(10)])
    kinds = np.arange(len(whole)) % 10  # labels that tell nothing
    score = sketch.score(whole, kinds)
    assert sum(part.value for part in score.degrees) == pytest.approx(score.value, rel=1e-9)
    assert sum(part.value for part in score.classes) == pytest.approx(score.value, rel=1e-9)
    assert [part.name for part in score.degrees] == ["degree 0", "degree 1", "degree 2"]
    assert sum(part.features for part in score.degrees) == sketch.size == 10 * 66


def test_labels_that_are_wrong_are_seen_by_a_sketch_by_class(sets, transform, digits):
    _, private, whole, _, labels = sets
    right = digits[1][2500:]
    sketch = sketch_of(private, transform, 3, labels=labels, classes=[str(digit) for digit in range(10)])
    assert sketch.score(whole, right).interval[0] < 0.002
    assert sketch.score(whole, np.roll(right, 1)).interval[0] > 0.005
    with pytest.raises(FincEvalError, match="has no labels"):
        sketch.score(whole)


def test_classes_are_called_by_their_names_whatever_they_are(sets, transform, seeded_noise):
    _, private, _, _, labels = sets
    made = []
    for classes in (range(10), [str(digit) for digit in range(10)]):
        seeded_noise(1)
        made.append(sketch_of(private, transform, labels=labels, classes=classes))
    assert torch.equal(made[0].mean, made[1].mean)
    assert made[0].classes == made[1].classes


def test_a_record_of_no_listed_class_counts_as_nothing(sets, transform):
    _, private, _, _, labels = sets
    labels = labels.astype(object)
    labels[:700] = "a class nobody listed"
    sketch = sketch_of(private, transform, 1e3 - 1, labels=labels, classes=[str(digit) for digit in range(10)])
    # The order-0 features are all positive and near 1, so their sum over classes is near the share that counts.
    zeroth = sketch.mean.view(10, -1)[:, 0].sum() * len(private) / (len(private) - 700)
    everyone = sketch_of(private, transform, 1e3 - 1).mean[0]
    assert zeroth == pytest.approx(float(everyone), rel=0.05)
    assert sketch.m == len(private)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_counts_as_the_center_and_changes_no_form(sets, transform, seeded_noise, value):
    private = sets[1].copy()
    private[3] = transform.center.numpy()
    seeded_noise(1)
    expected = sketch_of(private, transform)
    private[3, 5] = value
    seeded_noise(1)
    found = sketch_of(private, transform)
    assert torch.equal(found.mean, expected.mean)
    assert found.header == expected.header


@pytest.mark.parametrize("value", [1e30, 3e38, 1e300])
def test_an_outlier_moves_a_release_by_no_more_than_the_sensitivity(sets, transform, seeded_noise, value):
    private = sets[1].astype(np.float64)
    seeded_noise(1)
    expected = sketch_of(private, transform)
    private[3] = value
    private[3, ::2] *= -1
    seeded_noise(1)
    found = sketch_of(private, transform)
    moved = float((found.mean - expected.mean).norm())
    assert 0 < moved <= math.sqrt(2) / len(private) + 1e-6 * found.noise * math.sqrt(found.size)
    noisy = dict.fromkeys(("releases", "signature", "mean"))
    assert replace(found.header, **noisy) == replace(expected.header, **noisy)


def test_no_two_data_sets_that_differ_in_a_record_are_farther_apart_than_the_sensitivity(transform):
    rng = np.random.default_rng(0)
    phi = TotalDegree(10, 3, length_scale=transform.length_scale, rho=0.1)
    far = np.concatenate([rng.normal(size=(300, 784)) * scale for scale in (0.1, 1, 10, 1e4)])
    features = phi.in_double(transform(torch.from_numpy(far)))
    squares = features.square().sum(1)
    moved = torch.cdist(features, features).square() + SQUARE_WEIGHT**2 * (squares[:, None] - squares).square()
    assert moved.max().sqrt() <= sensitivity_of(1, phi, "replace", "tight", SQUARE_WEIGHT)
    assert squares.max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("adjacency", "bound", "expected"),
    [("replace", "tight", math.sqrt(2)), ("replace", "paper", 2.0), ("zero-out", "tight", 1.0)],
)
def test_the_noise_follows_from_adjacency_and_bound(sets, transform, adjacency, bound, expected):
    sketch = sketch_of(sets[1], transform, adjacency=adjacency, bound=bound)
    (made,) = sketch.releases
    assert largest_tail(sketch.feature_map, transform.radius) > 1e-3
    assert made.sensitivity == pytest.approx(math.hypot(expected, SQUARE_WEIGHT) / len(sets[1]))
    assert sketch.noise == pytest.approx(made.sensitivity * 3.7306316348, rel=1e-9)
    assert made.guarantee == Guarantee.of(1.0, DELTA, adjacency)


def test_no_coordinate_is_spent_on_the_norm_where_it_is_known_to_be_one(sets):
    public = PublicTransform.constant(784, 2, length_scale=10, radius=3, center=0.13)
    phi = TotalDegree(2, 6, length_scale=10, rho=0.05)
    assert largest_tail(phi, 3) < 1e-3
    sketch = sketch_of(sets[1], public, feature_map=phi)
    assert sketch.releases[0].sensitivity == pytest.approx(math.sqrt(2) / len(sets[1]))
    assert sketch.releases[0].square == 1


def test_the_degree_follows_from_epsilon_and_the_number_of_records_alone():
    public = PublicTransform.constant(3, length_scale=2, radius=3)
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    assert sketch_of(rows, public, 1).feature_map.order == 3
    assert sketch_of(rows, public, 0.99).feature_map.order == 2
    assert sketch_of(rows[1:], public, 1).feature_map.order == 2
    everything = PublicTransform.constant(20, length_scale=6, radius=6)
    classes = [str(number) for number in range(10)]
    by_class = sketch_of(np.zeros((5000, 20)), everything, labels=["0"] * 5000, classes=classes)
    assert by_class.feature_map.order == 2  # degree 3 of ten classes has no covariance that fits


def test_a_transform_fitted_on_the_private_records_is_refused(sets):
    public, private, *_ = sets
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(private, private)
    with pytest.raises(FincEvalError, match=r"500 of the 1500 private records are also in the public set"):
        sketch_of(private, np.concatenate([public, private[:500]]))
    with pytest.raises(TypeError, match="public"):
        release_sketch(private, epsilon=1.0, ledger=None)


def test_a_transform_says_what_it_was_fitted_on_after_it_was_stored(sets, tmp_path):
    public, private, *_ = sets
    sketch_of(private, public).save(tmp_path / "s.h5")
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(public, PrivateSketch.load(tmp_path / "s.h5"))


def test_principal_axes_are_whitened_or_not(sets):
    public = sets[0]
    images = PublicTransform.fit(public, 5)(torch.from_numpy(public))
    inside = images.norm(dim=1) < PublicTransform.fit(public, 5).radius
    assert inside.float().mean() == pytest.approx(0.99, abs=0.002)
    assert images.var(0).numpy() == pytest.approx(np.ones(5), abs=0.1)
    plain = PublicTransform.fit(public, 5, whiten=False)
    assert (plain.axes.T @ plain.axes).numpy() == pytest.approx(np.eye(5), abs=1e-10)
    variances = plain(torch.from_numpy(public)).var(0)
    assert (variances[:-1] > variances[1:]).all()


def test_constants_give_the_same_transform_for_the_same_seed():
    one, same, other = (PublicTransform.constant(50, 7, length_scale=1, radius=2, seed=seed) for seed in (3, 3, 4))
    assert one.digest == same.digest != other.digest
    assert (one.axes.T @ one.axes).numpy() == pytest.approx(np.eye(7), abs=1e-12)
    images = one(torch.from_numpy(np.random.default_rng(0).normal(size=(9, 50)) * 100))
    assert images.norm(dim=1).numpy() == pytest.approx(np.full(9, 2.0))


def test_a_file_holds_what_was_released_and_nothing_else(tmp_path, digits, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    images = (digits[0][:80].reshape(-1, 28, 28) * 255).astype(np.uint8)
    for name, part in (("public", images[:40]), ("a-secret-place", images[40:])):
        np.savez(tmp_path / f"{name}.npz", images=part)
    card = small_pixel_card(tmp_path / "small.toml", 8)
    public, private = (fe.extract(tmp_path / f"{name}.npz", card) for name in ("public", "a-secret-place"))
    sketch = sketch_of(private, PublicTransform.fit(public, 3))
    path, again = tmp_path / "s.h5", tmp_path / "again.h5"
    sketch.save(path)
    PrivateSketch.load(path).save(again)
    assert path.read_bytes() == again.read_bytes()
    content = path.read_bytes()
    for secret in ("a-secret-place", str(tmp_path), private.manifest_digest, private.key):
        assert secret.encode() not in content
    with h5py.File(path) as file:
        names = []
        file.visit(names.append)
        assert set(names) == {
            "header",
            "transform",
            "transform/axes",
            "transform/center",
            "feature_map",
            "feature_map/center",
            "mean",
        }
        header = json.loads(file["header"][()])
    assert "random bytes" in header["promise"]
    assert header["releases"][0]["guarantee"]["promise"] == str(Guarantee.of(1, DELTA))
    assert header["releases"][0]["guarantee"]["ceilings"]["auc"] == pytest.approx(0.575, abs=5e-4)


def test_a_stored_sketch_scores_as_before(sets, transform, tmp_path):
    _, private, whole, _, labels = sets
    for rest in (
        {},
        {"feature_map": CoordinateSum(10, 4, length_scale=3.0)},
        {"labels": labels, "classes": ["1", "7"]},
    ):
        sketch = sketch_of(private, transform, **rest)
        sketch.save(tmp_path / "s.h5")
        again = PrivateSketch.load(tmp_path / "s.h5")
        kinds = None if sketch.classes is None else np.ones(len(whole), int)
        expected = sketch.score(whole, kinds)
        assert again.score(whole, kinds).interval == pytest.approx(expected.interval, rel=1e-9)
        assert again.signature == sketch.signature
        assert again.releases == sketch.releases


def test_unreadable_samples_are_records_all_the_same(tmp_path, digits, monkeypatch):
    from PIL import Image

    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    for number, row in enumerate(digits[0][:30]):
        Image.fromarray((row.reshape(28, 28) * 255).astype(np.uint8)).save(folder / f"{number:02d}.png")
    (folder / "07.png").write_bytes(b"no image")
    cache = fe.extract(folder, "pixels")
    assert (cache.n, len(cache.failures)) == (29, 1)
    public = PublicTransform.constant(cache.dim, 2, length_scale=10, radius=10)
    assert sketch_of(cache, public).m == 30


def test_merged_owners_score_like_one_with_all_records(sets, transform):
    _, private, whole, _, _ = sets
    first = sketch_of(private[:500], transform, 3)
    second = sketch_of(private[500:], first, 1)
    merged = PrivateSketch.merge([first, second])
    assert merged.m == len(private)
    assert merged.noise == pytest.approx(math.hypot(first.noise / 3, second.noise * 2 / 3))
    assert torch.allclose(merged.mean, first.mean / 3 + second.mean * 2 / 3)
    assert [made.guarantee.epsilon for made in merged.releases] == [3, 1]
    assert len(merged.score(whole).guarantees) == 2
    whole_set = sketch_of(private, transform, 3).score(whole)
    assert merged.score(whole).value == pytest.approx(whole_set.value, abs=4 * merged.score(whole).standard_error)


def test_only_sketches_of_one_transform_merge_and_each_release_once(sets, transform):
    public, private, *_ = sets
    first, second = sketch_of(private[:700], transform), sketch_of(private[700:], PublicTransform.fit(public, 9))
    with pytest.raises(FincEvalError, match="differ in their transform and feature map"):
        PrivateSketch.merge([first, second])
    third = sketch_of(private[700:], first)
    with pytest.raises(FincEvalError, match="one release is in two"):
        PrivateSketch.merge([PrivateSketch.merge([first, third]), first])
    with pytest.raises(FincEvalError, match="at least two sketches"):
        PrivateSketch.merge([first])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bonde": "paper"}, "unknown option 'bonde' .did you mean \"bound"),
        ({"epsilon": 0}, "epsilon must be a positive number, got 0"),
        ({"adjacency": "replaced"}, 'did you mean "replace"'),
        ({"bound": "papers"}, 'did you mean "paper"'),
        ({"classes": ["a", "a"], "labels": ["a"] * 1500}, "classes must be different names"),
        ({"classes": ["a"]}, "no labels"),
        ({"delta": 1 / 1500}, "is not below one over the 1500 records"),
        ({"classes": ["a"], "labels": ["a"]}, "1500 samples came with 1 label:"),
        ({"feature_map": TotalDegree(4, 2, length_scale=1)}, "takes 4 entries, the transform gives 10"),
        ({"feature_map": TotalDegree(10, 6, length_scale=1)}, "8,008 features are more than 5,000"),
    ],
)
def test_what_cannot_be_released_is_refused_in_one_sentence(sets, transform, change, message):
    with pytest.raises(FincEvalError, match=message):
        release_sketch(sets[1], **{"public": transform, "epsilon": 1.0, "ledger": None} | change)


def test_a_sketch_that_is_no_sketch_is_said_to_be_none(tmp_path, sets, transform):
    sketch_of(sets[1], transform).save(tmp_path / "s.h5")
    forge(tmp_path / "s.h5", lambda header, arrays: arrays.pop("mean"))
    with pytest.raises(FincEvalError, match="is damaged"):
        PrivateSketch.load(tmp_path / "s.h5")
    with pytest.raises(FincEvalError, match="does not exist"):
        PrivateSketch.load(tmp_path / "t.h5")


def test_a_sketch_with_constants_that_are_whole_numbers_is_read_again(tmp_path, sets):
    sketch = sketch_of(sets[1], PublicTransform.constant(784, 3, length_scale=5, radius=np.int64(10)))
    sketch.save(tmp_path / "s.h5")
    assert PrivateSketch.load(tmp_path / "s.h5").signature == sketch.signature


def test_the_header_of_a_file_keeps_its_keys(tmp_path, sets, transform):
    sketch_of(sets[1], transform).save(tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5") as file:
        header = json.loads(file["header"][()])
    about = "program type layout version promise space transform feature_map classes features m noise mean"
    assert " ".join(header) == f"{about} releases signature arrays"
    about = ["digest", "origin", "dims", "radius", "length_scale", "space", "fitted_on"]
    assert list(header["transform"]) == about
    assert (header["program"], header["type"], header["layout"]) == ("finc-eval", "private sketch", 2)


@pytest.mark.parametrize(
    "damage",
    [
        "a number",
        "a feature",
        "the radius",
        "the noise",
        "the promise",
        "the owner",
        "the square",
        "a possible square",
        "the sampling",
        "the digest",
    ],
)
def test_a_sketch_that_contradicts_itself_is_damaged(tmp_path, sets, transform, damage):
    path = tmp_path / "s.h5"
    sketch_of(sets[1], transform).save(path)

    def change(header, arrays):
        (made,) = header["releases"]
        match damage:
            case "a number":
                arrays["mean"][3] += 1e-3
            case "a feature":
                arrays["mean"] = arrays["mean"][:-1]
            case "the radius":
                header["transform"]["radius"] *= 2
            case "the noise":
                made["noise"] /= 2
            case "the promise":
                made["guarantee"]["epsilon"] = 0.1
            case "the owner":
                made["sensitivity"] /= 2
                made["noise"] /= 2
            case "the square":
                made["square"] = 5.0
            case "a possible square":
                made["square"] -= 0.01
            case "the sampling":
                made["sampling"] = 1e-12
            case "the digest":
                header["mean"] = "0" * 64

    forge(path, change)
    with pytest.raises(FincEvalError, match="is damaged"):
        PrivateSketch.load(path)


def test_the_same_set_twice_is_not_told_apart(sets, transform):
    sketch = sketch_of(sets[1], transform)
    for rows in (sets[2], np.repeat(sets[2][:1], 50, 0)):
        (pair,) = sketch.compare({"one": rows, "same": rows}).pairs
        assert (pair.value, pair.p_value) == (0, 1)


def test_scores_are_documents_with_their_guarantee(sets, transform, tmp_path, monkeypatch, capsys):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform)
    score = sketch.score(whole, name="<mine>")
    assert json.loads(score.to_json())["interval"] == list(score.interval)
    assert PrivateScore.from_dict(json.loads(score.to_json())) == score
    score.signature.check_comparable(sketch.score(without).signature)
    page = score.to_html(tmp_path / "p.html").read_text()
    with pytest.raises(fe.UsageError, match="show no samples"):
        score.to_html(tmp_path / "p.html", samples={"gen": whole})
    assert "&lt;mine&gt;" in page and "<mine>" not in page
    assert "≤ 0.575" in page and "(1, 1e-05)-DP" in page
    assert json.loads(score.to_json())["guarantees"][0]["ceilings"]["auc"] == pytest.approx(0.575, abs=5e-4)
    assert "&lt;mine&gt;" in score._repr_html_() and "(1, 1e-05)-DP" in score._repr_html_()
    comparison = sketch.compare({"a": whole, "b": without})
    assert comparison._repr_html_().count('<th scope="row"') == 2
    for result in (score, comparison):
        check_fits_a_terminal(result, monkeypatch, capsys)
    assert json.loads(comparison.to_json())["pairs"][0]["p_value"] == comparison.pairs[0].p_value
    assert PrivateComparison.from_dict(json.loads(comparison.to_json())) == comparison
    assert "Who is nearer" in comparison.to_html(tmp_path / "c.html").read_text()


def test_the_attack_on_the_worst_pair_of_a_release_stays_under_its_ceiling(seeded_noise):
    """Two data sets differ in one record by as much as two records can: the likelihood ratio tells them apart best."""
    public = PublicTransform.constant(2, length_scale=1, radius=6)
    phi = TotalDegree(2, 10, length_scale=1, rho=0.3)
    rows = np.random.default_rng(0).normal(size=(20, 2))
    other = rows.copy()
    rows[0], other[0] = (3.0, 0.0), (-3.0, 0.0)
    epsilon, draws = 3.0, 800
    exact = [phi.in_double(public(torch.from_numpy(one))).mean(0) for one in (rows, other)]
    assert float((exact[0] - exact[1]).norm()) == pytest.approx(math.sqrt(2) / 20, rel=1e-2)
    seeded_noise(2)
    scores = [
        np.array(
            [float((exact[0] - exact[1]) @ sketch_of(one, public, epsilon, feature_map=phi).mean) for _ in range(draws)]
        )
        for one in (rows, other)
    ]
    auc = (scores[0][:, None] > scores[1]).mean()
    ceiling = Guarantee.of(epsilon, DELTA).ceilings.auc
    standard_error = math.sqrt(ceiling * (1 - ceiling) / draws)
    assert auc <= ceiling + 2 * standard_error
    assert auc >= ceiling - 4 * standard_error  # the noise is not larger than needed


def test_order_and_batches_do_not_matter(sets, transform, monkeypatch):
    _, private, whole, *_ = sets
    sketch = sketch_of(private, transform)
    one, other = sketch.score(whole), sketch.score(whole[::-1].copy())
    assert other.value == pytest.approx(one.value, rel=1e-8)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-8)


def test_a_generator_that_makes_one_sample_only_is_far_off_with_error_bars(sets, transform):
    _, private, whole, *_ = sets
    score = sketch_of(private, transform).score(np.repeat(whole[:1], 50, 0))
    assert score.interval[0] > 0.1
    assert all(math.isfinite(number) for number in itertools.chain(score.interval, score.noise_interval))


def test_a_release_takes_samples_and_embeds_both_sets_by_one_extractor(tmp_path, monkeypatch, digits, seeded_noise):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    images = (255 * digits[0]).astype(np.uint8).reshape(-1, 28, 28)
    for name, part in (("private", images[:40]), ("public", images[40:80])):
        (tmp_path / name).mkdir()
        for number, image in enumerate(part):
            Image.fromarray(image).save(tmp_path / name / f"{number}.png")
    folder, public = tmp_path / "private", tmp_path / "public"
    cache = fe.extract(public, "pixels", tmp_path / "public.h5")
    of_folders = sketch_of(folder, public, extractor="pixels")
    assert of_folders.space == f"pixels@{cache.extractor_digest[:8]}" and of_folders.m == 40
    private = fe.extract(folder, "pixels", tmp_path / "private.h5")
    # A folder is embedded by the extractor behind the public set.
    for data, known in ((folder, cache), (folder, of_folders), (private, of_folders)):
        seeded_noise(0)
        again = sketch_of(data, known)
        assert again.space == of_folders.space and torch.equal(again.mean, of_folders.mean)


def test_records_in_files_of_other_programs_are_those_of_the_array(tmp_path, seeded_noise):
    rng = np.random.default_rng(0)
    private, public = (rng.normal(size=(50, 6)).astype(np.float32) for _ in range(2))
    private[3] = np.nan  # counts as the center: a record must not make a release fail
    labels = np.array(["a", "b"] * 25)
    np.savez(tmp_path / "private.npz", embeddings=private, label=labels)
    np.save(tmp_path / "public.npy", public)
    seeded_noise(0)
    of_arrays = sketch_of(private, public, labels=list(labels), classes=["a", "b"])
    seeded_noise(0)
    of_files = sketch_of(tmp_path / "private.npz", tmp_path / "public.npy", classes=["a", "b"])
    assert torch.equal(of_files.mean, of_arrays.mean)
    assert of_files.transform.fitted_on == of_arrays.transform.fitted_on
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(tmp_path / "public.npy", tmp_path / "public.npy")
