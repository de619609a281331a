"""Signatures: one line with everything that changes a number, after sacrebleu's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.provenance import package_version
from finc_eval.core.words import CONTROLS, one_line


@dataclass(frozen=True)
class Signature:
    """A metric and the settings it was computed with; results compare only if signatures agree.

    Attributes:
        metric: name of the metric or method, such as "finc".
        fields: (name, value) pairs in a fixed order; names are free of "|" and ":". In values, such as the name of a
            column, "|" and control characters are escaped, so that the text is read back as it was written.

    Example:
        >>> import finc_eval as fe
        >>> one = fe.Signature.parse("finc|n:500/500|sigma:8.9")
        >>> one.differences(fe.Signature.parse("finc|n:500/500|sigma:10"))
        ['sigma: 8.9 and 10']
    """

    metric: str
    fields: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", _escaped(self.metric))
        object.__setattr__(self, "fields", tuple((name, _escaped(value)) for name, value in self.fields))

    def __str__(self) -> str:
        return "|".join([self.metric, *(f"{name}:{value}" for name, value in self.fields)])

    @classmethod
    def of(cls, metric: str, sizes: Iterable[int | None], space: str, *fields: tuple[str, str]) -> Signature:
        """Return the signature of a number, with the version of finc-eval as its last field.

        Args:
            metric: name of the metric or method.
            sizes: numbers of samples; None if a number is not known.
            space: extractor of the embeddings.
            fields: settings, as (name, value) pairs.
        """
        n = "/".join("?" if size is None else str(size) for size in sizes)
        return cls(metric, (("n", n), ("fx", space), *fields, ("v", package_version())))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read the text that `str` wrote.

        Raises:
            DataError: the text is not of the form metric|name:value|….
        """
        if not isinstance(text, str):
            raise DataError(f"{text!r:.100} is not a signature: it is not a text")
        if CONTROLS.search(text) or "\n" in text:
            raise DataError(f"{text!r} is not a signature: it has control characters")
        metric, *parts = text.split("|")
        pairs = [part.partition(":")[::2] for part in parts]
        if not metric or not all(":" in part for part in parts):
            raise DataError(f"{text!r} is not a signature of the form metric|name:value|…")
        return cls(metric, tuple((name, value) for name, value in pairs))

    def adding(self, *fields: tuple[str, str]) -> Signature:
        """Return the signature with more fields, before the version of finc-eval."""
        own = [field for field in self.fields if field[0] != "v"]
        return Signature(self.metric, (*own, *fields, *self.fields[len(own) :]))

    @property
    def space(self) -> str:
        """Extractor of the embeddings, as name@digest; "?" if it is not known."""
        return dict(self.fields).get("fx", "?")

    def differences(self, other: Signature) -> list[str]:
        """Return one line per field that differs, such as "sigma: 8.9 and 10"."""
        mine, others = dict(self.fields, metric=self.metric), dict(other.fields, metric=other.metric)
        return [
            f"{name}: {mine.get(name, 'none')} and {others.get(name, 'none')}"
            for name in dict.fromkeys([*mine, *others])
            if mine.get(name) != others.get(name)
        ]

    def check_comparable(self, other: Signature, ignored: tuple[str, ...] = ()) -> None:
        """Refuse to rank two results whose signatures differ in anything but the ignored fields."""
        unlike = [line for line in self.differences(other) if line.split(":", 1)[0] not in ignored]
        if unlike:
            raise IncompatibleError(f"these results do not compare: {'; '.join(unlike)}")


def _escaped(text: str) -> str:
    """Return a text as a signature has it: on one line, and without the sign between fields."""
    return one_line(text).replace("|", "%7C")


SignatureText = Annotated[
    Signature,
    PlainValidator(lambda value: value if isinstance(value, Signature) else Signature.parse(value)),
    PlainSerializer(str),
    WithJsonSchema({"type": "string"}),
]
"""A signature that is text in JSON: the type of a field of a record."""
