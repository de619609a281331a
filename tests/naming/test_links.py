import numpy as np
import torch

from finc_eval.demo import example_sets
from finc_eval.naming.evidence import Evidence, Name
from finc_eval.naming.links import look_different


def named(value):
    return Name(f"mostly {value} (90 %)", (Evidence("label", value, 0.9, 0.1, 1e-9),))


def kind(center, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.asarray(center) + rng.normal(size=(n, 2))).float()


OTHERS = {
    "gen": torch.cat([kind((40, 0), 200), kind((0, 40), 200)]),
    "ref": torch.cat([kind((40, 0), 200, 1), kind((0, 40), 200, 1)]),
}
UNKNOWN = Name(None)


def test_modes_of_one_label_are_linked_wherever_they_lie():
    members = [kind((0, 0)), kind((90, 0)), kind((0, 1))]
    names = [named("3"), named("3"), named("8")]
    assert look_different(names, ["over", "under", "under"], members, OTHERS) == [1, 0, None]


def test_modes_that_stand_in_each_others_place_are_linked():
    members = [kind((0, 0)), kind((6, 0)), kind((40, 40))]
    assert look_different([UNKNOWN] * 3, ["over", "under", "under"], members, OTHERS) == [1, 0, None]


def test_a_mode_whose_kind_the_other_set_has_is_not_linked():
    # The over-represented mode is a part of a kind that the reference has: that is nearer than the mode it lacks.
    members = [kind((40, 3)), kind((0, 0))]
    assert look_different([UNKNOWN] * 2, ["over", "under"], members, OTHERS) == [None, None]


def test_modes_of_one_role_are_not_linked():
    members = [kind((0, 0)), kind((0, 0), seed=1)]
    assert look_different([UNKNOWN] * 2, ["over", "over"], members, OTHERS) == [None, None]
    assert look_different([], [], [], OTHERS) == []


def test_slanted_zeros_stand_in_the_place_of_zeros():
    gen, ref = (torch.from_numpy(rows).float() for rows in example_sets(400))
    # The demo's gen lacks zeros: shifted zeros of the reference stand in their place.
    zeros = ref[torch.cdist(ref, gen).amin(1).argsort(descending=True)[:30]]
    shifted = torch.roll(zeros.reshape(-1, 28, 28), 2, 2).reshape(-1, 784)
    links = look_different([UNKNOWN] * 2, ["over", "under"], [shifted, zeros], {"gen": gen, "ref": ref})
    assert links == [1, 0]
