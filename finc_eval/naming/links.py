"""Pairs of an over- and an under-represented mode that show one kind of sample, which looks different in two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.naming.evidence import MOST, TRAIT, Name
from finc_eval.naming.panel import OTHERS_PER_SET, Described, Indices, smallest_hashes

OWN, OTHER = {"over": "gen", "under": "ref"}, {"over": "ref", "under": "gen"}
"""The set that has more of a mode of each role, and the one that has less."""

NEIGHBORS = 10
"""Nearest samples of the other set that are looked at for each member."""

LIFT = 3.0
"""Times as often as by chance that members of linked modes are near each other.

Chosen on four draws of digits, one of which was slanted, blurred or thickened in gen. In ten other draws, 17 of 19
linked pairs were of one digit, and the altered digit was linked in 8."""


def look_different(
    names: Sequence[Name],
    roles: Sequence[str],
    members: Sequence[Mapping[str, Indices]],
    sets: Mapping[str, Described],
) -> list[int | None]:
    """Link over- and under-represented modes that show the same kind of sample.

    Two modes show one kind if the strongest label, word or class of each describes most members of the other. If
    these do not decide, two modes show one kind if each is what the other set has instead of the other: of the samples
    of the other set that are nearest to the members of one mode, the members of the other mode are three times as many
    as by chance, both ways.

    Args:
        names: names of the modes.
        roles: "over" or "under" for each mode.
        members: for each mode, indices of its members; those in the set that has more of it are used.
        sets: "gen" and "ref".

    Returns:
        For each mode, the number of the mode of the other role that is linked with it; None if there is none.
    """
    own = [np.asarray(mode.get(OWN[role], ()), np.int64) for role, mode in zip(roles, members, strict=True)]
    lifts = place_lifts(roles, own, sets)
    for i, j in product(range(len(names)), repeat=2):
        if roles[i] != roles[j] and (same := same_kind(names[i], names[j])) is not None:
            lifts[i, j] = LIFT + lifts[i, j] if same else 0
    return [int(row.argmax()) if row.max() >= LIFT else None for row in lifts]


def place_lifts(roles: Sequence[str], own: Sequence[Indices], sets: Mapping[str, Described]) -> NDArray[np.float64]:
    """Compute how much more often than by chance modes of unlike roles stand in each other's place.

    Args:
        roles: "over" or "under" for each mode.
        own: indices of the members of each mode in the set that has more of it.
        sets: "gen" and "ref".

    Returns:
        The smaller lift of the two directions, shape (modes, modes); 0 for modes of one role.
    """
    pools = {
        name: np.unique(np.append(smallest_hashes(one, OTHERS_PER_SET), _gather(roles, own, name)))
        for name, one in sets.items()
    }
    rows = {name: sets[name].rows_at(pool) for name, pool in pools.items()}
    lifts = np.zeros((len(own), len(own)))
    for i, role in enumerate(roles):
        own_rows = rows[OWN[role]]
        mine = own_rows[torch.from_numpy(np.searchsorted(pools[OWN[role]], own[i])).to(own_rows.device)]
        pool = pools[OTHER[role]]
        distances = torch.cdist(mine, rows[OTHER[role]])
        nearest = pool[distances.topk(min(NEIGHBORS, len(pool)), largest=False).indices.cpu().numpy()]
        for j in range(len(own)):
            if roles[j] != role and len(own[i]) and len(own[j]):
                lifts[i, j] = np.isin(nearest, own[j]).mean() * len(pool) / len(own[j])
    return np.minimum(lifts, lifts.T)


def _gather(roles: Sequence[str], own: Sequence[Indices], name: str) -> Indices:
    return np.concatenate(
        [np.empty(0, np.int64), *(mine for role, mine in zip(roles, own, strict=True) if OWN[role] == name)]
    )


def same_kind(one: Name, other: Name) -> bool | None:
    """Return whether the first source that names both modes says the same of them; None without such a source.

    The strongest value of each must describe most members of the other too: classes such as tusker and African elephant
    come in either order.
    """
    values, others = _values_of_most(one), _values_of_most(other)
    shared = next((source for source in values if values[source] and others.get(source)), None)
    return None if shared is None else values[shared][0] in others[shared] and others[shared][0] in values[shared]


def _values_of_most(name: Name) -> dict[str, list[str]]:
    """Return, by source, the values that most members have, the strongest first; traits are left out."""
    found: dict[str, list[str]] = {}
    for one in name.evidence:
        if one.source != TRAIT:
            found.setdefault(one.source, []).extend([one.value] if one.share_members >= MOST else [])
    return found
