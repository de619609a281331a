"""Protocol cards: the dataclasses that a card's TOML file fills, so its format, and how cards are found and read."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, PositiveInt

from finc_eval.core.doors import read_text, with_home
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.parsed import parse_toml
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE
from finc_eval.core.record import Record, read_table
from finc_eval.extractors.card import SHA256_DIGITS, Card, Preprocessing
from finc_eval.extractors.catalog import card_file, load_card

PROTOCOLS = "finc_eval.measures.protocols"  # package of the cards that come with finc-eval

ENDING = ".toml"

Texts = tuple[str, ...]


@dataclass(frozen=True)
class ReferenceSet(Record):
    """The reference of a protocol.

    Attributes:
        description: which samples, and how they are prepared.
        license: license of the samples or of their statistics, as far as it is known.
        n: number of samples; None if the published code does not state it.
        digest: SHA-256 (hex) of the file of statistics, or the digest of the samples' manifest. None as long as nobody
            has computed it: then the first use pins it, and signatures say that the reference is not verified.
        urls: addresses of the reference.
    """

    description: str
    license: str
    n: PositiveInt | None = None
    digest: str | None = None
    urls: Texts = ()


@dataclass(frozen=True)
class Publication(Record):
    """Origin of a protocol, and what was verified of it.

    Attributes:
        code: repository, file and commit of the published code that was read.
        numbers: numbers that were published by this protocol, each with its source.
        verified: what was read in that code.
        unverified: what was not verified, in sentences without a full stop.
    """

    code: Texts
    numbers: Texts
    verified: Texts
    unverified: Texts


@dataclass(frozen=True)
class Protocol(Record):
    """One protocol.

    Attributes:
        name: name of the protocol.
        description: one or two sentences.
        metric: name of the metric.
        extractor: name of an extractor, or the path of its card, relative to this card.
        samples: number of generated samples.
        preprocessing: preprocessing of the extractor, which must be the one of its card.
        reference: the reference.
        source: the published code.
        size: (height, width) in pixels of the samples of both sets, before the extractor resizes them; None for any.
        parameters: parameters of the metric that differ from its defaults.
    """

    name: str
    description: str
    metric: str
    extractor: str
    samples: PositiveInt
    preprocessing: Preprocessing
    reference: ReferenceSet
    source: Publication
    size: tuple[PositiveInt, PositiveInt] | None = None
    parameters: dict[str, Annotated[int, Field(strict=True)] | FiniteFloat] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedProtocol:
    """A protocol with the card of its extractor."""

    card: Protocol
    extractor: Card
    place: str  # the name of a protocol that comes with finc-eval, or the absolute path of another card
    given: str | None  # path of the extractor's card; None if finc-eval knows it by its name


def available_protocols() -> list[str]:
    """Return the names of the protocols that come with finc-eval, sorted.

    Example:
        >>> from finc_eval.measures.protocols.card import available_protocols
        >>> available_protocols()[0]
        'cifar10-edm-50k'
    """
    names = (file.name for file in resources.files(PROTOCOLS).iterdir())
    return sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING))


def load_protocol(name_or_path: str | Path) -> LoadedProtocol:
    """Read and check a protocol card.

    Args:
        name_or_path: name of a protocol that comes with finc-eval, or the path of a .toml file.

    Raises:
        UsageError: the name is unknown.
        DataError: the file cannot be read, or is not a valid card; the message names the key.

    Example:
        >>> from finc_eval.measures.protocols.card import load_protocol
        >>> protocol = load_protocol("imagenet256-adm-50k").card
        >>> protocol.metric, protocol.extractor, protocol.samples, protocol.reference.digest
        ('fid', 'inception-fid', 50000, None)
    """
    name = str(name_or_path)
    if not name.endswith(ENDING):
        known = available_protocols()
        if name not in known:
            raise UsageError(
                f'unknown protocol "{name}"{did_you_mean(name, known)}: choose one of {", ".join(known)}; or pass the '
                "path of a card ending in .toml"
            )
        return _read((resources.files(PROTOCOLS) / f"{name}{ENDING}").read_text(encoding="utf-8"), name, Path())
    try:
        path = with_home(name)
        text = read_text(path, copies=BYTES_PER_TEXT_BYTE)
    except (DataError, OSError, ValueError) as error:  # no such user, no such file, not UTF-8
        raise DataError(f"the protocol {name} cannot be read ({error}): check the path") from error
    return _read(text, str(path.absolute()), path.absolute().parent)


def _read(text: str, place: str, folder: Path) -> LoadedProtocol:
    where = f"protocol {place}"
    card = read_table(Protocol, parse_toml(text, where), where)
    given = None if card_file(card.extractor) is None else str(folder / with_home(card.extractor))
    extractor = load_card(given or card.extractor)
    for key, own in asdict(extractor.preprocessing).items():
        if (value := getattr(card.preprocessing, key)) != own:
            raise DataError(
                f'{where}: "preprocessing.{key}" must be {own} as in the card of {extractor.name}, got {value}: name '
                "another extractor"
            )
    digest = card.reference.digest
    if digest is not None and not re.fullmatch(f"[0-9a-f]{{{SHA256_DIGITS}}}", digest):
        raise DataError(
            f'{where}: "reference.digest" must be {SHA256_DIGITS} lower-case hex digits, got {digest!r:.100}'
        )
    return LoadedProtocol(card, extractor, place, given)
