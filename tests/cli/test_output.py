"""The output of verbs: files named by what they are, nothing of others overwritten, and records as JSON."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from _pages import a_comparison

import finc_eval as fe
from finc_eval.cli.output import (
    check_suffix,
    default_folder,
    emit,
    make_room,
    output_folder,
    print_json,
    refuse_loss,
    warn_of_large,
)
from finc_eval.core.errors import UsageError
from finc_eval.core.marks import job_digest, mark_of


def planned(folder, verb="changes", type_name="changes", force=False, out=None, **inputs):
    inputs = {label: str(folder / place) for label, place in inputs.items()}
    return output_folder(verb, type_name, inputs, out or folder / "out", force)


def test_a_result_has_a_page_and_a_json_file_which_bear_its_mark(tmp_path, capsys):
    output = replace(planned(tmp_path, gen="a", ref="b"), type_name="kinds", stem="kinds")
    result = a_comparison()
    emit(result, output, as_json=True)
    page, twin = tmp_path / "out" / "kinds.html", tmp_path / "out" / "kinds.json"
    assert capsys.readouterr().out.strip() == twin.read_text(encoding="utf-8").strip()
    assert mark_of(page) == mark_of(twin) == f"comparison {output.job}"
    assert mark_of(result.to_html(tmp_path / "python.html")) == result.mark
    emit(result, None, as_json=False)
    assert capsys.readouterr().out.startswith(result.headline)


def test_a_command_replaces_its_own_result_and_no_other(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    emit(a_comparison(), planned(tmp_path, "compare", "leaderboard", gen="a", ref="b"), as_json=True)
    # A comparison stands for any result here, as its files are named and marked in the same way.
    files = [tmp_path / "out" / f"leaderboard{suffix}" for suffix in (".html", ".json")]
    for path in files:
        path.write_text(
            path.read_text().replace("comparison ", "leaderboard ").replace('"comparison"', '"leaderboard"')
        )
    planned(tmp_path, "compare", "leaderboard", gen="a", ref="b")
    for other in ({"gen": "c", "ref": "b"}, {"gen": "b", "ref": "a"}):
        with pytest.raises(UsageError, match=r"did not make it, or made it with other settings.*--force"):
            planned(tmp_path, "compare", "leaderboard", **other)
        planned(tmp_path, "compare", "leaderboard", force=True, **other)
    with pytest.raises(UsageError, match="did not make it"):
        planned(tmp_path, "sweep", "leaderboard", gen="a", ref="b")
    files[0].write_text("<!DOCTYPE html>my own page")
    with pytest.raises(UsageError, match=r"leaderboard\.html exists"):
        planned(tmp_path, "compare", "leaderboard", gen="a", ref="b")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}", b'{"program": "finc-eval"}', b"[1]", b"null"])
@pytest.mark.parametrize("suffix", [".html", ".json", ".h5"])
def test_other_files_bear_no_mark(tmp_path, suffix, content):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    assert mark_of(path) is None


def test_a_folder_is_not_a_file_and_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("text")
    with pytest.raises(UsageError, match=r"the folder of several files, got page\.html: pass page for example"):
        planned(tmp_path, out=Path("page.html"), gen="a")
    with pytest.raises(UsageError, match="b is a file, and --out is a folder"):
        planned(tmp_path, out=tmp_path / "b", gen="a")
    with pytest.raises(UsageError, match=r"--out must end in \.csv, got s: pass s\.csv for example"):
        check_suffix(Path("s"), ".csv")
    (tmp_path / "c.csv").mkdir()
    with pytest.raises(UsageError, match=r"c\.csv is a folder: name the file to write"):
        refuse_loss(tmp_path / "c.csv", lambda found: True, True)


def test_force_makes_room_for_a_file_of_another_kind(tmp_path):
    path = tmp_path / "s.h5"
    path.write_text("a thesis")
    made = fe.Sketch.reference(np.eye(30, dtype=np.float32), features=4)
    make_room(path, "sketch", force=False)
    with pytest.raises(fe.DataError, match="is not a finc-eval sketch"):
        made.save(path)
    make_room(path, "sketch", force=True)
    made.save(path)
    make_room(path, "sketch", force=True)
    assert path.exists()  # until the new one is whole


def test_the_default_folder_is_named_by_the_sets():
    assert default_folder(["gen", "ref"]) == Path("reports/gen-vs-ref")
    assert default_folder(list("abcdef")) == Path("reports/a-vs-b-vs-c-vs-d-vs-2-more")


def test_a_job_is_known_by_its_verb_and_the_places_of_its_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = job_digest("compare", {"gen": "a", "ref": "b"})
    assert job == job_digest("compare", {"ref": str(tmp_path / "b"), "gen": "./a/"})
    assert job != job_digest("compare", {"ref": "a", "gen": "b"}) != job_digest("sweep", {"ref": "a", "gen": "b"})
    assert a_comparison().marked(job).provenance.job == job


@dataclass(frozen=True)
class Found:
    """A record with a path that is not text, and a number that JSON does not have."""

    path: Path = Path("a\udcff")
    share: float = float("nan")


@pytest.mark.parametrize("value", [Found(), [Found(), Found()], {"name": "x"}])
def test_records_are_printed_as_json(value, capsys):
    print_json(value)
    found = {"path": "a\udcff", "share": None}
    expected = found if isinstance(value, Found) else [found] * 2 if isinstance(value, list) else value
    assert json.loads(capsys.readouterr().out) == expected


def test_a_large_page_is_told_with_the_setting_that_makes_it_smaller(tmp_path, capsys, monkeypatch):
    page = tmp_path / "comparison.html"
    page.write_bytes(bytes(2000))
    warn_of_large(page)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("finc_eval.cli.output.LARGE_PAGE", 1000)
    warn_of_large(page)
    assert "opens slowly: pass fewer --pictures" in capsys.readouterr().err
