"""The utility of synthetic records: near or far, learned or not, and nothing of it where synthetic records lie."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.private.synthesis.files import write_arrays
from finc_eval.private.synthesis.utility import balanced_difference

TABLE = fe.privacy.Table(
    (fe.privacy.Number.between("age", 18, 95, integer=True), fe.privacy.Category("smokes", ("no", "yes"))),
    fe.privacy.Category("ill", ("0", "1")),
)


def patients(n, seed):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    age = np.clip(np.where(ill, rng.normal(65, 8, n), rng.normal(40, 10, n)), 18, 95).astype(int)
    smokes = rng.random(n) < np.where(ill, 0.7, 0.2)
    return {"age": age, "smokes": np.where(smokes, "yes", "no"), "ill": np.where(ill, "1", "0")}


def unrelated(values, seed=3):
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(column) for name, column in values.items()}


PRIVATE = patients(1200, 0)


@pytest.mark.parametrize(
    ("made", "learns", "is_near"),
    [(patients(1200, 1), True, True), (unrelated(PRIVATE), False, False)],
    ids=["of the same law", "columns without relations"],
)
def test_records_are_as_useful_as_their_relations(made, learns, is_near):
    found = fe.privacy.table_utility(PRIVATE, made, TABLE)
    assert [one.columns for one in found.marginals] == [1, 2, 3] and found.trained == 600
    single, *_, most = found.marginals
    assert single.synthetic < 0.06  # both tables have the right columns
    assert (most.synthetic < (most.resampled + most.independent) / 2) == is_near
    for one in found.classifiers:
        assert one.private > 0.85 and (one.synthetic > 0.85) == learns
        assert one.difference == pytest.approx(one.synthetic - one.private)
        assert (one.interval[1] < -0.2) != learns


def test_a_page_says_first_whom_it_is_for_and_that_it_is_not_private(tmp_path):
    found = fe.privacy.table_utility(PRIVATE, unrelated(PRIVATE), TABLE)
    first, *_ = found.says.items()
    assert first[0] == "holder" and "NOT PRIVATE" in first[1]
    assert "Columns without relations are as near" in found.says["marginals"]
    assert found.seed == 0 and "seed 0" in found.to_html(tmp_path / "u.html").read_text()
    for text in (found.to_html(tmp_path / "u.html").read_text(), found.to_markdown(), found.to_json()):
        assert "NOT PRIVATE" in text
    found.to_json(tmp_path / "u.json")
    assert fe.load(tmp_path / "u.json").to_dict() == found.to_dict()


def test_a_class_that_is_never_made_is_never_recognized():
    made = {name: column[PRIVATE["ill"] == "0"] for name, column in PRIVATE.items()}
    for one in fe.privacy.table_utility(PRIVATE, made, TABLE).classifiers:
        assert one.synthetic == 0.5


def test_without_a_label_there_are_marginals_alone():
    found = fe.privacy.table_utility(PRIVATE, PRIVATE, fe.privacy.Table(TABLE.columns))
    assert not found.classifiers and [one.synthetic for one in found.marginals] == [0, 0]


def test_the_interval_of_a_difference_by_hand_and_of_classifiers_that_are_right_about_the_same_records():
    classes = np.repeat([0, 1], [90, 10])
    same = np.ones(100, bool)
    value, (low, high) = balanced_difference(same, same, classes, 2)
    # Agresti and Min: (1 / 92) / 92 and (1 / 12) / 12, of means that count a half each.
    half = 1.959964 * np.sqrt(1 / 92**2 + 1 / 12**2) / 2
    assert value == 0 and high == pytest.approx(half, rel=1e-5) and low == -high
    one = same.copy()
    one[95:] = False
    assert balanced_difference(one, same, classes, 2)[0] == pytest.approx(-0.25)


def test_too_few_records_and_a_wrong_seed_are_refused():
    few = {name: column[:3] for name, column in PRIVATE.items()}
    with pytest.raises(fe.DataError, match="at least 4 private and 2 synthetic records, got 3 and 1200"):
        fe.privacy.table_utility(few, PRIVATE, TABLE)
    with pytest.raises(fe.UsageError, match="seed must be"):
        fe.privacy.table_utility(PRIVATE, PRIVATE, TABLE, seed=-1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_arrays("patients.csv", PRIVATE)
    (tmp_path / "made").mkdir()
    write_arrays("made/synthetic.csv", patients(300, 5))
    (tmp_path / "table.json").write_text(
        '{"label": "ill", "columns": [{"name": "age", "low": 18, "high": 95, "integer": true}, '
        '{"name": "smokes", "values": ["no", "yes"]}, {"name": "ill", "values": ["0", "1"]}]}'
    )
    return tmp_path


def utility(*more):
    words = ["private", "utility", "--data", "patients.csv", "--gen", "made/synthetic.csv", "--table", "table.json"]
    return CliRunner().invoke(app, [*words, *more])


def test_the_command_writes_nothing_unless_asked_and_nothing_beside_the_synthetic_records(folder):
    shown = utility()
    assert shown.exit_code == 0 and shown.stdout.startswith("NOT PRIVATE")
    refused = utility("--out", "made")
    assert refused.exit_code == 3 and "choose another folder" in " ".join(refused.stderr.split())
    assert [one.name for one in (folder / "made").iterdir()] == ["synthetic.csv"]
    assert utility("--out", "mine").exit_code == 0
    assert sorted(one.name for one in (folder / "mine").iterdir()) == [
        "utility-not-private.html",
        "utility-not-private.json",
    ]


def test_what_generate_writes_is_a_function_of_the_release_alone(folder, seeded_noise, monkeypatch):
    """With the same release, other private records give the same files, byte for byte."""
    from finc_eval.private.synthesis import synthesize

    release = synthesize.release_embedding
    kept, said = [], []

    def once(*given, **more):
        kept.append(kept[0] if kept else release(*given, **more))
        return kept[-1]

    monkeypatch.setattr(synthesize, "release_embedding", once)
    for values in (PRIVATE, unrelated(patients(1200, 8))):
        made = fe.privacy.synthesize_table(values, TABLE, epsilon=1, ledger=None, method="dp-hp-few", steps=20)
        said.append((json.dumps(made.to_dict()["values"]), made.synthesis.to_dict() | {"provenance": None}))
    assert said[0] == said[1]


@pytest.mark.parametrize("is_useful", [True, False])
def test_images_are_as_useful_as_their_labels(is_useful):
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    images = (rng.integers(0, 120, (120, 6, 6)) + 100 * labels[:, None, None]).astype(np.uint8)
    made = labels[::-1] if is_useful else np.roll(np.repeat(labels[:2], 60), 30)
    found = fe.privacy.image_utility(images, list(map(str, labels)), images[::-1], list(map(str, made)), ("0", "1"))
    assert not found.marginals and (found.classifiers[0].synthetic > 0.9) == is_useful


def test_images_that_do_not_fit_are_refused():
    images = np.zeros((4, 6, 6), np.uint8)
    with pytest.raises(fe.DataError, match="must have one shape"):
        fe.privacy.image_utility(images, list("0101"), images[:, :5], list("0101"), ("0", "1"))
    with pytest.raises(fe.UsageError, match="pass the list of classes"):
        fe.privacy.image_utility(images, list("0101"), images, list("0101"), ())
    with pytest.raises(fe.DataError, match="no image has a class of a, b"):
        fe.privacy.image_utility(images, list("0101"), images, list("0101"), ("a", "b"))


def test_values_that_do_not_fit_are_said_of_the_table_that_has_them():
    """Synthetic records of another program may spell a class in another way: then no class is learned."""
    spelled = PRIVATE | {"ill": np.where(PRIVATE["ill"] == "1", "sick", "0")}
    with pytest.warns(UserWarning, match="synthetic values of ill fit, and .* not described, such as 'sick'"):
        fe.privacy.table_utility(PRIVATE, spelled, TABLE)
    images, labels = np.repeat(np.uint8([0, 200]), 20)[:, None, None] * np.ones((1, 4, 4), np.uint8), ["0", "1"] * 20
    with pytest.warns(UserWarning, match="38 of 40 private values of labels fit.*'odd'"):
        fe.privacy.image_utility(images, ["odd"] * 2 + labels[2:], images, labels, ("0", "1"))


def test_guessing_is_among_the_classes_that_private_records_have():
    wider = fe.privacy.Table(TABLE.columns, fe.privacy.Category("ill", ("0", "1", "unknown")))
    found = fe.privacy.table_utility(PRIVATE, PRIVATE, wider)
    assert found.classes == ("0", "1") and "Guessing recognizes 50.0 %" in found.says["classifiers"]


def test_differences_of_shares_are_in_points_in_the_sentence_and_in_the_table():
    found = fe.privacy.table_utility(PRIVATE, unrelated(PRIVATE), TABLE)
    best = max(found.classifiers, key=lambda row: row.private)
    low, high = (f"{100 * end:.1f}".replace("-", "−") for end in best.interval)
    assert f"[{low}, {high}]" in found.says["classifiers"] and f"[{low}, {high}]" in found.to_markdown().replace(
        "\\", ""
    )
