"""`finc-eval private`: releases of private data under differential privacy: a sketch, or synthetic records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer

import finc_eval as fe
from finc_eval.cli.command import VerbGroup
from finc_eval.cli.fields import list_option
from finc_eval.cli.options import Gen, Gens, Json, Named, Work, check_given, embeds, name_sets, takes, title_of, works
from finc_eval.cli.output import (
    Force,
    OptionalOut,
    TerminalOutput,
    check_suffix,
    emit,
    make_room,
    output_folder,
    print_json,
    print_result,
    refuse_loss,
)
from finc_eval.core.errors import BudgetError, DataError, UsageError
from finc_eval.core.marks import job_digest
from finc_eval.core.storage import check_free, claim, reserve
from finc_eval.core.words import plural
from finc_eval.extractors.settings import Extraction
from finc_eval.private.dp.ledger import Ledger, PlannedLedger
from finc_eval.private.dp.losses import note_losses
from finc_eval.private.settings import ImageSynthesisSettings, PrivacySettings, ReleaseSettings
from finc_eval.private.synthesis.files import (
    SUFFIXES,
    check_form,
    irregular_lines,
    read_columns,
    read_images,
    read_labeled,
    write_arrays,
)

LedgerFile = Annotated[Path, typer.Option(help="File that records what each data set has spent.")]
Budget = Annotated[
    float | None, typer.Option(help="ε that all releases about a data set may spend together, for a new ledger.")
]


def open_ledger(path: Path, budget: float | None, settings: PrivacySettings) -> Ledger:
    """Open the ledger at `path`; with a budget, plan a new one if it does not exist, made by its first spending."""
    if not path.exists():
        if budget is None:
            raise BudgetError(f"{path} does not exist: pass --budget, the epsilon that a data set may spend in all")
        return PlannedLedger(path, budget, settings.delta, settings.guarantee.adjacency)
    ledger = Ledger(path)
    if budget not in (None, ledger.budget.epsilon):
        raise BudgetError(f"{path} has a budget of epsilon {ledger.budget.epsilon:g}, which is set once: leave it out")
    return ledger


def private(context: typer.Context) -> None:
    """Release data under differential privacy: a sketch to score generators by, or synthetic records."""
    print(context.get_help())


sketch = typer.Typer(
    cls=VerbGroup,
    help="Reference data that may not be shown: its owner releases a sketch with a guarantee, once, and anybody scores "
    "any number of generators against it.",
)


SketchFile = Annotated[Path, typer.Option("--ref", help="Private sketch.")]


@sketch.command()
@takes(ReleaseSettings, "settings")
@embeds
def release(
    data: Annotated[
        str, typer.Option(help="Private set, in any form that --gen of compare takes: samples, or embeddings.")
    ],
    ledger: LedgerFile,
    out: Annotated[Path, typer.Option(help="HDF5 file to write, which is meant for publication.")],
    settings: ReleaseSettings,
    extraction: Extraction,
    work: Work,
    budget: Budget = None,
    public: Annotated[
        str | None,
        typer.Option(help="Public set of the same kind, from which axes, length scale and radius are computed."),
    ] = None,
    feature_map_of: Annotated[
        Path | None,
        typer.Option(help="Released sketch whose transform and features to share, so that both can be merged."),
    ] = None,
    length_scale: Annotated[
        float | None, typer.Option(help="Length scale of the kernel, without a public set; needs --radius.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Largest norm of an embedding, without a public set; needs --length-scale.")
    ] = None,
    dims: Annotated[int, typer.Option(help="Number of principal axes of the public set, or random directions.")] = 20,
    projection_seed: Annotated[int, typer.Option(help="Random seed of the directions, without a public set.")] = 0,
    classes: Annotated[Any, list_option(str, "Public list of classes, for a sketch by class.")] = None,
    as_json: Json = False,
) -> None:
    """Release a sketch of private data. The spending is in the ledger before any noise is drawn.

    Scales must not come from the private data: pass --public, --feature-map-of, or --length-scale and --radius.
    """
    if (length_scale is None) != (radius is None):
        raise UsageError("--length-scale and --radius go together: pass both, or neither")
    if [public, feature_map_of, length_scale].count(None) != 2:
        raise UsageError(
            "scales must not come from the private set: pass --public, "
            "--feature-map-of, or --length-scale with --radius"
        )
    check_given([data, public, feature_map_of], extraction.extractor)
    check_suffix(out, ".h5")
    # 16 << 20: bytes that must be free on the disk for a release; no sketch is larger.
    with note_losses() as done, reserve(out, 16 << 20) as write, work.running() as run:
        book = open_ledger(ledger, budget, settings)
        released = None if feature_map_of is None else fe.privacy.PrivateSketch.load(feature_map_of)
        sources = {"data": data} | ({} if public is None else {"public": public})
        from finc_eval.embeddings.needs import needs_labels  # loads torch, which wrong options need not wait for
        from finc_eval.embeddings.opening import as_embeddings, embed_sources
        from finc_eval.private.reference.release import NO_LABELS

        spaces = [] if released is None else [released.space]
        is_by_class = (classes if released is None else released.classes) is not None
        checks = [needs_labels("data", DataError(NO_LABELS))] if is_by_class else []
        sets = embed_sources(sources, extraction, run, spaces, checks)
        transform: object = released
        if public is not None:
            transform = fe.privacy.PublicTransform.fit(sets["public"], dims)
        elif length_scale is not None and radius is not None:
            dim = as_embeddings(sets["data"]).dim
            transform = fe.privacy.PublicTransform.constant(
                dim, min(dims, dim), length_scale=length_scale, radius=radius, seed=projection_seed
            )
        sketch = fe.privacy.release_sketch(
            sets["data"], settings, public=transform, ledger=book, classes=classes, run=run
        )
        write(partial(_save, sketch.save, done))
    _print_sketch(out, sketch, as_json)


@sketch.command()
@embeds
def score(
    gen: Gen,
    ref: SketchFile,
    extraction: Extraction,
    work: Work,
    out: OptionalOut = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score a generator against a private sketch: an unbiased MMD² with intervals, and its parts by degree."""
    check_given([gen, ref], extraction.extractor)
    inputs = {"gen": gen, "ref": str(ref)}
    output = None if out is None else output_folder("private sketch score", "private-score", inputs, out, force)
    with work.running() as run:
        sketch = fe.privacy.PrivateSketch.load(ref)
        result = sketch.score(gen, name=title_of(gen, "gen"), extractor=extraction, run=run)
    emit(result, output, as_json)


@sketch.command()
@embeds
def compare(
    ref: SketchFile,
    extraction: Extraction,
    work: Work,
    models: Named = None,
    gen: Gens = (),  # type: ignore[assignment]
    out: OptionalOut = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rank generators by one private sketch. Most of the noise cancels in the differences of their scores."""
    named = name_sets([*(models or ()), *gen])
    inputs = {**named, "ref": str(ref)}
    check_given(inputs.values(), extraction.extractor)
    output = None if out is None else output_folder("private sketch compare", "private-comparison", inputs, out, force)
    with work.running() as run:
        sketch = fe.privacy.PrivateSketch.load(ref)
        result = sketch.compare(named, extractor=extraction, run=run)
    emit(result, output, as_json)


@sketch.command()
def merge(
    sketches: Annotated[list[Path], typer.Argument(help="Private sketches of owners without common records.")],
    out: Annotated[Path, typer.Option(help="HDF5 file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Merge the sketches of several owners, weighted by their records. Each owner's guarantee stays the same."""
    check_given(sketches)
    check_suffix(out, ".h5")
    merged = fe.privacy.PrivateSketch.merge([fe.privacy.PrivateSketch.load(path) for path in sketches])

    def is_own(path: Path) -> bool:
        try:
            return fe.privacy.PrivateSketch.load(path).header == merged.header
        except DataError:  # other files
            return False

    refuse_loss(out, is_own, force)
    make_room(out, "private sketch", force)
    merged.save(out)
    _print_sketch(out, merged, as_json)


@sketch.command()
def inspect(
    sketch: Annotated[Path | None, typer.Argument(help="Private sketch.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Ledger to show: what is spent and what is left.")] = None,
    as_json: Json = False,
) -> None:
    """Show the contents and guarantees of a private sketch, or the spendings in a ledger."""
    if sketch is not None and ledger is None:
        _print_sketch(sketch, fe.privacy.PrivateSketch.load(sketch), as_json)
    elif ledger is not None and sketch is None:
        book = Ledger(ledger)
        if as_json:
            print_json({"budget": book.budget, "data_sets": book.accounts()})
        else:
            from finc_eval.private.reference.page import (
                show_ledger,  # loads torch, which wrong options need not wait for
            )

            show_ledger(book)
    else:
        raise UsageError("name either a private sketch, or a ledger with --ledger")


def _save(save: Callable[[Path], object], done: Callable[[], None], path: Path) -> None:
    """Write an output that is paid for, wherever it finds its place."""
    save(path)
    done()


def _print_sketch(path: Path, sketch: fe.privacy.PrivateSketch, as_json: bool) -> None:
    if as_json:
        print_json(sketch.header)
        return
    from finc_eval.private.reference.page import show_sketch  # loads torch, which wrong options need not wait for

    show_sketch(str(path), sketch)


BYTES_OF_A_CELL = 64  # bytes that are held on the disk for a cell of a table, or for the label of an image


@takes(ImageSynthesisSettings, "settings")
@works
def generate(
    data: Annotated[
        Path,
        typer.Option(help="Private data: a table as .csv or .npz, or an .npz with images (n, h, w) uint8 and labels."),
    ],
    ledger: LedgerFile,
    out: Annotated[
        Path,
        typer.Option(
            help="File of the synthetic data to write: .csv or .npz, for images .npz. A page about the release, and "
            "the same as JSON, are written next to it."
        ),
    ],
    settings: ImageSynthesisSettings,
    work: Work,
    budget: Budget = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Public description of a table: a .toml or .json file of columns, their ranges and values."),
    ] = None,
    classes: Annotated[Any, list_option(str, "Public list of classes, for images with labels.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release a noisy summary of private data once, and write synthetic records that agree with it.

    With --table the records are the rows of a table, whose ranges and values come from --table alone, never from the
    data. Without it the records are images. Every run on the same data spends epsilon again.
    """
    check_given([data, table])
    check_form(data, table, classes)
    check_suffix(out, *(SUFFIXES if table is not None else SUFFIXES[1:]))
    inputs = {"data": str(data)} | ({} if table is None else {"table": str(table)})
    output = TerminalOutput(out.parent, "synthesis", out.stem, job_digest("dp-generate", inputs), force)
    check_free(out)
    output.check()
    claim(output.files[".html"])
    book = open_ledger(ledger, budget, settings)
    with note_losses() as done, work.running() as run:
        private = _private_images(data, classes) if table is None else _private_table(data, table)
        with reserve(out, (settings.count or private.records) * private.bytes_each) as write:
            made: Any = private.synthesize(settings, ledger=book, run=run)
            synthesis = made.synthesis.marked(output.job)
            if table is not None:
                arrays, pictures = made.values, {}
            else:
                arrays, pictures = {"images": made.images}, {"synthetic": made.images}
                arrays |= {} if made.labels is None else {"labels": made.labels}
            # The same command replaces a page that has no data, and never data that were paid for.
            try:
                output.write(synthesis, {}, pictures)
            finally:
                write(partial(_save, partial(write_arrays, arrays=arrays), done))
    if as_json:
        emit(synthesis, None, as_json)
    else:
        print_result(synthesis, output.listed)
        print(out)


@dataclass(frozen=True)
class _Private:
    """Private data that were read."""

    synthesize: Callable[..., Any]  # of settings, a ledger and a run
    records: int
    bytes_each: int  # bytes that a synthetic record may take on the disk


def _private_table(data: Path, table: Path) -> _Private:
    """Read a private table by its public description."""
    columns, described = read_columns(data), fe.privacy.Table.load(table)
    if irregular := irregular_lines(data):
        warnings.warn(
            f"{data} has {plural(irregular, 'record')} with more or fewer cells than its line of names: "
            "missing cells count as empty, and cells beyond it are dropped. No noise protects this number: "
            "keep it to yourself",
            stacklevel=1,
        )
    synthesize = partial(fe.privacy.synthesize_table, columns, described)
    return _Private(synthesize, len(next(iter(columns.values()))), len(described.levels) * BYTES_OF_A_CELL)


def _private_images(data: Path, classes: Sequence[str] | None) -> _Private:
    """Read private images, with labels exactly if their classes are public."""
    images, labels = read_images(data)
    if labels is not None and classes is None:
        raise UsageError(
            f"{data} has labels: pass --classes, the public list of classes, or a file without labels for images alone"
        )
    if classes is not None and labels is None:
        raise UsageError(f"--classes needs the class of each image, and {data} has no array labels: add it")
    names = None if labels is None else list(labels)
    synthesize = partial(fe.privacy.synthesize_images, images, names, classes=classes or ())
    return _Private(synthesize, len(images), prod(images.shape[1:]) + BYTES_OF_A_CELL)


@works
def utility(
    data: Annotated[Path, typer.Option(help="Private data, as for private generate.")],
    gen: Annotated[Path, typer.Option(help="Synthetic data of the same form, made by this program or by another.")],
    work: Work,
    table: Annotated[Path | None, typer.Option(help="Public description of a table, a .toml or .json file.")] = None,
    classes: Annotated[Any, list_option(str, "List of classes, for images with labels.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of halves, classifiers and yardsticks.")] = 0,
    out: OptionalOut = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure on the private records how good synthetic ones are, for their holder alone.

    Classifiers that are trained on synthetic records are tested on private ones, and marginals are compared. This is
    computed without noise: no guarantee covers it, and no ledger counts it, so do not publish it.
    """
    check_given([data, gen, table])
    check_form(data, table, classes)
    inputs = {"data": str(data), "gen": str(gen)} | ({} if table is None else {"table": str(table)})
    if out is not None and out.resolve() == gen.resolve().parent:
        raise UsageError(
            f"{out} is the folder of {gen}, which is made to be published, and this page is not: choose another folder"
        )
    named = "utility-not-private"
    output = None if out is None else output_folder("private utility", "utility", inputs, out, force, stem=named)
    with work.running() as run:
        if table is not None:
            described = fe.privacy.Table.load(table)
            found = fe.privacy.table_utility(read_columns(data), read_columns(gen), described, seed=seed, run=run)
        else:
            found = fe.privacy.image_utility(*read_labeled(data), *read_labeled(gen), classes or (), seed=seed, run=run)
    emit(found, output, as_json)
