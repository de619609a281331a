"""Warnings of a comparison: broken samples, too few frequencies, and sets that share samples."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.demo import example_sets

FEW = {"features": 40, "modes": 2, "method": fe.Finc(clusters=False)}


@pytest.fixture(scope="module")
def sets():
    return [np.asarray(rows) for rows in example_sets(600)]


def warned(gen, ref, word, **options):
    return [note for note in fe.compare(gen, ref, **(FEW | options)).warnings if word in note]


@pytest.mark.one_of_each
@pytest.mark.parametrize("place", [0, 1])
def test_a_sample_far_from_all_others_is_named_and_harms_no_other(sets, place):
    few = [rows[:120] for rows in sets]
    broken = [rows.copy() for rows in few]
    broken[place][3] = 1e15
    found = fe.compare(*broken, **FEW)
    (note,) = [note for note in found.warnings if "broken" in note]
    assert note.startswith(f"{('gen', 'ref')[place]} has 1 sample more than 100 times as far from its middle")
    assert "'3'" in note
    assert found.kernel_error.rms == pytest.approx(fe.compare(*few, **FEW).kernel_error.rms, rel=0.1)


@pytest.mark.long
def test_sets_as_they_are_have_no_far_samples(sets):
    assert not warned(*sets, "broken")
    spread = sets[0] * np.random.default_rng(0).pareto(3, (600, 1)).astype(np.float32)
    assert not warned(spread, sets[1], "broken")


@pytest.mark.long
def test_too_few_frequencies_are_told_by_their_error(sets):
    (note,) = warned(*sets, "features=", features=3)
    assert note.startswith("with features=3, the kernel has an error of 0.39 (rms)")
    assert not warned(*sets, "features=", features=100)


def test_samples_in_both_sets_are_counted(sets):
    gen, ref = (rows[:100] for rows in sets)
    (note,) = warned(gen, gen, "also in")
    assert note.startswith("all 100 samples of gen are also in ref, with equal embeddings")
    (note,) = warned(gen, np.concatenate([ref, gen[:30]]), "also in")
    assert note.startswith("30 of the 100 samples of gen are also in ref")
    assert not warned(gen, np.concatenate([ref, gen[:1]]), "also in")


@pytest.mark.parametrize(
    ("copied", "words"), [(1, "1 generated sample is an exact copy"), (20, "20 of the 100 samples")]
)
def test_copies_of_pictures_are_told_once(tmp_path, copied, words):
    pictures = np.random.default_rng(0).integers(0, 256, (200, 6, 6, 3), np.uint8)
    gen = np.concatenate([pictures[:copied], pictures[100 + copied :]])
    sets = [fe.extract(rows, "pixels", tmp_path / f"{name}.h5") for name, rows in (("g", gen), ("r", pictures[:100]))]
    told = [note for note in fe.compare(*sets, **FEW).warnings if "exact cop" in note or "also in" in note]
    assert len(told) == 1
    assert told[0].startswith(words)


def test_draws_of_a_law_with_few_values_are_not_called_shared():
    rng = np.random.default_rng(0)
    gen, ref = (rng.integers(0, 2, (300, 4)).astype(np.float32) for _ in range(2))
    assert not warned(gen, ref, "also in")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: fe.kinds(x), "sets must be sets by label, .*, or a list of sets, got ndarray"),
        (lambda x, y: fe.kinds([x]), "at least two sets are needed to compare, got 1"),
        (lambda x, y: fe.compare(x, y, kinds=3), "kinds must be a comparison, as fe.compare returns it, or the path"),
        (lambda x, y: fe.Sketch.of(x, "phi"), "feature_map must be a feature map or a sketch that has one, got str"),
        (lambda x, y: fe.compare_releases(x, y), "old must be a comparison, as fe.compare returns it, or the path"),
        (lambda x, y: fe.compare_releases("no.h5", "no.h5"), "no.h5 does not exist"),
        (lambda x, y: fe.sweep(x, y, "sigma", values=3), "values must be a list of values of sigma, .*, got 3"),
        (lambda x, y: fe.sweep(x, y, "rho", values="1,2"), "values must be a list of values of rho, .*, got '1,2'"),
        (lambda x, y: fe.sweep(x, y, "rho", values=["a"]), "rho must be a positive number, got 'a'"),
        (lambda x, y: fe.compare_methods(x, y, methods="kne"), "method must be one of .* got 'kne' .did you mean"),
    ],
)
def test_a_careless_call_is_answered_in_one_sentence(sets, call, message):
    with pytest.raises(fe.FincEvalError, match=message):
        call(*sets)


def test_one_method_need_not_be_in_a_list(sets):
    found = fe.compare_methods(*(one[:100] for one in sets), methods="ken", features=20, modes=1)
    assert list(found.comparisons) == ["ken"]


@pytest.mark.long
def test_releases_are_compared_by_the_paths_of_their_comparisons(sets, tmp_path):
    gen, ref = sets
    sketch = fe.Sketch.reference(ref[:300], features=100)
    fe.compare(ref[300:], sketch, modes=2).save(tmp_path / "old.h5")
    fe.compare(gen, sketch, modes=2, kinds=tmp_path / "old.h5").save(tmp_path / "new.h5")
    found = fe.compare_releases(tmp_path / "old.h5", str(tmp_path / "new.h5"))
    assert (found.old, found.new) == tuple(fe.load(tmp_path / f"{name}.h5").signature for name in ("old", "new"))
