"""Votes that stand several times: each counts once, and what looks alike by chance counts."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.judges.repeated import _further
from finc_eval.judges.votes import read_votes


def votes(seed=3, n=60, prompts=30, voters=7, named=True):
    """Return votes of voters who take prompts in turn, so that no vote stands twice."""
    rng = np.random.default_rng(seed)
    rows = [
        {"prompt": f"p{n % prompts}", "left": "one", "right": "two", "winner": winner, "voter": f"v{n % voters}"}
        for n, winner in enumerate(rng.choice(["one", "two", "tie"], n, p=[0.55, 0.25, 0.2]).tolist())
    ]
    return rows if named else [{key: value for key, value in row.items() if key != "voter"} for row in rows]


def shuffled(rows, seed=0):
    return [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]


def numbered(rows):
    return [{"vote_id": number, **row} for number, row in enumerate(rows)]


def written(tmp_path, *tables):
    paths = []
    for number, rows in enumerate(tables):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return paths


COPIES = {
    "a table twice": lambda own: own * 2,
    "a table three times": lambda own: own * 3,
    "each vote twice": lambda own: [row for row in own for _ in range(2)],
    "in another order": lambda own: shuffled(own * 2),
    "with numbers of rows": lambda own: numbered(own * 2),
    "a part of it again": lambda own: own + own[:25],
    "its end again": lambda own: own + own[35:],
    "a part of it between": lambda own: own[:40] + own[10:40] + own[40:],
}


@pytest.mark.parametrize(
    "values, kept",
    [
        (["1", "2", "3", "4"], False),  # numbers of rows say nothing of votes
        (["1", "2", "1", "2"], True),  # sessions, say: numbers that repeat
        (["7", "8.5", "9", "3"], True),
        (["a", "b", "c", "d"], True),
    ],
)
def test_further_columns_tell_votes_apart_but_for_numbers_of_rows(values, kept):
    columns = {"winner": ["one"] * 4, "further": values, " ": values}
    assert _further({"winner": columns["winner"]}, columns) == ([values] if kept else [])


@pytest.mark.parametrize("form", COPIES)
@pytest.mark.parametrize("named", [True, False], ids=["voters", "nobody"])
def test_each_vote_counts_once(form, named):
    own = votes(named=named)
    found = read_votes(COPIES[form](own), ["one", "two"])
    # Without voters, votes next to a copied run may equal the ones next to its original.
    assert found.n == len(own) if named else abs(found.n - len(own)) <= 3
    assert any("each vote counts once" in note for note in found.notes)
    if named:
        assert sorted(found.outcome) == sorted(read_votes(own, ["one", "two"]).outcome)


@pytest.mark.parametrize(
    "parts",
    [
        lambda own: (own, own),
        lambda own: (own[:40], own),
        lambda own: (own, own[:40]),
        lambda own: (own[:40], own[20:]),
        lambda own: (own[20:], own[:40]),
    ],
    ids=["a file twice", "an export and a later one", "a later one first", "overlapping ends", "in another order"],
)
def test_files_that_overlap_are_counted_once(tmp_path, parts):
    found = read_votes(written(tmp_path, *parts(votes())), ["one", "two"])
    assert found.n == 60 and any("each vote counts once" in note for note in found.notes)


def test_some_votes_of_voters_again_in_any_order_count_once():
    own = votes(n=300, prompts=150, voters=11)
    found = read_votes(shuffled(own + shuffled(own, 1)[:20]), ["one", "two"])
    assert found.n == 300


def test_votes_that_are_alike_by_chance_count_and_are_said():
    rng = np.random.default_rng(0)
    rows = [
        {
            "prompt": f"p{rng.integers(40)}",
            "left": "one",
            "right": "two",
            "winner": "one",
            "voter": f"v{rng.integers(9)}",
        }
        for _ in range(200)
    ]
    found = read_votes(rows, ["one", "two"])
    assert found.n == 200 and any("equal another vote of the same voter, and count" in one for one in found.notes)


def test_people_without_names_who_agree_are_several_votes():
    rows = [
        {"prompt": f"p{number}", "left": "one", "right": "two", "winner": "one" if rng.random() < 0.7 else "two"}
        for rng in [np.random.default_rng(0)]
        for _ in range(12)
        for number in range(20)
    ]
    found = read_votes(rows, ["one", "two"])
    assert found.n == 240 and not any("twice" in one for one in found.notes)


def test_pairs_of_one_prompt_that_the_page_numbers_are_votes_of_their_own():
    rows = [
        {
            "prompt": f"p{number // 4}",
            "left": "one",
            "right": "two",
            "winner": "one",
            "voter": "ann",
            "pair": f"a-{number}",
        }
        for number in range(40)
    ]
    assert read_votes(rows, ["one", "two"]).n == 40
    assert read_votes(rows * 2, ["one", "two"]).n == 40


def test_columns_of_what_is_shown_tell_votes_apart():
    rows = [{**row, "left_image": f"{n}.png"} for n, row in enumerate(votes()[:1] * 30)]
    assert read_votes(rows, ["one", "two"]).n == 30


def test_a_voter_who_votes_both_ways_is_said():
    own = votes()
    turned = [
        {**row, "winner": "two" if row["winner"] == "one" else "one"}
        for row in [row for row in own if row["winner"] != "tie"][:3]
    ]
    found = read_votes(own + turned, ["one", "two"])
    assert found.n == 63 and any("voted both ways on 3 pairs of a prompt and two models" in one for one in found.notes)


def test_counts_of_a_board_are_of_votes_that_stand_once():
    rng = np.random.default_rng(1)
    sets, ref = {name: rng.normal(size=(60, 6)) for name in ("one", "two")}, rng.normal(size=(120, 6))
    single, double = (fe.leaderboard(sets, ref, votes=own, plan=True) for own in (votes(), votes() * 2))
    assert [one.votes for one in double.votes] == [one.votes for one in single.votes] == [60, 60]
    assert double.upset == single.upset and double.plan == single.plan
    assert any("60 votes of 120 stand twice" in one for one in double.warnings)
