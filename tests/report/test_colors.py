"""Each set has one color on a page, which the style has for both themes."""

import re
from importlib.resources import files

import pytest

from finc_eval.report.colors import COLOR_NAMES, COLORS, MODELS, inks_of

STYLE = (files("finc_eval.report") / "templates" / "report.css").read_text()
LIGHT, DARK = STYLE.split("@media (prefers-color-scheme: dark)", 1)
DARK = DARK[: DARK.index("* {")]
VARIABLES = {"other": "soft"}  # inks whose color the style calls otherwise

CASES = {
    "two sets": (["gen", "ref"], {"gen": "gen", "ref": "ref"}),
    "two sets without a reference": (["new", "old"], {"new": "gen", "old": "ref"}),
    "the reference first": (["ref", "new"], {"ref": "ref", "new": "gen"}),
    "models": (["b", "a", "ref"], {"b": "model-0", "a": "model-1", "ref": "ref"}),
    "models, one of them added": (
        ["b", "a", "ref", "A"],
        {"b": "model-0", "a": "model-1", "ref": "ref", "A": "model-2"},
    ),
    "models without a reference": (["b", "a", "c"], {"b": "model-0", "a": "model-1", "c": "model-2"}),
    "more models than colors": ([*"abcdefghi", "ref"], dict.fromkeys("abcdefghi", "gen") | {"ref": "ref"}),
}


@pytest.mark.parametrize(("labels", "inks"), CASES.values(), ids=CASES)
def test_each_set_has_a_color(labels, inks):
    assert inks_of(labels) == inks


def test_the_style_has_each_color_of_a_drawing_in_both_themes():
    for ink in ("gen", "ref", "other", *(f"model-{place}" for place in range(MODELS))):
        name = VARIABLES.get(ink, ink)
        assert f"--{name}: {COLORS[ink]};" in LIGHT, ink
        assert re.search(rf"--{name}: #[0-9a-f]{{6}};", DARK), ink


def luminance(color):
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colors_are_readable_as_letters_on_the_paper_of_their_theme():
    for theme in (LIGHT, DARK):
        paper = luminance(re.search(r"--paper: (#\w{6})", theme)[1])
        for ink in COLOR_NAMES:
            own = luminance(re.search(rf"--{ink}: (#\w{{6}})", theme)[1])
            high, low = max(own, paper), min(own, paper)
            assert (high + 0.05) / (low + 0.05) >= 4.5, ink
