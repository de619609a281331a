"""A newcomer ranks models, from folders of files and the README alone, and sees the words that lead on."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from _workshop import images_of
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.demo import example_sets
from finc_eval.gates.policy import Policy

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SAMPLES = 30


def commands(verb):
    """The commands of the README that begin so, as words."""
    return [shlex.split(line)[1:] for line in re.findall(rf"`(finc-eval {verb} [^`]*)`", README)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Folders of files, and nothing else."""
    folder = tmp_path_factory.mktemp("desk")
    gen, ref = map(images_of, example_sets(3 * SAMPLES))
    sets = {"real": ref[:SAMPLES], "model-one": gen[:SAMPLES], "model-two": ref[SAMPLES : 2 * SAMPLES]}
    for name, images in (sets | {"model-three": gen[SAMPLES : 2 * SAMPLES]}).items():
        (folder / name).mkdir()
        for number, image in enumerate(images):
            Image.fromarray(image).save(folder / name / f"{number}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.mktemp("caches")))
        patch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path_factory.mktemp("weights")))
        patch.setenv("COLUMNS", "200")
        patch.chdir(folder)
        yield folder


@pytest.mark.long
def test_the_commands_of_the_readme_rank_two_models_today_and_a_third_tomorrow(desk):
    (rank,), (add,) = (commands(f"leaderboard {rest}") for rest in ("--ref", "add"))

    def run(words, code=0):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == code, done.output
        return done

    before = run([*rank, "--metrics", "FID"], code=3).stderr
    assert "run finc-eval doctor weights fetch inception-fid" in before
    assert "fd is the same by any extractor, and not fid" in before
    assert not (desk / "board").exists()
    today = run([*rank, "--verbose"]).stdout
    assert "By unmatched, " in today and "of 2 models" in today and "efficientnet-lite0" in today
    assert "to add a model: finc-eval leaderboard add board --ref real/ NAME=PATH" in today
    assert "board/leaderboard.html" in today and fe.Board("board").names == ("one", "two")
    first = (desk / "board" / "entries" / "one.json").read_bytes()
    tomorrow = run(add)
    assert "added three to board" in tomorrow.stdout and "board/leaderboard.html" in tomorrow.stdout
    assert (desk / "board" / "entries" / "one.json").read_bytes() == first  # nothing is measured anew
    shown = run(["leaderboard", "show", "board"]).stdout
    assert "of 3 models" in shown
    page = (desk / "board" / "leaderboard.html").read_text()
    assert all(name in page for name in ("one", "two", "three")) and "data:image/" in page
    assert "not shown" not in page
    run(["leaderboard", "render", "board"])  # a board keeps the pictures that its page shows
    assert "data:image/" in (desk / "board" / "leaderboard.html").read_text()
    lost = run(rank, code=3).stderr
    assert "this command with these inputs did not make it" in lost


def test_the_readme_shows_a_policy_of_a_few_lines_and_says_how_to_make_one(desk):
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.S)
    assert len(text.splitlines()) <= 7 and isinstance(Policy.of(tomllib.loads(text)), Policy)
    gate, init = (commands(f"gate {rest}")[0] for rest in ("--gen", "--init"))
    refused = CliRunner().invoke(app, [*gate[:2], "model-one", "--baseline", "model-two", "--ref", "real"])
    assert refused.exit_code == 3
    assert f"finc-eval {' '.join(init[:2])} --baseline model-two --ref real --policy gate.toml" in refused.stderr
