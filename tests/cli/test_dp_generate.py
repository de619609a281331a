import json
from pathlib import Path

import numpy as np
import pytest
import torch
from _quick import quick_releases  # noqa: F401
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.files.npz import NpzFile, NpzRows
from finc_eval.core.record import plain
from finc_eval.core.storage import reserve
from finc_eval.privacy import Ledger, Table, synthesize_images, synthesize_table
from finc_eval.private.settings import SYNTHESIS_METHODS
from finc_eval.private.synthesis import synthesize as synthesis
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.dp_hp import release_embedding
from finc_eval.private.synthesis.files import read_columns, read_images, write_arrays
from finc_eval.private.synthesis.released_features import image_statistics, table_statistics

pytestmark = pytest.mark.usefixtures("seeded_noise")

TABLE = Table(
    (Number.between("age", 18, 95, integer=True), Category("smokes", ("no", "yes"))), Category("ill", ("0", "1"))
)
WIDE = Table(tuple(Category(f"column {place}", ("no", "yes")) for place in range(9)))
DESCRIPTION = """
label = "ill"
columns = [
    {name = "age", low = 18, high = 95, integer = true},
    {name = "smokes", values = ["no", "yes"]},
    {name = "ill", values = ["0", "1"]},
]
"""


def patients(n=3000, seed=0):
    """Of whom the ill are older, and smoke more often."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    age = np.clip(np.where(ill, rng.normal(65, 8, n), rng.normal(40, 10, n)), 18, 95).astype(int)
    smokes = rng.random(n) < np.where(ill, 0.7, 0.2)
    return {
        "age": age,
        "smokes": np.where(smokes, "yes", "no"),
        "ill": np.where(ill, "1", "0"),
        "insurance": np.arange(n),
    }


@pytest.fixture
def files(tmp_path):
    write_arrays(tmp_path / "patients.csv", patients(1000))
    (tmp_path / "table.toml").write_text(DESCRIPTION)
    (tmp_path / "torn.npz").write_bytes(b"PK")
    return tmp_path


def dp_generate(folder, *more, data="patients.csv", out="made.csv", epsilon=1):
    given = ["private", "generate", "--data", folder / data, "--out", folder / out, "--ledger", folder / "ledger"]
    steps = () if "--steps" in more else ("--steps", 3)
    return CliRunner().invoke(app, [str(part) for part in (*given, "--epsilon", epsilon, *steps, *more)])


@pytest.mark.one_of_each
@pytest.mark.parametrize("method", SYNTHESIS_METHODS)
def test_a_synthetic_table_says_of_the_ill_what_the_private_one_does(monkeypatch, method):
    monkeypatch.setattr(synthesis, "MIXTURE_COMPONENTS", 20)
    made = synthesize_table(patients(2000), TABLE, epsilon=5, ledger=None, method=method, steps=80)
    values = made.values
    assert set(values) == {"age", "smokes", "ill"}
    assert len(values["age"]) == 2000
    ill = values["ill"] == "1"
    assert ill.mean() == pytest.approx(0.3, abs=0.02)
    assert values["age"][ill].mean() - values["age"][~ill].mean() > 12
    assert (values["smokes"][ill] == "yes").mean() - (values["smokes"][~ill] == "yes").mean() > 0.2
    assert made.synthesis.shares["1"] == pytest.approx(0.3, abs=0.02)
    assert "(5, 1e-05)-DP" in str(made.synthesis)


@pytest.mark.long
def test_synthetic_digits_resemble_their_class_more_than_others(digits):
    images, labels = digits
    chosen = labels < 3
    private = (images[chosen] * 255).astype(np.uint8).reshape(-1, 28, 28)
    made = synthesize_images(
        private, labels[chosen], classes=["0", "1", "2"], epsilon=20, ledger=None, steps=15, count=90
    )
    assert made.images.shape == (90, 28, 28)
    assert made.images.dtype == np.uint8
    assert sorted(set(made.labels)) == ["0", "1", "2"]
    real = np.stack([private[labels[chosen] == label].mean(0).ravel() for label in range(3)])
    fake = np.stack([made.images[made.labels == str(label)].mean(0).ravel() for label in range(3)])
    likeness = np.corrcoef(np.concatenate([real, fake]))[3:, :3]
    assert likeness.argmax(1).tolist() == [0, 1, 2]


@pytest.mark.one_of_each("method", "network")
@pytest.mark.parametrize("network", ["fully-connected", "convolutional"])
@pytest.mark.parametrize("method", [one for one in SYNTHESIS_METHODS if one != "dp-hp-few"])
def test_every_method_goes_with_the_papers_networks(network, method):
    images = np.random.default_rng(0).integers(0, 255, (50, 8, 8, 3), dtype=np.uint8)
    made = synthesize_images(images, None, epsilon=1, ledger=None, steps=2, count=7, method=method, network=network)
    assert made.images.shape == (7, 8, 8, 3)
    assert made.labels is None
    assert made.synthesis.shares == {}


def test_presets_have_the_papers_orders_and_its_bound():
    assert [one.bound for one in SYNTHESIS_METHODS.values()] == ["tight", "tight", "paper", "tight"]
    assert [one.until for one in SYNTHESIS_METHODS.values()] == [1, 1, 0, 1]
    images = image_statistics(fe.privacy.DpHpPaper(), (28, 28, 1))
    assert [one.phi.size for one in images] == [784 * 101] + [21**2] * 10
    assert images[0].budget / sum(one.budget for one in images) == pytest.approx(0.8)
    assert [one.weight for one in images] == [20] + [0.1] * 10
    fashion = image_statistics(fe.privacy.DpHpPaper(data_set="fashion-mnist"), (28, 28, 1))
    assert fashion[0].weight == 10
    table = table_statistics(fe.privacy.DpHpPaper(), WIDE)
    assert [one.phi.size for one in table] == [9 * 101] + [6**5] * 20
    assert [one.weight for one in table] == [1] + [0.1 / 20] * 20
    assert table[0].budget / sum(one.budget for one in table) == pytest.approx(0.6)


@pytest.mark.parametrize("of_images", [True, False], ids=["images, Section H.2", "tables, eq. 16"])
def test_gamma_multiplies_the_loss_of_the_sum_for_images_and_that_of_the_products_for_tables(of_images):
    """Both losses, as the paper has them, up to a factor: the mean over epochs of a weighted sum of two distances."""
    asked = fe.privacy.DpHpPaper(gamma=20, draws=3)
    statistics = image_statistics(asked, (4, 4, 1)) if of_images else table_statistics(asked, TABLE)
    width = 16 if of_images else statistics[0].view.shape[0]
    private, made = torch.rand(2, 30, width, generator=torch.Generator().manual_seed(0))
    target = release_embedding(private, None, statistics, None, ledger=None)
    other = torch.rand(30, width, generator=torch.Generator().manual_seed(1))

    def loss(rows):
        total, *products = (float((one(private).mean(0) - one(rows).mean(0)).square().sum()) for one in statistics)
        product = sum(products) / len(products)
        return product + 20 * total if of_images else total + 20 * product

    found = [
        float(target.discrepancy([one(rows).mean(0, keepdim=True) for one in statistics])) for rows in (made, other)
    ]
    assert found[0] / found[1] == pytest.approx(loss(made) / loss(other), rel=1e-4)


def test_the_papers_own_kernels_can_be_asked_for():
    asked = fe.privacy.DpHpPaper(product_order=13, product_columns=5, draws=2, sum_share=0.5, sum_order=20, gamma=3)
    single, *products = table_statistics(asked, WIDE)
    assert [one.phi.size for one in (single, *products)] == [9 * 21, 537_824, 537_824]
    assert [one.weight for one in (single, *products)] == [1, 1.5, 1.5]  # γ over the products of all epochs
    assert [one.budget for one in (single, *products)] == [1, 0.5, 0.5]


def test_the_papers_parameters_are_options_of_its_method_alone(files):
    table = ("--table", files / "table.toml", "--budget", 9, "--steps", 2)
    refused = dp_generate(files, *table, "--gamma", 2)
    assert refused.exit_code == 3 and "--gamma belongs to dp-hp-paper, not to dp-hp" in refused.stderr
    made = dp_generate(files, *table, "--method", "dp-hp-paper", "--gamma", 2, "--product-columns", 1)
    assert made.exit_code == 0, made.stderr
    assert "by dp-hp-paper(product_columns=1, gamma=2.0)" in made.stdout
    assert "644" in made.stdout  # (2 · 101 + 20 · 6) · 2 classes


def test_a_run_without_noise_is_a_baseline_that_says_so_and_no_ledger_takes_it(files):
    made = synthesize_table(patients(200), TABLE, epsilon=float("inf"), ledger=None, steps=3)
    assert made.synthesis.guarantee is None and made.synthesis.steps == 3
    assert "NOT PRIVATE: no noise was added" in str(made.synthesis)
    assert json.loads(json.dumps(made.to_dict()["synthesis"]))["guarantee"] is None
    refused = dp_generate(files, "--table", files / "table.toml", "--budget", 1, epsilon="inf")
    assert refused.exit_code == 3 and "an infinite epsilon adds no noise" in refused.stderr
    assert not (files / "ledger").exists() and not (files / "made.csv").exists()
    ledger = Ledger.create(files / "ledger", epsilon=1, delta=1e-5)
    with pytest.raises(fe.UsageError, match="a ledger holds private releases alone"):
        synthesize_table(patients(200), TABLE, epsilon=float("inf"), ledger=ledger)
    assert not ledger.spendings()


def test_the_command_writes_a_table_and_says_what_it_promises(files):
    result = dp_generate(files, "--table", files / "table.toml", "--budget", 1, "--count", 50)
    assert result.exit_code == 0, result.output
    assert "any attacker's AUC ≤ 0.575" in result.stdout
    made = read_columns(files / "made.csv")
    assert list(made) == ["age", "smokes", "ill"]
    assert len(made["age"]) == 50
    assert set(made["smokes"]) <= {"no", "yes"}


def test_the_same_records_in_another_file_and_order_have_no_budget_left(files):
    first = dp_generate(files, "--table", files / "table.toml", "--budget", 1)
    assert first.exit_code == 0, first.output
    columns = patients(1000)
    write_arrays(files / "sorted.npz", {name: columns[name][::-1] for name in sorted(columns)})
    again = dp_generate(files, "--table", files / "table.toml", data="sorted.npz", out="more.csv")
    assert again.exit_code == 3
    assert "nothing is left after 1 release" in again.stderr
    assert not (files / "more.csv").exists()


def test_what_cannot_be_written_is_not_paid_for(files):
    result = dp_generate(files, "--table", files / "table.toml", "--budget", 1, out="table.toml/made.csv")
    assert result.exit_code == 3
    assert "cannot be written" in result.stderr
    assert not (files / "ledger").exists()


def test_of_two_releases_to_one_file_only_one_is_made(files):
    with reserve(files / "made.csv", 1):
        result = dp_generate(files, "--table", files / "table.toml", "--budget", 5)
    assert result.exit_code == 3
    assert "made.csv is being written by another process" in result.stderr
    assert not (files / "ledger").exists()
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 5).exit_code == 0
    assert sorted(one.name for one in files.iterdir() if "made" in one.name) == ["made.csv", "made.html", "made.json"]


def test_a_page_and_json_about_the_release_stand_beside_the_data(files):
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 1).exit_code == 0
    page, told = (files / "made.html").read_text(), json.loads((files / "made.json").read_text())
    assert told["type"] == "synthesis" and told["guarantee"]["epsilon"] == 1
    assert "(1, 1e-05)-DP" in page and all(name in page for name in ("age", "18 to 22", "smokes"))
    assert fe.load(files / "made.json").to_dict() == told


def test_a_page_that_others_made_is_not_lost_and_nothing_is_spent_before_that_is_known(files):
    (files / "made.html").write_text("mine")
    result = dp_generate(files, "--table", files / "table.toml", "--budget", 1)
    assert result.exit_code == 3
    assert "made.html exists" in result.stderr and (files / "made.html").read_text() == "mine"
    assert not (files / "ledger").exists() and not (files / "made.csv").exists()
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 1, "--force").exit_code == 0


def test_what_was_paid_for_and_cannot_be_written_any_more_is_kept_elsewhere(files, monkeypatch):
    def full(path, arrays):
        if path.parent == files:
            raise DataError(f"the disk is full while writing {path}")
        write_arrays(path, arrays)

    monkeypatch.setattr("finc_eval.cli.verbs.private.write_arrays", full)
    result = dp_generate(files, "--table", files / "table.toml", "--budget", 1)
    assert result.exit_code == 3
    rescued = Path(result.stderr.split("has spent its budget, is in ")[1].strip())
    assert list(read_columns(rescued)) == ["age", "smokes", "ill"]


def test_a_run_that_fails_leaves_no_ledger_with_its_budget(files):
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 7, data="nowhere.csv").exit_code == 3
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 0.5).exit_code == 3  # too small
    assert not (files / "ledger").exists()
    assert dp_generate(files, "--table", files / "table.toml", "--budget", 2).exit_code == 0
    assert Ledger(files / "ledger").budget.epsilon == 2


def test_images_go_from_npz_to_npz_and_results_to_json(files):
    rng = np.random.default_rng(0)
    np.savez(files / "scans.npz", images=rng.integers(0, 255, (60, 8, 8), dtype=np.uint8), labels=np.arange(60) % 2)
    result = dp_generate(
        files, "--classes", "0,1", "--budget", 2, "--count", 10, "--json", data="scans.npz", out="made.npz"
    )
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["guarantee"]["epsilon"] == 1
    assert set(said["shares"]) == {"0", "1"}
    with np.load(files / "made.npz") as made:
        assert made["images"].shape == (10, 8, 8)
        assert set(made["labels"]) == {"0", "1"}
    assert (files / "made.html").read_text().count("data:image/png") == 10


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("labeled.npz", [], "labeled.npz has labels: pass --classes"),
        ("plain.npz", ["--classes", "0,1"], "plain.npz has no array labels"),
    ],
)
def test_labels_and_their_public_list_come_together(files, data, options, message):
    images = np.zeros((60, 8, 8), np.uint8)
    np.savez(files / "plain.npz", images=images)
    np.savez(files / "labeled.npz", images=images, labels=np.arange(60) % 2)
    Ledger.create(files / "ledger", 2, 1e-5)
    result = dp_generate(files, *options, data=data, out="made.npz")
    assert result.exit_code == 3 and message in " ".join(result.stderr.split())
    assert not Ledger(files / "ledger").spendings()


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({}, [], "which are not taken from the data"),
        ({}, ["--table", "table.toml", "--classes", "0,1"], "--classes is for images"),
        ({"out": "made.xlsx"}, ["--table", "table.toml"], "must end in .csv or .npz"),
        ({"out": "patients.csv"}, ["--table", "table.toml"], "exists, and what it cost would be lost"),
        ({"data": "nobody.csv"}, ["--table", "table.toml"], "nobody.csv does not exist"),
        ({"data": "torn.npz"}, ["--table", "table.toml"], "cannot be read as an .npz"),
        ({}, ["--table", "table.toml", "--method", "dp-ph"], "'dp-ph' is not one of 'dp-hp'"),
        ({}, ["--table", "table.toml", "--count", "0"], "count must be a whole number of at least 1, got 0"),
        ({"epsilon": 0}, ["--table", "table.toml"], "epsilon must be a positive number"),
        ({"data": "torn.npz", "out": "new.npz"}, [], "cannot be read as an .npz"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_budget_is_touched(files, monkeypatch, change, more, message):
    monkeypatch.chdir(files)
    Ledger.create(files / "ledger", 1, 1e-5)
    result = dp_generate(files, *more, **change)
    assert result.exit_code == 3
    assert message in " ".join(result.stderr.split())
    assert not Ledger(files / "ledger").spendings()


def test_a_record_with_missing_or_odd_cells_is_a_record_all_the_same(files):
    """One malformed record changes neither the form of a release nor that there is one."""
    head, *lines = (files / "patients.csv").read_bytes().splitlines()
    lines[3:6] = [b"40", b"40,yes,1,7,8,9", b"40,\xff\xfe,1,7"]
    (files / "odd.csv").write_bytes(b"\n".join([head, *lines]))
    columns = read_columns(files / "odd.csv")
    assert {len(column) for column in columns.values()} == {1000}
    assert [columns[name][3] for name in ("age", "smokes", "ill")] == ["40", "", ""]
    assert list(columns) == ["age", "smokes", "ill", "insurance"]
    result = dp_generate(files, "--table", files / "table.toml", "--budget", 1, "--count", 5, data="odd.csv")
    assert result.exit_code == 0, result.output
    assert "odd.csv has 2 records with more or fewer cells than its line of names" in result.stderr
    assert "keep it to yourself" in result.stderr


def test_tables_that_are_none_are_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    with pytest.raises(FincEvalError, match="has 2 columns called 'a'"):
        read_columns(tmp_path / "twice.csv")
    (tmp_path / "bare.csv").write_text("a,b\n")
    with pytest.raises(FincEvalError, match="at least one record"):
        read_columns(tmp_path / "bare.csv")
    np.savez(tmp_path / "uneven.npz", a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(FincEvalError, match=r"uneven\.npz: a table must have columns of one length"):
        read_columns(tmp_path / "uneven.npz")


def test_arrays_and_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "objects.npz", a=np.array([{}, []], dtype=object))
    with pytest.raises(FincEvalError, match="holds Python objects, which are not read"):
        read_columns(tmp_path / "objects.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((5, 8, 8))}, "must be uint8 of shape"),
        ({"labels": [0] * 5}, "labels come with a public list of classes"),
        ({"labels": [0] * 5, "classes": ["0", "0"]}, "each once"),
        ({"labels": [0] * 4, "classes": ["0", "1"]}, "5 samples came with 4 labels"),
        ({"network": "convolution"}, 'did you mean "convolutional"'),
        ({"method": "dp-hp-few"}, "dp-hp-few is for tables: for images choose dp-hp, dp-hp-paper or dp-merf"),
    ],
)
def test_images_that_do_not_fit_are_refused(change, message):
    given = {"images": np.zeros((5, 8, 8), np.uint8), "labels": None, "epsilon": 1, "ledger": None} | change
    with pytest.raises(FincEvalError, match=message):
        synthesize_images(given.pop("images"), given.pop("labels"), **given)


def test_the_package_offers_generation_by_name():
    assert fe.privacy.synthesize_table is synthesize_table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "dp-hp"}, "the option 'epsilon' is missing"),
        ({"epsilon": 1, "step": 5}, "unknown option 'step' .did you mean \"steps\""),
        ({"epsilon": 1, "seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(options, message):
    with pytest.raises(fe.UsageError, match=message):
        synthesize_table(patients(20), TABLE, ledger=None, **options)


def test_settings_hold_numbers_that_become_json():
    settings = fe.privacy.SynthesisSettings(epsilon=np.float32(2), count=np.int64(7), seed=np.int64(3))
    assert json.loads(json.dumps(plain(settings)))["seed"] == 3
    assert [type(one) for one in (settings.epsilon, settings.count, settings.seed)] == [float, int, int]


def pictures(folder, n=2500):
    rng = np.random.default_rng(0)
    arrays = {"images": rng.integers(0, 256, (n, 6, 5, 3), dtype=np.uint8), "labels": rng.integers(0, 2, n).astype(str)}
    np.savez_compressed(folder / "pictures.npz", **arrays)
    return arrays


@pytest.mark.long
def test_images_of_a_file_are_read_once_in_batches_and_give_what_an_array_gives(tmp_path, seeded_noise, monkeypatch):
    arrays, sizes, read = pictures(tmp_path), [], NpzRows.batches
    given = {"classes": ("0", "1"), "epsilon": 2, "steps": 2, "count": 30, "ledger": None}
    array = synthesize_images(arrays["images"], list(arrays["labels"]), **given)

    def watched(self, size):
        return (sizes.append(len(batch)) or batch for batch in read(self, size))

    images, labels = read_images(tmp_path / "pictures.npz")
    monkeypatch.setattr(NpzFile, "array", lambda *_: pytest.fail("the images were read whole"))
    monkeypatch.setattr(NpzRows, "batches", watched)
    seeded_noise(0)
    file = synthesize_images(images, list(labels), **given)
    np.testing.assert_array_equal(array.images, file.images)
    assert array.synthesis.to_dict() == file.synthesis.to_dict()
    assert sizes == [1024, 1024, 452]  # one pass, for all statistics


def test_a_second_release_of_the_same_images_is_known_whether_from_an_array_or_a_file(tmp_path):
    arrays = pictures(tmp_path, 300)
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1, delta=1e-3)
    given = {"epsilon": 1, "delta": 1e-3, "steps": 1, "count": 5, "ledger": ledger}
    synthesize_images(arrays["images"], None, **given)
    with pytest.raises(FincEvalError, match="budget"):
        synthesize_images(read_images(tmp_path / "pictures.npz")[0], None, **given)


def test_a_folder_of_images_is_told_the_form_that_is_taken(tmp_path):
    (tmp_path / "real").mkdir()
    result = dp_generate(tmp_path, data="real")
    assert result.exit_code == 3 and "is a folder, and private images are taken from one file" in result.stderr
    assert not (tmp_path / "ledger").exists()
