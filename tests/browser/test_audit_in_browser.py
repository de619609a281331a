"""The page of an audit as a browser shows it."""

import numpy as np
import pytest
from conftest import HOSTILE
from PIL import Image

from finc_eval import audit, extract

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Of 110 squares, 30 copied from the training set; half of the files have hostile names."""
    folder, rng, sets = tmp_path_factory.mktemp("audit"), np.random.default_rng(0), {}
    for name in ("train", "holdout", "gen"):
        images = rng.integers(0, 256, (110, 16, 16, 3), np.uint8)
        if name == "gen":
            images[:30] = sets["train"][:30]
        sets[name] = images
        (folder / name).mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image).save(folder / name / (f"{i:03d}{HOSTILE}" if i % 2 else f"{i:03d}.png"), "PNG")
    caches = {name: extract(folder / name, extractor="pixels", out=folder / f"{name}.h5") for name in sets}
    found = audit(**caches, stated_epsilon=0.1, stated_delta=1e-5)
    return found, found.to_html(folder / "audit.html")


def test_the_audit_opens_quietly_loads_nothing_fits_and_is_legible(visit, audited, check_page):
    page, events = visit(audited[1])
    check_page(page, events, audited[1])


def test_every_suspicious_pair_is_two_visible_pictures_and_the_copies_are_alike(visit, audited):
    page, _ = visit(audited[1])
    assert audited[0].copying.copies.same_embedding == 30
    pairs = page.evaluate("""[...document.querySelectorAll('.suspects li')].map(
      li => [...li.querySelectorAll('img')].map(i => [i.src, i.clientWidth]))""")
    assert len(pairs) == 24
    for (made, width), (original, _) in pairs:
        assert made == original
        assert width > 30


def test_every_measure_is_drawn_inside_its_drawing(visit, audited):
    page, _ = visit(audited[1])
    inside = """() => [...document.querySelectorAll('.audit .whisker')].every(svg => {
      const f = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('circle')].every(c => { const r = c.getBoundingClientRect();
        return r.width > 0 && r.left >= f.left - 1 && r.right <= f.right + 1 }) })"""
    assert page.locator(".audit .whisker").count() == len(audited[0].copying.measures) + len(audited[0].attacks)
    assert page.evaluate(inside)


def test_a_suspected_copy_lies_on_its_original_with_a_slider_that_keys_move(browser, audited):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(audited[1].as_uri())
    page.locator(".suspects img").nth(1).press("Enter")
    dialog, slider = page.locator("dialog"), page.locator("dialog input")
    copy, original = dialog.locator("img").all()
    assert copy.bounding_box() == original.bounding_box() and copy.bounding_box()["width"] >= 200
    captions = dialog.locator("figcaption").all_inner_texts()
    assert captions[0].startswith("generated: ") and captions[1].startswith("original: ")

    def uncovered():
        return original.evaluate("image => getComputedStyle(image).clipPath")

    assert uncovered() == "inset(0px 50% 0px 0px)"
    slider.focus()
    page.keyboard.press("Home")
    assert uncovered() == "inset(0px 100% 0px 0px)"
    page.keyboard.press("ArrowRight")
    assert uncovered() == "inset(0px 99% 0px 0px)" and dialog.locator("figcaption").all_inner_texts() == captions
    blink = dialog.get_by_role("button", name="Blink")
    blink.press("Space")
    assert blink.get_attribute("aria-pressed") == "true"
    seen = original.evaluate("""image => new Promise(done => {
      const seen = [], look = () => {
        const now = getComputedStyle(image).clipPath;
        if (!seen.includes(now) && seen.push(now) === 2) done(seen);
      };
      new MutationObserver(look).observe(image, {attributes: true, attributeFilter: ["style"]});
      look();
    })""")
    assert set(seen) == {"inset(0px 0% 0px 0px)", "inset(0px 100% 0px 0px)"}
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog button[aria-pressed=false]", state="attached")  # an event soon after Escape
    page.close()


def test_with_reduced_motion_blinking_is_one_step_a_press(browser, audited):
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.goto(audited[1].as_uri())
    page.locator(".suspects img").first.click()
    blink = page.locator("dialog").get_by_role("button", name="Blink")
    blink.click()
    assert blink.get_attribute("aria-pressed") == "false"
    page.close()
