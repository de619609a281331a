"""The options that verbs share, and how their texts are read."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR

if TYPE_CHECKING:
    from finc_eval.comparison.inputs import Kernel, Sketching
    from finc_eval.comparison.method import MethodName
    from finc_eval.embeddings.cache import EmbeddingCache
    from finc_eval.numerics.precision import Precision

Extractor = Annotated[
    str | None,
    typer.Option(
        help=f"What turns samples into embeddings: a name of finc-eval extractors list, timm:NAME, or the path of your "
        f"own card ending in .toml. When left out, that of an .h5 file given beside, or else {DEFAULT_EXTRACTOR}."
    ),
]
Count = Annotated[
    int | None, typer.Option("--n", help="Take only so many samples of the set, a seeded subset; fewer are an error.")
]
SubsetSeed = Annotated[int, typer.Option("--subset-seed", help="Seed of the subset that --n takes.")]
NetworkPrecisionName = Annotated[
    str,
    typer.Option(
        metavar="float32|bfloat16|float16",
        help="Arithmetic of the network: float32 is exact everywhere, the others are faster on GPUs.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Unreadable samples are an error, not a note.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 …; CUDA if there is one when left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout instead of a table.")]
Sigma = Annotated[
    float | None,
    typer.Option(help="Bandwidth of the Gaussian kernel; half the reference's median distance when left out."),
]
KernelName = Annotated[
    str,
    typer.Option(
        metavar="gaussian|cosine",
        help="gaussian tells kinds apart by their distance, at the scale of sigma; cosine by their angle alone, and is "
        "exact, with neither bandwidth nor frequencies.",
    ),
]
Features = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Number of random frequencies: more is more exact, and slower. auto takes 1000, 2000 or 4000, the first "
        "whose measured error of the kernel is within 0.01.",
    ),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        metavar="float32|tf32|bfloat16|float64",
        help="How features enter the covariances: tf32 and bfloat16 are faster on GPUs and coarser, float64 is slower.",
    ),
]
Gen = Annotated[
    str, typer.Option(help="The generated set: a folder, .zip or .npz of images, or an .h5 of extract or sketch.")
]
Ref = Annotated[str, typer.Option(help="The reference set, likewise.")]
Modes = Annotated[int, typer.Option(help="How many modes of each role at most.")]
Raw = Annotated[bool, typer.Option("--raw", help="The paper's raw eigenvectors, without the varimax rotation.")]
Novel = Annotated[
    float | None,
    typer.Option(help="Share of a set's samples that rarity and fld find novel and cluster; 0.3 when left out."),
]
Neighbors = Annotated[
    int | None, typer.Option(help="To which neighbor the balls of rarity's manifold reach; 3 when left out.")
]
Seed = Annotated[int, typer.Option(help="Seed of the random frequencies.")]


def sketching_options(
    kernel: str, sigma: float | None, features: int | Literal["auto"], seed: int, precision: str, device: str | None
) -> Sketching:
    """The options of a feature map, checked before any work is done."""
    from finc_eval.comparison.inputs import Sketching

    return Sketching(cast("Kernel", kernel), sigma, features, seed, cast("Precision", precision), device=device)


def feature_count(text: str) -> int | Literal["auto"]:
    """The number in "2000", or "auto"."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise FincEvalError(f"--features must be a whole number or auto, got {text!r}") from None


def listed_numbers(text: str) -> list[float]:
    """The numbers in "1,2,5"."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < value < inf for value in found):
        raise FincEvalError(f"--values must be positive numbers separated by commas, such as 1,2,5, got {text!r}")
    return found


def listed_methods(text: str) -> list[MethodName]:
    """The methods in "finc,ken"."""
    from finc_eval.comparison.method import methods_of

    return [method.name for method in methods_of(text.split(","))]


def named_sets(arguments: list[str]) -> dict[str, str]:
    """Sets by name, from NAME=PATH."""
    sets: dict[str, str] = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not name or not path:
            raise FincEvalError(f"{argument!r} is not of the form NAME=PATH: write for example mine=samples/")
        if name in sets:
            raise FincEvalError(f"two models are called {name!r}: give each a name of its own")
        sets[name] = path
    return sets


def twin_of(page: Path) -> Path:
    """Where the JSON twin of a page lies."""
    from finc_eval.core.storage import kind_of

    twin = page.with_suffix(".json")
    if twin == page:
        raise FincEvalError(f"{page} is the name of the JSON twin: call the page {page.stem}.html")
    if kind_of(page) is not None:
        raise FincEvalError(f"{page} is a finc-eval file, no page: it is not overwritten, choose another name")
    return twin


def card_again(made_by: str) -> str:
    """The extractor behind embeddings, to be loaded again by its name.

    Raises:
        FincEvalError: it was a card of the user's own, whose path nobody knows.
    """
    from finc_eval.extractors.catalog import available_cards

    if made_by.startswith("timm:") or made_by in available_cards():
        return made_by
    raise FincEvalError(f"the embeddings were made with a card of your own, {made_by}: pass its path as --extractor")


def all_embedded(
    sources: dict[str, str], extractor: str | None, strict: bool, device: str | None, progress: Progress
) -> dict[str, EmbeddingCache | str]:
    """Every set as a cache, or as the path of the embeddings or the sketch that it is already."""
    from finc_eval.loading import extractor_of

    made = next(filter(None, map(extractor_of, sources.values())), None)
    chosen = extractor or made or DEFAULT_EXTRACTOR
    if made and not extractor and not all(map(_is_embedded, sources.values())):
        chosen = card_again(made)
    return {label: embedded(label, source, chosen, strict, device, progress) for label, source in sources.items()}


def embedded(
    label: str, source: str, extractor: str, strict: bool, device: str | None, progress: Progress
) -> EmbeddingCache | str:
    """The path of embeddings or a sketch as it is; anything else is embedded first."""
    from finc_eval.core.run import Run
    from finc_eval.embeddings.extract import extract

    if _is_embedded(source):
        return source

    def labeled(stage: str, done: int, total: int) -> None:
        progress(f"{stage} {label}", done, total)

    return extract(source, extractor, strict=strict, run=Run(device, progress=labeled))


def _is_embedded(source: str) -> bool:
    """Whether this is a file of embeddings or a sketch, damaged ones included: they are to be said to be damaged."""
    import h5py

    return Path(source).is_file() and bool(h5py.is_hdf5(source))
