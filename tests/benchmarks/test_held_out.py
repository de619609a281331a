from pathlib import Path

import pytest


@pytest.fixture
def held_out(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import held_out

    return held_out


@pytest.mark.long
def test_the_held_out_actions_of_real_clips_are_found(held_out, assets):
    _, planted = held_out.clips(assets / "ucf101" / "vgg16_relu6_mean.npz")
    assert len(planted) == 5
    assert sum(one.kind is not None for one in planted) >= 4
    assert all(one.share_ref == 0 for one in planted)
