"""Captions of samples: their metadata and the nearest reference sample, kept in the file."""

import numpy as np
import pytest
from _pages import HOSTILE, OVER, Page, a_comparison, a_mode, a_tail, noise

from finc_eval.comparison.compare import compare
from finc_eval.comparison.pages.comparison import page
from finc_eval.comparison.result import Comparison
from finc_eval.core.run import Run
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.gallery.pictured import MAX_LENGTH, Caption, captions_of
from finc_eval.gallery.thumbnails import thumbnail


def sets():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    prompts = ["", "x" * 10_000, *(f"prompt {i}" for i in range(48))]
    gen = EmbeddingSet(rows, ids=[f"g{i}" for i in range(50)], metadata={"label": range(50), "prompt": prompts})
    ref = EmbeddingSet(rows[::-1] + 0.01, ids=[f"r{i}" for i in range(50)], metadata={"label": range(50)})
    return {"gen": gen, "ref": ref}


def test_metadata_and_the_nearest_reference_sample_are_told():
    found = captions_of(sets(), {"gen": ["g0", "g1", "g7"], "ref": ["r3", "gone"]}, Run())
    assert found["gen"]["g0"].lines == ("label: 0", "nearest reference sample: r49, at distance 0.0173")
    assert found["gen"]["g7"].facts == ("label: 7", "prompt: prompt 5") and found["gen"]["g7"].nearest[0] == "r42"
    assert {*found["ref"]} == {"r3", "r49", "r48", "r42"}  # those that are shown, and the nearest ones
    assert found["ref"]["r3"].lines == ("label: 3",)


def test_a_long_prompt_is_cut():
    (_, prompt) = captions_of(sets(), {"gen": ["g1"]}, Run())["gen"]["g1"].facts
    assert prompt == f"prompt: {'x' * MAX_LENGTH}…"


def test_nothing_is_asked_of_a_set_that_shows_nothing():
    assert captions_of(sets(), {}, Run()) == {"gen": {}, "ref": {}}


def test_captions_stay_in_the_file_and_are_lines_under_the_picture(tmp_path):
    kept = {"gen": {"a": thumbnail(noise(1)[0])}, "ref": {}}
    mode = a_mode("over-1", tails=(a_tail(("a",), ()), a_tail((), (), 0.0)))
    made = a_comparison([mode], kept=kept, captions={"gen": {"a": Caption((f"prompt: {HOSTILE}", "label: 3"))}})
    made.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert loaded.captions == made.captions
    found = Page(page(loaded, {}))
    assert found.attributes(found.find("img", inside=found.section(mode))[0])["title"] == (
        f"a, score 0.900\nprompt: {HOSTILE}\nlabel: 3"
    )


def test_without_pictures_the_file_keeps_no_captions(tmp_path):
    a_comparison([OVER], captions={"gen": {"0": Caption(("label: 3",))}}).showing(0).save(tmp_path / "c.h5")
    assert Comparison.load(tmp_path / "c.h5").captions == {"gen": {}}


def nearest_known():
    """A mode of two generated samples whose nearest reference samples are "far" and "z", which the mode has not."""
    edge = thumbnail(noise(1, 1)[0])
    kept = {"gen": dict.fromkeys("ab", edge), "ref": {"far": thumbnail(noise(2, 1)[0]), "z": edge, "r": edge}}
    captions = {
        "gen": {"a": Caption((), ("far", 0.5)), "b": Caption((), ("z", 0.25))},
        "ref": {"far": Caption(("label: 7",))},
    }
    mode = a_mode("over-1", tails=(a_tail(("a", "b"), ("r",)), a_tail((), (), 0.0)))
    return a_comparison([mode], kept=kept, captions=captions), mode


def test_the_nearest_reference_samples_of_the_typical_ones_are_pictures_on_the_page_and_in_the_file(tmp_path):
    made, mode = nearest_known()
    made.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert made.nearest(mode) == loaded.nearest(loaded.over[0]) == ("far", "z")
    assert loaded.gallery.pictures["ref"].keys() == {"far", "z", "r"}
    found = Page(page(loaded, {}))
    (near,) = found.find("figure", "ref", found.find("details", inside=found.section(mode))[0])
    shown = [found.attributes(n) for n in found.find("img", inside=near)]
    assert [one["data-id"] for one in shown] == ["far", "z"] and shown[0]["title"] == "far\nlabel: 7"
    own = found.attributes(found.find("img", inside=found.section(mode))[0])
    assert own["data-near"] == "far" and "nearest reference sample: far, at distance 0.5" in own["title"]


@pytest.mark.long
def test_more_pictures_than_by_default_have_captions_too():
    ids = [f"{row}" for row in range(120)]
    rows = np.random.default_rng(0).normal(size=(2, 120, 4)).astype(np.float32)
    rows[0, :60] += 6
    images = noise(3, 120, 8)
    gen, ref = (EmbeddingSet(one, ids=ids, images=images) for one in rows)
    found = compare(gen, ref, features=50, modes=1).showing(MAX_SHOWN)
    assert {*found.shown_ids("gen")} <= found.captions["gen"].keys()
    assert len(found.nearest(found.over[0])) == MAX_SHOWN // 2
