"""A private sketch of clips says that a record is a window, and what it promises to a whole video."""

from dataclasses import replace

import pytest

import finc_eval as fe
from finc_eval.private.dp.guarantee import epsilon_of
from finc_eval.private.reference.page import show_sketch


@pytest.fixture(scope="module")
def sketch():
    from finc_eval.demo.planted import example_sets

    gen, ref = example_sets(400)
    return fe.privacy.release_sketch(ref, public=gen, epsilon=1, ledger=None)


@pytest.mark.parametrize(("windows", "epsilon"), [(1, None), (4, 4.75), (8, 10.9)])
def test_a_video_of_k_windows_spends_k_times_mu(sketch, windows, epsilon, capsys):
    (made,) = sketch.releases
    release = replace(made, windows=windows)
    show_sketch("w.sketch.h5", replace(sketch, releases=(release,)))
    shown = capsys.readouterr().out
    assert ("a record is a window" in shown) == (windows > 1)
    if epsilon is not None:
        assert release.of_video.epsilon == pytest.approx(epsilon, rel=0.03)
        assert release.of_video.epsilon == epsilon_of(windows * made.guarantee.mu, made.guarantee.delta)
        assert f"up to {windows} of them. To a whole video: ({release.of_video.epsilon:g}, 1e-05)-DP" in shown


def test_a_sketch_from_before_is_read_and_images_are_records(sketch, tmp_path):
    sketch.save(tmp_path / "w.sketch.h5")
    (again,) = fe.privacy.PrivateSketch.load(tmp_path / "w.sketch.h5").releases
    assert again == sketch.releases[0] and again.windows == 1 and again.of_video is None
