"""Laws of sets of embeddings: passes of any size, names of files, groups, and what is said of samples left out."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.embeddings import base
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.repeats import too_few_groups
from finc_eval.embeddings.same_names import without_suffixes
from finc_eval.embeddings.set_info import titles_of


@pytest.mark.parametrize("entries", [1, 7, 1000])
def test_a_digest_and_finite_rows_do_not_depend_on_what_is_read_at_once(monkeypatch, entries):
    rows = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
    whole = as_embeddings(rows).digest
    monkeypatch.setattr(base, "BATCH_ENTRIES", entries)
    assert as_embeddings(rows).digest == whole
    assert as_embeddings(rows[::-1].copy()).digest != whole
    broken = rows.copy()
    broken[[2, 17], 1] = np.nan
    assert as_embeddings(broken).is_finite().tolist() == [row not in (2, 17) for row in range(23)]
    batches = [*as_embeddings(rows).batches(5)]
    assert sum(len(one.rows) for one in batches) == 23 and max(len(one.rows) for one in batches) <= 5
    assert [name for one in batches for name in one.ids] == [str(row) for row in range(23)]


SUFFIXES = {
    "one format each": ((["a.png", "b.png"], ["a.jpg", "c.jpg"]), True),
    "some in one format": ((["a.png", "b.png"], ["a.png", "b.jpg"]), False),
    "two samples with one name": ((["a.png", "a.gif"], ["a.jpg", "b.jpg"]), False),
    "no name in common": ((["a.png"], ["b.jpg"]), False),
}


@pytest.mark.parametrize("case", SUFFIXES)
def test_ids_are_compared_without_suffixes_where_these_alone_tell_sets_apart(case):
    (gen, ref), is_bare = SUFFIXES[case]
    found, notes = without_suffixes({"gen": gen, "ref": ref})
    assert bool(notes) == is_bare
    assert found["gen"] == ([one[0] for one in gen] if is_bare else gen)
    if is_bare:
        assert "'a.png' of gen and 'a.jpg' of ref" in notes[0]


def test_too_few_groups_are_said_in_tenths_rounded_down():
    assert "equivalent to 2.7 independent samples" in str(too_few_groups("gen", 11, 4.0, "video"))
    assert "equivalent to 1 independent sample;" in str(too_few_groups("gen", 10, 9.2, None))


def test_titles_are_the_shortest_ends_of_paths_that_differ():
    def titles(first, second):
        one, other = (fe.EmbeddingSet(np.eye(3, dtype=np.float32)) for _ in range(2))
        infos = [type("Info", (), {"source": path, "name": path})() for path in (first, second)]
        assert one.n == other.n
        return titles_of(*infos)

    assert titles("/a/b/new.h5", "/a/b/old.h5") == ("new.h5", "old.h5")
    assert titles("/a/new/x.h5", "/a/old/x.h5") == ("new/x.h5", "old/x.h5")
    assert titles("/a/new/b/x.h5", "b/x.h5") == ("new/b/x.h5", "b/x.h5")
    assert titles("x.h5", "x.h5") == ("x.h5", "x.h5")
