"""Pairs of an over- and an under-represented mode that show one kind of sample, which looks different in two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from finc_eval.naming.evidence import MOST, TRAIT, Name

NEIGHBORS = 10
"""Nearest samples of the other set that are looked at for each member."""

LIFT = 3.0
"""Times as often as by chance that members of linked modes are near each other.

Chosen on four draws of digits, one of which was slanted, blurred or thickened in gen. In ten other draws, 15 of 16
linked pairs were of one digit, and the altered digit was linked in 7."""


def look_different(
    names: Sequence[Name],
    roles: Sequence[str],
    members: Sequence[torch.Tensor],
    others: Mapping[str, torch.Tensor],
) -> list[int | None]:
    """Link over- and under-represented modes that show the same kind of sample.

    Two modes show one kind if their strongest labels, words or classes are the same. Where these do not tell, they do
    if each is what the other set has in place of the other: of the samples of the other set that are nearest to the
    members of one mode, the members of the other mode are three times as many as by chance, both ways.

    Args:
        names: names of the modes.
        roles: "over" or "under" for each mode.
        members: embeddings of the members of each mode in the set that has more of it, shape (m, d).
        others: embeddings of a random sample of each set, "gen" and "ref", shape (n, d).

    Returns:
        For each mode, the number of the mode of the other role that is linked with it; None where there is none.
    """
    lifts = torch.zeros(len(names), len(names))
    for i, over in enumerate(roles):
        for j, under in enumerate(roles):
            if (over, under) != ("over", "under"):
                continue
            same = same_kind(names[i], names[j])
            if same is not False:
                lift = min(
                    nearness(members[i], members[j], others["ref"]), nearness(members[j], members[i], others["gen"])
                )
                lifts[i, j] = lifts[j, i] = lift if same is None else LIFT + lift
    return [int(row.argmax()) if len(row) and row.max() >= LIFT else None for row in lifts]


def same_kind(one: Name, other: Name) -> bool | None:
    """Return whether the first source that names both modes says the same of them; None without such a source.

    The strongest value of each must describe most members of the other too: classes such as tusker and African elephant
    come in either order.
    """
    values, others = ({source: _of_most(name, source) for source in _sources(name)} for name in (one, other))
    shared = next((source for source in values if values[source] and others.get(source)), None)
    return None if shared is None else values[shared][0] in others[shared] and others[shared][0] in values[shared]


def _sources(name: Name) -> list[str]:
    return [source for source in dict.fromkeys(found.source for found in name.evidence) if source != TRAIT]


def _of_most(name: Name, source: str) -> list[str]:
    """Return the values that most members have, the strongest first."""
    return [found.value for found in name.evidence if found.source == source and found.share_members >= MOST]


def nearness(members: torch.Tensor, candidates: torch.Tensor, others: torch.Tensor) -> float:
    """Return how much more often than by chance the nearest samples of another set are the candidates.

    Args:
        members: embeddings of one set, shape (m, d).
        candidates: some embeddings of the other set, shape (c, d).
        others: a random sample of the other set, shape (n, d).
    """
    pool = torch.cat([candidates, others])
    nearest = torch.cdist(members, pool).topk(min(NEIGHBORS, len(pool)), largest=False).indices
    return float((nearest < len(candidates)).double().mean()) * len(pool) / len(candidates)
