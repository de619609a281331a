"""Pairs of an over- and an under-represented mode that show one kind of sample, which looks different in two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from finc_eval.naming.evidence import TRAIT, Name

NEIGHBORS = 10
"""Nearest samples of the other set that are looked at for each member."""

LIFT = 3.0
"""Times as often as by chance that members of linked modes are near each other; on digits that were slanted, blurred
or thickened in one set, all pairs beyond 3 were of one digit, and pairs of two digits reached 1.3."""


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
            same = same_value(names[i], names[j])
            if same is not False:
                lift = min(
                    nearness(members[i], members[j], others["ref"]), nearness(members[j], members[i], others["gen"])
                )
                lifts[i, j] = lifts[j, i] = lift if same is None else LIFT + lift
    return [int(row.argmax()) if len(row) and row.max() >= LIFT else None for row in lifts]


def same_value(one: Name, other: Name) -> bool | None:
    """Return whether the strongest values of the first common source of two names are the same; None without one."""
    strongest = [{e.source: e.value for e in reversed(name.evidence) if e.source != TRAIT} for name in (one, other)]
    shared = next((source for source in strongest[0] if source in strongest[1]), None)
    return None if shared is None else strongest[0][shared] == strongest[1][shared]


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
