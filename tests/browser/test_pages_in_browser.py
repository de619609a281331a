"""The pages of a sweep and of a table of models as a browser shows them."""

import numpy as np
import pytest

import finc_eval as fe

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sweep(squares, tmp_path_factory):
    sweep = fe.sweep(squares["gen"], squares["ref"], "sigma", features=60, modes=3)
    return sweep, sweep.to_html(tmp_path_factory.mktemp("sweep") / "sweep.html")


def test_the_sweep_opens_quietly_loads_nothing_fits_and_is_legible(visit, sweep, check_page):
    page, events = visit(sweep[1])
    check_page(page, events, sweep[1])


def test_every_value_of_a_sweep_has_a_row_and_every_mode_two_visible_marks(visit, sweep):
    page, _ = visit(sweep[1])
    assert page.locator('section[aria-labelledby="values"] tr.mode').count() == len(sweep[0].points)
    assert page.locator('table.modes td:has-text("compare\'s default")').first.is_visible()
    inside = """() => {
      const svg = document.querySelector('.plot svg'), frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('g.gen')].map(g => g.getBoundingClientRect()).filter(r => r.width > 0
        && r.left >= frame.left && r.right <= frame.right && r.top >= frame.top && r.bottom <= frame.bottom).length }"""
    over = [m for point in sweep[0].points for m in point.comparison.over if m.p_value <= 0.05]
    assert over and page.evaluate(inside) == 2 * len(over) + 1  # and the legend's
    assert page.locator(".card").count() == page.locator('section[aria-labelledby="figure"] tr.mode').count()
    assert page.locator(".card .tiles img").count() > 0


def test_clips_stand_still_until_the_pointer_is_on_them_and_move_when_enlarged(browser, tmp_path):
    clips = np.random.default_rng(0).integers(0, 256, (40, 12, 40, 40, 3), np.uint8)
    clips[:20, :, :, :, 1:] = 0
    np.savez(tmp_path / "gen.npz", clips[:20])
    np.savez(tmp_path / "ref.npz", clips[20:])
    found = fe.compare(tmp_path / "gen.npz", tmp_path / "ref.npz", extractor="motion", features=30)
    found.to_html(tmp_path / "page.html")
    for motion, plays in (("no-preference", True), ("reduce", False)):
        page = browser.new_page(reduced_motion=motion)
        page.goto((tmp_path / "page.html").as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        clip = page.locator(".tiles img[data-moving]:visible").first
        source = "one => one.src.includes('QU5JTQ') || atob(one.src.split(',')[1]).slice(0, 64).includes('ANIM')"
        assert not clip.evaluate(source)
        clip.hover()
        assert clip.evaluate(source) is plays
        page.mouse.move(0, 0)
        assert not clip.evaluate(source)
        clip.click()
        assert page.locator("dialog.large img").first.evaluate(source)
        page.close()
