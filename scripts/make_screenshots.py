"""Make the pictures in the README: the first screens of the demo's page and of the example board.

    make demo
    python scripts/make_screenshots.py

Needs chromium and playwright (pip install .[browser]).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = {"report.png": ("demo/comparison.html", 1000), "leaderboard.png": ("leaderboard/leaderboard.html", 1040)}
"""Page below reports/ of each picture, and the height of the window."""

WIDTH = 1280
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> None:
    """Write the pictures."""
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, (path, height) in PICTURES.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            page.goto((ROOT / "reports" / path).as_uri(), wait_until="load")
            page.screenshot(path=ROOT / "docs" / "images" / name)
        browser.close()


if __name__ == "__main__":
    main()
