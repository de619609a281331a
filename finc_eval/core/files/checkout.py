"""Revision of a git checkout, read without git: it starts programs that the configuration of a checkout names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from finc_eval.core.doors.reading import NotAFileError, at_most, open_file

REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REFERENCE = re.compile(r"ref: (refs/[^\x00-\x20\x7f]+)")
GIT_FOLDER = re.compile(r"gitdir: ([^\x00-\x1f\x7f]+)")

MAX_REFERENCE = 1 << 12
"""Bytes of a file that holds one revision, reference or path."""

MAX_PACKED = 1 << 24
"""Bytes of a list of packed references: about 200,000 of them."""


def revision_of(folder: Path) -> str | None:
    """Return the hash of the commit that is checked out in a folder or around it; None where only git could tell.

    It reads only regular files of bounded size in the folder `.git` of the checkout. The folder of a linked worktree or
    submodule is read only if it names the checkout as its own.
    """
    try:
        git = _git_folder(folder.resolve())
        return None if git is None else _revision(git)
    except (
        OSError,
        NotAFileError,
        ValueError,
        RuntimeError,
    ):  # no text, a loop of links, an odd name
        return None


def _git_folder(folder: Path) -> Path | None:
    place = next((one / ".git" for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)
    if place is None:
        return None
    if place.is_dir():
        return place
    found = GIT_FOLDER.fullmatch(_text(place))
    git = found and (place.parent / found[1]).resolve()
    if not git:
        return None
    if git.parent.name == "worktrees":
        return git if (git / _text(git / "gitdir")).resolve() == place else None
    return git if any(git.is_relative_to(above / ".git" / "modules") for above in place.parent.parents) else None


def _revision(git: Path) -> str | None:
    head = _text(git / "HEAD")
    found = REFERENCE.fullmatch(head)
    if found is None:
        return head if REVISION.fullmatch(head) else None
    shared = git.parent.parent if git.parent.name == "worktrees" else git
    try:
        said = _text(shared / found[1])
    except FileNotFoundError:
        packed = _text(shared / "packed-refs", MAX_PACKED)
        line = re.search(rf"^({REVISION.pattern}) {re.escape(found[1])}$", packed, re.MULTILINE)
        return line[1] if line else None
    return said if REVISION.fullmatch(said) else None


def _text(path: Path, most: int = MAX_REFERENCE) -> str:
    """Read a regular file that no link leads to, without the end of its last line."""
    if path.resolve() != path:
        raise ValueError("a link")
    with open_file(path) as file:
        return at_most(file, most).decode("utf-8").rstrip("\r\n")
