"""The commands and the public names in README and docs exist, with the options that the text gives them."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import PARTS, app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GROUPS = {
    **PARTS,
    "private": ("sketch", "generate"),
    "sketch": ("release", "score", "compare", "merge", "inspect"),
    "leaderboard": ("add", "remove", "show", "render"),
    "kahm": ("fit", "classify", "fabricate", "membership", "federate"),
    "extractors": ("list", "show", "check"),
    "weights": ("list", "fetch", "verify", "where"),
    "cache": ("ls", "explain", "verify", "rm"),
}


def commands():
    """Each command line in a block of a page, or in a cell of a table, as its words."""
    for page in PAGES:
        for text in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            for line in re.findall(r"^(?: {4,})?(finc-eval .*)|\| `(finc-eval [^`]*)` \|", text):
                line = "".join(line)
                yield pytest.param(shlex.split(line, comments=True), id=f"{page.name}: {line.strip()[:60]}")


@cache
def help_of(*verb):
    for flag in ("--help-all", "--help"):
        shown = CliRunner().invoke(app, [*verb, flag], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
        if shown.exit_code == 0:
            return shown.output
    raise AssertionError(shown.output)


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_in_the_docs_has_its_verb_and_options(words):
    words = words[: words.index("|")] if "|" in words else words
    verb = words[1:2]
    while words[1 + len(verb) :] and words[1 + len(verb)] in GROUPS.get(verb[-1], ()):
        verb.append(words[1 + len(verb)])
    verb += ["rank"] * (verb == ["leaderboard"])
    shown = help_of(*verb)
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [option for option in options if not re.search(rf"{option}\b", shown)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_public_name_in_the_docs_exists(page):
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"\bfe\.((?:privacy\.|kahm\.)?\w+)", text))
    missing = []
    for name in names:
        place = fe
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is None:
            missing.append(name)
    assert missing == []


def test_every_verb_and_part_is_on_the_page_of_commands():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    verbs = re.findall(r"^│ ([a-z][\w-]*) {2,}", help_of(), re.M)
    parts = [f"{verb} {part}" for verb, parts in PARTS.items() for part in parts]
    assert 10 < len(verbs) <= 13
    assert [one for one in (*verbs, *parts) if one != "private" and f"| `{one}` |" not in text] == []


TASK_WORDS = 900
"""Words that a page of a task has at most, code left out: what one reads before one begins."""


def test_pages_of_tasks_are_short():
    _, _, text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    nav = {title: pages for entry in yaml.safe_load(text) for title, pages in entry.items()}
    tasks = {page for section in ("Start", "Tasks") for entry in nav[section] for page in entry.values()}
    assert {page for page in tasks if prose_words(ROOT / "docs" / page) > TASK_WORDS} == set()


def prose_words(page):
    """The number of words of a page outside of blocks of code."""
    return len(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S).split())


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 6000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_between_pages_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(page):
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def listed(package):
    """All names in the stub of a package."""
    return re.findall(r"^from .* import \w+ as (\w+)$", Path(package.__file__).with_suffix(".pyi").read_text(), re.M)


def test_completion_shows_the_public_names_and_all_of_them_exist():
    assert len(fe.__all__) == len(set(fe.__all__)) <= 30 and dir(fe) == sorted({*listed(fe), "kahm", "privacy"})
    in_docs = {name for page in PAGES for name in re.findall(r"\bfe\.(\w+)", page.read_text(encoding="utf-8"))}
    assert in_docs <= {*dir(fe), "__version__"}
    assert set(fe.__all__) <= {*listed(fe)} | {"kahm", "privacy"}
    assert all(hasattr(fe, name) for name in {*listed(fe), *fe.__all__})


def test_every_public_name_is_on_the_page_of_the_python_names():
    packages = {"": fe, "privacy.": fe.privacy, "kahm.": fe.kahm, "kahm.federated.": fe.kahm.federated}
    shown = re.findall(r"^::: finc_eval\.((?!measures\.).*)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.M)
    public = {
        f"{before}{name}"
        for before, package in packages.items()
        for name in (listed(package) if package is fe else package.__all__)
        if callable(getattr(package, name))
    }
    assert sorted(shown) == sorted(public)
