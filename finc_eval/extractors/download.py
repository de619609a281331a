"""One file from one address, taken up again where a cut connection left it."""

from __future__ import annotations

import errno
import http.client
import json
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress

SECONDS_OF_SILENCE = 30
CHUNK = 1 << 20
SCHEMES = ("https://", "http://", "file://")


class _Cut(Exception):
    """The connection failed, or ended before the file did."""


def download(url: str, part: Path, progress: Progress, stage: str) -> None:
    """Bring the whole of `url` into the file `part`.

    Bytes that an earlier call left there are kept where the server vouches that they are of the same file (an HTTP
    range, guarded by its ETag or date); otherwise the file starts afresh. A connection that is cut is taken up again
    so long as each attempt brings something.

    Args:
        url: an https, http or file address.
        part: where the bytes go; beside it lies a note on what they are of, `note_of(part)`: remove both together.
        progress: told `stage`, the bytes that are here and their total (0 where the server does not say).
        stage: what the progress is called.

    Raises:
        FincEvalError: the address cannot be had, with the reason.
        OSError: `part` cannot be written.
    """
    if not url.startswith(SCHEMES):
        raise FincEvalError(f"{url} is no address to fetch from: it must begin with {', '.join(SCHEMES)}")
    while True:
        before = _size(part)
        try:
            return _attempt(url, part, progress, stage)
        except urllib.error.HTTPError as error:
            raise FincEvalError(f"{url} answers {error.code} ({error.reason})") from error
        except _Cut as cut:
            if _size(part) <= before:
                raise FincEvalError(f"{url} cannot be read ({cut})") from cut


def note_of(part: Path) -> Path:
    """Return where the note on the bytes of `part` lies."""
    return part.with_name(f"{part.name}.json")


def _attempt(url: str, part: Path, progress: Progress, stage: str) -> None:
    have, (validator, total) = _size(part), _noted(part, url)
    if have and have == total:
        return
    answer = _opened(url, have, validator)
    if answer is None:
        # What is here is longer than the file, so it is of something else.
        part.unlink()
        _attempt(url, part, progress, stage)
        return
    with answer:
        resumed = (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")
        have = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else 0
        if total - have > shutil.disk_usage(part.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))
        with part.open("ab" if resumed else "wb") as file:
            _note(part, url, answer.headers, total)
            while chunk := _read(answer):
                file.write(chunk)
                have += len(chunk)
                progress(stage, have, total)
            file.flush()
            os.fsync(file.fileno())
    if total and have != total:
        raise _Cut(f"the connection ended after {have} of {total} bytes")


def _opened(url: str, have: int, validator: str) -> http.client.HTTPResponse | None:
    """Ask for the file, from byte `have` on where a validator guards it; None where it has fewer bytes."""
    headers = {"User-Agent": "finc-eval", "Accept-Encoding": "identity"}
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        request = urllib.request.Request(url, headers=headers)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if have and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return None
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise _Cut(_reason(error)) from error
    return answer


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise _Cut(_reason(error)) from error


def _note(part: Path, url: str, headers: http.client.HTTPMessage, total: int) -> None:
    etag = headers.get("ETag") or ""
    # A weak tag does not promise the same bytes (RFC 9110, 8.8.1).
    validator = etag if etag.startswith('"') else headers.get("Last-Modified") or ""
    note_of(part).write_text(json.dumps({"url": url, "validator": validator, "total": total}), encoding="utf-8")


def _noted(part: Path, url: str) -> tuple[str, int]:
    """Return what identifies the file that the bytes of `part` are of, and its size; nothing unless it is of `url`."""
    try:
        note = json.loads(note_of(part).read_text(encoding="utf-8"))
        return (str(note["validator"]), int(note["total"])) if note["url"] == url else ("", 0)
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
