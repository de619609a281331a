"""Leaderboards: planted gaps, what cannot be ranked, JSON, page, table and verb."""

import json
from pathlib import Path

import numpy as np
import pytest
from _pages import HOSTILE, Page
from _said import values
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval import report
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.words import join_words
from finc_eval.leaderboards.board_table import findings_table
from finc_eval.leaderboards.page import header

CENTERS = np.random.default_rng(0).normal(0, 4, (10, 8))


def samples(kinds, n, seed, shift=0.0):
    """Samples of some of ten kinds."""
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.choice(kinds, n)] + rng.normal(size=(n, 8)) + shift
    return rows.astype(np.float32)


@pytest.fixture(scope="module")
def sets():
    return {
        "good": samples(range(10), 250, 1),
        f"twin{HOSTILE}": samples(range(10), 400, 2),
        "gaps": samples(range(7), 250, 3),
        "shifted": samples(range(10), 250, 4, shift=0.3),
    }


@pytest.fixture(scope="module")
def board(sets):
    return fe.leaderboard(sets, samples(range(10), 350, 5))


def test_planted_gaps_are_ranked_and_equal_models_are_not_told_apart(board, sets):
    good, twin, *_ = sets
    assert not board.separable(good, twin)
    assert board.separable(good, "gaps")
    assert board["gaps"].rank_set == (4, 4)
    missing = board["gaps"].scores["missing"]
    assert missing.interval[0] < 0.3 < missing.interval[1] + 0.05
    assert missing.value == pytest.approx(0.3, abs=0.08)
    assert board[good].scores["missing"].value < 0.02
    assert board["gaps"].scores["novel"].value < 0.05
    assert set(board.groups[0]) >= {good, twin}


def test_every_number_says_how_many_pairs_it_can_tell_apart(board):
    assert [one.key for one in board.criteria] == ["unmatched", "missing", "novel", "fd"]
    for one in board.criteria:
        told = sum(board.separable(a, b, one.key) for a in one.names for b in one.names if a < b)
        assert told == one.separable_pairs
        assert one.pairs == 6
        assert sorted(name for group in one.groups for name in group) == sorted(one.names)
    assert "sampling noise only" in board.covers


def test_the_summary_says_who_is_first(board, sets):
    (first, *tied), (_, twin, *_) = board.groups[0], sets
    assert twin in board.groups[0]
    order, beside = board.says["order"].split(";")
    assert f"{first} is first of 4 " in order and join_words(tied) in beside
    clear = fe.leaderboard({name: sets[name] for name in ("gaps", "good")}, samples(range(10), 350, 5))
    assert "good is first of 2 " in clear.says["order"] and ";" not in clear.says["order"]
    assert "the two can be distinguished (5 %)" in clear.to_markdown()


def test_the_board_comes_back_from_json_with_the_names_of_python(board, tmp_path):
    board.to_json(tmp_path / "board.json")
    back = fe.load(tmp_path / "board.json")
    assert back.rows == board.rows
    assert back.separable("good", "gaps") == board.separable("good", "gaps")
    row = json.loads(board.to_json())["rows"][-1]
    assert (row["name"], row["rank_set"], row["group"]) == ("gaps", [4, 4], board["gaps"].group)
    assert row["scores"]["fd"].keys() >= {"value", "interval", "rank_set"}


@pytest.mark.long
@pytest.mark.by_turns(3)
def test_the_same_sets_give_the_same_board_in_any_order(board, sets):
    again = fe.leaderboard(dict(reversed(sets.items())), samples(range(10), 350, 5))
    for name in sets:
        for key in ("unmatched", "fd"):
            one, other = board[name].scores[key], again[name].scores[key]
            assert one.value == pytest.approx(other.value, abs=0.02)
        assert board[name].rank_set == again[name].rank_set


def test_a_model_whose_metric_has_no_interval_is_shown_and_not_ranked(sets):
    few = {"good": sets["good"], "gaps": sets["gaps"], "few": samples(range(10), 60, 9)}
    board = fe.leaderboard(few, samples(range(10), 350, 5), metrics=("fd",), rank_by="fd")
    standing = board["few"].scores["fd"]
    assert standing.rank_set is None
    assert standing.value > 0
    assert "no interval" in standing.reason
    assert board.rows[-1].name == "few"
    assert board["few"].rank_set is None
    assert board.criterion().names == ("good", "gaps")
    assert board["gaps"].rank_set == (2, 2)
    assert "| –" in report.fragment(board) or ">–<" in report.fragment(board)
    with pytest.raises(DataError, match="few is not ranked by fd"):
        board.separable("few", "good")


@pytest.mark.long
def test_a_model_whose_samples_are_few_copies_does_not_blind_the_shares_of_others(sets):
    copies = np.repeat(samples(range(10), 4, 9), 250, axis=0)  # each as often as all others: its files were duplicated
    models = {"good": sets["good"], "gaps": sets["gaps"], "copied": copies}
    board = fe.leaderboard(models, samples(range(10), 350, 5), metrics=("kid",))
    standing = board["copied"].scores["missing"]
    assert (standing.value, standing.rank_set) == (None, None)
    assert "its 1,000 samples inform like 4 independent samples, and this share of 50 kinds needs 50" in standing.reason
    assert board["gaps"].scores["missing"].value == pytest.approx(0.3, abs=0.08)
    assert board.separable("good", "gaps", "missing")
    assert board["copied"].scores["kid"].rank_set is not None
    page = Page(report.page(board, {}))
    (reason,) = [text for text in page.texts("p", "note") if "not ranked" in text]  # one sentence for all numbers
    assert reason.startswith("copied is not ranked by missing and novel (its 1,000 samples inform like 4")
    profile = page.find("article", "profile")[[row.name for row in board.rows].index("copied")]
    assert page.texts("dd", inside=profile)[1:3] == ["–, not ranked"] * 2


@pytest.mark.long
@pytest.mark.parametrize("distinct", [16, 148])
def test_a_generator_that_repeats_itself_is_ranked_last_among_models_that_are_otherwise_like_the_reference(distinct):
    """Its samples are all good, and far fewer than they seem: 7 %, as those of a collapsed GAN of digits."""
    rng = np.random.default_rng(0)
    few = samples(range(10), distinct, 9)
    collapsed = few[np.append(np.arange(distinct), rng.choice(distinct, 2000 - distinct))]
    models = {"one": samples(range(10), 2000, 1), "two": samples(range(10), 2000, 2), "collapsed": collapsed}
    board = fe.leaderboard(models, samples(range(10), 2000, 5), metrics=("kid",))
    assert board["collapsed"].rank_set == (3, 3) and board.rows[-1].name == "collapsed"
    assert not board.separable("one", "two")
    told = f"collapsed repeats itself: {distinct} distinct samples among 2,000, which count as they come"
    assert told in board.warnings


def near_copies(n, seed):
    rows = np.repeat(samples(range(10), n // 3, seed), 3, 0)
    groups = np.repeat(np.arange(n // 3), 3).astype(str).tolist()
    return fe.EmbeddingSet(rows + np.float32(0.1) * rows[::-1] * 0, metadata={"group": groups})


@pytest.mark.one_of_each("options")
@pytest.mark.parametrize(
    "gen, ref, options",
    [
        (samples(range(8), 120, 1), samples(range(10), 160, 2), {}),
        (samples(range(10), 60, 1), samples(range(10), 1200, 2), {}),
        (samples(range(10), 120, 1), samples(range(10), 100, 2), {"seed": 3}),
        (np.repeat(samples(range(10), 200, 1), 2, 0), samples(range(10), 600, 2), {}),
        (near_copies(180, 1), near_copies(150, 2), {"groups": "group"}),
        (near_copies(300, 1), samples(range(9), 600, 2), {}),
    ],
)
def test_a_board_of_one_model_and_a_comparison_tell_one_difference(gen, ref, options):
    board, comparison = (
        fe.leaderboard({"m": gen}, ref, metrics=("kid",), **options),
        fe.compare(gen, ref, method="clusters", features=20, **options),
    )
    told = board["m"].scores["unmatched"]
    assert told.value == comparison.difference
    assert tuple(told.interval) == comparison.difference_interval


def test_the_kinds_of_a_board_do_not_overlap_and_add_up(board, sets):
    for label in (*sets, "ref"):
        assert sum(kind.shares[label].share for kind in board.kinds) == pytest.approx(1)
    assert len(board.kinds) <= 50
    assert [kind.p_value > 0.05 for kind in board.kinds] == sorted(kind.p_value > 0.05 for kind in board.kinds)
    ids = {kind.id for kind in board.kinds}
    assert all(set(heading.children) <= ids for heading in board.headings)


def test_metrics_without_a_common_error_are_ranked_by_their_intervals(sets):
    board = fe.leaderboard({"good": sets["good"], "gaps": sets["gaps"]}, samples(range(10), 350, 5), metrics=("mmd",))
    assert board.separable("good", "gaps", "mmd")
    assert board["good"].scores["mmd"].rank_set == (1, 1)


def test_a_metric_of_several_scores_says_which_one_ranks(sets):
    few = {"good": sets["good"][:60], "gaps": sets["gaps"][:60]}
    board = fe.leaderboard(few, samples(range(10), 60, 5), metrics=("precision_recall", "vendi"))
    assert board.criterion("precision_recall").title.startswith("precision, of ")
    (precision, _) = fe.metrics(few["good"], samples(range(10), 60, 5), "precision_recall")
    assert board["good"].scores["precision_recall"].value == precision.value
    assert header(board.criterion("vendi")) == "fewer than two models are ranked"


@pytest.mark.long
def test_two_halves_of_one_model_are_not_called_different():
    called = 0
    for seed in range(20):
        rows = samples(range(8), 600, 100 + seed)
        board = fe.leaderboard({"a": rows[:300], "b": rows[300:]}, samples(range(10), 400, 200 + seed))
        called += any(board.separable("a", "b", one.key) for one in board.criteria)
    assert called <= 2


@pytest.mark.parametrize(
    "models, options, error, message",
    [
        ([], {}, UsageError, "at least one model is needed"),
        (["one", "ref"], {}, UsageError, 'a model cannot be called "ref"'),
        (["one", "two"], {"metrics": ("fdd",)}, UsageError, 'did you mean "fd"'),
        (
            ["one", "two"],
            {"metrics": ("kid",), "rank_by": "fd"},
            UsageError,
            "does not have fd: rank by .*, novel or kid; or",
        ),
        (["one", "two"], {"rank_by": "mmd"}, UsageError, "does not have mmd: .*; or add it to metrics"),
        (["one", "two"], {"rank_by": "uniq"}, UsageError, "no number is called 'uniq': rank by"),
        (["one", "two"], {"level": 5}, UsageError, "unknown option 'level'"),
        (["one", "two"], {"kinds": 5}, UsageError, "unknown option 'kinds'"),
    ],
)
def test_a_wrong_call_is_refused(models, options, error, message):
    with pytest.raises(error, match=message):
        fe.leaderboard({name: samples(range(3), 50, 0) for name in models}, samples(range(3), 50, 1), **options)


def test_sets_that_do_not_belong_together_are_refused():
    with pytest.raises(IncompatibleError, match="8 entries per embedding and two 7"):
        fe.leaderboard({"one": samples([1], 50, 0), "two": samples([1], 50, 0)[:, :7]}, samples([1], 50, 1))


def test_unknown_names_are_refused(board):
    with pytest.raises(UsageError, match='did you mean "gaps"'):
        board.separable("good", "gap")
    with pytest.raises(UsageError, match="does not rank by 'fid'"):
        board.separable("good", "gaps", "fid")


def test_the_page_has_every_number_and_names_all_members_of_a_group(board):
    page = Page(report.page(board, {}))
    assert not [attrs for tag, attrs, _ in page.elements if tag == "img" and not attrs["src"].startswith("data:")]
    rows = page.find("tr", "mode", page.find("table", "board")[0])
    *shown, last = [page.texts("th", inside=row)[0] for row in rows]
    assert all(text.startswith(row.name) for text, row in zip(shown, board.rows, strict=True))
    assert last == "real data, same size"
    text = " ".join(page.texts("main"))
    for name in board.groups[0]:
        assert name in next(part for part in page.texts("p") if part.startswith("Group 1"))
    assert f"{board.criterion().separable_pairs} of all 6 pairs can be distinguished (Holm" in text
    assert "sampling noise only" in text
    differing = [kind for kind in board.kinds if kind.p_value <= 0.05]
    assert differing
    assert len(page.find("tr", "mode", page.find("table", "heat")[0])) == len(differing)
    (table,) = findings_table(board)
    assert page.visible.count(table.legend) == 1


@pytest.mark.long
def test_all_outputs_say_that_numbers_see_only_what_the_extractor_tells_apart(board, capsys):
    told = "All numbers see only what these embeddings distinguish."
    report.show(board)
    assert told in capsys.readouterr().out
    assert told in board.to_markdown() and told in report.fragment(board)
    assert Page(report.page(board, {})).visible.count(told) == 2  # first and in "How to read this"
    images = np.random.default_rng(0).integers(0, 256, (120, 4, 4, 3), dtype=np.uint8)
    first, second, ref = (fe.extract(images[part::3].copy(), "pixels") for part in range(3))
    found = fe.leaderboard({"a": first, "b": second}, ref)
    assert "All numbers see only what the extractor pixels distinguishes." in found.to_markdown()


def test_pages_have_a_minus_where_logs_csv_and_json_have_a_hyphen(capsys):
    rows = samples(range(10), 200, 1)
    board = fe.leaderboard({"a": rows[:60], "b": rows[60:120]}, rows[120:200], metrics=("kid",), rank_by="kid")
    low = board["a"].scores["kid"].interval[0]
    assert low < 0
    report.show(board)
    shown = f"{1000 * low:.4g}"  # KID × 10³
    assert shown in capsys.readouterr().out  # a log is of ASCII
    for text in (report.page(board, {}), report.fragment(board), board.to_markdown()):
        assert "kid × 10³" in text
        assert shown.replace("-", "−") in text
        assert shown not in text
    assert str(low) in board.to_csv() and str(low) in board.to_json()


@pytest.mark.long
def test_the_top_of_a_page_of_many_models_stays_short():
    models = {f"m{number}": samples(range(10), 60, number) for number in range(14)}
    board = fe.leaderboard(models, samples(range(10), 80, 99), metrics=("kid",))
    page = Page(report.page(board, {}))
    first = [row.name for row in board.rows]
    assert page.texts("h1") == ["14 models against ref"]
    assert "models, 60 samples each" in page.texts("p", "key")[0]
    (tied,) = [text for text in page.texts("p") if text.startswith("Group 1")]
    assert values(board.says["order"]) == "14 13" and f"{first[0]} is first" in board.says["order"]
    assert all(name in tied for name in first)


def test_the_terminal_has_the_board(board, capsys):
    report.show(board)
    printed = capsys.readouterr().out
    assert "3–4" in printed or "4" in printed
    assert "can be distinguished (Holm" in printed
    assert "good" in report.fragment(board)


def test_the_verb_writes_page_and_json(tmp_path, sets):
    for name, rows in (("a", sets["good"]), ("b", sets["gaps"]), ("ref", samples(range(10), 200, 6))):
        np.save(tmp_path / f"{name}.npy", rows)
    words = ["leaderboard", "--ref", f"{tmp_path}/ref.npy", f"a={tmp_path}/a.npy", "--gen", f"b={tmp_path}/b.npy"]
    shown = CliRunner().invoke(app, [*words, "--out", f"{tmp_path}/board", "--json", "--metrics", "kid"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["rows"][0]["name"] == "a"
    made = ["board.json", "entries", "leaderboard.html", "leaderboard.json", "reference.h5"]
    assert sorted(path.name for path in (tmp_path / "board").iterdir()) == made
    nobody = CliRunner().invoke(app, ["leaderboard", "--ref", words[words.index("--ref") + 1]])
    assert nobody.exit_code == 3 and "no model is named" in nobody.stderr


def test_the_verbs_of_a_stored_board_add_show_render_and_remove(tmp_path, sets):
    good, gaps = sets["good"][:250], sets["gaps"][:250]
    named = {"a": good, "b": gaps, "again": gaps[::-1], "ref": samples(range(10), 250, 6)}
    for name, rows in named.items():
        np.save(tmp_path / f"{name}.npy", rows)

    def run(*words, rc=0):
        done = CliRunner().invoke(app, ["leaderboard", *(word.format(tmp_path) for word in words)])
        assert done.exit_code == rc, done.output
        return done

    ref = ("--ref", "{}/ref.npy", "--quiet")
    run("add", "{}/board", *ref, "a={}/a.npy", "--metrics", "fd", "--rank-by", "fd")
    assert "board has a of the same samples" in run("add", "{}/board", *ref, "a={}/a.npy").stdout
    assert "is on the board with other samples" in run("add", "{}/board", *ref, "a={}/b.npy", rc=3).stderr
    assert "seed is 2 here and 0 in" in run("add", "{}/board", *ref, "b={}/b.npy", "--seed", "2", rc=3).stderr
    assert "fewer than two models are ranked" in run("show", "{}/board").stdout
    twice = run("add", "{}/board", *ref, "b={}/b.npy", "b={}/b.npy", rc=3).stderr
    assert "training runs 1 and 2 of b are the same samples" in twice
    added = json.loads(run("add", "{}/board", *ref, "b={}/b.npy", "b={}/again.npy", "--json").stdout)
    files = [f"{tmp_path}/board/leaderboard{suffix}" for suffix in (".html", ".json")]
    assert (added["models"], added["outdated"]) == (["a", "b"], files)
    shown = json.loads(run("show", "{}/board", "--json").stdout)
    assert (shown["rank_by"], [(row["name"], row["runs"]) for row in shown["rows"]]) == ("fd", [("a", 1), ("b", 2)])
    run("render", "{}/board", "--rank-by", "missing")
    page = (tmp_path / "board" / "leaderboard.html").read_bytes()
    run("render", "{}/board", "--rank-by", "missing")
    assert (tmp_path / "board" / "leaderboard.html").read_bytes() == page
    asked = run("show", "{}/board", "--rank-by", "kid", rc=3).stderr
    assert "does not have kid: rank by unmatched, missing, novel or fd; or make another board" in asked
    assert "metrics fd,kid" in asked
    assert (
        "fd (did" not in asked
        and '(did you mean "missing"?)' in run("show", "{}/board", "--rank-by", "mising", rc=3).stderr
    )
    told = run("add", "{}/board", *ref, "c={}/a.npy").stdout
    assert "added c to" in told and all(name in told for name in ("a", "b", "fd")) and files[0] in told
    assert [row["name"] for row in json.loads(Path(files[1]).read_text())["rows"]] == ["a", "c", "b"]
    removed = json.loads(run("remove", "{}/board", "b", "c", "--json").stdout)
    assert (removed["models"], removed["outdated"]) == (["a"], files)
    assert "is not a stored board" in run("show", "{}", rc=3).stderr
    assert run("show", "{}/board/leaderboard.json").exit_code == 0
    for words in (("show", "{}/board/leaderboard.json", "--rank-by", "fd"), ("render", "{}/board/leaderboard.json")):
        assert "leaderboard.json is a file, and a stored board is a folder" in run(*words, rc=3).stderr
    assert "no command is called 'shwo' (did you mean \"show\"?)" in run("shwo", "{}/board", rc=3).stderr


@pytest.mark.long
def test_a_stored_board_shows_pictures_that_it_keeps_and_those_of_the_samples_that_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for name, low in (("a", 0), ("b", 127), ("ref", 0)):
        images = rng.integers(0, 128, (60, 4, 4, 3), dtype=np.uint8)
        images[:, :2] += np.uint8(low)
        np.savez(f"{name}.npz", images=images)

    def run(*words, rc=0):
        done = CliRunner().invoke(app, ["leaderboard", *words])
        assert done.exit_code == rc, done.output
        return done

    run("add", "board", "--ref", "ref.npz", "a=a.npz", "b=b.npz", "--extractor", "pixels", "--metrics", "kid")
    page = Page((tmp_path / "board" / "leaderboard.html").read_text())
    assert page.find("img", inside=page.by_id("model-b"))
    run("render", "board", *(word for name in ("a", "b", "ref") for word in ("--samples", f"{name}={name}.npz")))
    page = Page((tmp_path / "board" / "leaderboard.html").read_text())
    assert page.find("img", inside=page.find("table", "heat")[0])
    assert page.find("img", inside=page.by_id("model-b"))
    run("render", "board")
    page = Page((tmp_path / "board" / "leaderboard.html").read_text())
    assert page.find("img", inside=page.find("table", "heat")[0])


@pytest.mark.long
def test_sketches_are_ranked_by_the_samples_that_they_hold(sets):
    ref = samples(range(10), 3000, 5)
    sketch = fe.Sketch.reference(ref, features=50)
    board = fe.leaderboard({"good": sets["good"], "gaps": fe.Sketch.of(sets["gaps"], sketch.feature_map)}, sketch)
    assert board["gaps"].scores["missing"].value == pytest.approx(0.3, abs=0.08)
    assert board.separable("good", "gaps", "fd")
    assert any("ref is a sketch: the 2,000 embeddings that it holds are counted" in one for one in board.warnings)
    with pytest.raises(UsageError, match="a is a sketch, which does not keep the column 'label'"):
        fe.leaderboard({"a": sketch, "b": sketch}, sketch, groups="label")


@pytest.mark.long
def test_numbers_that_surely_disagree_are_told():
    """One model lacks kinds, the other has all of them and a new one far away."""
    few, far = samples(range(6), 1000, 1), samples(range(10), 950, 2)
    models = {"few": few, "far": np.concatenate([far, np.full((50, 8), 60, np.float32) + far[:50]])}
    board = fe.leaderboard(models, samples(range(10), 1500, 5))
    (found,) = board.disagreements()
    better = dict(zip((found.first, found.second), found[2:], strict=True))
    assert "missing" in better["far"]
    assert "fd" in better["few"]
    assert any("is surely better than" in one for one in Page(report.page(board, {})).texts("p"))
