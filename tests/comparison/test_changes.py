import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.changes import ORDER
from finc_eval.comparison.modes import significant

CENTERS = 10 * np.eye(10)

#             new    gone  grown  shrunk  same  deficit grows, shrinks     common to all
OLD = np.array([0.00, 0.12, 0.08, 0.25, 0.15, 0.08, 0.02, 0.10, 0.10, 0.10])
NEW = np.array([0.12, 0.00, 0.25, 0.08, 0.15, 0.02, 0.08, 0.10, 0.10, 0.10])
REFERENCE = np.array([0, 0, 0.02, 0.02, 0.06, 0.14, 0.14, 0.21, 0.21, 0.20])

EXPECTED = {0: "new", 1: "gone", 2: "grown", 3: "shrunk", 4: "unchanged", 5: "grown", 6: "shrunk"}
"""What becomes of the first seven kinds."""


def draw(shares, n, seed):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(10, n, p=shares)] + 0.1 * rng.standard_normal((n, 10))).astype(np.float32)


@pytest.fixture(scope="module")
def reference():
    rows = draw(REFERENCE, 4000, 100)
    phi = fe.Sketch.reference(rows, features=300, sigma=3.0).feature_map
    return fe.Sketch.of(rows, phi)


@pytest.fixture(scope="module")
def releases(reference):
    return [fe.compare(gen=draw(shares, 4000, seed), ref=reference) for seed, shares in enumerate((OLD, NEW))]


def kind_of(change, comparison):
    """Which planted kind the change is of; None for the small ones within a kind."""
    mode = change.new or change.old
    likeness = (comparison.feature_map(CENTERS).numpy() @ mode.direction) ** 2
    return int(likeness.argmax()) if likeness.max() > 0.9 else None


def by_kind(changes, comparison):
    found = {}
    for change in changes:
        kind = kind_of(change, comparison)
        if kind is not None:
            assert kind not in found
            found[kind] = change
    return found


@pytest.fixture(scope="module")
def changes(releases):
    return fe.compare_releases(*releases)


def test_every_planted_change_is_called_what_it_is(changes, releases):
    found = by_kind(changes, releases[0])
    assert {kind: found[kind].status for kind in EXPECTED} == EXPECTED
    assert all(found[kind].role == ("over" if kind < 5 else "under") for kind in EXPECTED)
    # The three kinds common to all have less than in the reference in both releases.
    assert {found[kind].status for kind in found.keys() - EXPECTED} == {"unchanged"}
    assert set(found) == set(range(10))


def test_a_change_is_the_difference_of_what_either_has_more_than_the_reference(changes, releases):
    for kind, change in by_kind(changes, releases[0]).items():
        sign = 1 if change.role == "over" else -1
        before, after = (max(sign * (shares - REFERENCE)[kind], 0) for shares in (OLD, NEW))
        assert change.change == pytest.approx(after - before, abs=0.03)
        assert change.interval[0] - 0.01 <= after - before <= change.interval[1] + 0.01
        assert (change.old is None, change.new is None) == (change.status == "new", change.status == "gone")
        if change.old and change.new:
            assert change.change == pytest.approx(sign * (change.new.share_difference - change.old.share_difference))
            assert change.overlap == pytest.approx(float(change.old.direction @ change.new.direction) ** 2, abs=1e-5)
            assert change.overlap > 0.9
            ends = [mode.share_difference_interval for mode in (change.old, change.new)]
            assert change.interval[1] - change.interval[0] > np.hypot(*(high - low for low, high in ends)) * 0.95
        else:
            assert change.overlap == 0


def test_changes_come_by_status_and_size_and_keep_the_old_name(changes):
    ranks = [ORDER.index(change.status) for change in changes]
    assert ranks == sorted(ranks)
    for one, other in pairwise(changes):
        assert one.status != other.status or abs(one.change) >= abs(other.change)
    for change in changes:
        assert change.id == (change.old or change.new).id
        assert min(mode.p_value for mode in (change.old, change.new) if mode) <= 0.05


def test_the_other_way_round_what_was_new_is_gone(changes, releases):
    mirrored = {"new": "gone", "gone": "new", "grown": "shrunk", "shrunk": "grown"}
    backward = by_kind(fe.compare_releases(*releases[::-1]), releases[0])
    for kind, change in by_kind(changes, releases[0]).items():
        assert backward[kind].status == mirrored.get(change.status, change.status)
        assert backward[kind].change == pytest.approx(-change.change)


def test_the_same_release_twice_has_changed_nothing(reference, releases):
    again = fe.compare(gen=draw(OLD, 4000, 7), ref=reference)
    changes = fe.compare_releases(releases[0], again)
    found = by_kind(changes, again)
    assert set(found) >= {1, 2, 3, 4, 5, 6}
    assert {change.status for change in found.values()} == {"unchanged"}
    # Those within a kind are small, and not of one direction from draw to draw.
    assert all(abs(change.change) < 0.01 for change in changes if change.status != "unchanged")


def test_two_draws_of_one_law_with_loose_kinds_have_nothing_new_and_nothing_gone():
    # Modes within a loose kind are interchangeable, and each comparison reports others of them.
    def loose(seed):
        rng = np.random.default_rng(seed)
        kinds = rng.choice(10, 3000, p=[0.3, 0.2, *[0.0625] * 8])
        return (5 * np.eye(10)[kinds] + rng.standard_normal((3000, 10))).astype(np.float32)

    reference = loose(0)
    phi = fe.Sketch.reference(reference, sigma=3.0, features=200).feature_map
    sketch = fe.Sketch.of(reference[::2], phi)
    old, new = (fe.compare(gen=loose(seed) * 0.9, ref=sketch) for seed in (1, 2))
    changes = fe.compare_releases(old, new)
    assert changes
    assert not any(change.told for change in changes)


def test_a_mode_that_may_have_gone_is_not_called_unchanged(releases, reference):
    few = fe.compare(gen=draw(OLD, 100, 8), ref=reference)
    changes = fe.compare_releases(releases[0], few)
    both = [change for change in changes if change.old and change.new and not change.told]
    far = [
        change
        for change in both
        if 2 * abs(change.change) > max(abs(change.old.share_difference), abs(change.new.share_difference))
    ]
    assert far and {change.status for change in far} == {"undecided"}
    assert {change.status for change in both if change not in far} <= {"unchanged"}


def test_what_cannot_be_told_is_named_in_place_of_followed(changes, releases):
    blind = replace(releases[1], detectable=None)  # as where no kinds were tested: nothing is surely missing there
    found = fe.compare_releases(releases[0], blind)
    lost = {mode.id for mode in found.unfollowed_old}
    assert {change.id for change in changes if change.status == "gone"} <= lost
    assert not any(change.status == "gone" for change in found)
    for one, side, own in (("old", found.unfollowed_old, releases[0]), ("new", found.unfollowed_new, blind)):
        followed = {getattr(change, one).id for change in found if getattr(change, one)}
        assert followed.isdisjoint(mode.id for mode in side)
        assert followed | {mode.id for mode in side} >= {mode.id for mode in significant(own.directions, 0.05)}


def test_the_order_in_which_modes_are_reported_does_not_matter(changes, releases):
    # Unrotated modes come by eigenvalue, not by excess.
    backward = [replace(release, over=release.over[::-1]) for release in releases]
    again = fe.compare_releases(*backward)
    assert {change.id: change.status for change in again} == {change.id: change.status for change in changes}


def test_a_release_and_itself_overlap_entirely(releases):
    for change in fe.compare_releases(releases[0], releases[0]):
        assert (change.status, change.change) == ("unchanged", 0)
        assert change.old is change.new
        assert change.overlap == pytest.approx(1, abs=1e-4)


def test_only_what_is_significant_in_one_of_them_is_followed(releases):
    everything, strict = (fe.compare_releases(*releases, alpha=alpha) for alpha in (0.999, 1e-12))
    assert {change.id for change in strict} <= {change.id for change in everything}
    assert all(min(mode.p_value for mode in (c.old, c.new) if mode) <= 1e-12 for c in strict)
    # No more followed, no more to be simultaneously right about.
    widths = [{c.id: c.interval[1] - c.interval[0] for c in changes} for changes in (everything, strict)]
    assert all(widths[1][name] <= widths[0][name] for name in widths[1])


def test_saved_and_loaded_comparisons_give_the_same_changes(changes, releases, tmp_path):
    for name, release in zip(("old", "new"), releases, strict=True):
        release.save(tmp_path / f"{name}.h5")
    loaded = fe.compare_releases(fe.load(tmp_path / "old.h5"), fe.load(tmp_path / "new.h5"))
    assert loaded.to_dict() == changes.to_dict()


def test_a_change_is_plain_json(changes):
    for change, data in zip(changes, json.loads(changes.to_json())["changes"], strict=True):
        assert (data["id"], data["status"], data["change"]) == (change.id, change.status, change.change)
        assert (data["old"] or {}).get("id") == (change.old.id if change.old else None)
        assert (data["new"] or {}).get("excess") == (change.new.excess if change.new else None)


def test_releases_of_other_sizes_numbers_of_modes_and_intervals_still_match(releases):
    rows = draw(REFERENCE, 4000, 100)
    fewer = fe.compare(gen=draw(NEW, 1500, 8), ref=rows, features=300, sigma=3.0, modes=6)
    differing = releases[0].signature.differences(fewer.signature)
    assert [line.split(":")[0] for line in differing] == ["n", "modes", "se"]
    found = by_kind(fe.compare_releases(releases[0], fewer), fewer)
    assert {kind: found[kind].status for kind in (0, 1, 2, 3)} == {kind: EXPECTED[kind] for kind in (0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("phi", {"features": 300, "seed": 1, "sigma": 3.0}),
        ("r", {"features": 200, "sigma": 3.0}),
        ("sigma", {"features": 300, "sigma": 4.0}),
        ("kernel", {"kernel": "cosine"}),
        ("rho", {"rho": 2.0}),
        ("rotation", {"method": fe.Finc(rotation=None)}),
        ("ref", {}),
    ],
)
def test_comparisons_that_do_not_compare_are_refused_by_the_field(reference, releases, field, settings):
    rows = draw(REFERENCE, 400, 100 if field != "ref" else 101)
    if {"rho", "method"} & set(settings):
        ref = reference
    else:
        phi = fe.Sketch.reference(rows, **(settings or {"features": 300, "sigma": 3.0})).feature_map
        ref = fe.Sketch.of(rows, phi if settings else reference.feature_map)
    kept = {name: value for name, value in settings.items() if name in ("rho", "method")}
    other = fe.compare(gen=draw(NEW, 400, 1), ref=ref, **kept)
    with pytest.raises(
        fe.FincEvalError, match=rf"do not compare: (.*; )?{field}: .* and .*one sketch of the reference"
    ):
        fe.compare_releases(releases[0], other)


def test_a_change_has_the_name_of_the_release_that_has_one(changes):
    both = next(change for change in changes if change.old and change.new)
    old, new = (replace(mode, name=None) for mode in (both.old, both.new))
    named = replace(both, old=replace(old, name="mostly 3"), new=new)
    assert (named.title, replace(both, old=old, new=new).title) == ("mostly 3", both.id)
    assert replace(named, new=replace(new, name="mostly 5")).title == "mostly 5"
