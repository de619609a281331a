"""One set of common options: the same in every verb where they make sense, and shown alike."""

import os
import re
import subprocess
import sys
from functools import cache

import pytest
from typer.testing import CliRunner

from finc_eval.cli.app import VERBS, app

WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
EMBED = (
    "compare",
    "evaluate",
    "kinds",
    "monitor",
    "extract",
    "extract sketch",
    "score",
    "compare sweep",
    "compare methods",
    "metrics",
    "audit",
    "gate",
)
EMBED_IN_GROUPS = (
    *(f"kahm {verb}" for verb in ("fit", "classify", "fabricate", "membership", "federate")),
    *(f"leaderboard {verb}" for verb in ("rank", "add")),
    *(f"private sketch {verb}" for verb in ("release", "score", "compare")),
)
GROUPED = {
    "kahm": ("fit", "classify", "fabricate", "membership", "federate"),
    "leaderboard": ("rank", "add", "remove", "show", "render", "vote"),
    "private sketch": ("release", "score", "compare", "merge", "inspect"),
    "doctor extractors": ("list", "show", "check"),
    "doctor weights": ("list", "fetch", "verify", "where"),
    "extract cache": ("ls", "explain", "verify", "rm"),
}
IN_GROUPS = tuple(f"{group} {verb}" for group, verbs in GROUPED.items() for verb in verbs)
RESULTS = (*EMBED, *IN_GROUPS, "report", "compare changes", "demo", "doctor", "private generate", "private utility")


@cache
def help_of(verb):
    for flag in ("--help-all", "--help"):
        shown = CliRunner().invoke(app, [*verb.split(), flag], env=WIDE)
        if shown.exit_code == 0:
            return shown.stdout
    raise AssertionError(shown.output)


def test_the_help_of_compare_fits_a_screen_and_shows_all_on_request():
    shown, every = (CliRunner().invoke(app, ["compare", flag], env=WIDE).stdout for flag in ("--help", "--help-all"))
    options = re.findall(r"^│ \*? *(--[\w-]+)", shown, re.M)
    assert len(options) <= 18 and {"--gen", "--ref", "--out", "--extractor", "--help-all"} <= set(options)
    assert "--features" in every and "--features" not in shown
    assert "compare sweep" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compare", "gone", "more"], "gone does not exist"),
        (["compare", "here", "gone"], "gone does not exist"),
        (["compare", "--n", "60", "gone", "here"], "gone does not exist"),
        (["metrics", "here", "gone"], "gone does not exist"),
        (["here", "gone"], "gone does not exist"),
        (["here", "--n", "60", "gone"], "gone does not exist"),
        (["compare", "here"], "two sets are compared, got here:"),
        (["compare", "here", "here", "here"], "two sets are compared, got here here here:"),
        (["compare", "here", "--ref", "here"], "two sets are compared, got here:"),
    ],
)
def test_two_sets_are_given_as_two_words_and_compare_may_be_left_out(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3 and told in done.stderr, done.output


def test_a_word_that_is_neither_a_verb_nor_a_path_is_refused():
    for word in ("compar", "x" * 5000):
        done = CliRunner().invoke(app, [word, "real"])
        assert done.exit_code != 0 and "No such command" in done.stderr


@pytest.mark.one_of_each(by=lambda verb: EMBED_IN_GROUPS.count(verb))
@pytest.mark.parametrize("verb", [*EMBED, *EMBED_IN_GROUPS])
def test_a_verb_that_embeds_has_the_options_of_all_that_do(verb):
    text = help_of(verb)
    options = ("--extractor", "--n", "--strict", "--device", "--batch-size", "--workers", "--quiet", "--config")
    assert [option for option in options if not re.search(rf"{option} ", text)] == []


@pytest.mark.parametrize("verb", RESULTS)
def test_every_verb_prints_json_and_shows_it_as_a_flag(verb):
    line = next(line for line in help_of(verb).splitlines() if "--json" in line)
    assert "<bool>" not in line and re.search(r"--json +Print the result as JSON", line)


def test_flags_are_shown_without_a_type():
    for verb in ("", "compare", "extract cache rm", "doctor"):
        assert "<bool>" not in help_of(verb)


def test_the_help_has_a_group_for_every_question():
    assert list(VERBS) == ["Compare", "Rank and gate", "Privacy", "Files"]
    text = help_of("")
    assert all(f"─ {heading} ─" in text for heading in VERBS)
    assert "finc-eval.toml" in text and "--install-completion" in text


def completions(words, shell="bash"):
    """Return the words that the shell offers after these."""
    environment = {
        **os.environ,
        "_FINC_EVAL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
    }
    code = "import sys; sys.argv = ['finc-eval']; from finc_eval.cli import main; main()"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    return made.stdout.split()


@pytest.mark.long
def test_the_shell_completes_verbs_and_options():
    assert completions("finc-eval com") == ["compare"]
    assert {"list", "show", "check"} == set(completions("finc-eval doctor extractors "))
    offered = completions("finc-eval compare --fea")
    assert offered == ["--features"]
