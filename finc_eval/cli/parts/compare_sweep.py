"""`finc-eval compare sweep`: how the modes of two sets come and go with the bandwidth, or with ρ."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

import finc_eval as fe
from finc_eval.cli.config import config_file, configured_keys
from finc_eval.cli.fields import list_parser
from finc_eval.cli.options import Config, Gen, Json, Pictures, Ref, Work, embeds, given_options, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given
from finc_eval.comparison.settings import SIGMA_SWEEP_FEATURES, Finc, Settings
from finc_eval.core.checks import check_positive
from finc_eval.core.errors import UsageError
from finc_eval.extractors.settings import Extraction
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown

USELESS = {"sigma": ("sigma", "kernel"), "rho": ("rho",)}
"""Options that a sweep of each parameter does not use."""


@takes(Settings, "settings", method=Finc)
@embeds
def sweep(
    context: typer.Context,
    gen: Gen,
    ref: Ref,
    parameter: Annotated[
        Literal["sigma", "rho"],
        typer.Option(
            help="Parameter to vary: sigma, the bandwidth, shows which modes there are at which scale; rho shows which "
            "modes remain when one set must have many times the mass of the other."
        ),
    ],
    settings: Settings,
    extraction: Extraction,
    work: Work,
    values: Annotated[
        Any,
        typer.Option(
            metavar="V,V,…",
            parser=list_parser(float),
            help="Values of the parameter, separated by commas. Default: for sigma, seven from 0.25 to 2 times the "
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
    fewer modes are significant than in compare, also at compare's default. Run compare next, with the value that you
    choose. For sigma, the default of --features is 1000.
    """
    useless = given_options(context, *USELESS[parameter])
    if useless:
        raise UsageError(f"a sweep of {parameter} does not use {' and '.join(useless)}: leave it out")
    for value in values or ():
        check_positive("--values", value)
    chosen = given_options(context, "features") or "features" in configured_keys(Settings, config_file(config))
    if parameter == "sigma" and not chosen:
        settings = replace(settings, features=SIGMA_SWEEP_FEATURES)
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extraction.extractor)
    check_shown(pictures)
    output = output_folder(f"sweep {parameter}", "sweep", sources, out, force, stem=f"sweep-{parameter}")
    with work.running() as run:
        result = fe.sweep(gen, ref, parameter, values, settings, extractor=extraction, run=run)
    emit(result.showing(pictures), output, as_json)
