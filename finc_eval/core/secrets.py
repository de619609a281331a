"""Secrets in URLs and in the environment: what a URL is, and what is cut from it.

Every message passes through `redact`, and so does what a result records about its making.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from urllib.parse import unquote

WEB = ("http", "https")
STORES = ("s3", "gs", "az", "hf")
PROTOCOL = r"[A-Za-z][A-Za-z0-9+.-]+"

URL = re.compile(rf"({PROTOCOL}):/(.*)", re.DOTALL)  # a URL, also a URL that `Path` has taken a slash from

BEGINNING = re.compile(
    rf"(?<![A-Za-z0-9+.-])[0-9+.-]*(?:"
    rf"(?:{'|'.join(WEB)}):[/\\]*|(?P<store>{'|'.join(STORES)}):(?:[/\\]+|(?=[^\s/\\@:]{{0,256}}:\S{{0,256}}@))"
    rf"|{PROTOCOL}:[/\\]+)",
    re.IGNORECASE,
)
"""The beginning of a URL in a text. The slashes of our own protocols may be missing, as a mistake in typing."""

QUERY = re.compile("[?#]")

USER = re.compile(r"[^/\\?#]*@|[^/\\?#@:\[]*:(?![:\s]|[0-9]*(?:[/\\?#]|$)).*@", re.DOTALL)
"""User and password of a URL. A password may hold slashes; what follows the colon of a host is a number."""

CLOSERS = "\"'`<>()[]{},.;:!\\"  # signs of the sentence around a URL, which stay where its end is cut

IS_SECRET = re.compile(
    r"(?:^|_)(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|SAS|CONNECTION_STRING|(?:API|ACCESS|ACCOUNT|STORAGE)_?KEY)S?"
    r"(?:_(?!.*(?:FILE|PATH|DIR)$)|$)"
)
"""A name of an environment variable with a secret in it."""

MIN_SECRET = 8  # letters of a value of the environment that is looked for


def redact(text: str, about: str = "") -> str:
    """Return a text whose URLs have no user, password, query and fragment, and that quotes no secret.

    The secrets of `about`, the URL that another program's message is about, are cut also where they stand alone.
    """
    if BEGINNING.search(text):
        text = re.sub(r"\S+", _redact_run, text)
    secrets = secrets_of(about) | (_of_environment() if len(text) >= MIN_SECRET else set())
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def redact_word(word: str) -> str:
    """Return a URL, or a word of a command line, as `redact` does; spaces do not end a URL in it."""
    begins = BEGINNING.search(word)
    return _divide(word)[0] if begins and not re.search(r"\s", word[: begins.start()]) else redact(word)


def secrets_of(url: str) -> set[str]:
    """Return the words of a URL that may be secret, as they are written and as they are meant."""
    _, users, query = _divide(url)
    words = {word for part in (*users, query) for word in re.split(r"[@:?#&;=]", part)}
    # 4: letters of a part of a URL that is looked for; shorter parts are in many words.
    return {form for word in words for form in (word, unquote(word)) if len(form) >= 4}


def _redact_run(run: re.Match[str]) -> str:
    kept, _, query = _divide(run[0])
    return kept + query[len(query.rstrip(CLOSERS)) :]


def _divide(text: str) -> tuple[str, list[str], str]:
    """Return a text without what is secret in its URLs; what that is before their hosts; and from the first query on.

    One URL may be within another: a::b, or as the name of a file in an archive.
    """
    begins = [*BEGINNING.finditer(text)]
    places = [*(match.start() for match in begins), len(text)]
    kept, users = [text[: places[0]]], list[str]()
    for begin, end in zip(begins, places[1:], strict=True):
        user = USER.match(text, begin.end(), end)
        users += [user[0]] if user else []
        start = user.end() if user else begin.end()
        query = QUERY.search(text, start, end)
        # The name of an object may hold these signs; a signature has an equals sign.
        if query and (begin["store"] is None or "=" in text[query.start() :]):
            return "".join([*kept, begin[0], text[start : query.start()]]), users, text[query.start() :]
        kept += [begin[0], text[start:end]]
    return "".join(kept), users, ""


def _of_environment() -> set[str]:
    values = {os.environ.get(name, "") for name in os.environ if _names_secret(name)}
    return {value for value in values if len(value) >= MIN_SECRET}


@lru_cache(maxsize=1024)
def _names_secret(name: str) -> bool:
    return IS_SECRET.search(name.upper()) is not None
