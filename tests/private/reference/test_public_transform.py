"""The transform of a release: fitted on public records, or of constants."""

import numpy as np
import pytest
import torch
from _private import sketch_of

from finc_eval.core.errors import FincEvalError
from finc_eval.privacy import PrivateSketch, PublicTransform, release_sketch

pytestmark = pytest.mark.usefixtures("seeded_noise")


def test_a_transform_fitted_on_the_private_records_is_refused(sets):
    public, private, *_ = sets
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(private[:300], private[:300])
    with pytest.raises(FincEvalError, match=r"100 of the 300 private records are also in the public set"):
        sketch_of(private[:300], np.concatenate([public[:200], private[:100]]))
    with pytest.raises(TypeError, match="public"):
        release_sketch(private, epsilon=1.0, ledger=None)


def test_a_transform_says_what_it_was_fitted_on_after_it_was_stored(sets, tmp_path):
    public, private, *_ = sets
    sketch_of(private, public).save(tmp_path / "s.h5")
    with pytest.raises(FincEvalError, match="fitted on the private set itself"):
        sketch_of(public, PrivateSketch.load(tmp_path / "s.h5"))


def test_principal_axes_are_whitened_or_not(sets):
    public = sets[0]
    transform = PublicTransform.fit(public, 5)
    images = transform(torch.from_numpy(public))
    inside = images.norm(dim=1) < transform.radius * (1 - 1e-9)  # the others are on the sphere, up to rounding
    assert inside.float().mean() == pytest.approx(0.99, abs=0.002)
    assert images.var(0).numpy() == pytest.approx(np.ones(5), abs=0.1)
    plain = PublicTransform.fit(public, 5, whiten=False)
    assert (plain.axes.T @ plain.axes).numpy() == pytest.approx(np.eye(5), abs=1e-10)
    variances = plain(torch.from_numpy(public)).var(0)
    assert (variances[:-1] > variances[1:]).all()


def test_constants_give_the_same_transform_for_the_same_seed():
    one, same, other = (PublicTransform.constant(50, 7, length_scale=1, radius=2, seed=seed) for seed in (3, 3, 4))
    assert one.digest == same.digest != other.digest
    assert (one.axes.T @ one.axes).numpy() == pytest.approx(np.eye(7), abs=1e-12)
    images = one(torch.from_numpy(np.random.default_rng(0).normal(size=(9, 50)) * 100))
    assert images.norm(dim=1).numpy() == pytest.approx(np.full(9, 2.0))
