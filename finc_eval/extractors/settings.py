"""`Extraction`: how samples are embedded if a function needs embeddings and gets samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, get_args

from finc_eval.core.errors import UsageError, check_choice, check_count
from finc_eval.core.record import OWNERS, Configured, MayNameFile, about, suffixed
from finc_eval.extractors.card import BY_FRAMES, NetworkPrecision
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, card_file, load_card, not_an_extractor
from finc_eval.extractors.weights import check_weights
from finc_eval.samples.reading import STORED, Color, Reading
from finc_eval.samples.shards import BY_RANK, parse_shard

EXTRACTOR = (
    "what turns samples into embeddings: a name of finc-eval doctor extractors list, timm:NAME, or the path of a "
    "card ending in .toml or of a file of weights; default: the extractor of a given .h5 file, or else "
    f"{DEFAULT_EXTRACTOR}"
)
"""Help text of the extractor."""


@dataclass(frozen=True)
class Extraction(Configured):
    """Embedding of samples. It says by which extractor, and which samples of a set are taken.

    Every function that compares sets takes it as `extractor=`, or the name of an extractor alone. It is used for
    sets that are not embedded yet.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.Extraction("dinov2-vits14", n=1000).seed
        0
    """

    table: ClassVar[str] = "extract"

    extractor: Annotated[str | None, about(EXTRACTOR), MayNameFile(card_file)] = None
    n: Annotated[int | None, about("take only N samples of each set, a seeded subset; a smaller set is an error")] = (
        None
    )
    seed: Annotated[int, about("random seed of the subset that n takes")] = 0
    strict: Annotated[bool, about("fail if a sample cannot be read, instead of noting it")] = False
    precision: Annotated[
        NetworkPrecision, about("arithmetic of the network: float32 is exact everywhere, the others are faster on GPUs")
    ] = "float32"
    fps: Annotated[
        float | None, about("frames a second to which videos are resampled first, by the times of their frames")
    ] = None
    shard: Annotated[
        str | None,
        about(
            "take only part i of N of the set, such as 2/8, counted from 1: each of N processes or machines takes "
            "another; the name of the file gets both numbers, and finc-eval extract merge joins the files; "
            "rank: by the number that torchrun gives this process"
        ),
    ] = None

    include: Annotated[
        tuple[str, ...], about("take only files whose names match these patterns, such as *_fake.png or b/**")
    ] = ()
    exclude: Annotated[tuple[str, ...], about("leave out files whose names match these patterns")] = ()
    image_key: Annotated[
        str | None,
        about(
            "name of the images if a sample has several things by name: a column, an array, or what follows the "
            "first dot in names of tar members (left.png)"
        ),
    ] = None
    range: Annotated[
        tuple[float, float] | None,
        about(
            "the numbers that are black and white in arrays and in image files of more than 8 bits, such as -1,1; "
            "default: 0,255, and other types than uint8 are refused"
        ),
    ] = None
    prompts: Annotated[
        str | None,
        about(
            "column of the prompts, or their file: .csv or .jsonl with the names of samples; or .txt, .tsv, .csv or "
            ".jsonl, whose line k is for samples whose name, or folder, begins with k; default: what is found with them"
        ),
        MayNameFile(suffixed),
    ] = None
    color: Annotated[
        Color,
        about(
            "stored: pixels as image files have them, as FID tools take them; srgb: converted by the color profile, "
            "gamma or CICP that a file has"
        ),
    ] = STORED

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, get_args(NetworkPrecision))
        if self.shard not in (None, BY_RANK):
            parse_shard(self.shard)
        self._store(
            n=None if self.n is None else check_count("n", self.n), seed=check_count("seed", self.seed, least=0)
        )
        reading = self.reading
        self._store(include=reading.include, exclude=reading.exclude, range=reading.range)

    @property
    def reading(self) -> Reading:
        """Files and values that are samples, and the range of numbers."""
        given = (self.include, self.exclude, self.image_key, self.range, self.prompts, self.color)
        return Reading(*given)


OWNERS[Extraction] = "extraction, not of a result", "extractor=fe.Extraction({0}), or embed first by fe.extract(…, {0})"

AnyExtractor = Extraction | str | Path | None
"""The forms in which a function takes an extractor: its name, the path of a card, or `Extraction`."""

Spaced = list[str] | list[Path] | list[Extraction] | tuple[AnyExtractor, ...]  # extractors of several spaces


def extraction_of(extractor: AnyExtractor) -> Extraction:
    """Return how samples are embedded, from any form of `extractor=`."""
    if isinstance(extractor, Extraction):
        return extractor
    if not isinstance(extractor, str | Path | None):
        raise not_an_extractor(extractor, "a name, the path of a card, or fe.Extraction(…)")
    return Extraction(None if extractor is None else str(extractor))


def extractions_by_space(extractors: Sequence[AnyExtractor]) -> dict[str, Extraction]:
    """Return how to embed in each of several spaces: beside an extractor of clips, one of images embeds frames."""
    named = [how for how in map(extraction_of, extractors) if how.extractor is not None]
    cards = [load_card(str(how.extractor)) for how in named]
    for card in cards:
        check_weights(card)
    of_clips = any(card.clip is not None for card in cards)
    by_frames = [BY_FRAMES if of_clips and card.clip is None else "" for card in cards]
    names = [card.name + frames for card, frames in zip(cards, by_frames, strict=True)]
    check_spaces(names)
    return {
        name: replace(how, extractor=f"{how.extractor}{frames}")
        for name, how, frames in zip(names, named, by_frames, strict=True)
    }


def check_spaces(names: Sequence[object]) -> None:
    """Raise a `UsageError` unless there are two spaces or more, each of its own name."""
    if len({*names}) < max(2, len(names)):
        texts = ", ".join(map(str, names)) or "of no extractor"
        raise UsageError(f"got the spaces {texts}: name two extractors or more, once")
