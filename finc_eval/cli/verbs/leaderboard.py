"""`finc-eval leaderboard`: models ranked against one reference, at once or on a stored board."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import finc_eval as fe
from finc_eval.cli.command import DefaultGroup
from finc_eval.cli.options import (
    Extractors,
    Gens,
    Json,
    Named,
    Ref,
    Work,
    check_given,
    embeds,
    given_options,
    name_sets,
    paths_by_name,
    runs_of_models,
    takes,
    works,
)
from finc_eval.cli.output import (
    PICTURE,
    Force,
    Out,
    TerminalOutput,
    check_suffix,
    emit,
    output_folder,
    print_json,
    refuse_loss,
    refuse_loss_of_pictures,
)
from finc_eval.core.doors import read_bytes
from finc_eval.core.errors import UsageError
from finc_eval.core.files.stored import file_type
from finc_eval.core.marks import mark_of
from finc_eval.core.places import is_url
from finc_eval.core.storage import write_text
from finc_eval.core.words import join_words
from finc_eval.extractors.settings import Extraction
from finc_eval.judges.tables import is_file, is_there
from finc_eval.leaderboards.settings import LeaderboardSettings

leaderboard = typer.Typer(
    cls=DefaultGroup,
    help="Rank models against one reference, and say which of them cannot be distinguished. A rank is the set of ranks "
    "that a model may have; all of them hold together with probability 0.95.",
)

Board = Annotated[Path, typer.Argument(metavar="BOARD", help="Folder of the board.")]


ScoreFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        metavar="NAME=FILE,…",
        help="Scores of samples by any judge: one=one.csv,two=two.jsonl, a file a model with columns id or prompt (and "
        "seed, repeat), and a numeric column for each judge. Several files of a model, such as of one dimension "
        "each, are one table: one=a.json,one=b.json. Also files with a column model, or columns of the sets: "
        "aesthetic,clip. Result files of VBench, GenEval, GenEval 2, T2I-CompBench, HPS, ImageReward and "
        "lmms-eval are read as they are. Higher is better, except for scores that --lower names. Repeat the "
        "option for more.",
    ),
]

VoteFile = Annotated[
    list[str] | None,
    typer.Option(
        "--votes",
        metavar="FILE,…",
        help="Votes of people, CSV with columns prompt, left, right, winner, voter; winner: a model's name, or tie. "
        "Several files, such as of several voters, are separated by commas, or the option is repeated. "
        '"leaderboard vote" makes the page that they vote on.',
    ),
]

LabelFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="NAME=FILE,…",
        help="Labels of people for some of the scored samples, drawn at random, in the files that --scores takes: each "
        'judge is corrected by them, and "rating by clip" is what people would say of all samples. From 50 labeled '
        "prompts of a model on.",
    ),
]


@leaderboard.command()
@takes(LeaderboardSettings, "settings")
@takes(Extraction, "extraction", extractor=None, seed=None, precision=None, shard=None)
@works
def rank(
    ref: Ref,
    settings: LeaderboardSettings,
    extraction: Extraction,
    work: Work,
    extractor: Extractors = None,
    models: Named = None,
    gen: Gens = (),  # type: ignore[assignment]
    scores: ScoreFiles = None,
    votes: VoteFile = None,
    labels: LabelFiles = None,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rank models at once, and keep the board in --out; the word "rank" may be left out.

    Later, "leaderboard add DIR" measures further models alone.
    A name given several times is a model that was trained several times.
    A rank is the set of ranks that a model may have; all of them hold together with probability 0.95.
    Several extractors give one board with columns for each of their spaces, which is not kept for models added later.
    With a private sketch as --ref, models are ranked by their distance from the private records, with its guarantee;
    such a board is not kept either.
    Neither is a board with --scores or --votes, which are columns like all others, with ranks, and with the kinds and
    words where a judge or voters prefer.
    """
    runs = runs_of_models([*(models or ()), *gen])
    how = [replace(extraction, extractor=name) for name in extractor or ()] or [extraction]
    if not runs:
        raise UsageError("no model is named: write for example one=model-one/ two=model-two/")
    sources = flat_sources(runs) | {"ref": ref}
    for each in how:
        check_given(sources.values(), each.extractor)
    ballots = [path for given in votes or () for path in ([given] if is_there(given) else given.split(",")) if path]
    judged: dict[str, Any] = {"votes": ballots or None}
    judged |= {
        name: score_sources(given, f"--{name}") if given else None
        for name, given in (("scores", scores), ("labels", labels))
    }
    check_given(ballots)
    is_private = _is_private(ref)
    type_name = "private-leaderboard" if is_private else "leaderboard"
    output = output_folder("leaderboard", type_name, sources, out, force, titles=[*runs, "ref"], stem="leaderboard")
    with work.running() as run:
        kept = None if len(how) > 1 or is_private or is_url(output.folder) else fe.Board(output.folder)
        if kept is None:
            result = fe.leaderboard(runs, ref, settings, extractor=how if len(how) > 1 else how[0], run=run, **judged)
        else:
            result = kept.rank(runs, ref, settings, extractor=how[0], run=run, force=force, **judged)
    emit(result, output, as_json)
    if kept is not None and kept.exists and not as_json:
        where = f"{shlex.quote(str(kept.folder))} --ref {shlex.quote(ref)}"
        print(f"to add a model: finc-eval leaderboard add {where} NAME=PATH")


@leaderboard.command()
@takes(LeaderboardSettings, "settings", lower=None, plan=None, covariates=None, judges=None)
@embeds
def add(
    board: Board,
    ref: Ref,
    settings: LeaderboardSettings,
    extraction: Extraction,
    work: Work,
    context: typer.Context,
    models: Named = None,
    gen: Gens = (),  # type: ignore[assignment]
    as_json: Json = False,
) -> None:
    """Measure models, and add them to the board in a folder; without one, this makes it.

    A board keeps one file per model, with small pictures of a few samples. Adding a model writes its file, the index,
    and the page of the board, which shows the pictures of all models. The new board is printed.
    """
    runs = runs_of_models([*(models or ()), *gen])
    check_given([*flat_sources(runs).values(), ref], extraction.extractor)
    if _is_private(ref):
        raise UsageError(
            f"{ref} is a private sketch, and a board on it is not kept: rank all models at once, by finc-eval "
            "leaderboard without add"
        )
    stored = fe.Board(board)
    names = [field.name for field in fields(settings) if given_options(context, field.name)]
    given: Any = {name: getattr(settings, name) for name in names}
    with work.running() as run:
        added = stored.add(runs, ref, settings, extractor=extraction, run=run, **given)
    done = (
        f"added {', '.join(added)} to {board}" if added else f"{board} has {join_words(list(runs))} of the same samples"
    )
    ranked, page = stored.leaderboard(), board / "leaderboard.html"
    # A board of an earlier version kept no pictures, and its page shows some.
    stays = bool(ranked.without_pictures) and page.exists() and PICTURE in read_bytes(page)
    if as_json or stays:
        _print_names(stored, done, as_json, ranked.without_pictures)
    else:
        print(done)
    if not as_json:
        emit(ranked, None if stays else _page_of(board), as_json)


def _is_private(ref: str) -> bool:
    return not is_url(ref) and file_type(ref) == "private sketch"


@leaderboard.command()
def remove(
    board: Board,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Models to remove.")],
    as_json: Json = False,
) -> None:
    """Remove models from a stored board, with their files."""
    stored = fe.Board(board)
    stored.remove(names)
    _print_names(stored, f"removed {', '.join(names)} from {board}", as_json)


@leaderboard.command()
def vote(
    models: Annotated[list[str], typer.Argument(metavar="[NAME=]SAMPLES...", help="Samples of two models or more.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Page to write.")] = Path("vote.html"),
    number: Annotated[int, typer.Option(min=1, help="Pairs of samples at most.")] = 100,
    seed: Annotated[int, typer.Option(help="Random seed of the pairs, their sides and their order.")] = 0,
    edge: Annotated[int, typer.Option(min=16, help="Longer edge of the pictures, in pixels.")] = 512,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a page on which people vote blindly, in one file that needs no server.

    It shows two samples of one prompt, or of one name of a file, side by side, and never whose they are. Progress stays
    in the browser. "Save votes" writes a CSV file for "leaderboard --votes", which takes the files of several voters.
    """
    from finc_eval.judges.vote_page import TYPE_NAME, vote_page  # loads torch, which help does not need

    sources = name_sets(models)
    check_given(sources.values())
    check_suffix(out, ".html", ".htm")
    refuse_loss(out, lambda path: (mark_of(path) or "").startswith(f"{TYPE_NAME} "), force)
    page = vote_page(sources, number, seed, edge)
    refuse_loss(out, lambda path: (mark_of(path) or "") in page, force)  # the mark of the same pairs
    write_text(out, page)
    if as_json:
        print_json({"page": str(out), "models": list(sources)})
    else:
        print(out)


RankBy = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Number that orders the rows; default: the board's number.")
]


Beside = Annotated[
    list[str] | None,
    typer.Option(
        "--beside",
        metavar="LABEL=BOARD",
        help="Another board of the same models, such as by another extractor, to be put side by side: a folder or a "
        "leaderboard.json. Repeat it for more.",
    ),
]


@leaderboard.command()
def show(board: Board, rank_by: RankBy = None, beside: Beside = None, as_json: Json = False) -> None:
    """Rank the models of a stored board, and print them."""
    emit(_beside(open_board(board, rank_by), beside), None, as_json)


@leaderboard.command()
def render(
    board: Board,
    rank_by: RankBy = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write to; default: BOARD.")
    ] = None,
    beside: Beside = None,
    samples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Where the samples of a model are, or of ref=…: the page then shows more of them, and larger, than "
            "the small pictures that the board keeps. Give it once for each.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rank the models of a stored board, and write its page and the same as JSON. Twice gives the same bytes."""
    given = paths_by_name(samples or [], "--samples", "one=model-one/")
    check_given(given.values())
    stored = fe.Board(board)
    output, ranked = _page_of(board, out, force), stored.leaderboard(rank_by)
    if not given and ranked.without_pictures:
        refuse_loss_of_pictures(output.files[".html"], force, ranked.without_pictures)
    emit(_beside(ranked, beside), output, as_json, samples=given)


def open_board(path: Path, rank_by: str | None = None) -> fe.Leaderboard:
    """Open the leaderboard of a folder, or of a leaderboard.json, which cannot be ordered anew."""
    if path.is_dir() or rank_by is not None:
        return fe.Board(path).leaderboard(rank_by)
    result = fe.load(path)
    if not isinstance(result, fe.Leaderboard):
        raise UsageError(f"{path} is not a leaderboard: pass the folder of a board, or its leaderboard.json")
    return result


def _page_of(board: Path, out: Path | None = None, force: bool = False) -> TerminalOutput:
    """Return the files of the page of a board; a page in its folder is of that board, whichever verb wrote it."""
    is_of_board = out is None and (mark_of(board / "leaderboard.json") or "").startswith("leaderboard ")
    return output_folder("leaderboard render", "leaderboard", {"board": str(board)}, out or board, force or is_of_board)


def _beside(board: fe.Leaderboard, others: list[str] | None) -> fe.Leaderboard:
    if not others:
        return board
    return board.beside({label: open_board(Path(path)) for label, path in name_sets(others).items()})


def score_sources(options: Sequence[str], option: str = "--scores") -> dict[str, list[str]] | list[Any]:
    """Return what --scores or --labels name: files by model, files with a column model, or columns of the sets."""
    by_model: dict[str, list[str]] = {}
    others: list[str] = []
    for given in options:
        if is_there(given) or is_url(given):
            others.append(given)
        elif "=" in given:
            for part in re.split(r",(?=[^,=]+=)", given):
                name, _, path = part.partition("=")
                if not name or not path:
                    raise UsageError(f"{option} is NAME=FILE, got {part}: write for example one=one.csv,two=two.jsonl")
                by_model.setdefault(name.strip(), []).append(path)
        else:
            others += [part.strip() for part in given.split(",") if part.strip()]
    files = [path for path in others if is_file(path)]
    check_given([*(path for paths in by_model.values() for path in paths), *files])
    if by_model and len(files) < len(others):
        column = next(path for path in others if path not in files)
        raise UsageError(f"{option} names {column!r} beside files, and it is not a file: write NAME={column}")
    if not by_model:
        return others
    return [by_model, *files] if files else by_model


def flat_sources(runs: dict[str, list[str]]) -> dict[str, str]:
    """Return the paths of all training runs by a label each."""
    return {f"{name} {number}": path for name, paths in runs.items() for number, path in enumerate(paths, 1)}


def _print_names(board: fe.Board, sentence: str, as_json: bool, samples: Sequence[str] = ()) -> None:
    """Print what was done to a board, and which files show it as before; `samples` are labels of sets to be given."""
    outdated = [str(path) for suffix in (".html", ".json") if (path := board.folder / f"leaderboard{suffix}").exists()]
    if as_json:
        print_json({"board": str(board.folder), "models": list(board.names), "outdated": outdated})
        return
    print(sentence)
    if outdated:
        places = ["--samples " + shlex.quote(f"{label}=PATH") for label in samples]
        again = " ".join(["finc-eval leaderboard render", shlex.quote(str(board.folder)), *places])
        print(f"note: {join_words(outdated)} show the board as it was before this; to write them again: {again}")
