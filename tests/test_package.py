"""What is installed is what was tested: the wheel holds cards, templates and data, and works on its own."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent


def copied(folder):
    """A copy of what is built, so that no build/ folder of an earlier state can slip in."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if tracked.returncode:
        pytest.skip("needs a git checkout to build from")
    single = ("pyproject.toml", "README.md", "LICENSE", "scripts/build.py")
    for name in tracked.stdout.splitlines():
        if (name.startswith(("finc_eval/", "extractors/")) or name in single) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def built(source, out):
    """The source archive and the wheel, by the script that builds releases."""
    command = [sys.executable, str(source / "scripts" / "build.py"), "--no-isolation", "--outdir", str(out)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return built(copied(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(archives):
    return next(path for path in archives if path.suffix == ".whl")


@pytest.mark.long
def test_the_same_code_gives_the_same_bytes_at_another_time_and_place(archives, tmp_path):
    source = copied(tmp_path / "elsewhere")
    for path in source.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
        if path.is_file():
            path.chmod(0o600)
    again = built(source, tmp_path / "dist")
    assert [path.name for path in again] == [path.name for path in archives]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in archives]


@pytest.mark.parametrize(("before", "after"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_somebody_said_otherwise(before, after):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | before
    code = "import finc_eval, os, sys; assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == f"{after}\n"


def test_every_folder_of_the_package_is_in_the_wheel():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "finc_eval").rglob("__init__.py")}
    assert {".".join(folder.parts) for folder in folders} | {"finc_eval.extractors.cards"} == {*listed}


def test_the_license_of_each_dependency_is_told():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = ("video", "classifiers", "notebook", "remote", "text", "atlas")
    needed = [*project["dependencies"], *(one for name in names for one in extras[name])]
    lines = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("\n\n**")[0].splitlines()
    told = {name.strip() for line in lines if line.startswith("|") for name in line.split("|")[1].split(",")}
    assert {re.split(r"[\[>;= ]", one)[0] for one in needed} == told - {"package", "---"}


def test_the_oldest_versions_are_those_that_the_project_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    elsewhere = ("faiss-cpu", "filelock")  # of other systems
    bounds = dict(one.partition(";")[0].split(">=") for one in project["dependencies"])
    of_tests = {"pandas", "pyarrow"}
    assert pinned.keys() - of_tests == bounds.keys() - {*elsewhere}
    assert [
        name for name in pinned.keys() - of_tests if not f"{pinned[name]}.".startswith(f"{bounds[name].strip()}.")
    ] == []


def test_ci_has_a_job_for_each_make_target_it_names_on_pythons_that_the_project_allows():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    steps = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert {step.split()[0] for step in steps if step} == {".ci/run", "make"} and (ROOT / ".ci" / "run").is_file()
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {step.split()[1] for step in steps if step.startswith("make")} == {"oldest", "wheel", "audit"} <= {*targets}
    assert jobs["tests"]["strategy"]["matrix"]["python"][0] == "3.11"
    assert jobs["oldest"]["steps"][1]["with"]["python-version"] == "3.11"


@pytest.mark.long
def test_the_wheel_holds_cards_templates_and_demo_data_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "finc_eval/extractors/cards/pixels.toml" in names
    assert "finc_eval/measures/protocols/cifar10-edm-50k.toml" in names
    assert "finc_eval/demo/digits.npz" in names
    assert "finc_eval/py.typed" in names
    inside = [path for suffix in ("html", "py", "pyi") for path in (ROOT / "finc_eval").rglob(f"*.{suffix}")]
    assert sorted({path.relative_to(ROOT).as_posix() for path in inside} - names) == []
    assert {"finc_eval/extractors/imagenet_hypernyms.tsv", "finc_eval/extractors/everyday_nouns.tsv"} <= {*names}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/finc_eval/extractors/LICENSE-wordnet.txt") for name in names)
    assert not any(name.startswith(("tests/", "extractors/")) for name in names)


@pytest.mark.long  # what the wheel holds: above
def test_the_wheel_runs_outside_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    code = (
        "import finc_eval, numpy as np\n"
        "from finc_eval.demo.planted import planted_sets\n"
        f"assert finc_eval.__file__.startswith({str(site)!r}), finc_eval.__file__\n"
        "gen, ref = (s.images[:200] for s in planted_sets())\n"
        "a, b = (finc_eval.extract(x, 'pixels', f'{i}.h5') for i, x in enumerate((gen, ref)))\n"
        "finc_eval.compare(gen=a, ref=b, features=50).to_html('report.html', samples={'gen': gen, 'ref': ref})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert "data:image/" in (tmp_path / "report.html").read_text(encoding="utf-8")
