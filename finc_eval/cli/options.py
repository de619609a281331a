"""Sets and options that several verbs take, `takes`, which makes options of a settings class, and `finc-eval.toml`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from finc_eval.cli.fields import asked_of, flag, options_of, parameter, settings_with
from finc_eval.cli.question import ask
from finc_eval.core.doors import inside
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.parsed import read_toml
from finc_eval.core.files.stored import header_of
from finc_eval.core.places import is_url, place_of
from finc_eval.core.progress import Progress, silent, terminal
from finc_eval.core.provenance import config_in_use
from finc_eval.core.record import CONFIG_NAME, Configured, about, named_files
from finc_eval.core.run import WORKERS, Run
from finc_eval.embeddings.cache import EmbeddingCache, cache_title
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.settings import EXTRACTOR, Extraction
from finc_eval.gallery.counts import MAX_SHOWN, check_shown
from finc_eval.partitions.settings import REFERENCE
from finc_eval.samples.opening import existing_path

QUIET = "Show no progress; results, notes and errors are printed."

Gen = Annotated[
    str,
    typer.Option(
        help="Generated set: a folder, .zip or .npz of images, an .h5 file that extract or sketch wrote, or "
        "embeddings (.npy, .npz, .pt, .safetensors, .parquet, HDF5). Or a URL of these (s3://, gs://, https:// …)."
    ),
]
Ref = Annotated[str, typer.Option(help="Reference set, in any form that --gen takes.")]
Samples = Annotated[str, typer.Argument(help="The set, in any form that compare --gen takes.", metavar="SAMPLES")]
Gens = Annotated[
    list[str],
    typer.Option(
        "--gen",
        metavar="[NAME=]PATH",
        help="Generated set, in any form that compare takes; the same as an argument NAME=PATH.",
    ),
]
Named = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=PATH", help="Sets, each a name and its samples, in any form that compare takes."),
]
Pictures = Annotated[
    int,
    typer.Option(
        callback=check_shown,
        help=f"Typical samples of each set and kind to show, and as many drawn at random, at most {MAX_SHOWN}. The .h5 "
        "file keeps small pictures of them, so that report finds them from any folder. 0: none.",
        rich_help_panel="Page",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output instead of a table.")]

Quiet = Annotated[bool, typer.Option("--quiet", help=QUIET)]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"TOML file of defaults for these options; default: {CONFIG_NAME} in the working folder, if it is there. "
        "Options on the command line take precedence.",
    ),
]
Extractors = Annotated[
    list[str] | None,
    typer.Option("--extractor", metavar="NAME", help=f"W{EXTRACTOR[1:]}; several: in each of their spaces."),
]

CONFIG = "config"  # name of that parameter in every verb
Verb = Callable[..., None]

TABLES = ("run", "extract", "compare", "methods", "sketch", "kinds", "leaderboard", "audit")
"""Tables of the file: the `table` of every class of settings that a verb takes."""


@dataclass(frozen=True)
class Work(Configured):
    """Run options. None of them changes what is computed."""

    table: ClassVar[str] = "run"

    device: Annotated[str | None, about("device to compute on: cpu, cuda, cuda:1 …; default: CUDA if available")] = None
    batch_size: Annotated[
        int | None, about("samples per pass through the network, halved if memory does not suffice; default: auto")
    ] = None
    workers: Annotated[int, about("threads that decode samples")] = WORKERS
    quiet: Annotated[bool, about(QUIET.rstrip("."))] = False

    @contextmanager
    def running(self) -> Iterator[Run]:
        """Yield a run whose progress is drawn on standard error; a device that is not there is refused."""
        with show_progress(self.quiet) as progress:
            run = Run(device=self.device, batch_size=self.batch_size, workers=self.workers, progress=progress)
            if self.device not in (None, "cpu"):
                from finc_eval.core.device import usable_device  # loads torch

                usable_device(self.device)
            yield run


def show_progress(quiet: bool) -> AbstractContextManager[Progress]:
    """Return a progress that is drawn on standard error unless it is to be quiet."""
    return nullcontext(silent) if quiet else terminal()


def works(verb: Verb) -> Verb:
    """Give a verb the options of `Work`, as its argument `work`."""
    return takes(Work, "work")(verb)


def embeds(verb: Verb) -> Verb:
    """Give a verb the options of samples that it embeds, as its argument `extraction`, and the options of `Work`.

    The seed of the subset and the precision of the network are options of extract alone, and a shard is one of extract
    and sketch.
    """
    return takes(Extraction, "extraction", seed=None, precision=None, shard=None)(works(verb))


def given_options(context: typer.Context, *names: str) -> list[str]:
    """Return the named parameters that the command line gives, as they are written there: "--seed"."""
    return [flag(name) for name in names if _is_given(context, name)]


def takes(cls: type, argument: str, **narrower: Any) -> Callable[[Verb], Verb]:
    """Give a verb one option per field of a settings class, and hand it the settings.

    Every kind of field has its kind of option:

    - `bool`: a flag `--field`, or `--field/--no-field` if the default is True;
    - `Literal["a", "b"]`: one of these words;
    - `Literal["a"] | None` with the default "a": a flag `--no-field`, which means None;
    - `int | Literal["auto"]`: a number or the word;
    - `tuple[float, ...]`: values separated by commas;
    - a union of dataclasses, distinguished by a field such as `name: Literal["finc"]`: `--field NAME`, and an option
      for each parameter of any of them. A parameter that the chosen one does not have is refused. A tuple of them is
      named by `--field NAME,NAME`;
    - `int`, `float`, `str`, `Path`, and each of them `| None`: a value.

    `about("…")` in the annotation of a field is the help text of its option. `argument` is the name of the verb's
    argument for the settings. `narrower` replaces types of fields, such as `method=Finc`; None leaves an option out.

    Where the class has a table in the file of defaults (`--config FILE`, or finc-eval.toml in the working folder), its
    values take the place of the class's own defaults. The command line takes precedence over both. The class itself
    checks the values, in its `__post_init__`.
    """
    options = options_of(cls, narrower)
    made = [option.parameter for option in options]

    def decorate(verb: Verb) -> Verb:
        hints = get_type_hints(verb, include_extras=True)
        args = {name: each.replace(annotation=hints[name]) for name, each in inspect.signature(verb).parameters.items()}
        spliced: list[inspect.Parameter] = []
        for name, declared in args.items():
            spliced += made if name == argument else [declared]
        if CONFIG not in args:
            spliced.append(parameter(CONFIG, Config, None))
        if "context" not in args:
            spliced.append(parameter("context", typer.Context))

        @wraps(verb)
        def run(**values: Any) -> None:
            given = {name: value for name, value in values.items() if _is_given(values["context"], name)}
            path = config_file(values[CONFIG])
            start = read_defaults(cls, path)
            if values[CONFIG] is None:
                check_files(start, given)
            for name, narrow in narrower.items():
                if start is not None and isinstance(narrow, type) and not isinstance(getattr(start, name), narrow):
                    start = replace(start, **{name: narrow()})  # a default for another verb
            settings = settings_with(cls, start, options, given)
            ask(*asked_of(cls, settings, options, values["context"].params))
            # Every result that the verb makes names the file of defaults in its provenance.
            token = config_in_use.set(None if path is None else str(path))
            try:
                verb(**{name: settings if name == argument else values[name] for name in args})
            finally:
                config_in_use.reset(token)

        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [declared.replace(kind=inspect.Parameter.KEYWORD_ONLY) for declared in spliced]
        )
        run.__annotations__ = {declared.name: declared.annotation for declared in spliced}
        return run

    return decorate


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def config_file(given: Path | None) -> Path | None:
    """Return the file of defaults: the one that was given, or finc-eval.toml in the working folder, or None."""
    here = Path(CONFIG_NAME)
    return given or (here if here.exists() else None)


def read_defaults(cls: type[Any], path: Path | None) -> Any:
    """Return the settings of a class from the file of defaults; None if the file lacks its table."""
    if path is None or not issubclass(cls, Configured):
        return None
    content = read_toml(path)
    for name, value in content.items():
        if name not in TABLES:
            raise DataError(f"{path}: unknown table [{name}]{did_you_mean(name, TABLES)}: use {', '.join(TABLES)}")
        if not isinstance(value, dict):
            raise DataError(f"{path}: {name} must be a table, got {value!r}: write [{name}] on a line of its own")
    return cls.read(path) if cls.table in content else None


def check_files(settings: object, given: Container[str]) -> None:
    """Refuse the files that finc-eval.toml of the working folder names, unless they are data of that folder.

    Nobody named that file, so that it may be a colleague's. Fields that are `given` on the command line do not count.
    """
    for name, file in named_files(settings).items():
        if name in given:
            continue
        remedy = f"pass {flag(name)} if you trust it"
        try:
            if file.startswith("~"):  # what reads it would look in a home
                raise DataError
            inside(Path(), Path(file).as_posix())  # without "./", which changes nothing
        except DataError as error:
            raise DataError(
                f"{CONFIG_NAME} of this folder names {file!r:.100} as {name}, which must be a file of this folder: "
                f"{remedy}"
            ) from error
        # A network in TorchScript is a program, and weights are read from any place.
        if file.endswith(".toml") and ((card := load_card(file)).loader.kind != "pixels" or card.weights):
            raise DataError(f"{CONFIG_NAME} of this folder chooses the network of {file} as {name}: {remedy}")


def name_sets(gens: Iterable[str], ref: str | None = None) -> dict[str, str]:
    """Return the paths of sets by name, from arguments NAME=PATH, or PATH, which is named by its title."""
    sets = {name: path for name, (path, *_) in runs_of_models(gens, at_most_once=True).items()}
    return sets if ref is None else sets | {REFERENCE: ref}


def runs_of_models(gens: Iterable[str], *, at_most_once: bool = False) -> dict[str, list[str]]:
    """Return the paths of the training runs of models by name: a NAME=PATH given several times is one model."""
    models: dict[str, list[str]] = {}
    for argument in gens:
        name, equals, path = argument.partition("=")
        by_hand = bool(equals) and not is_url(argument) and not Path(argument).exists()
        if not by_hand:
            name, path = title_of(argument, argument), argument
        elif not name or not path:
            raise UsageError(f"{argument!r} is not of the form NAME=PATH: write for example mine=samples/")
        if name == REFERENCE:
            raise UsageError(
                f'a model cannot be called "{REFERENCE}": pass the reference as --ref, or name the model, NAME=PATH'
            )
        if name in models and (at_most_once or not by_hand):
            raise UsageError(f"two models are called {name!r}: give each its own name, NAME=PATH")
        models.setdefault(name, []).append(path)
    return models


def paths_by_name(arguments: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Return the paths of an option that is given as NAME=PATH, once for each name."""
    paths: dict[str, str] = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not name or not path:
            raise UsageError(f"{option} is NAME=PATH, got {argument}: write for example {example}")
        if name in paths:
            raise UsageError(f"{option} has {name} twice: give each name once")
        paths[name] = path
    return paths


def check_given(sources: Iterable[str | Path | None], extractor: str | None = None) -> None:
    """Refuse paths that do not exist and extractors that nobody knows; call it first, as the work loads torch."""
    for source in sources:
        if source is not None:
            existing_path(source)
    if extractor is not None and not extractor.startswith("timm:"):
        load_card(extractor)


def title_of(source: str, label: str) -> str:
    """Return the title of a set, as results have it, from its path."""
    path = existing_path(source)
    if path is None:
        return Path(place_of(source)).name
    header = header_of(path) or {}
    if header.get("type") == "embeddings":
        with EmbeddingCache(path) as cache:
            return cache_title(cache) or label
    if header.get("type") == "sketch" and header.get("name"):
        return str(header["name"])
    return path.resolve().name if path.is_dir() else path.stem
