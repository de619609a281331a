"""The report as a browser shows it: opened from a file, it loads nothing and complains about nothing."""

import re

import pytest
from _pages import LESS, SAME, a_comparison, a_kind

from finc_eval.comparison.headline import drifts

pytestmark = pytest.mark.browser

STRICT = "default-src 'none'; img-src data:"


@pytest.fixture(scope="module")
def report(of_squares, tmp_path_factory):
    comparison = of_squares["comparison"]
    return comparison, comparison.to_html(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def opened(visit, report):
    return visit(report[1])


@pytest.fixture
def desk(browser, report):
    """The page in a wide window, without what `visit` records."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(report[1].as_uri())
    yield page
    page.close()


def test_it_opens_quietly_loads_nothing_fits_and_is_legible(opened, report, check_page):
    page, events = opened
    check_page(page, events, report[1])


def test_every_kind_and_direction_has_a_row_of_a_table_and_a_card(opened, report):
    page, _ = opened
    comparison, _ = report
    assert comparison.over and comparison.significant()
    kinds = len(comparison.kinds) + len(comparison.headings)
    alone = len(drifts(comparison))
    assert page.locator("#forest tbody[data-mode]").count() == kinds + alone
    directions = sum(mode.p_value <= 0.05 for mode in comparison.directions)
    assert page.locator("#direction-table tbody[data-mode]").count() == directions
    assert page.locator(".card h3").count() == kinds + len(comparison.directions) + len(comparison.looks)
    page.locator("#forest tbody a").first.click()
    assert page.locator(":target").evaluate("node => node.classList.contains('card')")


def test_the_first_screen_has_verdict_forest_and_pictures(desk):
    assert desk.locator(".summary").is_visible()
    for part in (".summary", "#forest tbody tr", "#forest img"):
        box = desk.locator(part).first.bounding_box()
        assert 0 < box["y"] < box["y"] + box["height"] < 900


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_the_map_stands_beside_the_list_where_there_is_room_and_below_it_on_a_phone(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report[1].as_uri())
    drawn, listed = (page.locator(one).bounding_box() for one in ("svg.map", ".beside .forest"))
    if width < 1000:
        assert drawn["y"] >= listed["y"] + listed["height"]
    else:
        assert drawn["x"] >= listed["x"] + listed["width"] and drawn["y"] < 900 / 2
    page.close()


def test_a_region_of_the_map_marks_its_row_and_leads_to_its_card(desk):
    region = desk.locator(".map g.label").first
    name = region.get_attribute("data-mode")
    region.locator("image").hover()
    marked = desk.locator(".marked").evaluate_all("nodes => nodes.map(node => [node.tagName, node.dataset.mode])")
    assert {tag for tag, _ in marked} >= {"g", "TBODY"} and {mode for _, mode in marked} == {name}
    region.locator("image").click()
    assert desk.locator(":target").get_attribute("id") == name
    desk.locator("h1").hover()
    assert desk.locator(".marked").count() == 0


def test_every_picture_is_decoded_and_visible(opened, report):
    page, _ = opened
    sizes = page.evaluate("[...document.images].filter(i => i.src).map(i => [i.naturalWidth, i.naturalHeight, i.alt])")
    assert len(sizes) >= 4 * len(report[0].directions)
    assert all((width, height) == (16, 16) for width, height, _ in sizes)
    assert any("<img src=x onerror=alert(1)>" in alt for _, _, alt in sizes)
    shown = page.evaluate("[...document.querySelectorAll('.cards > .card > .pair img')].map(i => i.clientWidth)")
    assert min(shown) > 30


@pytest.mark.parametrize("width", [360, 430, 600, 761, 900, 1021, 1100])
def test_no_width_between_makes_the_page_too_wide(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report[1].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def facts(page):
    """All numbers and pictures of a page."""
    parts = "[...document.querySelectorAll('.title, .first, .warnings, .card, [aria-labelledby=settings]')]"
    text = page.evaluate(f"{parts}.map(part => part.textContent).join(' ')")
    return re.findall(r"\d[\d.,]*", text), page.evaluate("[...document.querySelectorAll('main img')].map(i => i.src)")


def test_without_script_and_without_style_everything_is_there(browser, report, desk, tmp_path):
    wanted = facts(desk)
    off = browser.new_context(java_script_enabled=False).new_page()
    off.goto(report[1].as_uri() + "#mode-" + report[0].directions[-1].id)
    assert off.locator(".tools").is_hidden()
    assert off.locator(":target h3").inner_text() == report[0].directions[-1].title
    off.context.close()
    # As a server sends it that forbids scripts and styles: a second policy restricts the page's own.
    strict = tmp_path / "strict.html"
    text = report[1].read_text(encoding="utf-8")
    strict.write_text(text.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{STRICT}">'))
    page = browser.new_page()
    page.goto(strict.as_uri())
    found = facts(page)
    assert found == wanted
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).borderLeftWidth") == "0px"
    assert page.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    page.close()


def cards(page):
    of_kinds = "[aria-labelledby=modes].cards > .card"
    return page.evaluate(f"[...document.querySelectorAll('{of_kinds}')].filter(c => !c.hidden).map(c => c.id)")


def rows(page):
    shown = "[...document.querySelectorAll('#forest > tbody[data-mode]')].filter(r => r.checkVisibility())"
    return page.evaluate(f"{shown}.map(r => r.dataset.mode)")


def test_kinds_are_sorted_filtered_and_found_and_the_address_keeps_it(desk, report):
    significant = [*report[0].headings, *report[0].significant()]
    less = {f"mode-{kind.id}" for kind in significant if kind.share_difference < 0}
    order = rows(desk)
    assert set(cards(desk)) == {f"mode-{kind.id}" for kind in significant} > less and len(order) > 1
    desk.select_option("[name=role]", "too few")
    assert set(cards(desk)) == less
    assert [row for row in order if row in less] == [row for row in rows(desk) if row in cards(desk)]
    desk.select_option("[name=role]", "")
    desk.select_option("[name=sort]", "second")
    by_ref = [f"mode-{kind.id}" for kind in sorted(significant, key=lambda kind: -kind.share_ref)]
    assert sorted(cards(desk)) == sorted(by_ref) and cards(desk)[0] == by_ref[0]
    assert rows(desk) == order  # those of the table stay below their sums and headings
    name = significant[-1].id
    desk.fill("[name=q]", name.upper())
    assert cards(desk) == [f"mode-{name}"]
    assert desk.locator(".tools output").inner_text() == f"1 of {len(significant)} kinds"
    address = desk.url
    assert "sort=second" in address and "q=" in address
    desk.goto("about:blank")
    desk.goto(address)
    assert cards(desk) == [f"mode-{name}"] and desk.input_value("[name=sort]") == "second"
    desk.goto(address.split("#")[0] + f"#mode-{significant[0].id}")
    desk.wait_for_selector(f"#mode-{significant[0].id}")


def test_a_heading_stays_in_sight_where_a_kind_below_it_is_found(browser, tmp_path):
    kinds = [a_kind("k1", name="red"), a_kind("k4", 0.05, 0.0, name="blue"), LESS, SAME]
    heading = a_kind("k9", 0.181, 0.04, name="both", children=("k1", "k4"))
    path = a_comparison(kinds=kinds, headings=[heading]).to_html(tmp_path / "c.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.fill("[name=q]", "k4")
    assert cards(page) == ["mode-k4"] and rows(page)[0] == "mode-k9"
    below = page.locator("#forest .below [data-mode]").evaluate_all("rows => rows.map(r => [r.dataset.mode, r.hidden])")
    assert ["mode-k1", True] in below and ["mode-k4", False] in below
    assert "mode-k2" not in rows(page)
    page.close()


def test_a_link_to_a_folded_mode_opens_the_fold(desk, report):
    for group, fold in ((report[0].kinds, "others"), (report[0].directions, "other-directions")):
        folded = [one for one in group if one.p_value > 0.05]
        assert folded, "the report of this test needs a kind and a direction that are not significant"
        desk.goto(desk.url.split("#")[0] + f"#mode-{folded[0].id}")
        desk.wait_for_function(f"document.querySelector('#{fold}').open")
        assert desk.locator(":target h3").is_visible()


def test_samples_enlarge_by_mouse_and_by_keyboard(desk):
    desk.locator("[aria-labelledby=directions] .folded > summary").first.click()
    desk.locator("[aria-labelledby=directions] .card img[data-near]").first.click()
    dialog = desk.locator("dialog")
    assert dialog.is_visible() and dialog.locator("img").first.bounding_box()["width"] >= 200
    first = dialog.locator("figcaption").first.inner_text()
    assert "score" in first and "nearest reference sample: " in first
    desk.keyboard.press("ArrowRight")
    assert dialog.locator("figcaption").first.inner_text() != first
    desk.keyboard.press("ArrowLeft")
    assert dialog.locator("figcaption").first.inner_text() == first
    desk.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert desk.evaluate("document.activeElement.tagName") == "IMG"
    desk.keyboard.press("Enter")
    assert dialog.is_visible()


def test_the_nearest_reference_sample_stands_beside_a_generated_one_and_no_other(desk):
    own = desk.locator(".cards .card img[data-near]").first
    wanted = own.get_attribute("data-near")
    own.click()
    dialog = desk.locator("dialog")
    (first, second) = dialog.locator("figure").all()
    assert second.locator("figcaption").inner_text().startswith(f"nearest reference sample: {wanted}")
    assert second.locator("img").evaluate("i => i.src") == desk.evaluate(
        "id => [...document.querySelectorAll('img[data-id]')].find(i => i.dataset.id === id).src", wanted
    )
    assert first.bounding_box()["x"] < second.bounding_box()["x"]
    assert dialog.locator("input").is_hidden()  # a slider is for pictures that should be alike
    desk.keyboard.press("Escape")
    desk.locator(".card figure.ref .tiles img:not([data-id])").first.click()
    assert second.is_hidden()


def test_everything_is_printed_if_that_is_asked_and_folds_close_again(desk):
    shown = "[...document.querySelectorAll('main img')].filter(i => i.checkVisibility() && i.clientWidth > 0).length"
    desk.locator("#whole").check()
    desk.evaluate("dispatchEvent(new Event('beforeprint'))")
    desk.emulate_media(media="print")
    assert desk.evaluate(shown) == desk.locator("main img").count()
    assert desk.locator(".card dl.facts").first.is_visible() and desk.locator(".tools").is_hidden()
    desk.evaluate("dispatchEvent(new Event('afterprint'))")
    assert desk.locator("details[open]").count() == 0


def test_in_short_the_first_screen_is_printed_without_what_is_folded(desk):
    desk.evaluate("dispatchEvent(new Event('beforeprint'))")
    desk.emulate_media(media="print")
    assert desk.locator("details[open]").count() == 0
    for part in (".summary", "#forest tbody tr", "svg.map", "footer .signature"):
        assert desk.locator(part).first.is_visible()
    for part in (".card dl.facts", ".how", "#settings", ".whole"):
        assert desk.locator(part).first.is_hidden()


def test_it_prints_to_paper_without_script_too(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report[1].as_uri())
    page.locator("#whole").check()
    page.emulate_media(media="print")
    assert page.locator(".card dl.facts").first.is_visible()
    assert len(page.pdf()) > 20_000
    context.close()
