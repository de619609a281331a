import numpy as np
import torch

from finc_eval.demo import example_sets
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.naming.causes import look_different, same_kind
from finc_eval.naming.evidence import Evidence, Name


def named(value):
    return Name(f"mostly {value} (90 %)", (Evidence("label", value, 0.9, 0.1, 1e-9),))


def links(names, roles, members, others=None):
    """Links of modes with these members, which stand before the other samples of their set."""
    rows = {name: [] for name in ("gen", "ref")}
    indices = []
    for role, mine in zip(roles, members, strict=True):
        own = "gen" if role == "over" else "ref"
        start = sum(map(len, rows[own]))
        rows[own].append(mine)
        indices.append({own: np.arange(start, start + len(mine))})
    sets = {name: ArrayEmbeddings(torch.cat([*rows[name], (others or OTHERS)[name]])) for name in rows}
    return look_different(names, roles, indices, sets)


def kind(center, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.asarray(center) + rng.normal(size=(n, 2))).float()


OTHERS = {name: torch.cat([kind((40, 0), 200, n), kind((0, 40), 200, n)]) for n, name in enumerate(("gen", "ref"))}
UNKNOWN = Name(None)


def test_modes_of_one_label_are_linked_wherever_they_lie():
    members = [kind((0, 0)), kind((90, 0)), kind((0, 1))]
    names = [named("3"), named("3"), named("8")]
    assert links(names, ["over", "under", "under"], members) == [1, 0, None]


def test_classes_that_most_members_share_are_one_kind_in_either_order():
    tusks, elephants, lions = (
        Name(values[0], tuple(Evidence("classifier", value, 0.9, 0.1, 1e-9) for value in values))
        for values in (("tusker", "elephant"), ("elephant", "tusker"), ("lion", "tusker"))
    )
    assert same_kind(tusks, elephants) is True
    assert same_kind(tusks, lions) is False
    assert same_kind(tusks, UNKNOWN) is None
    assert same_kind(tusks, named("3")) is None


def test_modes_that_stand_in_each_others_place_are_linked():
    members = [kind((0, 0)), kind((6, 0)), kind((40, 40))]
    assert links([UNKNOWN] * 3, ["over", "under", "under"], members) == [1, 0, None]


def test_a_mode_whose_kind_the_other_set_has_is_not_linked():
    # The over-represented mode is a part of a kind that the reference has: that is nearer than the mode it lacks.
    members = [kind((40, 3)), kind((0, 0))]
    assert links([UNKNOWN] * 2, ["over", "under"], members) == [None, None]


def test_modes_of_one_role_are_not_linked():
    members = [kind((0, 0)), kind((0, 0), seed=1)]
    assert links([UNKNOWN] * 2, ["over", "over"], members) == [None, None]
    assert links([], [], []) == []


def test_slanted_zeros_stand_in_the_place_of_zeros():
    gen, ref = (torch.from_numpy(rows).float() for rows in example_sets(400))
    # The demo's gen lacks zeros: shifted zeros of the reference stand in their place.
    zeros = ref[torch.cdist(ref, gen).amin(1).argsort(descending=True)[:30]]
    shifted = torch.roll(zeros.reshape(-1, 28, 28), 2, 2).reshape(-1, 784)
    found = links([UNKNOWN] * 2, ["over", "under"], [shifted, zeros], {"gen": gen, "ref": ref})
    assert found == [1, 0]
