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
      const frame = document.querySelector('.plot svg').getBoundingClientRect();
      return [...document.querySelectorAll('.plot use')].filter(u => u.getAttribute('fill') === 'var(--gen)')
        .map(u => u.getBoundingClientRect()).filter(r => r.width > 0 && r.left >= frame.left && r.right <= frame.right
          && r.top >= frame.top && r.bottom <= frame.bottom).length }"""
    over = [m for point in sweep[0].points for m in point.comparison.significant() if m.role == "over"]
    assert over and page.evaluate(inside) == 2 * len(over) + 1  # and the legend's


def test_the_models_open_quietly_load_nothing_fit_and_are_legible(visit, models, check_page):
    page, events = visit(models[1])
    check_page(page, events, models[1])


def test_every_mode_of_models_leads_to_its_section_with_pictures_and_bars(visit, models):
    page, _ = visit(models[1])
    table = models[0]
    assert page.locator("table.modes tr.mode").count() == page.locator("section.detail").count() == len(table.modes)
    page.locator("table.modes tr.mode a").first.click()
    assert page.locator(":target h3").inner_text().endswith(page.locator("th.id a").first.inner_text())
    sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.clientWidth])")
    assert sizes and all(natural == 16 and shown > 20 for natural, shown in sizes)
    bars = page.evaluate("[...document.querySelectorAll('.bar')].map(b => b.firstElementChild.getBBox().width / 100)")
    shown = [mode for mode in table.modes if mode.set_with_most != "ref"] + [
        m for m in table.modes if m.set_with_most == "ref"
    ]
    shares = [part.share for mode in shown for part in mode.shares.values() if part.share is not None]
    assert bars == pytest.approx(shares, abs=0.02)
