"""Cases that take turns by the day, or by the number of the run on GitHub, as environments do (scripts/turn.py).

`GITHUB_RUN_NUMBER=7 pytest …` repeats a turn.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from turn import number


def turn():
    """Return the number of the turn."""
    return number(os.environ, time.time())


def of_this_turn(cases, turns):
    """Return the cases whose turn it is: each case once in so many turns."""
    return [*cases][turn() % turns :: turns]
