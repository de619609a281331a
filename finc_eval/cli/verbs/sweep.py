"""`finc-eval sweep`: how the modes of two sets come and go with the bandwidth, or with ρ."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

import finc_eval as fe
from finc_eval.cli.fields import list_parser
from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, given_options, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all
from finc_eval.comparison.settings import SIGMA_SWEEP_FEATURES, Finc, Settings
from finc_eval.core.checks import check_positive
from finc_eval.core.errors import UsageError

USELESS = {"sigma": ("sigma", "kernel"), "rho": ("rho",)}
"""Options that a sweep of each parameter does not use."""


@takes(Settings, "settings", method=Finc)
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
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare two sets at many bandwidths, or at many values of ρ.

    Each set is read once. Intervals are conservative, so that fewer modes are significant than in compare, which you
    run next with the value that you choose. For sigma, the default of --features is 1000.
    """
    useless = given_options(context, *USELESS[parameter])
    if useless:
        raise UsageError(f"a sweep of {parameter} does not use {' and '.join(useless)}: leave it out")
    for value in values or ():
        check_positive("--values", value)
    if parameter == "sigma" and not given_options(context, "features", "settings_file"):
        settings = replace(settings, features=SIGMA_SWEEP_FEATURES)
    sources = {"gen": gen, "ref": ref}
    check_given(sources.values(), extractor)
    output = output_folder(f"sweep {parameter}", "sweep", sources, out, force, stem=f"sweep-{parameter}")
    with running(device) as run:
        sets = embed_all(sources, extractor, strict, run)
        result = fe.sweep(sets["gen"], sets["ref"], parameter, values, settings, run=run)
    emit(result, output, as_json)
