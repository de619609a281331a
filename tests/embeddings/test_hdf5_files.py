"""HDF5 that other programs wrote is a set of embeddings, read in parts; nothing in it leads to another file."""

import tracemalloc

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError
from finc_eval.core.files import foreign_hdf5
from finc_eval.embeddings.opening import as_embeddings

ROWS = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
IDS = [f"é{number}.png" for number in range(300)]


def save(path, arrays, **options):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, **(options if np.ndim(values) == 2 else {}))
    return path


def opened(path):
    found = as_embeddings(path)
    rows = np.concatenate([batch.rows.numpy() for batch in found.batches(64)])
    np.testing.assert_array_equal(found.rows_at(np.array([7, found.n - 1, 0])).numpy(), rows[[7, -1, 0]])
    return found, rows


WAYS = {
    "plain": {},
    "chunks": {"chunks": (70, 5)},
    "all in one chunk": {"chunks": (300, 16), "compression": "gzip"},
    "a column a chunk": {"chunks": (300, 1), "compression": "gzip"},
    "gzip, shuffled, checked": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "extensible": {"maxshape": (None, 16)},
    "h5py's own filter": {"compression": "lzf", "shuffle": True},
}


@pytest.mark.one_of_each("way", "kind")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f2", "<f8", ">f8", "<i4", ">i8", "u1", "?"])
def test_numbers_of_any_kind_are_rows(tmp_path, way, kind):
    values = np.round(ROWS * 20 % 100).astype(kind)
    found, rows = opened(save(tmp_path / "x.h5", {"vectors": values}, **WAYS[way]))
    np.testing.assert_array_equal(rows, values.astype(np.float32))
    assert (found.n, found.dim, found.ids_between(0, 2), found.columns) == (300, 16, ["0", "1"], ())


@pytest.mark.one_of_each("suffix", "name")
@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".hdf", ".he5", ".H5"])
@pytest.mark.parametrize("name", ["embeddings", "features", "feats", "arr_0", "model/layer/x", "any"])
def test_the_rows_are_found_by_their_name_or_alone(tmp_path, suffix, name):
    beside = {"other": np.zeros((3, 4, 5)), "edges": np.arange(7), "scale": 2.5}
    if name in ("embeddings", "features"):
        beside |= {"logits": ROWS[:, :3], "deep/er": ROWS[:, :2]}
    np.testing.assert_array_equal(opened(save(tmp_path / f"x{suffix}", {name: ROWS, **beside}))[1], ROWS)


TEXTS = {"any length": IDS, "fixed length": np.array([one.encode() for one in IDS]), "numbers": np.arange(1000, 1300)}


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("name", ["ids", "id", "file_name"])
def test_arrays_of_n_entries_are_ids_and_columns(tmp_path, texts, name):
    values = {name: TEXTS[texts], "labels": ["a", "b", "c"] * 100, "score": np.arange(300) / 4, "rest": [1, 2]}
    found, _ = opened(save(tmp_path / "x.h5", {"deep/features": ROWS, **values}))
    expected = [str(one) for one in (range(1000, 1300) if texts == "numbers" else IDS)]
    assert found.ids_between(0, 300) == expected
    assert set(found.columns) == {"label", "score"}
    assert (found.column("label")[:3], found.column("score")[3]) == (["a", "b", "c"], "0.75")


def test_every_task_takes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ROWS[:220, :6]
    gen, old, ref = few + 0.5, few[::-1], np.random.default_rng(1).normal(size=(220, 6)).astype("f4")
    gz = {"compression": "gzip"}
    gen_path, ref_path = save("gen.h5", {"features": gen}, **gz), save("ref.hdf5", {"x": ref})
    old_path = save("old.hdf", {"group/embeddings": old.astype("f8")})
    options = {"features": 20, "modes": 1, "method": fe.Finc(clusters=False)}
    assert fe.compare(gen_path, ref_path, **options).over[0].p_value == fe.compare(gen, ref, **options).over[0].p_value
    assert fe.metrics(gen_path, ref_path, ["fd"])["fd"].value == fe.metrics(gen, ref, ["fd"])["fd"].value
    assert fe.Sketch.reference(ref_path, features=20).n == 220
    board = fe.leaderboard({"a": gen_path, "b": old_path}, ref_path, metrics=["fd"])
    assert [row.name for row in board.rows] == ["b", "a"]
    verdict = fe.gate(gen_path, old_path, ref_path, {"metrics": {"fd": {"most": 0.01}}})
    assert verdict.overall == "regression"
    shown = CliRunner().invoke(app, ["metrics", "--gen", gen_path, "--ref", ref_path, "--metrics", "fd", "--json"])
    assert shown.exit_code == 0, shown.output


REFUSED = {
    "two arrays": ({"a": ROWS, "b": ROWS}, r"holds a \(300, 16\), b \(300, 16\): .* or call it embeddings"),
    "two of one name": ({"train/features": ROWS, "val/features": ROWS}, r"holds train/features \(300, 16\), val/feat"),
    "no table": ({"a": ROWS[0]}, r"holds a \(16,\): save one array of shape \(n, d\)"),
    "images": ({"images": np.zeros((9, 8, 8, 3), "u1")}, r"holds images \(9, 8, 8, 3\): save one array"),
    "nothing": ({}, "holds nothing: save one array"),
    "texts": ({"a": [b"x"] * 9}, r"no array of numbers, only a \(object, shape \(9,\)\): save one array"),
    "complex numbers": (
        {"a": ROWS + 1j},
        r"no array of numbers, only a \(complex64, shape \(300, 16\)\): save one array",
    ),
    "records": ({"a": np.zeros(9, "i4,f4"), "b": [b"x"]}, r"no array of numbers, only a \(.*shape \(9,\)\) and b"),
    "no rows": ({"a": ROWS[:0]}, r"got shape \(0, 16\): it has no samples"),
    "an infinite number": ({"a": np.full((9, 2), np.inf)}, "is not finite"),
    "an id twice": ({"a": ROWS, "ids": ["x"] * 300}, "the id 'x' occurs 300 times"),
    "a covariance": ({"sigma": np.cov(ROWS.T)}, "is a symmetric matrix of 16 rows, as a covariance is"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_set_is_one_sentence_with_its_arrays(tmp_path, name):
    arrays, words = REFUSED[name]
    with pytest.raises(fe.FincEvalError, match=words) as caught:
        opened(save(tmp_path / "x.h5", arrays))
    assert str(tmp_path / "x.h5") in str(caught.value) and "\n" not in str(caught.value)


def soft_link(file, secret):
    file["link"] = h5py.SoftLink("/ids")


def external_link(file, secret):
    file["link"] = h5py.ExternalLink(secret, "rows")


def external_storage(file, secret):
    file.create_dataset("more", (300, 16), "<f4", external=[(secret, 0, ROWS.nbytes)])


def virtual(file, secret):
    layout = h5py.VirtualLayout(ROWS.shape, "<f4")
    layout[:] = h5py.VirtualSource(secret, "rows", ROWS.shape)
    file.create_virtual_dataset("more", layout)


def foreign_filter(file, secret):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(ROWS.shape)
    made.set_filter(32001, h5py.h5z.FLAG_OPTIONAL)  # Blosc, which HDF5 would load as a program
    space = h5py.h5s.create_simple(ROWS.shape)
    h5py.h5d.create(file.id, b"more", h5py.h5t.IEEE_F32LE, space, made)


def a_group_in_itself(file, secret):
    group = file.create_group("group")
    for name in "abcdefgh":
        group[name] = group


@pytest.mark.parametrize(
    "lead", [soft_link, external_link, external_storage, virtual, foreign_filter, a_group_in_itself]
)
def test_what_leads_elsewhere_is_refused_before_a_number_is_read(tmp_path, lead, monkeypatch):
    save(tmp_path / "secret.h5", {"rows": ROWS})
    with h5py.File(save(tmp_path / "x.h5", {"embeddings": ROWS, "ids": IDS}), "r+") as file:
        lead(file, str(tmp_path / "secret.h5"))
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *_: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"x\.h5 cannot be read \([^\n]*\): repair it, or save it again$"):
        as_embeddings(tmp_path / "x.h5")


@pytest.mark.parametrize("part", [0.0005, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_one_sentence(tmp_path, part):
    path = save(tmp_path / "x.h5", {"embeddings": ROWS}, chunks=(50, 16))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(DataError, match=r"^\S*x\.h5 [^\n]*$"):
        as_embeddings(path)


@pytest.mark.parametrize("way", ["chunks", "extensible", "plain"])
def test_memory_is_bounded_by_what_is_decoded_together(tmp_path, way, monkeypatch):
    monkeypatch.setattr(foreign_hdf5, "DECODED_TOGETHER", 1 << 19)
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "4MB")
    rows = np.tile(ROWS, (150, 1))
    path = save(tmp_path / "x.h5", {"embeddings": rows}, **({} if way == "plain" else {"chunks": (1000, 16)}))
    opened(path)  # and load what is loaded once
    tracemalloc.start()
    found = as_embeddings(path)
    total = sum(float(batch.rows.sum()) for batch in found.batches(1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == pytest.approx(150 * ROWS.sum(), rel=1e-3) and peak < rows.nbytes / 2


def test_a_chunk_above_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1MB")
    path = save(tmp_path / "x.h5", {"embeddings": np.zeros((20_000, 16), "f4")}, chunks=(20_000, 16), compression=9)
    with pytest.raises(DataError, match=r"embeddings of \S*x\.h5 takes 2.56 MB when decoded, above the 1 MB"):
        as_embeddings(path)


@pytest.mark.parametrize("program", [None, 3, [1.5, 2], "other", b"other", np.array(["finc-eval", "x"], "S9")])
def test_attributes_of_any_kind_are_of_another_program(tmp_path, program):
    with h5py.File(save(tmp_path / "x.h5", {"embeddings": ROWS}), "r+") as file:
        file.attrs["program"] = h5py.Empty("f4") if program is None else program
    np.testing.assert_array_equal(opened(tmp_path / "x.h5")[1], ROWS)


def test_a_block_before_the_file_is_passed_over(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file["embeddings"] = ROWS
    np.testing.assert_array_equal(opened(tmp_path / "x.h5")[1], ROWS)


def test_a_group_that_holds_itself_alone_ends(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = file["/"]
    with pytest.raises(DataError, match=r"x\.h5 cannot be read \(it has more than 8 groups within each other"):
        as_embeddings(tmp_path / "x.h5")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The bytes of a file of ours, and its rows."""
    path = tmp_path_factory.mktemp("ours") / "x.h5"
    pixels = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 3), dtype=np.uint8)
    fe.extract(pixels, "pixels", path).close()
    return path.read_bytes(), opened(path)[1]


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_of_ours_is_never_taken_for_one_of_another_program(ours, tmp_path, seed):
    path, (data, whole), rng = tmp_path / "x.h5", ours, np.random.default_rng(seed)
    data = bytearray(data)
    outside = [*range(3000), *range(len(data) - 3000, len(data))]  # of the rows, most of which have no structure
    for _ in range(1 + seed % 3):
        data[rng.choice(outside)] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    try:
        np.testing.assert_array_equal(opened(path)[1], whole)
    except DataError as error:
        assert "another program" not in str(error)


def test_it_is_nothing_else(tmp_path):
    path = save(tmp_path / "x.h5", {"embeddings": ROWS})
    for open_it in (fe.EmbeddingCache, fe.load):
        with pytest.raises(DataError, match=r"is not a finc-eval embedding cache, but HDF5 of another program: pass"):
            open_it(path)
    with pytest.raises(DataError, match="was not written by finc-eval: a finc-eval file of the type 'sketch'"):
        fe.Sketch.load(path)
