"""A set is opened once, by its form; what it holds, what was given and its description follow from that."""

from collections import Counter

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import DataError, UsageError
from finc_eval.embeddings import opening
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.opening import OF_EMBEDDINGS, as_embeddings, form_of, open_embeddings, open_sets
from finc_eval.embeddings.set_info import set_info
from finc_eval.measures.gaussians.opened import OF_METRICS, gaussian_statistics, open_set
from finc_eval.partitions.counts import openers_of
from finc_eval.samples import opening as opening_of_samples


def rows(seed, n=40):
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def pictures(seed, n=30):
    return np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)


def sketch_of(seed):
    return fe.Sketch.reference(rows(seed), features=20)


FORMS = {
    "array": (lambda folder, seed: rows(seed), "embeddings"),
    "tensor": (lambda folder, seed: torch.from_numpy(rows(seed)), "embeddings"),
    "list of rows": (lambda folder, seed: rows(seed).tolist(), "embeddings"),
    "set": (lambda folder, seed: fe.EmbeddingSet(rows(seed)), "embeddings"),
    "npy": (lambda folder, seed: stored(folder / f"{seed}.npy", rows(seed)), "embeddings"),
    "cache": (lambda folder, seed: fe.extract(pictures(seed), "pixels", out=folder / f"{seed}.h5").path, "embeddings"),
    "images": (lambda folder, seed: pictures(seed), "samples"),
    "list of images": (lambda folder, seed: list(pictures(seed)), "samples"),
    "npz of images": (lambda folder, seed: stored(folder / f"{seed}.npz", pictures(seed)), "samples"),
    "sketch": (lambda folder, seed: sketch_of(0), "sketch"),
    "file of a sketch": (lambda folder, seed: saved(sketch_of(0), folder / f"{seed}.h5"), "sketch"),
}
"""By name of a form: a function of a folder and a seed that makes such a set, and what `form_of` returns."""


def stored(path, array):
    np.save(path, array) if path.suffix == ".npy" else np.savez(path, array)
    return str(path)


def saved(sketch, path):
    sketch.save(path)
    return path


@pytest.fixture
def asked(monkeypatch):
    """Count the calls of `form_of` by the identity of the set."""
    counted = Counter()

    def counting(source):
        counted[id(source)] += 1
        return form_of(source)

    monkeypatch.setattr(opening, "form_of", counting)
    return counted


@pytest.mark.one_of_each(by=lambda form: FORMS[form][1])
@pytest.mark.parametrize("form", FORMS)
def test_a_comparison_asks_each_set_once_for_its_form(asked, tmp_path, form):
    make, _ = FORMS[form]
    gen, ref = (make(tmp_path, seed) for seed in (1, 2))
    fe.compare(gen, ref, features=20, extractor="pixels" if "images" in form else None)
    assert asked[id(gen)] == asked[id(ref)] == 1


@pytest.mark.parametrize("form", FORMS)
def test_an_opened_set_knows_what_was_given_and_its_form(tmp_path, form):
    make, expected = FORMS[form]
    given = make(tmp_path, 1)
    opened = open_sets({"gen": given}, openers_of(), "pixels" if expected == "samples" else None, fe.Run())["gen"]
    assert opened.given is given and opened.form == expected == form_of(given) and opened.label == "gen"
    assert opened.as_embedded is (opened.held if expected == "samples" else given)
    assert (opened.embeddings is None) == (expected == "sketch") == (opened.stand_in is not None)
    assert opened.at_hand.n == (30 if "images" in form or form == "cache" else 40)
    assert opened.space == opened.held.space == opened.at_hand.space


def test_rows_take_the_place_of_embeddings_and_stand_for_a_sketch():
    sketch = sketch_of(0)
    sets = open_sets({"gen": rows(1), "ref": sketch}, openers_of(), None, fe.Run())
    grouped = {
        label: held.with_groups(np.arange(40, dtype=np.uint64) // 2, "pair") for label, held in sets.at_hand.items()
    }
    changed = sets.with_rows(grouped)
    assert changed["gen"].held is grouped["gen"] and changed["ref"].held is sketch
    assert changed.at_hand == grouped and sets["gen"].at_hand.grouping is None
    assert changed.infos == sets.infos and changed.infos["ref"].from_sketch and not changed.infos["gen"].from_sketch
    assert changed["gen"].given is sets["gen"].given
    assert sets.with_rows({"gen": grouped["gen"]})["ref"] is sets["ref"]


def test_parts_are_passed_on_as_if_they_were_given_and_described_as_the_whole():
    sets = open_sets({"gen": rows(1), "ref": rows(2)}, openers_of(), None, fe.Run())
    part = as_embeddings(rows(1)[:20])
    narrowed = sets.narrowed({"gen": part})
    assert [*narrowed] == ["gen"] and narrowed["gen"].as_embedded is part
    assert narrowed.infos["gen"] == sets.infos["gen"]
    assert [*sets.chosen(["ref"])] == ["ref"] and sets.embeddings == sets.held == sets.known


def test_a_verb_takes_the_forms_of_its_table():
    statistics = gaussian_statistics(rows(1))
    assert open_sets({"gen": statistics}, OF_METRICS, None, fe.Run())["gen"].held is statistics
    assert open_set(statistics, "gen") is statistics and isinstance(open_set(rows(1), "gen"), Embeddings)
    assert open_set(sketch_of(0), "gen").n == 40
    for given in (statistics, sketch_of(0)):
        with pytest.raises(DataError, match="gen is"):
            open_embeddings({"gen": given}, None, fe.Run())


def test_sums_without_samples_say_so():
    with pytest.raises(DataError, match="gen holds a mean and a covariance, and no samples"):
        OpenedSet("gen", gaussian_statistics(rows(1))).at_hand  # noqa: B018
    with pytest.raises(DataError, match="gen is a sketch that keeps no samples"):
        OpenedSet("gen", fe.Sketch(sketch_of(0).feature_map, sample=0)).at_hand  # noqa: B018


def test_the_description_of_a_set_is_that_of_its_embeddings():
    embeddings = as_embeddings(rows(1), "gen")
    assert OpenedSet("gen", embeddings).info() == set_info("gen", embeddings, 40, embeddings.digest)
    assert Sets({"gen": OpenedSet("gen", embeddings)}).space == embeddings.space


def test_each_form_has_an_opener():
    assert {*OF_EMBEDDINGS} == {*OF_METRICS} == {*openers_of()} == {"embeddings", "sketch", "statistics"}
    assert (
        {*opening_of_samples._OF_CLIPS} <= {*opening_of_samples._OPENERS} == {*opening_of_samples.SamplesForm.__args__}
    )


@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_not_the_current_folder(path):
    with pytest.raises(UsageError, match="ref is an empty path"):
        fe.compare(rows(0), path)
    with pytest.raises(UsageError, match="gen is an empty path"):
        fe.compare(path, rows(0))
