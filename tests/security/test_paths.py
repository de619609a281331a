"""A path that comes out of a file stays in the folder of that file, whatever kind of file it is."""

import io
import json
import os
import shutil
import tarfile
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from _files import forge
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.cli.output import default_folder
from finc_eval.core.digest import sha256_of_file
from finc_eval.core.doors import inside
from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.marks import checksum_of
from finc_eval.embeddings import folder as caches
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.gates.baseline import Bundle, History
from finc_eval.memorization.views import _extractor_of

PRIVATE = "the only copy of something precious"

WRITTEN = {
    "up": "../victim/precious.txt",
    "up and down": "sub/../../victim/precious.txt",
    "up to the folder itself": "sub/..",
    "absolute": "/etc/hostname",
    "the root": "/",
    "two slashes": "//etc/hostname",
    "nothing": "",
    "a dot": ".",
    "two dots": "..",
    "a dot first": "./inner.txt",
    "a dot between": "sub/./inner.txt",
    "an empty part": "sub//inner.txt",
    "a slash at the end": "inner.txt/",
    "backslashes": "..\\victim\\precious.txt",
    "a drive": "C:/precious.txt",
    "a place on a drive": "C:precious.txt",
    "a stream": "inner.txt:hidden",
    "an address": "http://127.0.0.1:9/precious.txt",
    "an address of a file": "file:///etc/hostname",
    "a chain of addresses": "zip://a.png::http://127.0.0.1:9/a.zip",
    "NUL": "inner.txt\0.png",
    "a long name": "x" * 300,
    "a long path": "x/" * 3000 + "x",
    "half a character": "\ud800.txt",
}
"""Names that no file may give another one."""

LINKED = {
    "a link to a file": "to-file",
    "a link to a folder": "to-folder/precious.txt",
    "a link to a link": "to-link",
    "a link up": "to-parent/victim/precious.txt",
    "a link to nowhere outside": "to-nowhere",
    "a link in a circle": "circle",
    "a link to a device": "to-device",
}
"""Names of links that leave the folder, in a folder that `prepared` makes."""

UNUSUAL = {"a pipe": "pipe", "a folder": "sub", "a link to a pipe": "to-pipe"}
"""Names in that folder which are not those of files."""


def cases(*tables, more=()):
    return [*(pytest.param(name, id=form) for table in tables for form, name in table.items()), *more]


def prepared(folder):
    """Put a precious file beside a folder, and links and pipes into it."""
    victim = folder.parent / "victim"
    victim.mkdir()
    (victim / "precious.txt").write_text(PRIVATE)
    (folder / "sub").mkdir(parents=True)
    (folder / "inner.txt").write_text("inner")
    (folder / "sub" / "inner.txt").write_text("inner")
    for name, target in {
        "to-file": victim / "precious.txt",
        "to-folder": victim,
        "to-link": "to-file",
        "to-parent": "..",
        "to-nowhere": victim / "new.txt",
        "circle": "circle",
        "to-device": "/dev/zero",
        "to-pipe": "pipe",
        "to-inner": "sub/inner.txt",
        "to-sub": "sub",
    }.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    return victim / "precious.txt"


def refused(call, *arguments, kind=DataError):
    """The message of an error, which is one sentence on one line."""
    with pytest.raises(kind) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text and "\0" not in text and len(text) < 700 and PRIVATE not in text
    return text


def edited(path, **changes):
    """Change a sealed file as its owner could: with the checksum that belongs to it."""
    data = json.loads(path.read_text()) | changes
    data["checksum"] = checksum_of(data)
    path.write_text(json.dumps(data))


# The function


@pytest.mark.parametrize("name", cases(WRITTEN, LINKED, UNUSUAL, more=(None, 7, ["inner.txt"])))
def test_a_name_that_leaves_the_folder_or_is_not_one_of_a_file_is_refused(tmp_path, name):
    prepared(tmp_path / "folder")
    refused(inside, tmp_path / "folder", name)


@pytest.mark.parametrize(
    "name",
    [
        "inner.txt",
        "sub/inner.txt",
        "to-inner",
        "to-sub/inner.txt",
        "new.txt",
        "new/new.txt",
        "ä ö.txt",
        "..x",
        "…",
        "~",
    ],
)
def test_names_of_the_folder_are_taken_and_links_within_it(tmp_path, name):
    prepared(tmp_path / "folder")
    assert inside(tmp_path / "folder", name) == tmp_path / "folder" / name


def test_a_folder_may_be_a_link_itself_as_the_caller_named_it(tmp_path, monkeypatch):
    prepared(tmp_path / "folder")
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path / "folder")
    assert inside(tmp_path / "link", "inner.txt").read_text() == inside("", "inner.txt").read_text() == "inner"


# Boards

ROWS = np.random.default_rng(0).normal(size=(4, 300, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def board_made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "board"
    fe.Board(folder).add({"a": ROWS[0], "b": ROWS[1]}, ROWS[2], metrics=("fd",))
    return folder


@pytest.fixture
def board(board_made, tmp_path):
    return fe.Board(shutil.copytree(board_made, tmp_path / "board"))


def list_as(board, file):
    index = json.loads((board.folder / "board.json").read_text())
    index["models"]["a"]["file"] = file
    edited(board.folder / "board.json", models=index["models"])


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", cases(WRITTEN, more=("entries/b.json", "reference.h5", "board.json")))
def test_a_board_lists_no_file_but_the_one_of_its_model(board, tmp_path, name):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious.txt").write_text(PRIVATE)
    list_as(board, name)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert "not entries/a.json" in refused(board.remove, ["a"])
    refused(board.entries)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_an_absolute_path_in_a_board_deletes_nothing(board, tmp_path):
    (tmp_path / "precious.txt").write_text(PRIVATE)
    list_as(board, str(tmp_path / "precious.txt"))
    done = CliRunner().invoke(app, ["leaderboard", "remove", str(board.folder), "a"])
    assert done.exit_code == 3
    assert (tmp_path / "precious.txt").read_text() == PRIVATE


def test_a_board_whose_entries_are_a_link_is_not_written_through_it(board, tmp_path):
    (board.folder / "entries").rename(tmp_path / "elsewhere")
    (board.folder / "entries").symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())
    refused(lambda: board.add({"c": ROWS[3]}, ROWS[2]))
    refused(board.remove, ["a"])
    refused(board.entries)
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


@pytest.mark.parametrize("name", ["board.json", "reference.h5", "entries/a.json"])
@pytest.mark.parametrize("what", ["link", "pipe", "device"])
def test_a_file_of_a_board_that_is_a_link_or_never_ends_is_refused(board, tmp_path, name, what):
    path = board.folder / name
    path.rename(tmp_path / "moved")
    os.mkfifo(path) if what == "pipe" else path.symlink_to(tmp_path / "moved" if what == "link" else "/dev/zero")
    refused(board.leaderboard)


# Baselines


def drawn(seed):
    return np.random.default_rng(seed).normal(size=(400, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def history_made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history") / "history"
    verdict = fe.gate(drawn(1) + 3, drawn(2), drawn(3), {"metrics": {"fd": {"difference": 0.1}}})
    folder.mkdir()
    History.open(folder).promote(verdict, drawn(1) + 3, reason="a test")
    return folder, verdict


@pytest.fixture
def history(history_made, tmp_path):
    return shutil.copytree(history_made[0], tmp_path / "history")


@pytest.mark.one_of_each("digested")
@pytest.mark.parametrize("digested", [True, False])
@pytest.mark.parametrize("name", cases(WRITTEN, more=("verdict.json/../x", "sub/inner.txt")))
def test_the_samples_of_a_baseline_are_a_file_of_its_folder(history, name, digested):
    stated = json.loads((history / "0001" / "baseline.json").read_text())["digests"]
    digests = {name if digested and key != "verdict.json" else key: digest for key, digest in stated.items()}
    (history / "0001" / "sub").mkdir()
    edited(history / "0001" / "baseline.json", samples=name, digests=digests)
    refused(Bundle.open, history / "0001")


def test_a_baseline_has_digests_of_its_samples_and_of_its_verdict(history):
    path = history / "0001" / "baseline.json"
    for digests in ({}, {"verdict.json": sha256_of_file(history / "0001" / "verdict.json")}):
        edited(path, digests=digests)
        assert "not of its files" in refused(Bundle.open, history / "0001")


@pytest.mark.parametrize("form", ["absolute", "up", "link", "further"])
def test_no_message_tells_whether_a_file_of_this_machine_has_a_known_content(history, tmp_path, form):
    secret = tmp_path / "secret.txt"
    secret.write_text(PRIVATE)
    (history / "0001" / "door").symlink_to(secret)
    name = {"absolute": str(secret), "up": "../../secret.txt", "link": "door", "further": str(secret)}[form]
    path = history / "0001" / "baseline.json"
    stated = json.loads(path.read_text())
    told = set()
    for digest in (sha256_of_file(secret), "0" * 64):
        more = stated["digests"] | {name: digest} if form == "further" else {name: digest, "verdict.json": digest}
        edited(path, samples=stated["samples"] if form == "further" else name, digests=more)
        told.add(refused(Bundle.open, history / "0001"))
    assert len(told) == 1


def test_refused_verdicts_are_not_written_through_a_link(history, history_made, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (history / "refused").symlink_to(tmp_path / "elsewhere")
    assert history_made[1].overall != "pass"
    refused(History.open(history).promote, history_made[1], drawn(1) + 3)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_baseline_in_another_folder_is_none_of_a_history(history, tmp_path):
    (history / "0001").rename(tmp_path / "elsewhere")
    (history / "0001").symlink_to(tmp_path / "elsewhere")
    refused(History.open, history)


# Folders of Hugging Face


def png(seed):
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
    rows = {"image": [{"bytes": png(row), "path": None} for row in range(3)], "text": ["a", "b", "c"]}
    folder = tmp_path_factory.mktemp("saved") / "set"
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(folder))
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    return shutil.copytree(saved_once, tmp_path / "set")


def rows_of(folder, **columns):
    """Write the columns of a saved set again."""
    import pyarrow as pa

    (path,) = folder.glob("*.arrow")
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        table = stream.read_all()
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        image = table.schema.field("image").type
        table = table.set_column(place, name, pa.array(values, image if name == "image" else pa.list_(image)))
    with path.open("wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", cases(WRITTEN, LINKED, UNUSUAL, more=("{private}", None)))
def test_a_row_shows_no_picture_from_outside_its_folder(saved, monkeypatch, name):
    monkeypatch.chdir(saved)
    if name == WRITTEN["half a character"]:
        return  # Arrow has no such text
    precious = prepared(saved)
    precious.write_bytes(png(9))
    name = name and name.replace("{private}", str(precious))
    rows_of(saved, image=[{"bytes": None, "path": name}, {"bytes": png(1), "path": name}, None])
    first, second, third = fe.open_source(saved).samples()
    assert first.pixels is None and third.pixels is None and second.pixels is not None


def test_a_row_may_name_a_picture_in_its_folder(saved):
    (saved / "pictures").mkdir()
    (saved / "pictures" / "x.png").write_bytes(png(5))
    rows_of(saved, image=[{"bytes": None, "path": "pictures/x.png"}] * 3)
    assert all(sample.error is None for sample in fe.open_source(saved).samples())


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", cases(WRITTEN, LINKED, UNUSUAL, more=(None, 7)))
def test_the_data_of_a_saved_set_are_files_of_its_folder(saved, name):
    (data,) = saved.glob("*.arrow")
    prepared(saved).write_bytes(data.read_bytes())
    state = json.loads((saved / "state.json").read_text()) | {"_data_files": [{"filename": name}]}
    (saved / "state.json").write_text(json.dumps(state))
    text = refused(fe.open_source, saved)
    assert "names the file" in text or ", not a file" in text


@pytest.mark.parametrize("name", ["state.json", "dataset_info.json", "data-00000-of-00001.arrow"])
def test_a_file_of_a_saved_set_that_is_a_link_is_not_followed(saved, tmp_path, name):
    (saved / name).rename(tmp_path / "outside")
    (saved / name).symlink_to(tmp_path / "outside")
    refused(fe.open_source, saved)


@pytest.mark.parametrize(
    "state", [[], {}, {"_data_files": 7}, {"_data_files": ["x"]}, {"_data_files": [None]}], ids=str
)
def test_a_state_of_another_form_is_refused(saved, state):
    (saved / "state.json").write_text(json.dumps(state))
    assert "names no data" in refused(fe.open_source, saved)


@pytest.mark.parametrize("kind", ["Image", "Audio"])
def test_prompts_are_read_as_they_are_stored_and_open_no_file(saved, tmp_path, kind):
    os.mkfifo(tmp_path / "pipe")
    info = json.loads((saved / "dataset_info.json").read_text())
    info["features"]["text"] = {"feature": {"_type": kind}, "_type": "List"}
    (saved / "dataset_info.json").write_text(json.dumps(info))
    rows_of(saved, text=[[{"bytes": None, "path": str(tmp_path / "pipe")}]] * 3)
    source = fe.open_source(saved)
    assert str(tmp_path / "pipe") in source.prompts[0]


# Titles, caches, cards and archives


@pytest.mark.one_of_each
@pytest.mark.parametrize("title", cases(WRITTEN, {"many dots": "....", "a slash": "a/b", "long letters": "ä" * 400}))
def test_the_title_in_a_file_names_one_folder_in_reports(title):
    for titles in ([title], [title, "ref"], [title] * 6):
        folder = default_folder(titles)
        assert folder.parent == Path("reports") and folder.name not in ("", ".", "..")
        assert len(os.fsencode(folder.name)) <= 200 and not set(folder.name) & {"/", "\\", "\0"}


def test_a_sketch_of_a_colleague_does_not_choose_where_its_report_is_written(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    ref = fe.Sketch.reference(ROWS[1], features=20)
    gen = fe.Sketch(ref.feature_map)
    gen.update(ROWS[0])
    ref.save("ref.h5")
    gen.save("gen.h5")
    forge(Path("gen.h5"), lambda header, arrays: header.update(name=f"{tmp_path}/victim/gen"))
    done = CliRunner().invoke(
        app, ["compare", "--gen", "gen.h5", "--ref", "ref.h5", "--quiet", "--modes", "1", "--no-clusters"]
    )
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"work"}
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"gen.h5", "ref.h5", "reports"}


@pytest.fixture
def cache(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    return fe.extract(images, "pixels", out=tmp_path / "cache.h5").path


PIXELS = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()


@pytest.mark.parametrize("form", ["absolute", "relative", "up"])
def test_the_embeddings_of_a_colleague_do_not_choose_a_card(cache, tmp_path, monkeypatch, form):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub" if form == "up" else tmp_path)
    (tmp_path / "evil.toml").write_text(PIXELS)
    name = {"absolute": str(tmp_path / "evil.toml"), "relative": "evil.toml", "up": "../evil.toml"}[form]
    card = fe.load_card(name)
    forge(cache, lambda header, arrays: header.update(extractor=name, recipe=recipe_of(card, "float32")))
    assert "card of your own" in refused(_extractor_of, as_embeddings(cache))


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/set.zip", "HTTPS://127.0.0.1:9/x/", "s3://bucket/{a,b}.tar"])
def test_a_place_in_a_cache_is_not_fetched_to_explain_it(cache, place):
    forge(cache, lambda header, arrays: header.update(source=place))
    result = CliRunner().invoke(app, ["extract", "cache", "explain", str(cache)])
    assert result.exit_code == 3
    assert "is not fetched because a file names it" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "place", ["/" + "x" * 5000, "/a\0b", "/{0..999999}{0..999999}", "/\ud800"], ids=["long", "NUL", "endless", "half"]
)
def test_a_strange_place_in_a_cache_does_not_end_the_list_of_caches(cache, place):
    forge(cache, lambda header, arrays: header.update(source=place))
    assert caches.entry_of(cache).source_is_there in (False, None)


def test_the_working_folder_does_not_choose_a_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    np.savez("gen.npz", images)
    (tmp_path / "evil.toml").write_text(PIXELS.replace('kind = "pixels"', 'kind = "torchscript"'))
    (tmp_path / "own.toml").write_text(PIXELS)
    (tmp_path / "finc-eval.toml").write_text('[extract]\nextractor = "evil.toml"\n')
    extract = ["extract", "gen.npz", "--out", "gen.h5", "--quiet"]
    found = CliRunner().invoke(app, extract)
    assert found.exit_code == 3 and "as extractor: pass --extractor if you trust it" in " ".join(found.output.split())
    named = CliRunner().invoke(app, [*extract, "--config", "finc-eval.toml"])
    assert "a TorchScript file" in " ".join(named.output.split())
    assert CliRunner().invoke(app, [*extract, "--extractor", "pixels"]).exit_code == 0
    (tmp_path / "finc-eval.toml").write_text('[extract]\nextractor = "own.toml"\n')
    assert CliRunner().invoke(app, [*extract, "--force"]).exit_code == 0


@pytest.mark.parametrize("package", ["timm/../../../etc", "timm/..", "../timm", "/etc", "timm/.hidden"])
def test_the_weights_in_a_package_are_in_that_package(tmp_path, package):
    weights = f'[weights]\nfile = "x.pth"\nlicense = "MIT"\npackage = "{package}"\n'
    (tmp_path / "card.toml").write_text(f"{PIXELS}\n{weights}")
    assert "weights.package" in refused(fe.load_card, tmp_path / "card.toml")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE], ids=repr)
@pytest.mark.parametrize("suffix", [".png", ".txt"])
def test_links_and_devices_in_a_tar_are_no_samples_and_no_prompts(tmp_path, kind, suffix):
    (tmp_path / "private.png").write_bytes(png(9))
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        whole = tarfile.TarInfo("a.png")
        whole.size = len(png(1))
        archive.addfile(whole, io.BytesIO(png(1)))
        link = tarfile.TarInfo(f"{'b' if suffix == '.png' else 'a'}{suffix}")
        link.type, link.linkname = kind, str(tmp_path / "private.png")
        archive.addfile(link)
    source = fe.open_source(tmp_path / "set.tar")
    assert source.ids == ["set/a"] and source.prompts is None


@pytest.mark.parametrize("name", ["../out.png", "/out.png", "a/../../out.png", "C:\\out.png", "link.png"])
def test_the_members_of_a_zip_are_read_in_the_zip_whatever_their_names(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "out.png").write_bytes(png(9))
    with zipfile.ZipFile(tmp_path / "in" / "set.zip", "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o120777 << 16  # a symbolic link
        archive.writestr(info, str(tmp_path / "out.png"))
    try:
        samples = list(fe.open_source(tmp_path / "in" / "set.zip").samples())
    except FincEvalError:
        samples = []  # such a name counts as hidden
    assert all(sample.pixels is None for sample in samples)
    assert sorted(path.name for path in tmp_path.rglob("*.png")) == ["out.png"]


@pytest.mark.parametrize("folders, fits", [(4, True), (12, False), pytest.param(40, False, marks=pytest.mark.long)])
def test_folders_that_are_linked_with_each_other_end(tmp_path, folders, fits):
    for number in range(folders):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "a.png").write_bytes(png(number))
        for other in {*range(folders)} - {number}:
            (tmp_path / f"{number}" / f"to-{other}").symlink_to(tmp_path / f"{other}")
    if fits:
        assert len(fe.open_source(tmp_path).ids) == 4 + 4 * 3 + 4 * 3 * 2 + 4 * 3 * 2
    else:
        assert "links within links" in refused(fe.open_source, tmp_path)


LEADING_OUT = {
    "a picture": lambda folder, out: (folder / "x.png").symlink_to(out / "private.png"),
    "a relative link": lambda folder, out: (folder / "x.png").symlink_to("../out/private.png"),
    "a folder": lambda folder, out: (folder / "more").symlink_to(out),
    "a folder deep inside": lambda folder, out: ((folder / "a").mkdir(), (folder / "a" / "b").symlink_to(out)),
    "the folder above": lambda folder, out: (folder / "up").symlink_to(".."),
    "the root": lambda folder, out: (folder / "root").symlink_to("/"),
    "a link to a link": lambda folder, out: (
        (folder / "x.png").symlink_to("y.png"),
        (folder / "y.png").symlink_to(out / "private.png"),
    ),
    "metadata": lambda folder, out: (folder / "metadata.csv").symlink_to(out / "private.csv"),
    "a result": lambda folder, out: (folder / "x.json").symlink_to(out / "private.csv"),
    "an archive": lambda folder, out: (folder / "x.tar").symlink_to(out / "private.csv"),
    "a video": lambda folder, out: (folder / "x.mp4").symlink_to(out / "private.csv"),
    "a sibling with a longer name": lambda folder, out: (
        (out.parent / "set2").mkdir(),
        (out.parent / "set2" / "z.png").write_bytes(png(3)),
        (folder / "x.png").symlink_to("../set2/z.png"),
    ),
}


@pytest.mark.parametrize("link", LEADING_OUT)
def test_a_link_out_of_a_folder_of_samples_is_refused(tmp_path, link):
    folder, out = tmp_path / "set", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "000.png").write_bytes(png(0))
    (out / "private.png").write_bytes(png(1))
    (out / "private.csv").write_text("file_name,label\n000.png,secret\n")
    LEADING_OUT[link](folder, out)
    for read in (fe.open_source, lambda path: fe.extract(path, "pixels", tmp_path / "e.h5")):
        assert "which leads out of it" in refused(read, folder)
    assert not (tmp_path / "e.h5").exists()
