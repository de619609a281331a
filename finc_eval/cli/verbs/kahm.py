"""`finc-eval kahm`: kernel affine hull machines: models of classes, fabricated samples, one classifier of parties."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

import finc_eval as fe
from finc_eval.cli.class_tables import write_classes
from finc_eval.cli.command import VerbGroup
from finc_eval.cli.fields import list_option
from finc_eval.cli.options import Json, Samples, Work, check_given, embeds, paths_by_name, takes
from finc_eval.cli.output import (
    Force,
    OptionalOut,
    TerminalOutput,
    check_suffix,
    emit,
    has_header,
    make_room,
    output_folder,
    print_json,
    refuse_loss,
)
from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import about, plain
from finc_eval.core.run import Run
from finc_eval.core.storage import reserve, write_whole
from finc_eval.core.words import join_words, plural
from finc_eval.extractors.settings import Extraction

if TYPE_CHECKING:
    from finc_eval.embeddings.base import Embeddings
    from finc_eval.embeddings.needs import Check, Known

kahm = typer.Typer(
    cls=VerbGroup,
    help="Kernel affine hull machines: models of classes, their membership-inference score, fabricated data, and one "
    "classifier over the data of several parties.",
)

LAMBDA = Annotated[
    float | Literal["fixed_point"],
    about("λ, which is the bandwidth of the models: a positive number, or fixed_point for the paper's λ*"),
]


Label = Annotated[
    str,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column of the metadata that names each sample's class. In a folder of folders these are the labels; an "
        ".npz has them as its array labels.",
    ),
]
Models = Annotated[Path, typer.Option(help="Models, an .h5 file that kahm fit wrote.")]
Table = Annotated[Path, typer.Option(help="CSV file to write, one row per sample.")]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="DIR", help="Folder to write a page and the same as JSON to; default: none."),
]


@kahm.command()
@takes(fe.kahm.KahmSettings, "settings", lam=LAMBDA)
@embeds
def fit(
    samples: Samples,
    out: Annotated[Path, typer.Option(help="HDF5 file to write. It holds the samples: keep it as you keep them.")],
    settings: fe.kahm.KahmSettings,
    extraction: Extraction,
    work: Work,
    label: Label = "label",
    others: Annotated[
        str | None,
        typer.Option(
            help="Labeled samples of the same classes, held out: how far they are from the models is printed."
        ),
    ] = None,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a model to each class of a set. The nearest model gives the class of a sample (Definitions 1 to 7).

    Models of noisy samples (Definition 12), or of fabricated samples (Definition 15), are fitted to what kahm fabricate
    wrote.
    """
    sources = {"samples": samples} | ({} if others is None else {"others": others})
    check_given(sources.values(), extraction.extractor)
    check_suffix(out, ".h5")
    output = _report_folder("kahm fit", "models-fit", sources, report, force)
    with work.running() as run:
        checks = [_needs_labels(label, name, path) for name, path in sources.items()]
        sets = _open_embedded(sources, extraction, run, checks=checks)
        _check_others(sets, "samples")
        embeddings = sets["samples"]
        labels = _labels(embeddings, label, samples)
        header = {"source": embeddings.digest, "settings": plain(settings), "classes": sorted(set(labels))}
        refuse_loss(out, lambda path: has_header(path, type="kahm", **header), force)
        with run.step("fit a model to each class"):
            models = fe.kahm.fit_classes(embeddings, labels, settings, device=run.torch_device)
        make_room(out, "kahm", force)
        fe.kahm.save_models(out, models)
        with run.step("distances to the models"):
            known = None if others is None else _labels(sets["others"], label, others)
            found = fe.kahm.describe_models(models, sets.get("others"), known)
    emit(found, output, as_json)
    if not as_json:
        print(out)


@kahm.command()
@embeds
def classify(
    samples: Samples,
    models: Models,
    out: Table,
    extraction: Extraction,
    work: Work,
    label: Label = "label",
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Name the nearest class of every sample, with distances and class-matching scores (Definitions 7 and 8).

    The file has one row per sample: its id; the class of the nearest model; distance, to that model; and the matching
    score of each class, which ranks classes and is not a probability. If the samples have labels, the accuracy is
    printed, for all and for each class, beside that of the nearest class mean and of the nearest sample.
    """
    sources = {"samples": samples, "models": str(models)}
    check_given(sources.values(), extraction.extractor)
    check_suffix(out, ".csv")
    output = _report_folder("kahm classify", "classification", sources, report, force)
    with work.running() as run:
        fitted = fe.kahm.load_models(models, device=run.torch_device)
        embeddings = _open_embedded({"samples": samples}, extraction, run, [fitted.space])["samples"]
        known = embeddings.column(label) if label in embeddings.columns else None
        with run.step("distances to the models"):
            found = fe.kahm.classify(fitted, embeddings, known)
    write_classes(out, found, force)
    emit(found, output, as_json)
    if not as_json:
        print(out)


@kahm.command()
@takes(fe.kahm.KahmSettings, "settings", lam=LAMBDA, depth=None)
@takes(fe.kahm.ElementNoise, "noise")
@embeds
def fabricate(
    samples: Samples,
    out: Annotated[
        Path,
        typer.Option(help="File to write, .npz: fabricated embeddings with labels, which other verbs take as a set."),
    ],
    noise: fe.kahm.ElementNoise,
    settings: fe.kahm.KahmSettings,
    extraction: Extraction,
    work: Work,
    label: Label = "label",
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth/--no-smooth",
            help="Smooth noisy samples and map them to their images (Definition 14), or write them as they are.",
        ),
    ] = True,
    others: Annotated[
        str | None,
        typer.Option(help="Samples of the same distribution, for attacks on the fabricated samples in --report."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="Folder for a page that measures on the originals, without noise, how near the fabricated samples are "
            "to them: for their holder alone. Default: none.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add noise to every entry, and fabricate samples of each class from the noisy samples (Definition 14).

    ε and δ are for one entry, as in the paper. What this means for a whole sample is printed. Every run
    draws fresh noise and spends ε again; so an existing file is never overwritten, and --force is of the page alone.
    """
    sources = {"samples": samples} | ({} if others is None else {"others": others})
    check_given(sources.values(), extraction.extractor)
    check_suffix(out, ".npz")
    _check_holders_page(report, out, others)
    output = _report_folder("kahm fabricate", "fabrication", sources, report, force, "fabrication-not-private")
    with work.running() as run:
        checks = [_needs_labels(label, "samples", samples)]
        sets = _open_embedded(sources, extraction, run, checks=checks)
        _check_others(sets, "samples")
        embeddings = sets["samples"]
        labels = _labels(embeddings, label, samples)
        # 4: bytes on the disk for an entry of a fabricated sample.
        size = embeddings.n * embeddings.dim * 4
        with reserve(out, size) as write:
            with run.step("fabricate samples of each class"):
                made = fe.kahm.fabricate_classes(
                    embeddings, labels, noise, settings, fabricated=smooth, device=run.torch_device
                )
            measured = {} if report is None else {"originals": embeddings, "others": sets.get("others")}
            with run.step("describe the fabricated samples"):
                found = fe.kahm.describe_fabrication(made, labels, noise, settings, **measured, device=run.torch_device)

            def save(path: Path) -> None:
                with write_whole(path) as temporary, create_file(temporary) as file:
                    np.savez(file, embeddings=made.samples, labels=np.array(labels))

            emit(found, output, as_json)  # before the samples, which are kept: a run that is killed here is run again
            write(save)
    if not as_json:
        print(out)


@kahm.command()
@embeds
def membership(
    models: Models,
    members: Annotated[
        str, typer.Option(help="Samples that the models were made from, before any noise, in any form --gen takes.")
    ],
    others: Annotated[str, typer.Option(help="Samples of the same distribution that the models have not seen.")],
    extraction: Extraction,
    work: Work,
    permutations: Annotated[int, typer.Option(help="Permutations behind the p-value and the null.")] = 199,
    seed: Annotated[int, typer.Option(help="Random seed of the estimate.")] = 0,
    out: OptionalOut = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score how well distances to models distinguish members from others: the membership-inference score (eq. 69).

    It is the squared L2 difference between the densities of the two sets of distances. It has no upper bound and is not
    0 for equal densities. So it stands next to its null, and to the success of an attack by distance.
    """
    sources = {"models": str(models), "members": members, "others": others}
    check_given(sources.values(), extraction.extractor)
    output = None if out is None else output_folder("kahm membership", "membership-score", sources, out, force)
    with work.running() as run:
        fitted = fe.kahm.load_models(models, device=run.torch_device)
        sets = _open_embedded({"members": members, "others": others}, extraction, run, [fitted.space])
        _check_others(sets, "members")
        with run.step("distances to the models"):
            near = {name: fe.kahm.nearest_distances(fitted, embeddings) for name, embeddings in sets.items()}
        with run.step(f"score with {permutations:,} permutations"):
            score = fe.kahm.membership_score(
                near["members"], near["others"], permutations=permutations, seed=seed, settings=str(fitted.settings)
            )
    emit(score, output, as_json)


@kahm.command()
@embeds
def federate(
    extraction: Extraction,
    work: Work,
    samples: Annotated[
        str | None, typer.Argument(metavar="SAMPLES", help="The set to classify, in any form that compare --gen takes.")
    ] = None,
    party: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=MODELS", help="A party and its models, which kahm fit wrote. Give it once each."),
    ] = None,
    exchange: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for queries and answers that all parties can reach.")
    ] = None,
    gather: Annotated[Any, list_option(str, "Parties whose answers in --exchange to combine.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write, one row per sample.")] = None,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Classify by the models of several parties: the distance to a class is the least of all (eq. 104).

    With the models at hand: [bold]kahm federate SAMPLES --party a=a.h5 --party b=b.h5 --out classes.csv[/bold]

    With models that stay where they are, in three steps around one folder. Ask: [bold]kahm federate SAMPLES --exchange
    DIR[/bold]. Each party answers with distances alone: [bold]kahm federate --party a=a.h5 --exchange DIR[/bold]. Then
    [bold]kahm federate --gather a,b --exchange DIR --out classes.csv[/bold]. All parties see the samples.
    """
    named = paths_by_name(party or [], "--party", "north=north.h5")
    check_given([samples, *named.values()], extraction.extractor)
    if out is not None:
        check_suffix(out, ".csv")
    elif report is not None:
        raise UsageError("--report describes the classes of samples: pass --out classes.csv, too")
    sources = {"samples": samples or str(exchange)} | {name: str(path) for name, path in named.items()}
    output, found = _report_folder("kahm federate", "classification", sources, report, force), None
    with work.running() as run:
        match samples, named or None, exchange, gather, out:
            case str(asked), None, Path() as folder, None, None:
                queries = _open_embedded({"samples": asked}, extraction, run)["samples"]
                fe.kahm.federated.ask(folder, queries.rows_at(np.arange(queries.n)).numpy())
                asked_about = f"{folder}: asked about {plural(queries.n, 'sample')}"
                print_json({"asked": queries.n}) if as_json else print(asked_about)
            case None, dict(parties), Path() as folder, None, None:
                for name, path in parties.items():
                    fe.kahm.federated.answer(folder, name, fe.kahm.load_models(path, device=run.torch_device))
                answered = f"{folder}: {join_words([*parties])} answered"
                print_json({"answered": [*parties]}) if as_json else print(answered)
            case None, None, Path() as folder, tuple(names), Path():
                gathered = fe.kahm.federated.gather(folder, names)
                found = fe.kahm.classification(gathered.values, gathered.classes, parties=names)
            case str(asked), dict(parties), None, None, Path():
                fitted = {name: fe.kahm.load_models(path, device=run.torch_device) for name, path in parties.items()}
                spaces = [models.space for models in fitted.values()]
                found = fe.kahm.classify(fitted, _open_embedded({"samples": asked}, extraction, run, spaces)["samples"])
            case _:
                raise UsageError(
                    "these options make no step of federated classification: pass SAMPLES with --party "
                    "and --out, or with --exchange one of SAMPLES to ask, --party to answer, and --gather with --out"
                )
    if found is not None and out is not None:
        write_classes(out, found, force)
        emit(found, output, as_json)
        if not as_json:
            print(out)


def _check_others(sets: dict[str, Embeddings], label: str) -> None:
    """Raise DataError if other samples are those of the models."""
    if "others" in sets and sets["others"].digest == sets[label].digest:
        raise DataError(f"{label} and others are the same samples: others are samples that the models have not seen")


def _check_holders_page(report: Path | None, out: Path, others: str | None) -> None:
    """Raise UsageError if a page that is not private would lie beside the samples, or others have no page."""
    if report is None and others is not None:
        raise UsageError("--others is for the page of the holder: pass --report DIR, too")
    if report is not None and report.resolve() == out.resolve().parent:
        raise UsageError(
            f"{report} is the folder of {out}, which is made to be passed on, and this page is not: choose another "
            "folder"
        )


def _report_folder(
    verb: str, type_name: str, sources: dict[str, str], report: Path | None, force: bool, stem: str | None = None
) -> TerminalOutput | None:
    """Return where the page of a verb goes, if one was asked for."""
    return None if report is None else output_folder(verb, type_name, sources, report, force, stem=stem)


def _open_embedded(
    sources: dict[str, Any], extraction: Extraction, run: Run, spaces: Sequence[str] = (), checks: Sequence[Check] = ()
) -> dict[str, Embeddings]:
    from finc_eval.embeddings.opening import open_embeddings  # loads torch: wrong options need not wait

    return open_embeddings(sources, extraction, run, [space for space in spaces if space], checks=checks)


def _needs_labels(column: str, name: str, samples: str) -> Check:
    """Return the check that all samples of a set have a class."""
    return lambda sets: _labels(sets[name], column, samples)


def _labels(embeddings: Known, column: str, samples: str) -> list[str]:
    """Return the class of each sample, all of which must have one."""
    if not embeddings.columns:
        raise DataError(
            f"{samples} has no labels: make a folder for each class in it, or pass an .npz with an array labels, one "
            "for each sample"
        )
    labels = embeddings.column(column)
    if missing := labels.count(""):
        raise DataError(
            f"{plural(missing, 'sample')} of {samples} have no {column}: leave them out, or give them a value"
        )
    return labels
