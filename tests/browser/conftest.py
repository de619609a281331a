"""Chromium, two sets of squares to compare, and what the tests of all pages look at."""

import shutil

import numpy as np
import pytest
from _quick import BOARDS, quick
from _stored import made_once
from PIL import Image

import finc_eval as fe

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

CONTRAST = """() => {
  const light = c => { const v = c / 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 };
  const parse = s => s.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c } return [255, 255, 255] };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.matches('script, title, desc, option')) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e);
    const a = lum(parse(e.closest('svg') ? style.fill : style.color)), b = lum(behind(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) poor.push([e.tagName, e.className, e.textContent.trim().slice(0, 40), contrast]);
  }
  return poor;
}"""

OVERLAPS = """() => {
  const both = (a, b) => Math.min(Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  return [...document.querySelectorAll('tr.mode')].flatMap(row => {
    const cells = [...row.children].map(cell => [cell.textContent.trim(), cell.getBoundingClientRect()]);
    return cells.flatMap(([text, box], i) => cells.slice(i + 1)
      .filter(([, other]) => both(box, other) > 1).map(([other]) => [text, other]));
  });
}"""


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install .[browser]")
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found[0], args=FLAGS)
        yield opened
        opened.close()


def squares_in(folder):
    rng = np.random.default_rng(0)
    for name, is_gen in (("gen", True), ("ref", False)):
        (folder / name).mkdir()
        for i in range(120):
            image = rng.integers(0, 40, (16, 16, 3), np.uint8)
            row, column = rng.integers(2, 5, 2)
            color = (250, 20, 20) if is_gen and i % 2 else (200, 200, 200)
            image[row : row + 9, column : column + 9] = color
            Image.fromarray(image).save(folder / name / (f"{i:03d}{HOSTILE}" if i % 2 else f"{i:03d}.png"), "PNG")
        fe.extract(folder / name, extractor="pixels", out=folder / f"{name}.h5").close()
    return folder


@pytest.fixture(scope="session")
def squares(tmp_path_factory):
    """Half of the generated squares are red; all of the reference's are gray. Half of the files have hostile names."""
    folder = made_once(tmp_path_factory, "squares", squares_in)
    return {name: fe.EmbeddingCache(folder / f"{name}.h5") for name in ("gen", "ref")}


def results_of(gen, ref):
    with quick(BOARDS):
        return {
            "comparison": fe.compare(gen, ref, features=100, modes=4),
            "kinds": fe.kinds({"a": gen, "b": ref, "c": ref}),
            "leaderboard": fe.leaderboard({"a": gen, "b": ref}, ref),
            "many models": fe.leaderboard({f"a model {i}": (gen, ref)[i % 2] for i in range(12)}, ref),
            "verdict": fe.gate(gen, ref, ref, {"kinds": {"lose": 0.5, "min_share": 0.1}}),
        }


@pytest.fixture(scope="session")
def of_squares(squares, tmp_path_factory):
    """Results that pages of several files of tests show with pictures: of two sets, kinds, boards and a gate."""
    return made_once(tmp_path_factory, "of squares", lambda _: results_of(**squares))


@pytest.fixture(params=[(1200, "light"), (1200, "dark"), (420, "light")], ids=lambda p: f"{p[0]}-{p[1]}")
def visit(request, browser):
    """Opens a file and returns its page with everything that happened meanwhile."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    events = {"console": [], "requests": [], "dialogs": []}
    page.on("console", lambda message: events["console"].append(message.text))
    page.on("pageerror", lambda error: events["console"].append(str(error)))
    page.on("request", lambda request: events["requests"].append(request.url))
    page.on("requestfailed", lambda request: events["console"].append(f"failed: {request.url}"))
    page.on("dialog", lambda dialog: (events["dialogs"].append(dialog.message), dialog.dismiss()))

    def opened(path):
        page.goto(path.as_uri(), wait_until="load")
        return page, events

    yield opened
    page.close()


@pytest.fixture(scope="session")
def check_page():
    """Asserts what holds for every page: it is quiet, loads nothing, fits its window, is legible, no cells overlap."""

    def check(page, events, path):
        assert events["console"] == [] and events["dialogs"] == []
        assert [url for url in events["requests"] if not url.startswith("data:")] == [path.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate(OVERLAPS) == []

    return check
