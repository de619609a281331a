"""All pages are of one family, and every result has all outputs, whether a verb or Python made it."""

import json
import re
from dataclasses import replace
from functools import cache

import pytest
from _pages import Page, is_shown, table_rows

from finc_eval import report
from finc_eval.core.provenance import GitState
from finc_eval.report.pages import environment
from finc_eval.report.terminal import PLAIN
from finc_eval.results import RESULTS

COMMAND = "finc-eval verb --gen /far/away/gen --ref ref"


def policy_of(page):
    return next(
        page.attributes(n)["content"]
        for n in page.find("meta")
        if page.attributes(n).get("http-equiv") == "Content-Security-Policy"
    )


@pytest.fixture(scope="module")
def page_of(documents):
    """Return the text of the page of a type, which is drawn once."""
    return cache(lambda type_name: report.page(documents[type_name], {}))


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_page_has_the_header_the_navigation_and_the_policy_of_the_family(documents, page_of, type_name):
    page, said = Page(page_of(type_name)), report.outline(documents[type_name])
    assert page.texts("p", "brand") == [f"finc-eval {said.kind}"]
    assert page.texts("title", inside=page.find("head")[0]) == [f"{said.title} – finc-eval"]
    links = {page.attributes(n)["href"][1:]: page.text(n) for n in page.find("a", inside=page.find("nav")[0])}
    headings = {page.attributes(n)["id"]: page.text(n) for n in page.find("h2") if "id" in page.attributes(n)}
    assert links.items() <= headings.items() and {"how", "reproduce"} < set(links)
    assert page.texts("p", "summary") and page.texts("p", "summary")[0] == " ".join(said.headline.split())
    assert policy_of(page).startswith("default-src 'none'; img-src data:; style-src 'sha256-")


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_page_refers_to_nothing_outside_itself_and_its_links_lead_to_its_parts(page_of, type_name):
    text = page_of(type_name)
    page = Page(text)
    assert not re.search(r"https?://|@import|url\((?!#)|innerHTML|fetch|blob:|style=|\son\w+=", text)
    elements = [page.attributes(n) for n, _ in enumerate(page.elements)]
    ids = [one["id"] for one in elements if "id" in one]
    targets = [one.get("href") or one["xlink:href"] for one in map(page.attributes, page.find("a") + page.find("use"))]
    assert len(ids) == len(set(ids)) and {*targets} <= {f"#{one}" for one in ids}
    sections = [one for one in map(page.attributes, page.find("section")) if "aria-label" not in one]
    assert sections and {one["aria-labelledby"] for one in sections} <= {*ids}
    assert page.texts("a", inside=page.find("nav")[0]) == page.texts("h2")


@pytest.mark.parametrize("type_name", RESULTS)
def test_no_sentence_has_a_place_that_was_not_filled(documents, type_name):
    said = report.outline(documents[type_name])
    sentences = (said.kind, said.how, *said.details, *(one.legend for one in said.tables))
    assert not [one for one in sentences if re.search(r"\{[\w.:]*\}", one)]


@pytest.mark.one_of_each("type_name", "by_command")
@pytest.mark.parametrize("by_command", [True, False], ids=["verb", "python"])
@pytest.mark.parametrize("type_name", RESULTS)
def test_a_footer_says_how_to_make_the_result_again(documents, type_name, by_command):
    provenance = documents[type_name].provenance
    command = COMMAND if by_command else None
    made = replace(provenance, command=command, git=GitState("0123456789abcdef"), config="finc-eval.toml")
    result = replace(documents[type_name], provenance=made)
    page = Page(report.page(result, {}))
    footer = page.find("footer")[0]
    (shown,) = page.texts("p", "command", footer)
    if by_command:
        assert shown == "finc-eval verb --gen gen --ref ref"
    else:
        assert re.match(r"fe\.[\w.]+\(.*\)$", shown)
        assert "Made by a call from Python. This one makes it again:" in page.text(footer)
    assert page.texts("p", "signature", footer) == [str(one) for one in report.outline(result).signatures]
    text = page.text(footer)
    assert all(f"{name} {version}" in text for name, version in made.versions.items())
    assert "git 0123456789ab; defaults from finc-eval.toml." in text and f"on {made.device}" in text
    assert ("Failures: none." in text) == (not report.outline(result).failures)


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_result_is_the_same_text_twice_in_every_form_and_bears_one_mark(documents, page_of, type_name):
    result = documents[type_name]
    page, markdown, table = page_of(type_name), result.to_markdown(), result.to_csv()
    assert (report.page(result, {}), result.to_markdown(), result.to_csv()) == (page, markdown, table)
    assert report.fragment(result) == report.fragment(result)
    assert result.mark in markdown.splitlines()[0]
    assert table.splitlines()[1].startswith(f"{result.mark},")
    assert f'<meta name="finc-eval" content="{result.mark}">' in page


@pytest.mark.parametrize("type_name", RESULTS)
def test_the_tables_of_a_terminal_are_those_of_markdown(documents, type_name, capsys):
    result = documents[type_name]
    report.show(result)
    text = capsys.readouterr().out
    shown = [cell for row in table_rows(text) for cell in row]
    for table in report.outline(result).tables:
        for row in table.texts(small=False):
            first = [cell.partition(" [")[0] for cell in row if cell][:2]  # Markdown has room for intervals
            for cell in (" ".join(cell.translate(PLAIN).split()) for cell in first):
                assert any(is_shown(cell, one) or cell in one for one in [*shown, " ".join(text.split())]), cell


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_notebook_shows_the_first_table_of_a_result_and_no_script(documents, type_name):
    result = documents[type_name]
    page, said = Page(result._repr_html_()), report.outline(result)
    assert not page.find("script") and page.find("table")
    assert all(page.attributes(n)["src"].startswith("data:image/") for n in page.find("img"))
    shown = page.text(0)
    names = [next(cell for cell in row if cell and not cell.isdigit()) for row in said.tables[0].texts(small=False)]
    assert names and all(name.split(", ")[-1] in shown for name in names)


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_mark_outlives_a_file(documents, type_name):
    result = documents[type_name]
    assert type(result).from_dict(json.loads(result.to_json())).mark == result.mark
    assert result.marked("0a1b").mark == f"{type_name} 0a1b"


def test_the_failures_of_metrics_are_named(documents):
    page = Page(report.page(documents["scores"], {}))
    (failure,) = page.texts("li", inside=page.find("footer")[0])
    assert failure.startswith("fid: fid is defined on inception-fid")
    assert "fe.metrics(gen, ref, ['vendi', 'prdc', 'fid'])" in page.text(page.find("footer")[0])


@pytest.mark.parametrize(
    ("headline", "shown"),
    [
        ("PASS: all 17 limits held.", "<b>PASS: all 17 limits held.</b>"),
        (
            "5 % is gray (reference .5 %). 3 % is dark. Z.",
            "<b>5&nbsp;% is gray (reference .5&nbsp;%).</b> 3&nbsp;% is dark. Z.",
        ),
        ("“<b>” is 3 %. More.", "<b>“&lt;b&gt;” is 3&nbsp;%.</b> More."),
    ],
)
def test_the_first_sentence_of_a_headline_is_bold_whatever_its_length(headline, shown):
    assert environment().from_string("{{ text|first_in_bold }}").render(text=headline) == shown
