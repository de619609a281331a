"""`check_type`: one sentence on a file or result in the wrong place, which says what it is and who takes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from finc_eval.core.errors import DataError
from finc_eval.core.files.front import file_type


class FileType(NamedTuple):
    """A type of file, in the words of a message.

    Attributes:
        is_a: what the file is.
        goes_to: who takes it.
        needed: what to pass where this type is needed.
    """

    is_a: str
    goes_to: str
    needed: str


FILE_TYPES = {
    "embeddings": FileType(
        "a file of embeddings",
        "finc-eval compare and the other verbs take in place of samples",
        "samples, or their embeddings by finc-eval extract",
    ),
    "sketch": FileType(
        "a sketch",
        "finc-eval compare takes in place of samples (in Python: fe.Sketch.load)",
        "a sketch by finc-eval extract sketch",
    ),
    "comparison": FileType(
        "a comparison",
        "finc-eval report, score and changes take (in Python: fe.Comparison.load)",
        "the .h5 file of a comparison by finc-eval compare",
    ),
    "kinds": FileType("a result of finc-eval kinds", "fe.load opens", "the .h5 file of a result of finc-eval kinds"),
    "private sketch": FileType(
        "a private sketch",
        "finc-eval private sketch score and private sketch compare take as --ref (in Python: PrivateSketch.score)",
        "a private sketch by finc-eval private sketch release",
    ),
    "kahm": FileType(
        "a file of kernel affine hull machines", "fe.kahm.load_models opens", "a file by fe.kahm.save_models"
    ),
}
"""Types of files that users pass on. Queries and answers of federated classification never leave their folder."""


def check_type(source: object, name: str, *allowed: str) -> None:
    """Raise DataError where a set is a file or a result of finc-eval of a type that cannot be one.

    Args:
        source: path of anything, or an object.
        name: what to call an object.
        allowed: types that are taken, the one to advise first.
    """
    if isinstance(source, str | Path):
        name, found = str(source), file_type(source)
    else:
        found = getattr(type(source), "type_name", None)
    if isinstance(found, str) and found not in allowed:
        raise wrong_type(name, found, allowed[0])


def wrong_type(given: str | Path, found: str, needed: str) -> DataError:
    """Return the error for a file of one type where another is needed; `given` is its path."""
    is_a, goes_to, _ = FILE_TYPES.get(found, (f"a finc-eval file of the type {found!r}", "fe.load opens", ""))
    what = FILE_TYPES[needed].needed if needed in FILE_TYPES else needed
    return DataError(f"{given} is {is_a}, which {goes_to}: here pass {what}")
