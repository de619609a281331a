"""Fetching weights, from mirrors, then from the card's addresses, into the folder of weights, resumed after a cut.

The package pooch would start a download again.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from finc_eval.core.digest import sha256_of, sha256_of_file
from finc_eval.core.doors import check_regular, create_file, create_text, open_to_change
from finc_eval.core.errors import DataError, RemoteError, UsageError
from finc_eval.core.files.parsed import read_json
from finc_eval.core.memory import readable
from finc_eval.core.places import disk_path
from finc_eval.core.progress import Progress, silent
from finc_eval.core.remote.mirror import LIMIT, limit
from finc_eval.core.remote.store import meter
from finc_eval.core.secrets import redact, redact_word
from finc_eval.core.storage import alone_with
from finc_eval.extractors.card import Card, Weights
from finc_eval.extractors.weights import (
    cached,
    check_weights,
    file_digest,
    objection_to,
    pin_first_use,
    remember_digest,
    weights_folder,
)

MIRROR_VARIABLE = "FINC_EVAL_MIRROR"
OFFLINE_VARIABLES = ("FINC_EVAL_OFFLINE", "HF_HUB_OFFLINE")

SILENCE_SECONDS = 30


LENGTH = re.compile("[0-9]{1,18}")  # length of a file, as a server states it; any other counts as none

SCHEMES = ("https://", "http://", "file://")


def fetch_weights(card: Card, progress: Progress = silent) -> Path:
    """Download the card's weights into the folder of weights, and return the file.

    The right file is not fetched again if it is there, or in the cache of torch hub or of Hugging Face.

    The mirrors in $FINC_EVAL_MIRROR (addresses separated by spaces, to which the file name is added) are tried before
    the card's addresses. A download is hashed before it is moved to its place, and resumed where it was cut. Processes
    that fetch the same file wait for each other.
    """
    weights = card.weights
    if weights is None:
        raise UsageError(f"{card.name} needs no weights")
    if weights.package or Path(weights.file).is_absolute():
        weights_file = check_weights(card)
        return weights_file[0] if weights_file else Path(weights.file)
    if (elsewhere := cached(weights)) is not None:
        return elsewhere
    target = weights_folder() / weights.file
    with alone_with(target, "what has arrived is kept"):
        # The process that held the lock may just have fetched the file.
        if target.is_file() and not objection_to(weights, target, file_digest(target)):
            return target
        part, problems = target.with_name(f"{target.name}.part"), []
        for url in _addresses(card, weights):
            try:
                download(url, part, progress, f"fetch {weights.file}")
            except DataError as error:
                problems.append(str(error))
                continue
            digest = sha256_of_file(part)
            if objection := objection_to(weights, target, digest):
                part.unlink()
            else:
                part.replace(target)
            note_of(part).unlink()
            if objection is None:
                remember_digest(target, digest)
                pin_first_use(weights, target, digest)
                return target
            problems.append(f"the file at {url} {objection}, and was removed")
        raise DataError(
            f"{weights.file} could not be fetched: {'; '.join(problems)}: try again, set {MIRROR_VARIABLE} to a "
            f"mirror, or copy the file to {target.parent}"
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


class _Cut(Exception):
    """Failed connection, or a connection that ended before the file did."""


def download(url: str, part: Path, progress: Progress, stage: str) -> None:
    """Download all of `url` into the file `part`.

    Bytes that an earlier call left there are kept if the server confirms that they belong to the same file (an HTTP
    range, guarded by its ETag or date); otherwise the download starts again. A connection that is cut is resumed as
    long as each attempt brings more bytes. Remove `part` together with the note `note_of(part)`, which says which file
    it belongs to.
    """
    if not url.startswith(SCHEMES):
        raise DataError(f"{url} is not an address to fetch from: it must begin with {', '.join(SCHEMES)}")
    while True:
        before = _size(part)
        try:
            return _attempt(url, part, progress, stage)
        except urllib.error.HTTPError as error:
            words = http.client.responses.get(error.code, "an unknown answer")  # not the server's, which knows the URL
            raise DataError(f"{url} answers {error.code} ({words})") from None
        except _Cut as cut:
            if _size(part) <= before:
                raise DataError(f"{url} cannot be read ({redact(str(cut), about=url)})") from None


def note_of(part: Path) -> Path:
    """Return the path of the note on the bytes of `part`."""
    return part.with_name(f"{part.name}.json")


def _attempt(url: str, part: Path, progress: Progress, stage: str) -> None:
    have, validator, total = _size(part), "", 0
    address = url if (shown := redact_word(url)) == url else f"{shown} {sha256_of(url)}"  # without password, signature
    with suppress(DataError, ValueError, KeyError, TypeError):  # the note is missing or damaged
        note = read_json(note_of(part))
        if note["url"] == address:
            validator, total = str(note["validator"]), int(note["total"])
    if have and have == total:
        return
    answer = _open(url, have, validator)
    if answer is None:
        # The bytes here are more than the file has, so they belong to another file.
        part.unlink()
        _attempt(url, part, progress, stage)
        return
    with answer:
        resumed = (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")
        have = have if resumed else 0
        total = _stated_total(answer, have, shown)
        if total - have > shutil.disk_usage(part.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))
        etag = answer.headers.get("ETag") or ""
        # A weak tag does not promise the same bytes (RFC 9110, 8.8.1).
        validator = etag if etag.startswith('"') else answer.headers.get("Last-Modified") or ""
        with open_to_change(part) if resumed else create_file(part) as file:
            file.seek(have)
            with create_text(note_of(part)) as text:
                json.dump({"url": address, "validator": validator, "total": total}, text)
            try:
                have = _receive(answer, file, have, url, lambda done: progress(stage, done, total))
            except RemoteError:
                if not total:  # it is not known what is missing
                    part.unlink()
                raise
    if total and have != total:
        raise _Cut(f"the connection ended after {have} of {total} bytes")


def _stated_total(answer: http.client.HTTPResponse, have: int, shown: str) -> int:
    """Return the bytes that the whole file has, as its server states them, or 0; DataError for more than may be."""
    length = answer.headers.get("Content-Length") or ""
    total = have + int(length) if LENGTH.fullmatch(length) else 0
    if total > limit():
        raise DataError(f"{shown} has {readable(total)}, above the {readable(limit())} of {LIMIT}: set it to more")
    return total


def _receive(
    answer: http.client.HTTPResponse, file: IO[bytes], have: int, url: str, tell: Callable[[int], None]
) -> int:
    """Write what arrives to a file that has `have` bytes, and return how many it has then."""
    check = meter(url, limit(), f"the {readable(limit())} of {LIMIT}")
    while chunk := _read(answer):
        have += len(chunk)
        check(have)
        file.write(chunk)
        tell(have)
    file.flush()
    os.fsync(file.fileno())
    return have


def _open(url: str, have: int, validator: str) -> http.client.HTTPResponse | None:
    """Request the file, from byte `have` on if a validator guards the range; None if the file has fewer bytes."""
    if url.startswith("file://"):
        with suppress(OSError):  # it is told by the request
            check_regular(disk_path(url))
    headers = {"User-Agent": "finc-eval", "Accept-Encoding": "identity"}
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        request = urllib.request.Request(url, headers=headers)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=SILENCE_SECONDS)
    except urllib.error.HTTPError as error:
        if have and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return None
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise _Cut(_reason(error)) from error
    return answer


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(1 << 20)  # what has arrived, so that a server that crawls is noticed
    except (http.client.HTTPException, OSError) as error:
        raise _Cut(_reason(error)) from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
