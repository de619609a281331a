"""`takes`: a settings class gives a verb its options, and the verb gets the settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from finc_eval.cli.options import given_options, takes
from finc_eval.comparison.settings import Finc, Fld, Ken, Method, Rarity, Settings
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import about, plain
from finc_eval.sketches.settings import SketchSettings


def called(cls, *arguments, **narrower):
    """The settings that a verb gets from these arguments, or its help text or complaint."""
    received = []

    @takes(cls, "settings", **narrower)
    def verb(settings: cls) -> None:
        """Do nothing."""
        received.append(settings)

    app = typer.Typer(add_completion=False)
    app.command()(verb)
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    if isinstance(result.exception, (UsageError, DataError)):
        raise result.exception
    return received[0] if received else " ".join(result.output.replace("│", " ").split())


@dataclass(frozen=True)
class Kinds:
    """One field of each kind. The rest is not a heading."""

    needed: Annotated[int, about("a field without a default")]
    flag: Annotated[bool, about("a flag")] = False
    known: Annotated[bool, about("a flag that is on")] = True
    place: Annotated[Path | None, about("a path")] = None
    word: Annotated[Literal["one", "two"], about("one of two words")] = "one"
    count: Annotated[int | Literal["auto", "all"], about("a number or a word")] = 5
    values: Annotated[tuple[float, ...] | None, about("several numbers")] = None
    names: Annotated[tuple[str, ...], about("several names [of two]")] = ("a", "b")
    rotation: Annotated[Literal["varimax"] | None, about("varimax rotation")] = "varimax"


def test_every_kind_of_field_arrives():
    assert called(Kinds, "--needed", 3) == Kinds(3)
    given = called(
        Kinds, "--needed", 3, "--flag", "--no-known", "--place", "a/b", "--word", "two", "--count", "all",
        "--values", "1,2.5", "--names", "x, y", "--no-rotation",
    )  # fmt: skip
    assert given == Kinds(3, True, False, Path("a/b"), "two", "all", (1.0, 2.5), ("x", "y"), None)
    assert called(Kinds, "--needed", 3, "--count", 7).count == 7


def test_help_has_text_choices_and_default_of_every_field():
    text = called(Kinds, "--help")
    assert "One field of each kind ─" in text and "heading" not in text
    assert "--needed <int> A field without a default. [required]" in text
    assert "--word <one|two> One of two words. [default: one]" in text
    assert "--count N|auto|all A number or a word. [default: 5]" in text
    assert "--names NAME,NAME,… Several names [of two]. [default: a,b]" in text
    assert "--known --no-known" in text and "[default: known]" in text
    assert "--no-rotation" in text and "Switch off: varimax rotation." in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--word", "three"), "'three' is not one of 'one', 'two'"),
        (("--count", "many"), "'many' is not a whole number or auto, all"),
        (("--values", "1,x"), "'1,x' is not a list of numbers, such as 1,2,5"),
        ((), "Missing option '--needed'"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_right(arguments, complaint):
    needed = ("--needed", 3) if arguments else ()
    assert complaint in called(Kinds, *needed, *arguments)


# --- Settings -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoreSettings(Settings):
    """Settings with one more field."""

    sharpness: Annotated[float, about("how sharp modes must be")] = 0.25


def test_one_more_field_is_an_option_an_entry_of_the_signature_and_of_the_json():
    assert "--sharpness <float> How sharp modes must be. [default: 0.25]" in called(MoreSettings, "--help")
    settings = called(MoreSettings, "--sharpness", 0.5, "--rho", 2)
    assert settings == MoreSettings(sharpness=0.5, rho=2)
    assert ("sharpness", "0.5") in settings.signature()
    assert plain(settings)["sharpness"] == 0.5


def test_settings_without_options_are_the_defaults_of_the_library():
    assert called(Settings) == Settings()
    assert called(SketchSettings) == SketchSettings()


def test_the_library_checks_the_values():
    with pytest.raises(UsageError, match=r"rho must be a positive number, got -1"):
        called(Settings, "--rho", "-1")
    with pytest.raises(UsageError, match="cosine kernel has no bandwidth"):
        called(SketchSettings, "--kernel", "cosine", "--sigma", 3)


def test_a_method_brings_its_parameters():
    assert called(Settings, "--method", "ken").method == Ken()
    assert called(Settings, "--method", "rarity", "--novel", 0.4).method == Rarity(novel=0.4)
    assert called(Settings, "--no-rotation").method == Finc(rotation=None)
    text = called(Settings, "--help")
    assert "For rarity and fld; default: 0.3." in text and "For rarity; default: 3." in text and "For finc." in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--novel", "0.2"), "--novel belongs to rarity and fld, not to finc: leave it out, or choose --method rarity"),
        (("--method", "ken", "--no-rotation"), "--no-rotation belongs to finc, not to ken"),
        (("--method", "fld", "--neighbors", "5"), "--neighbors belongs to rarity, not to fld"),
    ],
)
def test_a_parameter_of_another_method_is_refused(arguments, complaint):
    with pytest.raises(UsageError, match=complaint):
        called(Settings, *arguments)


def test_a_narrower_type_leaves_its_own_options_only():
    text = called(Settings, "--help", method=Finc)
    assert "--no-rotation" in text and "--method" not in text and "--novel" not in text
    assert called(Settings, "--no-rotation", method=Finc) == Settings(method=Finc(rotation=None))
    assert "--no-rotation" not in called(Settings, "--help", method=None)


@dataclass(frozen=True)
class Columns:
    """Methods."""

    methods: Annotated[tuple[Method, ...], about("methods")] = (Finc(), Fld())


@dataclass(frozen=True)
class Directions:
    """Methods without clusters."""

    methods: Annotated[tuple[Method, ...], about("methods")] = (Finc(clusters=False), Fld())


def test_the_default_of_a_parameter_is_that_of_the_methods_of_the_verb():
    text = called(Directions, "--help")
    assert "For finc; default: False." in text and "--no-clusters" not in text
    assert called(Directions).methods == (Finc(clusters=False), Fld())
    assert called(Directions, "--clusters").methods == (Finc(), Fld())


def test_several_methods_share_their_parameters():
    assert called(Columns) == Columns()
    assert called(Columns, "--novel", 0.1).methods == (Finc(), Fld(novel=0.1))
    chosen = called(Columns, "--methods", "rarity, fld,ken", "--novel", 0.1, "--neighbors", 2)
    assert chosen.methods == (Rarity(novel=0.1, neighbors=2), Fld(novel=0.1), Ken())
    assert "--methods NAME,NAME,… Methods. [default: finc,fld]" in called(Columns, "--help")
    with pytest.raises(UsageError, match="--no-rotation belongs to finc, not to rarity, fld"):
        called(Columns, "--methods", "rarity,fld", "--no-rotation")
    with pytest.raises(UsageError, match=r'--methods must be one of finc, .*got \'kem\' \(did you mean "ken"\?\)'):
        called(Columns, "--methods", "kem")


def test_the_command_line_counts_before_the_file_and_the_file_before_the_defaults(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[compare]\nrho = 3.0\nseed = 7\nmethod = {name = "rarity", novel = 0.2}\n')
    settings = called(Settings, "--config", file, "--seed", 0, "--neighbors", 5)
    assert settings == Settings(rho=3, seed=0, method=Rarity(novel=0.2, neighbors=5))
    assert called(Settings, "--config", file, "--method", "rarity").method == Rarity(novel=0.2)
    assert called(Settings, "--config", file, "--method", "fld").method == Fld()
    file.write_text("[compare]\nroh = 3.0\n")
    with pytest.raises(DataError, match='unknown key "roh"'):
        called(Settings, "--config", file)


def test_a_verb_takes_two_settings_and_sees_which_options_were_given():
    received = []

    @dataclass(frozen=True)
    class Size:
        """Size."""

        width: int = 28

    @takes(SketchSettings, "settings")
    @takes(Size, "size")
    def verb(context: typer.Context, size: Size, settings: SketchSettings, title: str = "none") -> None:
        received.append((size, settings, title, given_options(context, "seed", "width", "kernel")))

    app = typer.Typer(add_completion=False)
    app.command()(verb)
    result = CliRunner().invoke(app, ["--width", "30", "--seed", "0"])
    assert result.exit_code == 0, result.output
    assert received == [(Size(30), SketchSettings(), "none", ["--seed", "--width"])]
