"""Hooks of the site (mkdocs.yml): pages and pictures from outside of docs/, their links, and formulas as MathML."""

import html
import os
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "docs/schemas": "schemas/README.md",
}
"""Page of the site for each text of the repository that is not a page of docs/."""

BORROWED = ("benchmarks/results/*.png", "benchmarks/results/*.svg", "notebooks/*.ipynb")
"""Files outside of docs/ that pages link to."""

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_files(files, config):
    """Add the texts and pictures of the repository that docs/ does not have."""
    for path in sorted(ROOT / path for path in PAGES) + sorted(one for some in BORROWED for one in ROOT.glob(some)):
        if path.is_file():
            files.append(File.generated(config, site_path(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Point the links of a page, which are those of the repository, to the pages of the site."""
    source = Path(page.file.abs_src_path).resolve()
    here = Path(page.file.src_uri).parent

    def moved(link):
        return Path(os.path.relpath(site_path((source.parent / link[1]).resolve()), here)).as_posix()

    return LINK.sub(moved, markdown)


def on_page_content(content, **_):
    """Write formulas as MathML, which browsers show without a script."""
    return FORMULA.sub(
        lambda found: convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline"), content
    )


def site_path(path):
    """Return the path in the site of a file or folder of the repository."""
    within = path.relative_to(ROOT).as_posix()
    return PAGES.get(within, within.removeprefix("docs/"))
