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


def test_a_table_in_a_folder_of_the_set_is_named_among_what_was_left_out(tmp_path):
    (tmp_path / "train").mkdir()
    folder(tmp_path / "train", PLAIN)
    assert open_source(tmp_path).ignored == {"metadata.csv in a subfolder": 1}


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
