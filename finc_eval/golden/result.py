"""`Night`: the verdict on a night of golden pictures, and `GoldenPair`, a pair of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import computed_field

from finc_eval.core.errors import DataError
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.serialize import Document, Shown
from finc_eval.gallery.thumbnails import Thumbnail

Light = Literal["green", "amber", "red"]

EXIT_CODES: dict[Light, int] = {"green": 0, "red": 1, "amber": 2}  # exit code of each verdict


@dataclass(frozen=True)
class GoldenPair(Record, Shown):
    """A golden picture and the picture that was made tonight.

    Attributes:
        id: id of the golden picture.
        verdict: "green", "amber" for what a second night must confirm, or "red".
        shows: what the picture of tonight shows: "same", "unclear", or what is red by itself, such as "another
            picture", "the picture of p03", "mirrored" or "black".
        sentence: the finding in words.
        numbers: measures, by name: "psnr" in dB, "ssim", "structure", "thumb", the correlation of thumbnails; how much
            the light and red less blue changed, in steps of 1/255; and "detail", the logarithm of how much finer it is.
            Empty for pictures that could not be compared.
        p: rank of tonight among the nights before, as a p-value; None without any.
        known: nights before that count as usual.
    """

    id: str
    verdict: Light
    shows: str
    sentence: str
    numbers: dict[str, float]
    p: float | None
    known: int

    def _summary(self) -> str:
        return f"{self.id}: {self.verdict}, {self.sentence}"


@dataclass(frozen=True)
class SeenNight(Record):
    """A night of the history that a page draws.

    Attributes:
        night: time of the night.
        machine: machine that made it; None if it is not known.
        verdict: verdict of the night.
        psnr: PSNR of each pair, by id, in dB.
    """

    night: str
    machine: str | None
    verdict: Light
    psnr: dict[str, float]


@dataclass(frozen=True, eq=False)
class Night(Document):
    """The verdict on a night of golden pictures.

    Attributes:
        verdict: "red" if something changed for the worse, "amber" if a second night must tell, "green" else.
        pairs: the pairs, in the order of the golden pictures.
        night: time of the night, in UTC.
        machine: machine that made the pictures; None if it is not known.
        told: what was found, in a sentence or two by key.
        history: the nights so far, at most a year of them, tonight last.
        pictures: small pictures of each pair by id: the golden one, and that of tonight.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> golden = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
        >>> floor = fe.Golden("floor.jsonl")
        >>> floor.add(golden, golden).verdict
        'green'
        >>> floor.add(golden[:, :, ::-1], golden).sentence
        'Red: all pictures are mirrored.'
    """

    type_name: ClassVar[str] = "night"
    page: ClassVar[str] = "finc_eval.golden.page"

    verdict: Light
    pairs: tuple[GoldenPair, ...]
    night: str
    machine: str | None
    told: dict[str, str]
    history: tuple[SeenNight, ...]
    pictures: Annotated[dict[str, tuple[Thumbnail, ...]], *NOT_IN_JSON] = field(
        default_factory=dict, kw_only=True, repr=False
    )

    def __post_init__(self) -> None:
        if "verdict" not in self.told:
            raise DataError("it has no sentence on its verdict")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """The finding in a few plain sentences, the verdict first."""
        return " ".join(self.told.values())

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        return EXIT_CODES[self.verdict]

    def _frame_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "name": pair.id,
                "verdict": pair.verdict,
                "shows": pair.shows,
                "by": "psnr",
                "value": pair.numbers.get("psnr"),
                **pair.numbers,
                "p": pair.p,
                "known": pair.known,
            }
            for pair in self.pairs
        ]

    def _lines(self) -> list[str]:
        return [pair._summary() for pair in self.pairs]

    def _summary(self) -> str:
        return f"{self.verdict}, {len(self.pairs)} pairs"
