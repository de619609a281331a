"""Small texts that would take quadratic time or much memory are read in bounded time, or are one sentence."""

import json
import random
import re
import zipfile

import numpy as np
import pytest
from _bounded import bounded

import finc_eval as fe
from finc_eval.cli.options import read_defaults
from finc_eval.core.errors import DataError, close_match, did_you_mean
from finc_eval.core.files.parsed import foreign_json, parse_json, parse_toml
from finc_eval.embeddings.columns import metadata_table
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.extractors.catalog import load_card
from finc_eval.gates.policy import Policy
from finc_eval.leaderboards.entry import _version
from finc_eval.naming.evidence import UniqueNames
from finc_eval.private.synthesis.files import read_columns
from finc_eval.private.synthesis.tabular import Table
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_clips, open_source
from finc_eval.samples.tar import expand

LONG_KEY = "has a key of more than 8 words"
DOTS = ".".join("a" * 20_000)

TOML = {
    "a key of 20,000 words": (f"{DOTS} = 1", LONG_KEY),
    "a key of 20,000 quoted words": (".".join(['"a"'] * 20_000) + " = 1", LONG_KEY),
    "a key of 20,000 empty words": (".".join(["''"] * 20_000) + " = 1", LONG_KEY),
    "a key of 20,000 words between spaces": (" \t.\t ".join("a" * 20_000) + " = 1", LONG_KEY),
    "a table of 20,000 words": (f"[{DOTS}]", LONG_KEY),
    "a list of tables of 20,000 words": (f"[[{DOTS}]]", LONG_KEY),
    "a table in a line with a key of 20,000 words": (f"x = {{{DOTS} = 1}}", LONG_KEY),
    "many keys of 8 words": ("\n".join(f"k{i}{'.a' * 7} = 1" for i in range(10_000)), "dict"),
    "many tables of 8 words": ("\n".join(f"[k{i}{'.a' * 7}]" for i in range(1_000)), "dict"),
    "more tables of 8 words": ("\n".join(f"[k{i}{'.a' * 7}]" for i in range(4_000)), "dict"),
    "lists within lists": ("x = " + "[" * 200_000, "nested too deeply"),
    "tables within tables": ("x = " + "{a = " * 50_000, "nested too deeply"),
    "a number of 200,000 digits": (f"x = {'9' * 200_000}", "Exceeds the limit"),
    "a hexadecimal number of 200,000 digits": (f"x = 0x{'9' * 200_000}", "must be a finite number"),
    "200,000 quotes": ('"' * 200_000, "cannot be read"),
    "a word of 200,000 letters": ("a" * 200_000, "cannot be read"),
    "a text of 2 MB": ("#" * (2 << 20), "has 2,097,152 letters, above the 262,144 of a TOML file: make it shorter"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=[pytest.mark.long] * one.startswith(("more", "many keys"))) for one in TOML]
)
def test_toml(case):
    text, told = TOML[case]
    assert told in bounded(lambda: type(parse_toml(text, "t.toml")).__name__)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "read", [Policy.of, load_card, Table.load, fe.Settings.read, lambda path: read_defaults(fe.Settings, path)]
)
def test_every_toml_file_is_bounded(read, tmp_path):
    (tmp_path / "a.toml").write_text(f"{DOTS} = 1")
    assert LONG_KEY in bounded(read, tmp_path / "a.toml")


RECORDS = {
    "one long text": (lambda: "a,b\n" + "x,1\n" * 20_000 + "y" * 100_000 + ",2\n", "with its longest texts takes 8 GB"),
    "10,000 columns of nothing": (
        lambda: ",".join(f"c{n}" for n in range(10_000)) + "\nx" * 20_000,
        "with 10,000 columns takes 3.2 GB",
    ),
}


@pytest.mark.parametrize("case", RECORDS)
def test_tables_of_private_records(case, tmp_path):
    text, told = RECORDS[case]
    (tmp_path / "a.csv").write_text(text())
    assert told in bounded(lambda: str(len(read_columns(tmp_path / "a.csv"))))


JSON = {
    "lists within lists": (lambda: "[" * 10**6, "nested too deeply"),
    "tables within tables": (lambda: '{"a":' * 10**6, "nested too deeply"),
    "a number of a million digits": (lambda: "9" * 10**6, "is too large"),
    "a fraction of a million digits": (lambda: "0." + "9" * 10**6, "float"),
    "a number with a huge exponent": (lambda: "1e999999999", "not a finite number"),
    "17 million empty tables": (lambda: "[" + "{}," * 17_000_000 + "0]", "when decoded"),
    "17 million empty lists": (lambda: "[" + "[]," * 17_000_000 + "0]", "when decoded"),
    "100,000 keys": (lambda: json.dumps(dict.fromkeys(map(str, range(100_000)))), "dict"),
}


@pytest.mark.one_of_each(by=lambda case: JSON[case][1])
@pytest.mark.parametrize("case", JSON)
def test_json(case):
    text, told = JSON[case]
    assert told in bounded(lambda: type(parse_json(text())).__name__)


@pytest.mark.parametrize("text", ["[" * 60 + "]" * 60, '{"a":' * 60 + "0" + "}" * 60], ids=["lists", "tables"])
def test_json_of_other_programs_that_is_nested_deeper_than_they_write_it(text):
    with pytest.raises(DataError, match="nested too deeply"):
        foreign_json(text, "a.json")


def rows(count, row):
    return "\n".join(json.dumps(row(number)) for number in range(count))


IDS = [f"{number}.png" for number in range(300)]

TABLES = {
    "rows with a key each.jsonl": (
        lambda: rows(3_000, lambda n: {"file_name": f"{n}.png", f"k{n}": 1}),
        "has 433 columns in its first 432 rows",
    ),
    "20,000 columns.csv": (
        lambda: "file_name," + ",".join(f"c{n}" for n in range(20_000)) + ("\n" + "," * 19_999) * 20,
        "has more than 10,000 columns: leave out columns that are not needed",
    ),
    "20,000 columns.jsonl": (
        lambda: rows(1, lambda n: {"file_name": "0.png", **{f"c{n}": 1 for n in range(20_000)}}),
        "has more than 10,000 columns",
    ),
    "9,000 columns of nothing.csv": (
        lambda: "file_name," + ",".join(f"c{n}" for n in range(9_000)) + ("\n0.png" + "," * 9_000) * 200,
        r"with 9,001 columns of 17\d values takes 10\d MB",
    ),
    "a million rows of nothing.csv": (
        lambda: "id,b\n" + ",\n" * 1_000_000,
        r"with 2 columns of (781,251|800,000) values",
    ),
    "a field of a megabyte.csv": (lambda: "file_name,b\n0.png," + "a" * 1_000_000, "field larger than field limit"),
    "a megabyte in open quotes.csv": (
        lambda: 'file_name,b\n0.png,"' + "a\n" * 500_000,
        "field larger than field limit",
    ),
    "a row of 10 MB in quotes.csv": (
        lambda: "file_name,b\n" + '"\n",' * 2_500_000,
        "has a row of more than 4,194,304 letters: close its quotes",
    ),
    "a long first line.csv": (lambda: "file_name" + ",a" * 6_000_000, "has a row of more than 4,194,304 letters"),
    "a row of lists.jsonl": (lambda: "[" + "[]," * 1_000_000 + "[]]", "takes .* when decoded"),
    "a million lists.jsonl": (lambda: "[]\n" * 10**6, "(must be|not) a row of named values"),
    "a key of 100 kB.jsonl": (lambda: rows(100, lambda n: {"file_name": f"{n}.png", "k" * 100_000: 1}), "300 samples"),
}

SLOW_TABLES = ("9,000 columns of nothing.csv", "a million rows of nothing.csv")
"""Rows with a key each are refused for the same size."""


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.long] * (one in SLOW_TABLES)) for one in TABLES])
def test_tables_of_metadata_beside_a_set_and_in_its_folder(case, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "100MB")
    make, told = TABLES[case]
    path = tmp_path / f"metadata.{case.rpartition('.')[2]}"
    path.write_text(make())

    def beside():
        columns, _ = metadata_table(path, IDS)
        return f"{len(next(iter(columns.values())))} samples"

    def within():
        source = open_source(tmp_path)
        return f"{len(source.ids)} samples"

    for name in IDS:
        (tmp_path / name).touch()
    found = bounded(beside)
    assert re.search(told, found), found
    if path.open().read(20).startswith(("file_name", '{"file_name')):
        found = bounded(within)
        assert re.search(told, found), found


@pytest.mark.long
def test_columns_of_a_folder_of_many_samples(tmp_path):
    for number in range(2_000):
        (tmp_path / f"{number}.png").touch()
    columns = ",".join(f"c{n}" for n in range(9_000))
    (tmp_path / "metadata.csv").write_text(f"file_name,{columns}\n0.png{',1' * 9_000}\n")
    found = bounded(open_source, tmp_path)
    assert "metadata.csv with 9,000 columns of 2,000 values takes 1.15 GB when decoded" in found


NAMES = {
    "digits": "9" * 60_000,
    "zeros": "0" * 60_000,
    "letters and digits": "a1" * 30_000,
    "points": "a" + "." * 60_000,
    "slashes": "a/" * 30_000 + "a",
    "commas in a brace": "{" + "," * 60_000,
    "braces": "{" * 60_000,
    "hashes": "#1" * 30_000,
}


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=[pytest.mark.long] * (one in ("zeros", "points", "slashes", "hashes"))) for one in NAMES],
)
def test_names_in_an_archive(case, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"a/{NAMES[case]}{number}.png", b"")
    assert bounded(lambda: len(open_source(tmp_path / "a.zip").ids)) == "20"
    assert bounded(lambda: len(open_clips(tmp_path / "a.zip", Clip(2, 1, 1, "loop")).ids)).isdigit()
    assert bounded(lambda: len(expand(NAMES[case]))) == "1"


def shuffled(seed):
    return "".join(random.Random(seed).sample([chr(0x4E00 + number) for number in range(101)] * 396, 39_996))


WORDS = {
    "the same letter": ("a" * 10**6, ["a" * 10**6 + "b", "a" * 999_999]),
    "the same letters in other orders": (shuffled(0), [shuffled(1)]),
    "many words": ("abcdefgh" * 10, [f"abcdefgh{number}" * 8 for number in range(10_000)]),
}


@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=[pytest.mark.long] * one.startswith("many")) for one in WORDS]
)
def test_the_nearest_of_long_words(case):
    word, known = WORDS[case]
    assert "TRACEBACK" not in bounded(did_you_mean, word, known)
    assert "TRACEBACK" not in bounded(close_match, word, known)


def test_a_word_is_still_found_among_long_ones():
    assert close_match("settigns", ["a" * 10**6, "settings"]) == "settings"
    assert did_you_mean("settigns", ["a" * 10**6, "settings"]) == ' (did you mean "settings"?)'


def test_the_version_of_an_entry():
    assert bounded(_version, "9" * 10**6).startswith("(999999999")


def test_a_policy_of_thousands_of_limits(tmp_path):
    limits = "\n".join(f"[slices.s{number}]\nlose = 0.1" for number in range(2_000))
    (tmp_path / "p.toml").write_text(limits)
    assert "TRACEBACK" not in bounded(Policy.of, tmp_path / "p.toml")


def test_10_000_names_with_one_beginning():
    class Named:
        evidence = ()

        def __init__(self, number):
            self.id, self.name = f"m{number}", f"{'night, ' * 20}{number}"
            self.title = self.name

    def read():
        modes = [Named(number) for number in range(10_000)]
        names = UniqueNames(modes)
        return len({names.title(mode) for mode in modes})

    assert bounded(read) == "10000"


@pytest.mark.long
def test_ids_of_a_megabyte(tmp_path):
    rng = np.random.default_rng(0)
    ids = np.array([f"{number}" + "x" * 100_000 for number in range(60)])
    np.savez(tmp_path / "a.npz", embeddings=rng.normal(size=(60, 4)).astype("float32"), ids=ids)
    found = bounded(
        lambda: fe.compare(tmp_path / "a.npz", rng.normal(size=(60, 4)).astype("float32"), features=20).to_dict()
    )
    assert "TRACEBACK" not in found
    assert bounded(lambda: as_embeddings(tmp_path / "a.npz").n) == "60"


def test_what_is_refused_is_an_error_of_the_data():
    with pytest.raises(DataError, match=LONG_KEY):
        parse_toml(f"{DOTS} = 1", "t.toml")
