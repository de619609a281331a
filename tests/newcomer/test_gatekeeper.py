"""A newcomer gates releases, and another audits a generator: from folders of files and the README's commands alone."""

import re
import shlex
from pathlib import Path

import pytest
from _quick import AUDITS, quick
from _workshop import images_of
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.demo import example_sets

pytestmark = pytest.mark.long

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Folders of files, and nothing else: `broken` repeats ten pictures, and 12 of `generated` are of `train`."""
    folder = tmp_path_factory.mktemp("desk")
    gen, ref = map(images_of, example_sets(400))
    sets = {"real": ref[:100], "old": ref[100:170], "new": [gen[place % 10] for place in range(70)]}
    sets |= {"train": ref[:110], "holdout": ref[110:220], "generated": [*ref[:12], *ref[220:310]]}
    for name, images in sets.items():
        (folder / name).mkdir()
        for number, image in enumerate(images):
            Image.fromarray(image).save(folder / name / f"{number}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.mktemp("caches")))
        patch.chdir(folder)
        yield folder


def run(verb, code):
    """Run the README's command that begins so, with all tables; return what it prints, or its error, in one line."""
    (line,) = re.findall(rf"`finc-eval ({verb} [^`]*)`", README)
    done = CliRunner().invoke(app, [*shlex.split(line), "--verbose"])
    assert done.exit_code == code, done.output
    return " ".join((done.stderr if code == 3 else done.stdout).split())


def test_a_release_that_repeats_itself_is_stopped_by_the_first_sentence(desk):
    assert "no release is judged without a policy" in run("gate --gen", code=3)
    assert not (desk / "reports").exists()
    written = run("gate --init", code=0)
    policy = (desk / "gate.toml").read_text()
    assert "basics.duplicates" in policy and "at this n; your limit" in policy and "basics.duplicates" in written
    said = run("gate --gen", code=1)
    assert re.match(
        r"FAIL: 10 pictures, repeated 7\d times in all \((100|8[0-9.]+)(\.0)? %, before 0.0 %; allowed 1 %\)", said
    )
    assert said.index("What failed") < said.index("What could not be judged") < said.index("Held: ")
    (verdict,) = (desk / "reports").glob("*/verdict.md")
    assert "10 pictures, repeated 7" in verdict.read_text()


FEW_VIEWS = {"finc_eval.memorization.nearness.SUSPECTS": 20}
"""Samples whose ten views are embedded: a tenth. tests/memorization/test_altered_copies.py has all."""


def test_an_audit_begins_with_how_many_training_images_were_found(desk):
    with quick(AUDITS, FEW_VIEWS):
        said = run("audit --gen", code=0)
    assert said.startswith("12 of 102 samples are training images, pixel by pixel.")
    assert "equal pixels: 12 generated samples, 0 fresh samples" in said
    (page,) = (desk / "reports").glob("*/audit.html")
    assert "12 of 102 samples are training images" in page.read_text()
