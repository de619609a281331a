"""Classes that a set has with another look are not lost; classes that it lacks are, whatever others look like."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from finc_eval.findings import classes_with_looks
from finc_eval.findings.causes import Held, causes_of
from finc_eval.findings.classes_with_looks import find_class_with_look
from finc_eval.findings.finding import Finding
from finc_eval.naming.explained import explain, name_by_members
from finc_eval.naming.measured import Measured
from finc_eval.naming.traits import TRAITS

N, OF_CLASS = 300, 15
NAMES = [trait.name for trait in TRAITS]
FISH = SimpleNamespace(
    name="looks like goldfish", evidence=(SimpleNamespace(in_name=True, source="classifier", value="goldfish"),)
)


class Sample:
    """A set that knows the ids of its samples."""

    def ids_at(self, rows):
        return tuple(map(str, rows))


def find(monkeypatch, seed, change=None):
    """Draw a reference with red fish, and a set whose fish have a look, or are lost; return what is said of them."""
    rng = np.random.default_rng(seed)
    values = {label: rng.normal(size=(N, len(TRAITS))) for label in ("gen", "ref")}
    for each in values.values():
        for place, trait in enumerate(TRAITS):
            if trait.least is not None:
                each[:, place] = rng.random(N) < 0.02
    levels = {label: rng.normal(size=N) for label in values}
    values["ref"][:OF_CLASS, NAMES.index("warmth")] += 4
    levels["ref"][:OF_CLASS] += 6
    if change is not None:
        levels["gen"][:OF_CLASS] += 5
        change(values["gen"][:OF_CLASS])
    members = {"gen": np.zeros(N, bool), "ref": np.arange(N) < OF_CLASS}
    held = Held(Finding("goldfish", "kind", False, 0.0, OF_CLASS / N, 0.001), members, "k1")
    monkeypatch.setattr(classes_with_looks, "class_levels", lambda samples, rows, noun: levels[samples.label])
    sets = {label: Sample() for label in values}
    for label, each in sets.items():
        each.label = label
    rows = {label: np.arange(N) for label in sets}
    measured = TRAITS, {label: Measured(rows[label], each) for label, each in values.items()}
    return held, find_class_with_look(held, FISH, sets, rows, measured)


def gray(values):
    values[:, NAMES.index("gray")] = 1


def dark(values):
    values[:, NAMES.index("brightness")] -= 5


@pytest.mark.parametrize(("change", "look"), [(gray, "gray"), (dark, "dark")])
def test_a_class_with_a_look_is_said_with_its_share(monkeypatch, change, look):
    lost, found = find(monkeypatch, 0, change)
    assert found.finding.name == f"like “goldfish” but {look}"
    assert found.finding.share_gen == pytest.approx(OF_CLASS / N, abs=0.01)
    gone = {"gen": np.zeros(N, bool), "ref": np.zeros(N, bool)}
    same = Held(Finding(look, "look", False, 0.05, 0.0, 0.001), gone | {"gen": found.members["gen"]}, look)
    assert causes_of([found, lost, same]) == [None, 0, 0]


def test_a_lost_class_is_rarely_said_to_have_a_look(monkeypatch):
    assert sum(find(monkeypatch, seed)[1] is not None for seed in range(20)) <= binom.ppf(0.999, 20, 0.05)


@pytest.mark.long
def test_lost_classes_rarely_have_a_look(monkeypatch):
    assert sum(find(monkeypatch, seed)[1] is not None for seed in range(400)) <= binom.ppf(0.999, 400, 0.05)


def test_a_class_named_by_an_example_is_the_example():
    kind = SimpleNamespace(name="looks like food such as lemon (90 %)", evidence=FISH.evidence)
    assert classes_with_looks._class_of(kind) == "lemon"


@pytest.mark.parametrize(("name", "cause"), [("unnamed kind k1", 0), ("digit 7", None)])
def test_what_is_left_of_an_unnamed_kind_is_one_of_all_kinds(name, cause):
    blurred = {"gen": np.arange(N) < 96, "ref": np.zeros(N, bool)}
    members = {"gen": np.arange(N) >= N - 24, "ref": np.arange(N) < 60}  # 24 of 204 without the blur, and 60 of 300
    look = Held(Finding("blurred", "look", False, 0.32, 0.0, 0.001), blurred, "blurred")
    kind = Held(Finding(name, "kind", False, 0.09, 0.2, 0.02), members, "k1")
    assert causes_of([look, kind]) == [None, cause]


def test_a_side_of_one_color_is_a_bar_and_no_mark():
    rng = np.random.default_rng(0)
    values = {label: rng.normal(size=(N, len(TRAITS))) for label in ("gen", "ref")}
    for each in values.values():
        each[:, [place for place, trait in enumerate(TRAITS) if trait.least is not None]] = 0
    mark, frame = NAMES.index("mark"), NAMES.index("frame")
    values["gen"][:24, mark] += 9
    look = explain(TRAITS[mark], 1, 5.0, 5.0, {label: each[:, mark] for label, each in values.items()})
    assert name_by_members(look, TRAITS, values) is look
    values["gen"][:20, frame] = 1
    found = name_by_members(look, TRAITS, values)
    assert found.trait.name == "frame" and found.has["gen"].sum() == 20
