"""`finc-eval report`: a result as a page, as Markdown, CSV or LaTeX, and the index of a folder of results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from finc_eval import report as pages
from finc_eval.cli.options import Json, check_given, paths_by_name
from finc_eval.cli.output import (
    PICTURE,
    Force,
    check_suffix,
    print_json,
    refuse_loss,
    refuse_loss_of_pictures,
    warn_of_large,
)
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.marks import mark_of
from finc_eval.core.storage import write_text

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document


def report(
    result: Annotated[
        Path,
        typer.Argument(
            help="Result: an .h5 or .json file that a verb wrote, or a folder of results.", metavar="RESULT"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write; default: RESULT with the suffix of its form, or index.html in the folder."),
    ] = None,
    form: Annotated[
        Literal["html", "md", "csv", "tex"],
        typer.Option(
            "--format",
            help="The page; Markdown of at most 900 KiB, for the page of a CI job; the table of all numbers as CSV; or "
            "the tables of the page as LaTeX, for the package booktabs.",
        ),
    ] = "html",
    samples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Where the samples of a set are now, if they moved: gen=generated/. Give it once for each set.",
        ),
    ] = None,
    members: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Write the ids of all samples of this kind that the map of the result has, a line each with its set, "
            "the most typical first, instead of the page.",
        ),
    ] = None,
    gallery: Annotated[
        bool,
        typer.Option(
            "--gallery",
            help="Write a folder beside the page, too: all members of each kind, look and direction, at most 1 000, "
            "from typical to odd, both sets side by side.",
        ),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a result as a page, as Markdown, CSV or LaTeX; of a folder, an index of all results in it.

    The page is one HTML file that loads nothing. It shows the pictures that the file of the result keeps, or
    pictures of the samples that --samples names.
    """
    if members is not None:
        _write_members(result, members, out, force)
        return
    moved = paths_by_name(samples or [], "--samples", "gen=generated/")
    check_given([result, *moved.values()])
    page = out or (result / f"index.{form}" if result.is_dir() else result.with_suffix(f".{form}"))
    check_suffix(page, f".{form}")
    if result.is_dir() and (form != "html" or moved or gallery):
        raise UsageError("the index of a folder is a page without samples: leave out --format, --samples and --gallery")
    if gallery and form != "html":
        raise UsageError(f"--gallery is a folder beside a page: leave out --format {form}")
    if result.is_dir():
        write_text(page, _index_of(result, page, force))
    else:
        _write(result, form, page, moved, gallery, force)
    print_json({"path": str(page)}) if as_json else print(page)
    if form == "html":
        warn_of_large(page)


def _index_of(folder: Path, page: Path, force: bool) -> str:
    """Return the index of the results in a folder."""
    # They load torch: wrong options need not wait.
    from finc_eval.loading import results_in
    from finc_eval.report.index import ResultIndex

    index = ResultIndex(folder, page)
    refuse_loss(page, lambda path: mark_of(path) == index.mark, force)
    results = list(results_in(folder))
    if not results:
        raise DataError(f"{folder} holds no results of finc-eval: pass the folder that a verb wrote to with --out")
    for name, result in results:
        index.add(name, result)
    return index.page()


def _write(result: Path, form: str, page: Path, moved: Mapping[str, str], gallery: bool, force: bool) -> None:
    """Write a result in a form, and the folder of all members if that is asked for."""
    from finc_eval.loading import load_result

    made = load_result(result)
    refuse_loss(page, lambda path: mark_of(path) == made.mark, force)
    if gallery:
        _write_gallery(made, page, moved, force)
        return
    text = _text_of(made, form, moved)
    if form == "html" and PICTURE.decode() not in text:
        refuse_loss_of_pictures(page, force)
    write_text(page, text)


def _text_of(made: Document, form: str, moved: Mapping[str, str]) -> str:
    """Return a result in a form."""
    if form == "html":
        return pages.page(made, moved)
    if form == "tex":
        return f"% finc-eval: {made.mark}\n{made.to_latex()}"
    return made.to_markdown() if form == "md" else made.to_csv()


def _write_gallery(made: Document, page: Path, moved: Mapping[str, str], force: bool) -> None:
    """Write the page of a result, and the folder of all members of its kinds."""
    from finc_eval.partitions.atlas import Mapped
    from finc_eval.partitions.pages.members import gallery_files, write_gallery

    if not isinstance(made, Mapped):
        raise UsageError(f"a {made.type_name} has no kinds with a map: pass --gallery with a comparison or kinds")
    for path in gallery_files(made, page).values():
        refuse_loss(path, lambda path: mark_of(path) == made.mark, force)
    write_gallery(made, page, moved)


def _write_members(result: Path, kind: str, out: Path | None, force: bool) -> None:
    """Write the ids of the members of a kind to a file, or print them."""
    check_given([result])
    from finc_eval.loading import load_result
    from finc_eval.partitions.atlas import Mapped

    made = load_result(result)
    if not isinstance(made, Mapped):
        raise UsageError(f"{result} is a {made.type_name}, which has no kinds with a map: pass a comparison or kinds")
    lines = [f"{label}\t{name}" for label, names in made.members(kind).items() for name in names]
    if out is None:
        print("\n".join(lines))
        return
    refuse_loss(out, lambda _: False, force)
    write_text(out, "".join(f"{line}\n" for line in lines))
    print(out)
