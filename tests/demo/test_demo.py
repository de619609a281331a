import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.cli.verbs.demo import print_planted
from finc_eval.core.errors import UsageError
from finc_eval.demo.found import find_planted
from finc_eval.demo.planted import COPIES, RARE_DIGIT, planted_sets, shipped_digits
from finc_eval.demo.run import run_demo


def test_the_shipped_digits_are_four_hundred_of_each_and_all_different():
    images, labels = shipped_digits()
    assert images.shape == (4000, 28, 28) and images.dtype == np.uint8
    assert np.bincount(labels).tolist() == [400] * 10
    assert len({image.tobytes() for image in images}) == 4000


def test_the_sets_differ_as_planted_and_share_only_the_copies():
    gen, ref = planted_sets()
    shared = {image.tobytes() for image in gen.images} & {image.tobytes() for image in ref.images}
    assert len(shared) == COPIES
    assert not any(kind.startswith("coloured") for kind in ref.kinds)
    assert np.mean([kind.startswith("coloured") for kind in gen.kinds]) == pytest.approx(0.52, abs=0.03)
    assert gen.kinds.count(f"grey-{RARE_DIGIT}") < 0.15 * ref.kinds.count(f"grey-{RARE_DIGIT}")


def test_a_forced_demo_replaces_files_of_others(tmp_path, monkeypatch):
    few = [type(made)(made.images[:50], made.kinds[:50]) for made in planted_sets()]
    monkeypatch.setattr("finc_eval.demo.run.planted_sets", lambda: few)
    (tmp_path / "gen.h5").write_bytes(b"notes")
    with pytest.raises(UsageError, match=r"gen\.h5 already exists and is not a finc-eval embedding cache"):
        run_demo(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, fe.Run(progress=stop_at_the_sketch), force=True)
    assert fe.EmbeddingCache(tmp_path / "gen.h5").n == 50


def stop_at_the_sketch(stage, done, total):
    if "sketch" in stage:
        raise KeyboardInterrupt


def test_the_demo_finds_what_was_planted(tmp_path, capsys):
    digits = run_demo(tmp_path / "demo")
    colored, rare = digits.planted[:10], digits.planted[10]
    assert sum(planted.mode is not None for planted in colored) >= 9
    for planted in colored:
        if planted.mode is not None:
            assert planted.mode.p_value < 0.05
            assert planted.mode.ratio > 1.5
            assert planted.recall > 0.5
    assert min(planted.precision for planted in colored) > 0.05 and max(planted.precision for planted in colored) > 0.8
    assert rare.mode is not None
    assert rare.mode.p_value < 1e-6
    assert rare.mode.excess == max(mode.excess for mode in digits.comparison.under)
    copies = digits.comparison.copies
    assert copies.count == len(copies.examples) == COPIES
    for gen_id, ref_id in copies.examples:
        pair = (tmp_path / "demo" / "samples" / name for name in (f"gen/{gen_id}", f"ref/{ref_id}"))
        assert len({np.asarray(Image.open(path)).tobytes() for path in pair}) == 1
    assert digits.report.read_text(encoding="utf-8").count("data:image/") > 100
    print_planted(digits)
    printed = capsys.readouterr().out
    assert f"{COPIES} images" in printed and "of its" in printed
    assert " of 11 planted differences are found" in printed


def test_of_modes_that_show_a_kind_the_one_whose_members_are_it_is_told():
    kinds = ["a"] * 60 + ["b"] * 140
    scores = np.repeat(np.linspace(1, 0, 200)[:, None], 3, 1)  # the best samples are of a, on all modes
    members = np.zeros((200, 3), bool)
    members[:, 0], members[:55, 1], members[:5, 2] = True, True, True
    planted = find_planted("", "a", ["all", "most of it", "a few"], scores, members, kinds, ({"a": 0.3}, {}))
    assert (planted.mode, planted.purity, planted.precision) == ("most of it", 1, 1)
    assert planted.recall == pytest.approx(55 / 60)
    lost = find_planted("", "b", ["all", "most of it", "a few"], scores, members, kinds, ({"b": 0.7}, {}))
    assert (lost.mode, lost.purity) == (None, 0)
    nothing = find_planted("", "a", [], scores[:, :0], members[:, :0], kinds, ({"a": 0.3}, {}))
    assert (nothing.mode, nothing.share_gen, nothing.recall) == (None, 0.3, 0)
