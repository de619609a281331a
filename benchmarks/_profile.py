"""Processor seconds of a program by what its main thread was doing: mathematics, imports, or bookkeeping.

A thread looks every few milliseconds at the innermost function of finc-eval that the main thread is in, and gives it
the seconds of the processor since the last look, those of other threads too. Of a part without processor seconds, such
as waiting, nothing counts.
"""

import sys
import threading
import time

MATHEMATICS = {
    "numerics",
    "feature_maps",
    "sketches",
    "partitions",
    "estimates",
    "measures",
    "baselines",
    "memorization",
    "comparison",
    "monitoring",
    "local_evidence",
    "private",
    "leaderboards",
    "gates",
    "extractors",
}
"""Rooms whose own functions compute, save those below."""

COMPUTING = (
    "embeddings/search/distance_blocks.py",
    "embeddings/search/neighbors.py",
    "embeddings/search/near_repeats.py",
    "naming/repeated.py",
)
"""Files of other rooms that compute."""

PARTS = ("mathematics", "embedding", "imports", "pictures and decoding", "files and hashes", "pages and words", "other")

OF_ROOMS = {
    "samples": "pictures and decoding",
    "gallery": "pictures and decoding",
    "naming": "pages and words",
    "findings": "pages and words",
    "report": "pages and words",
    "cli": "pages and words",
    "core": "files and hashes",
    "embeddings": "files and hashes",
}
EVERY = 0.004  # seconds between two looks


def part_of(frame):
    """Return what a stack is doing, and the innermost function of finc-eval in it."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith("<frozen importlib"):
            return "imports", "imports"
        if "/finc_eval/" in path:
            inner = path.rpartition("/finc_eval/")[2]
            room, where = inner.partition("/")[0], f"{inner}:{frame.f_code.co_name}"
            if inner == "extractors/network.py" or inner.startswith("extractors/networks/"):
                return "embedding", where
            if "/pages/" in inner or inner.endswith(("page.py", "signature.py")):
                return "pages and words", where
            computes = room in MATHEMATICS or inner in COMPUTING
            return ("mathematics" if computes else OF_ROOMS.get(room, "other")), where
        frame = frame.f_back
    return "other", "other"


class Sampler:
    """Seconds of the processor by part, and by function, while it runs."""

    def __init__(self):
        self.parts, self.functions = dict.fromkeys(PARTS, 0.0), {}
        self._main, self._ended = threading.main_thread().ident, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _look(self):
        before = time.process_time()
        while not self._ended.wait(EVERY):
            now, frame = time.process_time(), sys._current_frames().get(self._main)
            part, where = part_of(frame)
            self.parts[part] += now - before
            if part != "mathematics":
                self.functions[where] = self.functions.get(where, 0.0) + now - before
            before = now

    def largest(self):
        """Return the function outside of the mathematics that took most seconds, and these."""
        functions = [item for item in self.functions.items() if item[0] not in ("imports", "other")]
        return max(functions, key=lambda item: item[1], default=("", 0.0))
