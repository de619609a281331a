"""Options: those that several verbs share, and `takes`, which makes the options of a settings class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from finc_eval.cli.fields import flag, heading_of, options_of, parameter, settings_with
from finc_eval.core.progress import terminal
from finc_eval.core.run import Run
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR

Gen = Annotated[
    str,
    typer.Option(
        help="Generated set: a folder, .zip or .npz of images, an .h5 file that extract or sketch wrote, or embeddings "
        "of your own (.npy, .npz, .pt, .safetensors or .parquet)."
    ),
]
Ref = Annotated[str, typer.Option(help="Reference set, in any form that --gen takes.")]
Extractor = Annotated[
    str | None,
    typer.Option(
        help="What turns samples into embeddings: a name that finc-eval extractors list prints, timm:NAME, or the path "
        "of your own card ending in .toml. Default: the extractor of a given .h5 file, or else "
        f"{DEFAULT_EXTRACTOR}."
    ),
]
Count = Annotated[
    int | None, typer.Option("--n", help="Take only N samples of the set, a seeded subset. A smaller set is an error.")
]
SubsetSeed = Annotated[int, typer.Option("--subset-seed", help="Random seed of the subset that --n takes.")]
NetworkPrecisionName = Annotated[
    Literal["float32", "bfloat16", "float16"],
    typer.Option(help="Arithmetic of the network: float32 is exact everywhere, the others are faster on GPUs."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if a sample cannot be read, instead of noting it.")]
Device = Annotated[
    str | None, typer.Option(help="Device to compute on: cpu, cuda, cuda:1 …; default: CUDA if available.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output instead of a table.")]

GIVEN = ("COMMANDLINE", "ENVIRONMENT")
"""Sources of a value that a person chose."""


@contextmanager
def running(device: str | None) -> Iterator[Run]:
    """Yield a run on this device whose progress is drawn on standard error; a device that is not there is refused."""
    with terminal() as progress:
        run = Run(device=device, progress=progress)
        if device not in (None, "cpu"):
            from finc_eval.core.device import usable_device  # loads torch

            usable_device(device)
        yield run


def given_options(context: typer.Context, *names: str) -> list[str]:
    """Return those of the named parameters that the command line gives, as they are written there: "--seed"."""
    return [flag(name) for name in names if _is_given(context, name)]


def takes(cls: type, argument: str, **narrower: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb one option per field of a settings class, and hand it the settings.

    Every kind of field has its kind of option:

    - `bool`: a flag `--field`, or `--field/--no-field` where the default is True;
    - `Literal["a", "b"]`: one of these words;
    - `Literal["a"] | None` with the default "a": a flag `--no-field`, which means None;
    - `int | Literal["auto"]`: a number or the word;
    - `tuple[float, ...]`: values separated by commas;
    - a union of dataclasses, told apart by a field such as `name: Literal["finc"]`: `--field NAME`, and an option for
      each parameter of any of them. A parameter that the chosen one does not have is refused. A tuple of them is
      named by `--field NAME,NAME`;
    - `int`, `float`, `str`, `Path`, and each of them `| None`: a value.

    A class with a method `read(path)` also gets `--settings FILE`. The command line takes precedence over the file,
    and the file over the defaults. The class itself checks the values, in its `__post_init__`.

    Args:
        cls: frozen dataclass. `about("…")` in the annotation of a field is the help text of its option, and the first
            line of the docstring is the heading of all of them.
        argument: name of the verb's argument that receives the settings.
        narrower: narrower types of some fields, such as `method=Finc` where only one method can be used; None for a
            field that is not an option of the verb.

    A verb that takes the size of a picture::

        @dataclass(frozen=True)
        class Size:
            "Size of the picture."

            width: Annotated[int, about("width in pixels")] = 28

        @takes(Size, "size")
        def draw(title: str, size: Size) -> None:  # finc-eval draw --title T --width 64
            ...
    """
    options = options_of(cls, narrower)
    made = [one.parameter for one in options]
    read = getattr(cls, "read", None)
    if read is not None:
        made.append(_settings_file(read, heading_of(cls)))

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(verb, include_extras=True)
        own = {name: one.replace(annotation=hints[name]) for name, one in inspect.signature(verb).parameters.items()}
        spliced: list[inspect.Parameter] = []
        for name, declared in own.items():
            spliced += made if name == argument else [declared]
        if "context" not in own:
            spliced.append(parameter("context", typer.Context))

        @wraps(verb)
        def run(**values: Any) -> None:
            given = {name: value for name, value in values.items() if _is_given(values["context"], name)}
            start = read(values["settings_file"]) if read is not None and values["settings_file"] else None
            settings = settings_with(cls, start, options, given)
            verb(**{name: settings if name == argument else values[name] for name in own})

        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in spliced]
        )
        run.__annotations__ = {one.name: one.annotation for one in spliced}
        return run

    return decorate


def _settings_file(read: Callable[..., Any], heading: str) -> inspect.Parameter:
    table = inspect.signature(read).parameters["table"].default
    option = typer.Option(
        "--settings",
        metavar="FILE",
        rich_help_panel=heading,
        help=f"TOML file with these settings in a table \\[{table}]. Options on the command line take precedence.",
    )
    return parameter("settings_file", Annotated[Path | None, option], None)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in GIVEN
