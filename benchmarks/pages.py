"""Measure pages: their size, and how long a browser needs to show them.

Needs chromium and playwright (pip install .[browser]), and photographs of the test assets (FINC_EVAL_ASSETS). Fifty
modes with sixteen photographs of each set are more than most comparisons have.
"""

import shutil
import tempfile
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
from _real import asset
from _record import record
from PIL import Image
from playwright.sync_api import sync_playwright

import finc_eval as fe
from finc_eval.comparison.pages.comparison import page
from finc_eval.demo import example_sets
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.gallery.pictured import Caption
from finc_eval.gallery.thumbnails import thumbnail

MODES = 50
REPORTS = Path(__file__).parents[1] / "reports"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def photographs(archive):
    """Return thumbnails of 400 photographs, by id."""
    with zipfile.ZipFile(archive) as file:
        names = [name for name in file.namelist() if name.lower().endswith((".jpg", ".jpeg"))][:400]
        images = (np.asarray(Image.open(BytesIO(file.read(name))).convert("RGB")) for name in names)
        return {f"{number}.jpg": thumbnail(image) for number, image in enumerate(images)}


def many_modes(pictures):
    """Return a comparison of fifty modes, each with typical, drawn and nearest photographs."""
    rng = np.random.default_rng(0)
    base = fe.compare(*example_sets(), features=200, modes=1)
    (mode,) = base.under[:1]
    modes = []
    for number in range(MODES):
        drawn = [tuple(map(str, rng.choice(list(pictures), SHOWN_SAMPLES))) for _ in range(4)]
        scores = np.linspace(0.9, 0.5, SHOWN_SAMPLES, dtype=np.float32)
        tail = replace(mode.tails[0], gen_ids=drawn[0], ref_ids=drawn[1], gen_scores=scores, ref_scores=scores)
        tails = (replace(tail, share=1.0), replace(mode.tails[1], share=0.0))
        chosen = {"id": f"under-{number}", "tails": tails, "drawn_gen": drawn[2], "drawn_ref": drawn[3]}
        modes.append(replace(mode, p_value=1e-6, stability=0.9, **chosen))
    names = list(pictures)
    nearest = {name: Caption((), (str(rng.choice(names)), 0.5)) for name in names}
    kept = {"gen": pictures, "ref": pictures}
    return replace(base, over=(), under=tuple(modes), kept=kept, captions={"gen": nearest})


def times(browser, path):
    """Return when a new window has painted first, and when it has loaded, in seconds; the best of three."""
    found = []
    for _ in range(3):
        window = browser.new_page(viewport={"width": 1280, "height": 900})
        window.goto(path.resolve().as_uri(), wait_until="load")
        window.wait_for_timeout(300)
        paint = window.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        load = window.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        found.append((paint / 1000, load / 1000))
        window.close()
    return [min(one) for one in zip(*found, strict=True)]


def main():
    archive = asset("photos", "imagenet_500.zip")
    if archive is None:
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        large = Path(folder) / "modes.html"
        large.write_text(page(many_modes(photographs(archive)), {}), encoding="utf-8")
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, path in (
            ("the demo", REPORTS / "demo" / "comparison.html"),
            (f"{MODES} modes with {9 * SHOWN_SAMPLES // 2} photographs each", large),
        ):
            paint, load = times(browser, path)
            text = path.read_text(encoding="utf-8")
            rows.append(
                {
                    "page": name,
                    "pictures": text.count("<img"),
                    "size, MB": f"{path.stat().st_size / 1e6:.2f}",
                    "first paint, s": f"{paint:.2f}",
                    "loaded, s": f"{load:.2f}",
                }
            )
        browser.close()
    record("pages", rows, "headless Chromium, 1280 × 900, best of three; limits: 1 and 5 MB, 1 s and 3 s")


if __name__ == "__main__":
    main()
