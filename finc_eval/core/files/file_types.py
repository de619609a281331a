"""The types of finc-eval's own files in the words of messages: what each is, who takes it, and what makes it again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from finc_eval.core.errors import DataError


class FileType(NamedTuple):
    """A type of file, in the words of a message."""

    is_a: str  # what the file is
    goes_to: str  # who takes it
    needed: str  # what to pass where this type is needed


FILE_TYPES = {
    "embeddings": FileType(
        "a file of embeddings",
        "finc-eval compare and the other verbs take instead of samples",
        "samples, or their embeddings by finc-eval extract",
    ),
    "sketch": FileType(
        "a sketch",
        "finc-eval compare takes instead of samples (in Python: fe.Sketch.load)",
        "a sketch by finc-eval extract sketch",
    ),
    "comparison": FileType(
        "a comparison",
        "finc-eval report, score and changes take (in Python: fe.Comparison.load)",
        "the .h5 file of a comparison by finc-eval compare",
    ),
    "kinds": FileType("a result of finc-eval kinds", "fe.load opens", "the .h5 file of a result of finc-eval kinds"),
    "monitor": FileType("a monitor of a training", "fe.Monitor.load opens", "a file by fe.Monitor.save"),
    "statistics": FileType(
        "the mean and covariance of a set",
        "only Fréchet distances take (finc-eval metrics --metrics fd)",
        "the statistics of a set",
    ),
    "private sketch": FileType(
        "a private sketch",
        "finc-eval evaluate, private sketch score and compare, leaderboard and gate take as --ref (in Python: "
        "PrivateSketch.score)",
        "a private sketch by finc-eval private sketch release",
    ),
    "kahm": FileType(
        "a file of kernel affine hull machines", "fe.kahm.load_models opens", "a file by fe.kahm.save_models"
    ),
}
"""Types of files that users pass on. Queries and answers of federated classification never leave their folder."""


MADE_BY = {
    "comparison": "finc-eval compare",
    "methods": "finc-eval compare methods",
    "spaces": "finc-eval compare --extractor",
    "sweep": "finc-eval compare sweep",
    "changes": "finc-eval compare changes",
    "kinds": "finc-eval kinds",
    "scores": "finc-eval metrics",
    "evaluation": "finc-eval evaluate",
    "audit": "finc-eval audit",
    "verdict": "finc-eval gate",
    "baseline": "finc-eval gate --promote",
    "baseline-kinds": "finc-eval gate --promote",
    "leaderboard": "finc-eval leaderboard",
    "private-leaderboard": "finc-eval leaderboard",
    "leaderboard-index": "finc-eval leaderboard",
    "leaderboard-entry": "finc-eval leaderboard",
    "leaderboard-reference": "finc-eval leaderboard",
    "sketch": "finc-eval extract sketch",
}
"""The command that makes a file of a type again."""


def check_layout(path: str | Path, type_name: str, layout: object, reads: int, remedy: str = "make it again") -> None:
    """Raise DataError unless a file has the layout that this version reads.

    A layout is raised whenever what is stored of the type changes.
    """
    if layout == reads:
        return
    is_later = isinstance(layout, int) and layout > reads
    command = f"run {MADE_BY[type_name]} again" if type_name in MADE_BY else remedy
    raise DataError(
        f"{path} was written by {'a later' if is_later else 'an earlier'} version of finc-eval (it has {type_name} "
        f"layout {layout!r:.40}, this version reads {reads}): {'update finc-eval' if is_later else command}"
    )


def wrong_type(given: str | Path, held: str, needed: str) -> DataError:
    """Return the error for a file of one type where another is needed; `given` is its path."""
    is_a, goes_to, _ = FILE_TYPES.get(held, (f"a finc-eval file of the type {held!r}", "fe.load opens", ""))
    what = FILE_TYPES[needed].needed if needed in FILE_TYPES else needed
    return DataError(f"{given} is {is_a}, which {goes_to}: here pass {what}")
