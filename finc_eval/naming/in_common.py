"""`in_common`: the words that the names of some kinds share, and no name of the others has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from finc_eval.naming.evidence import TRAIT, Evidence

WORD = re.compile(r"[^\W_]+")


class _Named(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def evidence(self) -> tuple[Evidence, ...]: ...


def in_common(kinds: Sequence[_Named], others: Iterable[_Named]) -> str | None:
    """Return what all names of some kinds have in common: "coloured" of coloured-0 and coloured-9; None for nothing.

    Args:
        kinds: two kinds or more.
        others: kinds of which none may have these words.
    """
    own = [_words(kind) for kind in kinds]
    taken = {word for kind in others for word in _words(kind)}
    shared = [word for word in own[0] if all(word in words for words in own)] if len(own) > 1 else []
    return " ".join(shared) if shared and taken and taken.isdisjoint(shared) else None


def _words(kind: _Named) -> list[str]:
    """Return the words of the values that name a kind, without the traits of its pictures."""
    named = [one.value for one in kind.evidence if one.source != TRAIT and one.value in (kind.name or "")]
    return list(dict.fromkeys(word for value in named for word in WORD.findall(value)))
