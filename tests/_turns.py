"""Cases that take turns by the day, or by the number of the run on GitHub, as environments do (scripts/turn.py).

`GITHUB_RUN_NUMBER=7 pytest …` repeats a turn.

@pytest.mark.by_turns(3)        of the long cases of a test, each turn a third
"""

import os
import sys
import time
from pathlib import Path
from zlib import crc32

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from turn import number


def keep_turn():
    """Let this process and the workers that it starts have one turn: a run may last over midnight."""
    os.environ.setdefault("GITHUB_RUN_NUMBER", str(turn()))


def turn():
    """Return the number of the turn."""
    return number(os.environ, time.time())


def of_this_turn(cases, turns):
    """Return the cases whose turn it is: each case once in so many turns."""
    return [*cases][turn() % turns :: turns]


def of_other_turns(items):
    """Yield each long case of a test marked by_turns whose turn it is not.

    Cases of one name in a file have one turn: what they share is made in that turn alone.
    """
    places = {}
    for item in items:
        if (mark := item.get_closest_marker("by_turns")) and item.get_closest_marker("long"):
            (turns,) = mark.args
            file, _, test = item.nodeid.partition("::")
            of_file = places.setdefault(file, {})
            place = of_file.setdefault(test.partition("[")[2] or test, crc32(file.encode()) + len(of_file))
            if (place - turn()) % turns:
                yield item
