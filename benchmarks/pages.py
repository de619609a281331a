"""Measure pages: their size, how long they take to be written, and how long a browser needs to show them.

Needs chromium and playwright (pip install .[browser]), and photographs of the test assets (FINC_EVAL_ASSETS). Fifty
modes with sixteen photographs of each set are more than most comparisons have. Seconds of a processor are those of
`to_html`, of a result whose pictures were not read yet.
"""

import shutil
import tempfile
import time
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from _real import asset
from _record import record
from PIL import Image
from playwright.sync_api import sync_playwright
from video_faults import clip_of, scenes, still_second_half

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.demo.planted import planted_sets
from finc_eval.gallery.counts import SHOWN_SAMPLES
from finc_eval.gallery.pictured import Caption
from finc_eval.gallery.thumbnails import thumbnail

MODES = 50
CLIPS = 150  # clips of each set, of 33 frames of 64 × 64 pixels
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


def demo():
    """Return the comparison of the demo."""
    sets = []
    for one in planted_sets():
        small = one.images.reshape(-1, 7, 4, 7, 4, 3).mean((2, 4)).reshape(len(one.images), -1)
        sets.append(fe.EmbeddingSet(small.astype(np.float32) / 255, images=one.images))
    return fe.compare(*sets)


def of_clips():
    """Return a comparison of clips in five kinds, the first of the generated set alone; None without the assets."""
    made = scenes(2 * CLIPS, seed=3)
    if made is None:
        return None
    rng = np.random.default_rng(0)
    kinds = np.r_[np.zeros(CLIPS // 3, int), rng.integers(1, 5, 2 * CLIPS - CLIPS // 3)]
    rows = (4 * rng.normal(size=(5, 16))[kinds] + rng.normal(size=(2 * CLIPS, 16))).astype(np.float32)
    clips = [clip_of(one) if kind else still_second_half(one) for kind, one in zip(kinds, made, strict=True)]
    halves = (slice(CLIPS), slice(CLIPS, None))
    return fe.compare(*(fe.EmbeddingSet(rows[one], images=clips[one]) for one in halves))


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
    clips = of_clips()
    results = {
        "the demo": demo(),
        **({} if clips is None else {f"{CLIPS} + {CLIPS} clips": clips}),
        f"{MODES} modes of photographs": many_modes(photographs(archive)),
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for number, (name, result) in enumerate(results.items()):
            path, start = Path(folder) / f"{number}.html", time.process_time()
            result.to_html(path)
            written = time.process_time() - start
            paint, load = times(browser, path)
            rows.append(
                {
                    "page": name,
                    "pictures": path.read_text(encoding="utf-8").count("<img"),
                    "size, MB": f"{path.stat().st_size / 1e6:.2f}",
                    "written, CPU s": f"{written:.1f}",
                    "first paint, s": f"{paint:.2f}",
                    "loaded, s": f"{load:.2f}",
                }
            )
        browser.close()
    record("pages", rows, "headless Chromium, 1280 × 900, best of three; limits: 1.5 MB, 2 CPU s, 1 s and 3 s")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
