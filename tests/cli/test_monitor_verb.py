"""`finc-eval monitor`: folders and files of several steps, their order, and the page."""

import json

import numpy as np
import pytest
from _verbs import done, run
from PIL import Image


@pytest.fixture
def steps(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "real.npy", rng.normal(size=(300, 8)))
    for step in (100, 200, 1000, 900):
        spread = 0.4 if step >= 900 else 1
        np.save(tmp_path / f"ckpt-{step}.npy", spread * rng.normal(size=(200, 8)))
    return tmp_path


def test_steps_are_followed_in_their_order_and_the_page_names_what_changed(steps):
    made = done("monitor", *sorted(steps.glob("ckpt-*")), "--ref", steps / "real.npy", "--out", steps / "page.html")
    page = (steps / "page.html").read_text(encoding="utf-8")
    for text in (made.stdout, page):
        assert "samples are less diverse" in text and "Keep step 200" in text
    assert "with 64 samples an evaluation" in made.stderr.lower() and "<title>diversity</title>" in page
    course = json.loads(
        done(
            *("monitor", *steps.glob("ckpt-*"), "--ref", steps / "real.npy", "--json", "--quiet"),
            *("--out", steps / "page.html"),
        ).stdout
    )
    assert course["steps"] == [100, 200, 900, 1000] and course["type"] == "course"


def test_without_a_reference_the_first_step_is_it(steps):
    course = json.loads(
        done("monitor", *steps.glob("ckpt-*"), "--json", "--quiet", "--out", steps / "page.html").stdout
    )
    assert course["steps"] == [200, 900, 1000]


def course_of(steps, *words):
    made = done("monitor", *words, "--json", "--quiet", "--out", steps / "page.html", "--force")
    return json.loads(made.stdout), made.stderr


def test_a_step_is_given_by_hand_where_the_name_does_not_say_it(steps):
    (steps / "final.npy").write_bytes((steps / "ckpt-1000.npy").read_bytes())
    (steps / "ckpt-1000.npy").unlink()
    words = (*steps.glob("*-*.npy"), steps / "final.npy", "--ref", steps / "real.npy", "--step", "final=20k")
    assert course_of(steps, *words)[0]["steps"] == [100, 200, 900, 20000]
    assert course_of(steps, *words, "--step", "ckpt-100.npy=0")[0]["steps"] == [0, 200, 900, 20000]


def test_the_reference_and_a_repeat_among_the_steps_are_left_out_and_told(steps):
    (steps / "ckpt-300.npy").write_bytes((steps / "ckpt-200.npy").read_bytes())
    np.save(steps / "ckpt-50.npy", np.load(steps / "real.npy")[:64])
    course, _ = course_of(steps, *steps.glob("ckpt-*"), "--ref", steps / "real.npy")
    assert course["steps"] == [100, 200, 900, 1000]
    assert "64 of the 64 samples of step 50 are those of the reference" in course["warnings"][0]
    assert "the samples of step 300 are those of step 200" in course["warnings"][1]
    again, told = course_of(steps, *steps.glob("ckpt-*"), "--ref", steps / "ckpt-100.npy")
    assert again["steps"] == [50, 200, 900, 1000] and told.count("are those of the reference") == 1


def test_a_reference_alone_is_no_look(steps):
    result = run("monitor", steps / "ckpt-100.npy", "--ref", steps / "ckpt-100.npy", "--out", steps / "page.html")
    assert result.exit_code == 3 and "no evaluation is left: 200 of the 200 samples" in result.output
    assert not (steps / "page.html").exists()


def test_a_picture_that_is_half_written_is_counted(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("real", 45), ("ckpt-100", 8)):
        (tmp_path / name).mkdir()
        for place in range(n):
            image = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
            image.save(tmp_path / name / f"{place}.png")
    half = tmp_path / "ckpt-100" / "3.png"
    half.write_bytes(half.read_bytes()[:100])
    options = ("--ref", tmp_path / "real", "--out", tmp_path / "page.html", "--extractor", "pixels")
    course = json.loads(done("monitor", tmp_path / "ckpt-100", *options, "--json", "--quiet").stdout)
    assert (
        course["samples"] == [7] and "step 100: 1 sample of the evaluation could not be read" in course["warnings"][0]
    )


def test_mistakes_end_with_one_sentence(steps):
    (steps / "last.npy").write_bytes((steps / "real.npy").read_bytes())
    (steps / "b-100.npy").write_bytes((steps / "real.npy").read_bytes())
    for files, words in (
        (["last.npy"], "last.npy has no number that could be its step: pass --step last.npy=500"),
        (["ckpt-100.npy", "b-100.npy"], "are both of step 100"),
        (["ckpt-100.npy"], "pass --ref, or further steps"),
    ):
        result = run("monitor", *(steps / one for one in files), "--out", steps / "new.html")
        assert result.exit_code == 3 and words in result.output and not (steps / "new.html").exists()
    result = run("monitor", *steps.glob("ckpt-*"), steps / "last.npy", "--step", "lasst=5", "--out", steps / "new.html")
    assert result.exit_code == 3 and 'no name (did you mean "last.npy"?)' in result.output
    (steps / "mine.html").write_text("mine")
    result = run("monitor", *steps.glob("ckpt-*"), "--out", steps / "mine.html")
    assert result.exit_code == 3 and "choose another --out" in result.output


def test_two_trainings_are_compared_side_by_side(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "real.npy", rng.normal(size=(200, 4)))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for step in range(100, 700, 100):
            spread = 0.4 if name == "b" and step >= 300 else 1
            np.save(tmp_path / name / f"step-{step}.npy", spread * rng.normal(size=(64, 4)))
    words = [f"a={tmp_path}/a/", f"b={tmp_path}/b/", "--ref", tmp_path / "real.npy", "--out", tmp_path / "page.html"]
    found = json.loads(done("monitor", *words, "--json", "--quiet").stdout)
    dated = {one["name"]: one["since"] for one in found["differences"]}
    assert found["type"] == "trainings" and found["names"] == ["a", "b"] and dated["diversity"] == 300
    assert "diversity" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for wrong in ([words[0], "b=missing/"], [*words[:2], words[0].replace("a=", "c=")], words[:1]):
        result = run("monitor", *wrong, *words[2:])
        assert result.exit_code == 3 and "Traceback" not in result.output


def test_fixed_prompts_stand_beside_fresh_samples(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "real.npy", rng.normal(size=(120, 4)))
    same = rng.normal(size=(8, 4))
    (tmp_path / "fixed").mkdir()
    for step in range(100, 700, 100):
        np.save(tmp_path / f"ckpt-{step}.npy", rng.normal(size=(40, 4)))
        np.save(tmp_path / "fixed" / f"ckpt-{step}.npy", same + 0.01 * rng.normal(size=(8, 4)) + 3 * (step > 300))
    course, _ = course_of(
        tmp_path, *tmp_path.glob("ckpt-*"), "--ref", tmp_path / "real.npy", "--fixed", tmp_path / "fixed"
    )
    assert course["fixed"]["steps"] == [100, 200, 300, 400, 500, 600]
    assert [change["name"] for change in course["fixed"]["changes"]] == ["distance"] and course["alarms"] == []
