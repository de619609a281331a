"""Names, causes and links of the modes of a comparison."""

import numpy as np
import pytest
from _pages import a_comparison, a_kind, a_mode

import finc_eval as fe
from finc_eval.findings.names import KindNames
from finc_eval.numerics.inference import significant

LABELS = np.array(["ape", "bee", "cat", "dog", "elk", "fox"])


def animals(shares, n, seed, moved=None):
    """Six kinds with labels; samples of the kind `moved` lie a little aside."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(6, n, p=shares)
    rows = 6 * np.eye(6, 10)[kinds] + 0.5 * rng.standard_normal((n, 10))
    if moved is not None:
        rows[kinds == moved, 8] += 5
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"label": LABELS[kinds]})


@pytest.fixture(scope="module")
def found():
    """gen has fewer cats, and its dogs look different."""
    gen = animals([0.2, 0.2, 0.05, 0.2, 0.15, 0.2], 800, 0, moved=3)
    return fe.compare(gen, animals([0.15, 0.15, 0.2, 0.2, 0.15, 0.15], 800, 1), features=100)


def named(found, name):
    return [mode for mode in significant(found.directions, 0.05) if mode.name is not None and name in mode.name]


def test_labels_reach_the_names_of_modes(found):
    cats = named(found, "cat")[0]
    assert cats.role == "under"
    assert (cats.evidence[0].source, cats.evidence[0].value) == ("label", "cat")
    assert cats.title == cats.name


def test_fewer_cats_are_a_matter_of_frequency_and_other_dogs_one_of_appearance(found):
    assert {mode.cause for mode in named(found, "cat (100 %)")} == {"frequency"}
    dogs = named(found, "dog")
    assert {mode.role for mode in dogs} == {"over", "under"}
    assert {mode.cause for mode in dogs} == {"appearance"}


def test_links_join_modes_of_opposite_roles_on_both_sides(found):
    by_id = {mode.id: mode for mode in found.directions}
    linked = [mode for mode in found.directions if mode.looks_different is not None]
    assert {mode.role for mode in linked} == {"over", "under"}
    assert {mode.id for mode in linked} <= {mode.id for mode in named(found, "dog")}
    for mode in linked:
        other = by_id[mode.looks_different]
        assert other.role != mode.role and other.looks_different is not None
    assert all(mode.looks_different is None for mode in named(found, "cat"))


def core_and_rim():
    """Two sets; gen has a kind of its own, whose center is full of "core" and whose other two thirds are "rim"."""
    rng, ref = np.random.default_rng(2), animals([1 / 6] * 6, 800, 3)
    own = animals([1 / 6] * 6, 600, 4)
    core, rim = (6 * np.eye(10)[6] + width * rng.standard_normal((n, 10)) for width, n in ((0.05, 60), (0.5, 120)))
    rows = np.concatenate([own.rows_at(np.arange(600)), core, rim]).astype(np.float32)
    labels = [*own.column("label"), *["core"] * 60, *["rim"] * 120]
    return fe.EmbeddingSet(rows, metadata={"label": labels}), ref


def compared(gen, ref):
    return fe.compare(gen, ref, features=100, method=fe.Finc(clusters=False))


def test_the_shares_in_a_name_are_those_of_all_members():
    gen, ref = core_and_rim()
    directions = compared(gen, ref).directions
    modes = [mode for mode in significant(directions, 0.05) if "rim" in {one.value for one in mode.evidence}]
    shares = {one.value: one.share_members for one in modes[0].evidence}
    assert 0.2 < shares["core"] < 0.48
    assert 0.52 < shares["rim"] < 0.8


def test_without_labels_of_both_sets_a_mode_has_no_cause():
    gen = animals([0.2, 0.2, 0.0, 0.2, 0.2, 0.2], 400, 0)
    ref = animals([0.16, 0.16, 0.2, 0.16, 0.16, 0.16], 400, 1)
    bare = fe.compare(gen.rows_at(np.arange(400)), ref, features=60)
    assert significant(bare.directions, 0.05)
    assert {mode.cause for mode in bare.directions} == {None}


def test_modes_that_chance_made_have_no_name(found):
    assert all(mode.name is None and mode.cause is None for mode in found.directions if mode.p_value > 0.05)


def test_a_rho_below_one_warns(found):
    rows = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    below = fe.compare(rows[:30], rows[30:], features=20, rho=0.5)
    assert any("ρ = 0.5, below 1" in note for note in below.warnings)
    assert not any("below 1" in note for note in found.warnings)


@pytest.mark.parametrize("thing", ["kind", "direction"])
def test_the_names_of_all_are_read_once_however_many_are_said(monkeypatch, thing):
    """With 500 names of 3 000 letters, a comparison took 10 seconds to be made."""
    made, make = [], KindNames.__init__
    monkeypatch.setattr(KindNames, "__init__", lambda self, every: made.append([*every]) or make(self, made[-1]))
    if thing == "kind":
        found = a_comparison(kinds=[a_kind(f"k{number}") for number in range(30)])
    else:
        found = a_comparison([a_mode(f"over-{number}", name="a cat") for number in range(30)])
    assert [finding.kind for finding in found.findings] == [thing] * 30
    assert 0 < len([names for names in made if len(names) == 30]) <= 4
