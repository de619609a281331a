"""The pages of a sweep and of a table of models as a browser shows them."""

import pytest

import finc_eval as fe

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sweep(squares, tmp_path_factory):
    sweep = fe.sweep(squares["gen"], squares["ref"], "sigma", features=60, modes=3)
    return sweep, sweep.to_html(tmp_path_factory.mktemp("sweep") / "sweep.html")


@pytest.fixture(scope="module")
def models(squares, tmp_path_factory):
    sets = {"<b>one</b>": squares["gen"], "a model with a rather long name": squares["ref"]}
    table = fe.compare_models(sets, squares["ref"], features=60, modes=3)
    return table, table.to_html(tmp_path_factory.mktemp("models") / "models.html")


def test_the_sweep_opens_quietly_loads_nothing_fits_and_is_legible(visit, sweep, check_page):
    page, events = visit(sweep[1])
    check_page(page, events, sweep[1])


def test_every_value_of_a_sweep_has_a_row_and_every_mode_two_visible_marks(visit, sweep):
    page, _ = visit(sweep[1])
    assert page.locator("table.modes tr.mode").count() == len(sweep[0].points)
    assert page.locator('table.modes th.value:has-text("compare\'s default")').is_visible()
    inside = """() => {
      const svg = document.querySelector('.plot svg'), frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('g.gen')].map(g => g.getBoundingClientRect()).filter(r => r.width > 0
        && r.left >= frame.left && r.right <= frame.right && r.top >= frame.top && r.bottom <= frame.bottom).length }"""
    over = [m for point in sweep[0].points for m in point.comparison.over if m.p_value <= 0.05]
    assert over and page.evaluate(inside) == 2 * len(over) + 1  # and the legend's
    assert page.locator(".card").count() == page.locator(".twin tbody tr").count()
    assert page.locator(".card .tiles img").count() > 0


def test_the_models_open_quietly_load_nothing_fit_and_are_legible(visit, models, check_page):
    page, events = visit(models[1])
    check_page(page, events, models[1])


def test_every_mode_of_models_leads_to_its_card_with_pictures_of_both_sets(visit, models):
    page, _ = visit(models[1])
    table = models[0]
    significant = table.significant()
    assert significant and page.locator("#forest tbody[data-mode]").count() == len(significant)
    assert page.locator(".card h3").count() == len(table.modes)
    page.locator("#forest tbody a").first.click()
    assert page.locator(":target h3").inner_text() == page.locator("#forest tbody a").first.get_attribute("title")
    sizes = page.evaluate("""[...document.querySelectorAll('.cards > .card > .pair img')].map(
      i => [i.naturalWidth, i.clientWidth])""")
    assert sizes and all(natural == 16 and shown > 20 for natural, shown in sizes)
    assert page.locator(":target .pair figure").count() == 2


def test_the_modes_of_models_are_filtered_by_set_and_sorted(browser, models):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(models[1].as_uri())
    tags = ".cards > .card:not([hidden]) .tag"
    labels = {mode.set_with_most for mode in models[0].significant()}
    for label in labels:
        page.select_option("[name=role]", f"more in {label}")
        assert set(page.locator(tags).all_inner_texts()) <= {f"more in {label}", "unstable, not counted"}
    page.select_option("[name=role]", "")
    page.select_option("[name=sort]", "share")
    shares = page.evaluate("[...document.querySelectorAll('.cards > .card')].map(c => Number(c.dataset.share))")
    assert shares == sorted(shares, reverse=True) and len(shares) > 1
    page.close()
