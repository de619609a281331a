"""The fit of private values to their public description, told to their owner before anything is spent."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping

from finc_eval.core.errors import DataError
from finc_eval.core.words import in_percent, join_words, plural
from finc_eval.embeddings.columns import to_text

SECRET = "No noise protects these numbers: keep them to yourself"


def check_fit(
    misfits: Mapping[str, Counter[str]],
    records: int,
    most: float,
    becomes: str,
    of_missing: Mapping[str, str] | None = None,
    whose: str = "",
) -> None:
    """Warn of values that do not fit the description, by column; refuse above a share of the records.

    Args:
        misfits: values of each column that the description does not have, with the number of records that have each.
        records: number of records.
        most: largest share of the records whose value of a column may be undescribed; with 0, none may.
        becomes: what happens to such a value, such as "count as nothing".
        of_missing: setting that gives what is missing a level, such as "missing = true", for each column that has none.
        whose: whose values they are, such as "synthetic"; default: those of the only data.

    Raises:
        DataError: more values of a column are undescribed.
    """
    undescribed = {name: count for name, faults in misfits.items() if (count := faults.total())}
    if not undescribed:
        return
    told = [
        f"{records - count:,} of {records:,} {f'{whose} values'.lstrip()} of {name} fit, and {count:,} "
        f"{'is' if count == 1 else 'are'} not described, such as {_examples(misfits[name])}"
        for name, count in undescribed.items()
    ]
    rest = len(misfits) - len(undescribed)
    others = f"; all values of the other {plural(rest, 'column')} fit" if rest else ""
    settings = of_missing or {}
    empty = [name for name in undescribed if name in settings and not all(map(to_text, misfits[name]))]
    lacking = [f"{settings[name]} of {name}" for name in empty]
    advice = f"A level for what is missing is described by {join_words(lacking)}. " if lacking else ""
    sentence = f"{'; '.join(told)}{others}. Values that are not described {becomes}. {advice}{SECRET}"
    allowed = max(most * records, 1) if most else 0  # a single record never makes a refusal
    worst = max(undescribed, key=lambda name: undescribed[name])
    if undescribed[worst] <= allowed:
        warnings.warn(sentence, stacklevel=3)
        return
    raise DataError(
        f"{in_percent(undescribed[worst] / records)} of the values of {worst} are not described, more than the "
        f"{in_percent(most)} that max_undescribed allows: correct them, describe them, or raise it. Nothing is spent. "
        f"{sentence}"
    )


def _examples(misfits: Counter[str]) -> str:
    # 3: examples of values that do not fit, for each column.
    return join_words([repr(written[:40]) for written, _ in misfits.most_common(3)])
