"""Settings: one dataclass from which keywords, files, signatures and results follow."""

from dataclasses import dataclass, fields
from typing import Annotated, get_type_hints

import pytest
import torch

import finc_eval as fe
from finc_eval.comparison import settings as comparison
from finc_eval.comparison.settings import METHODS, settings_of
from finc_eval.core.record import about, plain, structure
from finc_eval.demo import example_sets
from finc_eval.leaderboards import settings as leaderboards
from finc_eval.memorization import settings as memorization
from finc_eval.partitions import settings as partitions
from finc_eval.private import settings as privacy
from finc_eval.sketches import settings as sketches


@dataclass(frozen=True)
class Wider(fe.Settings):
    """Settings with an option more."""

    temperature: Annotated[float, about("a number that a test adds")] = 0.5


@pytest.fixture(scope="module")
def sets():
    return [rows[:, ::7] for rows in example_sets(200)]


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [
        (comparison.Options, fe.Settings),
        (leaderboards.LeaderboardOptions, leaderboards.LeaderboardSettings),
        (memorization.AuditOptions, memorization.AuditSettings),
        (partitions.KindOptions, partitions.KindSettings),
        (privacy.ReleaseOptions, privacy.ReleaseSettings),
        (privacy.SynthesisOptions, privacy.SynthesisSettings),
        (privacy.ImageSynthesisOptions, privacy.ImageSynthesisSettings),
        (sketches.SketchOptions, sketches.SketchSettings),
    ],
)
def test_every_field_is_a_typed_keyword(keywords, settings):
    typed, stored = get_type_hints(keywords), get_type_hints(settings)
    assert set(typed) == {field.name for field in fields(settings)}
    # A method may be given by its name, and groups as arrays: what is stored is a record, and the name of the groups.
    assert {name for name in typed if typed[name] != stored[name]} <= {"method", "groups"}


def test_a_field_more_is_in_the_function_the_signature_and_the_json_with_nothing_else_changed(sets):
    found = fe.compare(*sets, Wider(features=50), temperature=0.75)
    assert dict(found.signature.fields)["temperature"] == "0.75"
    assert found.to_dict()["settings"]["temperature"] == 0.75


def test_settings_are_built_once_and_used_again(sets):
    settings = fe.Settings(rho=2, features=50, modes=3)
    again = fe.compare(*sets, settings, modes=2)
    assert (again.settings.rho, again.settings.features, again.settings.modes) == (2, 50, 2)
    assert len(fe.compare(*sets, settings).over) <= 3 and settings.modes == 3


@pytest.mark.long
def test_the_settings_of_a_result_make_the_same_result(sets):
    sets = [one[:60] for one in sets]
    found = fe.compare(*sets, features="auto")
    again = fe.compare(*sets, found.settings)
    assert again.signature == found.signature
    assert [mode.excess for mode in again.directions] == [mode.excess for mode in found.directions]
    assert [kind.p_value for kind in again.kinds] == [kind.p_value for kind in found.kinds]


@pytest.mark.parametrize("method", [cls() for cls in METHODS.values()])
def test_settings_come_back_from_json(method):
    settings = fe.Settings(method=method, sigma=3.0)
    assert structure(fe.Settings, plain(settings), "the settings") == settings


def test_settings_are_read_from_a_table(tmp_path):
    path = tmp_path / "finc.toml"
    path.write_text('[compare]\nrho = 2\nmethod = {name = "rarity", novel = 0.2}\n[other]\nmethod = "ken"\n')
    assert fe.Settings.read(path) == fe.Settings(rho=2, method=fe.Rarity(novel=0.2))
    assert fe.Settings.read(path, "other").method == fe.Ken()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[compare]\nrhoo = 2", r'unknown key "rhoo" \(did you mean "rho"\?\): the keys are kernel, sigma'),
        ('[compare]\nrho = "2"', "\"rho\" must be a number, got '2'"),
        ("[compare]\nmodes = 2.5", '"modes" must be a whole number, got 2.5'),
        ("[compare]\nrho = -1", "rho must be a positive number, got -1"),
        ('[compare]\nmethod = {name = "rarity", nvel = 2}', r'unknown key "method.nvel" \(did you mean "novel"\?\)'),
        ('[compare]\nmethod = "rarety"', "\"method\" must be one of finc, clusters, ken, rarity, fld, got 'rarety'"),
        ("[comparing]\nrho = 2", r"has no table \[compare\] \(did you mean .comparing.\?\)"),
        ("compare = 3", r"has no table \[compare\]"),
        ("rho = ", "cannot be read as a TOML file"),
        ("[compare]\nnovel = 0.2", r'novel is a parameter of the method: write method = \{name = "rarity", novel'),
    ],
)
def test_a_table_that_is_wrong_is_one_clear_sentence(tmp_path, text, message):
    (tmp_path / "finc.toml").write_text(text)
    with pytest.raises(fe.FincEvalError, match=message):
        fe.Settings.read(tmp_path / "finc.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rhoo": 2}, r"unknown option 'rhoo' \(did you mean \"rho\"\?\)"),
        ({"novel": 0.2}, r"novel is an option of Rarity and Fld: pass method=fe.Rarity\(novel=0.2\)"),
        ({"rotation": None}, r"rotation is an option of Finc: pass method=fe.Finc\(rotation=None\)"),
        ({"rho": "2"}, "rho must be a positive number, got '2'"),
        ({"rho": True}, "rho must be a positive number, got True"),
        ({"rho": 2e9}, r"rho must be at most 100, got 2e\+09"),
        ({"kernel": "gausian"}, r"kernel must be one of gaussian, cosine, got 'gausian'"),
        ({"kernel": "cosine", "sigma": 2.0}, "the cosine kernel has no bandwidth"),
        ({"features": "many"}, 'features must be a positive number or "auto"'),
    ],
)
def test_options_that_are_wrong_are_one_clear_sentence(options, message):
    with pytest.raises(fe.UsageError, match=message):
        settings_of(None, options)


@pytest.mark.parametrize("wrong", [{"rho": 2}, fe.Run(), 3])
def test_settings_of_another_type_are_refused(sets, wrong):
    with pytest.raises(fe.UsageError, match=r"settings must be Settings\(…\), got .*: write options as keywords"):
        fe.compare(*sets, wrong)


def test_frequencies_can_be_drawn_independently_as_algorithm_1_does(sets):
    few = {"features": 50, "modes": 2, "method": fe.Finc(clusters=False)}
    found = fe.compare(*sets, **few, frequencies="iid", sigma=5.0)
    assert dict(found.signature.fields)["omega"] == "iid" and found.settings.frequencies == "iid"
    sketches = [fe.Sketch.reference(sets[1], features=50, frequencies=one, sigma=5.0) for one in ("iid", "orthogonal")]
    drawn = [sketch.feature_map.frequencies for sketch in sketches]
    expected = torch.randn(sets[1].shape[1], 50, generator=torch.Generator().manual_seed(0)) / 5.0
    torch.testing.assert_close(drawn[0].cpu(), expected)
    assert not torch.allclose(drawn[0], drawn[1])
    again = fe.compare(sets[0], sketches[0], found.settings)
    assert again.settings.frequencies == "iid" and str(again.signature) != str(fe.compare(*sets, **few).signature)
    with pytest.raises(fe.IncompatibleError, match="feature map"):
        fe.compare(fe.Sketch.reference(sets[0], features=50), sketches[0])


def test_other_frequencies_are_refused():
    with pytest.raises(fe.UsageError, match="frequencies"):
        fe.Settings(frequencies="independent")
