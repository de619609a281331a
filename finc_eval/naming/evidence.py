"""Evidence for the name of a mode: properties of its members, each with its shares and its p-value."""

from __future__ import annotations

from dataclasses import dataclass

from finc_eval.core.record import Record

CLASSIFIER, TRAIT = "classifier", "trait"
"""Sources of evidence that are not columns of metadata."""

MOST = 0.5
"""Share of the members that a property must describe to name the mode."""


@dataclass(frozen=True)
class Evidence(Record):
    """One property that the members of a mode, in the set that has more of it, have more often than other samples.

    Attributes:
        source: origin of the property: a column of metadata such as "label" or "prompt"; "classifier" for the classes
            of the extractor's own last layer; "trait" for what the pictures look like.
        value: the property: a value of the column, a word of the prompts, a class, or a comparative ("brighter").
        share_members: share of the members that have it.
        share_others: share of the other samples of all sets that have it; of a trait, of the same set.
        p_value: p-value of "members have it no more often than others", adjusted for everything that was asked of all
            modes (Holm).
    """

    source: str
    value: str
    share_members: float
    share_others: float
    p_value: float


@dataclass(frozen=True)
class Name(Record):
    """Name of a mode and what supports it.

    Attributes:
        text: the name, such as "mostly 3 (94 %), brighter"; None if nothing describes most of the members.
        evidence: all significant properties of the members, in the order of the sources, the strongest first.
    """

    text: str | None
    evidence: tuple[Evidence, ...] = ()
