"""Requests to object stores and web servers, by fsspec: repeated if that helps, and refused in one sentence."""

from __future__ import annotations

import errno
import http.client
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from finc_eval.core.doors import READ_AT_ONCE, create_file
from finc_eval.core.errors import FincEvalError, RemoteError, UsageError
from finc_eval.core.secrets import WEB, redact, redact_word

DELAYS = (0.5, 1.0, 2.0, 4.0)  # seconds before each repetition of a request, give or take half of them

TAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "Digest", "LastModified", "Last-Modified", "updated")
"""Entries of a description that distinguish one version of an object from the next, the best first."""

SILENCE_SECONDS = 8  # seconds for which a server may send nothing

OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        "config_kwargs": {
            "retries": {"total_max_attempts": 1},
            "connect_timeout": SILENCE_SECONDS,
            "read_timeout": SILENCE_SECONDS,
        }
    }
}
"""Options of a protocol: repeating is done here, for all protocols alike."""

Answer = TypeVar("Answer")


class MissingError(RemoteError):
    """An object that does not exist, in a bucket that does."""


class ChangedError(RemoteError):
    """An object that changed between two requests."""


class Found(NamedTuple):
    """Description of an object."""

    size: int | None  # its bytes; None if the server does not state them
    version: str  # text that another version does not have; "" if the server does not state one
    is_folder: bool = False  # whether it is the beginning of the names of other objects


def describe(url: str) -> Found:
    """Describe the object or folder at a URL."""
    return request(url, "looked up", lambda store: _parse_info(store.info(url)))


def list_below(url: str) -> dict[str, Found]:
    """Describe all objects below a folder, by their names in it."""

    def ask(store: Any) -> dict[str, Found]:
        below = store._strip_protocol(url).rstrip("/") + "/"
        listed = store.find(url, detail=True)
        names = {name.removeprefix(below): _parse_info(info) for name, info in listed.items() if name.startswith(below)}
        if not names:
            store.info(url)  # raises if neither folder nor bucket exists
        return {name: info for name, info in names.items() if name and not info.is_folder}

    return request(url, "listed", ask)


def download(url: str, path: Path, info: Found, size: int) -> Found:
    """Write an object to a path, and describe what was written: another version than `found`, if it changed meanwhile.

    It has `size` bytes, and no more are written, whatever the server sends.

    Raises:
        ChangedError: the object changed meanwhile, and the store does not say which version it sent.
    """

    def ask(store: Any) -> Found:
        from fsspec.asyn import sync
        from fsspec.callbacks import Callback

        check = meter(url, size, f"the {size:,} bytes that its server states: try again later")
        callback = Callback(hooks={"meter": lambda _, arrived, **__: check(arrived)})
        came = info
        if url.startswith(WEB):
            came = sync(store.loop, _get, store, url, path, check)
        elif hasattr(store, "req_kw") and info.version.startswith('"'):
            sync(store.loop, store.set_session)  # once: each copy below would connect by itself
            sync(store.loop, _only(store, info.version)._get_file, url, str(path), callback=callback)
        else:
            store.get_file(url, str(path), callback=callback)
            came = _parse_info(store.info(url))
        if came.version != info.version and not url.startswith(WEB):
            raise ChangedError(f"{redact_word(url)} changed while it was read: run the same command again")
        if (arrived := path.stat().st_size) != size:
            raise OSError(f"{arrived:,} of {size:,} bytes arrived")
        return came

    return request(url, "read", ask)


async def _get(store: Any, url: str, path: Path, check: Callable[[int], None]) -> Found:
    """Write the file of a web server, and describe it by the headers that came with it: fsspec does not show them."""
    session = await store.set_session()
    async with session.get(store.encode_url(url), **store.kwargs) as answer:
        answer.raise_for_status()
        arrived = 0
        with create_file(path, private=True) as file:
            async for chunk in answer.content.iter_chunked(READ_AT_ONCE):
                arrived += len(chunk)
                check(arrived)
                file.write(chunk)
        stated = {tag: answer.headers[tag] for tag in TAGS if tag in answer.headers}
        return _parse_info(stated | {"size": arrived})


def _only(store: Any, version: str) -> Any:
    """Return the same store of s3fs, to whose requests of any part S3 itself answers by this version or none."""
    copy = object.__new__(type(store))  # fsspec would return the store itself as its copy
    vars(copy).update(vars(store), req_kw={**store.req_kw, "IfMatch": version})
    return copy


def meter(url: str, most: int, bound: str) -> Callable[[int], None]:
    """Return a function that is called with the bytes that arrived, and raises if a server sends more or crawls."""
    begun = time.monotonic()

    def check(arrived: int) -> None:
        if arrived > most:
            raise RemoteError(f"{redact_word(url)} has more than {bound}")
        # 10_000: bytes of an object that a server must send in each second, on average.
        if arrived < (time.monotonic() - begun - SILENCE_SECONDS) * 10_000:
            raise RemoteError(
                f"{redact_word(url)} arrives too slowly, {arrived:,} bytes so far: fetch it by another program"
            )

    return check


def upload(path: Path, url: str) -> Found:
    """Write a file to a URL, whole, and describe what is there then."""

    def ask(store: Any) -> Found:
        store.put_file(str(path), url)
        info, size = _parse_info(store.info(url)), path.stat().st_size
        if info.size != size:
            raise OSError(f"{info.size:,} of {size:,} bytes arrived")
        return info

    return request(url, "written", ask)


def delete(url: str) -> None:
    """Remove an object, if it is there."""

    def ask(store: Any) -> None:
        if store.exists(url):
            store.rm_file(url)

    request(url, "removed", ask)


def request(url: str, what: str, ask: Callable[[Any], Answer]) -> Answer:
    """Ask a store about a URL, again after a while where it does not answer as it should."""
    store = _store(url)
    for delay in (*DELAYS, None):
        try:
            return ask(store)
        except (FincEvalError, MemoryError):
            raise
        except Exception as error:  # each store has its own kinds
            # Its text may quote the URL with the password, so that not even a traceback shows it.
            if refusal := _refusal(url, what, _cause(error)):
                raise refusal from None
            if delay is None:
                raise RemoteError(
                    f"{redact_word(url)} could not be {what} in {len(DELAYS) + 1} attempts "
                    f"({_words(_cause(error), url)}): check the network and the service, and run the same command again"
                ) from None
        time.sleep(delay * (0.5 + _jitter.random()))
    raise AssertionError("the last attempt returns or raises")


_jitter = random.Random()  # random numbers of the delays: the caller's own stay reproducible


def _store(url: str) -> Any:
    protocol = url.partition("://")[0]
    try:
        import fsspec

        options = OPTIONS.get(protocol, {})
        if protocol in WEB:
            from aiohttp import ClientTimeout

            timeout = ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)
            # Without packing on the way, a size counts the bytes that arrive.
            options = {"client_kwargs": {"timeout": timeout}, "headers": {"Accept-Encoding": "identity"}}
        return fsspec.filesystem(protocol, use_listings_cache=False, **options)
    except ImportError as error:
        missing = getattr(error, "name", None) or str(error)
        raise UsageError(
            f'{redact_word(url)} needs a package that is not installed ({missing}): pip install "finc-eval[remote]"'
        ) from error
    except Exception as error:  # each store asks for its own variables
        raise RemoteError(
            f"{redact_word(url)} cannot be asked for ({_words(error, url)}): set the variables that its store needs"
        ) from None


def _parse_info(info: dict[str, Any]) -> Found:
    version = next((str(info[tag]) for tag in TAGS if info.get(tag)), "")
    size = info.get("size")
    return Found(None if size is None else int(size), version, info.get("type") == "directory")


def _cause(error: Exception) -> BaseException:
    """Return the error behind one of fsspec, which calls all failures of a web server a missing file."""
    behind = error.__cause__
    return behind if behind is not None and type(behind).__module__.startswith("aiohttp") else error


def _refusal(url: str, what: str, error: BaseException) -> RemoteError | None:
    """Return the error for what does not become better by waiting; None for all else."""
    status, shown = getattr(error, "status", None), redact_word(url)
    stated = getattr(error.__cause__, "response", None) or {}  # of botocore
    if stated.get("ResponseMetadata", {}).get("HTTPStatusCode") == http.HTTPStatus.PRECONDITION_FAILED:
        return ChangedError(f"{shown} changed while it was {what}: run the same command again")
    if isinstance(error, TimeoutError):
        return RemoteError(f"the server of {shown} sent nothing for {SILENCE_SECONDS} seconds: try again later")
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        if "bucket" in str(error).lower() and "exist" in str(error):
            return RemoteError(f"the bucket of {shown} does not exist: check its name, and whose endpoint is asked")
        return MissingError(f"{shown} does not exist: check the bucket and the name")
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return RemoteError(
            f"{shown} could not be {what} without credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE"
        )
    if isinstance(error, PermissionError) or status in (401, 403):
        return RemoteError(f"{shown} may not be {what} ({_words(error, url)}): check your credentials and their rights")
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return RemoteError(f"the disk is full while {shown} is copied: free some space and run the same command again")
    if number in (errno.ENAMETOOLONG, errno.EROFS, errno.ENOTDIR):
        return RemoteError(f"{shown} cannot be copied to the local disk ({_words(error, url)}): choose another folder")
    return None


def _words(error: BaseException, url: str) -> str:
    """Return what an error says, without what is secret in its URL; of a web server, the meaning of its answer."""
    status = getattr(error, "status", None)
    if isinstance(status, int):  # the words beside it are the server's, which knows the secret
        return f"{status} {http.client.responses.get(status, 'an unknown answer')}"
    said = " ".join(str(getattr(error, "strerror", None) or error).split())
    return redact(said, about=url) or type(error).__name__
