"""Functions take paths of samples, and embed them as the command line does."""

import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from _quick import small_pixels  # noqa: F401
from _tables import every_value
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.demo import example_sets
from finc_eval.embeddings.opening import as_embeddings, form_of, label_sets, open_embeddings
from finc_eval.embeddings.recipe import known_space
from finc_eval.measures.gaussians.opened import gaussian_statistics

QUICK = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two folders of 60 digits."""
    place = tmp_path_factory.mktemp("made")
    for name, rows in zip(("gen", "ref"), example_sets(60), strict=True):
        (place / name).mkdir()
        for number, image in enumerate((255 * rows[:60]).astype(np.uint8).reshape(-1, 28, 28)):
            Image.fromarray(image).save(place / name / f"{number:02}.png")
    return place


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def sets(made, tmp_path):
    """The two folders, in the current one."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def space_of(gen, ref, extractor=None):
    """Return the space of the sets of a comparison, which is not made."""
    opened = sketch_sets({"gen": gen, "ref": ref}, fe.Settings(features=20), Run(), extractor)
    return known_space([one.sketch.space for one in opened.sets.values()])


@pytest.mark.long
def test_comparing_folders_in_python_is_what_the_command_line_does(sets):
    options = ("--extractor", "pixels", "--features", "20", "--n", "50", "--out", "o")
    result = CliRunner().invoke(app, ["compare", "--gen", "gen", "--ref", "ref", *options])
    assert result.exit_code == 0, result.stderr
    found = fe.compare("gen/", "ref/", features=20, extractor=fe.Extraction("pixels", n=50))
    told = fe.load("o/comparison.h5")
    assert str(found.signature) == str(told.signature) and found.headline == told.headline
    assert (found.gen.n, found.gen.name, found.ref.source) == (50, "gen", "ref")


def test_samples_are_embedded_by_the_extractor_behind_the_other_set(sets):
    fe.extract("ref", "pixels", "ref.h5")
    space = fe.compare("gen", "ref.h5", **QUICK).space
    assert space.startswith("pixels@")
    assert space_of("gen", fe.Sketch.reference("ref.h5", features=20)) == space
    assert fe.kinds({"a": "gen", "b": "ref.h5"}).sets["a"].n == 60


@pytest.mark.long
def test_every_function_takes_folders(sets):
    how = {"extractor": "pixels"}
    assert list(fe.kinds(["gen", "ref"], **how).sets) == ["gen", "ref"]
    assert fe.metrics("gen", "ref", "vendi", **how)["vendi"].value > 1
    assert [point.value for point in fe.sweep("gen", "ref", "rho", [1], features=20, modes=1, **how).points] == [1]
    assert list(fe.compare_methods("gen", "ref", "finc", features=20, modes=1, **how).comparisons) == ["finc"]
    assert fe.Sketch.reference("ref", features=20, **how).n == 60
    with pytest.raises(fe.DataError, match="gen has 60 samples: an audit needs"):
        fe.audit("gen", "ref", "ref", **how)


class Numbered:
    """A set of a program: neither a list nor a dataset of torch, and its items are known by number."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


class OfTorch(Numbered, torch.utils.data.Dataset):
    """The same as a data set of torch."""


def hugging_face_set(images):
    hf = pytest.importorskip("datasets")
    return hf.Dataset.from_dict({"image": [Image.fromarray(one) for one in images]}).cast_column("image", hf.Image())


FORMS = {
    "list of images": lambda images: [Image.fromarray(one) for one in images],
    "tuple of arrays": tuple,
    "list of images and labels": lambda images: [(one, "a") for one in images],
    "array": lambda images: images,
    "tensor": lambda images: torch.from_numpy(images)[:, None],
    "images by number": lambda images: Numbered([Image.fromarray(one) for one in images]),
    "images and labels by number": lambda images: Numbered([(one, "a") for one in images]),
    "data set of torch": lambda images: OfTorch([Image.fromarray(one) for one in images]),
    "rows by number": lambda images: Numbered([{"image": Image.fromarray(one)} for one in images]),
    "iterator": lambda images: iter([Image.fromarray(one) for one in images]),
    "Hugging Face set": hugging_face_set,
    "loader": lambda images: torch.utils.data.DataLoader([torch.from_numpy(one)[None] for one in images], 20),
}
"""Forms of a set of samples that `extract` takes, from an array of images."""


@pytest.mark.one_of_each
@pytest.mark.parametrize("form", FORMS)
def test_functions_embed_what_extract_takes(form):
    images = [(255 * rows[:60]).astype(np.uint8).reshape(-1, 28, 28) for rows in example_sets(60)]
    assert form_of(FORMS[form](images[0])) == "samples"
    how = fe.Extraction("pixels", n=60)
    assert fe.extract(FORMS[form](images[0]), "pixels", n=60).n == 60
    found = fe.compare(*map(FORMS[form], images), extractor=how, **QUICK)
    assert (found.gen.n, found.ref.n, found.space[:7]) == (60, 60, "pixels@")


def sizes_of(score):
    return [int(n) for n in dict(score.signature.fields)["n"].split("/")]


PIXELS = {"extractor": "pixels"}
POLICY = {"metrics": {"kid": {"most": 1}}}
BY_FUNCTION = {
    "kinds": lambda gen, ref: fe.kinds([gen, ref], **PIXELS).sets["set 1"].n,
    "metrics": lambda gen, ref: sizes_of(fe.metrics(gen, ref, "kid", **PIXELS)["kid_mean"])[0],
    "leaderboard": lambda gen, ref: fe.leaderboard({"a": gen}, ref, metrics=["kid"], **PIXELS).sets["a"].n,
    "gate": lambda gen, ref: fe.gate(gen, gen, ref, POLICY, **PIXELS).sets["gen"].n,
    "compare": lambda gen, ref: fe.compare(gen, ref, **QUICK, **PIXELS).gen.n,
    "methods": lambda gen, ref: fe.compare_methods(gen, ref, "ken", features=20, **PIXELS).comparisons["ken"].gen.n,
    "sketch": lambda gen, ref: fe.Sketch.reference(ref, features=20, **PIXELS).n,
    "evaluation": lambda gen, ref: fe.evaluate(gen, ref, "kid", **QUICK | {"modes": 2}, **PIXELS).comparison.gen.n,
    "monitor": lambda gen, ref: fe.Monitor(ref, **PIXELS).measure(gen).n,
}
"""The number of samples that a function found in a set."""


OF_FUNCTIONS = every_value(
    ["kinds", "metrics", "gate", "compare", "monitor"],
    ["Hugging Face set", "list of images", "loader", "array", "data set of torch"],
)
"""A function of each way to open sets with a form; the other pairs are long."""
OTHERS = [
    pair for pair in product(BY_FUNCTION, ("Hugging Face set", "list of images", "loader")) if pair not in OF_FUNCTIONS
]


@pytest.mark.parametrize(
    ("function", "form"), [*OF_FUNCTIONS, *(pytest.param(*pair, marks=pytest.mark.long) for pair in OTHERS)]
)
@pytest.mark.by_turns(2)
def test_every_function_embeds_what_extract_takes(function, form):
    sets = [(255 * rows[:40]).astype(np.uint8).reshape(-1, 28, 28)[:, ::2, ::2] for rows in example_sets(60)]
    assert BY_FUNCTION[function](*map(FORMS[form], sets)) == 40


@pytest.mark.parametrize("rows", [np.ones((60, 3)).tolist(), Numbered(np.ones((60, 3), np.float32)), Numbered([])])
def test_rows_of_numbers_are_embeddings(rows):
    assert form_of(rows) == "embeddings"


def test_the_run_has_the_portions_and_the_progress_of_the_embedding(sets):
    stages = []
    run = Run(batch_size=7, workers=1, progress=lambda stage, done, total: stages.append((stage, done)))
    fe.compare("gen", "ref", extractor="pixels", run=run, **QUICK)
    embedded = [(stage, done) for stage, done in stages if stage.startswith("embed")]
    assert embedded[0] == ("embed 2 × 60 images by pixels", 0) and embedded[1][1] == 7 and embedded[-1][1] == 120
    assert embedded == sorted(embedded) and len({stage for stage, _ in embedded}) == 1  # one bar over both sets


def test_a_subset_of_what_is_embedded_already_is_refused(sets):
    fe.extract("ref", "pixels", "ref.h5")
    with pytest.raises(fe.UsageError, match="n takes samples before they are embedded, and ref is embedded already"):
        fe.compare("gen", "ref.h5", extractor=fe.Extraction(n=10))


def test_an_extractor_that_did_not_make_the_embeddings_is_refused(sets):
    fe.extract("ref", "pixels", "ref.h5")
    rows = np.random.default_rng(0).random((60, 147), np.float32)
    np.save("gen.npy", rows)
    for gen in ("ref.h5", "gen", "gen.npy"):
        with pytest.raises(fe.UsageError, match=r"is resnet50, but (ref|gen) is embedded already, by pixels: "):
            fe.compare(gen, "ref.h5", extractor="resnet50", features=20)
    for ref in ("gen.npy", rows):
        with pytest.raises(fe.UsageError, match="is pixels, but gen is an array of embeddings, which has no extractor"):
            fe.compare("gen.npy", ref, extractor="pixels", features=20)
    for gen, ref in (("ref.h5", "ref.h5"), ("gen", "ref.h5"), ("gen.npy", "ref.h5"), ("gen", "gen.npy")):
        assert space_of(gen, ref, "pixels").startswith("pixels@")


def test_a_gate_embeds_a_release_beside_arrays(sets):
    rng = np.random.default_rng(0)
    old, ref = (rng.random((60, 147), np.float32) for _ in range(2))
    verdict = fe.gate("gen", old, ref, {"metrics": {"kid": {"worse": 0.5}}}, extractor="pixels")
    assert set(verdict.scores) == {"gen", "baseline"}


def test_an_extractor_of_another_kind_is_refused(sets):
    with pytest.raises(fe.UsageError, match=r"extractor must be a name, .* or fe.Extraction\(…\), got 3"):
        fe.compare("gen", "ref", extractor=3)
    for take in (fe.extract, lambda path, extractor: fe.compare(path, "ref", extractor=extractor)):
        with pytest.raises(fe.UsageError, match=r"got a function, .* pass the array .* instead of the samples"):
            take("gen", extractor=lambda x: x)
    with pytest.raises(fe.UsageError, match="got a Linear, which has no digest"):
        fe.extract("gen", torch.nn.Linear(2, 2))
    with pytest.raises(fe.UsageError, match="n must be a whole number"):
        fe.Extraction(n=0)


def test_a_path_that_does_not_exist_is_told_with_the_nearest(sets):
    with pytest.raises(fe.DataError, match="did you mean gen"):
        fe.compare("gne", "ref", extractor="pixels")


@pytest.fixture
def files(sets):
    """A file of each form of a set, and files that are none."""
    np.save("rows.npy", np.zeros((3, 2), np.float32))
    np.savez("images.npz", arr_0=np.zeros((3, 8, 8, 3), np.uint8))
    np.savez("statistics.npz", mu=np.zeros(2), sigma=np.eye(2))
    np.savez("both.npz", embeddings=np.zeros((3, 2), np.float32), mu=np.zeros(2), sigma=np.eye(2))
    fe.Sketch.reference(example_sets(60)[1], features=20).save("sketch.h5")
    fe.extract("ref", "pixels", "cache.h5")
    shutil.copy("sketch.h5", "named otherwise")
    for name in ("damaged.npz", "damaged.h5", "of another program.pkl"):
        Path(name).write_bytes(b"PK\x03\x04")
    Path("folder.h5").mkdir()


FORMS_OF_PATHS = {
    "samples": ["gen", "images.npz", "damaged.npz", "gone", "gone.npz", "folder.h5", "{0..3}.tar"],
    "embeddings": ["rows.npy", "both.npz", "cache.h5", "gone.h5", "damaged.h5"],
    "sketch": ["sketch.h5", "named otherwise"],
    "statistics": ["statistics.npz", "of another program.pkl"],
}


def test_a_path_says_what_the_set_is(files):
    found = {form: [path for path in paths if form_of(path) == form] for form, paths in FORMS_OF_PATHS.items()}
    assert found == FORMS_OF_PATHS


def test_an_object_says_what_the_set_is(files):
    assert form_of(fe.open_source("gen")) == "samples"
    assert form_of(fe.Sketch.load("sketch.h5")) == "sketch"
    assert form_of(gaussian_statistics("rows.npy")) == "statistics"
    assert form_of(as_embeddings("cache.h5")) == form_of(np.zeros((3, 2))) == "embeddings"


def test_sets_in_a_list_are_called_by_their_files(sets):
    assert list(label_sets(["a/gen.h5", "b/ref.sketch.h5"], "model")) == ["gen", "ref"]
    assert list(label_sets(["a/gen.h5", "b/gen.h5"], "model")) == ["model 1", "model 2"]
    assert list(label_sets([np.zeros(1), "b/gen.h5"], "model")) == ["model 1", "model 2"]
    assert label_sets({1: "x"}, "model") == {"1": "x"}
    with pytest.raises(fe.UsageError, match="models must be sets by label"):
        label_sets("gen", "model")


def test_a_subset_does_not_replace_a_larger_set_of_embeddings(sets):
    fe.extract("gen", "pixels", "gen.h5")
    with pytest.raises(fe.UsageError, match="which would be lost"):
        fe.extract("gen", "pixels", "gen.h5", n=10)
    assert fe.extract("gen", "pixels", "gen.h5", n=10, force=True).n == 10
    assert fe.extract("gen", "pixels", "gen.h5", n=20).n == 20
    assert fe.extract("gen", "pixels", "gen.h5").n == 60


def test_sets_keep_their_order(sets):
    fe.extract("ref", "pixels", "ref.h5")
    opened = open_embeddings({"a": "gen", "b": "ref.h5"}, None, Run())
    assert list(opened) == ["a", "b"] and opened["a"].title == "gen"


def test_statistics_are_not_taken_for_embeddings(tmp_path):
    np.savez(tmp_path / "fid.npz", mu=np.zeros(4), sigma=np.eye(4))
    with pytest.raises(DataError, match=r"fid\.npz holds the mean and covariance of a set, which only Fréchet"):
        as_embeddings(tmp_path / "fid.npz")
    with pytest.raises(DataError, match="embeddings is the mean and covariance of a set, which only Fréchet"):
        as_embeddings(gaussian_statistics(np.eye(4)))
    (tmp_path / "rows.pkl").write_bytes(b"")
    with pytest.raises(DataError, match=r"rows\.pkl is a pickle, .* convert it once with numpy\.save\("):
        as_embeddings(tmp_path / "rows.pkl")


def test_an_array_first_does_not_hide_that_two_caches_are_of_unlike_extractors(sets):
    array = np.random.default_rng(0).normal(size=(60, 147)).astype(np.float32)
    fe.extract("gen", "pixels", "gen.h5")
    with fe.extract("ref", "pixels", "ref.h5") as cache:
        other = fe.EmbeddingSet(cache[:])
    other.space = "another@12345678"
    with pytest.raises(fe.IncompatibleError, match=r"was embedded with pixels@.{8}, set 3 with another"):
        fe.kinds([array, "gen.h5", other])
