"""Long work says how long it takes, once; short work says nothing; one bar or few lines; no stage is begun twice."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from _cards import small_pixel_card
from PIL import Image

import finc_eval as fe
from finc_eval.core import progress
from finc_eval.core.terminal import visible_output
from finc_eval.core.words import duration, join_sizes
from finc_eval.demo import example_sets
from finc_eval.gates.first_policy import first_policy

EMBED = progress.Stage("embed 6 × 10,000 images by tiny", ("--n 2000", 12_000))
HOUR = 3600
CODES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


class Stderr(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.fixture
def said(monkeypatch):
    """What the command line says of events (seconds since the last, stage, done, total)."""

    def tell(events, is_terminal=False):
        now, stream = [0.0], Stderr(is_terminal)
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("COLUMNS", "120")
        with visible_output(), progress.terminal() as draw:
            for seconds, *event in events:
                now[0] += seconds
                draw(*event)
            print("note: a\x07b", file=sys.stderr)
        text = stream.getvalue()
        assert "\\u001b" not in text and text.count("note: a\\u0007b") == 1  # the bar is drawn, names are spelled out
        return text.replace("note: a\\u0007b\n", "")

    return tell


def embedding(stage, seconds, total=60_000, first=0, batch=64):
    """The events of an embedding that takes so long."""
    return [(seconds * batch / total, stage, done, total) for done in range(first, total + 1, batch)]


def test_long_work_says_after_its_first_batches_how_long_it_takes_and_what_is_quicker(said):
    first, *lines = said(embedding(EMBED, 20 * 60)).splitlines()
    assert first == "embed 6 × 10,000 images by tiny: about 20 minutes; --n 2000 takes 4 minutes"
    assert all(line.startswith("embed 6 × 10,000 images by tiny: ") and line.endswith(" left") for line in lines)
    assert 10 < len(lines) < 25
    assert said(embedding(EMBED, 5 * HOUR)).count("\n") < 100


def test_a_work_whose_first_batches_were_measured_says_its_time_before_it_begins(said):
    stages = [progress.Stage("sketch", cost=30.0), progress.Stage("score", cost=90.0)]

    def told(seconds):
        events = []
        plan = progress.Plan(lambda *event: events.append((20.0 * (len(events) > 0), *event)), stages, seconds)
        for stage in stages:
            plan(stage, 0, 1)
            plan(stage, 1, 1)
        return said(events).splitlines()

    assert told(120.0)[0] == "1 of 2: sketch: about 2 minutes left in all"
    assert not any("left" in line for line in told(None)[:1])


@pytest.mark.parametrize(
    ("stage", "first", "words"),
    [
        (EMBED, 30_016, "by tiny, 30,016 of them done: about 20 minutes; --n 2000 takes 8 minutes"),
        ("count gen", 0, "count gen: about 40 minutes"),
        (progress.Stage("embed 3 images", ("--n 2", 40_000)), 0, "embed 3 images: about 40 minutes"),
    ],
    ids=["resumed", "no option", "an option that saves little"],
)
def test_what_is_said_of_a_stage(said, stage, first, words):
    assert words in said(embedding(stage, 40 * 60, first=first)).splitlines()[0]


@pytest.mark.parametrize("is_terminal", [False, True], ids=["log", "terminal"])
def test_short_work_says_nothing(said, is_terminal):
    many = [(0.001, f"count {number}", done, 2) for number in range(500) for done in (0, 1, 2)]
    text = said(embedding(EMBED, 1.5, total=640) + many[:100], is_terminal)
    assert not any(letter.isalnum() for letter in CODES.sub("", text))


def test_a_stage_is_announced_once_though_another_comes_between(said):
    steps = embedding(EMBED, 40 * 60)
    assert said([*steps[:300], (0.0, "write cache", 1, 2), *steps[300:]]).count("about") == 1


def test_many_short_stages_are_a_line_now_and_then(said):
    lines = said([(0.5, f"count {number}", 1, 1) for number in range(240)]).splitlines()
    assert 5 <= len(lines) <= 12 and lines[0] == "count 19"


def test_a_terminal_has_one_bar_with_the_present_stage_and_leaves_only_the_announcement(said):
    text = said([*embedding(EMBED, 40 * 60), (1.0, "count gen", 0, 2), (1.0, "count gen", 2, 2)], is_terminal=True)
    assert text.count("about 40 minutes; --n 2000 takes 8 minutes") == 1
    assert "\x1b[2K" in text.rpartition("count gen")[2]  # the bar is gone at the end
    for drawn in text.split("\x1b[2K"):
        assert ("embed 6" in drawn) + ("count gen" in drawn) < 2


def planned(seconds, steps=100):
    """The events of a work of three stages that take so many seconds, as their costs say."""
    events, costs = [], {"sketch": 1, "find kinds": 3, "score": 4}
    plan = progress.Plan(
        lambda *event: events.append(event), [progress.Stage(name, cost=cost) for name, cost in costs.items()]
    )
    for stage in costs:
        for done in range(steps + 1):
            plan(stage, done, steps)
    paces = [0.0, *(cost * seconds / sum(costs.values()) / steps for cost in costs.values() for _ in range(steps + 1))]
    return [(pace, *event) for pace, event in zip(paces, events, strict=False)]


def test_a_log_says_the_time_left_of_a_work_of_several_stages(said):
    lines = said(planned(400)).splitlines()
    place = lines.index("1 of 3: sketch: about 6 minutes left in all")
    before, lines = lines[:place], lines[place + 1 :]
    assert len(before) < 3 and not any("left" in line for line in before)
    assert lines[-1].startswith("3 of 3: score: ")
    left = [int(re.search(r", (\d+) (?:minutes|seconds) left in all$", line)[1]) for line in lines]
    assert len(left) > 5 and left[:2] == sorted(left[:2], reverse=True)


def test_the_pace_of_a_second_work_is_its_own(said):
    lines = said([*planned(20_000), *planned(2000)]).splitlines()
    last = [line for line in lines if line.startswith("2 of 3: find kinds: ")][-1]
    assert int(re.search(r", (\d+) minutes left in all$", last)[1]) <= 25


def test_a_terminal_has_one_bar_for_all_stages_of_a_work(said):
    text = said(planned(400), is_terminal=True)
    assert text.count("about 6 minutes left in all") == 1
    drawn = [part for part in text.split("\x1b[2K") if "of 3: " in part and "about" not in part]
    assert drawn and all(part.count("of 3: ") == 1 for part in drawn)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 second"),
        (7.4, "7 seconds"),
        (44, "40 seconds"),
        (89, "90 seconds"),
        (91, "2 minutes"),
        (5300, "88 minutes"),
        (5401, "2 hours"),
        (86_400, "24 hours"),
    ],
)
def test_a_duration_is_rough(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([1500], "1,500"),
        ([10_000] * 6, "6 × 10,000"),
        ([1000] * 5 + [2000], "5 × 1,000 + 2,000"),
        ([1, 2, 3, 4, 5], "15"),
    ],
    ids=["one", "alike", "a board", "many unlike"],
)
def test_sizes_of_sets_are_summed_in_words(sizes, words):
    assert join_sizes(sizes) == words


GEN, REF = (rows[:, ::16] for rows in example_sets(300))
POLICY = {"kinds": {"lose": 0.5, "new": 0.1, "moved": 0.5}, "metrics": {"kid": {"difference": "noise"}}}
VERBS = {
    "compare": lambda run: fe.compare(GEN, REF, features=50, run=run),
    "kinds": lambda run: fe.kinds({"a": GEN[:150], "b": GEN[150:]}, REF, run=run),
    "leaderboard": lambda run: fe.leaderboard({"a": GEN[:150], "b": GEN[150:]}, REF, run=run),
    "private board": lambda run: fe.leaderboard(
        {"a": GEN[:150], "b": GEN[150:]},
        fe.privacy.release_sketch(REF[150:], public=REF[:150], epsilon=8, ledger=None),
        run=run,
    ),
    "gate": lambda run: fe.gate(GEN[:150], GEN[150:], REF, {**POLICY, "basics": {"duplicates": 0.1}}, run=run),
    "gate --init": lambda run: first_policy([GEN[:150]], REF, run=run),
    "audit": lambda run: fe.audit(GEN[:100], REF[:100], REF[100:200], run=run),
    "metrics": lambda run: fe.metrics(GEN[:100], REF[:100], ["fd", "precision_recall"], run=run),
    "board by samples": lambda run: fe.leaderboard(
        {"a": GEN[:150], "b": GEN[150:]}, REF, metrics=["precision_recall", "prdc"], run=run
    ),
    "methods": lambda run: fe.compare_methods(GEN, REF, ["finc", "rarity"], features=50, run=run),
    "evaluate": lambda run: fe.evaluate(GEN[:150], REF[:150], features=50, run=run),
}


ALIKE = {"evaluate": "audit", "methods": "compare", "board by samples": "leaderboard"}
"""Verbs of many parts, and the verb that shows the same kind of stages."""


@pytest.mark.one_of_each(by=lambda verb: ALIKE.get(verb, verb))
@pytest.mark.parametrize("verb", VERBS)
def test_no_stage_is_begun_twice_under_one_name_and_each_has_its_place_among_all(verb):
    last, again, parts = {}, [], []

    def tell(stage, done, total):
        again.extend([stage] if done < last.get(stage, 0) else [])
        last[stage] = done
        parts.append(stage.part)

    VERBS[verb](fe.Run("cpu", progress=tell))
    assert last and again == [] and parts == pytest.approx(sorted(parts), abs=1e-12)
    assert parts[0] < 0.2 and parts[-1] == pytest.approx(1)
    places = [re.match(r"(\d+) of (\d+): ", stage) for stage in last]
    assert all(places), list(last)
    numbers = list(dict.fromkeys(int(place[1]) for place in places))
    assert numbers == list(range(1, len(numbers) + 1)) and {int(place[2]) for place in places} == {len(numbers)}


def test_passes_over_all_sets_are_one_stage_with_the_time_left_over_all():
    told = []
    fe.compare(GEN, REF[:200], features=50, run=fe.Run("cpu", progress=lambda *one: told.append(one)))
    for pass_ in ("look for repeats", "sketch", "count kinds", "score samples"):
        assert [(done, total) for stage, done, total in told if stage.endswith(pass_)] == [
            (0, 500),
            (300, 500),
            (500, 500),
        ]


def test_a_stage_with_words_before_it_says_what_is_quicker():
    told = []
    fe.Run("cpu", progress=lambda *one: told.append(one)).planned("a: embed").prefixed("a").progress(EMBED, 1, 2)
    assert told[0][0] == f"1 of 1: a: {EMBED}" and told[0][0].shorter == EMBED.shorter


READ_ONCE = {
    "compare": lambda sets, **how: fe.compare(*sets[:2], features=50, **how),
    "metrics": lambda sets, **how: fe.metrics(*sets[:2], ["fd", "kid"], **how),
    "leaderboard": lambda sets, **how: fe.leaderboard({"a": sets[0], "b": sets[1]}, sets[2], **how),
    "gate": lambda sets, **how: fe.gate(*sets[:3], POLICY | {"copying": {"exact": 5}}, train=sets[3], **how),
    "gate --init": lambda sets, **how: first_policy([sets[0]], sets[1], **how),
    "audit": lambda sets, **how: fe.audit(*sets[:3], **how),
}


@pytest.mark.one_of_each(by=lambda verb: verb.startswith("gate"))
@pytest.mark.usefixtures("quick_audits")
@pytest.mark.parametrize("verb", READ_ONCE)
def test_the_samples_of_a_set_are_read_and_embedded_once(verb, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    sets, read = [], []
    for number in range(4):
        sets.append(tmp_path / f"{number}.npy")
        np.save(sets[-1], np.random.default_rng(number).integers(0, 256, (100, 8, 8, 3), np.uint8))

    def tell(stage, done, total):
        read.extend([stage.split(": ")[-2]] if stage.endswith(": check samples") and done == total else [])

    card = small_pixel_card(tmp_path / "small.toml", 4)
    READ_ONCE[verb](sets, extractor=card, run=fe.Run("cpu", progress=tell))
    assert read and len(read) == len(set(read)), read


def test_all_distances_of_an_audit_are_one_stage_to_its_end():
    told = []
    fe.audit(GEN[:120], REF[:120], REF[120:240], run=fe.Run("cpu", progress=lambda *one: told.append(one)))
    steps = [(done, total) for stage, done, total in told if stage.endswith("distances between samples")]
    assert len({total for _, total in steps}) == 1 and steps == sorted(steps) and steps[-1][0] == steps[-1][1]
    assert len(steps) >= 6  # both ways of the generated set and of the control, the holdout, and the training set


@pytest.mark.long
def test_only_what_is_missing_is_counted_and_a_board_that_was_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", "caches")
    rng = np.random.default_rng(0)
    for name in ("one", "two", "three", "real"):
        Path(name).mkdir()
        for number in range(40):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(f"{name}/{number}.png")
    models = {"one": "one", "two": "two", "three": "three"}
    told = []

    def stop_after_two(stage, done, total):
        told.append((stage, done, total))
        if done == 90:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fe.leaderboard(models, "real", extractor="pixels", run=fe.Run("cpu", 10, progress=stop_after_two))
    assert ("embed 4 × 40 images by pixels", 80, 160) in told
    told.clear()
    fe.leaderboard(models, "real", extractor="pixels", run=fe.Run("cpu", 10, progress=lambda *one: told.append(one)))
    embedded = [one for one in told if one[0].startswith("embed")]
    assert embedded[0] == ("embed 2 × 40 images by pixels", 10, 80)  # the two are not embedded again, nor the batch
    assert embedded[-1][1:] == (80, 80)
