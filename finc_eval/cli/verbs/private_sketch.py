"""`finc-eval private-sketch`: release reference data once under differential privacy, and score against the release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from finc_eval.cli.options import Device, Extractor, Json, Strict, running
from finc_eval.cli.output import twin_of
from finc_eval.cli.sets import embed_all, named_sets
from finc_eval.core.errors import FincEvalError

if TYPE_CHECKING:
    from finc_eval.privacy.dp.gaussian_mechanism import Adjacency
    from finc_eval.privacy.dp.ledger import Ledger
    from finc_eval.privacy.reference.release import Bound
    from finc_eval.privacy.reference.sketch import PrivateSketch

app = typer.Typer(
    no_args_is_help=True,
    help="Reference data that may not be shown: its owner releases a sketch with a guarantee, once, and anybody scores "
    "any number of generators against it.",
)

ROOM = 16 << 20
"""Bytes that must be free for a release: no sketch is larger."""

SketchFile = Annotated[Path, typer.Option("--ref", help="The private sketch.")]
Out = Annotated[Path | None, typer.Option(help="A page to write, with its JSON twin.")]


@app.command()
def release(
    data: Annotated[str, typer.Option(help="The private set: a folder, .zip or .npz of images, or an .h5 of extract.")],
    epsilon: Annotated[float, typer.Option(help="ε of the guarantee.")],
    ledger: Annotated[Path, typer.Option(help="The file that counts what each data set has spent.")],
    out: Annotated[Path, typer.Option(help="The .h5 file to write, for publication.")],
    public: Annotated[
        str | None, typer.Option(help="A public set of the same kind, which decides axes, length scale and radius.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A released sketch, to share its transform and features: both can be merged.")
    ] = None,
    length_scale: Annotated[
        float | None, typer.Option(help="Without a public set: the length scale of the kernel, with --radius.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Without a public set: embeddings are drawn to this norm.")
    ] = None,
    dims: Annotated[int, typer.Option(help="Principal axes of the public set, or random directions.")] = 20,
    projection_seed: Annotated[int, typer.Option(help="Without a public set: seed of the directions.")] = 0,
    delta: Annotated[float, typer.Option(help="δ of the guarantee and of a new ledger's budget.")] = 1e-5,
    budget: Annotated[
        float | None, typer.Option(help="For a new ledger: the ε that all releases of a data set may come to.")
    ] = None,
    adjacency: Annotated[
        str,
        typer.Option(metavar="replace|zero-out", help="Data sets are neighbors if a record is another, or is nothing."),
    ] = "replace",
    bound: Annotated[
        str, typer.Option(metavar="tight|paper", help="Sensitivity √2/m, which is proved, or 2/m as in the paper.")
    ] = "tight",
    classes: Annotated[
        str | None, typer.Option(metavar="NAME,NAME,…", help="A public list of classes, for a sketch by class.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the ledger calls the data set.")] = None,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Release a sketch of private data, and count it in the ledger before any noise is drawn.

    Nothing that decides scales may come from the private data: pass --public, --like, or --length-scale and --radius.
    """
    from finc_eval.embeddings.base import as_embeddings
    from finc_eval.privacy.dp.gaussian_mechanism import Guarantee
    from finc_eval.privacy.reference.release import release as run
    from finc_eval.privacy.reference.sketch import PrivateSketch
    from finc_eval.privacy.reference.transform import PublicTransform
    from finc_eval.report.private_tables import print_private_sketch

    constants = length_scale is not None and radius is not None
    if (length_scale is None) != (radius is None):
        raise FincEvalError("--length-scale and --radius go together: pass both, or neither")
    if sum((public is not None, like is not None, constants)) != 1:
        raise FincEvalError(
            "say where scales come from, as they must not come from the private set: pass one of --public, --like, or "
            "--length-scale with --radius"
        )
    Guarantee.of(epsilon, delta, cast("Adjacency", adjacency))  # refused now, not after an hour of embedding
    _check_room(out)
    with running(device) as how:
        book = opened_ledger(ledger, budget, delta, cast("Adjacency", adjacency))
        sources = {"data": data} | ({} if public is None else {"public": public})
        shared: object = None if like is None else PrivateSketch.load(like)
        made_by = _made_by(shared) if isinstance(shared, PrivateSketch) else None
        sets = embed_all(sources, extractor or made_by, strict, how)
        if public is not None:
            shared = PublicTransform.fitted(sets["public"], dims)
        elif constants:
            width = as_embeddings(sets["data"]).dim
            shared = PublicTransform.constant(
                width,
                min(dims, width),
                length_scale=cast(float, length_scale),
                radius=cast(float, radius),
                seed=projection_seed,
            )
        sketch = run(
            sets["data"],
            public=shared,
            epsilon=epsilon,
            delta=delta,
            ledger=book,
            adjacency=cast("Adjacency", adjacency),
            bound=cast("Bound", bound),
            classes=None if classes is None else [one.strip() for one in classes.split(",")],
            name=name,
            progress=how.progress,
        )
        sketch.save(out)
    print(json.dumps(sketch.header(), indent=1)) if as_json else print_private_sketch(str(out), sketch)


@app.command()
def score(
    gen: Annotated[
        str, typer.Option(help="The generated set: a folder, .zip or .npz of images, or an .h5 of extract.")
    ],
    ref: SketchFile,
    out: Out = None,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Score a generator against a private sketch: an unbiased MMD² with intervals, in all and by degree."""
    from finc_eval.privacy.reference.sketch import PrivateSketch
    from finc_eval.report.private_tables import print_private_scores

    twin = None if out is None else twin_of(out)
    with running(device) as how:
        sketch = PrivateSketch.load(ref)
        sets = embed_all({"gen": gen}, extractor or _made_by(sketch), strict, how)
        result = sketch.score(sets["gen"], name=Path(gen).stem, progress=how.progress)
    if out is not None and twin is not None:
        result.to_html(out)
        result.to_json(twin)
    print(result.to_json()) if as_json else print_private_scores((result,), ())


@app.command()
def compare(
    gens: Annotated[
        list[str], typer.Argument(metavar="NAME=PATH…", help="Two generated sets or more, each with a name.")
    ],
    ref: SketchFile,
    out: Out = None,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Rank generators by one private sketch, with paired differences, in which most of the noise cancels."""
    from finc_eval.privacy.reference.sketch import PrivateSketch
    from finc_eval.report.private_tables import print_private_scores

    twin = None if out is None else twin_of(out)
    named = named_sets(gens)
    with running(device) as how:
        sketch = PrivateSketch.load(ref)
        sets = embed_all(named, extractor or _made_by(sketch), strict, how)
        result = sketch.compare(sets, progress=how.progress)
    if out is not None and twin is not None:
        result.to_html(out)
        result.to_json(twin)
    print(result.to_json()) if as_json else print_private_scores(result.scores, result.pairs)


@app.command()
def merge(
    sketches: Annotated[list[Path], typer.Argument(help="Private sketches of owners who share no record.")],
    out: Annotated[Path, typer.Option(help="The .h5 file to write.")],
) -> None:
    """Merge the sketches of several owners, weighted by their records; each owner's guarantee stays what it is."""
    from finc_eval.privacy.reference.sketch import PrivateSketch
    from finc_eval.report.private_tables import print_private_sketch

    merged = PrivateSketch.merge([PrivateSketch.load(path) for path in sketches])
    merged.save(out)
    print_private_sketch(str(out), merged)


@app.command()
def inspect(
    sketch: Annotated[Path | None, typer.Argument(help="A private sketch.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="A ledger: what each data set has spent, and what is left.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a private sketch says and promises, or what a ledger has counted."""
    from finc_eval.privacy.dp.ledger import Ledger
    from finc_eval.privacy.reference.sketch import PrivateSketch
    from finc_eval.report.private_tables import print_ledger, print_private_sketch

    if (sketch is None) == (ledger is None):
        raise FincEvalError("name a private sketch, or pass --ledger with a ledger, one of the two")
    if ledger is not None:
        book = Ledger(ledger)
        print(json.dumps(book.to_dict(), indent=1)) if as_json else print_ledger(book)
    elif sketch is not None:
        found = PrivateSketch.load(sketch)
        print(json.dumps(found.header(), indent=1)) if as_json else print_private_sketch(str(sketch), found)


def opened_ledger(path: Path, budget: float | None, delta: float, adjacency: Adjacency) -> Ledger:
    """The ledger at `path`, or with a budget a new one."""
    from finc_eval.privacy.dp.ledger import Ledger

    if not path.exists():
        if budget is None:
            raise FincEvalError(f"{path} does not exist: pass --budget, the epsilon that a data set may spend in all")
        return Ledger.create(path, budget, delta, adjacency)
    found = Ledger(path)
    if budget not in (None, found.budget.epsilon):
        raise FincEvalError(f"{path} has a budget of epsilon {found.budget.epsilon:g}, which is set once: leave it out")
    return found


def _check_room(out: Path) -> None:
    """Raise FincEvalError where a sketch could not be written, as what it cost would be lost."""
    from finc_eval.core.storage import disk_errors

    probe = out.with_name(f".{out.name}.room")
    with disk_errors(out, "nothing is spent"):
        if out.exists():
            raise FincEvalError(f"{out} exists, and what it cost would be lost: choose another name for the release")
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(bytes(ROOM))
        finally:
            probe.unlink(missing_ok=True)


def _made_by(sketch: PrivateSketch) -> str | None:
    """The extractor that a sketch needs, to be loaded by its name; None where it does not say."""
    from finc_eval.extractors.catalog import available_cards

    name = sketch.space.split("@")[0]
    return name if name.startswith("timm:") or name in available_cards() else None
