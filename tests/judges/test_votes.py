"""Votes: what is read and refused, strengths with their joint errors, separation, and how few votes decide."""

import numpy as np
import pytest

from finc_eval.core.errors import DataError, UsageError
from finc_eval.judges.bradley_terry import LEFT, RIGHT, TIE, fit_strengths, spread_of
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.votes import read_votes

ROWS = ["p1,a,b,a,v1", "p2,b,a,tie,v1", "p1,a,c,c,v2", "p3,c,b,b,v2"]


def table(tmp_path, *rows, heading="prompt,left,right,winner,voter"):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join([heading, *rows]) + "\n")
    return path


def test_a_csv_of_votes_becomes_numbers(tmp_path):
    votes = read_votes(table(tmp_path, *ROWS), ["a", "b", "c"])
    assert votes.models == ("a", "b", "c") and votes.n == 4
    assert votes.outcome.tolist() == [LEFT, TIE, RIGHT, RIGHT]
    assert [votes.prompts[one] for one in votes.prompt] == ["p1", "p2", "p1", "p3"]
    assert votes.notes == ()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("p1,a,b,d,v1", "row 3 of .* has the winner 'd': write 'a', 'b' or 'tie'"),
        ("p1,a,b,,v1", "row 3 of .* has the winner '': write"),
        (",a,b,a,v1", "row 3 of .* has an empty prompt"),
        ("p1,a,a,a,v1", "row 3 of .* compares 'a' with itself"),
        ("p1,a,d,a,v1", r"'d' \(row 3 of .*\) of the votes is not on the board: the board has a, b and c"),
    ],
)
def test_a_bad_row_is_named_with_its_value(tmp_path, row, said):
    with pytest.raises(DataError, match=said):
        read_votes(table(tmp_path, ROWS[0], row), ["a", "b", "c"])


def test_files_of_several_voters_are_one_table_whose_rows_are_named_by_their_file(tmp_path):
    for name, row in (("ann", ROWS[0]), ("ben", ROWS[3])):
        (tmp_path / f"{name}.csv").write_text(f"prompt,left,right,winner,voter\n{row}\n")
    paths = [tmp_path / "ann.csv", tmp_path / "ben.csv"]
    assert read_votes(paths, ["a", "b", "c"]).n == 2
    paths[1].write_text("prompt,left,right,winner,voter\np,a,b,nobody,v\n")
    with pytest.raises(DataError, match=r"row 2 of .*ben.csv has the winner 'nobody'"):
        read_votes(paths, ["a", "b"])


def test_a_model_called_tie_is_refused():
    with pytest.raises(UsageError, match="a model is called 'Tie', as a vote for neither is: rename it"):
        read_votes([{"prompt": "p", "left": "Tie", "right": "a", "winner": "tie", "voter": "v"}], ["Tie", "a"])


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(DataError, match=r"lacks 1 column of votes \(winner\): expected columns are prompt, left"):
        read_votes(table(tmp_path, "p,a,b", heading="prompt,left,right"), ["a", "b"])


def test_votes_without_voters_say_what_intervals_leave_out(tmp_path):
    rows = [row.rpartition(",")[0] for row in ROWS]
    votes = read_votes(table(tmp_path, *rows, heading="prompt,left,right,winner"), ["a", "b", "c"])
    assert "do not cover what other voters would prefer" in votes.notes[0]


def drawn(seed, strengths, votes=400, prompts=40, voters=20, dominant=0.0):
    rng = np.random.default_rng(seed)
    names = "abcdef"[: len(strengths)]
    rows = []
    for _ in range(votes):
        one, other = rng.choice(len(names), 2, replace=False)
        chance = 1 / (1 + np.exp(strengths[other] - strengths[one]))
        winner = "tie" if rng.random() < 0.15 else names[one] if rng.random() < chance else names[other]
        voter = "v0" if rng.random() < dominant else f"v{rng.integers(voters)}"
        prompt = f"prompt {rng.integers(prompts)}"
        rows.append({"prompt": prompt, "left": names[one], "right": names[other], "winner": winner, "voter": voter})
    return rows


def test_influences_are_the_changes_of_the_fit_without_a_cluster():
    votes = read_votes(drawn(1, (0.6, 0, -0.6)), "abc")
    fit = fit_strengths(votes.left, votes.right, votes.outcome, 3)
    moved = fit.without(votes.voter) @ fit.basis.T
    for voter in range(3):
        kept = votes.voter != voter
        again = fit_strengths(votes.left[kept], votes.right[kept], votes.outcome[kept], 3).strengths
        assert np.allclose(fit.strengths + moved[voter], again, atol=0.01)
        assert np.abs(moved[voter]).max() > 0.002


def test_a_voter_of_half_of_the_votes_leaves_few_degrees_of_freedom():
    several, dominated = (read_votes(drawn(2, (0.6, 0, -0.6), dominant=part), "abc") for part in (0.0, 0.5))
    degrees = []
    for votes in (several, dominated):
        fit = fit_strengths(votes.left, votes.right, votes.outcome, 3)
        degrees.append(spread_of(fit, votes.voter).degrees)
    assert degrees[1] < degrees[0]


def test_the_covariance_of_voters_who_agree_with_themselves_is_larger_than_of_independent_votes():
    rng = np.random.default_rng(0)
    voter = np.repeat(np.arange(10), 30)
    leaning = rng.normal(size=10) * 1.5
    outcome = np.where(rng.random(300) < 1 / (1 + np.exp(-leaning[voter])), LEFT, RIGHT)
    fit = fit_strengths(np.zeros(300, int), np.ones(300, int), outcome, 2)
    alone = (fit.basis @ fit.inverse @ fit.basis.T)[0, 0]
    assert spread_of(fit, voter).covariance[0, 0] > 3 * alone


@pytest.mark.parametrize("ties", [0, 3])
def test_a_model_that_wins_every_vote_is_first_and_said_to_be(ties):
    rows = [
        {"prompt": f"p{n}", "left": "a", "right": "bc"[n % 2], "winner": "a", "voter": f"v{n % 7}"} for n in range(40)
    ]
    rows += [
        {"prompt": f"p{n}", "left": "b", "right": "c", "winner": "tie" if n < ties else "bc"[n % 2], "voter": "v1"}
        for n in range(20)
    ]
    found = Strengths.of(read_votes(rows, "abc"))
    assert found.fit.strengths.argmax() == 0 and np.isfinite(found.spread.covariance).all()
    assert "a wins every vote against b and c: how much stronger is not known" in found.notes[-1]
    assert found.spread.covariance[0, 0] > found.spread.covariance[1, 1]


def test_nothing_but_ties_makes_all_models_equal():
    rows = [{"prompt": f"p{n}", "left": "a", "right": "b", "winner": "tie", "voter": f"v{n % 3}"} for n in range(9)]
    found = Strengths.of(read_votes(rows, "ab"))
    assert np.allclose(found.fit.strengths, 0) and found.spread.covariance[0, 0] > 0


def test_models_that_no_votes_connect_are_refused():
    rows = [
        {"prompt": "p", "left": one, "right": other, "winner": one, "voter": "v"} for one, other in ("ab", "ba", "cd")
    ]
    with pytest.raises(DataError, match="never compare some models with the others"):
        Strengths.of(read_votes(rows, "abcd"))


def test_without_the_votes_of_an_upset_another_model_is_first():
    votes = read_votes(drawn(4, (0.3, 0.1, -0.4), votes=120), "abc")
    found = Strengths.of(votes)
    upset = found.upset()
    first = votes.models.index(upset.first)
    then = votes.models.index(upset.then)
    assert first == found.fit.strengths.argmax() and 0 < upset.votes < 40
    pull = found.fit.influences[:, first] - found.fit.influences[:, then]
    kept = pull.argsort()[::-1][upset.votes :]
    again = fit_strengths(votes.left[kept], votes.right[kept], votes.outcome[kept], 3).strengths
    assert again[then] > again[first]
    kept = pull.argsort()[::-1][upset.votes - 1 :]
    again = fit_strengths(votes.left[kept], votes.right[kept], votes.outcome[kept], 3).strengths
    assert again[then] <= again[first]
