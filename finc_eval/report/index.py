"""`ResultIndex`: the results in a folder, a row each, with what was found and a link to the page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from finc_eval import report
from finc_eval.core.errors import FincEvalError
from finc_eval.core.marks import job_digest, mark, mark_of
from finc_eval.core.provenance import package_version
from finc_eval.core.serialize import Document
from finc_eval.core.words import plural
from finc_eval.report.cards import anchor
from finc_eval.report.exports.outline import Made, Outline, how_made
from finc_eval.report.pages import frame

MAX_PROBLEMS = 50  # files that are not results which an index names; further files are counted
SORTS = {"": "file", "name": "title"}  # values to sort results by


@dataclass(frozen=True)
class IndexRow:
    """A result of a folder, as its index describes it."""

    name: str  # path of its file below the folder
    page: str | None  # address of its page, seen from the index; None without one
    title: str
    type_name: str
    kind: str
    headline: str
    samples: str  # its sets with their number of samples
    version: str
    command: str


class ResultIndex:
    """The results of a folder. It keeps what its rows say, and not the results."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder, self.out = folder, out
        self.mark = mark("index", job_digest("report", {"folder": str(folder)}))
        self._rows: list[IndexRow] = []
        self._problems: list[str] = []
        self._more = 0

    def add(self, name: str, result: Document | FincEvalError) -> None:
        """Add a file."""
        path = self.folder / name
        if isinstance(result, Document):
            said, page = report.outline(result), path.with_suffix(".html")
            # The address of the page as a link from another file has it, whatever its name is.
            way = Path(os.path.relpath(page.absolute(), self.out.absolute().parent)).as_posix()
            counts = (label if n is None else f"{label} {plural(n, 'sample')}" for label, n in said.sets.items())
            row = IndexRow(
                name=name,
                page=f"./{quote(os.fsencode(way))}" if mark_of(page) == result.mark else None,
                title=said.title,
                type_name=result.type_name,
                kind=said.kind,
                headline=said.headline,
                samples=", ".join(counts),
                version=result.provenance.versions.get("finc-eval", "of an unknown version"),
                command=how_made(result.provenance, said.call).command,
            )
            self._rows.append(row)
        elif len(self._problems) < MAX_PROBLEMS:
            sentence = str(result).replace(str(path), name)
            self._problems.append(sentence if name in sentence else f"{name}: {sentence}")
        else:
            self._more += 1

    def page(self) -> str:
        """Return the page: one HTML file that loads nothing, and links to the pages of the results."""
        version, title = package_version(), self.folder.resolve().name or str(self.folder.resolve())
        lost = len(self._problems) + self._more
        says = {"results": f"{plural(len(self._rows), 'result')}."}
        if lost:
            says["lost"] = f"{plural(lost, 'file')} could not be read as a result, see the end of the page."
        more = [f"{plural(self._more, 'more file')} could not be read as a result."] if self._more else []
        said = Outline(
            kind="results in a folder",
            title=title,
            says=says,
            sets={},
            signatures=(),
            call=f"finc-eval report {title}",
            failures=[*self._problems, *more],
        )
        types = dict.fromkeys(sorted(row.type_name for row in self._rows))
        return frame(
            "index.html",
            said,
            self.mark,
            made=Made(said.call, True, f"finc-eval {version}."),
            version=version,
            rows=self._rows,
            anchor=anchor,
            roles={name: name.replace("-", " ") for name in types},
            sorts=SORTS,
        )
