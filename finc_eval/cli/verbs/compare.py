"""`finc-eval compare`: the kinds and directions on which two sets differ; methods, sweeps and changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

import finc_eval as fe
from finc_eval.cli.fields import list_option
from finc_eval.cli.options import (
    Config,
    Extractors,
    Gen,
    Json,
    Pictures,
    Ref,
    Work,
    check_given,
    config_file,
    embeds,
    given_options,
    takes,
    works,
)
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.comparison.settings import SIGMA_SWEEP_FEATURES, Finc, Fld, Ken, Method, Rarity, Settings, methods_of
from finc_eval.core.errors import UsageError, check_positive
from finc_eval.core.files.parsed import read_toml
from finc_eval.core.record import Configured, about
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES


@takes(Settings, "settings")
@takes(Extraction, "extraction", extractor=None, seed=None, precision=None, shard=None)
@works
def compare(
    gen: Gen,
    ref: Ref,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    extractor: Extractors = None,
    kinds: Annotated[
        Path | None,
        typer.Option(help="Earlier comparison, an .h5 file, whose kinds to count by; then changes shows what changed."),
    ] = None,
    again: Annotated[
        list[Path] | None,
        typer.Option(
            help="Further run of the reference's generator, of the same ids: what equals look like; may be repeated."
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Find the kinds of samples on which two sets differ, and write a report.

    Every sample belongs to one kind, and the shares of the kinds add up to 100 % of each set. FINC's directions
    show differences that no separate kind shows, such as a change of style over many kinds.
    """
    sources = {"gen": gen, "ref": ref}
    how = [replace(extraction, extractor=name) for name in extractor or ()] or [extraction]
    for each in how:
        check_given([*sources.values(), kinds, *(again or ())], each.extractor)
    output = output_folder("compare", "comparison" if len(how) == 1 else "spaces", sources, out, force, how=how)
    with work.running() as run:
        chosen = how if len(how) > 1 else how[0]
        result = fe.compare(gen, ref, settings, kinds=kinds, again=again or (), extractor=chosen, run=run)
    emit(result.showing(pictures), output, as_json)


@dataclass(frozen=True)
class Columns(Configured):
    """Methods to compare."""

    table: ClassVar[str] = "methods"

    methods: Annotated[tuple[Method, ...], about("methods, separated by commas, in the order of the columns")] = (
        Finc(clusters=False),
        Ken(),
        Rarity(),
        Fld(),
    )

    def __post_init__(self) -> None:
        methods_of(self.methods)


@takes(Settings, "settings", method=None)
@takes(Columns, "columns")
@embeds
def methods(
    gen: Gen,
    ref: Ref,
    columns: Columns,
    settings: Settings,
    extraction: Extraction,
    work: Work,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Compare two sets by FINC and by the baselines of its paper, side by side.

    The methods differ only in how they find the directions that they test: the verb kinds finds kinds. Both sets must
    be samples or embeddings: a sketch is enough for finc alone.
    """
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    output = output_folder("methods", "methods", sources, out, force, how=[extraction])
    with work.running() as run:
        result = fe.compare_methods(gen, ref, columns.methods, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)


USELESS = {"sigma": ("sigma", "kernel"), "rho": ("rho",)}  # options that a sweep of each parameter does not use


@takes(Settings, "settings", method=Finc)
@embeds
def sweep(
    context: typer.Context,
    gen: Gen,
    ref: Ref,
    parameter: Annotated[
        Literal["sigma", "rho"],
        typer.Option(
            help="Parameter to vary: sigma, the bandwidth, shows which directions there are at which scale; rho shows "
            "which of them remain when one set must have many times the mass of the other."
        ),
    ],
    settings: Settings,
    extraction: Extraction,
    work: Work,
    values: Annotated[
        Any,
        list_option(
            float,
            "Values of the parameter, separated by commas. Default: for sigma, seven from 0.25 to 2 times the "
            "reference's median distance; for rho, 1,2,5,10.",
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Compare two sets at many bandwidths, or at many values of ρ.

    Each set is read once. A sweep tests directions alone, without kinds, and its intervals are conservative, so that
    fewer directions are significant than in compare, also at compare's default. Run compare next, with the value that
    you choose. For sigma, the default of --features is 1000.
    """
    useless = given_options(context, *USELESS[parameter])
    if useless:
        raise UsageError(f"a sweep of {parameter} does not use {' and '.join(useless)}: leave it out")
    for value in values or ():
        check_positive("--values", value)
    defaults = config_file(config)
    chosen = defaults is not None and "features" in read_toml(defaults).get(Settings.table, {})
    if parameter == "sigma" and not chosen and not given_options(context, "features"):
        settings = replace(settings, features=SIGMA_SWEEP_FEATURES)
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    output = output_folder(
        f"sweep {parameter}", "sweep", sources, out, force, how=[extraction], stem=f"sweep-{parameter}"
    )
    with work.running() as run:
        result = fe.sweep(gen, ref, parameter, values, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)


def changes(
    old: Annotated[Path, typer.Option(help="Comparison of the earlier release, an .h5 file that compare wrote.")],
    new: Annotated[
        Path, typer.Option(help="Comparison of the later release with the same reference, made with --kinds.")
    ],
    out: Out = None,
    force: Force = False,
    pictures: Pictures = SHOWN_SAMPLES,
    as_json: Json = False,
) -> None:
    """Follow the kinds from one release of a model to the next.

    Each kind is new, grown, unchanged, undecided, shrunk or gone. Compare both releases with one reference, the later
    by the kinds of the earlier: compare --kinds old.h5.
    """
    sources = {"old": str(old), "new": str(new)}
    check_given(sources.values())
    before, after = fe.Comparison.load(old), fe.Comparison.load(new)
    titles = (before.gen.name, after.gen.name)
    output = output_folder("changes", "changes", sources, out, force, titles=titles)
    emit(fe.compare_releases(before, after).showing(pictures), output, as_json)
