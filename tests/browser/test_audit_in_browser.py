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
