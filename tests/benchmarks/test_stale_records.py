"""Records of benchmarks know the code that made them, and the page says which of them are stale."""

import json
import subprocess
import sys
from pathlib import Path

import _runs
import _stale
import pytest

OLDER = _stale.OLDER + _stale.UNKNOWN

PAGE = f"<!-- one -->\n| a |\n\n(notes.)\n<!-- end -->\n\n<!-- two -->\n| b |\n\n{OLDER}\n<!-- end -->\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A repository of one module, two records of which one knows its code, and their page."""
    folder = tmp_path / "benchmarks"
    (folder / "results").mkdir(parents=True)
    module = tmp_path / "finc_eval" / "numerics" / "sums.py"
    module.parent.mkdir(parents=True)
    module.write_text('"""Sums."""\n\n\ndef add(a, b):\n    """Add."""\n    return a + b  # exactly\n')
    monkeypatch.setattr(_stale, "HERE", folder)
    code = {"finc_eval/numerics/sums.py": _stale.digest_of(module)}
    (folder / "results" / "one.json").write_text(json.dumps({"code": code, "rows": []}))
    (folder / "results" / "two.json").write_text(json.dumps({"rows": []}))
    (folder / "README.md").write_text(PAGE)
    return folder, module


def test_words_and_comments_make_no_record_stale(here, capsys):
    folder, module = here
    module.write_text(
        '"""Other words."""\n\ndef add(a, b):\n    """Return the sum.\n\n    Really."""\n    return a + b\n'
    )
    assert _stale.main(mark=False) == 0
    assert capsys.readouterr().out == "not retaken since records know their code: two\n"
    assert (folder / "README.md").read_text() == PAGE


def test_changed_code_makes_a_record_stale_until_the_page_says_so(here, capsys):
    folder, module = here
    before = module.read_text()
    module.write_text(before.replace("a + b", "a - b"))
    assert _stale.main(mark=False) == 1
    told = capsys.readouterr().out
    assert "stale: one, made before finc_eval/numerics/sums.py changed" in told and "_stale.py --mark" in told
    assert _stale.main(mark=True) == 0 and _stale.main(mark=False) == 0
    page = (folder / "README.md").read_text()
    assert page.count(_stale.MARK) == 1 and "`finc_eval/numerics/sums.py` changed.\n<!-- end -->\n\n<!-- two" in page
    module.write_text(before)
    assert _stale.main(mark=False) == 1, "a mark that is not true any more"
    assert _stale.main(mark=True) == 0 and (folder / "README.md").read_text() == PAGE


def test_a_record_that_does_not_know_its_code_is_marked_as_older_until_it_is_taken_again(here):
    folder, module = here
    (folder / "README.md").write_text(PAGE.replace(f"\n{OLDER}\n", ""))
    assert _stale.main(mark=False) == 1, "a table that does not say so"
    assert _stale.main(mark=True) == 0 and (folder / "README.md").read_text() == PAGE
    code = {"finc_eval/numerics/sums.py": _stale.digest_of(module)}
    (folder / "results" / "two.json").write_text(json.dumps({"code": code, "rows": []}))
    assert _stale.main(mark=True) == 0 and OLDER not in (folder / "README.md").read_text()


def test_a_mark_names_a_few_modules_and_counts_the_rest():
    told = _stale.marked(PAGE, "one", [f"{number}.py" for number in range(5)])
    assert f"{_stale.MARK}made before `0.py`, `1.py`, `2.py` and 2 more changed.\n" in told


def test_names_of_settings_and_what_keeps_rows_make_no_record_stale():
    paths = (*_stale.WORDS, *(f"benchmarks/{name}" for name in _stale.OWN))
    assert _stale.changed_since({"code": dict.fromkeys(paths, "another")}) == []


def test_what_modes_are_called_changes_the_record_of_names_alone():
    code = {"finc_eval/naming/names.py": "another"}
    changed = [_stale.judged({"benchmark": name, "code": code, "rows": []})[0] for name in ("names", "inference_null")]
    assert changed == [[*code], []]


def test_a_module_that_is_gone_makes_its_records_stale(here):
    here[1].unlink()
    record = json.loads((here[0] / "results" / "one.json").read_text())
    assert _stale.changed_since(record) == ["finc_eval/numerics/sums.py"]


def test_a_record_knows_its_script_and_the_mathematics_and_not_the_pages():
    root = Path(_stale.__file__).parents[1]
    code = (
        "import json, _stale, _designs, finc_eval.kahm.fabrication, finc_eval.report.pages\n"
        "import finc_eval.embeddings.search.neighbors\n"
        "print(json.dumps(_stale.code_in_use()))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root / "benchmarks"
    )
    code = json.loads(found.stdout)
    assert {"finc_eval/kahm/fabrication.py", "finc_eval/kahm/machine.py", "benchmarks/_designs.py"} <= set(code)
    assert not {*_stale.WORDS} & {*code} and all((root / word).exists() for word in _stale.WORDS)
    assert "finc_eval/embeddings/search/neighbors.py" in code and "finc_eval/embeddings/base.py" not in code
    assert not [path for path in code if path.startswith(("finc_eval/core", "finc_eval/report", "benchmarks/_stale"))]


def test_the_page_of_today_marks_the_stale_records():
    assert _stale.main(mark=False) == 0


def test_runs_of_two_states_of_the_code_make_a_record_of_the_older_one(here, monkeypatch):
    folder, module = here
    monkeypatch.setattr(_runs, "RUNS", folder / "runs")
    (folder / "runs" / "null").mkdir(parents=True)
    path = "finc_eval/numerics/sums.py"
    before, after = ({path: digest} for digest in ("0123456789ab", _stale.digest_of(module)))
    runs = [{"seed": seed, "code": _runs.keep("null", code)} for seed, code in enumerate([after, before, after])]
    assert _runs.code_of("null", runs) == before
    assert _runs.code_of("null", runs[::2]) == after
    assert _runs.code_of("null", [*runs, {"seed": 3}]) is None
