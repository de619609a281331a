"""An option that is given twice is both, or an error: every option of every verb, from the command line's own list."""

import pytest
from _every_verb import VERBS_BY_NAME, options_of

import finc_eval as fe
from finc_eval.cli.repeats import takes_several


def parsed(command, *words):
    """Return what the parser of a verb gives to its options."""
    context = command.context_class(command, info_name="verb")
    return command.make_parser(context).parse_args(list(words))[0]


@pytest.mark.parametrize("name", VERBS_BY_NAME)
def test_an_option_that_is_given_twice_is_both_or_an_error(name):
    command = VERBS_BY_NAME[name]
    for option in options_of(command):
        written = option.opts[0]
        if option.is_flag:
            assert parsed(command, written, written)[option.name] == parsed(command, written)[option.name]
            for other in option.secondary_opts:
                with pytest.raises(fe.UsageError, match=f"{written} and {other} contradict each other"):
                    parsed(command, written, other)
                with pytest.raises(fe.UsageError, match="contradict each other"):
                    parsed(command, other, written)
        elif option.multiple:
            assert parsed(command, written, "1", f"{written}=2")[option.name] == ["1", "2"]
        elif takes_several(option):
            assert parsed(command, written, "1,2", f"{written}=3")[option.name] == "1,2,3"
        else:
            said = f"{written} takes one value, and is given '1' and '2': give it once"
            with pytest.raises(fe.UsageError, match=said):
                parsed(command, written, "1", f"{written}=2")
            assert parsed(command, written, "1", written, "1")[option.name] == "1"


def test_there_are_options_of_each_kind_in_the_list():
    every = [option for command in VERBS_BY_NAME.values() for option in options_of(command)]
    assert len(VERBS_BY_NAME) > 40 and len(every) > 500
    assert {"metrics", "names", "values", "methods", "include"} <= {one.name for one in every if takes_several(one)}
    assert {"again", "extractor", "baseline", "party"} <= {one.name for one in every if one.multiple}
    assert not any(takes_several(one) for one in every if one.name in ("range", "bounds"))


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--metrics", "fd", "--metrics", "kid, mmd"], ("fd", "kid", "mmd")),
        (["--metrics=fd,kid"], ("fd", "kid")),
        (["--metrics", "fd", "--metrics", "fd"], ("fd", "fd")),
    ],
)
def test_a_verb_gets_all_values(words, values):
    command = VERBS_BY_NAME["metrics"]
    context = command.make_context("metrics", ["--gen", "a", "--ref", "b", *words])
    assert context.params["names"] == values


def test_the_command_line_overrides_the_file_of_defaults_and_gives_an_option_once(tmp_path, monkeypatch):
    from _verbs import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "finc-eval.toml").write_text('[compare]\nfeatures = 30\n[extract]\nextractor = "pixels"\n')
    for words in (("--features", 40), ("--features", 40, "--features", 40)):
        assert "absent does not exist" in run("compare", "--gen", "absent", "--ref", "absent", *words).stderr
    found = run("compare", "--gen", "absent", "--ref", "absent", "--features", 40, "--features", 50)
    assert found.exit_code == 3
    assert found.stderr == "finc-eval: --features takes one value, and is given '40' and '50': give it once\n"
