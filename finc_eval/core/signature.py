"""Signatures: one line that pins everything that changes a number, after sacrebleu's."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.errors import FincEvalError

SHORT = {
    "n": "#",
    "fx": "f",
    "ref": "y",
    "kernel": "kn",
    "sigma": "s",
    "omega": "o",
    "modes": "m",
    "rotation": "rot",
    "neighbours": "k",
    "convention": "c",
    "subsets": "sub",
    "splits": "sp",
    "order": "q",
    "seed": "sd",
}
"""Names of fields in the short form; all others are as they are."""

LONG = {short: name for name, short in SHORT.items()}


@dataclass(frozen=True)
class Signature:
    """A metric and the settings it was computed with; results compare only where signatures agree.

    Attributes:
        metric: such as "finc".
        fields: (name, value) pairs in a fixed order; names and values are free of "|", names of ":".
    """

    metric: str
    fields: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "|".join([self.metric, *(f"{name}:{value}" for name, value in self.fields)])

    @property
    def short(self) -> str:
        """The same with short names, for tables; `parse` reads it, too."""
        return "|".join([self.metric, *(f"{SHORT.get(name, name)}:{value}" for name, value in self.fields)])

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that `str` or `short` wrote.

        Raises:
            FincEvalError: when the text is not of the form metric|name:value|….
        """
        metric, *parts = text.split("|")
        pairs = [tuple(part.split(":", 1)) for part in parts]
        if not metric or any(len(pair) != 2 for pair in pairs):
            raise FincEvalError(f"{text!r} is no signature of the form metric|name:value|…")
        return cls(metric, tuple((LONG.get(pair[0], pair[0]), pair[1]) for pair in pairs))

    def differences(self, other: Signature) -> list[str]:
        """One line per field that differs, such as "sigma: 8.9 and 10"; empty when the results compare."""
        mine, others = dict(self.fields, metric=self.metric), dict(other.fields, metric=other.metric)
        return [
            f"{name}: {mine.get(name, 'none')} and {others.get(name, 'none')}"
            for name in dict.fromkeys([*mine, *others])
            if mine.get(name) != others.get(name)
        ]

    def check_comparable(self, other: Signature, ignored: tuple[str, ...] = ()) -> None:
        """Refuse to rank two results whose signatures differ in anything but the ignored fields.

        Raises:
            FincEvalError: they differ; the message says in what.
        """
        unlike = [line for line in self.differences(other) if line.split(":", 1)[0] not in ignored]
        if unlike:
            raise FincEvalError(f"these results do not compare: {'; '.join(unlike)}")
