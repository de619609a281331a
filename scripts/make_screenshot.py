"""Make docs/images/report.png, the picture in the README: the first screen of the demo's page.

    make demo
    python scripts/make_screenshot.py

Needs chromium and playwright (pip install .[browser]).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "reports" / "demo" / "comparison.html"
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE = {"width": 1280, "height": 1000}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> None:
    """Write the picture."""
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(PAGE.as_uri(), wait_until="load")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
