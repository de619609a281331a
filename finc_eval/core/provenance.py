"""Provenance of a result: versions, device, the caller's git revision and command line."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from finc_eval.core.doors import NotAFileError, at_most, open_file
from finc_eval.core.record import IS_JOB, Job, PackageName, Record, Revision, Version
from finc_eval.core.secrets import redact, redact_word
from finc_eval.core.words import one_line

if TYPE_CHECKING:
    from finc_eval.core.device import Device


PACKAGES = ("finc-eval", "torch", "torchvision", "timm", "numpy", "scipy")  # packages that can change a number

config_in_use: ContextVar[str | None] = ContextVar("config_in_use", default=None)
"""File of defaults of the command that runs; the command line sets it."""


@dataclass(frozen=True)
class GitState(Record):
    """The git checkout of the caller's working folder.

    Attributes:
        revision: hash (hex) of the commit that is checked out; files may differ from it.
    """

    revision: Revision


def _job_in(value: object) -> object:
    """Return a job; None for what is not one: such a result is of no command, and can be read all the same."""
    return value if isinstance(value, str) and IS_JOB.fullmatch(value) else None


@dataclass(frozen=True)
class Provenance(Record):
    """The program, machine and checkout that made a result.

    Attributes:
        versions: version of Python and of each package that can change a number.
        device: device of the computation, such as "cpu" or "NVIDIA H100".
        git: git state of the caller's working folder; None outside a checkout, and where only git could tell.
        command: command line of `finc-eval`; None for a call from Python.
        job: digest of the command and its inputs, by which it knows its own files; None for a call from Python, and for
            a text that is not such a digest.
        config: file of defaults that the command read; None without one.
    """

    versions: dict[PackageName, Version]
    device: str
    git: GitState | None
    command: str | None
    job: Annotated[Job | None, BeforeValidator(_job_in)] = None
    config: str | None = None

    def __post_init__(self) -> None:
        self._store(
            device=one_line(self.device),
            command=self.command and one_line(redact(self.command)),
            config=self.config and one_line(redact(self.config)),
        )

    @property
    def version(self) -> str:
        """Version of finc-eval; "?" if it is not known."""
        return self.versions.get("finc-eval", "?")

    @classmethod
    def here(cls, device: Device = None) -> Provenance:
        """Describe this process and its working folder."""
        import torch

        from finc_eval.core.device import usable_device

        where = usable_device(device)
        name = torch.cuda.get_device_name(where) if where.type == "cuda" else str(where)
        revision = revision_of(Path.cwd())
        git = GitState(revision) if revision else None
        return cls(_versions(), name, git, command_line(), config=config_in_use.get())


@cache
def package_version() -> str:
    """Return the version of finc-eval."""
    return version("finc-eval")


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    versions = {name: installed for name in PACKAGES if (installed := installed_version(name))}
    return {"python": platform.python_version(), **versions}


def command_line() -> str | None:
    """Return the command line of finc-eval, as a shell takes it and without its folder; None for other programs."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    ours = program.name == "finc-eval" or program.parts[-2:] == ("finc_eval", "__main__.py")
    return shlex.join(["finc-eval", *map(redact_word, sys.argv[1:])]) if ours else None


REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REFERENCE = re.compile(r"ref: (refs/[^\x00-\x20\x7f]+)")
GIT_FOLDER = re.compile(r"gitdir: ([^\x00-\x1f\x7f]+)")

MAX_PACKED = 1 << 24  # bytes of a list of packed references: about 200,000 of them


def revision_of(folder: Path) -> str | None:
    """Return the hash of the commit that is checked out in a folder or around it; None if only git could tell.

    It reads only regular files of bounded size in the folder `.git` of the checkout. The folder of a linked worktree or
    submodule is read only if it names the checkout as its own.
    """
    try:
        git = _git_folder(folder.resolve())
        if git is None:
            return None
        head = _text(git / "HEAD")
        match = REFERENCE.fullmatch(head)
        if match is None:
            return head if REVISION.fullmatch(head) else None
        shared = git.parent.parent if git.parent.name == "worktrees" else git
        try:
            said = _text(shared / match[1])
        except FileNotFoundError:
            packed = _text(shared / "packed-refs", MAX_PACKED)
            line = re.search(rf"^({REVISION.pattern}) {re.escape(match[1])}$", packed, re.MULTILINE)
            return line[1] if line else None
        return said if REVISION.fullmatch(said) else None
    except (OSError, NotAFileError, ValueError, RuntimeError):  # no text, a loop of links, an odd name
        return None


def _git_folder(folder: Path) -> Path | None:
    git_path = next((parent / ".git" for parent in (folder, *folder.parents) if os.path.lexists(parent / ".git")), None)
    if git_path is None:
        return None
    if git_path.is_dir():
        return git_path
    match = GIT_FOLDER.fullmatch(_text(git_path))
    git = match and (git_path.parent / match[1]).resolve()
    if not git:
        return None
    if git.parent.name == "worktrees":
        return git if (git / _text(git / "gitdir")).resolve() == git_path else None
    return git if any(git.is_relative_to(above / ".git" / "modules") for above in git_path.parent.parents) else None


def _text(path: Path, most: int = 1 << 12) -> str:
    """Read a regular file that no link leads to, without the end of its last line."""
    if path.resolve() != path:
        raise ValueError("a link")
    with open_file(path) as file:
        return at_most(file, most).decode("utf-8").rstrip("\r\n")
