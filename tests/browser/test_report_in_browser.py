"""The report as a browser shows it: opened from a file, it loads nothing and complains about nothing."""

import shutil

import numpy as np
import pytest
from PIL import Image

from finc_eval import compare, extract

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>\"'&.png"

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install .[browser]")
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found[0], args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Half of the generated squares are red; all of the reference's are grey."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    caches = []
    for name, is_gen in (("gen", True), ("ref", False)):
        (folder / name).mkdir()
        for i in range(120):
            image = rng.integers(0, 40, (16, 16, 3), np.uint8)
            row, column = rng.integers(2, 5, 2)
            colour = (250, 20, 20) if is_gen and i % 2 else (200, 200, 200)
            image[row : row + 9, column : column + 9] = colour
            Image.fromarray(image).save(folder / name / (f"{i:03d}{HOSTILE}" if i % 2 else f"{i:03d}.png"), "PNG")
        caches.append(extract(folder / name, extractor="pixels", out=folder / f"{name}.h5"))
    comparison = compare(gen=caches[0], ref=caches[1], features=100, modes=4)
    return comparison, comparison.to_html(folder / "report.html")


@pytest.fixture(params=[(1200, "light"), (1200, "dark"), (420, "light")], ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, report):
    """The page, and everything that happened while it was opened."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    events = {"console": [], "requests": [], "dialogs": []}
    page.on("console", lambda message: events["console"].append(message.text))
    page.on("pageerror", lambda error: events["console"].append(str(error)))
    page.on("request", lambda request: events["requests"].append(request.url))
    page.on("requestfailed", lambda request: events["console"].append(f"failed: {request.url}"))
    page.on("dialog", lambda dialog: (events["dialogs"].append(dialog.message), dialog.dismiss()))
    page.goto(report[1].as_uri(), wait_until="load")
    yield page, events
    page.close()


def test_it_opens_quietly_and_loads_nothing(opened, report):
    _, events = opened
    assert events["console"] == [] and events["dialogs"] == []
    others = [url for url in events["requests"] if not url.startswith("data:")]
    assert others == [report[1].as_uri()]


def test_every_mode_has_a_row_and_a_section(opened, report):
    page, _ = opened
    comparison, _ = report
    names = [mode.id for mode in comparison.all_modes]
    assert comparison.modes and comparison.significant()
    assert page.locator("table.modes tr.mode").count() == len(names)
    assert page.locator("section.detail h3").count() == len(names)
    page.locator("table.modes tr.mode a").first.click()
    assert page.evaluate("document.querySelector(':target').id") == f"mode-{names[0]}"


def test_every_picture_is_decoded_and_visible(opened, report):
    page, _ = opened
    comparison, _ = report
    sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.naturalHeight, i.alt])")
    assert len(sizes) >= 16 * len(comparison.all_modes)
    assert all((width, height) == (16, 16) for width, height, _ in sizes)
    assert any(HOSTILE in alt for _, _, alt in sizes)
    shown = page.evaluate("[...document.querySelectorAll('.detail > .pair img')].map(i => i.clientWidth)")
    assert min(shown) > 30


def test_the_page_fits_its_window(opened):
    page, _ = opened
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


CONTRAST = """() => {
  const light = c => { const v = c / 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 };
  const parse = s => s.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c } return [255, 255, 255] };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e);
    const a = lum(parse(e.closest('svg') ? style.fill : style.color)), b = lum(behind(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) poor.push([e.tagName, e.className, e.textContent.trim().slice(0, 40), contrast]);
  }
  return poor;
}"""


def test_all_text_has_enough_contrast(opened):
    page, _ = opened
    assert page.evaluate(CONTRAST) == []
