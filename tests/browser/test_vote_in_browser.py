"""The page to vote on as a browser shows it: keys, progress after a reload, the saved CSV, and no names."""

import base64
import csv
import io
import json

import numpy as np
import pytest
from _videos import encode
from PIL import Image

from finc_eval.judges.strengths import Strengths
from finc_eval.judges.vote_page import draw_ballots, vote_page
from finc_eval.judges.votes import read_votes

pytestmark = pytest.mark.browser

MODELS = ("zebra-one", "zebra-two")
PAIRS = 12


@pytest.fixture(scope="module")
def voted(tmp_path_factory):
    """Pictures of two models, red and blue, with prompts that have to be quoted in CSV."""
    folder = tmp_path_factory.mktemp("vote")
    for name, color in zip(MODELS, ((200, 30, 30), (30, 30, 200)), strict=True):
        (folder / name).mkdir()
        lines = []
        for number in range(PAIRS):
            Image.new("RGB", (80, 80), color).save(folder / name / f"{number}.png")
            lines.append(json.dumps({"file_name": f"{number}.png", "prompt": f'a "big", red thing {number}'}))
        (folder / name / "metadata.jsonl").write_text("\n".join(lines))
    out = folder / "vote.html"
    out.write_text(vote_page({name: str(folder / name) for name in MODELS}, seed=5))
    return out


def is_red(page, side):
    """Return whether the picture of a side is red, read from its pixels."""
    return page.evaluate(
        """async side => {
          const image = document.getElementById(side); await image.decode();
          const canvas = document.createElement("canvas"); canvas.width = canvas.height = 1;
          const context = canvas.getContext("2d"); context.drawImage(image, 0, 0, 1, 1);
          const [red, , blue] = context.getImageData(0, 0, 1, 1).data; return red > blue }""",
        side,
    )


def test_votes_by_keys_and_buttons_are_saved_as_the_csv_that_a_board_reads(visit, check_page, voted, tmp_path):
    page, events = visit(voted)
    check_page(page, events, voted)
    assert "zebra" not in page.content() and page.title() == "Which is better? – finc-eval"
    assert page.locator("#progress").inner_text() == f"0 of {PAIRS} votes"
    for number in range(PAIRS - 1):  # red wins, but for two ties
        if number in (3, 7):
            page.keyboard.press("ArrowDown")
        else:
            page.keyboard.press("ArrowLeft" if is_red(page, "left") else "ArrowRight")
    assert page.locator("#progress").inner_text() == f"{PAIRS - 1} of {PAIRS} votes"
    page.reload()
    assert page.locator("#progress").inner_text() == f"{PAIRS - 1} of {PAIRS} votes"
    page.keyboard.press("Backspace")
    assert page.locator("#progress").inner_text() == f"{PAIRS - 2} of {PAIRS} votes"
    page.locator("#voter").fill("An Na")
    page.keyboard.press("ArrowLeft")  # in the field of the name, this is no vote
    assert page.locator("#progress").inner_text() == f"{PAIRS - 2} of {PAIRS} votes"
    for _ in range(2):
        page.locator("#choose-left" if is_red(page, "left") else "#choose-right").click()
    assert page.locator("#choices").is_hidden() and "save them" in page.locator("#progress").inner_text()
    with page.expect_download() as waiting:
        page.locator("#save").click()
    assert waiting.value.suggested_filename == "votes-An-Na.csv"
    waiting.value.save_as(tmp_path / "votes.csv")
    rows = list(csv.DictReader((tmp_path / "votes.csv").open()))
    assert len(rows) == PAIRS and {row["voter"] for row in rows} == {"An Na"}
    assert {row["prompt"] for row in rows} == {f'a "big", red thing {number}' for number in range(PAIRS)}
    assert [row["winner"] for row in rows].count("zebra-one") == PAIRS - 2
    samples = {name: {f'a "big", red thing {n}': [n] for n in range(PAIRS)} for name in MODELS}
    ballots = draw_ballots(samples, 100, 5)
    assert [(row["left"], row["right"]) for row in rows] == [one.names for one in ballots]
    found = Strengths.of(read_votes(tmp_path / "votes.csv", MODELS))
    assert found.fit.strengths[0] > found.fit.strengths[1]
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("kept", ["localStorage", "history"])
def test_votes_last_over_a_reload_where_a_browser_keeps_only_some(visit, voted, kept):
    page, events = visit(voted)
    page.add_init_script(
        "Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new DOMException('blocked') }"
        if kept == "history"
        else "history.replaceState = () => { throw new DOMException('blocked') }"
    )
    page.reload()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    # Chromium hands over what it stores a little later: of 230 reloads within milliseconds, two came before that, and
    # one came before it after half a second on a busy machine.
    page.wait_for_timeout(2000)
    page.reload()
    assert page.locator("#progress").inner_text() == f"2 of {PAIRS} votes" and events["console"] == []


def written(suffix, frames):
    """Return the bytes of a clip of eight frames a second."""
    if suffix == "mp4":
        return encode(suffix, frames, rate=8)
    pictures, file = [Image.fromarray(one) for one in frames], io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=125, loop=0)
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_clips_move_and_are_voted_on(visit, check_page, tmp_path, suffix):
    for name, color in zip(MODELS, ((200, 30, 30), (30, 30, 200)), strict=True):
        (tmp_path / name).mkdir()
        for number in range(2):
            frames = np.full((24, 48, 64, 3), color, np.uint8)
            for place in range(24):
                frames[place, 8:16, 2 * place : 2 * place + 8] = 255
            (tmp_path / name / f"a dog runs {number}.{suffix}").write_bytes(written(suffix, frames))
    out = tmp_path / "vote.html"
    out.write_text(vote_page({name: str(tmp_path / name) for name in MODELS}, seed=5))
    page, events = visit(out)
    check_page(page, events, out)
    assert "zebra" not in page.content()
    for number in range(2):
        for side in ("left", "right"):
            source = page.locator(f"#{side}").get_attribute("src")
            assert source.startswith("data:image/webp;base64,")
            with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as clip:
                assert clip.is_animated and clip.n_frames > 10
        assert page.locator("#prompt").inner_text().startswith("a dog runs")
        page.keyboard.press("ArrowLeft" if is_red(page, "left") else "ArrowRight")
        assert page.locator("#progress").inner_text()[0] in (str(number + 1), "A")
    with page.expect_download() as waiting:
        page.locator("#save").click()
    waiting.value.save_as(tmp_path / "votes.csv")
    votes = read_votes(tmp_path / "votes.csv", MODELS)
    assert votes.n == 2 and {votes.prompts[one] for one in votes.prompt} == {"a dog runs 0", "a dog runs 1"}
    assert {row["winner"] for row in csv.DictReader((tmp_path / "votes.csv").open())} == {"zebra-one"}
    page.evaluate("localStorage.clear()")
