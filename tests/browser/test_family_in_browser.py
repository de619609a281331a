"""Every kind of page, and the index of a folder, as a browser shows and prints them."""

import re

import pytest
from _pages import a_comparison, a_kind
from _pdf import pictures_in
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.results import RESULTS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(documents, tmp_path_factory):
    """A folder with every result, its page, something damaged, and its index."""
    folder = tmp_path_factory.mktemp("family")
    for name in RESULTS:
        documents[name].to_json(folder / "a b#?" / f"{name}.json")
        documents[name].to_html(folder / "a b#?" / f"{name}.html")
    (folder / "<img src=x onerror=alert(1)>.json").write_text("{")
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def pictured(of_squares, tmp_path_factory):
    """Pages with pictures: of two sets, of kinds, of a board, and of the gate."""
    folder = tmp_path_factory.mktemp("pictured")
    return {name: result.to_html(folder / f"{name}.html") for name, result in of_squares.items()}


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_page_opens_quietly_loads_nothing_fits_and_is_legible(visit, folder, check_page, type_name):
    path = folder / "a b#?" / f"{type_name}.html"
    page, events = visit(path)
    check_page(page, events, path)


def test_an_index_opens_quietly_loads_nothing_fits_and_is_legible(visit, folder, check_page):
    page, events = visit(folder / "index.html")
    check_page(page, events, folder / "index.html")
    assert page.locator("article h3 a").count() == len(RESULTS)


def test_every_link_of_an_index_opens_its_page_without_script(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "index.html").as_uri())
    titles = page.locator("article h3 a").all_inner_texts()
    for place, title in enumerate(titles):
        page.locator("article h3 a").nth(place).click()
        assert page.title() == f"{title} – finc-eval"
        page.go_back()
    context.close()


def test_the_results_of_an_index_are_sorted_filtered_and_found_and_the_address_keeps_it(browser, folder):
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())

    def shown():
        return page.locator(".cards > .card:not([hidden]) h3").all_inner_texts()

    titles = shown()
    assert len(titles) == len(RESULTS) and page.locator(".tools output").inner_text() == f"{len(RESULTS)} results"
    page.select_option("[name=sort]", "name")
    assert shown() == page.evaluate("titles => titles.sort((a, b) => a.localeCompare(b))", titles) != titles
    page.select_option("[name=role]", "sweep")
    assert page.locator(".card:visible .link").all_inner_texts() == ["a b#?/sweep.json"]
    page.select_option("[name=role]", "")
    page.fill("[name=q]", "leaderboard")
    address = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(address)
    assert page.input_value("[name=q]") == "leaderboard" and 0 < len(shown()) < len(titles)
    page.fill("[name=q]", "")
    page.locator(".card .link").last.click()
    page.wait_for_selector(".card:target")
    page.close()


@pytest.mark.parametrize("name", ["kinds", "many models", "verdict"])
def test_a_page_with_pictures_opens_quietly_fits_and_is_legible(visit, pictured, check_page, name):
    page, events = visit(pictured[name])
    check_page(page, events, pictured[name])


def test_a_heading_of_a_board_sorts_its_rows_by_its_numbers_and_then_turns_them_round(browser, pictured):
    page = browser.new_page()
    page.goto(pictured["many models"].as_uri())
    table = page.locator("table.board").first

    def numbers(place):
        texts = table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()
        return [float(text.split()[0].split("–")[0].replace("−", "-")) for text in texts]

    heading = table.locator("thead th").nth(3)
    before = numbers(4)
    heading.locator("button").press("Enter")
    assert numbers(4) == sorted(before) and heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").click()
    assert numbers(4) == sorted(before, reverse=True) and heading.get_attribute("aria-sort") == "descending"
    table.locator("thead th button").first.click()
    names = table.locator("tbody tr > th").all_inner_texts()
    assert names == sorted(names) and heading.get_attribute("aria-sort") is None
    page.close()


@pytest.mark.parametrize("name", ["kinds", "leaderboard", "verdict"])
def test_kinds_and_limits_are_sorted_and_led_to_and_their_samples_enlarge(browser, pictured, name):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(pictured[name].as_uri())
    cards = page.locator(".cards > .card")
    before = cards.locator("h3").all_inner_texts()
    ranked = page.locator("table.board").all_inner_texts()
    assert len(before) > 1
    page.select_option("[name=sort]", "name")
    assert cards.locator("h3").all_inner_texts() == sorted(before)
    if name != "verdict":
        page.select_option("[name=sort]", "share")
        shares = page.evaluate("[...document.querySelectorAll('.cards > .card')].map(c => Number(c.dataset.share))")
        assert shares == sorted(shares, reverse=True)
        rows = page.evaluate("[...document.querySelectorAll('tr[data-mode]')].map(r => r.dataset.mode)")
        sorted_cards = page.evaluate("[...document.querySelectorAll('.cards > .card')].map(c => c.id)")
        assert bool(rows) == (name == "leaderboard")  # the rows of kinds stay below their sums
        assert rows == [card for card in sorted_cards if card in rows]  # headings have a card, and no row of a board
        page.select_option("[name=role]", index=1)
        assert page.locator("table.board").all_inner_texts() == ranked  # no rank, group or interval moves
        page.select_option("[name=role]", "")
    table = page.locator("main table").first
    link = (page.locator("[data-mode]") if name != "verdict" else table).locator("a").first
    link.click()
    assert f"#{page.locator('.card:target').get_attribute('id')}" == link.get_attribute("href")
    page.locator(".card:target .tiles img").first.press("Enter")
    assert page.locator("dialog img").first.bounding_box()["width"] >= 200
    page.close()


def printed(browser, path, *, whole=False, script=True):
    """The sheets of a page that is printed on A4, in short or everything; as bytes of a PDF, and their number."""
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(path.as_uri())
    if whole:
        page.locator("#whole").check()
    data = page.pdf(format="A4", margin=dict.fromkeys(("top", "right", "bottom", "left"), "10mm"))
    context.close()
    return data, len(re.findall(rb"/Type\s*/Page\b", data))


SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_page_of_any_type_is_printed_on_two_sheets(browser, folder, type_name):
    assert 1 <= printed(browser, folder / "a b#?" / f"{type_name}.html")[1] <= 2


WORDS = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  let count = 0;
  while (texts.nextNode()) {
    const text = texts.currentNode, parent = text.parentElement;
    if (!parent.closest(".top, .title, .first") || parent.closest("title, desc, .hidden") || !parent.checkVisibility())
      continue;
    for (const word of text.data.matchAll(/\\S*\\p{L}{2}\\S*/gu)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const box = range.getBoundingClientRect();
      count += box.width > 0 && box.top < innerHeight && box.bottom > 0;
    }
  }
  return count;
}"""


@pytest.mark.parametrize("name", ["comparison", "leaderboard", "verdict"])
def test_the_first_screen_has_few_words(browser, pictured, name):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(pictured[name].as_uri())
    assert 30 < page.evaluate(WORDS) <= 130  # of what stands before the warnings
    page.close()


@SCRIPT
@pytest.mark.parametrize(("name", "most"), [("verdict", 1), ("leaderboard", 2), ("comparison", 2), ("kinds", 2)])
def test_a_page_with_pictures_is_printed_on_two_sheets_and_a_verdict_on_one(browser, pictured, name, most, script):
    data, sheets = printed(browser, pictured[name], script=script)
    assert sheets <= most and pictures_in(data) > 0  # those of the first tables stay


def test_forty_kinds_are_printed_on_two_sheets_which_say_what_is_left_out(browser, tmp_path):
    kinds = [a_kind(f"k{i}", 0.02 + i / 1000, 0.01, name=f"colour {i}") for i in range(40)]
    path = a_comparison(kinds=kinds).to_html(tmp_path / "c.html")
    assert printed(browser, path)[1] <= 2 and printed(browser, path, whole=True)[1] > 4
    page = browser.new_page()
    page.goto(path.as_uri())
    said = page.locator("#forest .on-paper")
    assert said.is_hidden()
    page.emulate_media(media="print")
    rows = page.locator("#forest > tbody")
    shown = sum(row.is_visible() for row in rows.all())
    assert said.inner_text() == f"On paper, the first {shown} of {rows.count()} rows." and shown < rows.count()
    assert sum(card.is_visible() for card in page.locator(".card").all()) > 0
    page.close()


def test_what_a_reader_opens_is_printed(browser, pictured):
    page = browser.new_page()
    page.goto(pictured["comparison"].as_uri())
    page.emulate_media(media="print")
    facts = page.locator(".card dl.facts").first
    assert facts.is_hidden()
    page.locator(".card:not(.look) > details").first.evaluate("one => { one.open = true; }")
    assert facts.is_visible()
    page.close()


@SCRIPT
@pytest.mark.parametrize("name", ["comparison", "kinds"])
def test_everything_is_printed_with_every_picture_if_that_is_asked(browser, pictured, name, script):
    page = browser.new_page()
    page.goto(pictured[name].as_uri())
    shown = page.locator("main img, main image").count()
    page.close()
    data, _ = printed(browser, pictured[name], whole=True, script=script)
    assert shown > 8 and pictures_in(data) == shown > pictures_in(printed(browser, pictured[name], script=script)[0])


def test_the_count_of_printed_pictures_misses_one_that_is_not_there(browser, pictured, tmp_path):
    text = pictured["comparison"].read_text(encoding="utf-8")
    path = tmp_path / "less.html"
    path.write_text(re.sub(r"<details(?! open)", "<details hidden", text), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator("#whole").check()
    assert pictures_in(page.pdf()) < page.locator("main img").count()
    page.close()


def test_the_command_of_a_footer_is_selected_by_one_click(browser, folder):
    page = browser.new_page()
    page.goto((folder / "a b#?" / "scores.html").as_uri())
    code = page.locator("footer .command code")
    code.click()
    assert page.evaluate("getSelection().toString().trim()") == code.inner_text()
    page.close()


@pytest.mark.parametrize("name", ["comparison", "leaderboard"])
def test_a_click_on_a_card_shows_its_members_at_any_width_and_paper_leaves_them_out(browser, pictured, name):
    for width in (390, 1400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(pictured[name].as_uri())
        fold = page.locator(".card:visible > .members:visible").first
        assert fold.locator("img").first.is_hidden()
        fold.locator("summary").first.click()
        assert fold.locator("img").first.is_visible()
        fold.locator("details > summary").first.click()
        assert fold.locator("pre").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()
    page = browser.new_page()
    page.goto(pictured[name].as_uri())
    page.emulate_media(media="print")
    assert page.locator(".members").count() > 0
    assert not any(fold.is_visible() for fold in page.locator(".members").all())
    page.close()
