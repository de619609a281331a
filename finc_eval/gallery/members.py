"""Members of kinds, looks and directions, and the fold of a card that shows them: small pictures, and ids to copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from finc_eval.core.words import join_words
from finc_eval.gallery.thumbnails import spread_evenly

FOLDED_PICTURES = 400
"""Small pictures in all folds of a page. Photographs have 650 bytes each in the page, 260 kB in all. Of sets of 200
photographs of 500 pixels they take 1.1 of 24 CPU seconds of a comparison."""

KEPT_OF_IT = "The samples that the result keeps of it, the most typical first."  # described members of a finding

CARD_IDS = 500  # ids of each set in the fold of a card; a map has 4 000 in all


class Members(NamedTuple):
    """Samples of a kind, a look or a direction."""

    id: str  # of the kind, look or direction
    title: str
    described: str  # which samples of it these are, as a sentence
    ids: Mapping[str, Sequence[str]]  # by set, from typical to odd
    counts: Mapping[str, int] | None = None  # members in each set; None where that is an estimate
    are_members: bool = True  # a direction keeps its most typical samples, members or not, and no card folds these


class Fold(NamedTuple):
    """Members as a card has them folded."""

    summary: str  # words of the fold
    described: str  # which samples these are, and how many of them are shown, in sentences
    ids: Mapping[str, Sequence[str]]  # by the title of their set
    pictured: Mapping[str, tuple[str, Sequence[str]]]  # samples with a small picture: label of the set, and ids


def fold_members(
    lists: Iterable[Members], titles: Mapping[str, str], pictures: int = FOLDED_PICTURES
) -> dict[str, Fold]:
    """Return the fold of each card, by the id of its kind, look or direction; the first get the pictures of the page.

    Args:
        lists: members, those of the most important card first.
        titles: name of each set, by its label.
        pictures: pictures in all folds together.

    Example:
        >>> from finc_eval.gallery.members import Members, fold_members
        >>> folds = fold_members([Members("k1", "grey", "", {"gen": ["a", "b"]}, {"gen": 2})], {"gen": "new"}, 1)
        >>> folds["k1"].summary, folds["k1"].pictured
        ('All members: 2 of new', {'new': ('gen', ('a',))})
    """
    folds = {}
    for members in lists:
        if not members.are_members:
            continue
        ids = {label: tuple(names[:CARD_IDS]) for label, names in members.ids.items() if label in titles and names}
        shown = {}
        for label, names in ids.items():
            # 60: small pictures of each set in the fold of a card.
            places = spread_evenly(len(names), min(len(names), 60, pictures)).tolist()
            shown[titles[label]] = (label, tuple(names[place] for place in places))
            pictures -= len(places)
        if ids:
            known = {titles[label]: names for label, names in ids.items()}
            folds[members.id] = Fold(_summary(members, ids, titles), _described(members, known, shown), known, shown)
    return folds


def count_ids(members: Members) -> dict[str, int]:
    """Return how many members are listed, by set."""
    return {label: len(names) for label, names in members.ids.items()}


def pictured_ids(folds: Mapping[str, Fold]) -> dict[str, list[str]]:
    """Return the ids of the samples that folds have small pictures of, by the label of their set."""
    small: dict[str, list[str]] = {}
    for fold in folds.values():
        for label, ids in fold.pictured.values():
            small.setdefault(label, []).extend(ids)
    return small


def _summary(members: Members, ids: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> str:
    """Return how many members a fold has, of how many in each set."""
    counts = members.counts or {}
    are_all = bool(counts) and all(len(ids.get(label, ())) == counts.get(label, 0) for label in titles)
    parts = [
        f"{len(names):,}{'' if are_all or label not in counts else f' of its {counts[label]:,}'} of {titles[label]}"
        for label, names in ids.items()
    ]
    return f"{'All members' if are_all else 'Members'}: {join_words(parts)}"


def _described(
    members: Members, ids: Mapping[str, Sequence[str]], shown: Mapping[str, tuple[str, Sequence[str]]]
) -> str:
    """Return which samples a fold has, and for how many of them it has a small picture, if not for all."""
    pictured = sum(len(names) for _, names in shown.values())
    if pictured == sum(map(len, ids.values())):
        return members.described
    few = f"{pictured:,} of them are shown, spread evenly" if pictured else "None of them is shown"
    return f"{members.described} {few}: all cards of a page have {FOLDED_PICTURES} of these pictures together."
