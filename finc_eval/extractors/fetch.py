"""Fetching weights: from mirrors, then from the card's addresses, into the folder of weights."""

from __future__ import annotations

import os
from pathlib import Path

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.locks import after_other_writers_of
from finc_eval.core.progress import Progress, silent
from finc_eval.core.storage import disk_errors
from finc_eval.extractors.card import Card, Weights
from finc_eval.extractors.download import download, note_of
from finc_eval.extractors.weights import check_weights, objection_to, pin_first_use
from finc_eval.extractors.weights_folder import file_digest, hash_file, remember_digest, weights_folder

MIRROR_VARIABLE = "FINC_EVAL_MIRROR"
OFFLINE_VARIABLES = ("FINC_EVAL_OFFLINE", "HF_HUB_OFFLINE")


def fetch_weights(card: Card, progress: Progress = silent) -> Path:
    """Download the card's weights into the folder of weights, unless the right file is there, and return the file.

    The mirrors in $FINC_EVAL_MIRROR (addresses separated by spaces, to which the file name is added) are tried before
    the card's addresses. A download is hashed before it is moved to its place, and resumed where it was cut. Processes
    that fetch the same file wait for each other.
    """
    weights = card.weights
    if weights is None:
        raise UsageError(f"{card.name} needs no weights")
    if weights.package or Path(weights.file).is_absolute():
        found = check_weights(card)
        return found[0] if found else Path(weights.file)
    target = weights_folder() / weights.file
    with disk_errors(target, kept="what has arrived is kept"), after_other_writers_of(target):
        # The process that held the lock may just have fetched the file.
        if not target.is_file() or objection_to(weights, target, file_digest(target)):
            _fetch_to(target, card, weights, progress)
    return target


def _fetch_to(target: Path, card: Card, weights: Weights, progress: Progress) -> None:
    part, problems = target.with_name(f"{target.name}.part"), []
    for url in _addresses(card, weights):
        try:
            download(url, part, progress, f"fetch {weights.file}")
        except DataError as error:
            problems.append(str(error))
            continue
        digest = hash_file(part)
        if objection := objection_to(weights, target, digest):
            part.unlink()
            note_of(part).unlink()
            problems.append(f"the file at {url} {objection}, and was removed")
            continue
        part.replace(target)
        note_of(part).unlink()
        remember_digest(target, digest)
        pin_first_use(weights, target, digest)
        return
    raise DataError(
        f"{weights.file} could not be fetched: {'; '.join(problems)}: try again, set {MIRROR_VARIABLE} to a mirror, "
        f"or copy the file to {target.parent}"
    )


def _addresses(card: Card, weights: Weights) -> list[str]:
    """Return the addresses to try, in order."""
    mirrors = [f"{prefix.rstrip('/')}/{weights.file}" for prefix in os.environ.get(MIRROR_VARIABLE, "").split()]
    addresses = [*mirrors, *weights.urls]
    if not addresses:
        raise DataError(
            f"the card {card.name} has no address for {weights.file}: copy the file to {weights_folder()}, "
            f"or set {MIRROR_VARIABLE} to a mirror that has it"
        )
    offline = next(
        (name for name in OFFLINE_VARIABLES if (os.environ.get(name, "0").lower() not in ("", "0", "false"))), None
    )
    local = [url for url in addresses if url.startswith("file://")]
    if offline and not local:
        raise UsageError(
            f"{weights.file} is not fetched because {offline} is set: unset it, copy the file to {weights_folder()}, "
            f"or set {MIRROR_VARIABLE} to a file:// address"
        )
    return local if offline else addresses
