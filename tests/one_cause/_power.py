"""Power of verbs that name nothing for a cause; `python tests/one_cause/_power.py` measures it again.

A verb may be silent where its test has no power at this size, and finds the cause in sets of twice the size. A verb
that finds it at no size does not look for it: that is a fault, however small the sets are.
"""

import json
import os
import sys
from pathlib import Path

RECORD = Path(__file__).with_name("power.json")
DRAWS = 10  # draws of sets behind a power
POWERLESS, SURE = 0.2, 0.8  # power up to which a verb may be silent, and power at twice the size from which it looks


def is_weak(power):
    """Return whether a test has no power at this size, though it has at twice the size."""
    return power["at this size"] <= POWERLESS and power["at twice the size"] >= SURE


def measure(cause, verb):
    """Return the part of draws in which a verb names anything, at this size and at twice the size."""
    from _causes import SIZE
    from _said_by_verbs import see

    sizes = {"at this size": SIZE, "at twice the size": 2 * SIZE}
    named = {key: [see(cause, (verb,), seed, size)[verb].name for seed in range(DRAWS)] for key, size in sizes.items()}
    return {key: sum(map(bool, names)) / DRAWS for key, names in named.items()}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from _known import BLIND, SILENT

    rows = [{"cause": cause, "verb": verb} | measure(cause, verb) for cause, verb in sorted({*BLIND, *SILENT})]
    RECORD.write_text(json.dumps({"draws": DRAWS, "places": rows}, indent=1) + "\n", encoding="utf-8")
