"""`compare` of sums says what it says of the embeddings: kinds, looks, repeats and copies, also in groups."""

from functools import reduce

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.embeddings.keys import even_row_hashes

N, DIM = 900, 8
MIDDLES = 4 * np.random.default_rng(9).normal(size=(6, DIM))
IDS = [f"{number}.png" for number in range(N)]
PROMPTS = [f"prompt {number // 3}" for number in range(N)]


def drawn(seed):
    """Rows of six kinds, the kind of each, and a number that is the same law in all sets."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 6, N)
    return (MIDDLES[kinds] + rng.normal(size=(N, DIM))).astype(np.float32), kinds, rng.normal(size=N), rng


def with_lost_kind(gen, ref):
    rows, kinds, *_ = gen
    rows[kinds == 2] += (MIDDLES[3] - MIDDLES[2]).astype(np.float32)


def with_look(gen, ref):
    gen[2][: N // 5] += 5


def with_one_sample_often(gen, ref):
    gen[0][: N // 10] = gen[0][0]


def with_many_repeats(gen, ref):
    gen[0][: N // 10] = gen[0][N // 10 : N // 5]


def with_copies(gen, ref):
    gen[0][: N // 10] = ref[0][: N // 10]


PLANTED = {
    "nothing": (lambda gen, ref: None, set()),
    "a lost kind": (with_lost_kind, {"kind"}),
    "a look": (with_look, {"column"}),
    "a sample often": (with_one_sample_often, {"repeat"}),
    "many repeats": (with_many_repeats, {"repeat"}),
    "copies": (with_copies, {"copy"}),
}


def made(case, *, grouped):
    """Return both sets as embeddings, and as sums of batches."""
    gen, ref = drawn(2), drawn(3)
    PLANTED[case][0](gen, ref)
    groups = PROMPTS if grouped else None
    sums = fe.SketchSum(reference=ref[0][:500], features=20)
    sets, sketches = [], []
    for rows, kinds, numbers, _ in (gen, ref):
        columns = {"label": [f"kind {kind}" for kind in kinds], "size": numbers}
        sets.append(fe.EmbeddingSet(rows, IDS, columns | ({"group": PROMPTS} if grouped else {})))
        state = sums.zero()
        for start in range(0, N, 400):
            part = slice(start, start + 400)
            some = {name: values[part] for name, values in columns.items()}
            state = sums.add(state, rows[part], ids=IDS[part], groups=groups and groups[part], columns=some)
        sketches.append(sums.finish(state))
    return sets, sketches


def kinds_said(found):
    return {finding.kind for finding in found.findings}


@pytest.mark.parametrize(
    "case",
    ["many repeats", *(pytest.param(case, marks=pytest.mark.long) for case in PLANTED if case != "many repeats")],
)
def test_sums_say_what_embeddings_say(case):
    sets, sketches = made(case, grouped=False)
    by_rows, by_sums = fe.compare(*sets, features=20), fe.compare(*sketches)
    expected = PLANTED[case][1]
    assert kinds_said(by_rows) >= expected and (kinds_said(by_rows) == set()) == (not expected)
    assert kinds_said(by_sums) >= expected and (kinds_said(by_sums) == set()) == (not expected)
    # The samples that a sketch keeps are those whose looks are compared.
    for mine, others in zip(by_sums.looks, by_rows.looks, strict=True):
        assert (mine.name, mine.share_gen, mine.share_ref) == (others.name, others.share_gen, others.share_ref)
    assert [each for each in by_sums.warnings if "also in" in each] == [
        each for each in by_rows.warnings if "also in" in each
    ]
    assert by_sums.kinds and {kind.name for kind in by_sums.significant()} == {
        kind.name for kind in by_rows.significant()
    }


@pytest.mark.parametrize(
    "case", ["a look", *(pytest.param(case, marks=pytest.mark.long) for case in ("a lost kind", "copies"))]
)
def test_sums_of_groups_have_kinds_looks_and_repeats(case):
    _, sketches = made(case, grouped=True)
    found = fe.compare(*sketches)
    assert kinds_said(found) >= PLANTED[case][1] and found.kinds and found.sets_p_value is not None


def test_a_column_that_sums_keep_is_no_grouping_afterwards():
    _, sketches = made("nothing", grouped=False)
    with pytest.raises(fe.UsageError, match="'label' as groups where it is made"):
        fe.compare(*sketches, groups="label")


@pytest.mark.long
def test_labels_of_sums_are_compared():
    _, sketches = made("a lost kind", grouped=False)
    found = fe.compare(*sketches, by="label")
    assert {kind.name for kind in found.by.kinds} == {f"kind {number}" for number in range(6)}


@pytest.mark.long
def test_a_reference_whose_files_were_doubled_counts_each_once():
    rows, other = drawn(2)[0], drawn(3)[0]
    doubled = np.tile(other[: N // 2], (2, 1))
    sums = fe.SketchSum(reference=other[:500], features=20)
    sketches = [sums.finish(sums.add(sums.zero(), one, ids=IDS)) for one in (rows, doubled)]
    found = fe.compare(*sketches)
    assert any("450 distinct samples among 900" in each for each in found.warnings)
    by_rows = fe.compare(fe.EmbeddingSet(rows, IDS), fe.EmbeddingSet(doubled, IDS), features=20)
    assert [each for each in found.warnings if "distinct" in each] == [
        each for each in by_rows.warnings if "distinct" in each
    ]
    assert found.kinds_tested and found.sets_p_value > 0.01


LARGE = 40_000


@pytest.mark.parametrize(
    ("rows_of", "kind", "share"), [("twice", "repeat", 0.2), ("copied", "copy", 0.1), ("one", "repeat", 0.1)]
)
def test_repeats_and_copies_of_large_sets_are_said_once(rows_of, kind, share):
    """Of 40 000 samples, the 300 that are kept hardly ever have both of a pair, and always one that is a tenth."""
    gen, ref = (np.random.default_rng(seed).normal(size=(LARGE, 2)).astype(np.float32) for seed in (1, 2))
    tenth, counted = LARGE // 10, int(even_row_hashes(torch.from_numpy(gen)).argmin())
    gen[:tenth] = {"twice": gen[tenth : 2 * tenth], "copied": ref[:tenth], "one": gen[counted]}[rows_of]
    sums = fe.SketchSum(reference=ref[:500], features=10, sample=300)
    ids = [f"{row}.png" for row in range(LARGE)]
    found = fe.compare(*(sums.finish(sums.add(sums.zero(), rows, ids=ids)) for rows in (gen, ref)))
    (said,) = [each for each in found.findings if each.kind == kind]
    assert said.share_gen == pytest.approx(share, abs=0.03) and said.share_ref == 0


def pictures(seed, *, dark=0):
    """Pictures of squares of colors, of which the first are dark."""
    colors = np.random.default_rng(seed).integers(0, 256, (N_PICTURES, 6, 6, 3), dtype=np.uint8)
    colors[:dark] //= 2
    return np.kron(colors, np.ones((1, 8, 8, 1), np.uint8))


def redness(image):
    return float(np.asarray(image, float)[..., 0].mean())


N_PICTURES = 120


@pytest.mark.parametrize("asked", ["brightness", pytest.param("redness", marks=pytest.mark.long)])
def test_looks_of_pictures_are_said_by_their_words_of_sums_too(asked):
    if asked == "redness":
        fe.register_column("redness", redness, less="less red", more="redder")
    try:
        embedder, ids = fe.Embedder("pixels"), IDS[:N_PICTURES]
        gen, ref = pictures(1, dark=40), pictures(2)
        rows = [embedder(images) for images in (gen, ref)]
        sums = fe.SketchSum(reference=rows[1], features=20)
        sketches = []
        for of_set, images in zip(rows, (gen, ref), strict=True):
            parts = [slice(start, start + 40) for start in range(0, N_PICTURES, 40)]
            states = [
                sums.add(sums.zero(), of_set[part], ids=ids[part], columns=embedder.looks(images[part]))
                for part in parts
            ]
            sketches.append(sums.finish(reduce(sums.combine, states)))
        by_sums = fe.compare(*sketches)
        given = (fe.EmbeddingSet(of_set, ids, images=images) for of_set, images in zip(rows, (gen, ref), strict=True))
        by_rows = fe.compare(*given, features=20, pairs=None)
        assert {look.trait for look in by_rows.looks} == {asked}
        assert [(look.name, look.share_gen) for look in by_sums.looks] == [
            (look.name, look.share_gen) for look in by_rows.looks
        ]
        assert not [kind.name for kind in by_sums.kinds if "look" in (kind.name or "")]
        assert not [each for each in by_sums.warnings if "column" in each]
    finally:
        if asked == "redness":
            fe.unregister_column("redness")


def test_samples_without_pictures_have_no_looks():
    bad = [pictures(1)[0], b"no image"]
    with pytest.raises(fe.DataError, match="1 unreadable sample"):
        fe.Embedder("pixels").looks(bad)
    found = fe.Embedder("pixels", strict=False).looks(bad)
    assert np.isfinite(found["look brightness"]).tolist() == [True, False]
    assert fe.Embedder("pixels").looks([]) == {}
    with pytest.raises(fe.UsageError, match="takes clips"):
        fe.Embedder("motion").looks(bad)
