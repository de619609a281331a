"""Opens damaged files, one after the other: told by lines of standard input, telling by lines of standard output.

It runs in a process of its own: a reader that hangs, or is killed for memory, must not take the tests with it.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from _quick import EVERYTHING, quick
from faults.damage import is_forged, of_own
from faults.kinds import KINDS, quietly

from finc_eval.core.errors import FincEvalError

MAX_GROWTH = 1 << 30
"""Bytes by which the memory may grow with one input."""

MAX_SENTENCE = 2010
"""Letters of a message."""

NAME = "a"


def seed_of(kind: str, seed: int, index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, crc32(kind.encode()), index])


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Bench:
    """Valid files of each kind, and what their use returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, tuple[bytes, str]] = {}

    def valid(self, name: str) -> tuple[bytes, str]:
        if name not in self._made:
            kind = KINDS[name]
            place = self.folder / name
            (place / "valid").mkdir(parents=True)
            path = place / "valid" / f"{NAME}{kind.suffix}"
            quietly(kind.make, path)
            data = path.read_bytes()
            outcome, found = self.used(name, data)
            assert outcome == "accepted", f"a valid {name} is refused: {found}"
            self._made[name] = data, found
        return self._made[name]

    def used(self, name: str, data: bytes) -> tuple[str, str]:
        """Use a file of these bytes: the outcome and what was returned or raised."""
        kind = KINDS[name]
        place = self.folder / name / "damaged"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path = place / f"{NAME}{kind.suffix}"
        path.write_bytes(data)
        try:
            return "accepted", repr(quietly(kind.use, path))
        except FincEvalError as error:
            text = str(error)
            fine = text and "\n" not in text and len(text) <= MAX_SENTENCE
            return ("refused" if fine else "not a sentence"), text
        except Exception as error:
            trace = traceback.extract_tb(error.__traceback__)
            own = next((one for one in reversed(trace) if "finc_eval" in one.filename), trace[-1])
            where = f"{Path(own.filename).name}:{own.lineno}"
            return "traceback", f"{type(error).__name__} at {where}: {str(error)[:200]}"

    def tried(self, name: str, seed: int, index: int) -> tuple[str, str]:
        kind, (data, expected) = KINDS[name], self.valid(name)
        sequence = seed_of(name, seed, index)
        damaged = kind.damage(data, np.random.default_rng(sequence))
        forged = kind.damage is of_own and is_forged(data, sequence)
        before = peak()
        outcome, text = self.used(name, damaged)
        if outcome == "accepted" and kind.sealed and not forged and text != expected:
            return "wrong", f"{text[:200]} in place of {expected[:200]}"
        if peak() - before > MAX_GROWTH:
            return "memory", f"{(peak() - before) / 1e9:.1f} GB for {len(damaged):,} bytes"
        return outcome, text


def main() -> None:
    torch.set_num_threads(1)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    os.fsync = lambda _: None  # nothing here outlives the process
    with quick(*EVERYTHING), tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["FINC_EVAL_CACHE"] = str(Path(folder) / "caches")
        bench = Bench(Path(folder))
        print(json.dumps(list(KINDS)), file=out, flush=True)
        for line in sys.stdin:
            name, seed, index = json.loads(line)
            bench.valid(name)
            print("begun", file=out, flush=True)
            print(json.dumps(bench.tried(name, seed, index)), file=out, flush=True)


if __name__ == "__main__":
    main()
