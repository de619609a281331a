"""The report as a browser shows it: opened from a file, it loads nothing and complains about nothing."""

import pytest

from finc_eval import compare

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(squares, tmp_path_factory):
    comparison = compare(gen=squares["gen"], ref=squares["ref"], features=100, modes=4)
    return comparison, comparison.to_html(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def opened(visit, report):
    return visit(report[1])


def test_it_opens_quietly_loads_nothing_fits_and_is_legible(opened, report, check_page):
    page, events = opened
    check_page(page, events, report[1])


def test_every_mode_has_a_row_and_a_section(opened, report):
    page, _ = opened
    comparison, _ = report
    names = [mode.id for mode in comparison.modes]
    assert comparison.over and comparison.significant()
    assert page.locator("table.modes tr.mode").count() == len(names)
    assert page.locator("section.detail h3").count() == len(names)
    page.locator("table.modes tr.mode a").first.click()
    assert page.evaluate("document.querySelector(':target').id") == f"mode-{names[0]}"


def test_every_picture_is_decoded_and_visible(opened, report):
    page, _ = opened
    comparison, _ = report
    sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.naturalHeight, i.alt])")
    assert len(sizes) >= 16 * len(comparison.modes)
    assert all((width, height) == (16, 16) for width, height, _ in sizes)
    assert any("<img src=x onerror=alert(1)>" in alt for _, _, alt in sizes)
    shown = page.evaluate("[...document.querySelectorAll('main > .detail > .pair img')].map(i => i.clientWidth)")
    assert min(shown) > 30


def test_the_table_shows_every_column_at_every_width(opened):
    page, _ = opened
    columns = "row => [...row.children].filter(cell => cell.checkVisibility()).map(cell => cell.dataset.label)"
    labels = page.locator("table.modes tr.mode").first.evaluate(columns)
    wanted = {"Share, gen", "Share, ref", "Difference", "Interval", "Found by"}
    assert wanted <= set(labels)


@pytest.mark.parametrize("width", [430, 600, 761, 900, 1021, 1100])
def test_no_width_between_makes_the_table_too_wide(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report[1].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
