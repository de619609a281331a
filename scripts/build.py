"""Build the wheel and the source archive: the same commit gives the same bytes, wherever and whenever it is built.

Writes dist/. Dates in the archives are SOURCE_DATE_EPOCH, or else the time of the last commit. The versions of Python
and setuptools must be the same.

Usage: python scripts/build.py [--no-isolation] [--outdir DIR]
"""

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIRST_OF_ZIP = 315_532_800
"""Seconds to 1980, before which a zip file has no dates."""


def main() -> None:
    """Build both archives, and write them again without what differs between two machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-isolation", action="store_true", help="build with the setuptools that is installed")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    epoch = max(FIRST_OF_ZIP, int(os.environ.get("SOURCE_DATE_EPOCH") or commit_time()))
    options.outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--outdir", folder, str(ROOT)]
        subprocess.run(command + ["--no-isolation"] * options.no_isolation, check=True)
        for path in sorted(Path(folder).iterdir()):
            same = same_wheel if path.suffix == ".whl" else same_sdist
            (options.outdir / path.name).write_bytes(same(path, epoch))
            print(options.outdir / path.name)


def commit_time() -> str:
    """Return the time of the last commit, in seconds since 1970."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def same_wheel(path: Path, epoch: int) -> bytes:
    """Return a wheel with members in the order of their names, with one date and one mode."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            member = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            new.writestr(member, old.read(name))
    return made.getvalue()


def same_sdist(path: Path, epoch: int) -> bytes:
    """Return a source archive with members in the order of their names, with one date, owner and mode."""
    made = io.BytesIO()
    packed = gzip.GzipFile(filename="", fileobj=made, mode="wb", mtime=epoch)
    with packed, tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() else 0o644, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return made.getvalue()


if __name__ == "__main__":
    main()
