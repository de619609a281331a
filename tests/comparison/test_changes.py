"""Changes of kinds between two releases: planted ones are called what they are, from two files without samples."""

import json

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison import changes as changes_module
from finc_eval.comparison.changes import ORDER
from finc_eval.partitions.answer import kind_id

CENTERS = 10 * np.eye(10)

#                gone  grown  shrunk  same  deficit grows, shrinks     common to all
OLD = np.array([0.15, 0.08, 0.25, 0.15, 0.08, 0.02, 0.09, 0.18])
NEW = np.array([0.00, 0.25, 0.08, 0.15, 0.02, 0.08, 0.24, 0.18])
REFERENCE = np.array([0.0, 0.02, 0.02, 0.06, 0.18, 0.18, 0.27, 0.27])

EXPECTED = {0: "gone", 1: "grown", 2: "shrunk", 3: "unchanged", 4: "grown", 5: "shrunk"}
"""Status of the first kinds."""


def draw(shares, n, seed):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(len(shares), n, p=shares)] + 0.1 * rng.standard_normal((n, 10))).astype(np.float32)


REF = draw(REFERENCE, 1000, 100)


def compared(shares, seed, kinds=None, n=1000, ref=REF, **options):
    return fe.compare(draw(shares, n, seed), ref, method="clusters", kinds=kinds, features=20, **options)


@pytest.fixture(scope="module")
def old():
    return compared(OLD, 0)


@pytest.fixture(scope="module")
def new(old, tmp_path_factory):
    """A release whose kinds come from a file."""
    path = tmp_path_factory.mktemp("releases") / "old.h5"
    old.save(path)
    return compared(NEW, 1, path)


@pytest.fixture(scope="module")
def changes(old, new):
    return fe.compare_releases(old, new)


def planted(change, old):
    """Return the planted kind that changed."""
    tree = old.tree.tree
    node = int(change.id[1:])
    leaves = old.tree.assign(CENTERS[: len(OLD)].astype(np.float32))[0]
    held = np.flatnonzero(tree.members[node][leaves])
    return int(held[0]) if len(held) == 1 else None


def test_every_planted_change_is_called_what_it_is(changes, old):
    found = {}
    for change in changes:
        found.setdefault(planted(change, old), change)
    assert {kind: found[kind].status for kind in EXPECTED} == EXPECTED
    assert all(found[kind].role == ("over" if kind < 4 else "under") for kind in EXPECTED)
    for kind in EXPECTED:
        assert found[kind].change == pytest.approx(NEW[kind] - OLD[kind], abs=0.03)
        low, high = found[kind].interval
        assert low - 0.01 <= NEW[kind] - OLD[kind] <= high + 0.01
        assert found[kind].share_ref == pytest.approx(REFERENCE[kind], abs=0.03)


def test_changes_do_not_overlap_and_come_by_status_and_size(changes, old):
    ranks = [ORDER.index(change.status) for change in changes]
    assert ranks == sorted(ranks)
    members = old.tree.tree.members[[int(change.id[1:]) for change in changes]]
    assert members.sum(0).max() == 1


@pytest.mark.long
def test_a_kind_that_only_the_later_release_has_is_new(old):
    """The old release and the reference have hardly any: all that they have of it makes it a kind."""
    few = np.append(0.99 * REFERENCE, 0.01)
    many = np.append(0.85 * REFERENCE, 0.15)
    ref = draw(few, 1000, 3)
    before = compared(few, 4, n=1000, ref=ref)
    found = fe.compare_releases(before, compared(many, 5, before, n=1000, ref=ref))
    assert [change.status for change in found if change.change > 0] == ["new"]


def test_the_other_way_round_what_had_grown_has_shrunk(changes, old, new):
    mirrored = {"new": "gone", "gone": "new", "grown": "shrunk", "shrunk": "grown"}
    backward = {change.id: change for change in fe.compare_releases(new, old)}
    for change in changes:
        if change.has_changed:
            assert backward[change.id].status == mirrored[change.status]
            assert backward[change.id].change == pytest.approx(-change.change)


def test_the_same_release_twice_has_changed_nothing(old):
    found = fe.compare_releases(old, compared(OLD, 7, old))
    assert len(found) >= 4 and not any(change.has_changed for change in found)
    assert {change.status for change in fe.compare_releases(old, old)} == {"unchanged"}


@pytest.mark.long
def test_draws_of_one_law_seldom_change():
    """The old release has taken part in finding the kinds, and the new one has not."""
    called = 0
    for seed in range(20):
        one, two, ref = np.random.default_rng(seed).normal(size=(3, 200, 20)).astype(np.float32)
        before = fe.compare(one, ref, method="clusters")
        after = fe.compare(two, ref, method="clusters", kinds=before)
        called += any(change.has_changed for change in fe.compare_releases(before, after))
    assert called <= 4


def test_a_change_that_few_samples_cannot_show_is_undecided(old):
    found = fe.compare_releases(old, compared(NEW, 8, old, n=40))
    assert "undecided" in {change.status for change in found}


def test_saved_comparisons_give_the_same_changes_without_samples(changes, old, new, tmp_path):
    old.save(tmp_path / "old.h5")
    new.save(tmp_path / "new.h5")
    loaded = fe.compare_releases(tmp_path / "old.h5", str(tmp_path / "new.h5"))
    assert loaded.to_dict()["changes"] == changes.to_dict()["changes"]


def test_kinds_may_come_from_a_file(old, new):
    assert new.tree.digest == old.tree.digest
    assert dict(new.signature.fields)["kinds"] == old.tree.digest[:12]
    assert "kinds" not in dict(old.signature.fields)


@pytest.mark.long
def test_only_what_differs_from_the_reference_is_followed_where_nothing_changed():
    before = compared(REFERENCE, 9, n=1000, ref=REF[:1000])
    assert len(fe.compare_releases(before, compared(REFERENCE, 10, before, n=1000, ref=REF[:1000]))) == 0


@pytest.mark.parametrize("first", [True, False])
def test_a_kind_is_followed_if_either_release_differs_from_the_reference_in_it(old, first, monkeypatch):
    kind = old.kinds[-1]
    node = next(node for node in range(old.tree.tree.nodes) if kind_id(node) == kind.id)
    p_values = [np.ones(old.tree.tree.nodes) for _ in range(2)]
    p_values[first][node] = 0.05
    monkeypatch.setattr(changes_module, "_against_ref", lambda one: p_values.pop())
    assert [change.id for change in fe.compare_releases(old, old)] == [kind.id]


def test_a_change_is_plain_json(changes):
    for change, data in zip(changes, json.loads(changes.to_json())["changes"], strict=True):
        assert (data["kind"]["id"], data["status"]) == (change.id, change.status)
        assert set(data["kind"]["shares"]) == {"old", "new"}


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda old: compared(NEW, 1, n=60), "have unlike kinds: make the later by the kinds of the earlier"),
        (
            lambda old: compared(NEW, 1, old, n=400, ref=REF[1:]),
            "the references differ, .* compare both releases with one",
        ),
        (
            lambda old: fe.compare(draw(NEW, 400, 1), REF, features=50, method=fe.Finc(clusters=False)),
            "the comparison has no kinds: compare embeddings, with clusters",
        ),
        (lambda old: "gone.h5", "gone.h5 does not exist"),
        (lambda old: 3, "new must be a comparison, as fe.compare returns it, or the path of a comparison, got int"),
    ],
)
def test_comparisons_that_do_not_belong_together_are_refused(old, make, message):
    with pytest.raises(fe.FincEvalError, match=message):
        fe.compare_releases(old, make(old))


def test_kinds_of_another_extractor_are_refused(old):
    with pytest.raises(fe.IncompatibleError, match="the kinds divide embeddings of 10 entries, got shape"):
        fe.compare(draw(NEW, 400, 1)[:, :9], REF[:400, :9], method="clusters", kinds=old)
