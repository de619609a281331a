import json

import numpy as np
import pytest

import finc_eval as fe

CENTERS = 10 * np.eye(8)

# Kinds 4 to 6 are common to all. Kind 0 is shared by a and b, kind 2 by b and c; 1 is a's, 3 is c's, and 7 nobody's.
SHARES = {
    "a": [0.4, 0.3, 0.0, 0.0, 0.1, 0.1, 0.1, 0.0],
    "b": [0.4, 0.0, 0.3, 0.0, 0.1, 0.1, 0.1, 0.0],
    "c": [0.0, 0.0, 0.3, 0.4, 0.1, 0.1, 0.1, 0.0],
}
REFERENCE = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3]


def draw(shares, n, seed):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(8, n, p=shares)] + 0.1 * rng.standard_normal((n, 8))).astype(np.float32)


def compared(models, ref=None, **settings):
    return fe.compare_models(models, ref, **{"sigma": 3.0, "features": 200, **settings})


@pytest.fixture(scope="module")
def models():
    return {label: draw(shares, 2500, seed) for seed, (label, shares) in enumerate(SHARES.items())}


@pytest.fixture(scope="module")
def ref():
    return draw(REFERENCE, 2000, 9)


@pytest.fixture(scope="module")
def table(models):
    return compared(models)


@pytest.fixture(scope="module")
def table_with_ref(models, ref):
    return compared(models, ref)


def found_kinds(table, alpha=0.05):
    """The significant modes by the kind that each is, small ones within a kind left out."""
    found = {}
    for mode in table.significant(alpha):
        likeness = (table.feature_map(CENTERS).numpy() @ mode.direction) ** 2
        if mode.excess > 0.01:
            assert likeness.max() > 0.9
            assert int(likeness.argmax()) not in found
            found[int(likeness.argmax())] = mode
    return found


def test_names_are_told_from_the_set_that_has_most():
    sets = {}
    for seed, (label, shares) in enumerate(SHARES.items()):
        rows = draw(shares, 800, seed)
        names = [f"{label}-{kind}" for kind in (rows @ CENTERS.T).argmax(1)]
        sets[label] = fe.EmbeddingSet(rows, metadata={"label": names})
    named = [mode for mode in compared(sets).significant() if mode.name]
    assert {mode.set_with_most for mode in named} == set(SHARES)
    assert all(mode.evidence[0].value.startswith(f"{mode.set_with_most}-") for mode in named)


def test_every_planted_mode_is_found_once_with_its_owner(table):
    found = found_kinds(table)
    assert sorted(found) == [0, 1, 2, 3]
    assert found[1].set_with_most == "a"
    assert found[3].set_with_most == "c"
    assert found[0].set_with_most in "ab"
    assert found[2].set_with_most in "bc"
    assert [mode.excess for mode in table.modes] == sorted((mode.excess for mode in table.modes), reverse=True)
    assert len({mode.id for mode in table.modes}) == len(table.modes)
    assert all(mode.stability > 0.95 for mode in found.values())
    assert all(mode.id.startswith(f"{mode.set_with_most}-") for mode in table.modes)


def test_what_a_model_has_of_a_mode_is_the_share_of_its_samples(table):
    for kind, mode in found_kinds(table).items():
        for label, share in mode.shares.items():
            # A sample that is only near its center scores a little below 1.
            assert share.mass == pytest.approx(SHARES[label][kind], abs=0.025)
            assert share.interval[0] - 0.015 <= SHARES[label][kind] <= share.interval[1] + 0.015
            assert share.interval[0] <= share.mass <= share.interval[1]


def test_the_shares_of_the_models_are_those_of_their_samples(table):
    for kind, mode in found_kinds(table).items():
        for label, share in mode.shares.items():
            assert share.share == pytest.approx(SHARES[label][kind], abs=0.03)
            assert share.interval[0] <= share.share <= share.interval[1]


def test_the_excess_is_over_the_mean_of_all_others(models):
    for rho in (1.0, 3.0):
        table = compared(models, rho=rho)
        for mode in table.modes:
            others = [share.mass for label, share in mode.shares.items() if label != mode.set_with_most]
            assert mode.excess == pytest.approx(mode.shares[mode.set_with_most].mass - rho * np.mean(others), abs=1e-6)
            assert mode.interval[0] < mode.excess < mode.interval[1]
    # With ρ = 3 a kind that two of three models share equally passes for neither.
    assert sorted(found_kinds(table)) == [1, 3]


def test_the_best_samples_of_a_mode_are_of_its_kind(table, models):
    for kind, mode in found_kinds(table).items():
        for label, share in mode.shares.items():
            if SHARES[label][kind] > 0:
                best = models[label][[int(name) for name in share.top_ids]]
                assert (best.argmax(1) == kind).all()


def test_what_all_models_lack_belongs_to_the_reference(table_with_ref, models):
    found = found_kinds(table_with_ref)
    assert table_with_ref.models == tuple(models)
    assert {kind: mode.set_with_most for kind, mode in found.items() if mode.set_with_most == "ref"} == {7: "ref"}
    assert sorted(found) == [0, 1, 2, 3, 7]
    lacking = found[7].shares
    assert lacking["ref"].mass == pytest.approx(0.3, abs=0.03)
    assert all(lacking[label].share < 0.01 for label in models)
    for kind, mode in found.items():
        reference = mode.shares["ref"]
        assert reference.mass == pytest.approx(REFERENCE[kind], abs=0.03)
        assert reference.share == pytest.approx(REFERENCE[kind], abs=0.03)


def test_sketches_alone_give_the_same_modes_with_intervals_that_are_not_narrower(table_with_ref, models, ref):
    phi = table_with_ref.feature_map
    sketches = {label: fe.Sketch.of(rows, phi) for label, rows in models.items()}
    conservative = fe.compare_models(sketches, fe.Sketch.of(ref, phi))
    sharp, wide = found_kinds(table_with_ref), found_kinds(conservative)
    assert conservative.sigma_rule == "of the sketch"
    assert list(sharp) == list(wide)
    for kind, mode in wide.items():
        assert mode.id == sharp[kind].id
        assert mode.set_with_most == sharp[kind].set_with_most
        assert mode.excess == pytest.approx(sharp[kind].excess, abs=1e-5)
        assert np.ptp(mode.interval) >= np.ptp(sharp[kind].interval) - 1e-4
        for label, share in mode.shares.items():
            exact = sharp[kind].shares[label]
            assert share.mass == pytest.approx(exact.mass, abs=1e-5)
            assert np.ptp(share.interval) >= np.ptp(exact.interval) - 1e-3


@pytest.mark.parametrize("with_ref", [False, True])
def test_the_order_of_the_models_does_not_matter(models, ref, table, table_with_ref, with_ref):
    forward = table_with_ref if with_ref else table
    backward = compared(dict(reversed(models.items())), ref if with_ref else None)
    mine, others = found_kinds(forward), found_kinds(backward)
    assert sorted(mine) == sorted(others)
    for kind, mode in mine.items():
        assert (mode.set_with_most, mode.id) == (others[kind].set_with_most, others[kind].id)
        assert mode.excess == pytest.approx(others[kind].excess, abs=1e-4)
        for label, share in mode.shares.items():
            assert share.mass == pytest.approx(others[kind].shares[label].mass, abs=1e-4)


def test_two_models_are_compared_as_two_sets_are(models):
    phi = fe.Sketch.reference(models["b"], features=200, sigma=3.0).feature_map
    a, b = (fe.Sketch.of(models[label], phi) for label in "ab")
    table = fe.compare_models({"a": a, "b": b})
    pair = fe.compare(gen=a, ref=b, method=fe.Finc(clusters=False))
    assert table.tested == pair.tested
    assert len(table.modes) >= len(pair.directions) > 5
    for one in pair.directions:
        mode = max(table.modes, key=lambda mode: abs(float(mode.direction @ one.direction)))
        assert mode.set_with_most == ("a" if one.role == "over" else "b")
        assert abs(float(mode.direction @ one.direction)) > 0.999
        assert mode.shares["a"].mass == pytest.approx(one.mass_gen, abs=1e-6)
        assert mode.shares["b"].mass == pytest.approx(one.mass_ref, abs=1e-6)
        assert mode.interval == pytest.approx(one.interval, abs=1e-6)
        assert mode.p_value == pytest.approx(one.p_value, abs=1e-6)
        assert mode.stability == pytest.approx(one.stability, abs=1e-3)


def test_models_of_one_law_rarely_differ(digits):
    x = digits[0].reshape(-1, 28, 28)[:, ::2, ::2].reshape(-1, 196)
    false = 0
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(x))
        parts = dict(zip("abc", np.split(x[order[:600]], 3), strict=True))
        table = fe.compare_models(parts, features=50, modes=5, seed=seed)
        assert table.modes
        false += bool(table.significant())
    assert false / 20 <= 0.15


def test_models_that_repeat_themselves_are_noted(models, ref):
    found = compared({**models, "a": np.repeat(models["a"][:100], 5, 0)}, ref, features=20, modes=2)
    assert any("a has only 100 distinct samples" in note for note in found.warnings)


def test_a_table_has_a_json_twin(table_with_ref, tmp_path):
    text = table_with_ref.to_json(tmp_path / "table.json")
    data = json.loads((tmp_path / "table.json").read_text())
    assert data == json.loads(text) == json.loads(json.dumps(table_with_ref.to_dict()))
    assert list(data["sets"]) == ["a", "b", "c", "ref"]
    assert data["sets"]["a"]["n"] == 2500
    assert (data["type"], data["layout"]) == ("models", 2)
    assert len(data["modes"]) == len(table_with_ref.modes)
    first, mode = data["modes"][0], table_with_ref.modes[0]
    assert (first["id"], first["set_with_most"], first["excess"]) == (mode.id, mode.set_with_most, mode.excess)
    assert first["shares"]["a"]["interval"] == list(mode.shares["a"].interval)


@pytest.mark.parametrize(
    ("labels", "reference", "message"),
    [
        ({"a": "a"}, None, "at least two sets are needed to compare, got 1"),
        ({}, "b", "at least two sets are needed to compare, got 1"),
        ({}, None, "at least two sets are needed to compare, got 0"),
        ({"a": "a", "ref": "b"}, None, 'a model cannot be called "ref": pass the reference as ref, or rename'),
        ({"a": "a", "b": "narrow"}, None, "a has 8 entries per embedding and b 7"),
        ({"a": "a", "b": "b"}, "narrow", "a has 8 entries per embedding and ref 7"),
        ({"a": "a", "b": "few"}, None, "b has 5 samples: a comparison needs at least 20"),
        ({"a": "a", "b": "none"}, None, "b must be embeddings of shape"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_sentence(models, labels, reference, message):
    sets = {**models, "narrow": models["a"][:, :7], "few": models["a"][:5], "none": models["a"][:0]}
    with pytest.raises(fe.FincEvalError, match=message):
        compared({label: sets[name] for label, name in labels.items()}, sets.get(reference))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rho": -1}, "rho must be a positive number, got -1"),
        ({"modes": 0}, "modes must be a whole number of at least 1, got 0"),
        ({"precision": "single"}, "precision must be one of"),
    ],
)
def test_settings_out_of_range_are_refused(models, arguments, message):
    with pytest.raises(fe.FincEvalError, match=message):
        compared(models, **arguments)


def test_significance_needs_a_level_between_0_and_1(table):
    assert set(table.significant(1e-6)) <= set(table.significant(0.05)) <= set(table.significant(0.5))
    with pytest.raises(fe.FincEvalError, match="alpha must lie between 0 and 1, got 1"):
        table.significant(1.0)
