"""No program is started because of what lies in a folder: neither git, nor one that a file there names."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from _trees import nodes_of

import finc_eval
from finc_eval.cli.app import _find_programs_elsewhere
from finc_eval.core.errors import DataError
from finc_eval.core.provenance import MAX_PACKED, Provenance, revision_of
from finc_eval.embeddings.array_files import read_arrays
from finc_eval.extractors.networks.tensors import load_tensors
from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.samples.opening import open_source

PACKAGE = Path(finc_eval.__file__).parent
OTHERS = "0123456789abcdef0123456789abcdef01234567"
"""A revision that a hostile folder wants to be told."""

STARTS = ("subprocess.Popen", *(f"os.{one}" for one in ("system", "exec", "fork", "forkpty", "posix_spawn", "spawn")))
"""Audit events of Python for the start of a program."""

started, is_watched = [], []


@cache
def watch_this_process():
    """Look at audit events from now on: Python calls a hook at each `id()`, and never takes it out."""
    sys.addaudithook(lambda event, _: started.append(event) if is_watched and event in STARTS else None)


@pytest.fixture
def watched():
    """The programs that the test starts while `is_watched`; after ten seconds it fails instead of waiting for ever."""

    def late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    watch_this_process()
    started.clear()
    is_watched.append(True)
    yield started
    is_watched.clear()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def git(folder, *words):
    """Run git in a folder, and return what it prints."""
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    found = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    run = subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True, env=found)
    return run.stdout.strip()


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """A checkout of one commit."""
    folder = tmp_path_factory.mktemp("checkout")
    git(folder, "init", "-qb", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "one")
    return folder


def configured(key, value="touch PWNED; false"):
    """A checkout whose configuration names a program."""

    def make(folder, checkout):
        shutil.copytree(checkout, folder, dirs_exist_ok=True)
        git(folder, "config", key, value)
        os.utime(folder / "a.txt", (0, 0))  # git looks at its content

    return make


def with_filter(folder, checkout):
    configured("filter.trap.clean", "touch PWNED; cat")(folder, checkout)
    (folder / ".gitattributes").write_text("* filter=trap\n")


def with_hook(folder, checkout):
    configured("core.hooksPath", ".")(folder, checkout)
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        program(folder / name)


def with_included(folder, checkout):
    configured("include.path", "../trap")(folder, checkout)
    (folder / "trap").write_text('[core]\n\tfsmonitor = "touch PWNED; false"\n')


def laid_out_bare(folder, checkout):
    """The folder itself is a repository, as a zip or a clone can bring it."""
    shutil.copytree(checkout / ".git", folder, dirs_exist_ok=True)
    for key, value in (("core.bare", "false"), ("core.worktree", "."), ("core.fsmonitor", "touch PWNED; false")):
        git(folder, f"--git-dir={folder}", "config", key, value)


def leading_to_bare(folder, checkout):
    (folder / "data").mkdir()
    laid_out_bare(folder / "data", checkout)
    (folder / ".git").write_text("gitdir: data\n")


def program(path):
    path.write_text("#!/bin/sh\ntouch PWNED\n")
    path.chmod(0o755)


def with_programs(folder, _):
    for name in ("git", "gs", "lscpu", "latex", "g++", "gcc", "cc", "ld", "uname", "nvidia-smi", "ldconfig"):
        program(folder / name)


HOSTILE = {
    "core.fsmonitor": configured("core.fsmonitor"),
    "core.fsmonitor as a file": configured("core.fsmonitor", "./trap"),
    "core.sshCommand": configured("core.sshCommand"),
    "core.pager": configured("core.pager"),
    "core.editor": configured("core.editor"),
    "core.alternateRefsCommand": configured("core.alternateRefsCommand"),
    "diff.external": configured("diff.external"),
    "credential.helper": configured("credential.helper", "!touch PWNED"),
    "alias.status": configured("alias.status", "!touch PWNED"),
    "alias.rev-parse": configured("alias.rev-parse", "!touch PWNED"),
    "gpg.program": configured("gpg.program"),
    "a filter": with_filter,
    "hooks": with_hook,
    "an included configuration": with_included,
    "a bare repository of plain files": laid_out_bare,
    ".git leads to a bare repository": leading_to_bare,
    "programs by the names of tools": with_programs,
}
"""How to fill a folder that starts a program of its own when somebody works in it."""


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_provenance_starts_nothing_in_a_hostile_folder(make, checkout, tmp_path, monkeypatch, request):
    make(tmp_path, checkout)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    programs = request.getfixturevalue("watched")  # from here on: git made the folder
    Provenance.here("cpu")
    assert programs == [] and not [*tmp_path.rglob("PWNED")]


@pytest.mark.long
def test_a_command_in_a_folder_full_of_traps_starts_none(checkout, tmp_path):
    for make in (with_programs, with_filter, with_hook, configured("core.fsmonitor")):
        make(tmp_path, checkout)
    for name in ("numpy", "torch", "scipy", "sitecustomize", "rich", "finc_eval"):
        (tmp_path / f"{name}.py").write_text("open('PWNED', 'w')\n")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32))
    script = "import sys; sys.argv[0] = 'finc-eval'\nfrom finc_eval.cli import main\nmain()"
    words = [
        "compare",
        "--gen",
        "x.npy",
        "--ref",
        "x.npy",
        "--features",
        "20",
        "--out",
        "out",
        "--quiet",
        "--no-clusters",
    ]
    found = os.environ | {"PATH": f":.:{os.environ['PATH']}", "PYTHONPATH": str(PACKAGE.parent)}
    program = [sys.executable, "-P", "-c", script, *words]
    run = subprocess.run(program, cwd=tmp_path, env=found, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert not (tmp_path / "PWNED").exists()
    assert git(checkout, "rev-parse", "HEAD") in (tmp_path / "out" / "comparison.json").read_text()


def plain(folder, checkout):
    return shutil.copytree(checkout, folder / "c")


def in_subfolder(folder, checkout):
    (plain(folder, checkout) / "a" / "b").mkdir(parents=True)
    return folder / "c" / "a" / "b"


def detached(folder, checkout):
    git(plain(folder, checkout), "checkout", "-q", "--detach")
    return folder / "c"


def packed(folder, checkout):
    git(plain(folder, checkout), "pack-refs", "--all")
    return folder / "c"


def on_a_branch(folder, checkout):
    git(plain(folder, checkout), "checkout", "-qb", "topic/ü-1")
    return folder / "c"


def worktree(folder, checkout):
    git(plain(folder, checkout), "worktree", "add", "-q", "../linked", "-b", "other")
    return folder / "linked"


def submodule(folder, checkout):
    git(plain(folder, checkout), "submodule", "--quiet", "add", str(checkout), "part")
    return folder / "c" / "part"


def with_sha256(folder, _):
    git(folder, "init", "-q", "--object-format=sha256")
    git(folder, "commit", "-qm", "x", "--allow-empty")
    return folder


CHECKOUTS = (plain, in_subfolder, detached, packed, on_a_branch, worktree, submodule, with_sha256)


@pytest.mark.parametrize("make", CHECKOUTS, ids=lambda one: one.__name__)
def test_the_revision_is_what_git_says(make, checkout, tmp_path):
    place = make(tmp_path, checkout)
    assert revision_of(place) == git(place, "rev-parse", "HEAD")


def head(text):
    return lambda git_folder: (git_folder / "HEAD").write_bytes(text)


def replaced(name, make):
    """Put something in the place of a file of .git."""

    def change(git_folder):
        (git_folder / name).unlink(missing_ok=True)
        make(git_folder / name)

    return change


def endless(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


def unpacked_to(make):
    """Take away the branch, so that it is looked up among the packed ones, and put something in their place."""

    def change(git_folder):
        (git_folder / "refs" / "heads" / "main").unlink()
        make(git_folder / "packed-refs")

    return change


def packed_beyond(path):
    line = f"\n{OTHERS} refs/heads/main".encode()
    path.write_bytes(b"#" * (MAX_PACKED + 1 - len(line)) + line + b"-of-another-name\n")


def linked_folder(git_folder):
    outside = git_folder.parent / "outside"
    shutil.rmtree(git_folder / "refs" / "heads")
    outside.mkdir()
    (outside / "main").write_text(OTHERS)
    (git_folder / "refs" / "heads").symlink_to(outside)


def linked(git_folder):
    git_folder.rename(git_folder.parent / "outside")
    git_folder.symlink_to(git_folder.parent / "outside")


def pointing(text, name="victim"):
    """Make .git a file that names the folder of a repository, which knows nothing of it."""

    def change(git_folder):
        git_folder.rename(git_folder.parent / name)
        git_folder.write_text(text)

    return change


def claimed_worktree(git_folder):
    """A folder of a worktree that names another checkout as its own."""
    place = git_folder.parent / "victim" / "worktrees" / "w"
    place.parent.mkdir(parents=True)
    git_folder.rename(place)
    (place / "HEAD").write_text(OTHERS)
    (place / "gitdir").write_text(f"{git_folder.parent / 'elsewhere' / '.git'}\n")
    git_folder.write_text("gitdir: victim/worktrees/w\n")


def fifo(path):
    os.mkfifo(path)


ODD = {
    "a pipe as HEAD": replaced("HEAD", fifo),
    "an endless device as HEAD": replaced("HEAD", lambda path: path.symlink_to("/dev/zero")),
    "a folder as HEAD": replaced("HEAD", Path.mkdir),
    "a terabyte of HEAD": replaced("HEAD", endless),
    "no HEAD": lambda git_folder: (git_folder / "HEAD").unlink(),
    "HEAD leads out": replaced("HEAD", lambda path: path.symlink_to("../outside.txt")),
    "an empty HEAD": head(b""),
    "a binary HEAD": head(bytes(range(256))),
    "two lines of HEAD": head(f"{OTHERS}\n{OTHERS}\n".encode()),
    "half a revision": head(OTHERS[:20].encode()),
    "script as a revision": head(b"<script>alert(1)</script>"),
    "a reference outside refs": head(b"ref: ../outside.txt"),
    "a reference that leaves refs": head(b"ref: refs/../../outside.txt"),
    "an absolute reference": head(b"ref: /etc/passwd"),
    "a reference with a NUL": head(b"ref: refs/heads/\0main"),
    "a reference as a pattern": head(b"ref: refs/heads/(.*"),
    "a very long reference": head(b"ref: refs/heads/" + b"a" * 4000),
    "reftable": head(b"ref: refs/heads/.invalid\n"),
    "a pipe as a branch": replaced("refs/heads/main", fifo),
    "a branch that leads out": replaced("refs/heads/main", lambda path: path.symlink_to("../../../outside.txt")),
    "a branch that names another": replaced("refs/heads/main", lambda path: path.write_text("ref: refs/heads/main")),
    "branches in a linked folder": linked_folder,
    "a pipe of packed branches": unpacked_to(fifo),
    "a terabyte of packed branches": unpacked_to(endless),
    "packed branches beyond the limit": unpacked_to(packed_beyond),
    ".git is a link": linked,
    ".git names a repository": pointing("gitdir: victim\n"),
    ".git names a repository that is called a module": pointing("gitdir: modules\n", "modules"),
    ".git names itself": pointing("gitdir: .git\n"),
    ".git names a device": pointing("gitdir: /dev/zero\n"),
    ".git names the worktree of another": claimed_worktree,
    ".git is a pipe": lambda git_folder: (shutil.rmtree(git_folder), fifo(git_folder)),
    ".git is a terabyte": lambda git_folder: (shutil.rmtree(git_folder), endless(git_folder)),
}
"""How to make a checkout from which no revision is read."""


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_an_odd_checkout_has_no_revision(change, checkout, tmp_path, watched):
    place = shutil.copytree(checkout, tmp_path / "c")
    (place / "outside.txt").write_text(OTHERS)
    assert revision_of(place)
    change(place / ".git")
    assert revision_of(place) is None


STARTERS = {"subprocess", "multiprocessing", "pty", "webbrowser", "asyncio"}
CALLS = {
    *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile", "which", "find_library"),
    *(f"{kind}{end}" for kind in ("exec", "spawn") for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *("ProcessPoolExecutor", "getnode", "uuid1", "processor", "uname", "libc_ver", "add_dll_directory"),
}
"""Names of functions that start a program, or look for one, those in the standard library among them."""


def starters_in(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


ISOLATION = {"core/isolation.py": {"subprocess", "fork"}}
"""The one place that starts processes: of the Python that runs, by its full path, for decoding."""


def test_one_place_of_the_package_starts_programs():
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := {*starters_in(path)} & (STARTERS | CALLS))
    }
    assert found == ISOLATION


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin", "/usr/bin"),
        ("/usr/bin:", "/usr/bin"),
        (".:/usr/bin:./tools", "/usr/bin"),
        ("../bin:~/bin:bin:/bin", "/bin"),
        ("", None),
        (".", None),
        ("::", None),
    ],
)
def test_programs_are_found_in_absolute_folders_alone(path, kept, monkeypatch):
    monkeypatch.setenv("NODEFAULTCURRENTDIRECTORYINEXEPATH", "")
    monkeypatch.setenv("PATH", path)
    _find_programs_elsewhere()
    assert os.environ.get("PATH") == kept
    assert all(Path(folder).is_absolute() for folder in os.get_exec_path())


class Trap:
    """What a pickle makes of it is a call, which leaves a file."""

    def __init__(self, folder):
        self._folder = folder

    def __reduce__(self):
        return Path.touch, (self._folder / "PWNED",)


READERS = {
    "weights.pth": load_tensors,
    "embeddings.pt": read_arrays,
    "embeddings.npy": read_arrays,
    "embeddings.npz": read_arrays,
    "images.pt": open_source,
    "images.npz": open_source,
}


@pytest.mark.parametrize("name", READERS)
def test_no_pickle_in_a_file_is_run(name, tmp_path):
    path, trap = tmp_path / name, Trap(tmp_path)
    if path.suffix in (".pt", ".pth"):
        torch.save({"embeddings": torch.zeros(3, 2), "trap": trap}, path)
    else:
        values = np.array([[trap]], dtype=object)
        np.save(path, values) if path.suffix == ".npy" else np.savez(path, embeddings=values)
    with pytest.raises(DataError):
        READERS[name](path)
    assert not (tmp_path / "PWNED").exists()
    if path.suffix == ".pth":
        torch.load(path, weights_only=False)
        assert (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("beginning", ["%!PS-Adobe-3.0 EPSF-3.0\n%ANIM", "%!PS-Adobe-2.0\n%%BoundingBox: 0 0 9 9 ANIM"])
def test_a_picture_in_a_file_never_starts_ghostscript(beginning, watched):
    text = f"{beginning}\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) run\nshowpage\n%%EOF\n"
    with pytest.raises(OSError, match="cannot identify"):
        _ = Thumbnail(text.encode(), "webp", 9, 9).strip
    assert watched == []


def test_names_are_never_given_to_tex(documents):
    with matplotlib.rc_context({"text.usetex": True}):
        axes = documents["kinds"].figure(1 - 1e-9).axes[0]
    names = [*axes.get_yticklabels(), *axes.figure.legends[0].get_texts()]
    assert len(names) > 2 and not any(name.get_usetex() for name in names)
