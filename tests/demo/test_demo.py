from functools import partial

import numpy as np
import pytest
from _pages import a_kind
from PIL import Image

import finc_eval as fe
from finc_eval.cli.verbs.demo import print_planted
from finc_eval.core.errors import UsageError
from finc_eval.demo.planted import COPIES, RARE_DIGIT, planted_sets, shipped_digits
from finc_eval.demo.run import find_planted, run_demo, shares_of
from finc_eval.naming.looks import REPEAT


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


@pytest.mark.long
def test_a_forced_demo_replaces_files_of_others(tmp_path, monkeypatch):
    few = [type(made)(made.images[:50], made.kinds[:50]) for made in planted_sets()]
    monkeypatch.setattr("finc_eval.demo.run.planted_sets", lambda: few)
    (tmp_path / "gen.h5").write_bytes(b"notes")
    with pytest.raises(UsageError, match=r"gen\.h5 already exists and is not a finc-eval embedding cache"):
        run_demo(tmp_path, fe.compare)
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, fe.compare, fe.Run(progress=stop_at_the_sketch), force=True)
    assert fe.EmbeddingCache(tmp_path / "gen.h5").n == 50


def stop_at_the_sketch(stage, done, total):
    if "sketch" in stage:
        raise KeyboardInterrupt


def few_planted():
    """A seventh of the digits of both sets, and all copies."""
    gen, ref = planted_sets()
    texts = [[image.tobytes() for image in one.images] for one in (gen, ref)]
    both = set(texts[0]) & set(texts[1])
    parts = [[place for place, text in enumerate(one) if place % 7 == 0 or text in both] for one in texts]
    return [
        type(one)(one.images[part], [one.kinds[i] for i in part]) for one, part in zip((gen, ref), parts, strict=True)
    ]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    ("least", "p", "recall", "error"),
    [(5, 0.05, 0.4, 0.04), pytest.param(11, 1e-6, 0.8, 0.015, marks=pytest.mark.long)],
    ids=["a seventh", "all digits"],
)
def test_the_demo_finds_what_was_planted(least, p, recall, error, tmp_path, monkeypatch, capsys):
    if least < 11:
        few = few_planted()
        monkeypatch.setattr("finc_eval.demo.run.planted_sets", lambda: few)
    digits = run_demo(tmp_path / "demo", partial(fe.compare, features=30, modes=2) if least < 11 else fe.compare)
    found = [planted for planted in digits.planted if planted.kind]
    assert len(digits.planted) == 11 and len({planted.kind.id for planted in found}) == len(found) >= least
    for planted in found:
        assert planted.kind.p_value < p and planted.purity > 0.8 and planted.recall > recall
        assert planted.kind.share_gen == pytest.approx(planted.share_gen, abs=error)
        assert planted.kind.share_ref == pytest.approx(planted.share_ref, abs=error)
    colored, rare = [planted for planted in found if planted is not digits.planted[10]], digits.planted[10]
    assert all(planted.kind.share_ref < 0.002 and planted.kind.share_difference > 0.02 for planted in colored)
    # Of all digits, those that were blurred lack in other kinds, too: the rare digit need not lack most.
    assert least < 11 or (rare.kind.share_difference < -0.02 and digits.comparison.headings)
    assert sum(kind.share_gen for kind in digits.comparison.kinds) == pytest.approx(1)
    copies = digits.comparison.copies
    assert copies.count == len(copies.examples) == COPIES
    for gen_id, ref_id in copies.examples:
        pair = (tmp_path / "demo" / "samples" / name for name in (f"gen/{gen_id}", f"ref/{ref_id}"))
        assert len({np.asarray(Image.open(path)).tobytes() for path in pair}) == 1
    assert digits.report.read_text(encoding="utf-8").count("data:image/") > 100
    seen = {one.look.trait: one for one in digits.looks if one.look}
    assert "gray" in seen and (least < 11 or {"sharpness", REPEAT} < {*seen})
    for planted in seen.values():
        assert least < 11 or planted.look.share_gen == pytest.approx(planted.share, abs=0.03)
        assert planted.look.share_ref < 0.06
    print_planted(digits)
    printed = capsys.readouterr().out
    assert f"{COPIES} images" in printed and f"{len(found) + len(seen)} of 14 planted differences are found" in printed


def test_of_kinds_that_show_a_planted_one_the_most_alike_is_told():
    kinds = [a_kind("all"), a_kind("most of it"), a_kind("a few"), a_kind("empty")]
    names = ["a"] * 60 + ["b"] * 40
    places = np.repeat([1, 2, -1, 0], [50, 6, 4, 40])  # "all" has b alone
    shares = shares_of(names, ["b"] * 10)
    planted = find_planted("what", "a", kinds, places, names, shares)
    assert (planted.kind.id, planted.purity, planted.share_gen, planted.share_ref) == ("most of it", 1, 0.6, 0)
    assert planted.recall == pytest.approx(50 / 60)


@pytest.mark.parametrize(("others", "found"), [(12, True), (13, False)])
def test_a_kind_with_too_many_others_does_not_show_a_planted_one(others, found):
    names = ["a"] * 50 + ["b"] * others
    planted = find_planted("what", "a", [a_kind("k")], np.zeros(50 + others, int), names, shares_of(names, ["b"]))
    assert (planted.kind is not None) == found
    assert planted.purity == pytest.approx(50 / (50 + others) if found else 0)


def test_without_kinds_nothing_is_found():
    planted = find_planted("what", "a", [], np.full(3, -1), ["a"] * 3, ({"a": 0.3}, {}))
    assert (planted.kind, planted.share_gen, planted.recall) == (None, 0.3, 0)


@pytest.mark.long  # of the same sets: tests/report/test_prompts_page.py
def test_the_demo_of_prompts_finds_the_three_faults(tmp_path):
    from finc_eval.demo.prompts import FAULTS
    from finc_eval.demo.run import run_prompts_demo

    experiment = run_prompts_demo(tmp_path, fe.compare)
    found, page = experiment.comparison, experiment.report
    assert {one.text for one in found.prompts.words} == set(FAULTS)
    assert page.read_text().count("<img") > 20


@pytest.mark.long  # of other runs: tests/same_ids
def test_the_demo_of_two_runs_lists_the_broken_pairs(tmp_path):
    from finc_eval.demo.run import run_same_seed_demo

    experiment = run_same_seed_demo(tmp_path, fe.compare)
    assert set(experiment.comparison.by_id.broken) == experiment.broken.keys()
    assert experiment.whole.verdict == "broken"
    assert experiment.whole.run.startswith("ids are shifted by 1 ")
    assert 'class="stacked"' in experiment.report.read_text()
