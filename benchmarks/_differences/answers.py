"""Answers of other tools to the benchmark of differences, read from a file and checked."""

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from finc_eval.core.errors import DataError

Share = Annotated[float, Field(ge=-1, le=1)]


class Difference(BaseModel):
    """A difference of an answer; DIFFERENCES.md says what its parts are."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    side: Literal["gen", "ref"]
    ids: list[str]
    share: Share | None = None
    interval: tuple[Share, Share] | None = None
    words: str | None = None
    p_value: Annotated[float, Field(ge=0, le=1)] | None = None


ANSWER = TypeAdapter(dict[str, list[Difference]])


def read_answer(path, truths):
    """Return the differences of an answer file by case, as dicts, and check them against the cases.

    Raises:
        DataError: the file has another form, or names a case or a sample that is not there.
    """
    try:
        read = ANSWER.validate_python(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:  # ValidationError is a ValueError
        raise DataError(f"{path} cannot be read as an answer: {_first_fault(error)}") from error
    for case, differences in read.items():
        if case not in truths:
            raise DataError(f"{path} has a case {case!r}: truth.json has {', '.join(sorted(truths)[:3])} …")
        known = ids_of_case(truths[case])
        if unknown := [name for each in differences for name in each.ids if name not in known]:
            raise DataError(f"{path} has a sample {unknown[0]!r} in {case}: names are such as {min(known)!r}")
    return {case: [each.model_dump() for each in differences] for case, differences in read.items()}


def ids_of_case(truth):
    """Return the names of all samples of a case."""
    end = "" if truth["extractor"] == "motion" else ".png"  # clips are folders of frames
    return {f"{side}/{number:04d}{end}" for side, size in truth["sizes"].items() for number in range(size)}


def _first_fault(error):
    if not isinstance(error, ValidationError):
        return str(error)
    fault = error.errors()[0]
    return f"{' '.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}, and not {str(fault['input'])[:60]}"
