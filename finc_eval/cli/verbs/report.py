"""`finc-eval report`: a result as a page, as Markdown, CSV or LaTeX, and the index of a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
    if result.is_dir() and (form != "html" or moved):
        raise UsageError("the index of a folder is a page without samples: leave out --format and --samples")
    # They load torch: wrong options need not wait.
    from finc_eval.loading import load_result, results_in
    from finc_eval.report.index import ResultIndex

    if result.is_dir():
        index = ResultIndex(result, page)
        refuse_loss(page, lambda found: mark_of(found) == index.mark, force)
        found = list(results_in(result))
        if not found:
            raise DataError(f"{result} holds no results of finc-eval: pass the folder that a verb wrote to with --out")
        for name, one in found:
            index.add(name, one)
        text = index.page()
    else:
        made = load_result(result)
        refuse_loss(page, lambda found: mark_of(found) == made.mark, force)
        if form == "html":
            text = pages.page(made, moved)
            if PICTURE.decode() not in text:
                refuse_loss_of_pictures(page, force)
        else:
            texts = {
                "md": made.to_markdown,
                "csv": made.to_csv,
                "tex": lambda: f"% finc-eval: {made.mark}\n{made.to_latex()}",
            }
            text = texts[form]()
    write_text(page, text)
    print_json({"path": str(page)}) if as_json else print(page)
    if form == "html":
        warn_of_large(page)


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
