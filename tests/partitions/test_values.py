"""Shares by the values of a column: what a table by labels says, with the tests and intervals of kinds."""

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.partitions.values import shares_by


def labeled(shares: list[float], n: int, seed: int, missing: float = 0.0) -> fe.EmbeddingSet:
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(shares), n, p=shares)
    rows = np.random.default_rng(99).standard_normal((len(shares), 8))[labels] * 4 + rng.standard_normal((n, 8))
    return fe.EmbeddingSet(
        rows,
        metadata={
            "label": [None if rng.random() < missing else f"class {one}" for one in labels],
            "pair": [row // 2 for row in range(n)],
        },
    )


EVEN = [0.1] * 10
PLANTED = [0.16, 0.04, *EVEN[2:]]


@pytest.fixture(scope="module")
def found() -> fe.Kinds:
    return fe.kinds(labeled(PLANTED, 800, 1, missing=0.05), labeled(EVEN, 900, 2), by="label")


def test_every_value_has_its_share_and_those_without_one_count(found: fe.Kinds):
    assert found.by is not None
    gen, ref = labeled(PLANTED, 800, 1, missing=0.05), labeled(EVEN, 900, 2)
    for kind in found.by.kinds:
        value = "" if kind.name == "unlabeled" else kind.name
        assert kind.shares["gen"].count == gen.column("label").count(value)
        assert kind.shares["ref"].count == ref.column("label").count(value)
        assert kind.shares["gen"].interval[0] < kind.share_gen < kind.shares["gen"].interval[1]
    assert len(found.by.kinds) == 11
    assert sum(kind.share_gen for kind in found.by.kinds) == pytest.approx(1)
    frame = found.by.to_frame()
    assert set(frame.loc[frame["significant"], "name"]) == {"class 0", "class 1", "unlabeled"}
    assert set(frame.columns) == set(found.to_frame().columns)


def test_kinds_without_labels_stay_as_they_are(found: fe.Kinds):
    plain = fe.kinds(labeled(PLANTED, 800, 1, missing=0.05), labeled(EVEN, 900, 2))
    assert plain.by is None
    assert [kind.shares for kind in plain.kinds] == [kind.shares for kind in found.kinds]


def test_the_table_is_on_the_page_in_texts_and_in_the_file(found: fe.Kinds, tmp_path):
    first = found.by.kinds[0]
    row = f"| {first.name} | {100 * first.share_gen:.1f} \\["
    assert "### Share of each label in each set" in found.to_markdown() and row in found.to_markdown()
    page = found.to_html(tmp_path / "kinds.html").read_text(encoding="utf-8")
    assert "Share of each label in each set" in page and "class 0" in page
    found.save(tmp_path / "kinds.h5")
    assert fe.load(tmp_path / "kinds.h5").by == found.by


def test_a_comparison_has_the_same_table(found: fe.Kinds):
    sets = labeled(PLANTED, 800, 1, missing=0.05), labeled(EVEN, 900, 2)
    compared = fe.compare(*sets, method="clusters", by="label")
    assert compared.by == found.by
    assert "### Share of each label in each set" in compared.to_markdown()


@pytest.mark.parametrize("runs", [8, pytest.param(200, marks=pytest.mark.long)])
def test_labels_differ_by_chance_in_one_family_of_twenty(runs):
    rng = np.random.default_rng(3)
    rare = 1 / np.arange(1, 201)
    wrong = 0
    for _ in range(runs):
        sets = {
            label: fe.EmbeddingSet(
                np.zeros((n, 1)), metadata={"label": rng.choice(200, n, p=rare / rare.sum()).astype(str)}
            )
            for label, n in (("gen", 200), ("ref", 3000))
        }
        wrong += min(kind.p_value for kind in shares_by(sets, "label").kinds) <= 0.05
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


def test_groups_are_the_unit():
    rng = np.random.default_rng(4)
    sets = {}
    for label, p in (("gen", [0.62, 0.38]), ("ref", [0.5, 0.5])):
        own = np.repeat(rng.choice(2, 100, p=p), 10)
        sets[label] = fe.EmbeddingSet(np.zeros((1000, 1)), metadata={"label": own, "clip": np.arange(1000) // 10})
    alone = shares_by(sets, "label").kinds[0]
    grouped = shares_by({label: one.grouped("clip") for label, one in sets.items()}, "label").kinds[0]
    assert alone.p_value < 1e-4 < 0.01 < grouped.p_value
    assert grouped.interval[1] - grouped.interval[0] > 2 * (alone.interval[1] - alone.interval[0])


def test_paired_sets_are_compared_within_their_pairs():
    rng = np.random.default_rng(5)
    scene = np.repeat(rng.choice(2, 60), 4)
    sets = []
    for extra in (0.2, 0.0):
        own = np.where(rng.random(240) < extra, 2, scene)
        sets.append(
            fe.EmbeddingSet(
                rng.standard_normal((240, 4)), metadata={"label": own, "prompt": np.repeat(np.arange(60), 4)}
            )
        )
    found = fe.kinds(*sets, pairs="prompt", by="label")
    assert found.pairs is not None
    first = found.by.kinds[0]
    assert first.name == "2" and first.p_value < 0.01 and 0.1 < first.difference < 0.3


def test_a_column_that_is_missing_or_does_not_repeat_is_refused():
    sets = labeled(EVEN, 100, 6), labeled(EVEN, 100, 7)
    with pytest.raises(UsageError, match=r"has no column 'lable' \(did you mean \"label\"\?\)"):
        fe.kinds(*sets, by="lable")
    many = [fe.EmbeddingSet(np.zeros((2000, 1)), metadata={"file": np.arange(2000)}) for _ in sets]
    with pytest.raises(UsageError, match="the column 'file' has 2,000 different values"):
        shares_by(dict(zip("ab", many, strict=True)), "file")


@pytest.fixture(scope="module")
def board() -> fe.Leaderboard:
    return fe.leaderboard(
        {"gen": labeled(PLANTED, 800, 1, missing=0.05)}, labeled(EVEN, 900, 2), by="label", metrics=["kid"]
    )


def test_a_board_has_the_table_that_kinds_have(found: fe.Kinds, board: fe.Leaderboard, tmp_path):
    assert [(one.name, one.shares, one.p_value) for one in board.by.kinds] == [
        (one.name, one.shares, one.p_value) for one in found.by.kinds
    ]
    title, share = "Share of each label in each set", f"{100 * board.by.kinds[0].share_gen:.1f}"
    for text in (board.to_markdown(), board.to_html(tmp_path / "board.html").read_text(encoding="utf-8")):
        table = text.rpartition(title)[2][:3000]
        assert board.by.kinds[0].name in table and share in table


@pytest.mark.long
def test_a_model_that_is_added_later_brings_values_of_its_own(tmp_path):
    sets = {"a": labeled(PLANTED, 300, 1), "b": labeled([0.1] * 9 + [0.05, 0.05], 400, 3)}
    ref, stored = labeled(EVEN, 500, 2), fe.Board(tmp_path / "board")
    stored.add({"a": sets["a"]}, ref, by="label")
    stored.add({"b": sets["b"]}, ref)
    counts = {
        one.name: {label: share.count for label, share in one.shares.items()} for one in stored.leaderboard().by.kinds
    }
    every = {**sets, "ref": ref}
    assert counts == {
        f"class {one}": {label: of.column("label").count(f"class {one}") for label, of in every.items()}
        for one in range(11)
    }


@pytest.mark.long
def test_training_runs_of_a_model_are_one_set():
    runs = [labeled(PLANTED, 400, seed) for seed in (1, 3)]
    board = fe.leaderboard({"a": runs}, labeled(EVEN, 400, 2), by="label")
    assert {one.name: one.shares["a"].count for one in board.by.kinds} == {
        f"class {one}": sum(of.column("label").count(f"class {one}") for of in runs) for one in range(10)
    }


def test_a_board_without_the_column_says_which_it_lacks():
    with pytest.raises(UsageError, match="lable"):
        fe.leaderboard({"gen": labeled(EVEN, 200, 1)}, labeled(EVEN, 200, 2), by="lable")


@pytest.mark.long
@pytest.mark.parametrize("result", ["kinds", "compare", "values"])
def test_the_difference_of_a_frame_is_that_of_the_page_the_first_set_less_the_second(result):
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(700, 4)), rng.normal(size=(100, 4)) + 6
    gen = fe.EmbeddingSet(near[:400], metadata={"label": ["a"] * 400})
    ref = fe.EmbeddingSet(np.concatenate([near[400:], far]), metadata={"label": ["a"] * 300 + ["b"] * 100})
    if result == "compare":
        found = fe.compare(gen, ref)
    else:
        found = fe.kinds({"gen": gen, "ref": ref}, by="label" if result == "values" else None)
    frame = (found.by if result == "values" else found).to_frame()
    np.testing.assert_allclose(frame["difference"], frame["shares.gen.share"] - frame["shares.ref.share"], atol=1e-12)
    assert frame["difference"].min() == pytest.approx(-0.25, abs=0.03)
    assert (frame["interval.low"] <= frame["difference"]).all() and (
        frame["difference"] <= frame["interval.high"]
    ).all()
