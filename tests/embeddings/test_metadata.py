"""Tables of metadata are kept with the embeddings of a set, from the start or later."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.errors import DataError, UsageError
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.columns import match_metadata, metadata_table
from finc_eval.embeddings.job import Job

IMAGES = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3), dtype=np.uint8)
CSV = 'file_name,clip,note\n0.png,a,x\n1.png,a,\n2.png,b,"y, z"\n3.png,b,x\n4.png,c,x\n5.png,,x\n'
CLIPS, NOTES = ["a", "a", "b", "b", "c", ""], ["x", "", "y, z", "x", "x", "x"]


pytestmark = [
    pytest.mark.filterwarnings("ignore:metadata"),
    pytest.mark.usefixtures("own_cache_folder"),  # not of whoever runs the tests: it has other columns
]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    for number, image in enumerate(IMAGES):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


def table(tmp_path, name: str):
    rows = [{"file_name": f"{row}.png", "clip": CLIPS[row] or None, "note": NOTES[row]} for row in range(6)]
    path = tmp_path / name
    if path.suffix == ".csv":
        path.write_text(CSV)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_a_table_rides_along(tmp_path, folder, name):
    with fe.extract(folder, "pixels", tmp_path / "c.h5", metadata=table(tmp_path, name)) as cache:
        assert cache.columns == ("clip", "note")
        assert cache.column("clip") == CLIPS and cache.column("note") == NOTES
        one = CachedEmbeddings(cache).grouped("clip")
        assert one.columns == ("clip", "note") and len(np.unique(one.group_hashes())) == 4
        assert list(cache.to_frame().columns[:3]) == ["clip", "note", 0]


def test_metadata_given_later_are_added_without_embedding_again(tmp_path, folder, monkeypatch):
    with fe.extract(folder, "pixels", tmp_path / "c.h5") as cache:
        assert cache.columns == ()
        rows, key = cache[:], cache.key
    monkeypatch.setattr(Job, "_fill", lambda *_: pytest.fail("it was embedded again"))
    with fe.extract(
        folder, "pixels", tmp_path / "c.h5", metadata={"id": ["1.png", "0.png"], "clip": [1.0, None]}
    ) as cache:
        assert cache.column("clip") == ["", "1", "", "", "", ""]
    with pytest.warns(UserWarning, match="c.h5 had other values in the column 'clip' for 5 of 6 samples"):
        again = fe.extract(folder, "pixels", tmp_path / "c.h5", metadata=table(tmp_path, "t.csv"))
    with again as cache:
        assert cache.columns == ("clip", "note") and cache.column("clip") == CLIPS
        assert np.array_equal(cache[:], rows) and cache.key == key and cache.damage() is None
    with fe.extract(folder, "pixels", tmp_path / "c.h5") as cache:
        assert cache.column("clip") == CLIPS  # what is not mentioned stays
        changed = fe.extract(cache, metadata={"id": cache.ids, "a/b.c": list("uvwxyz")})
        assert changed.columns == ("clip", "note", "a/b.c") and changed.column("a/b.c") == list("uvwxyz")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_all_columns_in_the_root_of_a_folder_are_kept(tmp_path, folder):
    (folder / "metadata.csv").write_text(
        CSV.replace("note", "text").replace(",\n1", ",none\n1").replace("a,\n", "a,none\n")
    )
    with fe.extract(folder, "pixels", tmp_path / "c.h5") as cache:
        assert cache.columns == ("prompt", "clip")
        assert cache.column("clip") == CLIPS and cache.column("prompt")[2] == "y, z" == cache.prompts[2]
    with fe.extract(folder, "pixels", tmp_path / "d.h5", n=3) as few:
        assert few.column("clip") == [CLIPS[int(name[0])] for name in few.ids]


def test_samples_that_cannot_be_read_take_their_metadata_with_them(tmp_path, folder):
    (folder / "2.png").write_bytes(b"no image")
    with fe.extract(folder, "pixels", tmp_path / "c.h5", metadata=table(tmp_path, "t.csv")) as cache:
        assert cache.column("clip") == ["a", "a", "b", "c", ""]
        again = fe.extract(cache, metadata={"file_name": [f"{row}.png" for row in range(6)], "row": range(6)})
        assert again.column("row") == ["0", "1", "3", "4", "5"]


def test_rows_of_an_array_need_no_ids(tmp_path):
    with fe.extract(IMAGES, "pixels", tmp_path / "c.h5", metadata={"clip": CLIPS}) as cache:
        assert cache.column("clip") == CLIPS
    with fe.extract(IMAGES, "pixels", tmp_path / "d.h5", n=2, metadata={"clip": range(6)}) as cache:
        assert cache.column("clip") == cache.ids


def test_the_id_of_a_video_serves_its_windows():
    columns, unmatched = metadata_table({"id": ["a.mp4", "b.mp4"], "scene": [1, 2]}, ["a.mp4#0", "a.mp4#1", "b.mp4#0"])
    assert columns == {"scene": ["1", "1", "2"]} and unmatched == {}


def test_what_has_no_partner_is_counted():
    with pytest.warns(UserWarning) as notes:
        match_metadata({"id": ["a", "x", "y"], "scene": [1, 2, 3]}, ["a", "b"], stacklevel=2)
    assert [str(note.message) for note in notes] == [
        "metadata do not fit the samples: 2 x rows of the metadata without a sample, "
        "1 x samples without a row in the metadata"
    ]
    _, unmatched = metadata_table({"id": ["a", "x"], "scene": [1, 2]}, ["a"])
    assert unmatched == {"rows of the metadata without a sample": 1}


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("file_name,x\nz.png,1\n", UsageError, "names none of the 2 samples: its column .* such as 'a'"),
        ("id,x\na,1\na,2\n", DataError, "names 'a' twice"),
        ("", DataError, "must have a row of named values"),
        (
            "image,label\nx.png,1\n",
            UsageError,
            "has no column file_name or id, but 'image' and 'label': call the column of ids file_name; it must hold",
        ),
        ("id,x,x\na,1,1\n", DataError, "has two columns 'x': give each a name of its own"),
        ("id,x\na,1\nb\n", DataError, r"line 3 of .*t.csv has 1 value for 2 columns: give each column one"),
        ('id,x\n\n"a\n",1\nb,2,3\n', DataError, r"line 5 of .*t.csv has 3 values for 2 columns"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, content, error, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(error, match=message):
        metadata_table(tmp_path / "t.csv", ["a", "b"])


def test_files_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "t.jsonl").write_text("[1]\n")
    (tmp_path / "t.parquet").write_text("PAR")
    for path, message in (
        ("t.jsonl", "row of named values"),
        ("t.parquet", "cannot be read|needs pyarrow"),
        ("u.csv", "does not exist"),
    ):
        with pytest.raises((DataError, UsageError), match=message):
            metadata_table(tmp_path / path, ["a"])
    with pytest.raises(UsageError, match=r"ends in \.txt"):
        metadata_table(tmp_path / "t.txt", ["a"])


def test_labels_are_a_column_that_can_be_replaced(tmp_path, folder):
    (folder / "metadata.csv").write_text("file_name,label\n" + "".join(f"{row}.png,{row % 2}\n" for row in range(6)))
    fe.extract(folder, "pixels", tmp_path / "c.h5").close()
    with fe.EmbeddingCache(tmp_path / "c.h5") as cache:
        assert cache.columns == ("label",) and cache.column("label") == cache.labels == list("010101")
        with pytest.warns(UserWarning, match="other values in the column 'label' for 6 of 6 samples"):
            named = fe.extract(cache, metadata={"file_name": cache.ids, "label": list("ababab")})
        assert named.labels == list("ababab")


def test_the_command_line_takes_a_table(tmp_path, folder):
    (tmp_path / "t.csv").write_text(CSV.replace("5.png", "6.png"))
    arguments = [folder, "--extractor", "pixels", "--out", tmp_path / "c.h5", "--metadata", tmp_path / "t.csv"]
    done = CliRunner().invoke(app, ["extract", *map(str, arguments)])
    assert "metadata: clip, note" in done.stdout, done.output
    assert "1 x samples without a row in t.csv" in done.stderr and "1 x rows of t.csv" in done.stderr


def test_a_copy_of_cached_embeddings_never_lacks_its_table(tmp_path, folder, monkeypatch):
    """A kill after the copy appears would leave a whole file without it."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    fe.extract(folder, "pixels").close()
    monkeypatch.setattr("finc_eval.embeddings.extract.with_columns", lambda *_: pytest.fail("an interrupt"))
    with pytest.raises(pytest.fail.Exception, match="an interrupt"):
        fe.extract(folder, "pixels", tmp_path / "gen.h5", metadata=table(tmp_path, "t.csv"))
    with fe.EmbeddingCache(tmp_path / "gen.h5") as copy:
        assert copy.column("clip") == CLIPS


@pytest.mark.parametrize("kept", [("clip", "note"), ("note",), ("other", "clip")], ids=str)
def test_columns_that_were_left_out_do_not_come_back(folder, kept):
    """Caches are shared by all sets of the same pictures; a set that brings no columns has those given before."""
    table = {"file_name": [f"{number}.png" for number in range(len(CLIPS))]}
    values = {name: [f"{name} {clip}" for clip in CLIPS] for name in ("clip", "note", "other")}
    for names in (("clip", "note"), kept):
        metadata = {**table, **{name: values[name] for name in names}}
        with fe.extract(folder, "pixels", metadata=metadata) as cache:
            assert {*cache.columns} == {*names}
            assert all(cache.column(name) == values[name] for name in names)
