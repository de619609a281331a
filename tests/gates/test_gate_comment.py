"""The comment of a gate on a change: what is wrong, with pictures before and now as files beside it."""

from dataclasses import replace

import pytest
from _cards import small_pixel_card
from _pictures import blur, drawn, release
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.gates.page import MARKER, MAX_COMMENT, comment


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Make folders of pictures, a policy and a card of pixels; a quarter of the release is blurred."""
    folder = tmp_path_factory.mktemp("desk")
    for name, seed in {"new": 3, "old": 1, "ref": 2}.items():
        images = blur(*map(list, drawn(seed)))[0] if name == "new" else drawn(seed)[0]
        (folder / name).mkdir()
        for number, image in enumerate(images):
            image.save(folder / name / f"{number:03d}.png")
    (folder / "gate.toml").write_text("appearance.part = 0.02\n")
    small_pixel_card(folder / "card.toml", 4)
    return folder


def gate(desk, *more):
    names = {"--gen": "new", "--baseline": "old", "--ref": "ref", "--policy": "gate.toml", "--extractor": "card.toml"}
    places = [part for option, name in names.items() for part in (option, str(desk / name))]
    return CliRunner().invoke(app, ["gate", *places, "--out", str(desk / "gate"), *more])


@pytest.mark.long
def test_a_comment_shows_what_is_wrong_with_pictures_before_and_now_and_replaces_itself_alone(desk):
    file = desk / "comment.md"
    for _ in range(2):
        done = gate(desk, "--comment", str(file))
        assert done.exit_code == 1, done.output
    mark, marker, headline, *rest = file.read_text().splitlines()
    assert mark.startswith("<!-- finc-eval: verdict ") and marker == MARKER
    assert headline.startswith("### FAIL: a quarter is blurred")
    (row,) = [line for line in rest if line.startswith("| a quarter is blurred")]
    for when in ("before", "now"):
        name = f"comment-1-{when}.png"
        assert f"![{when}]({name})" in row
        with Image.open(desk / name) as picture:
            assert picture.height == 64 and picture.width > 128
    file.write_text("my own words\n")
    refused = gate(desk, "--comment", str(file))
    assert refused.exit_code == 3 and "choose another --comment" in refused.output
    assert file.read_text() == "my own words\n"
    assert gate(desk, "--comment", str(desk / "comment.html")).exit_code == 3


def test_a_comment_of_much_stays_within_its_size(failed):
    warnings = tuple(f"warning {number} " + "x" * 400 for number in range(400))
    text, _ = comment(replace(failed, warnings=warnings), {}, "comment")
    assert len(text.encode()) <= MAX_COMMENT and text.startswith("<!-- finc-eval: ")


def test_noise_is_taken_from_the_baseline_and_never_from_a_broken_release():
    new, old, ref = release(3, blur), release(1), release(2)
    policy = {"metrics": {"kid": {"difference": "noise"}}}
    for gen in (new, old):
        said = fe.gate(gen, old, ref, policy).warnings
        assert not [one for one in said if "even a release without any change" in one]
