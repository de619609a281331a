"""A release engineer and a ranker, with photographs in which faults are planted, from the README's commands alone."""

import io
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from PIL import Image, ImageFilter
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app

pytestmark = [pytest.mark.long, pytest.mark.by_turns(2)]

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
N = 300  # photographs of each set


@pytest.fixture(scope="module")
def desk(assets, tmp_path_factory):
    """Folders of photographs: a quarter of `new` is blurred, `model-one` has no jellyfish, `model-two` one picture."""
    folder = tmp_path_factory.mktemp("desk")
    with zipfile.ZipFile(assets / "photos" / "tiny_imagenet_24x300.zip") as archive:
        names = sorted(one for one in archive.namelist() if one.endswith(".JPEG"))
        classes = [*sorted({one.split("/")[0] for one in names})[:10], "jellyfish"]
        of_class = {name: [one for one in names if one.startswith(f"{name}/")] for name in dict.fromkeys(classes)}
        every = [one for row in zip(*of_class.values(), strict=True) for one in row]

        def photos(start, without=""):
            chosen = [one for one in every[start * N : (start + 2) * N] if not (without and one.startswith(without))]
            return [Image.open(io.BytesIO(archive.read(one))).convert("RGB") for one in chosen[:N]]

        sets = {"real": photos(0), "old": photos(2), "new": photos(4), "model-three": photos(6)}
        sets |= {"model-one": photos(7, "jellyfish"), "model-two": photos(8)}
    sets["new"][: N // 4] = [one.filter(ImageFilter.GaussianBlur(1.5)) for one in sets["new"][: N // 4]]
    sets["model-two"][:40] = [sets["model-two"][0]] * 40
    for name, images in sets.items():
        (folder / name).mkdir()
        for number, image in enumerate(images):
            image.save(folder / name / f"{number:03}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.mktemp("caches")))
        patch.setenv("COLUMNS", "200")
        patch.chdir(folder)
        yield folder


def run(verb, code=0):
    """Run the README's command that begins so, and return what it prints, in one line."""
    (line,) = re.findall(rf"`finc-eval ({verb} [^`]*)`", README)
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == code, done.output
    return " ".join(done.stdout.split())


def test_a_gate_begins_with_the_part_that_is_blurred_and_what_is_allowed(desk):
    run("gate --init")
    said = run("gate --gen", code=1)
    first = said.partition(".  ")[0]
    assert re.match(r"FAIL: (a quarter|2[0-9] %) is (blurred|blurrier)", first), first
    assert "before" in first and "allowed" in first
    (folder,) = (desk / "reports").glob("new*")
    headline = fe.load(folder / "verdict.json").headline
    assert said.startswith(" ".join(headline.split()))
    for name in ("verdict.md", "verdict.html", "verdict.xml"):
        assert re.search("is (blurred|blurrier)", (folder / name).read_text()), name


def test_a_board_names_the_fault_of_each_model_before_it_says_who_is_first(desk):
    said = run("leaderboard --ref")
    added = run("leaderboard add")
    for text in (said, added):
        assert "two is worst: one picture, 40 times (13.3 %, reference 0.0 %); one: lacks" in text, text[:400]
        assert "jellyfish" in text.partition("The board")[0]
    assert "three: no fault found." in added and " by unmatched alone, " in added
    board = fe.Board("board").leaderboard()
    assert "jellyfish" in board["one"].fault and "40 times" in board["two"].fault and board["three"].fault == ""
