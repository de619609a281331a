"""Tables of metadata as spreadsheets and scripts write them: read, or said, and never silently without labels."""

import unicodedata

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3)).astype(np.uint8)
PLAIN = "file_name,label\na.png,x\nb.png,y\nc.png,z\n"
NO_NAMES = {"metadata.csv, which names no samples": 1}


def folder(path, table, names=("a.png", "b.png", "c.png"), kind="csv"):
    for image, name in zip(IMAGES, names, strict=True):
        (path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(path / name, "PNG")
    (path / f"metadata.{kind}").write_bytes(table if isinstance(table, bytes) else table.encode())
    return path


READ = {
    "plain": PLAIN,
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "Windows line ends": PLAIN.replace("\n", "\r\n"),
    "old line ends": PLAIN.replace("\n", "\r"),
    "semicolons": PLAIN.replace(",", ";"),
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "spaces after commas": PLAIN.replace(",", ", "),
    "all quoted": '"' + PLAIN.strip().replace(",", '","').replace("\n", '"\n"') + '"\n',
    "quoted after spaces": '"' + PLAIN.strip().replace(",", '", "').replace("\n", '"\n"') + '"\n',
    "blank line first": "\n" + PLAIN,
    "blank lines last": PLAIN + "\n\n",
    "spaced blank line first": "  \n" + PLAIN,
    "capitals": PLAIN.replace("file_name,label", "File_Name,Label"),
    "words": PLAIN.replace("file_name,label", "File name,Class"),
    "spaces around headers": PLAIN.replace("file_name,label", " file_name , label "),
    "numbers of rows": ",file_name,label\n0,a.png,x\n1,b.png,y\n2,c.png,z\n",
    "a row twice": PLAIN + "a.png,x\n",
    "a dot": PLAIN.replace("\n", "\n./").removesuffix("./"),
    "no end of line": PLAIN.strip(),
    "other order": "label,file_name\nz,c.png\ny,b.png\nx,a.png\n",
    "an unknown sample": PLAIN + "d.png,w\n",
    **{header: PLAIN.replace("file_name", header) for header in ("image_path", "img", "Bild", "image_id")},
    "a column of another name last": "label\tfound at\nx\ta.png\ny\tb.png\nz\tc.png\n",
}


@pytest.mark.parametrize("how", READ)
def test_a_table_is_read_as_it_was_meant(how, tmp_path):
    source = open_source(folder(tmp_path, READ[how]))
    assert source.labels == ["x", "y", "z"] and not source.columns.keys() - {"label"}


VALUES = {
    "commas between semicolons": "file_name;label;score\na.png;x,1;1,5\nb.png;y;2\nc.png;z;3\n",
    "commas between tabs": "file_name\tlabel\tscore\na.png\tx,1\t1,5\nb.png\ty\t2\nc.png\tz\t3\n",
    "spaces after headers": 'file_name ,label ,score \na.png,"x,1","1,5"\nb.png,y,2\nc.png,z,3\n',
    "quoted commas": 'file_name,label,score\na.png,"x,1","1,5"\nb.png,y,2\nc.png,z,3\n',
}


@pytest.mark.parametrize("how", VALUES)
def test_values_keep_what_does_not_separate_them(how, tmp_path):
    source = open_source(folder(tmp_path, VALUES[how]))
    assert source.labels == ["x,1", "y", "z"] and source.columns["score"] == ["1,5", "2", "3"]


def test_names_of_another_key_are_names_in_lines_of_json(tmp_path):
    lines = "".join(f'{{"label": "{name}", "img_path": "{name}.png"}}\n' for name in "abc")
    source = open_source(folder(tmp_path, lines, kind="jsonl"))
    assert source.labels == ["a", "b", "c"] and not source.columns


JSON_LINES = "".join(
    f'{{"file_name": "{one}.png", "label": "{label}"}}\n' for one, label in zip("abc", "xyz", strict=True)
)
TABLES_OF_FOLDERS = {
    "beside the samples": ({"train/metadata.csv": PLAIN}, "train/"),
    "lines of JSON": ({"train/metadata.jsonl": JSON_LINES}, "train/"),
    "above the samples": (
        {"train/metadata.csv": PLAIN.replace("\n", "\nimages/").removesuffix("images/")},
        "train/images/",
    ),
    "below a folder": ({"data/train/metadata.csv": PLAIN}, "data/train/"),
    "semicolons": ({"train/metadata.csv": PLAIN.replace(",", ";")}, "train/"),
    "names of another key": ({"train/metadata.jsonl": JSON_LINES.replace("file_name", "img_path")}, "train/"),
    "both tables: the first counts": (
        {"train/metadata.jsonl": JSON_LINES, "train/metadata.csv": "file_name,label\n"},
        "train/",
    ),
}


def with_tables(path, tables, below):
    for image, name in zip(IMAGES, "abc", strict=True):
        (path / below).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path / below / f"{name}.png")
    for name, table in tables.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(table)
    return path


@pytest.mark.parametrize("how", TABLES_OF_FOLDERS)
def test_tables_in_folders_of_a_set_name_files_of_their_folder(how, tmp_path):
    source = open_source(with_tables(tmp_path, *TABLES_OF_FOLDERS[how]))
    assert source.labels == ["x", "y", "z"] and not source.columns and not source.ignored


def test_each_split_has_its_table(tmp_path):
    for name in ("train", "test"):
        with_tables(tmp_path, {f"{name}/metadata.csv": PLAIN.replace("x", name) + "d.png,w\n"}, f"{name}/")
    source = open_source(tmp_path)
    assert source.labels == ["test", "y", "z", "train", "y", "z"]
    assert source.ignored == {"rows of metadata.csv without a sample": 2}
    with_tables(tmp_path, {}, "more/")
    source = open_source(tmp_path)
    assert source.labels == ["more"] * 3 + ["test"] * 3 + ["train"] * 3
    assert source.ignored == {"metadata.csv in a subfolder": 2}


LEFT_OUT = {
    "a table in the root": {"metadata.csv": "file_name,label\ntrain/a.png,x\ntrain/b.png,y\ntrain/c.png,z\n"},
    "no names": {"train/metadata.csv": "camera,lens\n1,2\n"},
}


@pytest.mark.parametrize("how", LEFT_OUT)
def test_a_table_in_a_folder_that_is_not_used_is_named_among_what_was_left_out(how, tmp_path):
    source = open_source(with_tables(tmp_path, {"train/metadata.csv": PLAIN, **LEFT_OUT[how]}, "train/"))
    assert source.ignored == {"metadata.csv in a subfolder": 1}


def test_names_that_no_file_of_the_folder_has_are_refused(tmp_path):
    table = PLAIN.replace("\n", "\ntrain/").removesuffix("train/")
    with pytest.raises(FincEvalError, match=r"they differ in their folder, as 'train/a\.png' and the sample 'a\.png'"):
        open_source(with_tables(tmp_path, {"train/metadata.csv": table}, "train/"))


def test_the_name_in_a_file_beside_a_sample_may_be_another(tmp_path):
    beside = {f"{name}.json": f'{{"prompt": "{name}", "file_name": "original.png"}}' for name in "abc"}
    assert open_source(with_tables(tmp_path, beside, "")).prompts == ["a", "b", "c"]


def test_a_quoted_line_end_is_a_part_of_its_value(tmp_path):
    source = open_source(folder(tmp_path, 'file_name,label\na.png,"x\ny"\nb.png,"say ""hi"""\nc.png,z\n'))
    assert source.labels == ["x\ny", 'say "hi"', "z"]


SAID = {
    "no header": "a.png,x\nb.png,y\nc.png,z\n",
    "a comment first": "# by hand\n" + PLAIN,
    "a header alone": "file_name,label\n",
    "of another purpose": "camera,lens\nx\n",
}


@pytest.mark.parametrize("how", SAID)
def test_a_table_that_names_no_samples_is_among_what_was_left_out(how, tmp_path):
    source = open_source(folder(tmp_path, SAID[how]))
    assert source.labels is None and source.ignored == NO_NAMES


REFUSED = {
    "two columns of one name": ("file_name,label,label\na.png,x,1\n", "two columns 'label'"),
    "two rows of a sample": (PLAIN + "a.png,w\n", "names 'a.png' twice, with unlike values"),
    "a value too few": (PLAIN + "d.png\n", "line 5 of .* has 1 value for 2 columns"),
    "a value too few below blank lines": ("\n\n" + PLAIN + "d.png\n", "line 7 of .* has 1 value for 2 columns"),
    "a value too many": (PLAIN + "d.png,1,2\n", "line 5 of .* has 3 values for 2 columns"),
    "UTF-16": (PLAIN.encode("utf-16"), "cannot be read.*utf-8"),
    "Latin-1": (PLAIN.replace("x", "é").encode("latin-1"), "cannot be read.*utf-8"),
    "some names decomposed": (unicodedata.normalize("NFD", "file_name,label\né.png,x\nb.png,y\nc.png,z\n"), "not to é"),
    "names alone in their folders": ("file_name,label\na.png,x\n", "differ in their folder"),
    "addresses": ("file_name,label\nhttps://x/a.png,x\n", "differ in their folder"),
    "spaces at the end of names": ("file_name,label\na.png ,x\n", "no sample is called so"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_table_that_contradicts_itself_or_the_samples_is_refused(how, tmp_path):
    table, message = REFUSED[how]
    names = {
        "some names decomposed": ("é.png", "b.png", "c.png"),
        "names alone in their folders": ("1/a.png", "2/a.png", "2/b.png"),
    }
    with pytest.raises(FincEvalError, match=message):
        open_source(folder(tmp_path, table, names.get(how, ("a.png", "b.png", "c.png"))))


def test_equal_names_in_unlike_folders_are_unlike_samples(tmp_path):
    table = "file_name,label\n1/a.png,x\n2/a.png,y\n2/b.png,z\n"
    assert open_source(folder(tmp_path, table, ("1/a.png", "2/a.png", "2/b.png"))).labels == ["x", "y", "z"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("key", ["file_name", "File_Name", "image"])
def test_lines_of_json_have_the_same_keys(mark, end, key, tmp_path):
    lines = "".join(f'{{"{key}": "{name}.png", "Label": "{name}"}}{end}' for name in "abc")
    assert open_source(folder(tmp_path, mark + lines.encode(), kind="jsonl")).labels == ["a", "b", "c"]


LINES = [f"{name},x" for name in ("a.png", "b.png", "c.png", "d.png")]


@pytest.mark.parametrize(
    ("rows", "others", "said"),
    [
        (3, [], []),
        (2, [], ["metadata that do not fit the samples: 1 x samples without a row in table.csv"]),
        (4, [], ["metadata that do not fit the samples: 1 x rows of table.csv without a sample"]),
        (3, ["notes.txt"], ["ignored, not samples: 1 x .txt"]),
        (2, ["notes.txt"], ["ignored, not samples: 1 x .txt", "metadata that do not fit the samples: 1 x samples"]),
    ],
)
@pytest.mark.filterwarnings("ignore:metadata do not fit")
def test_what_does_not_fit_a_table_is_not_called_an_ignored_file(rows, others, said, tmp_path):
    for name in others:
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / name).write_text("x")
    (tmp_path / "set").mkdir(exist_ok=True)
    for image, name in zip(IMAGES, ("a.png", "b.png", "c.png"), strict=True):
        Image.fromarray(image).save(tmp_path / "set" / name)
    (tmp_path / "table.csv").write_text("\n".join(["file_name,ward", *LINES[:rows]]))
    words = ["extract", tmp_path / "set", "--extractor", "pixels", "--metadata", tmp_path / "table.csv"]
    done = CliRunner().invoke(app, [*map(str, words), "--quiet"])
    found = [line.strip() for line in done.output.splitlines() if line.startswith("  ") and " x " in line]
    assert done.exit_code == 0
    assert len(found) == len(said) and all(one.startswith(start) for one, start in zip(found, said, strict=True))
