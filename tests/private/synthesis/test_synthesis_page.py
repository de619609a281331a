"""The page of a synthesis: what was released, what it promises, columns or pictures."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.private.synthesis.result import Synthesis

pytestmark = pytest.mark.usefixtures("seeded_noise")

TABLE = fe.privacy.Table(
    (fe.privacy.Number.between("age", 18, 95, integer=True), fe.privacy.Category("smokes", ("no", "yes"), "no")),
    fe.privacy.Category("ill", ("0", "1")),
)


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    ill = rng.random(2000) < 0.3
    smokes = np.where(rng.random(2000) < 0.6, "yes", "no")
    return {"age": rng.integers(18, 40, 2000), "smokes": smokes, "ill": np.where(ill, "1", "0")}


@pytest.fixture(scope="module")
def stored():
    return {}


@pytest.fixture
def made(patients, stored):
    """A synthesis with the noise of the first test; no test changes it."""
    if not stored:
        stored["made"] = fe.privacy.synthesize_table(patients, TABLE, epsilon=5, ledger=None, steps=60)
    return stored["made"]


def test_columns_have_the_shares_of_the_synthetic_records_and_how_far_the_release_moved_them(made):
    age, smokes = made.synthesis.columns
    assert smokes.levels == ("no", "yes") and age.levels[0] == "18 to 22"
    found = float((made.values["smokes"] == "yes").mean())
    assert smokes.shares[1] == pytest.approx(found)
    assert smokes.moved == pytest.approx(found - 0.1, abs=1e-6)  # the description assumes nine in ten usual records
    assert sum(age.shares[:5]) > 0.9 and age.moved > 0.5


def test_parts_add_to_the_whole_release_and_its_discrepancy(made):
    told = made.synthesis
    assert told.features == sum(part.numbers for part in told.parts) and len(told.parts) == 2
    assert sum(part.budget for part in told.parts) == pytest.approx(1)
    mean = sum(part.numbers * part.discrepancy for part in told.parts) / told.features
    assert mean == pytest.approx(told.discrepancy, rel=0.2)  # of the step before the last


def test_the_page_of_a_table_tells_release_guarantee_and_columns(made, tmp_path):
    page = made.synthesis.to_html(tmp_path / "page.html").read_text()
    assert "(5, 1e-05)-DP" in page and f"≤ {made.synthesis.guarantee.ceilings.auc:.3f}" in page
    assert [found for found in ("smokes", "18 to 22", "What was released", "total-degree") if found not in page] == []
    assert "and 8 more" in page  # of the 16 intervals of age
    with pytest.raises(fe.UsageError, match="it describes a table, and shows no samples"):
        made.synthesis.to_html(tmp_path / "page.html", samples={"synthetic": np.zeros((1, 2, 2), np.uint8)})


def test_whether_a_generator_agrees_is_judged_by_what_noise_alone_would_do(made):
    told = made.synthesis
    assert told.spread == pytest.approx(math.sqrt(2 / told.features))  # weights by noise: every number counts alike
    far = replace(told, discrepancy=1 + 3.1 * told.spread)
    near = replace(told, discrepancy=1 + 2.9 * told.spread)
    assert near.agrees and not far.agrees
    assert near.says["agreement"] != far.says["agreement"]


def test_a_release_says_what_it_adds_to_the_description_and_to_columns_without_relations(made):
    """Ages and smokers are far from the description, and have nothing to do with each other or with the ill."""
    learned = made.synthesis.learned
    assert learned.description > 5 * learned.independent and not learned.shows_relations
    assert "do not rely" in made.synthesis.says["relations"]
    related = replace(learned, independent=learned.chance + 3.1 * learned.spread)
    assert related.shows_relations and "do not rely" not in replace(made.synthesis, learned=related).says["relations"]


def test_relations_to_the_class_stand_out(patients):
    related = patients | {"smokes": np.where(patients["ill"] == "1", "yes", "no")}
    told = fe.privacy.synthesize_table(related, TABLE, epsilon=5, ledger=None, steps=60).synthesis
    assert told.learned.shows_relations
    assert told.learned.independent > told.learned.chance > 1


def test_noise_and_chance_are_what_releases_of_unrelated_columns_have_on_average():
    rng, found, said = np.random.default_rng(0), [], []
    for _ in range(12):
        values = {
            "age": rng.integers(18, 95, 300),
            "smokes": rng.choice(["no", "yes"], 300),
            "ill": rng.choice(["0", "1"], 300),
        }
        told = fe.privacy.synthesize_table(
            values, TABLE, epsilon=5, ledger=None, method="dp-hp-few", steps=60, count=1
        ).synthesis.learned
        found.append((told.independent - told.chance) / told.spread)
        said.append(told.shows_relations)
    # The shares of columns are fitted, which takes a part of the noise away.
    assert -1.8 < np.mean(found) < 0.6 and sum(said) <= 1


def test_a_baseline_without_noise_says_so_first(patients):
    told = fe.privacy.synthesize_table(patients, TABLE, epsilon=math.inf, ledger=None, steps=3).synthesis
    assert "NOT PRIVATE" in told.to_markdown() and {part.noise for part in told.parts} == {0.0}


def test_what_is_read_again_is_what_was_written(made):
    written = made.synthesis.to_dict()
    assert Synthesis.from_dict(written).to_dict() == written


def test_the_page_of_images_shows_the_first_of_each_class(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (60, 8, 8), dtype=np.uint8)
    made = fe.privacy.synthesize_images(
        images, [place % 2 for place in range(60)], classes=("0", "1"), epsilon=1, ledger=None, steps=2, count=400
    )
    told = made.synthesis
    assert {name: len(ids) for name, ids in told.shown.items()} == {"0": 8, "1": 8}
    assert all(made.labels[int(place)] == name for name, ids in told.shown.items() for place in ids)
    page = told.to_html(tmp_path / "page.html", samples={"synthetic": made.images}).read_text()
    assert len(re.findall("data:image/png", page)) == 16
    assert "images are not shown: pass samples=" in told.to_html(tmp_path / "page.html").read_text()
    with pytest.raises(fe.UsageError, match="no images of 'gen'"):
        told.to_html(tmp_path / "page.html", samples={"gen": made.images})
