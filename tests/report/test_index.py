"""The index of a folder: a row for each result, the sentence of what cannot be read, and links to pages."""

import json
import re
import shutil
from urllib.parse import unquote

import numpy as np
import pytest
from _pages import HOSTILE, Page
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.report import outline
from finc_eval.report.index import MAX_PROBLEMS
from finc_eval.results import RESULTS

STRANGE = "a b#c?d%20'&;javascript:x"


def run(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    return result.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def written(documents, tmp_path_factory):
    """A folder with every result and its page; two of them in folders below it."""
    folder = tmp_path_factory.mktemp("written")
    for name, result in documents.items():
        if name == "sketch":
            result.save(folder / "private.h5")
            continue
        place = folder / {"scores": f"{STRANGE}/x", "audit": "deep"}.get(name, ".")
        result.to_json(place / f"{name}.json")
        result.to_html(place / f"{name}.html")
    documents["comparison"].save(folder / "comparison.h5")
    return folder


@pytest.fixture
def folder(written, tmp_path):
    shutil.copytree(written, tmp_path / "all")
    return tmp_path / "all"


def cards(page):
    """The text of each entry by the file that it names."""
    return {page.texts("code", inside=n)[0]: n for n in page.find("article", "card")}


def test_an_index_has_every_result_once_with_its_finding_and_a_link(folder, documents):
    done = run(folder)
    assert done.exit_code == 0 and done.stdout.strip() == str(folder / "index.html")
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    found = cards(page)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.json")}
    assert set(found) == names and [*found] == sorted(names) and len(names) == len(RESULTS)
    for name, card in found.items():
        said = outline(fe.load(folder / name))
        link, own = (page.attributes(n)["href"] for n in page.find("a", inside=card))
        assert own == f"#{page.attributes(card)['id']}"
        assert link.startswith("./") and (folder / unquote(link)).is_file()
        assert unquote(link) == "./" + name.replace(".json", ".html")
        assert page.texts("p", "says", card) == [" ".join(said.headline.split())]
        assert page.texts("h3", inside=card) == [said.title] and said.kind in page.text(card)
    assert page.texts("p", "summary") == [f"{len(RESULTS)} results."]
    assert "Failures: none." in page.visible


def test_an_index_is_the_same_the_second_time_and_has_no_date(folder):
    run(folder)
    first = (folder / "index.html").read_bytes()
    assert run(folder).exit_code == 0
    assert (folder / "index.html").read_bytes() == first
    night = fe.load(folder / "night.json").night.encode()  # a night is called by its date
    assert not re.search(rb"20\d\d-\d\d|[T ]\d\d:\d\d", first.replace(night, b""))


def test_what_is_not_a_result_is_one_sentence_and_not_fatal(folder):
    lost = "8 files could not be read as a result, see the end of the page."
    (folder / "foreign.json").write_text('{"a": 1}')
    (folder / "list.json").write_text("[1]")
    text = (folder / "kinds.json").read_text(encoding="utf-8")
    (folder / "damaged.json").write_text(text[:300])
    methods = json.loads((folder / "methods.json").read_text(encoding="utf-8"))
    methods["groups"] = []
    (folder / "changed.json").write_text(json.dumps(methods))
    (folder / "old.json").write_text(json.dumps(json.loads(text) | {"layout": 1}))
    (folder / "other.h5").write_bytes(b"nonsense")
    (folder / "comparison.h5").rename(folder / "alone.h5")
    damaged = bytearray((folder / "alone.h5").read_bytes())
    damaged[-100] ^= 255
    (folder / "broken.h5").write_bytes(damaged)
    (folder / f"{HOSTILE.replace('/', '')}.json").write_text("{")
    assert run(folder).exit_code == 0
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    told = page.texts("li", inside=page.find("footer")[0])
    names = ["broken.h5", "changed.json", "damaged.json", "foreign.json", "list.json", "old.json", "other.h5"]
    assert [one.split(" ")[0] for one in told] == ["<img", *names]
    assert all(str(folder) not in one and one.endswith("again") for one in told)
    assert page.texts("p", "summary") == [f"{len(RESULTS) + 1} results. {lost}"]
    assert "alone.h5" in cards(page) and not page.find("img")
    assert page.texts("span", "legend", cards(page)["alone.h5"])[0].endswith("; no page")


def test_files_beyond_the_limit_are_counted(tmp_path):
    for number in range(MAX_PROBLEMS + 7):
        (tmp_path / f"{number:03}.json").write_text("{}")
    assert run(tmp_path).exit_code == 0
    page = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    told = page.texts("li", inside=page.find("footer")[0])
    assert len(told) == MAX_PROBLEMS + 1 and told[-1] == "7 more files could not be read as a result."
    assert "No result was found." in page.visible


def test_a_page_of_another_result_is_not_linked(folder, documents):
    documents["sweep"].to_html(folder / "kinds.html")
    run(folder)
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    (title,) = page.find("h3", inside=cards(page)["kinds.json"])
    assert not page.find("a", inside=title)
    assert page.find("a", inside=cards(page)["sweep.json"])


def test_links_lead_from_where_the_index_is(folder, tmp_path):
    out = tmp_path / "elsewhere" / "all.html"
    assert run(folder, "--out", out).exit_code == 0
    page = Page(out.read_text(encoding="utf-8"))
    links = [page.attributes(n)["href"] for n in page.find("a", inside=page.find("article")[0])]
    assert links and (out.parent / unquote(links[0])).resolve().is_file()


def test_an_index_replaces_no_other_file(folder, tmp_path):
    (folder / "index.html").write_text("my own page")
    assert "index.html exists, and this command with these inputs did not make it" in refused(folder)
    assert "must end in .html, got" in refused(folder, "--out", tmp_path / "x.pdf")
    assert "leave out --format, --samples and --gallery" in refused(folder, "--format", "md")
    assert run(folder, "--force").exit_code == 0
    other = tmp_path / "other"
    other.mkdir()
    assert "did not make it" in refused(other, "--out", folder / "index.html")


@pytest.mark.one_of_each
@pytest.mark.parametrize("form, suffix", [("md", ".md"), ("csv", ".csv"), ("html", ".html")])
def test_a_result_is_written_in_every_form_and_replaces_only_its_own(folder, documents, form, suffix):
    for name in ("scores", "comparison", "private-score"):
        path = next(folder.rglob(f"{name}.json"))
        out = path.with_suffix(suffix)
        assert run(path, "--format", form).exit_code == 0
        expected = {"md": documents[name].to_markdown, "csv": documents[name].to_csv}.get(form)
        assert expected is None or out.read_text(encoding="utf-8") == expected()
        assert run(path, "--format", form).exit_code == 0
        assert "did not make it" in refused(folder / "kinds.json", "--format", form, "--out", out)
        out.write_text("mine")
        assert "did not make it" in refused(path, "--format", form)
        assert run(path, "--format", form, "--force").exit_code == 0


def test_a_folder_without_results_gets_no_index(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    assert "holds no results of finc-eval" in refused(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.png"]


def test_a_file_that_is_not_a_result_is_refused_in_a_sentence(folder, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4))
    (tmp_path / "x.json").write_text("{}")
    assert "x.json is not a result of finc-eval" in refused(tmp_path / "x.json")
    assert "x.npy is not a result of finc-eval" in refused(tmp_path / "x.npy")
    assert "private.h5 is a private sketch, which finc-eval evaluate, private" in refused(folder / "private.h5")
    assert "gone.h5 does not exist" in refused("gone.h5")
    assert "--samples is NAME=PATH, got gen: write" in refused(folder / "kinds.json", "--samples", "gen")
    twice = ("--samples", "gen=a/", "--samples", "gen=b/")
    assert "--samples has gen twice" in refused(folder / "kinds.json", *twice)
    assert "must end in .md, got x.html" in refused(folder / "kinds.json", "--format", "md", "--out", "x.html")
