"""The command `finc-eval`: its verbs, each of which is imported when it is called.

A verb is the function or the group of its name, in the module of its name in `finc_eval/cli/verbs/`. So is a part:
`compare sweep` is `sweep` in `finc_eval/cli/verbs/compare.py`, unless the part has a module of its own.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from finc_eval.cli.command import Verb, VerbGroup, parts_in_help
from finc_eval.cli.refusals import SHORT_OF_MEMORY, is_short_of_memory, refused_by_system
from finc_eval.core.errors import FincEvalError, close_match
from finc_eval.core.places import is_url
from finc_eval.core.secrets import redact
from finc_eval.core.storage import DISK_FULL, claims
from finc_eval.core.terminal import output_failure, print_error, visible, visible_output

GARBAGE_THRESHOLD = 10_000
"""New objects after which Python looks for cycles among them, instead of 700: torch and timm load in 2.9 CPU seconds
instead of 3.2."""

USAGE_OR_DATA = 3  # a wrong option, or input that cannot be used


class VerdictExit(SystemExit):
    """The end of a verb with the exit code of a verdict, whose 2 does not mean wrong options."""


VERBS: dict[str, dict[str, str]] = {
    "Compare": {
        "demo": "Plant differences between two sets of real digits, compare them, and print what was found.",
        "compare": "Find the kinds of samples on which two sets differ, and write a report.",
        "metrics": "Compute the metrics people know, each in the space its name means, with intervals, floors and "
        "signatures.",
        "monitor": "Follow a generator over the steps of its training: which kinds die, which looks drift, and which "
        "step to keep.",
        "evaluate": "Evaluate one generator by everything that its sets allow, on one page.",
    },
    "Rank and gate": {
        "leaderboard": "Rank models against one reference, and say which of them cannot be distinguished.",
        "gate": "Judge whether a new release may replace the one before it.",
    },
    "Privacy": {
        "audit": "Audit a generator: are its samples copies, do attacks recognize its training set, does a stated "
        "guarantee hold?",
        "private": "Release data under differential privacy: a sketch to score generators by, or synthetic records.",
        "kahm": "Kernel affine hull machines: models of classes, their membership-inference score, fabricated data, "
        "and one classifier over the data of several parties.",
    },
    "Files": {
        "extract": "Embed a set of samples, once. Killed or interrupted, the same command goes on where it stopped.",
        "report": "Write a result as a page, as Markdown, CSV or LaTeX; of a folder, an index of all results in it.",
        "doctor": "Say what this installation is made of: versions, devices and folders.",
    },
}
"""The verbs by heading, each with the first line of its docstring, so that the list is printed without importing them;
of a group of verbs it is the first sentence of its help."""

PARTS: dict[str, dict[str, str]] = {
    "compare": {
        "methods": "Compare two sets by FINC and by the baselines of its paper, side by side.",
        "sweep": "Compare two sets at many bandwidths, or at many values of ρ.",
        "changes": "Follow the kinds from one release of a model to the next.",
        "kinds": "Divide sets into kinds whose shares add up to 100 %, and test which kinds differ.",
        "score": "Assign samples to the kinds of a comparison, and score them on its directions.",
    },
    "extract": {
        "sketch": "Reduce a set to the statistics that a comparison needs.",
        "merge": "Join the shards of a set that several processes or machines made.",
        "cache": "List, explain, verify and delete cached embeddings.",
    },
    "private": {
        "sketch": "Reference data that may not be shown: its owner releases a sketch with a guarantee, once, and "
        "anybody scores any number of generators against it.",
        "generate": "Release a noisy summary of private data once, and write synthetic records that agree with it.",
        "utility": "Measure on the private records how good synthetic ones are, for their holder alone.",
    },
    "doctor": {
        "extractors": "List, show and check the extractors, which turn samples into embeddings.",
        "weights": "List, fetch and verify the trained weights of the extractors.",
        "schema": "Print the JSON Schema of a type of result, or list the types.",
    },
}
"""The parts of verbs, each with the first line of its docstring."""

OWN_MODULES = ("kinds", "score")  # parts of `compare` with modules of their own

FORMER = {"kinds": ("compare", "kinds"), "score": ("compare", "score")}
"""Verbs of earlier versions, which still work, with what they are called now."""

NAMED_SET = re.compile(r"[^-=/\\][^=/\\]*=.")  # beginning of NAME=PATH, which several sets are given as

# 141: nobody reads standard output any more, as after `| head`; a shell ends other programs with it.
CODES_OF_CLICK: dict[Any, Any] = {1: 141, 2: USAGE_OR_DATA}
"""Exit codes instead of click's, which a pipeline would take for verdicts."""


STREAM_ERRORS = (*DISK_FULL, errno.EFBIG, errno.EIO, errno.EPIPE, errno.ESTALE)
"""Numbers of the errors of a stream that takes nothing more: a full disk, a quota, a limit, a device, a reader."""


class LazyVerb(Verb):
    """A verb known by its name and its line of help; its module is imported when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the verb, or the part of it that the first argument names, and let it read its arguments."""
        name, part = str(self.name), None
        if args and args[0] in PARTS.get(name, ()):
            part, *args = args
            info_name = f"{info_name} {part}"
        return load_verb(name, part).make_context(info_name, args, parent, **extra)


class LazyGroup(VerbGroup):
    """The group of all verbs. It also turns errors into one sentence and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for heading, verbs in VERBS.items():
            for name, line in verbs.items():
                self.add_command(LazyVerb(name, help=line, rich_help_panel=heading))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with visible_output(), _notes_in_one_line(), _redact_mistakes():
            try:
                with claims():
                    return super().invoke(ctx)
            except FincEvalError as error:
                print_error(f"finc-eval: {error}{_notes_of(error)}")
                raise typer.Exit(USAGE_OR_DATA) from error
            except OSError as error:
                if error.filename is None:  # nobody reads the output, for one
                    raise
                print_error(f"finc-eval: {refused_by_system(error)}{_notes_of(error)}")
                raise typer.Exit(USAGE_OR_DATA) from error
            except KeyboardInterrupt as error:
                resumes = ctx.invoked_subcommand == "extract"
                hint = "; finished work is kept, and the same command goes on from there" if resumes else ""
                print_error(f"finc-eval: interrupted{hint}{_notes_of(error)}")
                raise typer.Exit(130) from error

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the arguments before the verb; a verb and its part may be one word, as in private-sketch.

        A command that begins with a path compares, and names the path if nothing is there. Sets with names, NAME=PATH,
        are compared by kinds.
        """
        args = [*_by_present_name(args)]
        verb, _, part = args[0].partition("-") if args else ("", "", "")
        if part in PARTS.get(verb, ()):
            args = [verb, part, *args[1:]]
        elif verb and args[0] not in self.commands and _are_sets(args, self.commands):
            args = ["compare", *args]
        with _redact_mistakes():
            return super().make_context(info_name, args, parent, **extra)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; wrong options and mistakes of ours, too, end with the exit code of usage errors."""
        try:
            return super().main(*args, **extra)
        except SystemExit as end:
            _end_if_output_failed()
            raise end if isinstance(end, VerdictExit) else SystemExit(CODES_OF_CLICK.get(end.code, end.code)) from None
        except Exception as error:
            _end_if_output_failed(error)
            if is_short_of_memory(error):
                print_error(f"finc-eval: {SHORT_OF_MEMORY}{_notes_of(error)}")
                raise SystemExit(USAGE_OR_DATA) from error
            # Python would end with 1, which a pipeline takes for a regression.
            print_error(visible(traceback.format_exc()))
            print_error("finc-eval: this is a mistake in finc-eval: please report the lines above")
            raise SystemExit(USAGE_OR_DATA) from error


def _by_present_name(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command with the present name of its verb, and say it if that is another."""
    if words and (present := FORMER.get(words[0])):
        if "--quiet" not in words:
            print_error(f"note: {words[0]} is called {' '.join(present)} now")
        return [*present, *words[1:]]
    first, *others = [*words, ""]
    return ["compare", "kinds", *words[1:]] if first == "compare" and NAMED_SET.match(others[0]) else words


def _are_sets(words: Sequence[str], verbs: Collection[str]) -> bool:
    """Return whether a command without a verb names two sets; the first set may be missing.

    A first word that does not exist is a set if it has a slash, or if a set follows and it is not nearly a verb.
    """
    first, *others = words
    is_missing_set = "/" in first or (any(map(_is_place, others[:1])) and close_match(first, verbs) is None)
    return is_missing_set or _is_place(first)


def _is_place(word: str) -> bool:
    """Return whether a word is a URL, or a path that exists."""
    with suppress(OSError):  # a word may be longer than names of files
        return is_url(word) or Path(word).exists()
    return False


def _end_if_output_failed(error: Exception | None = None) -> None:
    """End with one sentence if standard output takes nothing more, as on a full disk: the program is not at fault.

    `error` is what ended the verb: files that fail are named, and a stream is not.
    """
    failed = output_failure()
    if isinstance(error, OSError) and error.filename is None and error.errno in STREAM_ERRORS:
        failed = failed or error
    if failed is None:
        return
    if failed.errno == errno.EPIPE:
        raise SystemExit(CODES_OF_CLICK[1])
    why = (failed.strerror or type(failed).__name__).lower()
    print_error(f"finc-eval: standard output cannot be written ({why}): free some space, or send it to another place")
    raise SystemExit(USAGE_OR_DATA)


def _notes_of(error: BaseException) -> str:
    """Return what was noted on an error on its way, such as a budget that it cost."""
    return "".join(f"; {note}" for note in getattr(error, "__notes__", ()))


@contextmanager
def _redact_mistakes() -> Iterator[None]:
    """Cut passwords and signatures from what click says about arguments, which it prints itself."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # older releases of typer take click's, newer ones have their own
            error.message = redact(error.message)  # type: ignore[attr-defined]
        raise


@contextmanager
def _notes_in_one_line() -> Iterator[None]:
    """Print warnings on standard error as they come, each as its sentence alone, and once."""
    printed = set[str]()

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        line = f"note: {message}" if category is UserWarning else f"{category.__name__}: {message}"
        if line in printed:
            return
        printed.add(line)
        print_error(visible(line))  # while bars are drawn, standard error is theirs

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", module=r"PIL\.")  # a damaged picture may give thousands
        warnings.showwarning = note
        yield


def load_verb(name: str, part: str | None = None) -> Any:
    """Import a verb, or a part of it, and return its command. The help of a verb ends with its parts."""
    epilog = None
    if part is None and name in PARTS:
        epilog = parts_in_help({f"{name} {part}": line for part, line in PARTS[name].items()})
    holder, called = typer.Typer(add_completion=False), part or name
    holder.callback()(lambda: None)  # makes a group of it, from which the one verb is taken
    loaded = getattr(import_module(f"finc_eval.cli.verbs.{part if part in OWN_MODULES else name}"), called)
    if isinstance(loaded, typer.Typer):
        for verb in loaded.registered_commands:
            verb.cls = Verb
        holder.add_typer(loaded, name=called)
    else:
        holder.command(called, cls=Verb, epilog=epilog)(loaded)
    group: Any = typer.main.get_command(holder)
    return group.commands[called]


app = typer.Typer(
    cls=LazyGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from finc_eval.core.provenance import package_version  # with pydantic, which helps do not need

        print(f"finc-eval {package_version()}")
        raise typer.Exit


@app.callback()
def finc_eval(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compare image and video generators: which kinds of samples does one make more often than another?

    [bold]finc-eval demo[/bold]: see it work, on digits that come with it

    [bold]finc-eval generated/ real/[/bold]: what differs between two sets (compare); between more: compare a=… b=…

    Which model is better: leaderboard. May a release go out: gate. Are samples copies: audit. FID and others: metrics.

    Results are printed on standard output, progress on standard error. A file finc-eval.toml in the working folder
    has defaults for repeated runs. --install-completion lets the shell complete verbs and options.
    Nothing is decoded that takes more than 1 GiB of memory; FINC_EVAL_MAX_DECODED=4GiB allows more.
    Links that lead out of a folder of samples are refused; FINC_EVAL_FOLLOW_LINKS=1 follows them.
    Exit codes: 0 done; 1 regression and 2 undecided, of gate alone; 3 wrong
    options or unusable data, explained in one sentence; 130 interrupted; 141 nobody reads the output.
    """


def main() -> None:
    """Run the command line: the entry point `finc-eval`."""
    _find_programs_elsewhere()
    gc.set_threshold(GARBAGE_THRESHOLD)
    app()


def _find_programs_elsewhere() -> None:
    """Let libraries find the programs that they start, such as compilers, in absolute folders of PATH alone."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    os.environ["NODEFAULTCURRENTDIRECTORYINEXEPATH"] = "1"  # Windows looks in the working folder first
    if folders:
        os.environ["PATH"] = os.pathsep.join(folders)
    else:
        os.environ.pop("PATH", None)  # an empty one is the working folder; without one, the system's own counts
