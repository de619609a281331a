"""Pages of results have no serious finding of axe-core, in light, in dark and in print."""

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.results import RESULTS

pytestmark = pytest.mark.browser

AXE = Path(os.environ.get("FINC_EVAL_AXE", Path(__file__).parents[2] / ".venv/axe/package/axe.min.js"))

FINDINGS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => [one.id, one.nodes.slice(0, 3).map(node => [node.html.slice(0, 160), node.failureSummary])])"""

ORDER = """() => { let last = 0; return [...document.querySelectorAll('h1, h2, h3, h4')].filter(h => {
  const level = Number(h.tagName[1]), skips = level > last + 1;
  last = level; return skips }).map(h => h.textContent) }"""

NAMELESS = """() => [...document.querySelectorAll('input, select, button, img, svg[role=img]')].filter(one =>
  !(one.labels?.length || one.textContent.trim() || one.getAttribute('aria-label') || one.getAttribute('alt')))
  .map(one => one.outerHTML.slice(0, 200))"""


PICTURED = ("comparison", "methods", "spaces", "sweep", "changes", "audit", "kinds", "leaderboard", "verdict")
OTHERS = tuple(name for name in RESULTS if name not in PICTURED)
NAMES = (*PICTURED, *OTHERS, "index")


@pytest.fixture(scope="module")
def pages(squares, of_squares, quick_audits, documents, tmp_path_factory):
    """A page of each type of result, those with samples with pictures, and the index of their folder."""
    folder, gen, ref = tmp_path_factory.mktemp("axe"), squares["gen"], squares["ref"]
    small = {"features": 60, "modes": 3}
    rng = np.random.default_rng(0)
    train, holdout = rng.integers(0, 256, (2, 110, 12, 12, 3), np.uint8)
    sets = {"train": train, "holdout": holdout, "gen": np.concatenate([train[:20], holdout[::-1][:90] // 2])}
    results = {
        "comparison": of_squares["comparison"],
        "methods": fe.compare_methods(gen, ref, ["finc", "rarity"], **small),
        "spaces": fe.compare({"one": gen, "two": gen}, {"one": ref, "two": ref}, **small),
        "sweep": fe.sweep(gen, ref, "rho", [1, 2], **small),
        "changes": fe.compare_releases(of_squares["comparison"], of_squares["comparison"]),
        "audit": fe.audit(**{name: fe.extract(images, "pixels") for name, images in sets.items()}),
        "kinds": of_squares["kinds"],
        "leaderboard": of_squares["many models"],
        "verdict": of_squares["verdict"],
        **{name: documents[name] for name in OTHERS},
    }
    for name, result in results.items():
        result.to_json(folder / f"{name}.json")
        result.to_html(folder / f"{name}.html", samples={one: sets[one] for one in ("gen", "train") if name == "audit"})
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
    return {name: folder / f"{name}.html" for name in NAMES}


@pytest.mark.parametrize("name", PICTURED)
def test_the_pages_looked_at_show_pictures(pages, name):
    assert "data:image/" in pages[name].read_text(encoding="utf-8")


@pytest.mark.parametrize("look", ["light", "dark", "print"])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(browser, pages, name, look):
    if not AXE.exists():
        pytest.skip("axe-core is missing: run make browser where npm is, or name its axe.min.js as FINC_EVAL_AXE")
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if look == "dark" else "light")
    page = context.new_page()
    page.goto(pages[name].as_uri())
    if page.locator("#whole").count():
        page.locator("#whole").check()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # everything that is folded is looked at, too
    page.emulate_media(media="print" if look == "print" else "screen")
    page.add_script_tag(path=AXE)
    assert page.evaluate(FINDINGS) == []
    context.close()


@pytest.mark.parametrize("name", NAMES)
def test_headings_follow_each_other_and_everything_has_a_name(browser, pages, name):
    page = browser.new_page()
    page.goto(pages[name].as_uri())
    assert page.locator("h1").count() == 1 and page.evaluate(ORDER) == []
    assert page.evaluate(NAMELESS) == []
    page.close()
