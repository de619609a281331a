"""What vouches for a file of weights is the user's own: no file in the folder of weights, and no name in a card."""

import hashlib
import json
import os
from importlib import resources

import pytest

from finc_eval.core.errors import DataError
from finc_eval.core.kept import entries
from finc_eval.extractors import weights as module
from finc_eval.extractors.card import Weights
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.weights import check_weights, weight_states

PIXELS = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
STATED = hashlib.sha256(b"the weights of the card").hexdigest()
FORGED = b"no weights of the card."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of weights that somebody else can write, and a home."""
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


def card_of(tmp_path, file="net.pt", sha256=STATED):
    stated = "" if sha256 is None else f'sha256 = "{sha256}"\n'
    table = f'{PIXELS}\n[weights]\nfile = {json.dumps(file)}\nlicense = "MIT"\n{stated}'
    (tmp_path / "card.toml").write_text(table)
    return load_card(tmp_path / "card.toml")


def stamps(path):
    state = path.stat()
    earlier = [state.st_size, state.st_mtime_ns, state.st_ino]
    return earlier, module._stamp(path)


@pytest.mark.parametrize("key", ["whole", "name", "relative"])
@pytest.mark.parametrize("layout", [0, 1], ids=["earlier", "of today"])
def test_a_record_in_the_folder_of_weights_vouches_for_nothing(folder, tmp_path, monkeypatch, key, layout):
    path = folder / "net.pt"
    path.write_bytes(FORGED)
    name = {"whole": str(path), "name": path.name, "relative": "weights/net.pt"}[key]
    entry = {name: {"stamp": stamps(path)[layout], "sha256": STATED}}
    for place in (folder, tmp_path):
        (place / "verified.json").write_text(json.dumps(entry))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="as the card says"):
        check_weights(card_of(tmp_path))
    (state,) = weight_states([card_of(tmp_path)])
    assert state.state == "wrong" and state.sha256 == hashlib.sha256(FORGED).hexdigest()


def test_a_pin_in_the_folder_of_weights_neither_trusts_nor_refuses(folder, tmp_path):
    (folder / "net.pt").write_bytes(FORGED)
    (folder / "pins.json").write_text(json.dumps({"net.pt": STATED}))
    digest = hashlib.sha256(FORGED).hexdigest()
    assert check_weights(card_of(tmp_path, sha256=None)) == (folder / "net.pt", digest)
    (folder / "net.pt").write_bytes(b"exchanged")
    (folder / "pins.json").write_text(json.dumps({"net.pt": hashlib.sha256(b"exchanged").hexdigest()}))
    with pytest.raises(DataError, match="as when it was first used"):
        check_weights(card_of(tmp_path, sha256=None))


def test_a_file_that_was_exchanged_in_its_place_is_hashed_again_whatever_its_date_says(folder, tmp_path):
    path = folder / "net.pt"
    path.write_bytes(b"the weights of the card")
    assert check_weights(card_of(tmp_path)) == (path, STATED)
    before = path.stat()
    with path.open("r+b") as file:
        file.write(FORGED)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    with pytest.raises(DataError, match="as the card says"):
        check_weights(card_of(tmp_path))


def test_records_of_a_relative_folder_are_of_the_folder_that_it_is_now(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", "weights")
    for place, content in (("one", b"of one"), ("two", b"of two")):
        (tmp_path / place / "weights").mkdir(parents=True)
        (tmp_path / place / "weights" / "net.pt").write_bytes(content)
        monkeypatch.chdir(tmp_path / place)
        assert check_weights(card_of(tmp_path, sha256=None))[1] == hashlib.sha256(content).hexdigest()


def test_records_lie_in_the_home_of_the_user_and_nothing_is_written_beside_weights(folder, tmp_path):
    (folder / "net.pt").write_bytes(FORGED)
    check_weights(card_of(tmp_path, sha256=None))
    assert [one.name for one in folder.iterdir()] == ["net.pt"]
    records = sorted(one.name for one in (tmp_path / "home" / ".cache" / "finc-eval").iterdir())
    assert records == ["pins.json", "verified.json"]


def test_a_user_without_a_home_has_weights_hashed_each_time(folder, tmp_path, monkeypatch):
    (folder / "net.pt").write_bytes(b"the weights of the card")
    monkeypatch.setattr(entries, "RECORDS", "~no-such-user/x")
    hashed, real = [], module.sha256_of_file
    monkeypatch.setattr(module, "sha256_of_file", lambda path: hashed.append(path) or real(path))
    assert check_weights(card_of(tmp_path))[1] == check_weights(card_of(tmp_path))[1] == STATED
    assert len(hashed) == 2


NAMES = {
    "nothing": "",
    "a dot": ".",
    "two dots": "..",
    "dots in a folder": "nets/..",
    "the root": "/",
    "a slash and dots": "./..",
    "NUL": "net\0.pt",
    "a new line": "net\n.pt",
    "a tab": "net\t.pt",
    "an escape": "\x1b[2Jnet.pt",
    "a bell": "net\x07.pt",
    "a control of eight bits": "net\x9b.pt",
    "an order of letters": "net\u202etp.pt",
    "a line separator": "net\u2028.pt",
    "an escape in a folder": "\x1b[2J/net.pt",
    "backslashes": "nets\\net.pt",
    "a drive": "C:net.pt",
    "a stream": "net.pt:hidden",
    "an address": "http://127.0.0.1:9/net.pt",
    "the pins": "pins.json",
    "the record": "verified.json",
    "a hidden file": ".net.pt",
    "a lock": ".net.pt.lock",
    "a download": "net.pt.part",
    "the note of a download": "net.pt.part.json",
    "a long name": "n" * 201,
    "a long name of two bytes a letter": "ä" * 101,
}
"""Names that no file of weights may have."""


@pytest.mark.parametrize("form", NAMES)
def test_a_card_whose_weights_have_a_bad_name_is_one_sentence_and_writes_nothing(folder, tmp_path, form):
    with pytest.raises(DataError) as refused:
        card_of(tmp_path, NAMES[form])
    text = str(refused.value)
    assert '"weights.file" must' in text and text.isprintable() and len(text) < 400
    assert list(folder.iterdir()) == [] and not (tmp_path / "home").exists()


@pytest.mark.parametrize("file", ["net.pt", "net-1.0_a.safetensors", "netz für müller.pth", "n" * 200, "~net.pt"])
def test_a_plain_name_is_taken_as_it_is(folder, tmp_path, file):
    assert card_of(tmp_path, file).weights == Weights(file, "MIT", STATED)
