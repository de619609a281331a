"""Output of a verb: files named by what they are, nothing that others made overwritten, and a table.

A verb that writes one file takes `--out FILE` and checks its suffix; one that writes several takes `--out DIR`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from finc_eval import report
from finc_eval.cli.options import title_of
from finc_eval.cli.question import in_full, suffix_of
from finc_eval.core.doors import check_unlinked, read_bytes
from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.core.files.parsed import read_json
from finc_eval.core.files.stored import file_type, header_of
from finc_eval.core.marks import job_digest, mark, mark_of, same_settings, settings_beside
from finc_eval.core.places import place_of
from finc_eval.core.record import plain
from finc_eval.core.serialize import Document
from finc_eval.core.storage import check_writable, claim, refresh, write_text, write_together
from finc_eval.core.terminal import print_data
from finc_eval.core.words import join_words
from finc_eval.extractors.settings import Extraction
from finc_eval.report.terminal import MAX_COLUMNS, aligned, brief, print_table

UNMARKED = (".xml",)  # files that do not say what made them: they are of what made the JSON file beside them

SUFFIXES = {
    **dict.fromkeys(
        ("comparison", "kinds", "methods", "spaces", "sweep", "changes", "classification", "fabrication"),
        (".h5", ".json", ".html"),
    ),
    **dict.fromkeys(("verdict", "night"), (".json", ".html", ".md", *UNMARKED)),
}
"""Types of results with arrays or pictures, which an .h5 file keeps, or for pipelines; all others have a page and a
JSON file."""

MAX_LINES = 11
"""Lines that a result takes on a terminal; with the line that some verbs add, such as how to add a model, twelve."""

MAX_ROWS = 5  # rows of a listing on a terminal; with its title, headings and notes it has twelve lines

PICTURE = b"data:image/"  # first bytes of a picture in a page
LARGE_PAGE = 10_000_000  # bytes of a page from which browsers open it slowly
NAMED_SETS = 4  # sets that the name of a default folder names
MAX_FOLDER_NAME = 200  # bytes of the name of a default folder; file systems take 255

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder, or its URL, to write to: a page, the same as JSON, and an .h5 file if later steps need it. "
        "Default: a folder in reports/ that is named by the sets, and by the settings that differ from their defaults.",
    ),
]
OptionalOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder to write a page and the same as JSON to; default: none."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite even files that this command did not make.")]


@dataclass(frozen=True)
class TerminalOutput:
    """Files of a result, in one folder."""

    folder: Path  # the folder
    type_name: str  # type of the result
    stem: str  # name of its files
    job: str  # digest of the command and its inputs
    force: bool  # whether files of other jobs are overwritten

    @property
    def files(self) -> dict[str, Path]:
        """Paths of the files, by suffix."""
        suffixes = SUFFIXES.get(self.type_name, (".json", ".html"))
        return {suffix: self.folder / f"{self.stem}{suffix}" for suffix in suffixes}

    @property
    def listed(self) -> list[Path]:
        """Paths of the files, the page first."""
        page = self.files[".html"]
        return [page, *(path for path in reversed(self.files.values()) if path != page)]

    def is_own(self, path: Path) -> bool:
        """Return whether this job made a file."""
        marked = path.with_suffix(".json") if path.suffix in UNMARKED else path
        return mark_of(marked) == mark(self.type_name, self.job)

    @property
    def is_of_others(self) -> bool:
        """True if the folder has a result of another question, and not a file of somebody else."""
        marks = [mark_of(path) for path in self.files.values() if path.suffix not in UNMARKED]
        return any(known_mark is not None and known_mark != mark(self.type_name, self.job) for known_mark in marks)

    def check(self) -> None:
        """Raise UsageError if a file would be lost that another job made."""
        for path in self.files.values():
            refuse_loss(path, self.is_own, self.force)

    def write(self, result: Any, texts: Mapping[str, str], samples: Mapping[str, Any]) -> None:
        """Write the files of the result, which is marked, all together."""
        self.check()
        files = self.files
        with write_together():
            if ".h5" in files:
                make_room(files[".h5"], self.type_name, self.force)
                result.save(files[".h5"])
            result.to_json(files[".json"])
            result.to_html(files[".html"], samples=samples)
            if ".md" in files:
                result.to_markdown(files[".md"])
            for suffix, text in texts.items():
                write_text(files[suffix], text)


def output_folder(
    verb: str,
    type_name: str,
    inputs: Mapping[str, str],
    out: Path | None,
    force: bool,
    *,
    how: Sequence[Extraction] = (),
    stem: str | None = None,
    titles: Sequence[str] | None = None,
) -> TerminalOutput:
    """Choose the files of a result, and claim their names for the command: call it before any work.

    `how` is how sets are embedded, once for each space: a result of the same sets, wherever they were, is of this job.
    """
    job = job_digest(verb, inputs)
    if out is not None:
        _check_folder(out)
    for folder in [out] if out is not None else default_folders(titles, inputs, job):
        output = _output(TerminalOutput(folder, type_name, stem or type_name, job, force), inputs, how)
        if force or not output.is_of_others:
            break
    output.check()
    claim(output.files[".html"])
    return output


def _check_folder(out: Path) -> None:
    """Raise UsageError if the folder of several files has the name of a file."""
    if out.suffix in (".html", ".json", ".h5", ".csv") and not out.is_dir():
        raise UsageError(f"--out is the folder of several files, got {out}: pass {out.with_suffix('')} for example")


def _output(output: TerminalOutput, inputs: Mapping[str, str], how: Sequence[Extraction]) -> TerminalOutput:
    """Return the files of a result in their folder, of the job that made them before of the same sets, if one did."""
    folder = output.folder
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, and --out is a folder: choose another name")
    return replace(output, job=_job_of_same_sets(output.files[".json"], output, inputs, how) or output.job)


def _job_of_same_sets(
    path: Path, output: TerminalOutput, inputs: Mapping[str, str], how: Sequence[Extraction]
) -> str | None:
    """Return the job of the result in a JSON file if its sets have the content of these, by label; else None."""
    kind, _, job = (mark_of(path) or "").partition(" ")
    is_asked = kind == output.type_name and job != output.job and same_settings(job, output.job)
    if not how or output.force or not job or not is_asked:
        return None
    from finc_eval.embeddings.opening import digests_of  # seconds of import, where another job's result is there alone

    held: dict[str, list[str]] = {}
    _collect_digests(read_json(path), "", held)
    try:
        asked = [digests_of(inputs, settings) for settings in how]
    except FincEvalError:  # the work will tell, if the folder is another one
        return None
    return job if held == {label: [*dict.fromkeys(digests[label] for digests in asked)] for label in inputs} else None


def _collect_digests(data: object, label: str, digests: dict[str, list[str]]) -> None:
    """Collect the digests of all sets that a result describes, each once, by their labels."""
    if isinstance(data, dict) and {"digest", "from_sketch"} <= data.keys():
        if data["digest"] not in digests.setdefault(label, []):
            digests[label].append(data["digest"])
    elif isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            _collect_digests(value, str(key), digests)


def default_folders(titles: Sequence[str] | None, inputs: Mapping[str, str], job: str) -> Iterator[Path]:
    """Yield the folders of a result in reports/, until one has no result of another question.

    The first is named by the titles of the sets and by the settings that differ from their defaults, as in
    gen-vs-ref-n60. The next has the folders of the sets, too, as in a-gen-vs-b-ref, and the last has the job.
    """
    titles = titles or [title_of(path, label) for label, path in inputs.items()]
    settings = suffix_of(settings_beside(inputs))
    places = [Path(place_of(path)).parent.name for path in inputs.values()]
    inside = [f"{place}-{title}".strip("-") for place, title in zip(places, titles, strict=False)]
    for named, end in ((titles, ""), (inside or titles, ""), (titles, f"-{job}")):
        folder = with_end(default_folder(named), settings, end)
        check_unlinked(Path(), folder.as_posix())
        yield folder


def default_folder(titles: Sequence[str]) -> Path:
    """Return the folder of a result on sets with these titles: reports/gen-vs-ref."""
    more = len(titles) - NAMED_SETS
    title = "-vs-".join([*titles[:NAMED_SETS], *([f"{more}-more"] if more > 0 else [])])
    name = _as_name(title, MAX_FOLDER_NAME)
    return Path("reports") / (name if name.strip(".") else "result")


def with_end(folder: Path, settings: str, end: str) -> Path:
    """Return a folder with settings in its name, cut where they are long, and with an end, which is never cut."""
    end = _as_name(settings, MAX_FOLDER_NAME // 2) + end
    return folder.with_name(_as_name(folder.name, MAX_FOLDER_NAME - len(end.encode())) + end)


def _as_name(text: str, size: int) -> str:
    """Return a text as a part of the name of a folder, of so many bytes at most; of long ones the beginning."""
    # A sketch or a cache brings its title, and may be from anybody; Windows has fewer names than Linux.
    return (
        re.sub(r'[<>:"/\\|?*\x00-\x1f]+', "-", text)
        .rstrip(". ")
        .encode("utf-8", "ignore")[:size]
        .decode("utf-8", "ignore")
    )


def check_suffix(out: Path, *suffixes: str, option: str = "--out") -> None:
    """Raise UsageError unless the path of a file ends as files of its kind do."""
    if out.suffix not in suffixes:
        known, example = " or ".join(suffixes), (out if out.name else out / "result").with_suffix(suffixes[0])
        raise UsageError(f"{option} must end in {known}, got {out}: pass {example} for example")


def refuse_loss(path: Path, is_own: Callable[[Path], bool], force: bool, option: str = "--out") -> None:
    """Raise UsageError if a file would be lost that the command did not make; call it before the work.

    A file that `is_own` was made of the same inputs before; `option` names it in the message.
    """
    refresh(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write")
    check_writable(path)
    if path.exists() and not force and not is_own(path):
        raise UsageError(
            f"{path} exists, and this command with these inputs did not make it, or made it with other settings: "
            f"choose another {option}, or pass --force"
        )


def has_header(path: Path, **entries: object) -> bool:
    """Return whether an .h5 file of ours has these entries in its header: its type, and what it was made of."""
    header = header_of(path) or {}
    return all(header.get(name) == value for name, value in entries.items())


def make_room(path: Path, type_name: str, force: bool) -> None:
    """Remove a file of another type that is to be overwritten; one of this type stays until the new one is whole."""
    if force and path.exists() and file_type(path) != type_name:
        path.unlink()


def refuse_loss_of_pictures(page: Path, force: bool, sets: Sequence[str] = ()) -> None:
    """Raise UsageError if a page with pictures would be overwritten by one without; `sets` are those that had some."""
    if page.exists() and not force and PICTURE in read_bytes(page):
        given = " ".join(f"--samples {label}=PATH" for label in sets) or "--samples"
        raise UsageError(f"{page} shows pictures, which are not kept: pass {given}, another --out, or --force")


def emit(
    result: Document,
    output: TerminalOutput | None,
    as_json: bool,
    texts: Mapping[str, str] | None = None,
    samples: Mapping[str, str] | None = None,
) -> None:
    """Write the files of a result, and print it as a table, or as JSON; without an output, print only."""
    if output is not None:
        result = result.marked(output.job)
        output.write(result, texts or {}, samples or {})
    if as_json:
        print_data(result.to_json())
        return
    print_result(result, [] if output is None else output.listed)
    if output is not None:
        warn_of_large(output.files[".html"])


def print_result(result: Document, files: Sequence[Path] = (), lines: int = MAX_LINES) -> None:
    """Print what was found, in at most so many lines with the names of files, or with --verbose everything.

    `files` are those that were written, in one folder, first the page.
    """
    if in_full.get():
        report.show(result)
        print(*[""] * bool(files), *files, sep="\n")
        return
    columns, _ = get_terminal_size((MAX_COLUMNS, MAX_LINES))
    place = written(files)
    print(*brief(report.outline(result), lines - len(place), min(columns, MAX_COLUMNS)), *place, sep="\n")


def print_listing(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Print the first `MAX_ROWS` rows of a table, and how many more there are, or with --verbose the whole table."""
    if in_full.get():
        print_table(title, columns, rows, names=names)
        return
    print(title, *aligned([columns, *rows[:MAX_ROWS]]), sep="\n")
    if len(rows) > MAX_ROWS:
        print(f"and {len(rows) - MAX_ROWS} more: --verbose")


def written(files: Sequence[Path]) -> list[str]:
    """Return a line on files in one folder: the path of the first, and the endings of the others.

    Example:
        >>> from pathlib import Path
        >>> from finc_eval.cli.output import written
        >>> written([Path("reports/c.html"), Path("reports/c.json"), Path("reports/c.h5")])
        ['reports/c.html (also .json and .h5)']
    """
    others = join_words([path.suffix for path in files[1:]])
    return [f"{path}{f' (also {others})' if others else ''}" for path in files[:1]]


def warn_of_large(page: Path) -> None:
    """Print a note on a page that browsers open slowly, with the setting that makes it smaller."""
    size = page.stat().st_size
    if size > LARGE_PAGE:
        print(
            f"note: {page} has {size / 1e6:.0f} MB and opens slowly: pass fewer --pictures or --modes", file=sys.stderr
        )


def print_json(value: Any) -> None:
    """Print a record, a list of records, or plain JSON types, as JSON."""
    print_data(json.dumps([plain(item) for item in value] if isinstance(value, list) else plain(value), indent=1))
