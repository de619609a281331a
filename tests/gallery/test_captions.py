"""Captions of samples: their metadata and the nearest reference sample, kept in the file."""

import numpy as np
from _pages import HOSTILE, OVER, Page, a_comparison, a_mode, a_tail, noise

from finc_eval.comparison.result import Comparison
from finc_eval.core.run import Run
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.gallery.captions import MAX_LENGTH, captions_of
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.report.comparison import page


def sets():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    prompts = ["", "x" * 10_000, *(f"prompt {i}" for i in range(48))]
    gen = EmbeddingSet(rows, ids=[f"g{i}" for i in range(50)], metadata={"label": range(50), "prompt": prompts})
    ref = EmbeddingSet(rows[::-1] + 0.01, ids=[f"r{i}" for i in range(50)])
    return {"gen": gen, "ref": ref}


def test_metadata_and_the_nearest_reference_sample_are_told():
    found = captions_of(sets(), {"gen": ["g0", "g1", "g7"], "ref": ["r3", "gone"]}, Run())
    assert found["gen"]["g0"] == ("label: 0", "nearest reference sample: r49, at distance 0.0173")
    assert found["gen"]["g7"][:2] == ("label: 7", "prompt: prompt 5") and "r42" in found["gen"]["g7"][2]
    assert found["ref"] == {"r3": ()}


def test_a_long_prompt_is_cut():
    (_, prompt, _) = captions_of(sets(), {"gen": ["g1"]}, Run())["gen"]["g1"]
    assert prompt == f"prompt: {'x' * MAX_LENGTH}…"


def test_nothing_is_asked_of_a_set_that_shows_nothing():
    assert captions_of(sets(), {}, Run()) == {"gen": {}, "ref": {}}


def test_captions_stay_in_the_file_and_are_lines_under_the_picture(tmp_path):
    kept = {"gen": {"a": thumbnail(noise(1)[0])}, "ref": {}}
    mode = a_mode("over-1", tails=(a_tail(("a",), ()), a_tail((), (), 0.0)))
    made = a_comparison([mode], kept=kept, captions={"gen": {"a": (f"prompt: {HOSTILE}", "label: 3")}})
    made.save(tmp_path / "c.h5")
    loaded = Comparison.load(tmp_path / "c.h5")
    assert loaded.captions == made.captions
    found = Page(page(loaded, {}))
    assert found.attributes(found.find("img", inside=found.section(mode))[0])["title"] == (
        f"a, score 0.900\nprompt: {HOSTILE}\nlabel: 3"
    )


def test_without_pictures_the_file_keeps_no_captions(tmp_path):
    a_comparison([OVER], captions={"gen": {"0": ("label: 3",)}}).showing(0).save(tmp_path / "c.h5")
    assert Comparison.load(tmp_path / "c.h5").captions == {}
