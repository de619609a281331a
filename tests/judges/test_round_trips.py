"""What is written is read back: votes that the page saves, and boards, for texts of every category of Unicode."""

import base64
import csv
import json
import re
import shutil
import subprocess
import unicodedata

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.csv_text import FORMULA_LETTERS, csv_columns, escape, unescape
from finc_eval.core.words import CONTROLS, one_line
from finc_eval.judges.vote_page import vote_page
from finc_eval.judges.votes import read_votes, well_formed

SPECIAL = [
    *"\r\n\t\0\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x85\xa0\u2028\u2029\u200b\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\ufffe",
    *"=+-@＝＋－＠'\"`,;|\\/<>&%$#{}[]()!?*",
    "\r\n",
    '"',
    '""',
    "'=",
    "''@",
    "=cmd|' /C calc'!A0",
    "\t=1+1",
    "\ud800",
    "\udfff",
    "-->",
    "</script>",
    "<!--",
    "🙂",
    "e\u0301",
    "\U000e0001",
    "ﷺ",
]


def texts(count=200):
    """Return unlike texts: special letters alone, at the beginning, in the middle and at the end; all categories."""
    rng = np.random.default_rng(0)
    by_category = {}
    for code in range(0x110000):
        by_category.setdefault(unicodedata.category(chr(code)), []).append(code)
    of_all = [chr(int(rng.choice(codes))) for codes in by_category.values() for _ in range(3)]
    found = [form.format(letter) for letter in (*SPECIAL, *of_all) for form in ("{}", "{}b", "a {} b", "a{}")]
    found = [one for one in dict.fromkeys(found) if one]
    return [found[place] for place in sorted(rng.permutation(len(found))[:count])] + [*SPECIAL]


TEXTS = [*dict.fromkeys(texts())]

STANDS_FOR_A_BROWSER = """
const fs = require("fs"), vm = require("vm"), voter = process.argv[3];
const page = fs.readFileSync(process.argv[2], "utf8");
const [data, script] = [...page.matchAll(/<script[^>]*>([^]*?)<\\/script>/g)].map(one => one[1]);
const found = {}, shown = [];
const at = name => found[name] ??= {
  textContent: name === "data" ? data : "", classList: {toggle() {}}, on: {},
  addEventListener(kind, call) { this.on[kind] = call },
};
let saved = "";
vm.runInNewContext(script, {
  document: {getElementById: at, createElement: () => ({click() {}}), addEventListener() {}},
  history: {replaceState() {}}, localStorage: {getItem() {}, setItem() {}}, crypto: require("crypto").webcrypto,
  Blob: class { constructor(parts) { saved = parts.join("") } }, URL: {createObjectURL() {}, revokeObjectURL() {}},
  setTimeout() {}, atob, TextDecoder, Uint8Array, console,
});
if (voter !== undefined) at("voter").on.input({target: {value: voter}});
for (const _ of JSON.parse(data).trials) { shown.push(at("prompt").textContent); at("choose-left").on.click() }
at("save").on.click();
process.stdout.write(JSON.stringify({saved: Buffer.from(saved, "utf8").toString("base64"), shown}));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return what saves the votes of a page as a browser does, run by node."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    script = tmp_path_factory.mktemp("node") / "vote.js"
    script.write_text(STANDS_FOR_A_BROWSER)

    def save(page, out, *voter):
        done = subprocess.run(["node", str(script), str(page), *voter], capture_output=True, check=True, timeout=60)
        found = json.loads(done.stdout)
        out.write_bytes(base64.b64decode(found["saved"]))
        return out, found["shown"]

    return save


def pictures(place, names, prompts=None, models=("one", "two")):
    """Write small pictures of two models, and their prompts."""
    for model in models:
        (place / model).mkdir(parents=True)
        for name in names:
            Image.new("RGB", (16, 16), (len(name) % 255, 0, 0)).save(place / model / name)
        if prompts is not None:
            rows = [{"file_name": name, "prompt": prompt} for name, prompt in zip(names, prompts, strict=True)]
            (place / model / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {model: str(place / model) for model in models}


@pytest.fixture(scope="module")
def voted(browser, tmp_path_factory):
    """Votes on prompts of all kinds, as the page saves them, and what it showed."""
    place = tmp_path_factory.mktemp("prompts")
    sets = pictures(place, [f"{number:03d}.png" for number in range(len(TEXTS))], TEXTS)
    page = place / "vote.html"
    page.write_text(vote_page(sets, number=1000), encoding="utf-8")
    return page, *browser(page, place / "votes.csv", "=ann, 'the \u2028 voter\"")


def test_every_prompt_that_is_voted_on_is_read_back(voted):
    _, saved, _ = voted
    votes = read_votes(saved, ["one", "two"])
    assert votes.n == len(TEXTS)
    assert {*votes.prompts} == {*map(well_formed, TEXTS)}
    assert votes.voters == ("=ann, 'the \u2028 voter\"",)


def test_no_cell_of_the_saved_votes_begins_as_a_formula_does(voted):
    _, saved, _ = voted
    with saved.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert len(cells) > 5 * 200 and not [one for one in cells if one.startswith((*"=+-@\t\r\n＝＋－＠",))]


def test_the_page_has_no_control_character_and_shows_none(voted):
    page, _, shown = voted
    assert not CONTROLS.search(page.read_text(encoding="utf-8"))
    assert not [one for one in shown if CONTROLS.search(one)]
    assert any("\\u202e" in one for one in shown)


@pytest.mark.parametrize("name", ["=HYPERLINK(1).png", "+1.png", "@SUM.png", "-2.png", "＝x.png", "'=x.png"])
def test_a_name_of_a_file_and_of_a_model_that_is_a_formula_is_escaped_and_read_back(browser, tmp_path, name):
    models = (name.removesuffix(".png"), "@two")
    sets = pictures(tmp_path, [name, "a.png"], models=models)
    (tmp_path / "v.html").write_text(vote_page(sets), encoding="utf-8")
    saved, _ = browser(tmp_path / "v.html", tmp_path / "v.csv", "+voter")
    with saved.open(newline="", encoding="utf-8") as file:
        assert not [cell for row in csv.reader(file) for cell in row if cell[:1] in FORMULA_LETTERS and cell]
    votes = read_votes(saved, models)
    assert {*votes.prompts} == {name.removesuffix(".png"), "a"} and votes.voters == ("+voter",) and votes.n == 2


def test_pairs_of_one_prompt_are_votes_of_their_own(browser, tmp_path):
    sets = pictures(tmp_path, [f"{number}.png" for number in range(12)], ["a dog", "a cat", "a house"] * 4)
    (tmp_path / "v.html").write_text(vote_page(sets), encoding="utf-8")
    saved, _ = browser(tmp_path / "v.html", tmp_path / "v.csv")
    again = tmp_path / "again.csv"
    shutil.copy(saved, again)
    assert read_votes(saved, ["one", "two"]).n == read_votes([saved, again], ["one", "two"]).n == 12


def test_samples_without_a_prompt_are_voted_on_by_their_names(tmp_path):
    sets = pictures(tmp_path, ["x.png", "y.png"], ["a dog", ""])
    data = json.loads(re.search(r'id="data">(.*?)</script>', vote_page(sets), re.DOTALL)[1])
    assert sorted(one[0] for one in data["trials"]) == ["a dog", "y"]


def test_a_prompt_that_no_cell_holds_is_refused_before_anybody_votes(tmp_path):
    with pytest.raises(DataError, match="has 140,000 letters, above the 131,072 of a cell of CSV"):
        vote_page(pictures(tmp_path, ["x.png", "y.png"], ["a" * 140_000, "b"]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 10**40}, "seed must be a whole number of at most"),
        ({"edge": 15}, "edge must be a whole number of at least 16, got 15"),
        ({"edge": 10**9}, "edge must be a whole number of at most 8192"),
        ({"edge": 99.5}, "edge must be a whole number"),
        ({"number": 0}, "number must be a whole number of at least 1"),
    ],
)
def test_numbers_that_no_page_has_are_one_sentence(tmp_path, options, said):
    sets = pictures(tmp_path, ["x.png", "y.png"])
    with pytest.raises(UsageError, match=said):
        vote_page(sets, **options)
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = CliRunner().invoke(app, ["leaderboard", "vote", *sets.values(), *given, "--out", str(tmp_path / "v.html")])
    assert done.exit_code in (2, 3) and not (tmp_path / "v.html").exists()
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("text", TEXTS)
def test_escaping_is_undone_for_every_text(text):
    assert unescape(escape(text)) == text and escape(text)[:1] not in {*FORMULA_LETTERS}


def test_boards_of_all_texts_are_read_back(tmp_path):
    rng = np.random.default_rng(0)
    names = [one for one in map(well_formed, TEXTS) if one.strip() and one.lower() not in ("tie", "ref")]
    names = [*dict.fromkeys([*names[::12], "'=", "''@"])]  # some of all kinds, and the quotes that escapes begin with
    sets = {name: rng.normal(size=(20, 3)) for name in names}
    votes = [
        {"prompt": TEXTS[n % len(TEXTS)] or "p", "left": names[n % 7], "right": names[(n + 1) % 7], "winner": "tie"}
        for n in range(60)
    ]
    board = fe.leaderboard(sets, rng.normal(size=(20, 3)), votes=votes, metrics=["kid"])
    board.to_json(tmp_path / "board.json")
    assert fe.load(tmp_path / "board.json").to_dict() == board.to_dict()
    columns = csv_columns(board.to_csv(), "the board")
    named = next(own for own in columns.values() if own[0] in {*map(one_line, names)})
    assert {*named} >= {*map(one_line, names)}
    assert not [cell for own in columns.values() for cell in own if CONTROLS.search(cell)]
