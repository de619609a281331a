"""The work for a text of others grows as the text does: eight times the text takes about eight times as long."""

import json
import os
import resource
import tempfile
import zipfile
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from _bounded import bounded

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.core.files.csv_text import csv_table
from finc_eval.extractors.settings import Extraction
from finc_eval.judges.choosing import choose_judges
from finc_eval.judges.doubts import say_doubts
from finc_eval.judges.scores import read_scores
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.votes import read_votes
from finc_eval.leaderboards.standings import Criterion
from finc_eval.naming.evidence import UniqueNames
from finc_eval.report.exports.paper import _shares
from finc_eval.samples.files import files_in
from finc_eval.samples.metadata import find_metadata
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import MAX_PATTERN_LETTERS, Reading, matches

TIMES = 8
"""How much larger the larger text is."""

SLOWER = 4 * TIMES
"""How much longer it may take: a loaded machine doubles a time, and quadratic work would take 64 times as long."""

LEAST_SECONDS = 0.02
"""Seconds that count for a time that is too short to be measured."""


def measured(call):
    """Return the CPU seconds of a call; the sentence that it may raise counts as its end."""

    def timed():
        start = resource.getrusage(resource.RUSAGE_SELF)
        with suppress(FincEvalError):
            call()
        end = resource.getrusage(resource.RUSAGE_SELF)
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime

    return float(bounded(timed))


def metadata(ids, text):
    """Read metadata.jsonl of samples with these ids."""
    content = {"metadata.jsonl": text.encode(), **dict.fromkeys(ids, b"")}
    return find_metadata(ids, "x", lambda name, most=None: content[name])


def named(count, name):
    class Named:
        evidence = ()

        def __init__(self, number):
            self.id, self.name = f"m{number}", name(number)
            self.title = self.name

    modes = [Named(number) for number in range(count)]
    names = UniqueNames(modes)
    return [names.title(mode) for mode in modes]


def ranked(count):
    """Look up a model of a board as often as it has models."""
    names = tuple(f"{'night, ' * 20}{number}" for number in range(count * 40))
    signature = fe.Signature("x", ())
    criterion = Criterion("x", "x", False, False, names, (), ((0.0,),), 0, 0, None, None, signature)
    return [criterion.better(name, "none", 0.05) for name in names]


NAME = "a" * 60_000
"""The longest name of a member of a zip file has 65,535 letters."""


def choose(pattern, name=NAME):
    return matches(pattern, name)


def nested(depth):
    """List a file in a folder that lies as deep as some."""
    with tempfile.TemporaryDirectory() as root:
        with chdir(root):
            for _ in range(depth):
                Path("d").mkdir()
                os.chdir("d")
            Path("a.png").touch()
        return [*files_in(Path(root))]


def judged(text, judges=()):
    """Read a table of scores of two models, choose its judges, and look for what is doubtful."""
    with tempfile.TemporaryDirectory() as root:
        path = Path(root, "scores.any")
        path.write_text(text)
        scores, _ = choose_judges(read_scores({"one": str(path), "two": str(path)}, ["one", "two"], judges), judges)
        return say_doubts(scores)


def voted(text):
    with tempfile.TemporaryDirectory() as root:
        path = Path(root, "votes.csv")
        path.write_text(text)
        return Strengths.of(read_votes(path, ["a", "b"])).upset()


HEADING = "prompt,left,right,winner,voter\n"

GROWING = {
    "folders within folders": lambda n: nested(60 * n),
    "stars of a pattern": lambda n: choose("*a" * (40 * n) + "b"),
    "stars over folders of a pattern": lambda n: choose("**a" * (40 * n) + "b"),
    "folders of a pattern": lambda n: choose("**/*/" * (12 * n) + "b", "a/" * 3_000),
    "letters of a name": lambda n: choose("*a*a*a*b", "a" * 8_000 * n),
    "letters of a name in folders": lambda n: choose("**/*a/**/*a*a/b", "a/" * 4_000 * n),
    "letters behind a star": lambda n: choose("**" + "?" * (60 * n) + "b"),
    "sets of letters": lambda n: choose("*[!b]" * (40 * n) + "b"),
    "brackets of a pattern": lambda n: choose("[" * (400 * n)),
    "keys of the first row, and ids": lambda n: metadata(
        [f"{k}.png" for k in range(2_500 * n)], json.dumps({f"k{k}": f"v{k}" for k in range(2_500 * n)})
    ),
    "columns of a table, the last one twice": lambda n: csv_table(
        [",".join([*(f"c{k}" for k in range(1_200 * n)), "z", "z"])], "a.csv"
    ),
    "scores that each have a column": lambda n: judged(
        "".join(json.dumps({"id": str(k), f"judge {k}": 0.5}) + "\n" for k in range(400 * n))
    ),
    "columns of scores": lambda n: judged(
        "\n".join([",".join(f"judge {k}" for k in range(1_000 * n)), *[",".join(["0.5"] * 1_000 * n)] * 5])
    ),
    "rows of scores": lambda n: judged("id,clip\n" + "".join(f"{k}.png,{k % 7}\n" for k in range(4_000 * n))),
    "votes on models that the board lacks": lambda n: voted(
        HEADING + "".join(f"p,x{k},y{k},tie,v\n" for k in range(3_000 * n))
    ),
    "votes that each have a prompt and a voter": lambda n: voted(
        HEADING + "".join(f"p{k},a,b,{'ab'[k % 3 == 0]},v{k}\n" for k in range(2_000 * n))
    ),
    "a vote that stands many times": lambda n: voted(
        HEADING + "".join(f"p,a,b,{'ab'[k % 3 == 0]},v\n" for k in range(2_000 * n))
    ),
    "names with one beginning": lambda n: named(1_000 * n, lambda k: f"{'night, ' * 20}{k}"),
    "a board of models": lambda n: ranked(40 * n),
    "a column of shares": lambda n: _shares({"shares." * (1_000 * n): 0.0}),
    "a list of labels": lambda n: _shares({f"{'shares.' * (1_000 * n)}a.interval.low!": 0.0}),
    "the same name": lambda n: named(1_000 * n, lambda k: "night"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", GROWING)
def test_eight_times_the_text_takes_about_eight_times_as_long(case):
    small, large = (measured(lambda n=n: GROWING[case](n)) for n in (1, TIMES))
    assert large < SLOWER * max(small, LEAST_SECONDS)


def test_a_pattern_of_the_working_folder_is_decided_at_once(tmp_path):
    (tmp_path / ("a" * 200 + ".png")).touch()
    assert "no images that the patterns choose" in bounded(lambda: open_source(tmp_path, include=["*a" * 40 + "b"]))
    assert bounded(lambda: len(open_source(tmp_path, exclude=["*a" * 40 + "b"]).ids)) == "1"


def test_patterns_have_a_limit_together():
    most = Reading(include=["a" * 10] * (MAX_PATTERN_LETTERS // 10))
    assert most.takes("a" * 10)
    with pytest.raises(
        fe.UsageError, match="include has 4,010 letters, above the 4,000 of all its patterns: shorten the"
    ):
        Reading(include=[*most.include, "a" * 10])
    with pytest.raises(fe.UsageError, match=r"the pattern '\[z-a\].png' has a wrong set of letters, bad"):
        Extraction(exclude=("[z-a].png",))


def test_numbers_of_thousands_of_digits_are_names(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("9" * 5_000 + ".png", b"")
        archive.writestr("0" * 5_000 + "1.png", b"")
        archive.writestr("prompts.txt", "a cat\na dog\n")
    assert "a sample has the number 999999999999999999" in bounded(open_source, tmp_path / "a.zip")
