"""Names of places: paths and URLs, and the folders that finc-eval keeps for a user.

What is read behind a URL has a copy in the folder `in` of the remote files, and what is written is made in `out`. Their
paths keep the parts of the URL, so that a message or a result can name it again. Folders are found when they are
needed: a container's user may have no home.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from finc_eval.core.doors import known_home, with_home, without_links
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.secrets import STORES, URL, WEB, redact_word

CACHE = "FINC_EVAL_CACHE"  # environment variable with the folder of caches

VARIABLES = {"embeddings": CACHE, "weights": "FINC_EVAL_WEIGHTS", "remote": "FINC_EVAL_REMOTE"}
"""Environment variables that name another place for a folder of the user's caches, by its name."""

HOME = "~/.cache/finc-eval"


def user_folder(name: str) -> Path:
    """Return a folder of the user's caches: that of its variable, or else `name` in ~/.cache/finc-eval.

    For a user without a home, it lies in $XDG_CACHE_HOME/finc-eval or $FINC_EVAL_CACHE.

    Raises:
        DataError: the user has no home, and no variable names a place.
    """
    if given := os.environ.get(VARIABLES[name]):
        return with_home(given)
    if (folder := known_home(Path(HOME, name))) is not None:
        return folder
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "finc-eval" / name
    if given := os.environ.get(CACHE):
        return Path(given) / name
    raise DataError(
        f"this user has no home (HOME is not set, and the system does not know the user), and a file belongs there: "
        f"set {CACHE} to a folder that can be written"
    )


def known_folder(name: str) -> Path | None:
    """Return what `user_folder` does; None for a user without any place, who has nothing there."""
    try:
        return user_folder(name)
    except DataError:
        return None


def advice_on(path: Path) -> str:
    """Return what to do if a path cannot be written: for a folder of the user's caches, the variable that moves it."""
    with suppress(DataError, ValueError):
        name = path.relative_to(with_home(HOME)).parts[0]
        return f"set {VARIABLES[name]} to a folder that can be written"
    return "check the folder, or choose another"


PROTOCOLS = (*STORES, *WEB)  # protocols that are read over the network; stores are written as well

VERSION = re.compile(r"~[0-9a-f]{16}")


def url_of(path: object) -> str | None:
    """Return a path as a URL, or None for a path of the local disk."""
    match = URL.fullmatch(str(path)) if isinstance(path, str | Path) else None
    if match is None or match[1].lower() == "file":
        return None
    protocol = match[1].lower()
    if protocol not in PROTOCOLS:
        known = ", ".join(f"{protocol}://" for protocol in ("file", *PROTOCOLS))
        raise UsageError(
            f"{redact_word(str(path))} has the unknown protocol {protocol}: pass a path, or a URL that begins with "
            f"{known}"
        )
    rest = match[2].lstrip("/")
    if protocol in WEB:
        return f"{protocol}://{rest}"
    url = f"{protocol}://{rest.rstrip('/')}"
    if redact_word(url) != url:
        raise UsageError(
            f"{redact_word(url)} was given with a user, password or signature, which object stores take from the "
            "environment: leave them out"
        )
    return url


def is_url(path: object) -> bool:
    """Return whether something is the URL of a file or folder on another machine."""
    return url_of(path) is not None


def is_place(source: str) -> bool:
    """Return whether the source of a set is a place, an absolute path or a URL, and not the memory of a process."""
    return Path(source).is_absolute() or is_url(source)


def shown_place(source: str) -> str:
    """Return a place as what is passed on may show it: only the name of what lies outside the working folder."""
    if not is_place(source) or is_url(source):
        return source
    path, here = Path(source), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name


def _is_too_long(name: str) -> bool:
    return len(name.encode("utf-8", "surrogatepass")) > 255  # bytes of a name on Linux and macOS


def disk_path(path: str | Path) -> Path:
    """Return the path of a place on the local disk, which may be given as file:///path, or begin with "~/".

    A name alone, such as "~table.csv", is that of a file.

    Raises:
        UsageError: no file can have this path: it has a NUL, or a name of more than 255 bytes.
    """
    if "\0" in str(path) or any(_is_too_long(name) for name in str(path).split("/")):
        raise UsageError(f"{str(path)!r:.60} is not a path that can be looked up: a name is too long, or holds a NUL")
    match = URL.fullmatch(str(path))
    if match is None or match[1].lower() != "file":
        return with_home(path) if Path(path).parts[1:] else Path(path)
    parts = urlsplit(f"file:/{match[2]}")
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{path} names the machine {parts.hostname}: a local file is file:///path, with three slashes")
    return Path(url2pathname(parts.path))


def copy_path(url: str, version: str) -> Path:
    """Return the place of the copy of one version of an object."""
    *folders, name = _parts(url)
    digest = blake2b(f"{url}\0{version}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return root().joinpath("in", *folders, f"~{digest}", name)


def out_path(path: str | Path) -> Path:
    """Return the path on the local disk at which a file is written that belongs to a URL or path."""
    url = url_of(path)
    if url is None:
        return disk_path(path)
    if url.startswith(WEB):
        raise UsageError(
            f"{redact_word(url)} can only be read: name an output in an object store, such as s3://bucket/file"
        )
    return root().joinpath("out", *_parts(url))


def target_of(path: Path) -> str | None:
    """Return the URL that a file below `out` is uploaded to; None for any other path."""
    return _url_in(path, "out")


def is_mirrored(path: Path) -> bool:
    """Return whether a path lies in the folder of the local copies."""
    return (home := _known_root()) is not None and path.is_relative_to(home)


def is_copy(path: Path) -> bool:
    """Return whether a path is one of a copy, which nothing else may write."""
    return _url_in(path, "in") is not None


def place_of(path: str | Path) -> str:
    """Return the absolute path of a file or folder; for a copy, or a file to be uploaded, its URL."""
    if url := url_of(path):
        return redact_word(url)
    whole = without_links(with_home(disk_path(path)))
    return _url_in(whole, "in") or _url_in(whole, "out") or str(whole)


def with_urls(text: str) -> str:
    """Return a text in which the places of copies are their URLs."""
    home = _known_root()
    if home is None or str(home) not in text:
        return text
    places = re.compile(re.escape(str(home)) + r"/(?:in|out)/([a-z0-9]+)/([^\s'\"]+)")
    return places.sub(lambda match: _join([match[1], *match[2].split("/")]), text)


def root() -> Path:
    """Return the folder of the local copies: $FINC_EVAL_REMOTE, or ~/.cache/finc-eval/remote."""
    return _resolve(user_folder("remote"))


def _known_root() -> Path | None:
    """Return the folder of the local copies; None for a user without a home, who has no copies."""
    folder = known_folder("remote")
    return None if folder is None else _resolve(folder)


@lru_cache
def _resolve(folder: Path) -> Path:
    return folder.resolve()


def _url_in(path: Path, side: str) -> str | None:
    if (known := _known_root()) is None:
        return None
    home = known / side
    return _join(path.relative_to(home).parts) if path.is_relative_to(home) and path != home else None


def _parts(url: str) -> list[str]:
    """Return the names of folders and file for a URL. Each is harmless, whatever the name of the object is."""
    protocol, _, rest = redact_word(url).partition("://")
    return [protocol, *(_harmless(part) for part in rest.rstrip("/").split("/"))]


def _harmless(part: str) -> str:
    part = part.replace("%", "%25").replace("\\", "%5C")
    if part.strip(".") == "" or VERSION.fullmatch(part):
        return f"%00{part.replace('.', '%2E')}"
    return part


def _join(parts: list[str] | tuple[str, ...]) -> str:
    protocol, *rest = (unquote(part).replace("\0", "") for part in parts if not VERSION.fullmatch(part))
    return f"{protocol}://{'/'.join(rest)}"
