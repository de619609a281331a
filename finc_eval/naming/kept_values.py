"""Values of registered columns that are kept, by the digest of the column's code and that of a picture's pixels."""

from __future__ import annotations

Known = dict[int, tuple[float, bool]]  # value by the digest of pixels, and whether it is True or False

MOST_VALUES = 100_000  # values of a column that are kept, about 10 MB: those of 100 sets of 1,000 looked-at pictures

_KEPT: dict[str, Known] = {}


def known_values(digest: str) -> Known:
    """Return the kept values of a column, by the digest of its code."""
    return _KEPT.get(digest, {})


def keep_values(digest: str, fresh: Known) -> None:
    """Keep values of a column; of too many, the oldest go."""
    kept = _KEPT.setdefault(digest, {})
    kept.update(fresh)
    for key in [*kept][: max(0, len(kept) - MOST_VALUES)]:
        del kept[key]
