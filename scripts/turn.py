"""Print the environment that is tested besides that of `make test`: landings by turns see all, and the wheel's.

    python scripts/turn.py oldest=python3.11 middle=python3.12 newest=python3.13

The arguments are the Pythons of `make oldest`, `make middle` and `make newest`; nothing after `=` means that the
machine has none. The interpreter that runs this script is that of `make test`, which has new packages. An environment
takes turns if its packages or its Python differ from these; if none differs, `newest` does. The environment of
`make wheel`, which holds what the wheel asks for alone, takes its turn after them. The number of the turn is
GITHUB_RUN_NUMBER, or else the days since 1970: a shallow checkout has no commits to count.
TURN=oldest, middle, newest or wheel decides instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping

NAMES = ("oldest", "middle", "newest", "wheel")

Version = tuple[int, ...]

SECONDS_A_DAY = 86_400


def main() -> None:
    """Print the name of the environment whose turn it is, which is a target of make."""
    try:
        found = {name: version_of(path) for name, path in (text.split("=", 1) for text in sys.argv[1:]) if path}
        print(chosen(sys.version_info[:2], found, os.environ, time.time()))
    except (ValueError, OSError, subprocess.SubprocessError) as problem:
        raise SystemExit(f"error: {problem}") from None


def chosen(tested: Version, found: Mapping[str, Version], variables: Mapping[str, str], now: float) -> str:
    """Return the name of an environment. `tested` is the Python of make test, and `now` is in seconds since 1970."""
    if name := variables.get("TURN"):
        if name not in NAMES:
            raise ValueError(f"TURN is {name!r}: set it to {', '.join(NAMES[:-1])} or {NAMES[-1]}, or unset it")
        return name
    turns = turns_of(tested, found)
    return turns[number(variables, now) % len(turns)]


def number(variables: Mapping[str, str], now: float) -> int:
    """Return the number of the run on GitHub, or else the days since 1970."""
    run = variables.get("GITHUB_RUN_NUMBER", "")
    return int(run) if run.isdecimal() else int(now // SECONDS_A_DAY)


def turns_of(tested: Version, found: Mapping[str, Version]) -> list[str]:
    """Return the environments that differ from that of make test, or else `newest`, and that of the wheel."""
    newest = found.get("newest", tested)
    turns = ["oldest"] if "oldest" in found else []
    turns += ["middle"] if found.get("middle", tested) not in (tested, newest) else []
    turns += ["newest"] if newest != tested else []
    return [*(turns or ["newest"]), "wheel"]


def version_of(python: str) -> Version:
    """Return the major and minor version of an interpreter."""
    command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    return tuple(map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()))


if __name__ == "__main__":
    main()
