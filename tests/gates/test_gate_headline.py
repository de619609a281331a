"""The first line of a gate: what is wrong by name and once, and what most likely is though no limit is on it."""

import html
import json
import re
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval import report
from finc_eval.gates.verdict import junit_xml

N, SIDE = 240, 32


@cache
def drawn(seed):
    """Pictures of stripes in one of six colors, which are their labels."""
    rng = np.random.default_rng(seed)
    colors = np.eye(3)[np.arange(6) % 3] * 150 + 40 * (np.arange(6) >= 3)[:, None]
    labels = rng.choice(6, N, p=[0.15, *[0.17] * 5])
    images = []
    for label in labels:
        stripes = rng.integers(0, 90, (SIDE, 1, 1)) * np.ones((1, SIDE, 1)) + rng.normal(0, 12, (SIDE, SIDE, 3))
        images.append(Image.fromarray((stripes + colors[label]).clip(0, 255).astype(np.uint8)))
    return images, labels


def as_set(images, labels):
    rows = np.stack([np.asarray(one.resize((4, 4))).ravel() for one in images]) / 40
    return fe.EmbeddingSet(
        rows.astype(np.float32), images=images, metadata={"label": [f"color-{one}" for one in labels]}
    )


def release(seed, change=lambda images, labels: (images, labels)):
    return as_set(*change(*map(list, drawn(seed))))


def blur(images, labels):
    return [one.filter(ImageFilter.GaussianBlur(2)) if i % 4 == 0 else one for i, one in enumerate(images)], labels


def repeat(images, labels):
    return [images[0] if i % 8 == 0 else one for i, one in enumerate(images)], labels


def lose(images, labels):
    kept = [i for i, one in enumerate(labels) if one != 0]
    return [images[i] for i in kept], [labels[i] for i in kept]


CASES = {
    "a limit on repeats names the picture": (
        repeat, {"basics.duplicates": 0.01}, "regression", r"one picture, 3\d times",
    ),
    "a lost kind without a limit is told": (
        lose, {"kinds.moved": 0.02}, "undecided", r"most likely lost, not limited: (color-0|reddish)",
    ),
    "a look without a limit is told": (blur, {"kinds.moved": 0.02}, "undecided", r"blurred"),
    "a lost kind has its name": (
        lose, {"kinds.lose": 0.5, "kinds.column": "label"}, "regression",
        r"FAIL: lacks (mostly )?color-0 \(0\.0 %, before \d+\.\d %; allowed down to",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_headline_names_what_is_wrong_and_is_the_first_line_of_all_outputs(case, capsys):
    change, policy, overall, words = CASES[case]
    verdict = fe.gate(release(3, change), release(1), release(2), policy)
    assert verdict.overall == overall
    (line,) = verdict.headline.splitlines()
    assert re.search(words, line), line
    assert json.loads(verdict.to_json())["headline"] == line
    assert f'name="headline" value="{line}"' in junit_xml(verdict)
    report.show(verdict)
    assert capsys.readouterr().out.startswith(line)
    assert line.split(" (")[0] in html.unescape(verdict.to_markdown()).replace("\\", "")
    assert line.split(" (")[0] in html.unescape(report.page(verdict, {})).replace("\xa0", " ")


def test_an_unchanged_release_is_said_to_hold_and_nothing_is_claimed():
    verdict = fe.gate(release(3), release(1), release(2), {"kinds.lose": 0.5, "kinds.column": "label"})
    assert verdict.headline == f"PASS: all {len(verdict.limits)} limits held." and verdict.causes == ()
    assert "seen from" in verdict.held
